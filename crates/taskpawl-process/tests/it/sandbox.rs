//! Effects of the sandbox, as root and, in a separate process, as an unprivileged user.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use taskpawl_fuzz::skip;
use taskpawl_process::{
    Enforcement, Environment, Level, Network, Outcome, Profile, Program, Programs, ResourceLimits, Sandbox,
    SpawnError, Supervision, probe,
};

use crate::attempts::ATTEMPT;
use crate::support::{Bench, exactly, supervisor};

mod askers;
mod connect;
#[cfg(feature = "faults")]
mod controls;
mod hosts;
mod links;
mod network;
mod processes;
mod socket_matrix;

/// Paths that every program needs.
const SYSTEM: [&str; 6] = ["/usr", "/bin", "/lib", "/lib64", "/etc", "/opt"];

/// Returns the paths that every program needs.
pub(crate) fn system() -> Vec<PathBuf> {
    SYSTEM.map(PathBuf::from).into()
}

/// Returns whether `bwrap` works here, and prints a message if it does not.
pub(crate) fn has_bwrap() -> bool {
    let works = Command::new("bwrap")
        .args(["--ro-bind", "/", "/", "true"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !works {
        skip("bwrap", "the strict sandbox", "it is not installed, or does not work here");
    }
    works
}

/// A project in the home directory of a user, next to other files.
pub(crate) struct Home {
    pub(crate) bench: Bench,
    pub(crate) profile: Profile,
}

impl Home {
    pub(crate) fn new() -> Self {
        let bench = Bench::new();
        for directory in ["project/.git/hooks", "project/src", "secrets", "other"] {
            fs::create_dir_all(bench.path(directory)).unwrap();
        }
        for file in
            ["project/.git/config", "project/.env", "project/src/main", "secrets/key", "netrc", "other/file"]
        {
            fs::write(bench.path(file), "secret\n").unwrap();
        }
        let mut read = system();
        read.extend([bench.path(""), supervisor_directory()]);
        let paths = |names: &[&str]| names.iter().map(|name| bench.path(name)).collect::<Vec<_>>();
        let profile = Profile {
            write: paths(&["project"]),
            read,
            hidden: paths(&["secrets", "netrc", "project/.env", "out"]),
            read_only: paths(&["project/.git/hooks", "project/.git/config", "project/.mcp.json"]),
            ..Profile::default()
        };
        Self { bench, profile }
    }

    pub(crate) fn program(&self, argv: &[&str]) -> Program {
        let mut program = self.bench.program(argv);
        program.cwd = self.bench.path("project");
        let home = self.bench.path("project").into_os_string();
        program.environment = Environment::Inherit(BTreeMap::from([("HOME".into(), Some(home))]));
        program.sandbox = Sandbox::On(Arc::new(self.profile.clone()));
        program
    }

    /// Runs a script in the project.
    pub(crate) async fn shell(&self, script: &str) -> Outcome {
        self.bench.run(&self.program(&["sh", "-c", script])).await.unwrap()
    }

    /// Makes an attempt with the test binary, and returns its result.
    async fn attempt(&self, what: &str) -> Result<String, String> {
        let program = self.attempting(what);
        printed(&self.bench.run(&program).await.unwrap())
    }

    fn attempting(&self, what: &str) -> Program {
        let binary = std::env::current_exe().unwrap();
        let arguments = ["--exact", "attempts::makes_the_attempt_of_the_environment", "--nocapture"];
        let mut program = self.program(&[&[binary.to_str().unwrap()], &arguments[..]].concat());
        program.environment = exactly(&[(ATTEMPT, what)]);
        program
    }

    async fn works(&self, what: &str) -> String {
        let result = self.attempt(&self.placed(what)).await;
        result.unwrap_or_else(|error| panic!("`{what}`: {error}"))
    }

    async fn fails(&self, what: &str) -> String {
        let result = self.attempt(&self.placed(what)).await;
        result.expect_err(&format!("`{what}` worked"))
    }

    /// Replaces each `~` by the path of the home directory.
    fn placed(&self, what: &str) -> String {
        what.replace('~', self.bench.path("").to_str().unwrap().trim_end_matches('/'))
    }

    async fn enforcement(&self) -> Enforcement {
        self.shell(":").await.enforcement.unwrap().as_ref().clone()
    }

    /// Returns whether this system has namespaces. If not, prints the skipped checks.
    async fn has_mounts(&self) -> bool {
        let has = self.enforcement().await.mounts;
        if !has {
            skip("mounts", "the sandbox", "this system gives no mount namespace");
        }
        has
    }
}

fn supervisor_directory() -> PathBuf {
    // The directory contains the test binary and the supervisor.
    std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned()
}

fn printed(outcome: &Outcome) -> Result<String, String> {
    let text = &outcome.stdout.text;
    let find = |mark: &str| {
        text.split_once(mark).map(|(_, rest)| rest.lines().next().unwrap_or_default().to_owned())
    };
    match (find("WORKED "), find("FAILED ")) {
        (Some(text), None) => Ok(text),
        (None, Some(error)) => Err(error),
        _ => panic!("no result was printed: {outcome:?}"),
    }
}

#[tokio::test]
async fn only_the_project_is_writable() {
    let home = Home::new();
    home.works("write ~/project/new").await;
    home.works("append ~/project/src/main").await;
    home.works("rename ~/project/new ~/project/src/new").await;
    home.works("remove ~/project/src/new").await;
    assert_eq!(home.works("read ~/other/file").await, "secret");
    for what in ["write ~/other/file", "append ~/other/file", "write ~/other/new", "remove ~/other/file"] {
        home.fails(what).await;
    }
    home.fails("rename ~/other/file ~/project/file").await;
    home.fails("link ~/other/file ~/project/file").await;
    home.fails("write /etc/taskpawl-was-here").await;
    home.fails("write /tmp/taskpawl-was-here").await;
    home.fails("write /proc/sys/kernel/core_pattern").await;
}

#[tokio::test]
async fn nested_paths_keep_their_own_permissions() {
    let mut home = Home::new();
    let inner = ["project/src/main", "project/src", "other/file"].map(|name| home.bench.path(name));
    home.profile.read.extend(inner);
    home.profile.write.push(home.bench.path("other/file"));
    assert_eq!(home.works("read ~/project/src/main").await, "secret");
    assert_eq!(home.works("read ~/other/file").await, "secret");
    home.works("write ~/project/src/new").await;
    home.works("append ~/project/src/main").await;
    home.works("append ~/other/file").await;
    home.fails("write ~/other/new").await;
    for name in ["project/src/main", "other/file"] {
        assert_eq!(fs::read_to_string(home.bench.path(name)).unwrap(), "secret\nx");
    }
}

#[tokio::test]
async fn hidden_paths_are_inaccessible() {
    let home = Home::new();
    symlink(home.bench.path("secrets/key"), home.bench.path("project/link")).unwrap();
    for what in ["secrets/key", "netrc", "project/link", "project/../secrets/key"] {
        home.fails(&format!("read ~/{what}")).await;
    }
    home.fails("write ~/secrets/new").await;
    fs::write(home.bench.path("later"), "").unwrap();
    home.fails("read ~/later").await;
    if home.has_mounts().await {
        assert_eq!(home.attempt(&home.placed("read ~/project/.env")).await.unwrap_or_default(), "");
        home.fails("write ~/project/.env").await;
        assert_eq!(home.attempt(&home.placed("list ~/secrets")).await.unwrap_or("0".to_owned()), "0");
    }
    assert_eq!(fs::read_to_string(home.bench.path("project/.env")).unwrap(), "secret\n");
}

#[tokio::test]
async fn read_only_paths_stay_unchanged_under_renames() {
    let home = Home::new();
    if !home.has_mounts().await {
        return;
    }
    assert_eq!(home.works("read ~/project/.git/config").await, "secret");
    home.works("write ~/project/.git/index").await;
    for what in [
        "write ~/project/.git/config",
        "write ~/project/.git/hooks/pre-commit",
        "remove ~/project/.git/config",
        "chmod ~/project/.git/config",
        "rename ~/project/.git/config ~/project/.git/other",
        "rename ~/project/.git/hooks ~/project/.git/other",
        "rename ~/project/.git/index ~/project/.git/config",
        "rename ~/project/.git ~/project/other",
        "link ~/project/.git/config ~/project/.git/other",
    ] {
        home.fails(what).await;
    }
    // A missing file cannot be covered, so the `.mcp.json` of the profile is the only gap.
    let gaps = home.enforcement().await.gaps;
    assert!(gaps.iter().any(|gap| gap.contains(".mcp.json")), "{gaps:?}");
    assert_eq!(gaps.len(), 1, "{gaps:?}");
}

#[tokio::test]
async fn modes_of_read_only_files_cannot_be_changed_with_mounts() {
    let home = Home::new();
    if home.has_mounts().await {
        home.works("chmod ~/project/src/main").await;
        home.fails("chmod ~/other/file").await;
    }
}

#[tokio::test]
async fn a_program_can_reopen_its_own_output() {
    let home = Home::new();
    let outcome = home.shell("echo one; echo two >> /dev/stdout; echo a >&2; echo b > /dev/stderr").await;
    assert_eq!(outcome.stdout.text, "one\ntwo\n", "{outcome:?}");
    assert_eq!(outcome.stderr.text, "a\nb\n");
    fs::write(home.bench.path("out/2.stdout"), "of another call").unwrap();
    // The directory is covered by an empty mount.
    let listed = home.attempt(&home.placed("list ~/out")).await;
    assert!(listed.as_deref().is_err() || listed.as_deref() == Ok("0"), "{listed:?}");
    home.fails("read ~/out/2.stdout").await;
    home.fails("write ~/out/2.stdout").await;
    home.fails("append ~/out/1.stdout").await;
}

impl Home {
    /// Like [`attempt`](Self::attempt), at the same time as another one.
    async fn attempt_in(&self, number: &str, what: &str) -> Result<String, String> {
        let mut program = self.attempting(&self.placed(what));
        program.output.stdout = self.bench.path(&format!("out/{number}.stdout"));
        program.output.stderr = self.bench.path(&format!("out/{number}.stderr"));
        printed(&self.bench.run(&program).await.unwrap())
    }
}

/// An unrelated program of the same user.
struct Neighbour(Child);

impl Neighbour {
    fn start() -> Self {
        let mut command = Command::new("sleep");
        command.arg("1000").env("SECRET", "of the neighbour").stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test]
async fn other_programs_of_the_user_are_unreachable() {
    let home = Home::new();
    let neighbour = Neighbour::start();
    for id in [neighbour.0.id(), std::process::id()] {
        home.fails(&format!("signal {id}")).await;
        home.fails(&format!("read /proc/{id}/environ")).await;
        home.fails(&format!("follow /proc/{id}/fd/1")).await;
        home.fails(&format!("list /proc/{id}/root/tmp")).await;
        home.fails(&format!("ptrace {id}")).await;
    }
    let supervisor = home.shell("echo $PPID").await.stdout.text.trim().to_owned();
    home.fails(&format!("read /proc/{supervisor}/environ")).await;
    home.fails(&format!("follow /proc/{supervisor}/fd/3")).await;
}

/// Two concurrent calls in one sandbox: neither can read open files, variables or memory of the other.
#[tokio::test]
async fn a_call_cannot_inspect_another_call() {
    let home = Home::new();
    let script =
        "echo own; sleep 600 & echo $! > child; echo $$ > id; until [ -e done ]; do sleep 0.01; done";
    let mut program = home.program(&["sh", "-c", script]);
    program.output.stdout = home.bench.path("out/own.stdout");
    program.output.stderr = home.bench.path("out/own.stderr");
    let first = home.bench.run(&program);
    let second = async {
        let id = home.bench.pid("project/id").await;
        let child = home.bench.pid("project/child").await;
        for id in [id, child] {
            home.fails(&format!("read /proc/{id}/environ")).await;
            home.fails(&format!("follow /proc/{id}/fd/1")).await;
            home.fails(&format!("write /proc/{id}/fd/1")).await;
            home.fails(&format!("append /proc/{id}/fd/2")).await;
            home.fails(&format!("ptrace {id}")).await;
            // The ruleset of a call has no signal scope: calls of one supervisor can signal each other.
            home.works(&format!("signal {id}")).await;
        }
        fs::write(home.bench.path("project/done"), "").unwrap();
    };
    let (outcome, ()) = tokio::join!(first, second);
    let outcome = outcome.unwrap();
    assert_eq!((outcome.stdout.text.as_str(), outcome.stderr.text.as_str()), ("own\n", ""));
}

/// Debuggers trace their children, and file access inside a call is limited only by the sandbox.
#[tokio::test]
async fn a_call_can_inspect_its_own_descendants() {
    let home = Home::new();
    let script = "sleep 600 & echo more > /proc/$!/fd/1; mkdir a b; echo > a/f && mv a/f b/g && ln b/g a/h && echo moved";
    let outcome = home.shell(script).await;
    assert_eq!(outcome.stdout.text, "more\nmoved\n", "{outcome:?}");
}

#[tokio::test]
async fn programs_can_schedule_only_themselves() {
    let home = Home::new();
    let neighbour = Neighbour::start();
    let is_denied = async |what: String| {
        let error = home.fails(&what).await;
        assert!(error.contains("os error 1)"), "{what}: {error}");
    };
    for by in ["priority", "disk", "scheduler", "parameters", "attributes"] {
        let what = format!("schedule {by} {}", neighbour.0.id());
        if home.enforcement().await.own_processes {
            // There is no such process for it.
            let error = home.fails(&what).await;
            assert!(error.contains("os error 3)"), "{what}: {error}");
        } else {
            is_denied(what).await;
        }
    }
    for by in ["user", "disk-user"] {
        is_denied(format!("schedule {by} 0")).await;
    }
    for by in ["priority", "scheduler", "parameters", "attributes"] {
        home.works(&format!("schedule {by} 0")).await;
    }
    assert_eq!(home.shell("nice -n 3 echo done").await.stdout.text, "done\n");
}

/// Libraries set the scheduling of their own threads by number, and abort if they cannot (`pthread_setschedparam`).
#[tokio::test]
async fn a_program_schedules_its_own_threads_by_number() {
    let home = Home::new();
    if !home.enforcement().await.own_processes {
        skip("processes", "scheduling of threads", "this system gives no process namespace");
        return;
    }
    let script = "python3 -c \"import os; os.sched_setscheduler(os.getpid(), os.SCHED_BATCH, os.sched_param(0)); os.setpriority(os.PRIO_PROCESS, os.getpid(), 5); print('done')\"";
    assert_eq!(home.shell(script).await.stdout.text, "done\n");
}

#[tokio::test]
async fn no_program_gains_privileges() {
    let home = Home::new();
    let status = home.shell("cat /proc/self/status").await.stdout.text;
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(field(set), "0000000000000000", "{set}");
    }
    assert_eq!((field("NoNewPrivs:"), field("Seccomp:")), ("1", "2"));
    if rustix::process::getuid().is_root() {
        assert_eq!(field("CapBnd:"), "0000000000000000");
        home.fails("setuid").await;
    }
}

#[tokio::test]
async fn system_calls_that_escape_are_denied() {
    let home = Home::new();
    for name in ["mount", "unmount", "chroot", "unshare", "clone", "bpf", "keyctl", "ring", "tree", "type"] {
        let error = home.fails(&format!("system {name}")).await;
        assert!(error.contains("os error 1)"), "{name}: {error}");
    }
    for name in ["clone3", "openat2", "short"] {
        let error = home.fails(&format!("system {name}")).await;
        assert!(error.contains("os error 38)"), "{name}: {error}");
    }
}

#[tokio::test]
async fn no_file_gets_a_set_id_bit() {
    let home = Home::new();
    home.works("chmod ~/project/src/main").await;
    for what in ["~/project/src/main", "~/project/src"] {
        let error = home.fails(&format!("set-id {what}")).await;
        assert!(error.contains("os error 1)"), "{what}: {error}");
    }
}

#[tokio::test]
async fn files_and_shared_memory_have_a_limit_and_memory_goes_to_others_first() {
    let home = Home::new();
    let limits = home.shell("cat /proc/self/limits /proc/self/oom_score_adj").await.stdout.text;
    let soft = |name: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!(soft("Max file size"), (16_u64 << 30).to_string());
    assert_eq!(soft("Max address space"), own_limit_of_address_space(), "never limited");
    assert_eq!(limits.lines().last(), Some("800"));
    // 4 KiB beyond the limit, in a file without blocks. `ignored` as programs that handle the error see it.
    let write = "dd if=/dev/zero of=f bs=4096 seek=4194304 count=1";
    let outcome = home.shell(&format!("{write} || echo $?")).await;
    assert_eq!(outcome.stdout.text, "153\n", "{outcome:?}");
    let ignored = home.shell(&format!("trap '' XFSZ; {write} || echo $?")).await;
    assert!(ignored.stderr.text.contains("File too large"), "{ignored:?}");
    if home.has_mounts().await {
        let said = home.shell("df --output=size -B 1 /dev/shm | tail -1").await.stdout.text;
        assert_eq!(said.trim(), (2_u64 << 30).to_string());
    }
}

fn own_limit_of_address_space() -> String {
    let most = rustix::process::getrlimit(rustix::process::Resource::As).current;
    most.map_or_else(|| "unlimited".to_owned(), |most| most.to_string())
}

/// A program that starts itself twice, recursively, reaches a limit.
#[tokio::test]
async fn processes_of_ordinary_users_are_limited_by_default() {
    let home = Home::new();
    let is_limited = !rustix::process::getuid().is_root() && home.has_mounts().await;
    // Outside a user namespace the kernel counts all processes of the user and never limits root, so nothing is set there.
    assert_eq!(home.enforcement().await.processes, is_limited.then_some(10_000));
    if !is_limited {
        return;
    }
    let limits = home.shell("cat /proc/self/limits").await.stdout.text;
    let line = limits.lines().find(|line| line.starts_with("Max processes")).unwrap();
    let most: u64 = line.split_whitespace().nth(2).unwrap().parse().unwrap();
    assert!(most <= 10_002, "{line}");
}

#[tokio::test]
async fn limits_are_enforced() {
    let mut home = Home::new();
    let outcome = home.shell("ulimit -n; ulimit -Hn; ulimit -c; ulimit -Hc").await;
    assert_eq!(outcome.stdout.text, "1024\n1024\n0\n0\n");
    home.profile.limits =
        ResourceLimits { processes: Some(40), memory: Some(1 << 40), ..ResourceLimits::default() };
    let enforcement = home.enforcement().await;
    let is_gap = |word: &str| enforcement.gaps.iter().any(|gap| gap.contains(word));
    assert!(enforcement.cgroup || is_gap("memory is not limited"), "{enforcement:?}");
    assert_eq!(enforcement.processes, (!is_gap("number of processes")).then_some(40));
    if is_gap("number of processes") {
        skip("cgroup", "the number of processes", "without one the system counts none for root");
        return;
    }
    home.works("many 10").await;
    home.fails("many 100").await;
}

#[tokio::test]
async fn a_program_over_the_memory_limit_is_killed() {
    let mut home = Home::new();
    home.profile.limits = ResourceLimits { memory: Some(64 << 20), ..ResourceLimits::default() };
    if !home.enforcement().await.cgroup {
        skip("cgroup", "the memory of programs", "none with its controller is delegated to this process");
        return;
    }
    let filled = |size: &str| format!("dd if=/dev/zero of=/dev/null bs={size} count=1");
    assert_eq!(home.shell(&filled("8M")).await.code, 0);
    assert_eq!(home.shell(&filled("256M")).await.code, 137);
    assert_eq!(home.shell(&filled("8M")).await.code, 0, "other programs continue");
}

#[tokio::test]
async fn common_programs_work() {
    let home = Home::new();
    let script = "
        set -e
        echo to nobody > /dev/null
        head -c 4 /dev/urandom | wc -c
        head -c 4 /dev/zero | wc -c
        test -r /proc/self/status
        cat /proc/self/comm
        cat <<END
here
END
        if echo x > /dev/tty; then echo a terminal; fi";
    let outcome = home.shell(script).await;
    assert_eq!((outcome.code, outcome.stdout.text.as_str()), (0, "4\n4\ncat\nhere\n"), "{outcome:?}");
    let has_mounts = home.has_mounts().await;
    if has_mounts {
        home.works("terminal").await;
        home.works("write /dev/shm/shared").await;
        assert!(!Path::new("/dev/shm/shared").exists());
    }
    for (tool, script) in [
        (
            "git",
            "git init -q repo && cd repo && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m m && git log --oneline | wc -l",
        ),
        (
            "python3",
            // `multiprocessing` locks through shared memory, which is only available with mounts.
            if has_mounts {
                "python3 -c 'import multiprocessing; multiprocessing.Lock(); print(1)'"
            } else {
                "python3 -c 'print(1)'"
            },
        ),
        ("node", "node -e 'console.log(1)'"),
    ] {
        if home.shell(&format!("command -v {tool}")).await.code == 0 {
            let outcome = home.shell(script).await;
            assert_eq!(outcome.stdout.text.trim(), "1", "{tool}: {outcome:?}");
        }
    }
}

#[tokio::test]
async fn only_equal_profiles_share_a_supervisor() {
    let mut home = Home::new();
    // Each supervisor is process 1 of a namespace of its own, where the system has one.
    let script = "echo $PPID; readlink /proc/self/ns/pid";
    let supervisor = async |home: &Home| home.shell(script).await.stdout.text;
    let first = supervisor(&home).await;
    assert_eq!(supervisor(&home).await, first);
    // Without a sandbox, another supervisor owns the program.
    let plain = home.bench.shell(script).await;
    assert_ne!(plain.stdout.text, first);
    assert!(plain.enforcement.is_none());
    home.profile.network = Network::Full;
    assert_ne!(supervisor(&home).await, first);
}

#[tokio::test]
async fn a_nested_sandbox_reports_its_gaps() {
    if std::env::var_os(NESTED).is_some() {
        let home = Home::new();
        let gaps = home.enforcement().await.gaps;
        for what in ["no loopback", "not hidden", "not read-only", "no mount namespace"] {
            assert!(gaps.iter().any(|gap| gap.contains(what)), "{what}: {gaps:?}");
        }
        home.works("write ~/project/new").await;
        home.fails("write ~/other/new").await;
        home.fails("read ~/secrets/key").await;
        home.fails("read ~/netrc").await;
        home.fails(&format!("family {}", libc::AF_INET)).await;
        home.fails(&format!("family {}", libc::AF_UNIX)).await;
        println!("NESTED DONE");
        return;
    }
    let home = Home::new();
    let binary = std::env::current_exe().unwrap();
    let name = "sandbox::a_nested_sandbox_reports_its_gaps";
    let mut program = home.program(&[binary.to_str().unwrap(), "--exact", name, "--nocapture"]);
    let temporary = home.bench.path("project");
    program.environment =
        exactly(&[(NESTED, "1"), ("TMPDIR", temporary.to_str().unwrap()), ("PATH", "/usr/bin:/bin")]);
    let outcome = home.bench.run(&program).await.unwrap();
    assert!(outcome.code == 0 && outcome.stdout.text.contains("NESTED DONE"), "{outcome:?}");
}

/// Set in the test inside a sandbox.
const NESTED: &str = "TASKPAWL_PROCESS_TEST_NESTED";

#[tokio::test]
async fn an_unenforceable_sandbox_starts_no_program() {
    let home = Home::new();
    let program = home.program(&["sh", "-c", "echo > started"]);
    let bench = Bench::with(Programs::new(Supervision::Off));
    let error = bench.run(&program).await.unwrap_err();
    assert!(matches!(error, SpawnError::Sandbox { .. }), "{error:?}");
    insta::assert_snapshot!(error, @"the sandbox of the program cannot be enforced: it needs a supervisor, and there is none; use a `Supervision` other than `Off`, or run programs with all your permissions with `--sandbox=off`");
    assert!(!home.bench.path("project/started").exists());
}

#[tokio::test]
async fn inside_bwrap_only_the_listed_paths_and_own_processes_exist() {
    let mut home = Home::new();
    home.profile.level = Level::Strict;
    if !has_bwrap() {
        return;
    }
    let neighbour = Neighbour::start();
    home.works("write ~/project/new").await;
    home.works("write ~/project/.git/index").await;
    for what in [
        "write ~/other/file",
        "read ~/secrets/key",
        "read ~/netrc",
        "write ~/project/.git/config",
        "read /root/.profile",
    ] {
        home.fails(what).await;
    }
    home.fails(&format!("follow /proc/{}/cwd", neighbour.0.id())).await;
    let outside = TcpListener::bind("127.0.0.1:0").unwrap();
    home.fails(&format!("connect {}", outside.local_addr().unwrap())).await;
    let outcome = home.shell("echo $PPID; test ! -e /var; echo $?; echo again >> /dev/stdout").await;
    assert_eq!(outcome.stdout.text, "1\n0\nagain\n", "{outcome:?}");
    let enforcement = outcome.enforcement.unwrap();
    assert!(enforcement.level == Level::Strict && enforcement.mounts, "{enforcement:?}");
    // `/proc` is mounted inside: it lists both threads of the attempt.
    assert_eq!(home.works("list /proc/self/task").await, "2");
    // The supervisor is process 1 inside, so the kernel protects it from signals of its children.
    assert_eq!(home.shell("kill -9 $PPID; echo still here").await.stdout.text, "still here\n");
    home.bench.programs.close().await;
}

/// A bind of the root directory must not cover the `/proc` of the sandbox.
#[tokio::test]
async fn bwrap_with_the_root_directory_still_isolates() {
    let mut home = Home::new();
    home.profile.level = Level::Strict;
    home.profile.read.push("/".into());
    if !has_bwrap() {
        return;
    }
    home.works("write ~/project/new").await;
    home.works("read ~/other/file").await;
    home.fails("write ~/other/file").await;
    assert_eq!(home.shell("echo $PPID").await.stdout.text, "1\n");
    home.bench.programs.close().await;
}

#[tokio::test]
async fn a_missing_bwrap_is_refused_with_advice() {
    let mut home = Home::new();
    home.profile.level = Level::Strict;
    if std::env::var_os(NO_PATH).is_some() {
        let error = home.bench.run(&home.program(&["/bin/true"])).await.unwrap_err();
        insta::assert_snapshot!(error, @"the sandbox of the program cannot be enforced: `bwrap` is not in PATH; install it (package `bubblewrap`), or use the sandbox without `strict`, or run programs with all your permissions with `--sandbox=off`");
        return;
    }
    let name = "sandbox::a_missing_bwrap_is_refused_with_advice";
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(NO_PATH, "1")
        .env("PATH", "/nowhere")
        .status();
    assert!(status.unwrap().success());
}

/// Set in the test that finds no programs.
const NO_PATH: &str = "TASKPAWL_PROCESS_TEST_NO_PATH";

#[tokio::test]
async fn a_probe_reports_the_restrictions() {
    let mut home = Home::new();
    home.profile.gaps = vec!["what was known before".to_owned()];
    let enforcement = home.enforcement().await;
    assert_eq!(enforcement.gaps.first(), home.profile.gaps.first());
    assert_eq!(probe(&supervisor(), &Arc::new(home.profile.clone())).unwrap(), enforcement);
    probe(&Supervision::Off, &Arc::new(home.profile.clone())).unwrap_err();
}

#[tokio::test]
async fn programs_end_in_a_sandbox_as_they_do_outside() {
    let home = Home::new();
    fs::write(home.bench.path("project/quick"), "").unwrap();
    let nap = processes::own_nap();
    let outcome = home.shell(&crate::engine::ESCAPES.replace("1000", &nap)).await;
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(crate::engine::written(&home.bench.path("project")).len(), 5);
    // The processes wrote the ids of their own namespace, so search by command line.
    assert_eq!(crate::supervised::sleepers(&nap).len(), 1, "only the hidden process is left");
    home.bench.programs.close().await;
    assert_eq!(crate::supervised::sleepers(&nap).len(), 0);
}

/// Runs all tests of this module again as an unprivileged user.
#[test]
fn all_tests_pass_for_an_unprivileged_user() {
    const NOBODY: u32 = 65534;
    if !rustix::process::getuid().is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    if let Err(error) = std::os::unix::fs::chown(directory.path(), Some(NOBODY), Some(NOBODY)) {
        skip("root", "another user", error);
        return;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["sandbox::", "--nocapture"]).env("TMPDIR", directory.path()).env("HOME", directory.path());
    let output = match command.current_dir("/").uid(NOBODY).gid(NOBODY).output() {
        Ok(output) => output,
        Err(error) => {
            skip("root", "another user", format!("it cannot execute the tests ({error})"));
            return;
        }
    };
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    std::io::stderr().write_all(text.as_bytes()).unwrap();
    assert!(output.status.success());
}
