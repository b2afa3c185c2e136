//! Starts every call twice through the library: see `integration_tests::keys`.

fn main() {
    integration_tests::faults::enable_from_environment();
    integration_tests::keys::main();
}
