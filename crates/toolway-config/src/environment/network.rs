//! How the user's own servers reach the network: the variables that name certificates, proxies and
//! package registries.
//!
//! Owns which variables those are, by the names that the tools document, and that no credential is
//! among their values. Which servers get them is decided by
//! [`Author`](toolway_types::Author).

use toolway_types::Secret;
use toolway_types::secret::parts::{may_be_a_token, of_assignments, of_known_tokens};

/// What npm's settings begin with.
const NPM: &str = "npm_config_";

/// Settings that are addresses, or lists of them.
const ADDRESSES: &[&str] = &[
    "ALL_PROXY",
    "FTP_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "PIP_CONSTRAINT",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_INDEX_URL",
    "PIP_PROXY",
    "PIP_TRUSTED_HOST",
    "UV_ASTRAL_MIRROR_URL",
    "UV_CONSTRAINT",
    "UV_DEFAULT_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "UV_INDEX",
    "UV_INDEX_URL",
    "UV_INSECURE_HOST",
    "UV_PYPY_INSTALL_MIRROR",
    "UV_PYTHON_DOWNLOADS_JSON_URL",
    "UV_PYTHON_INSTALL_MIRROR",
    "npm_config_https_proxy",
    "npm_config_noproxy",
    "npm_config_proxy",
    "npm_config_registry",
];

/// Settings that are paths, numbers and choices.
const OTHERS: &[&str] = &[
    // Certificates.
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "UV_NATIVE_TLS",
    "UV_SYSTEM_CERTS",
    "npm_config_ca",
    "npm_config_cafile",
    "npm_config_strict_ssl",
    // How registries are asked, and where the rest is written down.
    "PIP_CACHE_DIR",
    "PIP_CONFIG_FILE",
    "PIP_DEFAULT_TIMEOUT",
    "PIP_DISABLE_PIP_VERSION_CHECK",
    "PIP_KEYRING_PROVIDER",
    "PIP_NO_CACHE_DIR",
    "PIP_NO_INDEX",
    "PIP_RETRIES",
    "PIP_TIMEOUT",
    "PIP_USE_FEATURE",
    "UV_CACHE_DIR",
    "UV_CONCURRENT_DOWNLOADS",
    "UV_CONFIG_FILE",
    "UV_HTTP_CONNECT_TIMEOUT",
    "UV_HTTP_RETRIES",
    "UV_HTTP_TIMEOUT",
    "UV_INDEX_STRATEGY",
    "UV_KEYRING_PROVIDER",
    "UV_NO_CACHE",
    "UV_NO_CONFIG",
    "UV_OFFLINE",
    "UV_PYTHON_DOWNLOADS",
    "UV_PYTHON_INSTALL_DIR",
    "UV_REQUEST_TIMEOUT",
    "npm_config_cache",
    "npm_config_fetch_retries",
    "npm_config_fetch_retry_factor",
    "npm_config_fetch_retry_maxtimeout",
    "npm_config_fetch_retry_mintimeout",
    "npm_config_fetch_timeout",
    "npm_config_globalconfig",
    "npm_config_maxsockets",
    "npm_config_offline",
    "npm_config_prefer_offline",
    "npm_config_prefix",
    "npm_config_replace_registry_host",
    "npm_config_userconfig",
    // Which packages a person lets in.
    "PIP_ONLY_BINARY",
    "PIP_REQUIRE_HASHES",
    "UV_EXCLUDE_NEWER",
    "UV_NO_BUILD",
    "npm_config_before",
    "npm_config_ignore_scripts",
    "npm_config_min_release_age",
];

/// Whether a variable is a setting of the network that may be handed on. `in_npm` is whether npm
/// runs us as a package's script: then its settings may be that package's.
pub(super) fn is_handed_on(name: &str, value: &Secret, in_npm: RunByNpm) -> bool {
    let name = as_documented(name);
    let of_npm = name.strip_prefix(NPM);
    if of_npm.is_some() && in_npm == RunByNpm::Yes {
        return false;
    }
    let of_scope = |key: &str| key.starts_with('@') && key.ends_with(":registry");
    let value = value.expose();
    if ADDRESSES.contains(&name.as_str()) || of_npm.is_some_and(of_scope) {
        let mut addresses = value.split(|c: char| c.is_whitespace() || ",;".contains(c));
        return addresses.all(is_open)
            && of_known_tokens(value).is_empty()
            && of_assignments(value).is_empty();
    }
    // No address belongs there.
    OTHERS.contains(&name.as_str()) && !value.contains("://")
}

/// Whether npm runs this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunByNpm {
    Yes,
    No,
}

/// A name as it stands in the lists, if its tool reads it: npm in any case and with dashes, pip so
/// behind its prefix, proxies in capitals or in small letters, all others as they are.
fn as_documented(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    if lower.starts_with(NPM) {
        return lower.replace('-', "_");
    }
    if name.starts_with("PIP_") {
        return name.to_ascii_uppercase().replace('-', "_");
    }
    if name == lower && lower.ends_with("_proxy") {
        return name.to_ascii_uppercase();
    }
    name.to_owned()
}

