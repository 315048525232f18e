//! What servers get of a person's environment: settings of the network, and of whom.

use std::process::Command;

use insta::assert_snapshot;
use serde_json::{Value, json};
use toolway_testkit::{TempHome, marked};

use crate::support::{command, servers, toolway};
use crate::trusting::{environment_of, scripted};

const CERTIFICATES: &str = "/etc/ssl/corporate.pem";

/// What a person behind a company's proxy has in their environment.
fn network(toolway: &mut Command) -> &mut Command {
    toolway.envs([
        ("SSL_CERT_FILE", CERTIFICATES),
        ("SSL_CERT_DIR", "/etc/ssl/certs"),
        ("NODE_EXTRA_CA_CERTS", CERTIFICATES),
        ("REQUESTS_CA_BUNDLE", CERTIFICATES),
        ("HTTPS_PROXY", "http://proxy.example:3128"),
        ("https_proxy", "http://proxy.example:3128"),
        ("no_proxy", "localhost,.example"),
        ("npm_config_registry", "https://npm.example/"),
        ("NPM_CONFIG_STRICT_SSL", "true"),
        ("UV_DEFAULT_INDEX", "https://pypi.example/simple"),
        ("PIP_INDEX_URL", "https://pypi.example/simple"),
        ("PIP_TRUSTED_HOST", "pypi.example:8443 10.0.0.1"),
        ("npm_config_@corp:registry", "https://npm.example/api/v4/"),
        // What is no setting of the network, whatever its name begins or ends with.
        ("PIP_APIKEY", marked!("a_")),
        ("UV_PASS", marked!("b_")),
        ("UV_API_KEY", marked!("c_")),
        ("npm_config_pat", marked!("d_")),
        ("NPM_CONFIG_KEYFILE", "/home/me/key.pem"),
        ("REDIS_PROXY", marked!("e_")),
        ("Http_Proxy", "http://proxy.example:3128"),
        ("uv_index_url", "https://pypi.example/simple"),
        // Credentials, by value or by name.
        (
            "UV_INDEX_URL",
            marked!("https://dl.example/", "/corp/simple"),
        ),
        (
            "UV_EXTRA_INDEX_URL",
            marked!("https://a.example/simple https://b.example/token/", "/"),
        ),
        ("UV_PYTHON_INSTALL_MIRROR", marked!("https://b.example/a#")),
        ("npm_config_https_proxy", marked!("http://me:", "@proxy:1")),
        ("HTTP_PROXY", marked!("http://me:", "@proxy.example:3128")),
        ("ALL_PROXY", marked!("me:", "@proxy.example:3128")),
        ("npm_config__authToken", marked!("npm_")),
        ("npm_config__auth", marked!("auth_")),
        ("NPM_CONFIG_OTP", marked!("otp_")),
        ("UV_PUBLISH_TOKEN", marked!("pypi_")),
        ("UV_INDEX_CORP_PASSWORD", marked!("uv_")),
        ("UV_INDEX_CORP_USERNAME", marked!("user_")),
        (
            "UV_INDEX",
            marked!("corp=https://me:", "@pypi.example/simple"),
        ),
        (
            "PIP_EXTRA_INDEX_URL",
            marked!("https://a.example/ https://", "@b.example/"),
        ),
        ("PIP_FIND_LINKS", marked!("https://a.example/?token=")),
        ("GITHUB_TOKEN", marked!("ghp_")),
    ])
}

/// The names of those that a server got.
fn got(env: &Value) -> Vec<&str> {
    let env = env.as_object().unwrap();
    let own = ["HOME", "LANG", "PATH", "TOOLWAY_PROJECT_DIR", "USER"];
    let names = env.keys().map(String::as_str);
    names.filter(|name| !own.contains(name)).collect()
}

