//! An engine in another process, to be killed or measured: this test binary, executed again.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use taskpawl_process::{Level, Profile, Program, Programs, Sandbox, Supervision};

use crate::support::{Bench, supervisor, until};

/// The environment variable with the name of a job below.
const JOB: &str = "TASKPAWL_PROCESS_TEST_JOB";

/// An engine in a process of its own, with its working directory.
pub(crate) struct Engine {
    pub(crate) dir: tempfile::TempDir,
    child: Child,
}

impl Engine {
    pub(crate) fn start(job: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "engine::does_the_job_of_the_environment", "--nocapture"]);
        // Temporary files of a killed engine are removed with the directory.
        command.env(JOB, job).env("TMPDIR", dir.path()).current_dir(&dir).stdout(Stdio::null());
        Self { child: command.spawn().unwrap(), dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its successful end.
    pub(crate) fn finish(&mut self) {
        assert!(self.child.wait().unwrap().success());
    }

    /// Waits until its lock is free.
    pub(crate) async fn is_unlocked(&self) {
        let file = File::open(self.path("lock")).unwrap();
        until("the lock is free", || file.try_lock().is_ok()).await;
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // The engine still runs only if the test has failed. An error means that it has ended.
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

/// Does the job of the environment. Without the variable, as in a normal test run, does nothing.
#[tokio::test]
async fn does_the_job_of_the_environment() {
    let Some(job) = std::env::var_os(JOB) else { return };
    let lock = File::create("lock").unwrap();
    lock.lock().unwrap();
    let job = job.into_string().unwrap();
    #[cfg(feature = "faults")]
    enable_fault(&job);
    let bench = Bench::with(Programs::with_lock(supervisor(), Arc::new(lock)));
    match job.split(' ').next().unwrap() {
        "outputs" => hostile_outputs(bench).await,
        "thousand" => a_thousand_programs(bench).await,
        _ => {
            let script = ESCAPES.replace("1000", &nap_of(std::process::id()));
            let mut program = in_work_dir(&bench, &script);
            confine(&mut program, &job);
            drop(bench.run(&program).await);
        }
    }
}

#[cfg(feature = "faults")]
fn enable_fault(job: &str) {
    use taskpawl_process::faults::{Fault, enable};

    match job.split(' ').nth(1) {
        Some("no-sweep") => enable(Fault::NoSweep),
        Some("early-lock") => enable(Fault::EarlyLock),
        Some("only-group") => enable(Fault::OnlyGroup),
        Some("sandboxed" | "strict") | None => {}
        Some(other) => panic!("unknown fault `{other}`"),
    }
}

/// Leaves a process behind in every way: in the process group, and in sessions of their own after a double
/// fork, with all descriptors closed, and without variables. Each writes its process id to a file.
pub(crate) const ESCAPES: &str = "
    sh -c 'echo $$ > group; exec sleep 1000' &
    setsid sh -c 'echo $$ > marked; exec sleep 1000 < /dev/null > /dev/null 2>&1' &
    setsid env -i /bin/sh -c 'echo $$ > open; exec sleep 1000' &
    (env -i PATH=$PATH setsid sh -c '(sh -c \"echo \\$\\$ > hidden; exec sleep 1000\" &) < /dev/null > /dev/null 2>&1' < /dev/null > /dev/null 2>&1 &)
    echo $$ > leader
    until [ -s group ] && [ -s marked ] && [ -s open ] && [ -s hidden ]; do sleep 0.01; done
    echo there > all
    if [ -e quick ]; then exit 0; fi
    exec sleep 1000";

/// The file names of [`ESCAPES`].
pub(crate) const NAMES: [&str; 5] = ["leader", "group", "marked", "open", "hidden"];

/// Returns the process ids that [`ESCAPES`] has written to `dir` so far.
pub(crate) fn written(dir: &Path) -> Vec<u32> {
    let read = |name: &&str| std::fs::read_to_string(dir.join(name)).ok()?.trim().parse().ok();
    NAMES.iter().filter_map(read).collect()
}

fn in_work_dir(bench: &Bench, script: &str) -> Program {
    let mut program = bench.program(&["sh", "-c", script]);
    program.cwd = std::env::current_dir().unwrap();
    program
}

/// Puts a program that works in a directory into the sandbox that the job names.
fn confine(program: &mut Program, job: &str) {
    let level = match job.split(' ').nth(1) {
        Some("sandboxed") => Level::Standard,
        Some("strict") => Level::Strict,
        Some(_) | None => return,
    };
    let profile = Profile {
        level,
        write: vec![program.cwd.clone()],
        read: crate::sandbox::system(),
        ..Profile::default()
    };
    program.sandbox = Sandbox::On(Arc::new(profile));
}

/// Returns the sleep duration of the programs of an engine, which identifies them in the process list.
pub(crate) fn nap_of(engine: u32) -> String {
    (1_000_000 + u64::from(engine)).to_string()
}

/// Runs programs with all three streams, and counts the descriptors of this process and of the supervisor.
async fn a_thousand_programs(bench: Bench) {
    let mut program = bench.program(&["/bin/true"]);
    program.stdin = Some(b"input".to_vec());
    bench.run(&program).await.unwrap();
    let own = std::process::id();
    let count = || (descriptors(own), descriptors(supervisor_of(own).unwrap()));
    let before = count();
    for _ in 0..1000 {
        assert_eq!(bench.run(&program).await.unwrap().code, 0);
    }
    assert_eq!(count(), before);
}

/// Runs programs that flood their output, and writes the growth of peak memory in KiB to a file.
async fn hostile_outputs(mut bench: Bench) {
    bench.limits.output_bytes = 64 << 20;
    bench.run(&in_work_dir(&bench, "echo warm")).await.unwrap();
    let before = peak_memory();
    let endless = bench.run(&in_work_dir(&bench, "yes")).await.unwrap();
    assert_eq!(endless.end, taskpawl_process::End::OutputLimit);
    bench.limits.output_bytes = 128 << 20;
    for script in [
        "head -c 100000000 /dev/zero | tr '\\0' x",
        "head -c 10000000 /dev/urandom",
        "yes \"$(printf '\\033[2J\\033]0;title\\007\\033[31m')\" | head -c 10000000",
    ] {
        assert_eq!(bench.run(&in_work_dir(&bench, script)).await.unwrap().code, 0);
    }
    let grown = peak_memory() - before;
    File::create("grown").unwrap().write_all(grown.to_string().as_bytes()).unwrap();
}

/// Returns the peak memory of this process, in KiB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Returns the number of open descriptors of a process.
fn descriptors(process: u32) -> usize {
    std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().count()
}

/// Returns the supervisor among the children of a process.
pub(crate) fn supervisor_of(process: u32) -> Option<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).ok()?.flatten();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let ids: Vec<u32> =
        children.collect::<String>().split_whitespace().map(|id| id.parse().unwrap()).collect();
    ids.into_iter().find(|id| {
        std::fs::read_to_string(format!("/proc/{id}/cmdline"))
            .is_ok_and(|line| line.contains("taskpawl-supervisor"))
    })
}

/// The setup of a library user who has not prepared `main`.
pub(crate) fn unprepared() -> Bench {
    Bench::with(Programs::new(Supervision::Reexecute))
}
