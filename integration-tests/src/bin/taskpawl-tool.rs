//! Program of a tool call that is hard to kill: see `integration_tests::tool`.

fn main() {
    integration_tests::tool::main();
}
