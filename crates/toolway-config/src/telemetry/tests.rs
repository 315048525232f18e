//! What the variables of OpenTelemetry come to.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::*;

fn read(variables: &[(&str, &str)]) -> (Option<TraceSettings>, Vec<String>) {
    let variables: BTreeMap<_, _> = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let environment = Environment::new(variables, PathBuf::from("/"));
    let (settings, findings) = trace_settings(&environment);
    let findings = findings.into_iter().map(|it| it.message).collect();
    (settings, findings)
}

fn settings(variables: &[(&str, &str)]) -> TraceSettings {
    let (settings, findings) = read(variables);
    assert_eq!(findings, Vec::<String>::new());
    settings.expect("settings")
}

const ALL: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const OF_TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";

#[test]
fn without_an_address_there_are_no_spans() {
    for variables in [
        &[][..],
        &[(ALL, "")],
        &[
            (ALL, "http://localhost:4318"),
            ("OTEL_SDK_DISABLED", "TRUE"),
        ],
        &[
            (ALL, "http://localhost:4318"),
            ("OTEL_TRACES_EXPORTER", "none"),
        ],
    ] {
        let (settings, findings) = read(variables);
        assert!(settings.is_none(), "{variables:?}");
        assert_eq!(findings, Vec::<String>::new());
    }
}

#[test]
fn the_address_of_all_signals_has_spans_below_it_and_that_of_spans_is_taken_as_it_is() {
    for (variables, address) in [
        (
            &[(ALL, "http://localhost:4318")][..],
            "http://localhost:4318/v1/traces",
        ),
        (
            &[(ALL, "https://c.example/otlp/")],
            "https://c.example/otlp/v1/traces",
        ),
        (&[(OF_TRACES, "https://c.example/x")], "https://c.example/x"),
        (
            &[
                (ALL, "http://localhost:4318"),
                (OF_TRACES, "https://c.example"),
            ],
            "https://c.example/",
        ),
    ] {
        assert_eq!(settings(variables).endpoint.as_str(), address);
    }
}

#[test]
fn headers_and_attributes_are_pairs_and_headers_are_never_shown() {
    let settings = settings(&[
        (ALL, "http://localhost:4318"),
        (
            "OTEL_EXPORTER_OTLP_HEADERS",
            "x-key=some%20abc, x-team = a=b",
        ),
        (
            "OTEL_RESOURCE_ATTRIBUTES",
            "service.name=other,deployment.environment.name=test%C3%A4",
        ),
        ("OTEL_SERVICE_NAME", "mine"),
    ]);
    let headers: Vec<_> = settings
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.expose()))
        .collect();
    assert_eq!(headers, [("x-key", "some abc"), ("x-team", "a=b")]);
    assert_eq!(settings.service, "mine");
    let attributes = [("deployment.environment.name".to_owned(), "testä".to_owned())];
    assert_eq!(settings.resource, attributes);
    assert!(!format!("{settings:?}").contains("abc"));
}

#[test]
fn samplers_have_their_standard_names() {
    let sampler = |word, part| {
        settings(&[
            (ALL, "http://localhost:4318"),
            ("OTEL_TRACES_SAMPLER", word),
            ("OTEL_TRACES_SAMPLER_ARG", part),
        ])
        .sampling
    };
    let is = |by_parent, share| TraceSampling { by_parent, share };
    assert_eq!(sampler("", ""), TraceSampling::default());
    assert_eq!(sampler("always_on", ""), is(false, SampledShare::All));
    assert_eq!(
        sampler("parentbased_always_off", ""),
        is(true, SampledShare::None)
    );
    assert_eq!(
        sampler("traceidratio", "0.25"),
        is(false, SampledShare::Part(0.25))
    );
    assert_eq!(
        sampler("parentbased_traceidratio", ""),
        is(true, SampledShare::Part(1.0))
    );
}

#[test]
fn what_is_wrong_is_said_without_the_values() {
    let address = (ALL, "http://localhost:4318");
    for (variable, said, is_on) in [
        (
            (OF_TRACES, "ftp://user:word@c.example"),
            "`OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` is no address of a collector, so no spans are sent",
            false,
        ),
        (
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            "`OTEL_EXPORTER_OTLP_PROTOCOL` is not `http/protobuf`, which is all that is spoken, so no spans are sent",
            false,
        ),
        (
            ("OTEL_EXPORTER_OTLP_HEADERS", "word"),
            "a part of `OTEL_EXPORTER_OTLP_HEADERS` is left out: it is no pair",
            true,
        ),
        (
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=%zz"),
            "a part of `OTEL_EXPORTER_OTLP_HEADERS` is left out: it is no pair",
            true,
        ),
        (
            ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
            "`OTEL_TRACES_SAMPLER` is `jaeger_remote`, which is not known, so whoever began a trace decides",
            true,
        ),
        (
            ("OTEL_BSP_SCHEDULE_DELAY", "soon"),
            "`OTEL_BSP_SCHEDULE_DELAY` is no number of milliseconds, so 5 s hold",
            true,
        ),
    ] {
        let (settings, findings) = read(&[address, variable]);
        assert_eq!(findings, [said]);
        assert_eq!(settings.is_some(), is_on, "{said}");
    }
}
