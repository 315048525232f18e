//! What variables say of the audit, of where secrets are kept, of proxies and of certificates.
//!
//! Owns their names and words. The variables are those that [`Environment`] captured.

use std::path::PathBuf;

use toolway_auth::vault::StorageChoice;
use toolway_config::Environment;
use toolway_transport::client::HttpClientOptions;
use toolway_types::Diagnosis;

use super::StateFiles;
use crate::audit::Audit;

/// Where calls are written down, and how much of them, as `TOOLWAY_AUDIT` says.
pub(super) fn audit(environment: &Environment) -> (Option<Audit>, Option<Diagnosis>) {
    let audit = Audit::in_directory(StateFiles(environment).audit());
    let audit = match environment.var("TOOLWAY_AUDIT") {
        None | Some("" | "calls") => Some(audit),
        Some("off") => None,
        Some("arguments") => Some(audit.with_arguments()),
        Some("results") => Some(audit.with_arguments().with_results()),
        Some(other) => {
            let finding = Diagnosis::warning(format!(
                "`TOOLWAY_AUDIT` is `{other}`, which is none of off, calls, arguments and \
                 results; calls are written down without either"
            ));
            return (Some(audit), Some(finding));
        }
    };
    (audit, None)
}

/// Where secrets are kept, as `TOOLWAY_VAULT` says.
pub(super) fn storage(environment: &Environment) -> (StorageChoice, Option<Diagnosis>) {
    let storage = match environment.var("TOOLWAY_VAULT") {
        None | Some("" | "any") => StorageChoice::Any,
        Some("keychain") => StorageChoice::Keychain,
        Some("file") => StorageChoice::File,
        Some(other) => {
            let finding = Diagnosis::warning(format!(
                "`TOOLWAY_VAULT` is `{other}`, which is none of any, keychain and file"
            ));
            return (StorageChoice::Any, Some(finding));
        }
    };
    (storage, None)
}

/// Proxies and certificates, by the names other programs use too.
pub(super) fn http_options(environment: &Environment) -> HttpClientOptions {
    let variable = |names: [&str; 2]| {
        names
            .iter()
            .find_map(|name| environment.var(name))
            .filter(|value| !value.is_empty())
            .map(str::to_owned)
    };
    let extra_ca = ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"]
        .into_iter()
        .filter_map(|name| environment.var(name))
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
        .collect();
    HttpClientOptions {
        extra_ca,
        client_certificate: variable(["TOOLWAY_CLIENT_CERT", "CLAUDE_CODE_CLIENT_CERT"])
            .map(PathBuf::from),
        client_key: variable(["TOOLWAY_CLIENT_KEY", "CLAUDE_CODE_CLIENT_KEY"]).map(PathBuf::from),
        http_proxy: variable(["HTTP_PROXY", "http_proxy"]),
        https_proxy: variable(["HTTPS_PROXY", "https_proxy"]),
        no_proxy: variable(["NO_PROXY", "no_proxy"]),
        ..HttpClientOptions::default()
    }
}
