//! Every row is read as it was written, byte for byte, with and without what may be absent.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::*;

/// Reads each text as a row and expects the same text when the row is written.
fn same<T: Serialize + DeserializeOwned>(texts: &[&str]) {
    for text in texts {
        let row: T = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(serde_json::to_string(&row).unwrap(), *text);
    }
}

const LOGIN: &str = r#"{"account":"work","issuer":"https://a.example","scopes":["read"],"expiresAt":null,"renews":true,"how":"code","keptIn":"keychain","inUse":true}"#;
const SOURCE: &str = r#"{"path":"/p/.mcp.json","line":3}"#;
const TOOL: &str = r#"{"name":"mcp__s__t","server":"s","tool":"t","title":null,"description":"","inputSchema":{ "type" : "object" },"outputSchema":null,"annotations":null,"deferred":false}"#;
const RESOURCE: &str = r#"{"uri":"file:///a","server":"s","name":"a","title":null,"description":"","mimeType":"text/plain","size":7}"#;
const TEMPLATE: &str = r#"{"uriTemplate":"file:///{x}","server":"s","name":"a","title":"A","description":"","mimeType":null,"variables":["x"]}"#;
const PROMPT: &str = r#"{"name":"mcp__s__p","server":"s","prompt":"p","title":null,"description":"d","arguments":[{"name":"x","title":null,"description":"","required":true}]}"#;
const HOOK: &str = r#"{"event":"PreToolUse","matcher":"","runs":"check","timeoutSeconds":1.5,"source":{"path":"f","line":1}}"#;
const DIAGNOSIS: &str = r#"{"severity":"error","server":"s","source":{"path":"f","line":1,"column":2},"message":"m","hint":null}"#;
const CALLER: &str = r#"{"id":"7","kind":"agent","principal":"owner","shown":"helper"}"#;
const JUDGMENT: &str =
    r#"{"server":"s","tool":"t","decision":"asked","rule":null,"source":null,"mode":"default"}"#;

fn server(more: &str) -> String {
    format!(
        r#"{{"name":"s","scope":"user","source":{SOURCE},"transport":"http","state":"connected","reason":null,"error":null,"era":"modern","protocolVersion":"2026-07-28","serverInfo":{{"name":"x","b":1,"a":2}},"tools":1,"resources":0,"prompts":null{more}}}"#
    )
}

