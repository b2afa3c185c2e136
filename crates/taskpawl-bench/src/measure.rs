//! CPU time of this process and of its ended children, as the kernel keeps it.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::Failure;

/// The kernel counts in hundredths of a second (`sysconf(_SC_CLK_TCK)` on Linux).
const TICKS_A_SECOND: u64 = 100;

/// What something cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) cpu: Duration,
    pub(crate) wall: Duration,
}

impl Cost {
    pub(crate) fn micros(self) -> u128 {
        self.cpu.as_micros()
    }

    pub(crate) fn micros_each(self, count: usize) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / count as f64
    }

    pub(crate) fn ratio(self, floor: Self) -> f64 {
        self.cpu.as_secs_f64() / floor.cpu.as_secs_f64()
    }

    pub(crate) fn wall_ratio(self, floor: Self) -> f64 {
        self.wall.as_secs_f64() / floor.wall.as_secs_f64()
    }
}

/// Measures `work`.
pub(crate) fn cost_of<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<(T, Cost), Failure> {
    let (cpu, begin) = (cpu_time()?, Instant::now());
    let value = work()?;
    Ok((value, Cost { cpu: cpu_time()?.saturating_sub(cpu), wall: begin.elapsed() }))
}

/// Returns user and system time of this process and of its ended children (proc(5), fields 14 to 17 of `stat`).
fn cpu_time() -> Result<Duration, Failure> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit_once(')').ok_or("no name in /proc/self/stat")?.1;
    let ticks: u64 =
        after_name.split_whitespace().skip(11).take(4).map(|field| field.parse().unwrap_or(0)).sum();
    Ok(Duration::from_millis(ticks * 1000 / TICKS_A_SECOND))
}

/// Runs a command with nothing on its streams; an exit code other than those expected is an error.
pub(crate) fn run_quietly(command: &mut Command, expected: &[i32]) -> Result<(), Failure> {
    let output = command.output()?;
    let code = output.status.code().unwrap_or(-1);
    if expected.contains(&code) {
        return Ok(());
    }
    Err(format!("{command:?} ended with {code}: {}", String::from_utf8_lossy(&output.stderr)).into())
}

/// Returns the `taskpawl` binary beside this one.
pub(crate) fn taskpawl() -> Result<PathBuf, Failure> {
    let path = std::env::current_exe()?.with_file_name("taskpawl");
    if path.exists() { Ok(path) } else { Err("build it first: cargo build --release -p taskpawl-cli".into()) }
}

/// Returns whether a program can be started.
pub(crate) fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}
