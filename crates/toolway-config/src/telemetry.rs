//! Where spans go, by the variables that OpenTelemetry has for it.
//!
//! Owns their names and their forms. They come from the process, and from what the organisation set
//! and the person confirmed; no file of a repository has a say. Without an address there are no
//! spans. Exports nothing.

use std::time::Duration;

use toolway_types::{Diagnosis, Secret};
use url::Url;

use crate::environment::Environment;

/// How long the collector has for one batch, unless a variable says otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long spans are gathered, unless a variable says otherwise.
const DELAY: Duration = Duration::from_secs(5);

/// The most attributes of the resource, and headers, that are taken.
const MOST_PAIRS: usize = 64;

/// Where spans go, and which of them.
#[derive(Debug, Clone)]
pub struct TraceSettings {
    /// The collector's address for spans.
    pub endpoint: Url,
    /// Headers for the collector.
    pub headers: Vec<(String, Secret)>,
    /// What this program is called there.
    pub service: String,
    /// What else is said of it.
    pub resource: Vec<(String, String)>,
    /// Which traces are kept.
    pub sampling: TraceSampling,
    /// How long the collector has for one batch.
    pub timeout: Duration,
    /// How long spans are gathered.
    pub delay: Duration,
}

/// Which traces are kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TraceSampling {
    /// Whether who began a trace decides for all.
    pub by_parent: bool,
    /// What holds for those that begin here.
    pub share: SampledShare,
}

/// How many traces are kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SampledShare {
    /// All.
    All,
    /// None.
    None,
    /// This part of all, between 0 and 1.
    Part(f64),
}

impl Default for TraceSampling {
    fn default() -> Self {
        Self {
            by_parent: true,
            share: SampledShare::All,
        }
    }
}

/// The trace that this program was started in, as `TRACEPARENT`, `TRACESTATE` and `BAGGAGE` say.
pub fn given_trace(environment: &Environment) -> [Option<&str>; 3] {
    ["TRACEPARENT", "TRACESTATE", "BAGGAGE"].map(|name| set(environment, name))
}

/// Where spans go, if anywhere, and what is wrong with the variables.
pub fn trace_settings(environment: &Environment) -> (Option<TraceSettings>, Vec<Diagnosis>) {
    let mut findings = Vec::new();
    let is_off =
        set(environment, "OTEL_SDK_DISABLED").is_some_and(|word| word.eq_ignore_ascii_case("true"));
    let exporter = set(environment, "OTEL_TRACES_EXPORTER").unwrap_or("otlp");
    let is_otlp = exporter.split(',').any(|word| word.trim() == "otlp");
    if is_off || !is_otlp {
        return (None, findings);
    }
    let Some(endpoint) = endpoint(environment, &mut findings) else {
        return (None, findings);
    };
    if !speaks_protobuf(environment, &mut findings) {
        return (None, findings);
    }
    let headers = pairs(environment, &of_traces("HEADERS"), &mut findings);
    let mut resource = Vec::new();
    let mut service = None;
    for (name, value) in pairs(environment, &["OTEL_RESOURCE_ATTRIBUTES"; 2], &mut findings) {
        match name.as_str() {
            "service.name" => service = Some(value),
            _ => resource.push((name, value)),
        }
    }
    let service = set(environment, "OTEL_SERVICE_NAME")
        .map(str::to_owned)
        .or(service);
    let settings = TraceSettings {
        endpoint,
        headers: headers
            .into_iter()
            .map(|(name, value)| (name, Secret::new(value)))
            .collect(),
        service: service.unwrap_or_else(|| "toolway".to_owned()),
        resource,
        sampling: sampling(environment, &mut findings),
        timeout: duration(environment, &of_traces("TIMEOUT"), TIMEOUT, &mut findings),
        delay: duration(
            environment,
            &["OTEL_BSP_SCHEDULE_DELAY"; 2].map(str::to_owned),
            DELAY,
            &mut findings,
        ),
    };
    (Some(settings), findings)
}

/// A variable; an empty one counts as none.
fn set<'a>(environment: &'a Environment, name: &str) -> Option<&'a str> {
    environment.var(name).filter(|value| !value.is_empty())
}

/// The names of a variable for spans, and for everything.
fn of_traces(what: &str) -> [String; 2] {
    [
        format!("OTEL_EXPORTER_OTLP_TRACES_{what}"),
        format!("OTEL_EXPORTER_OTLP_{what}"),
    ]
}

/// The first of these variables that is set, with its name.
fn first<'a, 'n, Name: AsRef<str>>(
    environment: &'a Environment,
    names: &'n [Name; 2],
) -> Option<(&'n str, &'a str)> {
    let mut names = names.iter().map(AsRef::as_ref);
    names.find_map(|name| Some((name, set(environment, name)?)))
}

