//! The tiers, each at its edge and one beyond, and what stands in place of what cannot be shown.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use toolway_types::BytePool;
use toolway_wire::view;

use super::*;
use crate::call::ModelBlock;
use crate::dispatch::result::bounds::{MAX_CHARS, MAX_RAISED_CHARS};
use crate::dispatch::result::{MAX_PICTURE_MEMORY, media, spill};

const BOUNDS: ResultBounds = ResultBounds {
    chars: MAX_CHARS,
    tokens: 25_000,
    raised: false,
    text: ResultText::Clean,
};

mod words;

struct Place {
    home: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
        }
    }

    fn directory(&self) -> std::path::PathBuf {
        self.home.path().join("results")
    }

    fn bound(&self, result: &Value, bounds: ResultBounds) -> BoundedResult {
        let result = view::tool_result(&to_raw_value(result).unwrap()).unwrap();
        let decoded = media::decode(&result.content);
        let saved = match decoded.media.as_slice() {
            [] => Vec::new(),
            media => spill::save_all(&self.directory(), media).0,
        };
        let source = ResultSource {
            content: &result.content,
            structured: result.structured.as_deref(),
            plain: &[],
            decoded: &decoded,
            saved: &saved,
            picture_memory: &BytePool::new(MAX_PICTURE_MEMORY),
        };
        bound(&source, bounds, &self.directory())
    }
}

fn text(text: impl Into<String>) -> Value {
    json!({"content": [{"type": "text", "text": text.into()}]})
}

fn words(bounded: &BoundedResult) -> String {
    let texts: Vec<_> = bounded.blocks.iter().map(ModelBlock::text).collect();
    texts.join("\n")
}

fn png(width: u32, height: u32) -> String {
    let mut bytes = Vec::new();
    image::DynamicImage::new_rgb8(width, height)
        .write_to(
            &mut std::io::Cursor::new(&mut bytes),
            image::ImageFormat::Png,
        )
        .unwrap();
    STANDARD.encode(bytes)
}

fn image(data: &str, mime_type: &str) -> Value {
    json!({"type": "image", "data": data, "mimeType": mime_type})
}

fn saved(bounded: &BoundedResult) -> &[SavedFile] {
    match &bounded.treatment {
        Treatment::Saved { files } => files,
        other => panic!("{other:?}"),
    }
}

#[test]
fn exactly_as_many_characters_pass_and_one_more_is_saved() {
    let place = Place::new();
    let at = "x".repeat(MAX_CHARS);
    let passed = place.bound(&text(&at), BOUNDS);
    assert_eq!(passed.treatment, Treatment::Passed);
    assert_eq!(passed.blocks, [ModelBlock::Text { text: at.clone() }]);
    assert_eq!(passed.tokens, 25_000);
    assert!(!place.directory().exists());
    // Spaces cost next to nothing, so that characters alone decide.
    let over = " ".repeat(MAX_CHARS + 1);
    let spilled = place.bound(&text(&over), BOUNDS);
    let [file] = saved(&spilled) else { panic!() };
    assert_eq!(std::fs::read_to_string(&file.path).unwrap(), over);
    assert!(words(&spilled).chars().count() < 4_000);
}

#[test]
fn characters_are_counted_and_not_bytes() {
    let place = Place::new();
    let bounds = ResultBounds {
        tokens: usize::MAX - 1,
        ..BOUNDS
    };
    let at = "ä".repeat(MAX_CHARS);
    assert_eq!(place.bound(&text(at), bounds).treatment, Treatment::Passed);
    let over = "ä".repeat(MAX_CHARS + 1);
    assert_eq!(saved(&place.bound(&text(over), bounds))[0].bytes, 200_002);
}

#[test]
fn exactly_as_many_tokens_pass_and_one_more_is_saved() {
    let place = Place::new();
    // Three digits are a token.
    let bounds = ResultBounds {
        tokens: 10,
        ..BOUNDS
    };
    let at = "1".repeat(30);
    assert_eq!(place.bound(&text(at), bounds).treatment, Treatment::Passed);
    let over = place.bound(&text("1".repeat(31)), bounds);
    assert_eq!(saved(&over)[0].bytes, 31);
    assert!(
        words(&over).contains("about 11 tokens; the limit is 100,000 characters and 10 tokens")
    );
}

