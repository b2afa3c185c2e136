//! A supervisor and nothing else, for hosts whose `main` cannot begin with `child_entry()`.

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    taskpawl_process::child_entry();
    let _ = writeln!(
        std::io::stderr(),
        "set this program with `Supervision::Binary`; taskpawl starts it automatically"
    );
    ExitCode::from(2)
}
