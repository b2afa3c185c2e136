//! Minimum cost of starting programs: a loop of `posix_spawn`, which the standard library uses.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use crate::Failure;
use crate::measure::{Whose, measure};
use crate::sample::Sample;

/// Path of the program. An absolute path, so that no lookup in `PATH` is measured.
pub(crate) const PROGRAM: &str = "/bin/true";

/// Starts a program `calls` times, at most `at_once` at the same time. Returns the cost including the programs.
pub(crate) fn run(calls: usize, at_once: usize) -> Result<Sample, Failure> {
    let work = || -> Result<(), Failure> {
        if at_once == 1 {
            return Ok(starts(calls)?);
        }
        thread::scope(|scope| {
            let loops: Vec<_> = (0..at_once).map(|_| scope.spawn(|| starts(calls / at_once))).collect();
            loops.into_iter().try_for_each(|it| -> Result<(), Failure> {
                Ok(it.join().map_err(|_| "a thread panicked")??)
            })
        })
    };
    Ok(measure(Whose::All, work)?.1)
}

fn starts(calls: usize) -> std::io::Result<()> {
    (0..calls).try_for_each(|_| start(Path::new(PROGRAM)))
}

fn start(program: &Path) -> std::io::Result<()> {
    let mut command = Command::new(program);
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if status.success() {
        Ok(())
    } else {
        Err(std::io::Error::other(format!("{}: {status}", program.display())))
    }
}