#[test]
fn a_tool_that_raised_its_limit_is_held_to_characters_alone() {
    let place = Place::new();
    let raised = ResultBounds {
        chars: MAX_RAISED_CHARS,
        tokens: 25_000,
        raised: true,
        ..BOUNDS
    };
    let at = "x".repeat(MAX_RAISED_CHARS);
    assert_eq!(place.bound(&text(at), raised).treatment, Treatment::Passed);
    saved(&place.bound(&text("x".repeat(MAX_RAISED_CHARS + 1)), raised));
    // With a picture the tokens count again.
    let result = json!({"content": [
        {"type": "text", "text": "x".repeat(200_000)},
        image(&png(2, 2), "image/png"),
    ]});
    let cut = place.bound(&result, raised);
    assert!(matches!(cut.treatment, Treatment::Cut { .. }));
    assert!(cut.tokens <= 25_000, "{}", cut.tokens);
}

#[test]
fn the_answer_says_where_how_large_what_it_is_and_how_to_read_it() {
    let place = Place::new();
    let items: Vec<Value> = (0..9_000)
        .map(|id| json!({"id": id, "name": "some name"}))
        .collect();
    let value = json!({"total": 9_000, "items": items}).to_string();
    let spilled = place.bound(&text(&value), BOUNDS);
    let [file] = saved(&spilled) else { panic!() };
    assert_eq!(file.mime_type, "application/json");
    let path = file.path.display().to_string();
    let told = words(&spilled).replace(&path, "<file>");
    insta_like(
        &told,
        &[
            "[The text of this result is too long to show: 277,914 characters, about ",
            " tokens; the limit is 100,000 characters and 25,000 tokens. It was saved whole.\n",
            "File: <file>\nSize: 277,914 bytes in one line\nFormat: JSON\n",
            "Structure: {total: number, items: [{id: number, name: string}]}\n",
            "How to read it, in parts and never all at once:\n",
            "  jq '.items | length' <file>\n",
            "  jq -c '.items[0:10]' <file> | head -c 20000\n",
            "  jq -r . <file> | head -c 20000\n",
            "  head -c 20000 <file>\n",
            "  tail -c +20001 <file> | head -c 20000\n",
            "It is removed after seven days, or earlier when room is needed.]",
        ],
    );
    assert_eq!(std::fs::read_to_string(&file.path).unwrap(), value);
}

/// The parts stand in the text, in this order.
fn insta_like(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let Some(at) = rest.find(part) else {
            panic!("{part:?} is missing in {text}")
        };
        rest = &rest[at + part.len()..];
    }
    assert_eq!(rest, "");
}

#[test]
fn sec_38_no_word_of_a_server_enters_a_command() {
    let place = Place::new();
    let trap = "a'; touch /tmp/owned; '$(id)`id`";
    let value = json!({trap: vec![1; 60_000], "b c": [trap]}).to_string();
    let spilled = place.bound(&text(value), BOUNDS);
    let told = words(&spilled);
    let commands: Vec<&str> = told.lines().filter(|line| line.starts_with("  ")).collect();
    assert!(commands.len() >= 3, "{told}");
    for command in commands {
        assert!(
            !command.contains("touch") && !command.contains("id"),
            "{command}"
        );
    }
}

#[test]
fn several_texts_are_one_file() {
    let place = Place::new();
    let block = |text: &str| json!({"type": "text", "text": text});
    let json_blocks = json!({"content": [
        block(&format!("{{\"a\":\n \"{}\"}}", "1".repeat(80_000))),
        block("[2]"),
    ]});
    let spilled = place.bound(&json_blocks, BOUNDS);
    let [file] = saved(&spilled) else { panic!() };
    assert_eq!(file.mime_type, "application/jsonl");
    assert_eq!(
        std::fs::read_to_string(&file.path).unwrap().lines().count(),
        2
    );
    let mixed = json!({"content": [
        block(&"1".repeat(80_000)),
        {"type": "resource", "resource": {"uri": "x://y", "text": "two"}},
        {"type": "resource_link", "uri": "x://z", "name": "three", "description": "a third"},
        {"type": "hologram", "x": 1},
    ]});
    let spilled = place.bound(&mixed, BOUNDS);
    let [file] = saved(&spilled) else { panic!() };
    let whole = std::fs::read_to_string(&file.path).unwrap();
    let rest = whole.trim_start_matches('1');
    assert_eq!(
        rest,
        "\n[resource x://y]\ntwo\n[link x://z] three: a third\n{\"type\":\"hologram\",\"x\":1}"
    );
    assert_eq!(spilled.blocks.len(), 1);
}