#[test]
fn servers_that_a_person_configured_reach_the_network_as_the_person_does() {
    let home = TempHome::new();
    home.write_settings(servers(&[("mine", scripted(&[]))]));
    let mut call = command(&home, &["call", "mine", "inspect", "--json"]);
    let env = environment_of(&home, network(&mut call));
    assert_eq!(env["SSL_CERT_FILE"], CERTIFICATES);
    let mut names = got(&env);
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "HTTPS_PROXY",
            "NODE_EXTRA_CA_CERTS",
            "NPM_CONFIG_STRICT_SSL",
            "PIP_INDEX_URL",
            "PIP_TRUSTED_HOST",
            "REQUESTS_CA_BUNDLE",
            "SSL_CERT_DIR",
            "SSL_CERT_FILE",
            "UV_DEFAULT_INDEX",
            "https_proxy",
            "no_proxy",
            "npm_config_@corp:registry",
            "npm_config_registry",
        ]
    );
    // The entry's own word counts.
    home.write_settings(servers(&[("mine", scripted(&[("HTTPS_PROXY", "")]))]));
    let mut call = command(&home, &["call", "mine", "inspect", "--json"]);
    assert_eq!(environment_of(&home, network(&mut call))["HTTPS_PROXY"], "");
    // What npm exports to the scripts of a package may be that package's word.
    let mut call = command(&home, &["call", "mine", "inspect", "--json"]);
    let env = environment_of(&home, network(&mut call).env("npm_lifecycle_event", "x"));
    assert!(!got(&env).contains(&"npm_config_registry"), "{env}");
}

#[test]
fn sec_39_servers_of_a_repository_get_no_setting_of_the_network() {
    let home = TempHome::new();
    home.write(".mcp.json", servers(&[("theirs", scripted(&[]))]));
    toolway(&home, &["approve", "theirs", "--yes"]).expect_code(0);
    let mut call = command(&home, &["call", "theirs", "inspect", "--json"]);
    let env = environment_of(&home, network(&mut call));
    assert_eq!(got(&env), Vec::<&str>::new());
}

#[test]
fn sec_39_the_screen_of_a_local_entry_says_that_it_gets_settings_of_the_network() {
    let home = TempHome::new();
    let local = ".toolway/settings.local.json";
    let address = json!({ "url": "http://127.0.0.1:1/mcp" });
    home.write(
        local,
        servers(&[("remote", address), ("theirs", scripted(&[]))]),
    );
    let says = "your certificates, proxies and registries without credentials";
    let shown = toolway(&home, &["approve", "theirs"]).expect_code(6);
    assert!(shown.stderr.contains(says), "{shown}");
    let shown = toolway(&home, &["approve", "remote"]).expect_code(6);
    assert!(!shown.stderr.contains(says), "it starts nothing: {shown}");
    toolway(&home, &["approve", "theirs", "--yes"]).expect_code(0);
    let mut call = command(&home, &["call", "theirs", "inspect", "--json"]);
    let env = environment_of(&home, network(&mut call));
    assert_eq!(env["npm_config_registry"], "https://npm.example/");
}

#[test]
fn a_command_that_is_typed_takes_variables() {
    let home = TempHome::new();
    let entry = scripted(&[]);
    let mut words = vec![
        "call",
        "inspect",
        "--json",
        "-e",
        "A=b=c",
        "-e",
        "HTTPS_PROXY",
        "--",
    ];
    words.push(entry["command"].as_str().unwrap());
    let args = entry["args"].as_array().unwrap();
    words.extend(args.iter().map(|word| word.as_str().unwrap()));
    let env = environment_of(&home, network(&mut command(&home, &words)));
    let mut names = got(&env);
    names.sort_unstable();
    assert_eq!(names, ["A", "HTTPS_PROXY"]);
    assert_eq!(env["A"], "b=c");
    assert_snapshot!(toolway(&home, &["tools", "-e", "NOT_SET", "--", "true"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: the variable `NOT_SET` is not set
    hint: give it a value: `-e NOT_SET=VALUE`
    ");
    assert_snapshot!(toolway(&home, &["tools", "-e", "A=b"]), @"
    exit: 2
    ----- stdout
    ----- stderr
    error: the following required arguments were not provided:
      <COMMAND>...

    Usage: toolway tools --env <NAME[=VALUE]> [SERVER] [TOOL] -- <COMMAND>...
    hint: see `toolway tools --help`
    ");
}
