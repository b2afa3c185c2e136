//! Measurement of cost: CPU time of this process or of its finished children, wall time and memory.

use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeVal;

use crate::Failure;
use crate::sample::{Metric, Sample};

/// The processes whose CPU time counts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Whose {
    /// This process with all of its threads.
    Mine,
    /// Children that were waited for, with their descendants.
    Children,
    /// Both.
    All,
}

/// Measures `work`. Figures are totals.
pub(crate) fn measure<T>(
    whose: Whose,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<(T, Sample), Failure> {
    let (cpu, begin) = (cpu_time(whose)?, Instant::now());
    let value = work()?;
    let wall = begin.elapsed();
    let cpu = cpu_time(whose)?.saturating_sub(cpu);
    let sample = Sample::default().with(Metric::Cpu, micros(cpu)).with(Metric::Wall, micros(wall));
    Ok((value, sample))
}

/// Measures a command. Any exit code but 0 is an error.
pub(crate) fn measure_command(command: &mut Command) -> Result<Sample, Failure> {
    Ok(measure(Whose::Children, || quiet(command))?.1)
}

/// Runs a command and discards its output. Any exit code but 0 is an error.
pub(crate) fn quiet(command: &mut Command) -> Result<(), Failure> {
    output(command).map(drop)
}

/// Runs a command and returns its standard output. Any exit code but 0 is an error.
pub(crate) fn output(command: &mut Command) -> Result<String, Failure> {
    let output = command.output().map_err(|error| format!("{command:?} cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{command:?}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr)).into())
}

/// Runs a command that measures itself and prints the sample as its last line, in the format of [`print()`].
pub(crate) fn reported_by(command: &mut Command) -> Result<Sample, Failure> {
    let text = output(command)?;
    let line = text.lines().last().ok_or_else(|| format!("{command:?} printed nothing"))?;
    Ok(serde_json::from_str(line)?)
}

/// Prints a sample as one line.
#[expect(clippy::print_stdout, reason = "the parent process reads the sample from standard output")]
pub(crate) fn print(sample: &Sample) -> Result<(), Failure> {
    println!("{}", serde_json::to_string(sample)?);
    Ok(())
}

/// Returns the current and the largest memory usage of this process, in bytes.
pub(crate) fn memory() -> Result<(f64, f64), Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    let in_bytes = |name| field(name).map(|kib| kib * 1024.0).ok_or("no memory in /proc/self/status");
    Ok((in_bytes("VmRSS:")?, in_bytes("VmHWM:")?))
}

fn cpu_time(whose: Whose) -> Result<Duration, Failure> {
    let mine = || getrusage(UsageWho::RUSAGE_SELF).map(in_total);
    let children = || getrusage(UsageWho::RUSAGE_CHILDREN).map(in_total);
    Ok(match whose {
        Whose::Mine => mine()?,
        Whose::Children => children()?,
        Whose::All => mine()? + children()?,
    })
}

fn in_total(usage: Usage) -> Duration {
    duration(usage.user_time()) + duration(usage.system_time())
}

fn duration(time: TimeVal) -> Duration {
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    Duration::from_secs(part(time.tv_sec())) + Duration::from_micros(part(time.tv_usec()))
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
