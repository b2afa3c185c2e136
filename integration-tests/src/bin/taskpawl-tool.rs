//! A program for tool calls to run, which does what makes programs hard to end: see `integration_tests::tool`.

fn main() {
    integration_tests::tool::main();
}