#[test]
fn a_resource_by_itself_is_saved_without_a_head_line_and_by_its_own_kind() {
    let place = Place::new();
    let csv = "a,b\n".repeat(30_000);
    let result = json!({"content": [{"type": "resource", "resource":
        {"uri": "x://table", "mimeType": "text/csv", "text": csv}}]});
    let spilled = place.bound(&result, BOUNDS);
    let [file] = saved(&spilled) else { panic!() };
    assert_eq!(file.path.extension().unwrap(), "csv");
    assert_eq!(std::fs::read_to_string(&file.path).unwrap(), csv);
}

#[test]
fn structure_that_text_repeats_is_counted_once() {
    let place = Place::new();
    let value = json!({"n": "1".repeat(60_000)});
    let once = json!({
        "content": [{"type": "text", "text": value.to_string()}],
        "structuredContent": value,
    });
    let passed = place.bound(&once, BOUNDS);
    assert_eq!(
        (passed.treatment, passed.blocks.len()),
        (Treatment::Passed, 1)
    );
    // What only the structure says is shown besides.
    let beside = json!({
        "content": [{"type": "text", "text": "a summary"}],
        "structuredContent": {"n": 1},
    });
    assert_eq!(words(&place.bound(&beside, BOUNDS)), "a summary\n{\"n\":1}");
    // Of the two the longer one is saved, and the other one stays.
    let long = json!({
        "content": [{"type": "text", "text": "a summary"}],
        "structuredContent": {"n": value},
    });
    let bounds = ResultBounds {
        tokens: 10_000,
        ..BOUNDS
    };
    let spilled = place.bound(&long, bounds);
    let [file] = saved(&spilled) else { panic!() };
    assert_eq!((file.mime_type, file.block), ("application/json", 1));
    let told = words(&spilled);
    assert!(
        told.starts_with("a summary\n[The structured content of this result"),
        "{told}"
    );
    // Both where both are long.
    let both = json!({
        "content": [{"type": "text", "text": "2".repeat(90_000)}],
        "structuredContent": {"n": value},
    });
    assert_eq!(saved(&place.bound(&both, bounds)).len(), 2);
}

#[test]
fn with_pictures_the_text_is_cut_and_they_stay() {
    let place = Place::new();
    let long = "1".repeat(300_000);
    let result = json!({"content": [
        {"type": "text", "text": long},
        image(&png(30, 20), "image/png"),
        {"type": "text", "text": "the end"},
    ]});
    let cut = place.bound(&result, BOUNDS);
    let Treatment::Cut {
        kept,
        of,
        file: Some(file),
    } = &cut.treatment
    else {
        panic!("{:?}", cut.treatment)
    };
    assert_eq!(*of, 300_007);
    assert!((60_000..75_000).contains(kept), "{kept}");
    assert!(cut.tokens <= 25_000, "{}", cut.tokens);
    let kinds: Vec<&str> = cut
        .blocks
        .iter()
        .map(|block| match block {
            ModelBlock::Text { .. } => "text",
            ModelBlock::Notice { .. } => "notice",
            ModelBlock::Image { .. } => "image",
            _ => "other",
        })
        .collect();
    assert_eq!(kinds, ["text", "notice", "image"]);
    let notice = cut.blocks[1].text();
    assert!(notice.contains("All of it was saved.\nFile: "), "{notice}");
    assert!(notice.contains("\n  head -c 20000 "), "{notice}");
    assert_eq!(
        std::fs::read_to_string(&file.path).unwrap(),
        format!("{long}\nthe end")
    );
}

#[test]
fn pictures_share_the_context() {
    let place = Place::new();
    let content: Vec<Value> = (0..3).map(|_| image(&png(300, 300), "image/png")).collect();
    let bounds = ResultBounds {
        tokens: 750,
        ..BOUNDS
    };
    let bounded = place.bound(&json!({ "content": content }), bounds);
    let tokens: usize = bounded
        .blocks
        .iter()
        .filter_map(|block| match block {
            ModelBlock::Image { width, height, .. } => Some((width * height / 750) as usize),
            _ => None,
        })
        .sum();
    assert!((360..=600).contains(&tokens), "{tokens}");
    // There is nothing that could be saved or cut.
    let tight = ResultBounds {
        tokens: 1,
        ..BOUNDS
    };
    let bounded = place.bound(&json!({ "content": content }), tight);
    assert_eq!(bounded.treatment, Treatment::Passed);
}

