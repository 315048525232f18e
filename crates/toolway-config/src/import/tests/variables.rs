//! The ways clients write variables.

use crate::import::variables::VariableSyntax;

#[test]
fn every_syntax_becomes_ours() {
    for (syntax, text, expected) in [
        (
            VariableSyntax::None,
            "$A {env:A} ${env:A}",
            "$A {env:A} ${env:A}",
        ),
        (VariableSyntax::Braced, "${A} ${A:-b} $A", "${A} ${A:-b} $A"),
        (
            VariableSyntax::Shell,
            "$A/${B}/$C_1x-$$ $5 $",
            "${A}/${B}/${C_1x}-$$ $5 $",
        ),
        (VariableSyntax::Shell, "é$Aé", "é${A}é"),
        (
            VariableSyntax::Editor,
            "${env:A}${userHome}${pathSeparator}é",
            "${A}${HOME}/é",
        ),
        (
            VariableSyntax::Editor,
            "${workspaceFolder}/x ${B} ${C:-d}",
            "${TOOLWAY_PROJECT_DIR}/x ${B} ${C:-d}",
        ),
        (
            VariableSyntax::Editor,
            "${input:my-key.2} ${input:1}",
            "${MY_KEY_2} ${INPUT_1}",
        ),
        (
            VariableSyntax::Editor,
            "${unclosed {env:A}",
            "${unclosed {env:A}",
        ),
        (
            VariableSyntax::Bare,
            "{env:A}-{env:} {\"json\": 1} ${B}",
            "${A}-{env:} {\"json\": 1} ${B}",
        ),
    ] {
        assert_eq!(syntax.translate(text).text, expected, "{syntax:?}");
    }
}

#[test]
fn what_cannot_be_said_here_is_named() {
    assert_eq!(
        VariableSyntax::Editor
            .translate("${command:x.y}")
            .dropped
            .len(),
        1
    );
    assert_eq!(VariableSyntax::Bare.translate("{file:/x}").dropped.len(), 1);
    assert_eq!(VariableSyntax::None.translate("${HOME}").notes.len(), 1);
    assert_eq!(VariableSyntax::Braced.translate("${HOME}").notes.len(), 0);
}
