//! The process namespace of a run.

use rustix::process::{Pid, Signal, kill_process};
use tokio::time::Instant;

use super::*;
use crate::engine::ESCAPES;
use crate::supervised::sleepers;
use crate::support::until;

impl Home {
    async fn has_own_processes(&self) -> bool {
        let has = self.enforcement().await.own_processes;
        if !has {
            skip("processes", "the sandbox", "this system gives no process namespace");
        }
        has
    }

    /// Starts a program that leaves processes behind in every way, and waits until they run. Each of them sleeps for `nap` seconds.
    async fn started(&self, nap: &str) {
        until("all are there", || self.bench.path("project/all").exists()).await;
        until("the test sees all of them", || sleepers(nap).len() == 5).await;
    }
}

/// A number of seconds that no other test sleeps for.
pub(super) fn own_nap() -> String {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    format!("{}{count:03}", 1_000_000 + u64::from(std::process::id()))
}

fn field_of(process: u32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
}

/// Returns the process above `process` that is the first one of its namespace, with the one above that.
fn supervisors_of(process: u32) -> [u32; 2] {
    let above = |process: u32| field_of(process, "PPid:").unwrap().parse::<u32>().unwrap();
    let is_first = |process: u32| field_of(process, "NSpid:").unwrap().ends_with("\t1");
    let mut process = process;
    while !is_first(process) {
        process = above(process);
    }
    [process, above(process)]
}

fn kill(process: u32) {
    kill_process(Pid::from_raw(process.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
}

#[tokio::test]
async fn programs_see_the_processes_of_their_run_alone() {
    let home = Home::new();
    if !home.has_own_processes().await {
        return;
    }
    let neighbour = Neighbour::start();
    let said = home.shell("echo $PPID; cat /proc/1/comm; ls -d /proc/[0-9]* | wc -l").await.stdout.text;
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..2], ["1", "taskpawl-superv"], "{said}");
    assert!(lines[2].parse::<u32>().unwrap() <= 4, "{said}");
    for what in ["read /proc/ID/status", "list /proc/ID", "signal ID", "schedule processors ID"] {
        home.fails(&what.replace("ID", &neighbour.0.id().to_string())).await;
    }
}

#[tokio::test]
async fn no_program_ends_its_supervisor() {
    let home = Home::new();
    if !home.has_own_processes().await {
        return;
    }
    for signal in
        ["KILL", "STOP", "TERM", "INT", "HUP", "QUIT", "SEGV", "ABRT", "ALRM", "PIPE", "USR1", "CHLD", "XCPU"]
    {
        let outcome = home.shell(&format!("kill -{signal} 1; kill -{signal} 1; echo alive")).await;
        assert_eq!(outcome.stdout.text, "alive\n", "{signal}: {outcome:?}");
    }
    // Ends the program itself, and reaches no process outside.
    let outcome = home.shell("trap '' TERM; kill -TERM -1; echo alive").await;
    assert_eq!(outcome.stdout.text, "alive\n", "{outcome:?}");
}

/// Nothing can hide from the end of the supervisor: neither a process that left its group, nor one without any trace of its call.
#[tokio::test]
async fn everything_ends_with_its_supervisor() {
    for outer in [false, true] {
        let (home, nap) = (Home::new(), own_nap());
        if !home.has_own_processes().await {
            return;
        }
        let script = ESCAPES.replace("1000", &nap);
        let program = home.program(&["sh", "-c", &script]);
        let error = tokio::select! {
            ended = home.bench.run(&program) => ended.unwrap_err(),
            () = async {
                home.started(&nap).await;
                kill(supervisors_of(sleepers(&nap)[0])[usize::from(outer)]);
                std::future::pending::<()>().await;
            } => unreachable!(),
        };
        assert!(matches!(error, SpawnError::SupervisorLost), "{error:?}");
        until("everything has ended", || sleepers(&nap).is_empty()).await;
        assert_eq!(home.shell("echo next").await.stdout.text, "next\n");
    }
}

#[tokio::test]
async fn orphans_are_reaped() {
    let home = Home::new();
    let script = "for i in 1 2 3 4 5 6 7 8; do (sleep 0.05 &); done; sleep 0.3; grep -l 'State:.Z' /proc/[0-9]*/status; echo none";
    assert_eq!(home.shell(script).await.stdout.text, "none\n");
}

/// Where the system hides parts of `/proc`, as many containers do, no new one can be mounted.
#[tokio::test]
async fn a_covered_proc_leaves_the_run_without_a_process_namespace() {
    let home = Home::new();
    if !home.has_own_processes().await {
        return;
    }
    let binary = std::env::current_exe().unwrap();
    // The second user namespace cannot remove the cover, as a container cannot.
    let script = format!(
        "mount -t tmpfs none /proc/sys && exec unshare --user --map-root-user --mount '{}' --exact sandbox::processes::runs_beneath_a_covered_proc --nocapture",
        binary.display()
    );
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]).env(COVERED, "1");
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("IT WAS TRIED"), "{output:?}");
}

const COVERED: &str = "TASKPAWL_PROCESS_TEST_COVERED";

#[tokio::test]
async fn runs_beneath_a_covered_proc() {
    if std::env::var_os(COVERED).is_none() {
        return;
    }
    let (home, nap) = (Home::new(), own_nap());
    let enforcement = home.enforcement().await;
    assert!(enforcement.mounts && !enforcement.own_processes, "{enforcement:?}");
    let is_told = |gap: &String| gap.contains("can end their supervisor");
    assert!(enforcement.gaps.iter().any(is_told), "{enforcement:?}");
    // Processes are found and ended as ever.
    fs::write(home.bench.path("project/quick"), "").unwrap();
    let start = Instant::now();
    assert_eq!(home.shell(&ESCAPES.replace("1000", &nap)).await.code, 0);
    assert_eq!(sleepers(&nap).len(), 1, "only the hidden process is left after {:?}", start.elapsed());
    home.bench.programs.close().await;
    assert_eq!(sleepers(&nap), [] as [u32; 0]);
    println!("IT WAS TRIED");
}
