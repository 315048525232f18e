//! The examples of RFC 6570, section by section, and what servers really send.

use super::*;

fn values() -> TemplateValues {
    let one = |text: &str| vec![text.to_owned()];
    let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    TemplateValues::from([
        ("var".into(), one("value")),
        ("hello".into(), one("Hello World!")),
        ("half".into(), one("50%")),
        ("path".into(), one("/foo/bar")),
        ("base".into(), one("http://example.com/home/")),
        ("who".into(), one("fred")),
        ("v".into(), one("6")),
        ("x".into(), one("1024")),
        ("y".into(), one("768")),
        ("empty".into(), one("")),
        ("list".into(), list(&["red", "green", "blue"])),
    ])
}

fn expand(template: &str) -> String {
    UriTemplate::parse(template).unwrap().expand(&values())
}

#[test]
fn every_operator_expands_as_the_rfc_has_it() {
    for (template, expected) in [
        // 3.2.2 and 3.2.3
        ("{var}", "value"),
        ("{hello}", "Hello%20World%21"),
        ("{half}", "50%25"),
        ("O{empty}X", "OX"),
        ("O{undef}X", "OX"),
        ("{x,hello,y}", "1024,Hello%20World%21,768"),
        ("?{x,undef}", "?1024"),
        ("{var:3}", "val"),
        ("{var:30}", "value"),
        ("{list}", "red,green,blue"),
        ("{list*}", "red,green,blue"),
        ("{+var}", "value"),
        ("{+hello}", "Hello%20World!"),
        ("{+half}", "50%25"),
        ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"),
        ("{+base}index", "http://example.com/home/index"),
        ("up{+path}{var}/here", "up/foo/barvalue/here"),
        ("{+path:6}/here", "/foo/b/here"),
        // 3.2.4 to 3.2.9
        ("{#path,x}/here", "#/foo/bar,1024/here"),
        ("X{.x,y}", "X.1024.768"),
        ("www{.list*}", "www.red.green.blue"),
        ("{/var,x}/here", "/value/1024/here"),
        ("{/list*}", "/red/green/blue"),
        ("{/list}", "/red,green,blue"),
        ("{;x,y,empty}", ";x=1024;y=768;empty"),
        ("{;v,undef,who}", ";v=6;who=fred"),
        ("{?x,y,empty}", "?x=1024&y=768&empty="),
        ("{?list}", "?list=red,green,blue"),
        ("{?list*}", "?list=red&list=green&list=blue"),
        ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
        ("{?undef}", ""),
        // Literals are escaped as well, and only once.
        ("a b/%20/{var}", "a%20b/%20/value"),
    ] {
        assert_eq!(expand(template), expected, "{template}");
    }
}

#[test]
fn what_is_no_template_says_why() {
    for (text, problem) in [
        ("a{", "a `{` without its `}`"),
        ("a}b", "a `}` without its `{`"),
        ("{}", "`` is no name of a variable"),
        ("{a b}", "`a b` is no name of a variable"),
        ("{a:0}", "`a:0` has no usable length"),
        ("{!a}", "`!a` is no name of a variable"),
    ] {
        assert_eq!(
            UriTemplate::parse(text).unwrap_err().problem,
            problem,
            "{text}"
        );
    }
    assert!(UriTemplate::parse(&"{a}".repeat(1_000)).is_err());
}

#[test]
fn variables_are_named_once_and_those_of_a_query_may_be_left_out() {
    let template = UriTemplate::parse("db://{host}/{table}{?limit,host}").unwrap();
    assert_eq!(template.variables(), ["host", "table", "limit"]);
    assert_eq!(template.required(), ["host", "table"]);
}

#[test]
fn a_uri_is_told_from_one_of_another_family() {
    let could_be = |template: &str, uri: &str| UriTemplate::parse(template).unwrap().could_be(uri);
    let dynamic = "demo://resource/dynamic/text/{resourceId}";
    assert!(could_be(dynamic, "demo://resource/dynamic/text/1"));
    assert!(!could_be(dynamic, "demo://resource/dynamic/text/"));
    assert!(!could_be(dynamic, "demo://resource/dynamic/text/1/2"));
    assert!(!could_be(dynamic, "demo://resource/dynamic/blob/1"));
    assert!(could_be("file:///{+path}", "file:///a/b"));
    assert!(could_be("a://{x}-{y}.md", "a://1-2-3.md"));
    assert!(could_be("a://b{?q}", "a://b"));
    assert!(could_be("a://b{?q}", "a://b?q=1"));
    assert!(!could_be("a://b{?q}", "a://bc"));
    // Many ways to split it, none of which fits: it ends all the same.
    let many = format!("{}!", "{+a}x".repeat(30));
    assert!(!could_be(&many, &"x".repeat(200)));
}
