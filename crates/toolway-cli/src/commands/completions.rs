//! `toolway completions`: the completion script of a shell.
//!
//! Owns the script; for bash it also asks `toolway __complete` (`complete.rs`) what servers offer.

use clap::{Args, CommandFactory as _};

use crate::args::Cli;
use crate::context::Context;
use crate::exit::Exit;
use crate::report::Outcome;

/// What only servers know comes first; where they know nothing, what every script knows.
const BASH: &str = r#"
_toolway_offers() {
    local candidate
    case "${COMP_WORDS[1]}" in
        prompt|read)
            COMPREPLY=()
            while IFS= read -r candidate; do
                COMPREPLY+=("$candidate")
            done < <("${COMP_WORDS[0]}" __complete bash "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
            if [ "${#COMPREPLY[@]}" -gt 0 ]; then
                case "${COMPREPLY[0]}" in *=) compopt -o nospace 2>/dev/null ;; esac
                return 0
            fi
            ;;
    esac
    _toolway "$@"
}
complete -F _toolway_offers -o bashdefault -o default toolway
"#;

/// Print a shell's completion script
#[derive(Debug, Args)]
#[command(after_help = "Example:
  toolway completions bash > ~/.local/share/bash-completion/completions/toolway")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

/// Runs the command.
pub(crate) fn run(context: &Context, args: &CompletionsArgs) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "toolway", &mut script);
    if args.shell == clap_complete::Shell::Bash {
        script.extend_from_slice(BASH.as_bytes());
    }
    context.output.verbatim(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Success)
}
