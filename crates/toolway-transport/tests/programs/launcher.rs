//! A program that can be a launcher, and nothing else.

fn main() {
    toolway_transport::stdio::launcher::run_if_requested();
}
