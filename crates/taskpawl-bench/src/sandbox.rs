//! What it costs to start a program in the sandbox, without engine and store, beside a bare `posix_spawn` of the same program from
//! the same process.

use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};

use taskpawl::Supervision;
use taskpawl::tools::{
    Confinement, End, Limits, OutputFiles, Program, Programs, Sandbox, SandboxPlaces, SandboxSettings,
};
use tokio_util::sync::CancellationToken;

use crate::Failure;
use crate::measure::{Cost, cost_of};

/// The program, by its path: who looks it up does not matter here.
const PROGRAM: &str = "/usr/bin/true";

/// What the large parent holds, in bytes.
const LARGE: usize = 512 << 20;

/// Prints what `calls` starts cost beside the bare ones, in `rounds` rounds that take turns.
pub(crate) fn compare(calls: usize, rounds: usize) -> Result<(), Failure> {
    println!("\n## {calls} × `{PROGRAM}`, one at a time, CPU beside a bare `posix_spawn`, {rounds} rounds\n");
    println!("| parent | sandbox | bare | CPU a call | ratio: least, median, most |");
    println!("| --- | --- | --- | --- | --- |");
    parent("small", calls, rounds)?;
    let ballast = ballast();
    parent("with 512 MiB", calls, rounds)?;
    drop(black_box(ballast));
    Ok(())
}

/// Returns memory of which every page is there.
fn ballast() -> Vec<u8> {
    let mut ballast = vec![0; LARGE];
    ballast.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    black_box(ballast)
}

fn parent(name: &str, calls: usize, rounds: usize) -> Result<(), Failure> {
    let directory = tempfile::tempdir()?;
    let sandbox = profile(directory.path());
    // The first starts warm up caches, and show that the sandbox can be had.
    supervised(directory.path(), &sandbox, 10)?;
    let (mut off, mut on) = (Rounds::default(), Rounds::default());
    for _ in 0..rounds {
        let bare = bare(calls)?;
        off.add(bare, supervised(directory.path(), &Sandbox::Off, calls)?);
        on.add(bare, supervised(directory.path(), &sandbox, calls)?);
    }
    off.print(name, "off", calls);
    on.print(name, "on", calls);
    Ok(())
}

/// Returns the sandbox that calls have where nothing is said about it.
fn profile(root: &Path) -> Sandbox {
    let places = SandboxPlaces {
        root: root.to_owned(),
        output: Some(root.join("output")),
        variables: std::env::vars_os().collect(),
        ..SandboxPlaces::default()
    };
    Confinement::new(SandboxSettings::default(), places).plain().sandbox
}

fn bare(calls: usize) -> Result<Cost, Failure> {
    let ((), cost) = cost_of(|| {
        for _ in 0..calls {
            let mut command = Command::new(PROGRAM);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            if !command.status()?.success() {
                return Err(format!("`{PROGRAM}` failed").into());
            }
        }
        Ok(())
    })?;
    Ok(cost)
}

/// Measures starts by a supervisor, which is started and ended for them: so its own cost counts, and that of all that it started.
fn supervised(directory: &Path, sandbox: &Sandbox, calls: usize) -> Result<Cost, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ((), cost) = cost_of(|| {
        runtime.block_on(async {
            let programs = Programs::new(Supervision::default());
            for call in 0..calls {
                let program = program(directory, sandbox, call);
                let cancel = CancellationToken::new();
                let outcome = programs.run(&program, &Limits::default(), &cancel).await?;
                if outcome.end != End::Exited || outcome.code != 0 {
                    return Err(format!("`{PROGRAM}` ended with {outcome:?}").into());
                }
            }
            programs.close().await;
            Ok(())
        })
    })?;
    Ok(cost)
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

/// What each round came to.
#[derive(Default)]
struct Rounds {
    ratios: Vec<f64>,
    micros: Vec<f64>,
    bare_micros: Vec<f64>,
}

impl Rounds {
    fn add(&mut self, bare: Cost, cost: Cost) {
        self.ratios.push(cost.ratio(bare));
        self.micros.push(cost.cpu.as_secs_f64() * 1e6);
        self.bare_micros.push(bare.cpu.as_secs_f64() * 1e6);
    }

    fn print(mut self, parent: &str, sandbox: &str, calls: usize) {
        let each = |values: &mut [f64]| median(values) / calls as f64;
        let (bare, micros) = (each(&mut self.bare_micros), each(&mut self.micros));
        let middle = median(&mut self.ratios);
        // Sorted by now.
        let least = self.ratios.first().copied().unwrap_or_default();
        let most = self.ratios.last().copied().unwrap_or_default();
        println!(
            "| {parent} | {sandbox} | {bare:.0} µs | {micros:.0} µs | {least:.2}, {middle:.2}, {most:.2} |"
        );
    }
}

/// Sorts them, and returns the one in the middle.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
