//! `taskpawl plan-relay SOCKET PROGRAM …`: runs the program of an agent, and hands out the plan of the call at a socket file meanwhile.
//!
//! A call of `agent` with `planAccess` starts it inside the sandbox. It is no command for people, and therefore not in the help.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use taskpawl::store::PlanSocket;
use taskpawl::tools::{PLAN_VARIABLE, inherited};

use crate::environment::Environment;
use crate::output;

/// The first word of its command line.
pub(crate) const WORD: &str = "plan-relay";

/// Runs the program, and returns its exit code.
pub(crate) fn main(environment: &Environment, words: &[OsString]) -> ExitCode {
    let [socket, program, arguments @ ..] = words else {
        drop(output::write_err(&format!("error: {WORD} needs a socket and a program\n").into()));
        return ExitCode::from(2);
    };
    match run(environment, Path::new(socket), Command::new(program).args(arguments)) {
        Ok(code) => code,
        Err(error) => {
            drop(output::write_err(
                &format!("error: the agent could not be given its plan: {error}\n").into(),
            ));
            ExitCode::from(126)
        }
    }
}

fn run(environment: &Environment, socket: &Path, program: &mut Command) -> io::Result<ExitCode> {
    let number = environment.plan_descriptor().and_then(|number| number.parse().ok());
    let plan = PlanSocket::from(inherited(number.ok_or(io::ErrorKind::NotFound)?)?);
    let directory = socket.parent().ok_or(io::ErrorKind::InvalidInput)?;
    // A directory that another user of the machine has made is refused.
    DirBuilder::new().mode(0o700).create(directory)?;
    let listener = UnixListener::bind(socket)?;
    std::thread::Builder::new().name("taskpawl-relay".to_owned()).spawn(move || plan.relay(&listener))?;
    let status = program.env(PLAN_VARIABLE, socket).status()?;
    // The call ends even if the directory stays.
    drop(std::fs::remove_dir_all(directory));
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}
