//! Process that uses the library: see `integration_tests::worker`.

fn main() {
    integration_tests::faults::enable_from_environment();
    integration_tests::worker::main();
}
