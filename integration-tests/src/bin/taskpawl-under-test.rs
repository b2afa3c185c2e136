//! The `taskpawl` program with fault injection.

use std::process::ExitCode;

fn main() -> ExitCode {
    integration_tests::faults::enable_from_environment();
    taskpawl_cli::main()
}
