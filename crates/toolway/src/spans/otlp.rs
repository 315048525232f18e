//! A batch of spans as OTLP has it: protocol buffers.
//!
//! Owns the bytes. The numbers of fields are those of `opentelemetry/proto/trace/v1/trace.proto`
//! and `opentelemetry/proto/collector/trace/v1/trace_service.proto`; a test reads what is written
//! here with the types that are made of those files.

use toolway_wire::TraceParent;

use super::{SpanRecord, SpanSide, SpanValue};

/// What stands before the spans of every batch: who sends them.
pub(super) struct BatchHead {
    resource: Vec<u8>,
    scope: Vec<u8>,
}

impl BatchHead {
    pub(super) fn new(service: &str, attributes: &[(String, String)]) -> Self {
        let mut resource = ProtoWriter::default();
        let version = env!("CARGO_PKG_VERSION");
        let own = [
            ("service.name", service),
            ("service.version", version),
            ("telemetry.sdk.name", "toolway"),
            ("telemetry.sdk.language", "rust"),
            ("telemetry.sdk.version", version),
        ];
        let is_given = |name: &str| attributes.iter().any(|(given, _)| given == name);
        for (name, value) in own.into_iter().filter(|(name, _)| !is_given(name)) {
            resource.text_attribute(1, name, value);
        }
        for (name, value) in attributes {
            resource.text_attribute(1, name, value);
        }
        let mut scope = ProtoWriter::default();
        scope.text(1, "toolway");
        scope.text(2, version);
        Self {
            resource: resource.0,
            scope: scope.0,
        }
    }

    /// `ExportTraceServiceRequest` of these spans.
    pub(super) fn batch(&self, spans: &[Box<SpanRecord>]) -> Vec<u8> {
        let mut of_scope = ProtoWriter::default();
        of_scope.bytes(1, &self.scope);
        for span in spans {
            of_scope.bytes(2, &span_message(span).0);
        }
        let mut of_resource = ProtoWriter::default();
        of_resource.bytes(1, &self.resource);
        of_resource.bytes(2, &of_scope.0);
        let mut request = ProtoWriter::default();
        request.bytes(1, &of_resource.0);
        request.0
    }
}

fn span_message(span: &SpanRecord) -> ProtoWriter {
    let mut out = ProtoWriter::default();
    out.bytes(1, &span.own.trace);
    out.bytes(2, &span.own.span);
    if let Some(state) = &span.state {
        out.text(3, state);
    }
    if let Some(parent) = &span.parent {
        out.bytes(4, &parent.span);
    }
    match &span.target {
        Some(target) => out.text(5, &format!("{} {target}", span.method)),
        None => out.text(5, &span.method),
    }
    out.number(
        6,
        match span.side {
            SpanSide::Server => 2,
            SpanSide::Client => 3,
        },
    );
    let nanoseconds = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(0);
    out.fixed64(7, nanoseconds(span.begun));
    out.fixed64(8, nanoseconds(span.begun + span.took));
    for (name, value) in &span.attributes {
        match value {
            SpanValue::Text(text) => out.text_attribute(9, name, text),
            SpanValue::Number(number) => out.number_attribute(9, name, *number),
        }
    }
    if let Some(link) = &span.link {
        let mut linked = ProtoWriter::default();
        linked.bytes(1, &link.trace);
        linked.bytes(2, &link.span);
        linked.fixed32(6, flags(*link, true));
        out.bytes(13, &linked.0);
    }
    if span.failed {
        let mut status = ProtoWriter::default();
        status.number(3, 2);
        out.bytes(15, &status.0);
    }
    out.fixed32(16, flags(span.own, span.is_remote && span.parent.is_some()));
    out
}

/// The flags of a span: W3C's, that it is known whether its parent is remote, and whether it is.
fn flags(span: TraceParent, is_remote: bool) -> u32 {
    u32::from(span.flags) | 0x100 | if is_remote { 0x200 } else { 0 }
}

/// Writes fields of a message.
#[derive(Default)]
struct ProtoWriter(Vec<u8>);

impl ProtoWriter {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.0.push(number.to_le_bytes()[0]);
    }

    fn key(&mut self, field: u32, wire_type: u32) {
        self.varint(u64::from(field << 3 | wire_type));
    }

    fn number(&mut self, field: u32, number: u64) {
        self.key(field, 0);
        self.varint(number);
    }

    fn fixed64(&mut self, field: u32, number: u64) {
        self.key(field, 1);
        self.0.extend(number.to_le_bytes());
    }

    fn fixed32(&mut self, field: u32, number: u32) {
        self.key(field, 5);
        self.0.extend(number.to_le_bytes());
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.key(field, 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, field: u32, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    fn text_attribute(&mut self, field: u32, name: &str, value: &str) {
        let mut any = Self::default();
        any.text(1, value);
        self.attribute(field, name, &any);
    }

    fn number_attribute(&mut self, field: u32, name: &str, value: i64) {
        let mut any = Self::default();
        // Two's complement, as the format has it.
        any.number(3, u64::from_le_bytes(value.to_le_bytes()));
        self.attribute(field, name, &any);
    }

    fn attribute(&mut self, field: u32, name: &str, value: &Self) {
        let mut pair = Self::default();
        pair.text(1, name);
        pair.bytes(2, &value.0);
        self.bytes(field, &pair.0);
    }
}
