//! Program of a tool call that tries the bypass cases of the sandbox: see `integration_tests::escape`.

use std::process::ExitCode;

fn main() -> ExitCode {
    integration_tests::escape::main()
}