#[test]
fn only_so_many_pictures_are_shown() {
    let place = Place::new();
    let data = png(2, 2);
    let content: Vec<Value> = (0..70).map(|_| image(&data, "image/png")).collect();
    let passed = place.bound(&json!({ "content": content }), BOUNDS);
    assert_eq!(passed.treatment, Treatment::Passed);
    let is_image = |block: &&ModelBlock| matches!(block, ModelBlock::Image { .. });
    assert_eq!(passed.blocks.iter().filter(is_image).count(), 20);
    assert!(passed.tokens <= 25_000, "{}", passed.tokens);
    let told = words(&passed);
    assert!(
        told.contains("The picture of block 20 is not shown: only 20 pictures are"),
        "{told}"
    );
    assert!(
        told.ends_with("[6 more blocks of media are neither shown nor saved]"),
        "{told}"
    );
}

#[test]
fn rel_19_a_place_that_cannot_be_written_leaves_the_cut_version_and_says_so() {
    let place = Place::new();
    let elsewhere = place.home.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, place.directory()).unwrap();
    let cut = place.bound(&text("1".repeat(300_000)), BOUNDS);
    assert!(matches!(
        cut.treatment,
        Treatment::Cut {
            file: None,
            of: 300_000,
            ..
        }
    ));
    assert!(cut.tokens <= 25_000);
    let told = words(&cut);
    assert!(told.contains(" of 300,000 characters are shown. The rest could not be saved: cannot open the directory"), "{told}");
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn a_cut_ends_between_characters() {
    let place = Place::new();
    std::fs::write(place.directory(), "in the way").unwrap();
    let cut = place.bound(&text("模型😀ä".repeat(40_000)), BOUNDS);
    let Treatment::Cut {
        kept, file: None, ..
    } = cut.treatment
    else {
        panic!()
    };
    assert!(kept > 20_000, "{kept}");
}

#[test]
fn what_cannot_be_shown_has_a_notice_in_its_place() {
    let place = Place::new();
    let huge = {
        let mut bytes = STANDARD.decode(png(1, 1)).unwrap();
        bytes[16..24].copy_from_slice(&[0, 1, 0x86, 0xa0, 0, 1, 0x86, 0xa0]);
        STANDARD.encode(bytes)
    };
    let result = json!({"content": [
        {"type": "text", "text": "before"},
        image("!!!", "image/png"),
        image("aGVsbG8=", "image/png"),
        image(&huge, "image/png"),
        image("Qk1hYWFhYWFhYQ==", "image/bmp"),
        image(&png(3, 3), "image/jpeg\u{1b}[31m"),
        {"type": "audio", "data": "aGVsbG8=", "mimeType": "audio/wav"},
        {"type": "audio", "data": "*", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "x://blob", "blob": "aGVsbG8="}},
        {"type": "resource", "resource": {"uri": "x://pic", "mimeType": "image/png", "blob": png(3, 3)}},
        {"type": "text", "text": "after"},
    ]});
    let passed = place.bound(&result, BOUNDS);
    assert_eq!(passed.treatment, Treatment::Passed);
    let told = words(&passed);
    let directory = place.directory().display().to_string();
    let told: Vec<String> = told
        .lines()
        .map(|line| match line.split_once(&directory) {
            Some((before, after)) => {
                format!("{before}<dir>/….{}", after.rsplit('.').next().unwrap())
            }
            None => line.to_owned(),
        })
        .collect();
    assert_eq!(told[0], "before");
    assert!(
        told[1].starts_with("[The picture of block 1 is not shown: it is not base64 ("),
        "{told:#?}"
    );
    assert_eq!(
        told[2],
        "[The picture of block 2, declared as `image/png`, is not shown: it is not a picture; it is saved as <dir>/….png]"
    );
    assert!(
        told[3]
            .starts_with("[The picture of block 3, declared as `image/png`, is not shown: it is "),
        "{told:#?}"
    );
    assert_eq!(
        told[4],
        "[The picture of block 4, declared as `image/bmp`, is not shown: it is a picture of a kind that models do not take; it is saved as <dir>/….bmp]"
    );
    assert_eq!(told[5], "[image/png, 3 × 3 pixels]");
    assert!(
        told[6].starts_with("[The picture of block 5: declared as `image/jpeg")
            && told[6].ends_with("but it is image/png]"),
        "{told:#?}"
    );
    assert!(!told[6].contains('\u{1b}'));
    assert_eq!(
        told[7],
        "[A sound: audio/wav, 5 bytes, saved as <dir>/….wav]"
    );
    assert!(
        told[8].starts_with("[The sound of block 7 is not shown: it is not base64"),
        "{told:#?}"
    );
    assert_eq!(
        told[9],
        "[A resource from x://blob: application/octet-stream, 5 bytes, saved as <dir>/….bin]"
    );
    assert_eq!(told[10], "[image/png, 3 × 3 pixels]");
    assert_eq!(told[11], "after");
}

