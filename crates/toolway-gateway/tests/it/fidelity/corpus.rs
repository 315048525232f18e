//! The calls: what no serialiser of ours would write, and whatever a server can rightly answer.
//!
//! Everything is text: nothing here may be rounded or sorted before it is on the wire.

use serde_json::json;

/// One call, by what it has the server answer.
pub(super) enum Asked {
    /// A tool answers with this result.
    Result(String),
    /// A tool answers with this error.
    Error(String),
    /// A tool gets these arguments, and answers with what it got.
    Arguments(String),
    /// A tool answers with a text of so many bytes.
    Huge(usize),
    /// A resource is read as this result.
    Read(String),
    /// A prompt is this result.
    Prompt(String),
}

/// The largest arguments that are sent.
const ARGUMENTS: usize = 4 << 20;

/// The largest body that is sent over HTTP.
const HTTP_BODY: usize = 4 << 20;

impl Asked {
    /// The method and the parameters of the request; tools and prompts have this prefix.
    pub(super) fn request(&self, prefix: &str) -> (&'static str, String) {
        let verbatim = |member: &str, text: &str| {
            let text = json!(text);
            format!(r#"{{"name":"{prefix}verbatim","arguments":{{"{member}":{text}}}}}"#)
        };
        match self {
            Self::Result(text) => ("tools/call", verbatim("result", text)),
            Self::Error(text) => ("tools/call", verbatim("error", text)),
            Self::Arguments(text) => (
                "tools/call",
                format!(r#"{{"name":"{prefix}mirror","arguments":{text}}}"#),
            ),
            Self::Huge(bytes) => (
                "tools/call",
                format!(r#"{{"name":"{prefix}huge","arguments":{{"bytes":{bytes}}}}}"#),
            ),
            Self::Read(text) => {
                let hex = text.bytes().map(|byte| format!("{byte:02x}"));
                let hex = hex.collect::<Vec<_>>().concat();
                ("resources/read", format!(r#"{{"uri":"s:verbatim/{hex}"}}"#))
            }
            Self::Prompt(text) => ("prompts/get", verbatim("result", text)),
        }
    }

    /// Whether it is refused on its way: two readers could read it differently, it nests deeper
    /// than 64 levels, or arguments are larger than may be sent.
    pub(super) fn is_refused(&self) -> bool {
        let deep = "[".repeat(64);
        match self {
            Self::Arguments(text) => {
                text.contains("1e400")
                    || text.contains(r#"\ud800""#)
                    || text.contains(&deep)
                    || text.len() > ARGUMENTS
            }
            Self::Result(text) => text.contains(&deep),
            _ => false,
        }
    }

    pub(super) fn is_too_large_for_http(&self) -> bool {
        self.request("").1.len() > HTTP_BODY - 1024
    }
}

/// Strings as they can stand in JSON.
const STRINGS: [&str; 20] = [
    r#""""#,
    r#""plain""#,
    r#""\"\\\/\b\f\n\r\t""#,
    r#""A😀é""#,
    r#""\u0041\ud83d\ude00\u00E9""#,
    r#""\u0000\u0001\u001f\u007f""#,
    "\"\u{7f}\u{80}\u{9f}\"",
    "\"\u{feff}\u{200b}\u{2060}\"",
    "\"\u{202e}gnp.exe\u{2066}\"",
    "\"\u{2028}\u{2029}\"",
    "\"\u{e0041}\u{10ffff}\u{fffd}\"",
    "\"e\u{301}\u{0323} \u{1e69} ſ\"",
    r#""\u001b[2J\u001b]0;owned\u0007""#,
    r#""</script><!-- {{x}} ${y} %s -->""#,
    r#""data: x\n\ndata: y\r\n\r\n""#,
    r#""\ud800""#,
    r#""jsonrpc","id","result""#,
    r#""{\"jsonrpc\":\"2.0\",\"id\":1}""#,
    r#""p.AAAA""#,
    r#""  leading and trailing  ""#,
];

/// Numbers as they can stand in JSON.
const NUMBERS: [&str; 22] = [
    "42",
    "-7",
    "0.1",
    "3.141592653589793",
    "0",
    "-0",
    "-0.0",
    "1.0",
    "1.10",
    "1e2",
    "1E+2",
    "1e-0",
    "9007199254740993",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775809",
    "123456789012345678901234567890123456789",
    "3.14159265358979323846264338327950288",
    "1e308",
    "1e400",
    "-1e-400",
    "0.30000000000000004",
];

/// Blocks of content, of all kinds and of none.
const BLOCKS: [&str; 30] = [
    r#"{"type":"text","text":"hello"}"#,
    r#"{"text":"the other order","type":"text"}"#,
    r#"{ "type" : "text" , "text" : "spaces" }"#,
    r#"{"type":"text","text":"x","annotations":{"audience":["user","assistant"],"priority":0.5,"lastModified":"2025-01-12T15:00:58Z"}}"#,
    r#"{"type":"text","text":"x","_meta":{"a":{"b":[1,2.50]}}}"#,
    r#"{"type":"text","text":"x","unknown":{"deep":[null,true]},"more":1e2}"#,
    r#"{"type":"text"}"#,
    r#"{"type":"text","text":5}"#,
    r#"{"type":"text","text":null}"#,
    r#"{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}"#,
    r#"{"type":"image","data":"not base64!","mimeType":"image/png"}"#,
    r#"{"type":"image","data":"","mimeType":"image/svg+xml","annotations":{"priority":1}}"#,
    r#"{"type":"audio","data":"UklGRg==","mimeType":"audio/wav"}"#,
    r#"{"type":"audio","data":"UklGRg==","mimeType":"audio/x-nobody-knows","_meta":{}}"#,
    r#"{"type":"resource_link","uri":"file:///a b/c","name":"c"}"#,
    r#"{"type":"resource_link","uri":"shared:one","name":"one","title":"One","description":"the first","mimeType":"text/plain","size":12,"icons":[{"src":"https://x.example/i.png","sizes":["48x48"]}],"annotations":{},"_meta":{"x":1}}"#,
    r#"{"type":"resource_link","uri":"not a uri","name":""}"#,
    r#"{"type":"resource","resource":{"uri":"s:own","text":"inside"}}"#,
    r#"{"type":"resource","resource":{"uri":"s:own","mimeType":"application/octet-stream","blob":"AAECAw=="}}"#,
    r#"{"type":"resource","resource":{"uri":"s:own","blob":"%%%","_meta":{"y":[]},"extra":true},"annotations":{"audience":[]}}"#,
    r#"{"type":"resource","resource":null}"#,
    r#"{"type":"tool_use","id":"1","name":"t","input":{"x":1.0}}"#,
    r#"{"type":"tool_result","toolUseId":"1","content":[],"isError":false}"#,
    r#"{"type":"hologram","data":[1,2,3]}"#,
    r#"{"type":"Text","text":"the wrong case"}"#,
    r#"{"type":null}"#,
    r#"{"type":17,"text":"x"}"#,
    "{}",
    "null",
    r#""a string""#,
];

/// Structured content of every type.
const STRUCTURED: [&str; 16] = [
    "null",
    "true",
    "false",
    "0",
    r#""text""#,
    "[]",
    "{}",
    "[[],{},[{}]]",
    r#"{"":"an empty name"}"#,
    r#"{"a":1,"a":2}"#,
    r#"{"b":1,"a":2,"c":{"z":1,"y":2}}"#,
    r#"{"content":[],"isError":true,"_meta":{}}"#,
    r#"{"resultType":"input_required","requestState":"x"}"#,
    r#"{"x":null,"y":[null]}"#,
    r#"[1,"two",3.0,null,{"four":4}]"#,
    r#"{"__proto__":{"polluted":true},"constructor":1}"#,
];

/// Whole results.
const RESULTS: [&str; 26] = [
    r#"{"content":[]}"#,
    r#"{ "content" : [ ] }"#,
    r#"{"content":[],"isError":true}"#,
    r#"{"content":[],"isError":false}"#,
    r#"{"content":[],"isError":null}"#,
    r#"{"isError":true,"content":[{"type":"text","text":"it failed"}]}"#,
    r#"{"content":[{"type":"text","text":"it failed"}],"isError":true,"structuredContent":{"code":7}}"#,
    r#"{"content":[],"_meta":{}}"#,
    r#"{"content":[],"_meta":{"com.example/x":{"y":[1.0,2e0]},"traceparent":"00"}}"#,
    r#"{"content":[],"_meta":null}"#,
    r#"{"content":[],"_meta":{"progressToken":5,"io.modelcontextprotocol/serverInfo":{"name":"x"}}}"#,
    r#"{"content":[],"unknown":1,"more":{"than":["was","known"]}}"#,
    r#"{"unknown":"first","content":[]}"#,
    r#"{"content":[],"nextCursor":"c"}"#,
    r#"{"content":[],"id":7,"jsonrpc":"1.0","result":{},"error":{}}"#,
    r#"{"content":[],"tools":[],"taskId":"t"}"#,
    r#"{"content":[],"task":5}"#,
    r#"{"\u0063ontent":[],"contents":[]}"#,
    r#"{"content":[],"":""}"#,
    r#"{"content":[],"requestState":"s","inputRequests":{}}"#,
    r#"{"content":[[]]}"#,
    r#"{"content":[null,null]}"#,
    r#"{"structuredContent":{"alone":true}}"#,
    r#"{"content":[],"structuredContent":{"a":1},"isError":false,"_meta":{"z":0}}"#,
    r#"{"content":[],"cost":0.10}"#,
    "{}",
];

/// Errors.
const ERRORS: [&str; 14] = [
    r#"{"code":-32000,"message":"no data"}"#,
    r#"{"code":-32001,"message":"data","data":{"why":["this","that"],"n":1.0}}"#,
    r#"{"code":-32002,"message":"not found","data":{"uri":"s:x"}}"#,
    r#"{"code":-32603,"message":"","data":[null]}"#,
    r#"{"code":-32602,"message":"m","data":"text"}"#,
    r#"{"code":-32602,"message":"m","data":[1e400,123456789012345678901234567890]}"#,
    r#"{"code":-32601,"message":"unknown tool","data":{}}"#,
    r#"{"code":1,"message":"positive","data":false}"#,
    r#"{"code":-2147483648,"message":"small"}"#,
    r#"{"code":429,"message":"slow down","data":{"retryAfter":1.50}}"#,
    r#"{"data":{"order":"first"},"message":"last","code":-32050}"#,
    r#"{"code":-32021,"message":"a capability","data":{"requiredCapabilities":{"sampling":{}}}}"#,
    r#"{"code":-32099,"message":"tab\there 😀 \u202e"}"#,
    r#"{"code":-32010,"message":"x","data":{"a":1,"a":2}}"#,
];

/// Every call, with a word on what it is about.
pub(super) fn corpus() -> Vec<(String, Asked)> {
    let mut all = Vec::new();
    let mut add = |what: String, asked: Asked| all.push((what, asked));
    let result = |text: &str| Asked::Result(text.to_owned());
    for text in RESULTS {
        add(format!("the result {text}"), result(text));
    }
    for text in ERRORS {
        add(format!("the error {text}"), Asked::Error(text.to_owned()));
    }
    for block in BLOCKS {
        add(
            format!("the block {block}"),
            result(&format!(r#"{{"content":[{block}]}}"#)),
        );
    }
    for block in &BLOCKS[..12] {
        add(
            format!("the argument {block}"),
            Asked::Arguments(format!(r#"{{"block":{block},"_meta":{{"own":1.0}}}}"#)),
        );
    }
    let every_block = BLOCKS.join(",");
    add(
        "every block".to_owned(),
        result(&format!(r#"{{"content":[{every_block}]}}"#)),
    );
    for structured in STRUCTURED {
        add(
            format!("the structured content {structured}"),
            result(&format!(
                r#"{{"content":[],"structuredContent":{structured}}}"#
            )),
        );
    }
    for string in STRINGS {
        // Some hold more than one.
        let first = string.split("\",\"").next().unwrap();
        let first = if first.len() == string.len() {
            first.to_owned()
        } else {
            format!("{first}\"")
        };
        add(
            format!("the string {string}"),
            result(&format!(
                r#"{{"content":[{{"type":"text","text":{first}}}],"structuredContent":{{"x":[{string}],{first}:1}},"_meta":{{"m":[{string}]}},"k":{first}}}"#
            )),
        );
        add(
            format!("the argument {string}"),
            Asked::Arguments(format!(r#"{{"x":[{string}], {first} : {first}}}"#)),
        );
    }
    for number in NUMBERS {
        add(
            format!("the number {number}"),
            result(&format!(
                r#"{{"content":[{{"type":"text","text":"","n":{number}}}],"structuredContent":{{"n":[{number}]}},"_meta":{{"n":{number}}},"n":{number}}}"#
            )),
        );
        add(
            format!("the argument {number}"),
            Asked::Arguments(format!(r#"{{"n":{number},"all":[ {number} ]}}"#)),
        );
    }
    for structured in STRUCTURED.iter().filter(|it| **it != r#"{"a":1,"a":2}"#) {
        add(
            format!("the argument {structured}"),
            Asked::Arguments(format!(r#"{{ "x" :{structured}}}"#)),
        );
    }
    for (what, contents) in [
        ("nothing", String::new()),
        ("text", r#"{"uri":"s:own","text":"x"}"#.to_owned()),
        (
            "a blob",
            r#"{"uri":"s:own","blob":"AAEC","mimeType":"a/b"}"#.to_owned(),
        ),
        (
            "more",
            r#"{"uri":"s:own","text":"","_meta":{"n":1.0},"size":1e400,"x":null}"#.to_owned(),
        ),
        (
            "two",
            r#"{"uri":"a:b","text":"1"}, {"uri":"c:d","text":"2"}"#.to_owned(),
        ),
    ] {
        add(
            format!("a resource with {what}"),
            Asked::Read(format!(
                r#"{{"contents":[{contents}],"_meta":{{"r":0.10}}}}"#
            )),
        );
    }
    for (what, messages) in [
        ("nothing", String::new()),
        ("text", r#"{"role":"user","content":{"type":"text","text":"x"}}"#.to_owned()),
        ("an image", r#"{"role":"assistant","content":{"type":"image","data":"AA==","mimeType":"image/png"}}"#.to_owned()),
        ("what nobody knows", r#"{"role":"narrator","content":[{"type":"dance"}],"n":1e400}"#.to_owned()),
    ] {
        add(
            format!("a prompt with {what}"),
            Asked::Prompt(format!(r#"{{"description":"d","messages":[{messages}],"more":[1.0]}}"#)),
        );
    }
    all.extend(large());
    all
}

/// Few, and large.
fn large() -> Vec<(String, Asked)> {
    let deep = 100;
    let nested = format!("{}{}", "[".repeat(deep), "]".repeat(deep));
    let blocks = vec![BLOCKS[0]; 10_000].join(",");
    let megabytes = |count: usize| "0123456789abcde ".repeat(count * (1 << 16));
    vec![
        (
            "a deep result".to_owned(),
            Asked::Result(format!(
                r#"{{"content":[],"structuredContent":{{"deep":{nested}}}}}"#
            )),
        ),
        (
            "deep arguments".to_owned(),
            Asked::Arguments(format!(r#"{{"deep":{nested}}}"#)),
        ),
        (
            "ten thousand blocks".to_owned(),
            Asked::Result(format!(r#"{{"content":[{blocks}]}}"#)),
        ),
        (
            "three megabytes of arguments".to_owned(),
            Asked::Arguments(format!(r#"{{"x":"{}"}}"#, megabytes(3))),
        ),
        (
            "ten megabytes of arguments".to_owned(),
            Asked::Arguments(format!(r#"{{"x":"{}"}}"#, megabytes(10))),
        ),
        (
            "ten megabytes of a result".to_owned(),
            Asked::Huge(10 << 20),
        ),
    ]
}
