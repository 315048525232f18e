//! x
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "started by the commands that come with the CLI")
)]
mod demo;
fn main() {}