#[test]
fn servers_and_their_entries() {
    let full = format!(
        r#","account":"work","login":"toolway login s","stderr":["no"],"secondsAgo":5,"logins":[{LOGIN}]"#
    );
    let (plain, full) = (server(""), server(&full));
    same::<ServerRow>(&[&plain, &full]);
    same::<ServerListing>(&[&format!(r#"{{"servers":[{plain},{full}]}}"#)]);
    same::<ServerPlace>(&[&format!(r#"{{"name":"s","source":{SOURCE}}}"#)]);
    let entry = |more: &str| {
        format!(
            r#"{{"name":"s","scope":"local","source":{SOURCE},"transport":null,"verdict":"refused","reason":"r","definition":{{"url":"u","args":[1]}}{more}}}"#
        )
    };
    let login = format!(r#","account":"work","login":{LOGIN}"#);
    same::<EntryRow>(&[&entry(""), &entry(&login)]);
    let shadow = format!(r#"{{"scope":"user","source":{SOURCE}}}"#);
    let explained = format!(
        r#"{{"scope":"project","source":{SOURCE},"transport":"stdio","verdict":"admitted","reason":null,"changed":null,"shadows":[{shadow}],"variables":["HOME"],"instructionsDropped":null,"definition":{{}},"diagnoses":[{DIAGNOSIS}]}}"#
    );
    same::<ShadowRow>(&[&shadow]);
    same::<ExplainedEntry>(&[&explained]);
    same::<Explanation>(&[
        &format!(r#"{{"name":"s","entries":[{explained}],"hooks":null}}"#),
        &format!(r#"{{"name":"s","entries":[],"hooks":[{HOOK}]}}"#),
    ]);
}

#[test]
fn tools_with_schemas_as_they_were_written() {
    let long = TOOL.replace("false}", r#"false,"signature":"t(a)"}"#);
    let page = r#""arguments":[{"path":"a","type":"string","needed":true,"default":null,"limits":["1 to 9"],"description":null}],"oneOf":[["a"],["b"]],"returns":null,"permission":{judgment},"example":"toolway call s t""#;
    let page = &page.replace("{judgment}", JUDGMENT);
    let whole = long.replace(r#""t(a)"}"#, &format!(r#""t(a)",{page}}}"#));
    same::<ToolRow<'_>>(&[TOOL, &long, &whole]);
    same::<ToolPage>(&[&format!("{{{page}}}")]);
    let left_out = r#"{"server":"s","tool":"t","description":"","reason":"r"}"#;
    let asked = r#"{"server":"s","secondsAgo":9}"#;
    same::<LeftOutRow>(&[left_out]);
    same::<AskedRow>(&[asked]);
    same::<ToolListing<'_>>(&[
        r#"{"tools":[]}"#,
        &format!(r#"{{"tools":[{TOOL}],"leftOut":[{left_out}],"asked":[{asked}],"servers":[]}}"#),
    ]);
    let text = r#"{"server":"s","text":"use me"}"#;
    same::<InstructionsRow>(&[text]);
    same::<InstructionsListing>(&[&format!(r#"{{"instructions":[{text}]}}"#)]);
}

#[test]
fn what_else_servers_offer() {
    same::<ResourceRow>(&[RESOURCE]);
    same::<TemplateRow>(&[TEMPLATE]);
    same::<ResourceListing>(&[&format!(
        r#"{{"resources":[{RESOURCE}],"templates":[{TEMPLATE}]}}"#
    )]);
    same::<PromptRow>(&[PROMPT]);
    same::<PromptListing>(&[&format!(r#"{{"prompts":[{PROMPT}]}}"#)]);
    let skill = r#"{"name":"k","server":"s","uri":"skill://k","description":"d","files":null,"digests":false,"verified":null,"problem":"p"}"#;
    same::<SkillRow>(&[skill]);
    same::<SkillListing>(&[&format!(r#"{{"skills":[{skill}]}}"#)]);
    same::<SkillTextRow>(&[r#"{"name":"k","server":"s","uri":"skill://k","text":"t"}"#]);
}

#[test]
fn everything_in_one_document() {
    let exported = server(r#","normalizedName":"s","verdict":"admitted","definition":{"url":"u"}"#);
    same::<ExportedServer>(&[&exported]);
    let names = r#"{"servers":{"s":["s"]},"tools":{"mcp__s__t":{"server":"s","tool":"t"}},"prompts":{"mcp__s__p":{"server":"s","prompt":"p"}}}"#;
    same::<StateExport<'_>>(&[&format!(
        r#"{{"version":1,"servers":[{exported}],"tools":[{TOOL}],"resources":[{RESOURCE}],"templates":[{TEMPLATE}],"prompts":[{PROMPT}],"names":{names}}}"#
    )]);
}

fn call(progress: &str) -> String {
    format!(
        r#"{{"id":"3","server":"s","tool":"t","caller":{CALLER},"background":true,"stage":"running","milliseconds":5,"progress":{progress},"outcome":null}}"#
    )
}

/// A question; what differs from kind to kind is written out.
fn question(more: &str) -> String {
    format!(
        r#"{{"id":"4","kind":"permission","server":"s","tool":"t","call":null,"caller":{CALLER},"putTo":"owner","message":"m","choices":[{{"answer":"yes"}},{{"answer":"always-tool","rule":"mcp__s__t"}}],"askedAt":"t","expiresAt":null{more}}}"#
    )
}

const PERMISSION: &str = r#","client":"agent 2","name":"mcp__s__t","title":"T","arguments":{"b":1,"a":[2.5]},"destructive":true,"rule":"mcp__s","source":{"path":"f","line":1},"unheeded":{"rule":"r","source":{"path":"f","line":1},"entry":{"path":"g","line":2}},"hook":"h","classifier":"c","changed":["d"],"change":{"against":"permitted","lines":["d","e"]}"#;

#[test]
fn questions_calls_and_callers() {
    let form = r#","schema":{"type":"object","properties":{"z":{},"a":{}}}"#;
    let login = r#","url":"https://a.example/","code":"AB-12","has":["read"],"wants":["write"]"#;
    let questions = ["", PERMISSION, form, login].map(question);
    for question in &questions {
        same::<QuestionRow>(&[question]);
    }
    same::<QuestionListing>(&[&format!(r#"{{"questions":[{}]}}"#, questions.join(","))]);
    same::<ChangeRow>(&[r#"{"against":"namesake","lines":[]}"#]);
    same::<GivenAnswer>(&[
        r#"{"id":"7f","answer":"yes"}"#,
        r#"{"id":"7f","answer":"no","reason":"not now"}"#,
    ]);
    same::<ChoiceRow>(&[
        r#"{"answer":"no"}"#,
        r#"{"answer":"always-server","rule":"mcp__s"}"#,
    ]);
    let progress = r#"{"progress":0.5,"total":1.0,"message":null}"#;
    let calls = [call("null"), call(progress)];
    let ended = call("null").replace(r#""outcome":null"#, r#""outcome":"timed-out""#);
    same::<ProgressRow>(&[progress]);
    same::<CallRow>(&[&calls[0], &calls[1], &ended]);
    same::<CallListing>(&[&format!(r#"{{"calls":[{}]}}"#, calls.join(","))]);
    same::<CallerRow>(&[CALLER]);
    same::<CallerListing>(&[&format!(r#"{{"callers":[{CALLER}]}}"#)]);
}

#[test]
fn rules_and_what_they_decide() {
    let rule = format!(r#"{{"list":"allow","rule":"mcp__s","scope":"user","source":{SOURCE}}}"#);
    let classifier = format!(r#"{{"title":"c","source":{SOURCE},"decides":true}}"#);
    let unheeded =
        format!(r#"{{"rule":"mcp__s","source":{SOURCE},"server":"s","entry":{SOURCE}}}"#);
    same::<RuleRow>(&[&rule]);
    same::<ClassifierRow>(&[&classifier]);
    same::<UnheededRow>(&[&unheeded, &unheeded.replace(r#""server":"s","#, "")]);
    let listing = |classifier: &str| {
        format!(
            r#"{{"mode":"auto","bypassForbidden":false,"pins":"ask","classifier":{classifier},"rules":[{rule}],"remarks":[{DIAGNOSIS}],"unheeded":[{unheeded}]}}"#
        )
    };
    same::<RuleListing>(&[&listing("null"), &listing(&classifier)]);
    let more = format!(
        r#""mode":"default","unheeded":{},"nameIsKnown":false,"while":"needs-auth","otherwise":"asked"}}"#,
        unheeded.replace(r#""server":"s","#, "")
    );
    same::<JudgmentRow>(&[
        JUDGMENT,
        &JUDGMENT.replace(r#""mode":"default"}"#, &more),
        &JUDGMENT.replace(
            r#""rule":null,"source":null"#,
            &format!(r#""rule":"r","source":{SOURCE}"#),
        ),
    ]);
    let variable = format!(r#"{{"name":"A","state":"waiting","source":{SOURCE}}}"#);
    same::<VariableRow>(&[&variable]);
    same::<PolicyListing>(&[&format!(r#"{{"variables":[{variable}]}}"#)]);
}

#[test]
fn what_lies_in_the_vault() {
    let named = r#"{"kind":"named","name":"n","savedAt":"t","where":"keychain"}"#;
    let login = r#"{"kind":"login","server":"s","account":"a","issuer":"i","resource":"r","savedAt":"t","where":"file"}"#;
    same::<SecretRow>(&[named, login]);
    same::<SecretListing>(&[&format!(r#"{{"secrets":[{named},{login}]}}"#)]);
    same::<SavedSecret>(&[r#"{"name":"n","where":"keychain"}"#]);
    same::<RemovedSecrets>(&[r#"{"removed":2}"#]);
    same::<ExportedSecrets>(&[r#"{"file":"f","secrets":1,"sealed":true}"#]);
    same::<ImportedSecrets>(&[r#"{"imported":1}"#]);
}

#[test]
fn what_the_doctor_finds() {
    let check = r#"{"name":"clock","state":"ok","message":"m","hint":null}"#;
    let server = r#"{"name":"s","mode":"best-effort","shielded":true}"#;
    let on = format!(r#"{{"on":true,"protects":["p"],"hides":[],"gaps":[],"servers":[{server}]}}"#);
    let off = r#"{"on":false,"reason":"r","servers":[]}"#;
    let counts = r#"{"admitted":1,"pendingApproval":0,"refused":0,"rejected":0,"disabled":0,"shadowed":0,"invalid":2}"#;
    same::<CheckRow>(&[check]);
    same::<ShieldedRow>(&[server]);
    same::<ShieldRow>(&[&on, off]);
    same::<VerdictCounts>(&[counts]);
    same::<Checkup>(&[&format!(
        r#"{{"configHome":"/h","projectRoot":"/p","shield":{on},"servers":{counts},"hooks":[{HOOK}],"checks":[{check}],"diagnoses":[{DIAGNOSIS}]}}"#
    )]);
}

#[test]
fn other_clients() {
    let row = r#"{"client":"zed","scope":"user","path":"p","connected":["toolway"],"servers":2,"problem":null}"#;
    same::<ClientRow>(&[row]);
    same::<ClientListing>(&[&format!(r#"{{"clients":[{row}]}}"#)]);
}

#[test]
fn servers_of_other_clients() {
    let taken = format!(
        r#"{{"name":"s","client":"cursor","source":{SOURCE},"writer":"person","definition":{{"url":"u"}},"scope":"user","enabled":true,"notes":["n"],"dropped":["d"],"skipped":null}}"#
    );
    let skipped = taken.replace(r#""scope":"user""#, r#""scope":null"#);
    same::<ImportRow>(&[&taken, &skipped]);
    same::<ImportListing>(&[&format!(r#"{{"servers":[{taken}]}}"#)]);
}

#[test]
fn answers_as_they_were_received_and_as_models_get_them() {
    same::<ServerAnswer<'_>>(&[r#"{ "content": [ ], "x": 1.00 }"#]);
    same::<SelectedValues>(&[r#"[1,"a",{"b":null}]"#]);
    let text = r#"{"type":"text","text":"t"}"#;
    let image = r#"{"type":"image","data":"AAAA","mimeType":"image/png"}"#;
    let embedded = r#"{"uri":"file:///a","mimeType":"text/plain","text":"t"}"#;
    let resource = format!(r#"{{"type":"resource","resource":{embedded}}}"#);
    let link = r#"{"type":"resource_link","uri":"file:///a","name":"a"}"#;
    let described = r#"{"type":"resource_link","uri":"file:///a","name":"a","description":"d","mimeType":"text/plain"}"#;
    same::<EmbeddedText<'_>>(&[embedded, r#"{"uri":"file:///a","text":"t"}"#]);
    same::<BlockRow<'_>>(&[text, image, &resource, link, described]);
    same::<BoundedAnswer<'_>>(&[&format!(
        r#"{{"content":[{text},{image},{resource},{link}],"isError":false}}"#
    )]);
}

#[test]
fn events() {
    same::<EventRow>(&[
        r#"{"time":"2026-01-01T00:00:00.000Z","event":"state","server":"s","state":"pending","attempt":2,"error":"e","reason":null,"protocolVersion":null,"tools":null,"resources":null,"prompts":null}"#,
        r#"{"time":"t","event":"reload","started":["a"],"stopped":[],"replaced":["b"]}"#,
        r#"{"time":"t","event":"notice","server":"s","message":"m"}"#,
        r#"{"time":"t","event":"resource","server":"s","uri":"file:///a"}"#,
        r#"{"time":"t","event":"answered","question":"4","answer":"expired"}"#,
        &question(PERMISSION).replacen('{', r#"{"time":"t","event":"question","#, 1),
        &call("null").replacen('{', r#"{"time":"t","event":"call","#, 1),
    ]);
}

#[test]
fn findings_errors_and_hooks() {
    same::<SourceRow>(&[SOURCE, r#"{"path":"(program)","line":null}"#]);
    same::<DiagnosisRow>(&[
        DIAGNOSIS,
        r#"{"severity":"warning","server":null,"source":null,"message":"m","hint":"h"}"#,
    ]);
    same::<ErrorRow>(&[r#"{"exit":3,"error":"e","details":["d"],"hint":null}"#]);
    same::<HookRow>(&[HOOK]);
}

#[test]
fn logins() {
    let named = LOGIN.replace("true}", r#"true,"server":"s"}"#);
    same::<LoginRow>(&[LOGIN, &named]);
    same::<LoginListing>(&[&format!(r#"{{"logins":[{named}],"unreadable":["u"]}}"#)]);
    same::<AccountRow>(&[
        r#"{"provider":"p","issuer":"i","source":"f:1","loggedIn":false,"loggedInAt":null,"expiresAt":null,"renews":false,"scopes":[],"storage":"file","connectors":{"switchedOff":null,"known":0,"fetchedAt":null}}"#,
    ]);
    same::<IdentityRow>(&[
        r#"{"issuer":"i","clientId":"c","source":"f:1","loggedIn":true,"subject":"u","expiresAt":"t","renews":true,"storage":"keychain","servers":[{"name":"s","requiredBy":null}]}"#,
    ]);
}

#[test]
fn a_login_is_over_at_its_end_unless_it_renews_itself() {
    let mut login: LoginRow = serde_json::from_str(LOGIN).unwrap();
    login.expires_at = Some("2026-01-01T00:00:00.000Z".to_owned());
    assert!(!login.is_over("2026-01-01T00:00:00.001Z"));
    login.renews = false;
    assert!(login.is_over("2026-01-01T00:00:00.000Z"));
    assert!(!login.is_over("2025-12-31T23:59:59.999Z"));
}

#[test]
fn calls_and_logs() {
    same::<AuditLine>(&[
        r#"{"time":"t","process":7,"tool":"t","milliseconds":1,"sent":2,"outcome":"unknown"}"#,
        r#"{"time":"t","process":7,"who":"cli","caller":{"id":"7","kind":"agent","principal":"owner"},"server":"s","tool":"t","decision":"allowed","by":{"kind":"rule","rule":"r","origin":"f:1"},"changed":["c"],"classified":{"classifier":"c","origin":"f:1","verdict":"allow","reason":"r"},"rewritten_by":{"hook":"h","origin":"f:1"},"replaced_by":{"hook":"h","origin":"f:1"},"milliseconds":1,"sent":2,"received":3,"outcome":"tool-error","code":-32000,"arguments":{ "a": 1.0 },"result":[ ]}"#,
        r#"{"time":"t","lost":3}"#,
    ]);
    same::<AnswerRow<'_>>(&[
        r#"{"tool":"t","exit":2,"error":"e","details":["d"],"hint":"h"}"#,
        r#"{"server":"s","tool":"t","exit":0,"result":{ "content": [] },"output":"o","replacedBy":"h","context":["c"],"warnings":["w"]}"#,
    ]);
    same::<LogRow>(&[r#"{"time":"t","process":7,"kind":"stderr","text":"x"}"#]);
}

#[test]
fn gateways_and_their_clients() {
    let server = r#"{"server":"s","state":"failed","attempt":null,"error":"e","reason":null,"protocolVersion":null,"tools":null,"resources":null,"prompts":null}"#;
    let listening = r#"{"way":"http","address":"http://127.0.0.1:1/mcp"}"#;
    let client = r#"{"id":"http#1","principal":"ada","shown":"ada","name":"agent","version":"2","era":"legacy","endpoint":"/mcp","since":"t","lastSeen":"t","calls":3,"parked":0}"#;
    let silent = client.replace(
        r#""name":"agent","version":"2","era":"legacy""#,
        r#""name":null,"version":null,"era":null"#,
    );
    let status = format!(
        r#"{{"pid":7,"since":"t","version":"0.1.0","directory":"/w","listens":[{listening},{{"way":"stdio","address":null}}],"servers":[{server}],"clients":[{client},{silent}],"calls":[{}],"parked":0,"questions":1}}"#,
        call("null")
    );
    same::<ListeningRow>(&[listening]);
    same::<ServedClientRow>(&[client, &silent]);
    same::<GatewayStatus>(&[&status]);
    same::<GatewayListing>(&[&format!(
        r#"{{"gateways":[{{"pid":7,"status":{status},"problem":null}},{{"pid":null,"status":null,"problem":"p"}}]}}"#
    )]);
}

#[test]
fn tokens() {
    let token =
        r#"{"name":"ci","profile":"review","createdAt":"t","expiresAt":"t","expired":true}"#;
    let bare = r#"{"name":"a","profile":null,"createdAt":"t","expiresAt":null,"expired":false}"#;
    same::<TokenRow>(&[token, bare]);
    same::<TokenListing>(&[&format!(r#"{{"tokens":[{token},{bare}]}}"#)]);
}
