//! Logins that go well, in every way there is, and what is kept of them.

use toolway_auth::login::{LoginFault, LoginMethod, LoginProgress};
use toolway_auth::registration::{AuthMethod, ClientDocument, ClientSource, RegisteredClient};
use toolway_auth::revoke::Revocation;
use toolway_auth::scopes::LoginAttemptError;
use toolway_auth::token::TokenKind;
use toolway_testkit::authority::{
    AuthoritySettings, CANARY, DpopMode, KnownClient, RecordedRequest, RequestedParty, Switch,
    holds_secret,
};
use toolway_types::Secret;
use url::Url;

use crate::case::Case;
use crate::person::{Habit, Tester};

fn param<'a>(seen: &'a [RecordedRequest], name: &str) -> Option<&'a str> {
    seen.last().and_then(|seen| seen.param(name))
}

fn known(id: &str) -> KnownClient {
    KnownClient {
        id: id.to_owned(),
        secret: Some(format!("{CANARY}-secret")),
        ..KnownClient::default()
    }
}

#[tokio::test]
async fn a_browser_goes_there_and_comes_back_with_a_token() {
    let case = Case::new(AuthoritySettings::default());
    let got = case.log_in().await.unwrap();
    assert_eq!(case.refusal(Some(&got.tokens.access)).await, (200, None));
    assert_eq!(got.issuer, case.authority.issuer());
    assert_eq!(got.resource, case.authority.resource());
    assert_eq!(got.client.source, ClientSource::Dynamic);
    assert!(got.tokens.refresh.is_some());
    assert!(got.revocation_endpoint.is_some());
    let asked = case.authority.seen_at(RequestedParty::Issuer, "/authorize");
    assert_eq!(param(&asked, "resource"), Some(case.authority.resource()));
    assert_eq!(param(&asked, "code_challenge_method"), Some("S256"));
    assert_eq!(param(&asked, "prompt"), Some("consent"));
    let spent = case.authority.seen_at(RequestedParty::Issuer, "/token");
    assert_eq!(param(&spent, "resource"), Some(case.authority.resource()));
    let pages = case.person.walked().await;
    assert_eq!(pages.last().unwrap().status, 200);
    let said = case.person.said.lock().unwrap().clone();
    let course = [
        LoginProgress::Discovering,
        LoginProgress::Registering,
        LoginProgress::Waiting,
        LoginProgress::Finishing,
    ];
    assert_eq!(said, course);
    assert!(!holds_secret(&format!("{got:?}")));
}

#[tokio::test]
async fn a_second_login_registers_nothing() {
    let case = Case::new(AuthoritySettings::default());
    let first = case.log_in().await.unwrap();
    let second = case.log_in().await.unwrap();
    assert_eq!(first.client, second.client);
    assert_eq!(case.authority.report().registrations, 1);
}

#[tokio::test]
async fn what_a_person_pastes_ends_the_login_once_it_is_its_answer() {
    let case = Case {
        way: LoginMethod::Paste,
        ..Case::new(AuthoritySettings::default())
    };
    case.person.pastes_first("");
    case.person.pastes_first("only-the-code");
    case.person
        .pastes_first("http://127.0.0.1:1/x?code=other&state=other");
    let got = case.log_in().await.unwrap();
    assert!(case.authority.is_valid(got.tokens.access.expose()));
    assert!(case.person.opened.lock().unwrap().is_empty());
    let said = case.person.said.lock().unwrap().clone();
    let again = said
        .iter()
        .filter(|said| matches!(said, LoginProgress::Pasted(_)));
    assert_eq!(again.count(), 3, "{said:?}");
    assert_eq!(
        case.authority.report().token_requests("authorization_code"),
        1
    );
}

#[tokio::test]
async fn without_a_browser_the_page_is_shown_instead() {
    let case = Case {
        person: Tester::new(Habit::HasNone),
        ..Case::new(AuthoritySettings::default())
    };
    let got = case.log_in().await.unwrap();
    assert!(case.authority.is_valid(got.tokens.access.expose()));
    let shown = case.person.shown.lock().unwrap().clone();
    assert_eq!(shown, *case.person.opened.lock().unwrap());
    let said = case.person.said.lock().unwrap().clone();
    assert!(said.contains(&LoginProgress::NoBrowser("no browser here".to_owned())));
}

#[tokio::test]
async fn a_code_on_another_device_needs_no_browser() {
    let settings = AuthoritySettings {
        device_interval: 1,
        ..AuthoritySettings::default()
    };
    let case = Case {
        way: LoginMethod::Device,
        ..Case::new(settings)
    };
    let got = case.log_in().await.unwrap();
    assert_eq!(case.refusal(Some(&got.tokens.access)).await.0, 200);
    assert_eq!(case.person.devices.lock().unwrap().len(), 1);
    assert!(case.person.opened.lock().unwrap().is_empty());
    assert_eq!(got.client.redirect_uri, None);
}

