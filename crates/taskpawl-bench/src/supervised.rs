//! Programs started by the supervisor, without engine and store.

use std::hint::black_box;
use std::path::Path;

use taskpawl::Supervision;
use taskpawl::tools::{
    Confinement, End, Limits, OutputFiles, Program, Programs, Sandbox, SandboxPlaces, SandboxSettings,
};
use tokio_util::sync::CancellationToken;

use crate::Failure;
use crate::floor::spawn::PROGRAM;
use crate::measure::{Whose, measure};
use crate::sample::Sample;

/// Starts a program `calls` times, one after the other, from a process that uses `ballast_mib` of memory. Includes the
/// start and end of the supervisor, so that its CPU time counts as that of a finished child.
pub(crate) fn run(calls: usize, is_sandboxed: bool, ballast_mib: usize) -> Result<Sample, Failure> {
    let ballast = ballast(ballast_mib << 20);
    let directory = tempfile::tempdir()?;
    let sandbox = if is_sandboxed { sandbox(directory.path()) } else { Sandbox::Off };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let work = || runtime.block_on(start_all(directory.path(), &sandbox, calls));
    let ((), sample) = measure(Whose::All, work)?;
    drop(black_box(ballast));
    Ok(sample)
}

/// Returns memory whose pages are all resident.
fn ballast(bytes: usize) -> Vec<u8> {
    let mut ballast = vec![0; bytes];
    ballast.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    black_box(ballast)
}

/// Returns the default sandbox of calls.
fn sandbox(root: &Path) -> Sandbox {
    let places = SandboxPlaces {
        root: root.to_owned(),
        variables: std::env::vars_os().collect(),
        ..SandboxPlaces::default()
    };
    Confinement::new(SandboxSettings::default(), places).plain().sandbox
}

async fn start_all(directory: &Path, sandbox: &Sandbox, calls: usize) -> Result<(), Failure> {
    let programs = Programs::new(Supervision::default());
    for call in 0..calls {
        let program = program(directory, sandbox, call);
        let outcome = programs.run(&program, &Limits::default(), &CancellationToken::new()).await?;
        if outcome.end != End::Exited || outcome.code != 0 {
            return Err(format!("`{PROGRAM}` ended with {outcome:?}").into());
        }
    }
    programs.close().await;
    Ok(())
}

fn program(directory: &Path, sandbox: &Sandbox, call: usize) -> Program {
    let output = directory.join("output").join(format!("call-{call}"));
    Program {
        argv: vec![PROGRAM.to_owned()],
        cwd: directory.to_owned(),
        environment: taskpawl::tools::Environment::default(),
        stdin: None,
        output: OutputFiles {
            stdout: output.with_extension("stdout"),
            stderr: output.with_extension("stderr"),
        },
        sandbox: sandbox.clone(),
        handover: None,
    }
}
