//! How a person's own servers reach the network: the settings of the person's environment that say
//! which certificates, proxies and package registries are used.
//!
//! Owns which variables those are, and that no credential is among them: not by its name, and not
//! in its value. Who gets them is [`Author`](toolway_types::Author)'s to say.

use toolway_types::Secret;

/// Where certificates to trust lie.
const CERTIFICATES: [&str; 4] = [
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

/// What the settings of package runners begin with; npm reads its own in either case.
const NPM: &str = "npm_config_";
const RUNNERS: [&str; 2] = ["PIP_", "UV_"];

/// Words in the name of a setting that holds a credential, or is a half of one.
const CREDENTIALS: [&str; 9] = [
    "auth",
    "cert",
    "credential",
    "otp",
    "passw",
    "secret",
    "token",
    "user",
    "_key",
];

/// What is called like a credential and is none: where certificates and settings lie, and whom a
/// client says it is.
const PLAIN: [&str; 6] = [
    "pip_cert",
    "npm_config_cafile",
    "npm_config_globalconfig",
    "npm_config_user_agent",
    "npm_config_userconfig",
    "uv_native_tls",
];

/// Settings of npm that say where a package lies, which is whose script npm runs.
const OF_A_PACKAGE: [&str; 1] = ["npm_config_local_prefix"];

/// Whether a variable is a setting of the network that may be handed on. `in_npm` is whether npm
/// runs us as a package's script: then its settings may be that package's.
pub(super) fn is_handed_on(name: &str, value: &Secret, in_npm: InNpm) -> bool {
    if CERTIFICATES.contains(&name) {
        return true;
    }
    let lower = name.to_ascii_lowercase();
    let of_npm = lower.starts_with(NPM);
    if of_npm && (in_npm == InNpm::Yes || OF_A_PACKAGE.contains(&lower.as_str())) {
        return false;
    }
    let is_setting = of_npm
        || lower.ends_with("_proxy")
        || RUNNERS.iter().any(|prefix| name.starts_with(prefix));
    is_setting && !names_credential(&lower) && !holds_credential(value.expose())
}

/// Whether npm runs this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InNpm {
    Yes,
    No,
}

fn names_credential(lower: &str) -> bool {
    !PLAIN.contains(&lower)
        && (CREDENTIALS.iter().any(|word| lower.contains(word)) || lower == "npm_config_key")
}

/// Whether a value has room for a credential: somebody's name before an `@`, with or without a
/// scheme, a question mark behind which anything may stand, or a key.
fn holds_credential(value: &str) -> bool {
    value.contains('@') || value.contains('?') || value.contains("PRIVATE KEY")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sec_39_no_credential_is_handed_on_under_any_name() {
        let plain = "https://registry.example/";
        for name in [
            "npm_config__auth",
            "npm_config__authToken",
            "NPM_CONFIG__PASSWORD",
            "npm_config_//registry.example/:_authToken",
            "npm_config_//registry.example/:username",
            "npm_config_otp",
            "npm_config_key",
            "npm_config_cert",
            "UV_PUBLISH_TOKEN",
            "UV_INDEX_CORP_PASSWORD",
            "UV_INDEX_CORP_USERNAME",
            "UV_S3_ENDPOINT_SECRET",
            "PIP_PASSWORD",
            "PIP_CLIENT_CERT",
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
        ] {
            let value = Secret::new(plain);
            assert!(!is_handed_on(name, &value, InNpm::No), "{name}");
        }
        for value in [
            "https://me:word@registry.example/",
            "https://word@registry.example/",
            "me:word@proxy.example:3128",
            "corp=https://me@registry.example/",
            "https://a.example/ https://me:word@b.example/",
            "https://registry.example/?token=word",
            "-----BEGIN PRIVATE KEY-----",
        ] {
            for name in [
                "HTTPS_PROXY",
                "npm_config_registry",
                "UV_INDEX",
                "PIP_INDEX_URL",
            ] {
                let value = Secret::new(value);
                assert!(!is_handed_on(name, &value, InNpm::No), "{name}");
            }
        }
    }

    #[test]
    fn settings_of_the_network_are_handed_on() {
        for (name, value) in [
            ("SSL_CERT_FILE", "/etc/ssl/a.pem"),
            ("http_proxy", "http://proxy.example:3128"),
            ("NO_PROXY", "localhost,.example"),
            ("npm_config_@corp:registry", "https://npm.example/"),
            ("npm_config_cafile", "/etc/ssl/a.pem"),
            ("npm_config_userconfig", "/home/me/.npmrc"),
            ("PIP_CERT", "/etc/ssl/a.pem"),
            ("UV_NATIVE_TLS", "1"),
            ("UV_CACHE_DIR", "/var/cache/uv"),
        ] {
            let value = Secret::new(value);
            assert!(is_handed_on(name, &value, InNpm::No), "{name}");
            let of_npm = name.starts_with("npm");
            assert_eq!(is_handed_on(name, &value, InNpm::Yes), !of_npm, "{name}");
        }
        let value = Secret::new("/repo");
        assert!(!is_handed_on("npm_config_local_prefix", &value, InNpm::No));
    }
}
