use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use taskpawl_process::{
    Environment, Limits, Outcome, OutputFiles, Program, Programs, Sandbox, SpawnError, Supervision,
};
use tokio_util::sync::CancellationToken;

/// The environment of one test: a directory, limits and programs.
pub(crate) struct Bench {
    dir: tempfile::TempDir,
    pub(crate) programs: Programs,
    pub(crate) limits: Limits,
    pub(crate) cancel: CancellationToken,
}

impl Bench {
    /// With a supervisor.
    pub(crate) fn new() -> Self {
        Self::with(Programs::new(supervisor()))
    }

    /// With programs of this process.
    pub(crate) fn unsupervised() -> Self {
        Self::with(Programs::new(Supervision::Off))
    }

    pub(crate) fn with(programs: Programs) -> Self {
        let limits = Limits { grace: Duration::from_millis(200), ..Limits::default() };
        Self { dir: tempfile::tempdir().unwrap(), programs, limits, cancel: CancellationToken::new() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn program(&self, argv: &[&str]) -> Program {
        Program {
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            cwd: self.dir.path().to_owned(),
            environment: Environment::default(),
            stdin: None,
            output: OutputFiles { stdout: self.path("out/1.stdout"), stderr: self.path("out/1.stderr") },
            sandbox: Sandbox::Off,
            handover: None,
        }
    }

    pub(crate) async fn run(&self, program: &Program) -> Result<Outcome, SpawnError> {
        self.programs.run(program, &self.limits, &self.cancel).await
    }

    pub(crate) async fn shell(&self, script: &str) -> Outcome {
        self.run(&self.program(&["sh", "-c", script])).await.unwrap()
    }

    pub(crate) async fn run_script(&self, script: &str) -> Result<Outcome, SpawnError> {
        self.run(&self.program(&["sh", "-c", script])).await
    }

    /// Waits until a program has written its process id to a file.
    pub(crate) async fn pid(&self, name: &str) -> u32 {
        let path = self.path(name);
        until("a pid is written", || std::fs::read_to_string(&path).is_ok_and(|text| text.ends_with('\n')))
            .await;
        std::fs::read_to_string(path).unwrap().trim().parse().unwrap()
    }
}

/// Returns the supervisor binary of this package.
pub(crate) fn supervisor() -> Supervision {
    Supervision::Binary(env!("CARGO_BIN_EXE_taskpawl-supervisor").into())
}

/// Waits until a condition holds, for at most ten seconds.
pub(crate) async fn until(what: &str, is_so: impl FnMut() -> bool) {
    within(Duration::from_secs(10), what, is_so).await;
}

pub(crate) async fn within(limit: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !is_so() {
        assert!(Instant::now() < end, "timed out waiting until {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Returns whether a process has ended. A zombie counts as ended: it runs no code and holds no files.
pub(crate) fn is_gone(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
}

pub(crate) fn exactly(variables: &[(&str, &str)]) -> Environment {
    let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    Environment::Exactly(variables.collect::<BTreeMap<_, _>>())
}

pub(crate) fn is_reaped(pid: u32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}
