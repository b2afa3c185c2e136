//! The `taskpawl` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    taskpawl_cli::main()
}
