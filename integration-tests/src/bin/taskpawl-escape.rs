//! A tool that tries to do what it must not be able to do.

use std::process::ExitCode;

fn main() -> ExitCode {
    integration_tests::escape::main()
}
