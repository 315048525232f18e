//! `toolway completions`: the completion script of a shell.
//!
//! Owns the script; in bash, zsh and fish it also asks `toolway __complete` (`complete.rs`) what
//! servers offer.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::context::Context;
use crate::exit::Exit;
use crate::report::Outcome;

/// What only servers know comes first; where they know nothing, what every script knows.
const BASH: &str = r#"
_toolway_offers() {
    local candidate toolway
    # Not the word that was typed: it may be a program of the directory that one stands in.
    toolway=$(type -P toolway 2>/dev/null)
    if [ "$COMP_CWORD" -gt 1 ] && [ "${toolway:0:1}" = / ]; then
        COMPREPLY=()
        while IFS= read -r candidate; do
            COMPREPLY+=("$candidate")
        # What is replaced ($2) may begin behind an open quote: spellings depend on it.
        done < <("$toolway" __complete bash "${COMP_LINE:0:COMP_POINT}" "$2" 2>/dev/null)
        if [ "${#COMPREPLY[@]}" -gt 0 ]; then
            case "${COMPREPLY[0]}" in *=|*__) compopt -o nospace 2>/dev/null ;; esac
            return 0
        fi
    fi
    _toolway "$@"
}
complete -F _toolway_offers -o bashdefault -o default toolway
"#;

/// How the script for bash looks for files.
const BASH_FILES: &str = r#"COMPREPLY=($(compgen -f "${cur}"))"#;

/// The same in zsh: the function takes the place of the one that every script has, and calls it.
const ZSH: &str = r#"
functions[_toolway_alone]=$functions[_toolway]
_toolway() {
    # Not the word that was typed: it may be a program of the directory that one stands in.
    local toolway=$(whence -p toolway)
    # Between backticks what is quoted here would be unquoted once more.
    if (( CURRENT > 2 )) && [[ $toolway == /* && $compstate[quote] != '`' ]]; then
        local -a found open whole
        found=("${(@f)$("$toolway" __complete zsh "${(j: :)words[1,CURRENT-1]} $QIPREFIX$PREFIX" 2>/dev/null)}")
        # An argument's name is followed by its value, and a server's by a tool: not by a space.
        open=(${(M)found:#*(=|__)})
        whole=(${${found:#*(=|__)}:#})
        if (( $#open + $#whole )); then
            (( $#open )) && compadd -S '' -a open
            (( $#whole )) && compadd -a whole
            return 0
        fi
    fi
    _toolway_alone "$@"
}

"#;

/// Where a script for zsh runs, or registers, the function that it has defined.
const ZSH_END: &str = r#"if [ "$funcstack[1]" = "_toolway" ]"#;

/// The same in fish, which knows by itself that no space follows a `=`.
const FISH: &str = r"
function __toolway_ask
    set -l words (commandline -cpo)
    test (count $words) -gt 1; or return 1
    # Not the word that was typed: it may be a program of the directory that one stands in.
    set -l toolway (command -s toolway)
    string match -q '/*' -- $toolway; or return 1
    set -g __toolway_found ($toolway __complete fish (commandline -cp | string collect) 2>/dev/null)
    test (count $__toolway_found) -gt 0
end
complete -c toolway -n __toolway_ask -f -k -a '$__toolway_found'
";

/// Print a shell's completion script
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mkdir -p ~/.local/share/bash-completion/completions
  toolway completions bash > ~/.local/share/bash-completion/completions/toolway")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// The command line without what is hidden, which scripts would offer all the same.
fn shown(all: &Command) -> Command {
    let shown = all.get_subcommands().filter(|it| !it.is_hide_set());
    Command::new("toolway")
        .version(env!("CARGO_PKG_VERSION"))
        .propagate_version(true)
        .args(all.get_arguments().cloned())
        .subcommands(shown.cloned())
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &CompletionsArgs, cli: &Command) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut shown(cli), "toolway", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    match args.shell {
        Shell::Bash => {
            // It would put names of files in as they are; bash itself quotes what it finds.
            script = script.replace(BASH_FILES, "COMPREPLY=()");
            script.push_str(BASH);
        }
        Shell::Zsh => {
            // Behind this the first tab of a shell would not know of it.
            let end = script.find(ZSH_END).unwrap_or(script.len());
            script.insert_str(end, ZSH);
        }
        Shell::Fish => script.push_str(FISH),
        _ => {}
    }
    context.output.verbatim(&script)?;
    Ok(Exit::Success)
}
