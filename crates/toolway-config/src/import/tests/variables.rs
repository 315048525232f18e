//! The ways clients write variables.

use crate::import::variables::Syntax;

#[test]
fn every_syntax_becomes_ours() {
    for (syntax, text, expected) in [
        (Syntax::None, "$A {env:A} ${env:A}", "$A {env:A} ${env:A}"),
        (Syntax::Braced, "${A} ${A:-b} $A", "${A} ${A:-b} $A"),
        (
            Syntax::Shell,
            "$A/${B}/$C_1x-$$ $5 $",
            "${A}/${B}/${C_1x}-$$ $5 $",
        ),
        (Syntax::Shell, "é$Aé", "é${A}é"),
        (
            Syntax::Editor,
            "${env:A}${userHome}${pathSeparator}é",
            "${A}${HOME}/é",
        ),
        (
            Syntax::Editor,
            "${workspaceFolder}/x ${B} ${C:-d}",
            "${TOOLWAY_PROJECT_DIR}/x ${B} ${C:-d}",
        ),
        (
            Syntax::Editor,
            "${input:my-key.2} ${input:1}",
            "${MY_KEY_2} ${INPUT_1}",
        ),
        (Syntax::Editor, "${unclosed {env:A}", "${unclosed {env:A}"),
        (
            Syntax::Bare,
            "{env:A}-{env:} {\"json\": 1} ${B}",
            "${A}-{env:} {\"json\": 1} ${B}",
        ),
    ] {
        assert_eq!(syntax.translate(text).text, expected, "{syntax:?}");
    }
}

#[test]
fn what_cannot_be_said_here_is_named() {
    assert_eq!(Syntax::Editor.translate("${command:x.y}").dropped.len(), 1);
    assert_eq!(Syntax::Bare.translate("{file:/x}").dropped.len(), 1);
    assert_eq!(Syntax::None.translate("${HOME}").notes.len(), 1);
    assert_eq!(Syntax::Braced.translate("${HOME}").notes.len(), 0);
}