#[tokio::test]
async fn a_client_logs_in_for_itself() {
    let settings = AuthoritySettings {
        clients: vec![known("machine")],
        ..AuthoritySettings::default()
    };
    let mut case = Case {
        way: LoginMethod::ClientCredentials,
        ..Case::new(settings)
    };
    let nobody = case.log_in().await.unwrap_err();
    assert!(
        matches!(nobody.fault, LoginFault::NoCredentials),
        "{nobody:?}"
    );
    case.spec.client_id = Some("machine".to_owned());
    case.secret = Some(Secret::new(format!("{CANARY}-secret")));
    let got = case.log_in().await.unwrap();
    assert_eq!(case.refusal(Some(&got.tokens.access)).await.0, 200);
    assert!(!got.requested.contains(&"offline_access".to_owned()));
    assert_eq!(case.authority.report().registrations, 0);
    assert!(case.person.opened.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_document_is_our_name_where_it_is_taken() {
    let address = "https://toolway.example/client.json";
    let redirect_uri = "http://localhost/callback";
    let mut settings = AuthoritySettings::default();
    settings.known_documents.insert(
        address.to_owned(),
        serde_json::json!({"client_id": address, "redirect_uris": [redirect_uri]}),
    );
    let case = Case {
        document: Some(ClientDocument {
            url: Url::parse(address).unwrap(),
            redirect_uri: redirect_uri.to_owned(),
        }),
        ..Case::new(settings)
    };
    let got = case.log_in().await.unwrap();
    assert_eq!(got.client.client_id, address);
    assert_eq!(case.authority.report().registrations, 0);
}

#[tokio::test]
async fn a_token_is_bound_to_a_key_where_the_server_asks_for_it() {
    let settings = AuthoritySettings {
        dpop: DpopMode::RequiredWithNonce,
        ..AuthoritySettings::default()
    };
    let case = Case {
        wants_dpop: true,
        ..Case::new(settings)
    };
    let got = case.log_in().await.unwrap();
    assert_eq!(got.tokens.kind, TokenKind::Dpop);
    let asked = case.authority.seen_at(RequestedParty::Issuer, "/authorize");
    let thumbprint = got.dpop.unwrap().thumbprint();
    assert_eq!(param(&asked, "dpop_jkt"), Some(thumbprint.as_str()));
}

#[tokio::test]
async fn rel_26_two_logins_for_one_server_are_one_window() {
    let case = Case {
        person: Tester::new(Habit::Sleeps),
        ..Case::new(AuthoritySettings::default())
    };
    let first = case.log_in();
    let second = async {
        while case.person.opened.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        case.log_in().await
    };
    let refused = tokio::select! {
        _ = first => panic!("nobody logged in"),
        refused = second => refused.unwrap_err(),
    };
    assert!(
        matches!(
            refused.fault,
            LoginFault::Spent(LoginAttemptError::UnderWay)
        ),
        "{refused:?}"
    );
    assert_eq!(
        refused.to_string(),
        "cannot log in to `notes`: a login for this server is under way"
    );
    assert_eq!(case.person.opened.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn logging_out_gives_both_tokens_back() {
    let case = Case::new(AuthoritySettings::default());
    let got = case.log_in().await.unwrap();
    let client = got.client.client(None);
    let endpoint = got.revocation_endpoint.unwrap();
    let revocation = Revocation {
        endpoint: &endpoint,
        issuer: &got.issuer,
        client: &client,
    };
    let web = case.web().await;
    revocation.send(&web, &got.tokens).await.unwrap();
    let hints: Vec<String> = case
        .authority
        .seen_at(RequestedParty::Issuer, "/revoke")
        .iter()
        .filter_map(|seen| seen.param("token_type_hint").map(str::to_owned))
        .collect();
    assert_eq!(hints, ["refresh_token", "access_token"]);
    assert!(case.authority.valid_access_tokens().is_empty());
    assert!(case.authority.valid_refresh_tokens().is_empty());
}

#[tokio::test]
async fn sec_19_a_configured_secret_stays_with_the_server_it_was_first_used_at() {
    let settings = AuthoritySettings {
        clients: vec![known("mine")],
        ..AuthoritySettings::default()
    };
    let mut case = Case::new(settings);
    case.spec.client_id = Some("mine".to_owned());
    case.secret = Some(Secret::new(format!("{CANARY}-secret")));
    case.log_in().await.unwrap();
    case.authority.turn_on(Switch::Migrated);
    for way in [LoginMethod::Browser, LoginMethod::ClientCredentials] {
        case.way = way;
        let refused = case.log_in().await.unwrap_err();
        assert!(
            matches!(refused.fault, LoginFault::Moved { .. }),
            "{way:?} {refused:?}"
        );
        let said = refused.to_string();
        assert!(said.contains(case.authority.attacker()), "{said}");
        assert!(!holds_secret(&said));
    }
    assert_eq!(case.authority.stolen(), None);
    assert_eq!(case.person.opened.lock().unwrap().len(), 1);
    // The user may say that it is right.
    let place = format!(
        "{}/.well-known/oauth-authorization-server",
        case.authority.attacker()
    );
    case.spec.auth_server_metadata_url = Some(Url::parse(&place).unwrap());
    let tried = case.log_in().await;
    assert!(
        !matches!(&tried, Err(error) if matches!(error.fault, LoginFault::Moved { .. })),
        "{tried:?}"
    );
}

#[tokio::test]
async fn sec_19_two_servers_may_have_clients_of_one_name() {
    let machine = || {
        let settings = AuthoritySettings {
            clients: vec![known("machine")],
            ..AuthoritySettings::default()
        };
        let mut case = Case::new(settings);
        case.way = LoginMethod::ClientCredentials;
        case.spec.client_id = Some("machine".to_owned());
        case.secret = Some(Secret::new(format!("{CANARY}-secret")));
        case
    };
    let first = machine();
    first.log_in().await.unwrap();
    let mut second = machine();
    second.logins = first.logins.clone();
    let got = second.log_in().await.unwrap();
    assert_eq!(got.issuer, second.authority.issuer());
}

#[tokio::test]
async fn a_wider_login_registers_for_its_scopes() {
    let case = Case::new(AuthoritySettings::default());
    let narrow = ["read".to_owned()];
    case.log_in_for(Some(&narrow)).await.unwrap();
    let wide = ["read".to_owned(), "write".to_owned()];
    let got = case.log_in_for(Some(&wide)).await.unwrap();
    assert_eq!(got.client.scopes, wide);
    case.log_in_for(Some(&narrow)).await.unwrap();
    assert_eq!(case.authority.report().registrations, 2);
}

#[tokio::test]
async fn a_registration_that_the_server_forgot_is_made_anew() {
    let case = Case::new(AuthoritySettings::default());
    let first = case.log_in().await.unwrap();
    // Another server at the same address would know nothing: as good as a client it never gave.
    let forgotten = RegisteredClient {
        client_secret: Some(Secret::new(format!("{CANARY}-wrong"))),
        auth_method: AuthMethod::ClientSecretPost,
        ..first.client.clone()
    };
    case.logins
        .save_client(&first.issuer, &forgotten)
        .await
        .unwrap();
    let refused = case.log_in().await.unwrap_err();
    assert!(
        matches!(&refused.fault, LoginFault::Token(error) if error.is_refusal("invalid_client")),
        "{refused:?}"
    );
    assert_eq!(case.logins.client(&first.issuer).await.unwrap(), None);
    case.log_in().await.unwrap();
    assert_eq!(case.authority.report().registrations, 2);
}

#[tokio::test]
async fn a_client_that_is_not_recognised_in_one_way_is_in_the_other() {
    for method in ["client_secret_basic", "client_secret_post"] {
        let settings = AuthoritySettings {
            clients: vec![KnownClient {
                method: Some(method.to_owned()),
                ..known("mine")
            }],
            ..AuthoritySettings::default()
        };
        let mut case = Case::new(settings);
        case.spec.client_id = Some("mine".to_owned());
        case.secret = Some(Secret::new(format!("{CANARY}-secret")));
        let got = case.log_in().await.unwrap();
        assert_eq!(got.client.auth_method.as_str(), method);
        // A wrong secret is tried in both ways, and what is said to the first counts.
        let before = case
            .authority
            .seen_at(RequestedParty::Issuer, "/token")
            .len();
        case.secret = Some(Secret::new(format!("{CANARY}-wrong")));
        case.way = LoginMethod::ClientCredentials;
        let refused = case.log_in().await.unwrap_err();
        assert!(refused.is_configured);
        assert!(!holds_secret(&format!("{refused} {refused:?}")));
        let after = case
            .authority
            .seen_at(RequestedParty::Issuer, "/token")
            .len();
        assert_eq!(after - before, 2);
    }
}

#[tokio::test]
async fn only_a_login_without_an_answer_makes_a_registration_suspect() {
    let case = Case::new(AuthoritySettings::default());
    let first = case.log_in().await.unwrap();
    let suspect = async || {
        let kept = case.logins.client(&first.issuer).await.unwrap();
        kept.unwrap().history.is_unanswered
    };
    assert!(!suspect().await);
    case.authority.turn_on(Switch::AuthorizationDenied);
    case.log_in().await.unwrap_err();
    assert!(!suspect().await, "a no is an answer");
    case.authority.set(&[]);
    let asleep = Case {
        person: Tester::new(Habit::Sleeps),
        ..case
    };
    {
        let login = std::pin::pin!(asleep.log_in());
        let sent = async {
            while asleep.person.opened.lock().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            _ = login => panic!("nobody came back"),
            () = sent => {}
        }
    }
    let kept = asleep.logins.client(&first.issuer).await.unwrap().unwrap();
    assert!(kept.history.is_unanswered);
    let awake = Case {
        person: Tester::new(Habit::Browses),
        ..asleep
    };
    let got = awake.log_in().await.unwrap();
    assert_ne!(got.client.client_id, first.client.client_id);
    let said = awake.person.said.lock().unwrap().clone();
    assert!(said.contains(&LoginProgress::RegisteringAnew), "{said:?}");
}
