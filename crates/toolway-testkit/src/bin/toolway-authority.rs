//! An authorization server that misbehaves on command. Everything it does is in
//! `toolway_testkit::authority`.

fn main() -> std::process::ExitCode {
    toolway_testkit::authority::run(std::env::args().skip(1))
}