/// Whether an address holds no credential: no login, no query, and nothing in its path that may be
/// a token. An index may have a name before it: `corp=https://…`.
fn is_open(address: &str) -> bool {
    let bare = match address.split_once('=') {
        Some((name, bare)) if !name.contains(['/', ':']) => bare,
        _ => address,
    };
    let behind = bare.split_once("://").map_or(bare, |(_, behind)| behind);
    let mut parts = behind.split('/').skip(1);
    !address.contains(['@', '?', '#', '\\']) && !parts.any(may_be_a_token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_plain(name: &str, value: &str) -> bool {
        is_handed_on(name, &Secret::new(value), RunByNpm::No)
    }

    #[test]
    fn sec_39_only_documented_settings_are_handed_on() {
        for name in [
            "npm_config__auth",
            "npm_config__authToken",
            "NPM_CONFIG__PASSWORD",
            "npm_config_//registry.example/:_authToken",
            "npm_config_//registry.example/:username",
            "npm_config_otp",
            "npm_config_pat",
            "npm_config_key",
            "npm_config_cert",
            "npm_config_local_prefix",
            "UV_PUBLISH_TOKEN",
            "UV_INDEX_CORP_PASSWORD",
            "UV_INDEX_CORP_USERNAME",
            "UV_S3_ENDPOINT_SECRET",
            "UV_PASS",
            "uv_index_url",
            "PIP_PASSWORD",
            "PIP_APIKEY",
            "PIP_CLIENT_CERT",
            "pip_index_url",
            "REDIS_PROXY",
            "Http_Proxy",
            "ssl_cert_file",
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
        ] {
            assert!(!is_plain(name, "https://registry.example/"), "{name}");
            assert!(!is_plain(name, "1"), "{name}");
        }
    }

    #[test]
    fn sec_39_no_credential_is_handed_on_in_an_address() {
        for value in [
            "https://me:word@registry.example/",
            "https://word@registry.example/",
            "me:word@proxy.example:3128",
            "corp=https://me@registry.example/",
            "https://a.example/ https://me:word@b.example/",
            "https://a.example/,https://me:word@b.example/",
            "https://registry.example/?token=word",
            "https://registry.example/#word",
            "https://dl.example/aB3dE5gH7jK9mN2p/corp/python/simple/",
            "https://dl.example/corp/0f8fad5b-d9cb-469f-a165-70867728950e/simple",
            "corp=https://dl.example/hunter22/simple",
            "https://dl.example/token/word/simple",
            "https://dl.example/token:word/simple",
            "https://dl.example/ghp_abcdefghijklmnopqrst/simple",
            "/srv/aB3dE5gH7jK9mN2p",
        ] {
            for name in [
                "HTTPS_PROXY",
                "npm_config_registry",
                "npm_config_@corp:registry",
                "UV_INDEX",
                "PIP_INDEX_URL",
            ] {
                assert!(!is_plain(name, value), "{name}={value}");
            }
        }
        assert!(!is_plain("UV_CONFIG_FILE", "https://me:word@h.example/"));
    }

    #[test]
    fn settings_of_the_network_are_handed_on() {
        for (name, value) in [
            (
                "SSL_CERT_FILE",
                "/nix/store/5m9amsvvh2z8sl7jrnc87hzy21glw6k1-cacert/a.crt",
            ),
            ("http_proxy", "http://proxy.example:3128"),
            ("ALL_PROXY", "socks5h://[::1]:1080"),
            ("NO_PROXY", "localhost,.example,10.0.0.0/8,::1,*.a.example"),
            (
                "NPM_CONFIG_REGISTRY",
                "https://npm.example/artifactory/api/npm/npm-remote/",
            ),
            ("npm_config_@corp:registry", "https://npm.example/"),
            ("npm_config_strict-ssl", "true"),
            ("npm_config_cafile", "/etc/ssl/a.pem"),
            ("npm_config_userconfig", "/home/me/.npmrc"),
            ("npm_config_ignore_scripts", "true"),
            ("PIP_CERT", "/etc/ssl/a.pem"),
            (
                "PIP_index_url",
                "https://git.example/api/v4/projects/12345678/packages/pypi/simple",
            ),
            (
                "UV_INDEX",
                "torch=https://torch.example/whl/cu126 https://b.example/MyTeam/simple",
            ),
            ("UV_NATIVE_TLS", "1"),
            ("UV_CACHE_DIR", "/var/cache/uv"),
        ] {
            assert!(is_plain(name, value), "{name}");
            let of_npm = name.to_ascii_lowercase().starts_with("npm");
            let value = Secret::new(value);
            assert_eq!(is_handed_on(name, &value, RunByNpm::Yes), !of_npm, "{name}");
        }
    }
}