#[test]
fn without_limits_everything_passes() {
    let place = Place::new();
    let long = "1".repeat(2_000_000);
    let result =
        json!({"content": [{"type": "text", "text": long}, image(&png(1_700, 2), "image/png")]});
    let passed = place.bound(&result, ResultBounds::NONE);
    assert_eq!(passed.treatment, Treatment::Passed);
    let widths: Vec<u32> = passed
        .blocks
        .iter()
        .filter_map(|block| match block {
            ModelBlock::Image { width, .. } => Some(*width),
            _ => None,
        })
        .collect();
    assert_eq!(widths, [1_700]);
}

#[test]
fn blocks_are_mcp_content_as_json() {
    let place = Place::new();
    let result = json!({"content": [
        {"type": "text", "text": "a"},
        {"type": "text", "text": ""},
        {"type": "resource", "resource": {"uri": "x://y", "mimeType": "text/plain", "text": "two"}},
        {"type": "resource_link", "uri": "x://z", "name": "z", "mimeType": "text/plain"},
        image(&png(1, 1), "image/png"),
    ]});
    let blocks = serde_json::to_value(place.bound(&result, BOUNDS).blocks).unwrap();
    let mut wanted = result["content"].clone();
    wanted.as_array_mut().unwrap().remove(1);
    assert_eq!(blocks, wanted);
}

/// One block of any kind, some of them broken, with text of some length.
fn any_block() -> impl Strategy<Value = Value> {
    let text = (
        prop::sample::select(vec![
            "x",
            "1,",
            "{\"a\": 1}\n",
            "模",
            " ",
            "word ",
            "😀",
            "\u{1b}[",
        ]),
        0_usize..4_000,
    )
        .prop_map(|(unit, count)| unit.repeat(count));
    let data = prop::sample::select(vec![
        png(1, 1),
        png(64, 64),
        "aGVsbG8=".to_owned(),
        "%".to_owned(),
        String::new(),
    ]);
    (0..6, text, data).prop_map(|(kind, text, data)| match kind {
        0 | 1 => json!({"type": "text", "text": text}),
        2 => image(&data, "image/png"),
        3 => json!({"type": "audio", "data": data, "mimeType": text}),
        4 => json!({"type": "resource", "resource": {"uri": "x://y", "text": text}}),
        _ => json!({"type": "resource_link", "uri": text, "name": "n"}),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever comes, what a model gets is within the limits, and pictures are never lost to text.
    #[test]
    fn what_a_model_gets_is_within_the_limits(
        content in prop::collection::vec(any_block(), 0..6),
        structured in prop::option::of(0_usize..20_000),
        writable in any::<bool>(),
    ) {
        let place = Place::new();
        if !writable {
            std::fs::write(place.directory(), "in the way").unwrap();
        }
        let mut result = json!({ "content": content });
        if let Some(chars) = structured {
            result["structuredContent"] = json!({ "n": "7".repeat(chars) });
        }
        let bounds = ResultBounds { chars: 20_000, tokens: 8_000, ..BOUNDS };
        let bounded = place.bound(&result, bounds);
        let size = bounded.blocks.iter().fold(TextSize::default(), |sum, block| match block {
            ModelBlock::Image { width, height, .. } => sum + TextSize {
                tokens: crate::tokens::of_picture(*width, *height),
                ..TextSize::default()
            },
            other => sum + super::super::pieces::size_of(&other.text()),
        });
        prop_assert_eq!(size.tokens, bounded.tokens);
        prop_assert!(size.chars <= bounds.chars, "{:?}", size);
        prop_assert!(size.tokens <= bounds.tokens, "{:?}", size);
        let good = [png(1, 1), png(64, 64)];
        let sent = content
            .iter()
            .filter(|block| block["type"] == "image" && good.iter().any(|data| block["data"] == **data))
            .count();
        let shown = bounded.blocks.iter().filter(|block| matches!(block, ModelBlock::Image { .. })).count();
        prop_assert_eq!(sent, shown);
    }
}