fn endpoint(environment: &Environment, findings: &mut Vec<Diagnosis>) -> Option<Url> {
    let names = of_traces("ENDPOINT");
    let (name, text) = first(environment, &names)?;
    let url = Url::parse(text).ok();
    let is_web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    let Some(mut url) = url.filter(is_web) else {
        // Not repeated: it may hold a password.
        findings.push(
            Diagnosis::warning(format!(
                "`{name}` is no address of a collector, so no spans are sent"
            ))
            .hint("it looks like `http://127.0.0.1:4318`"),
        );
        return None;
    };
    if name == names[1]
        && let Ok(mut path) = url.path_segments_mut()
    {
        // The address of all signals; each has its own path below it.
        path.pop_if_empty().extend(["v1", "traces"]);
    }
    Some(url)
}

fn speaks_protobuf(environment: &Environment, findings: &mut Vec<Diagnosis>) -> bool {
    let names = of_traces("PROTOCOL");
    match first(environment, &names) {
        None | Some((_, "http/protobuf")) => true,
        Some((name, _)) => {
            findings.push(
                Diagnosis::warning(format!(
                    "`{name}` is not `http/protobuf`, which is all that is spoken, so no spans are sent"
                ))
                .hint("set it so, with the collector's address for HTTP, mostly port 4318"),
            );
            false
        }
    }
}

fn sampling(environment: &Environment, findings: &mut Vec<Diagnosis>) -> TraceSampling {
    let Some(word) = set(environment, "OTEL_TRACES_SAMPLER") else {
        return TraceSampling::default();
    };
    let (by_parent, root) = match word.strip_prefix("parentbased_") {
        Some(root) => (true, root),
        None => (false, word),
    };
    let share = match root {
        "always_on" => SampledShare::All,
        "always_off" => SampledShare::None,
        "traceidratio" => {
            let part = set(environment, "OTEL_TRACES_SAMPLER_ARG").map_or(Ok(1.0), str::parse);
            match part {
                Ok(part) if (0.0..=1.0).contains(&part) => SampledShare::Part(part),
                _ => {
                    findings.push(Diagnosis::warning(
                        "`OTEL_TRACES_SAMPLER_ARG` is no number between 0 and 1, so all traces are kept",
                    ));
                    SampledShare::All
                }
            }
        }
        _ => {
            findings.push(
                Diagnosis::warning(format!(
                    "`OTEL_TRACES_SAMPLER` is `{word}`, which is not known, so whoever began a trace decides"
                ))
                .hint("`always_on`, `always_off` and `traceidratio` are, each also behind `parentbased_`"),
            );
            return TraceSampling::default();
        }
    };
    TraceSampling { by_parent, share }
}

fn duration(
    environment: &Environment,
    names: &[String; 2],
    usual: Duration,
    findings: &mut Vec<Diagnosis>,
) -> Duration {
    let Some((name, text)) = first(environment, names) else {
        return usual;
    };
    match text.parse::<u32>() {
        Ok(milliseconds) if milliseconds > 0 => Duration::from_millis(milliseconds.into()),
        _ => {
            findings.push(Diagnosis::warning(format!(
                "`{name}` is no number of milliseconds, so {} s hold",
                usual.as_secs()
            )));
            usual
        }
    }
}

/// `name=value` pairs with commas between them, values with `%` for what is not plain.
fn pairs<Name: AsRef<str>>(
    environment: &Environment,
    names: &[Name; 2],
    findings: &mut Vec<Diagnosis>,
) -> Vec<(String, String)> {
    let Some((name, text)) = first(environment, names) else {
        return Vec::new();
    };
    let mut pairs = Vec::new();
    for part in text.split(',').map(str::trim).filter(|it| !it.is_empty()) {
        let pair = part.split_once('=').and_then(|(key, value)| {
            let key = key.trim();
            let is_named = !key.is_empty() && pairs.len() < MOST_PAIRS;
            Some((key.to_owned(), decoded(value.trim())?)).filter(|_| is_named)
        });
        match pair {
            Some(pair) => pairs.push(pair),
            // Not repeated: it may be a secret.
            None => {
                findings.push(
                    Diagnosis::warning(format!("a part of `{name}` is left out: it is no pair"))
                        .hint("it looks like `name=value,other=value`"),
                );
            }
        }
    }
    pairs
}

/// A text in which `%41` stands for a byte.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = match (first, behind) {
            (b'%', [high, low, behind @ ..]) => {
                let digits = [*high, *low];
                let mut byte = [0];
                hex::decode_to_slice(digits, &mut byte).ok()?;
                bytes.extend(byte);
                behind
            }
            (b'%', _) => return None,
            _ => {
                bytes.push(*first);
                behind
            }
        };
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests;
