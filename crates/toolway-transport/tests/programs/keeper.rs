//! A program that can be a keeper, and nothing else.

fn main() {
    toolway_transport::stdio::keeper::serve_if_asked();
}
