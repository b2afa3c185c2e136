//! Tests of Ctrl-C, SIGTERM and SIGHUP, and of the state after them.

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStderr, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::Cli;

/// The first task says that it has begun, then waits for the file `go`. The second task depends on it.
const PLAN: &str = "
tasks:
  - id: long
    run: 'touch begun; until test -e go; do sleep 0.02; done'
  - {id: after, needs: long, run: touch ran}
";

struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
}

impl Running {
    /// Starts a run and waits until its first call runs.
    fn start(cli: &Cli) -> Self {
        let mut command = cli.command(&cli.path("work"), &["run-all-ready", "--plan", "plan.yaml"]);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let begun = cli.path("work/begun");
        while !begun.exists() {
            assert_eq!(child.try_wait().unwrap(), None, "the run ended before its call began");
            std::thread::yield_now();
        }
        assert!(is_alive(cli), "the control: the program of the call is found");
        Self { child, lines }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for a line that starts with `begin`.
    fn wait_for(&mut self, begin: &str) {
        let line = self.lines.find(|line| line.as_ref().unwrap().starts_with(begin));
        assert!(line.is_some(), "`{begin}` was not said");
    }

    fn exit(mut self) -> Option<i32> {
        // Reads to the end: the run would block on a full pipe.
        self.lines.by_ref().for_each(drop);
        self.child.wait().unwrap().code()
    }
}

fn with_plan() -> Cli {
    let cli = Cli::new().with_programs();
    cli.file("plan.yaml", PLAN);
    cli
}

fn status(cli: &Cli, id: &str) -> String {
    let task = cli.run(&["show", id, "--fields", "status"]).ok().json();
    task["data"]["status"].as_str().unwrap().to_owned()
}

/// Returns whether the program of the first task runs. Its process id in the sandbox says nothing outside of it.
fn is_alive(cli: &Cli) -> bool {
    let (work, mut processes) = (cli.path("work"), fs::read_dir("/proc").unwrap());
    processes.any(|process| {
        let process = process.unwrap().path();
        let is_there = fs::read_link(process.join("cwd")).is_ok_and(|place| place == work);
        is_there && fs::read(process.join("cmdline")).is_ok_and(|words| words.ends_with(b"done\0"))
    })
}

#[test]
fn the_first_lets_what_runs_end_and_starts_nothing_more() {
    let cli = with_plan();
    let mut run = Running::start(&cli);
    run.signal(Signal::INT);
    run.wait_for("stopping: nothing more starts, 1 call may still end");
    cli.file("go", "");
    assert_eq!(run.exit(), Some(130));
    assert_eq!((status(&cli, "long").as_str(), status(&cli, "after").as_str()), ("done", "todo"));
    cli.run(&["run-all-ready"]).ok();
    assert!(cli.path("work/ran").exists());
}

#[test]
fn the_second_kills_and_the_task_waits_for_a_decision() {
    let cli = with_plan();
    let mut run = Running::start(&cli);
    run.signal(Signal::INT);
    run.wait_for("stopping: nothing more starts");
    run.signal(Signal::INT);
    assert_eq!(run.exit(), Some(130));
    assert!(!is_alive(&cli), "nothing is left behind");
    assert_eq!(status(&cli, "long"), "blocked", "nobody knows how far it came");
    assert_eq!(cli.run(&["run-all-ready"]).code, Some(3));
    cli.run(&["done", "long", "--note", "it was far enough"]).ok();
    cli.run(&["run-all-ready"]).ok();
    assert!(cli.path("work/ran").exists());
}

/// Returns the id of the last run.
fn last_run(cli: &Cli) -> String {
    let runs = cli.run(&["runs", "--json"]).ok().json();
    runs["data"][0]["id"].as_str().unwrap().to_owned()
}

/// Runs `test` on each kind of store that processes share.
fn on_shared_stores(test: impl Fn(&Cli)) {
    test(&with_plan());
    let cli = Cli::without_store().with_programs();
    let store = format!("json:{}", cli.path("tasks.json").display());
    let cli = cli.with("TASKPAWL_STORE", &store);
    cli.file("plan.yaml", PLAN);
    test(&cli);
}

#[test]
fn another_process_stops_a_run() {
    on_shared_stores(|cli| {
        let mut run = Running::start(cli);
        let id = last_run(cli);
        let stop = cli.run(&["stop", &id[..8]]).ok();
        assert_eq!(stop.stdout, format!("run {id} stops: nothing more starts, 1 call may finish\n"));
        run.wait_for("stopping: nothing more starts, 1 call may still end");
        // A second request of the same kind changes nothing: it does not kill.
        cli.run(&["stop", &id]).ok();
        cli.file("go", "");
        assert_eq!(run.exit(), Some(130));
        assert_eq!((status(cli, "long").as_str(), status(cli, "after").as_str()), ("done", "todo"));
        let over = cli.run(&["stop", &id]);
        assert_eq!(over.code, Some(7), "{over}");
        assert!(over.stderr.contains("has ended"), "{over}");
        assert_eq!(cli.run(&["stop", "nowhere"]).code, Some(6));
        let history = cli.run(&["history"]).ok();
        assert!(history.stdout.contains("asked to stop"), "{history}");
    });
}

#[test]
fn another_process_ends_what_runs_and_names_it_first() {
    on_shared_stores(|cli| {
        let mut run = Running::start(cli);
        let id = last_run(cli);
        let stop = cli.run(&["stop", &id, "--now"]).ok();
        assert!(stop.stderr.contains("to be interrupted, with unknown effects: long c1 (shell)"), "{stop}");
        run.wait_for("stopping: ");
        assert_eq!(run.exit(), Some(130));
        assert!(!is_alive(cli), "nothing is left behind");
        assert_eq!(status(cli, "long"), "blocked");
    });
}

#[test]
fn an_agent_stops_only_runs_that_it_started() {
    let cli = with_plan();
    let mut run = Running::start(&cli);
    let id = last_run(&cli);
    let by_agent = cli.run(&["stop", &id, "--actor", "model"]);
    assert_eq!(by_agent.code, Some(7), "{by_agent}");
    assert!(by_agent.stderr.contains("an agent stops only runs that it started"), "{by_agent}");
    // The name alone is not enough: an agent of the starter's name is still another actor.
    assert_eq!(cli.run(&["stop", &id, "--actor", "user@host"]).code, Some(7));
    cli.run(&["stop", &id]).ok();
    run.wait_for("stopping: ");
    cli.file("go", "");
    assert_eq!(run.exit(), Some(130));

    let cli = with_plan().with("TASKPAWL_ACTOR", "model");
    let mut run = Running::start(&cli);
    let id = last_run(&cli);
    assert_eq!(cli.run(&["stop", &id, "--actor", "other"]).code, Some(7));
    cli.run(&["stop", &id]).ok();
    run.wait_for("stopping: ");
    cli.file("go", "");
    assert_eq!(run.exit(), Some(130));
}

#[test]
fn termination_kills_at_once() {
    let cli = with_plan();
    let run = Running::start(&cli);
    run.signal(Signal::TERM);
    assert_eq!(run.exit(), Some(143));
    assert!(!is_alive(&cli), "nothing is left behind");
    assert_eq!(status(&cli, "long"), "blocked");
    let runs = cli.run(&["runs", "--json"]).ok().json();
    assert_eq!(runs["data"][0]["exit"], 143, "{runs}");
}

/// A sparse file of 4 TiB takes no disk space, but hashing it would take an hour.
#[test]
fn no_file_that_is_read_for_the_cache_holds_up_a_signal_or_the_time_of_a_run() {
    let cli = Cli::new().with_programs().with_clock();
    fs::File::create(cli.path("work/endless")).unwrap().set_len(1 << 42).unwrap();
    cli.file("plan.yaml", "tasks: [{id: a, cache: {inputs: [endless]}, run: 'true'}]");
    let plan = ["run-all-ready", "--plan", "plan.yaml"];
    assert_ne!(cli.run(&[&plan[..], &["--timeout", "1s"]].concat()).code, Some(0));
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let run_of_list = || cli.run(&["runs", "--json"]).ok().json()["data"].as_array().unwrap().len();
        // Counted first: the run may be in the list before the next command reads it.
        let before = run_of_list();
        let mut command = cli.command(&cli.path("work"), &plan);
        let mut run =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while run_of_list() == before {
            assert_eq!(run.try_wait().unwrap(), None);
        }
        kill_process(Pid::from_child(&run), signal).unwrap();
        assert_eq!(run.wait().unwrap().code(), Some(code));
    }
    assert_eq!(status(&cli, "a"), "todo");
}
