//! Rules that are written for a person, and the word on pins.

use serde_json::json;

use super::*;

fn server(name: &str) -> ServerName {
    ServerName::new(name).unwrap()
}

#[test]
fn sec_31_a_rule_for_a_tool_allows_that_tool_and_no_other() {
    for (of, tool) in [
        ("git", "push"),
        ("my server", "Get.Item"),
        ("git", "a*"),
        ("git", "a(b)"),
        ("a", "b__c"),
        ("a__b", "c"),
        ("git", &"long".repeat(40)),
    ] {
        let rule = rule_for_tool(&key(of, tool)).unwrap();
        assert!(allows(&rule, of, tool), "{rule}");
        for (other, another) in [
            ("git", "push2"),
            ("my_server", "Get_Item"),
            ("git", "abc"),
            ("git", "a"),
            ("a", "b"),
            ("b", "c"),
        ] {
            assert!(!allows(&rule, other, another), "{rule}: {other} {another}");
        }
    }
    assert!(!allows(
        &rule_for_tool(&key("a", "b__c")).unwrap(),
        "a__b",
        "c"
    ));
}

#[test]
fn sec_31_a_rule_for_a_server_is_written_only_where_it_is_read_back_as_that_server() {
    for name in ["git", "my server", "io.github.acme"] {
        let rule = rule_for_server(&server(name)).unwrap();
        assert!(allows(&rule, name, "anything"), "{rule}");
        assert!(!allows(&rule, &format!("{name}2"), "anything"), "{rule}");
    }
    // It would be read as tool `b` of server `a`.
    assert_eq!(rule_for_server(&server("a__b")), None);
    for odd in ["a*", "a(b)", "a)"] {
        if let Ok(name) = ServerName::new(odd) {
            assert_eq!(rule_for_server(&name), None, "{odd}");
        }
    }
}

#[test]
fn sec_33_the_highest_scope_decides_what_a_change_leads_to() {
    let layer = |word: &str, scope| {
        let (read, found) = Permissions::parse(&json!({ "pins": word }), &here(), scope);
        assert_eq!(found, []);
        read
    };
    assert_eq!(Permissions::empty().pins(), PinPolicy::Ask);
    let (user, managed) = (layer("off", Scope::User), layer("ask", Scope::Managed));
    assert_eq!(user.pins(), PinPolicy::Off);
    for layers in [
        vec![user.clone(), managed.clone()],
        vec![managed, user.clone()],
    ] {
        assert_eq!(Permissions::merged(layers).pins(), PinPolicy::Ask);
    }
    let layers = vec![user.clone(), layer("warn", Scope::Local)];
    assert_eq!(Permissions::merged(layers).pins(), PinPolicy::Warn);
    // A file that is not approved can only restrict.
    assert_eq!(user.clone().narrowing_only().pins(), PinPolicy::Ask);
    let layers = vec![user, layer("ask", Scope::Local).narrowing_only()];
    assert_eq!(Permissions::merged(layers).pins(), PinPolicy::Ask);
}

#[test]
fn a_word_on_pins_that_cannot_be_read_asks() {
    let (read, found) = errors(&json!({ "pins": "of" }), Scope::User);
    assert_eq!(read.pins(), PinPolicy::Ask);
    assert_eq!(
        found,
        ["`permissions.pins` cannot be \"of\"; a change asks"]
    );
}
