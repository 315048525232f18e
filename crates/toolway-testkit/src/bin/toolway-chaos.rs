//! A server that misbehaves on command. Everything it does is in `toolway_testkit::chaos`.

fn main() -> std::process::ExitCode {
    toolway_testkit::chaos::run(std::env::args().skip(1))
}
