//! Tests of the live checklist: as data, as a stream, and on a real terminal.

use std::io::{BufRead, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::Cli;
use crate::mcp_server::Agent;

const PLAN: &str = "tasks: [
    {id: fetch, name: Fetch the sources, call: {log: {message: x}}},
    {id: check, name: Check everything, needs: fetch, subtasks: [
        {id: unit, name: Unit **tests**, call: {log: {message: x}}}, {id: look, name: Look at it}]},
    {id: asks, name: Publish, approval: {ask: 'Publish?'}, call: {log: {message: x}}},
    {id: bad, name: Break, call: {fail: {message: no luck}}}]";

fn begun(cli: &Cli) {
    cli.file("plan.yaml", PLAN);
    cli.run(&["apply", "plan.yaml"]).ok();
    cli.run(&["run-all-ready"]);
    cli.run(&["claim", "look", "--actor", "ann"]).ok();
}

#[test]
fn once_is_a_picture_or_data() {
    let cli = Cli::new();
    insta::assert_snapshot!(cli.run(&["watch", "--once"]).ok());
    begun(&cli);
    insta::assert_snapshot!(cli.run(&["watch", "--once"]).ok());
    insta::assert_snapshot!(cli.run(&["watch", "--once", "--json"]).ok());
}

#[test]
fn what_no_run_here_can_take_waits_and_says_why() {
    let cli = Cli::new();
    cli.file("plan.yaml", "{tools: [nonsense], tasks: [{id: lost, call: {nonsense: {}}}, {id: free, call: {log: {message: x}}}]}");
    cli.run(&["apply", "plan.yaml"]).ok();
    let text = cli.run(&["watch", "--once"]).ok().stdout;
    assert!(text.contains("! lost  needs the tool `nonsense`") && text.contains("○ free"), "{text}");
}

#[test]
fn changes_of_other_processes_are_lines_of_a_stream() {
    let cli = Cli::new();
    cli.run(&["create", "First", "--id", "first"]).ok();
    for json in [true, false] {
        let mut command = cli.command(&cli.path("work"), &["watch", "--since", "0"]);
        command.args(json.then_some("--json")).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let id = format!("later-{json}");
        cli.run(&["create", "Later", "--id", &id]).ok();
        // Events of the previous pass come first.
        let later = lines.map(Result::unwrap).find(|line| line.contains(&id)).unwrap();
        if json {
            let event: Value = serde_json::from_str(&later).unwrap();
            assert_eq!(
                (event["type"].as_str(), event["task"].as_str()),
                (Some("created"), Some(id.as_str()))
            );
            assert!(first.contains("\"task\":\"first\""), "{first}");
        } else {
            assert!(first.contains("first") && later.contains("created"), "{first}\n{later}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn since_needs_a_stream() {
    let run = Cli::new().run(&["watch", "--once", "--since", "3"]);
    assert_eq!(run.code, Some(2), "{run}");
}

/// A program in a tmux session. The tmux server is private and ends with this value.
struct Stage {
    socket: PathBuf,
}

impl Stage {
    /// Starts the program on a screen of 60 columns. Returns `None` without tmux, and reports the skipped
    /// test.
    fn start(cli: &Cli, lines: &str, args: &[&str]) -> Option<Self> {
        // A new socket for each stage: a server that is shutting down still owns its socket.
        static STAGES: AtomicU32 = AtomicU32::new(0);
        let number = STAGES.fetch_add(1, Ordering::Relaxed);
        let stage = Self { socket: cli.path(&format!("tmux-{number}")) };
        let command = cli.command(&cli.path("work"), args);
        let mut tmux = stage.tmux();
        tmux.env_clear();
        for (name, value) in command.get_envs() {
            tmux.env(name, value.unwrap());
        }
        tmux.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("LC_ALL", "C.UTF-8");
        tmux.args(["-f", "/dev/null", "new-session", "-d", "-x", "60", "-y", lines, "-c"]);
        tmux.arg(cli.path("work"));
        // `read` keeps the shell open, so that the screen after the program's end can be captured.
        let program = env!("CARGO_BIN_EXE_taskpawl");
        tmux.arg(format!("{program} {}; echo [exit $?]; read x", args.join(" ")));
        let Ok(output) = tmux.output() else {
            taskpawl_fuzz::skip("tmux", "the checklist on a terminal", "it is not installed");
            return None;
        };
        assert!(output.status.success(), "{output:?}");
        Some(stage)
    }

    fn tmux(&self) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(&self.socket).stdin(Stdio::null());
        tmux
    }

    fn screen(&self, colours: bool) -> String {
        let output = self.tmux().args(["capture-pane", "-p"]).args(colours.then_some("-e")).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Waits until the screen fulfils a condition.
    fn until(&self, what: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + Duration::from_mins(1);
        loop {
            let screen = self.screen(false);
            if what(&screen) {
                return screen;
            }
            assert!(Instant::now() < end, "it never came:\n{screen}");
            std::thread::yield_now();
        }
    }

    fn press(&self, key: &str) {
        assert!(self.tmux().args(["send-keys", key]).status().unwrap().success());
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Kills only the private server, which has its own socket.
        let _ = self.tmux().arg("kill-server").stderr(Stdio::null()).status();
    }
}

#[test]
fn it_is_drawn_in_place_and_the_terminal_is_as_before() {
    let cli = Cli::new().with("TERM", "screen");
    begun(&cli);
    let Some(stage) = Stage::start(&cli, "14", &["watch"]) else { return };
    let screen = stage.until(|screen| screen.contains("Break"));
    let header = "▾ Tasks (2/6 completed)  1 failed, 1 waiting, 1 in progress";
    assert_eq!(screen.lines().next(), Some(header), "{screen}");
    assert!(screen.contains("✓ Unit tests") && screen.contains("Look at it  ann"), "{screen}");
    assert!(
        screen.contains("✗ Break  call `c1` (fail): no luck") && screen.contains("! Publish"),
        "{screen}"
    );
    let colours = stage.screen(true);
    assert!(colours.contains("\u{1b}[38;5;208m"), "the spinner is orange: {colours:?}");

    cli.run(&["done", "look", "--actor", "ann"]).ok();
    stage.until(|screen| screen.contains("✓ Look at it"));

    stage.press("c");
    stage.until(|screen| screen.starts_with('▸') && !screen.contains("Break"));
    stage.press("c");
    assert!(stage.tmux().args(["resize-window", "-x", "30", "-y", "5"]).status().unwrap().success());
    let small = stage.until(|screen| screen.contains("… and"));
    assert!(small.contains("Break") && !small.contains("Fetch"), "{small}");
    assert!(stage.tmux().args(["resize-window", "-x", "60", "-y", "14"]).status().unwrap().success());
    stage.until(|screen| screen.contains("Fetch"));

    stage.press("q");
    let screen = stage.until(|screen| screen.contains("[exit 0]"));
    assert!(!screen.contains("Fetch"), "the other screen is left: {screen}");
    assert!(screen.contains("Tasks (4/6 completed)"), "{screen}");
    assert_eq!(screen.lines().nth(1), Some("[exit 0]"), "what is left is one line: {screen}");
    let cursor =
        stage.tmux().args(["display-message", "-p", "#{cursor_flag} #{alternate_on}"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&cursor.stdout).trim(), "1 0");
}

#[test]
fn an_empty_store_says_so_until_there_is_a_task() {
    let cli = Cli::new().with("TERM", "screen");
    let Some(stage) = Stage::start(&cli, "6", &["watch"]) else { return };
    let screen = stage.until(|screen| screen.contains("q quit"));
    assert_eq!(screen.lines().next(), Some("No tasks yet"), "{screen}");
    cli.run(&["create", "First"]).ok();
    stage.until(|screen| screen.starts_with("▾ Tasks (0/1 completed)") && screen.contains("○ First"));
}

#[test]
fn ctrl_c_and_signals_give_the_terminal_back() {
    let cli = Cli::new().with("TERM", "screen");
    begun(&cli);
    let Some(stage) = Stage::start(&cli, "14", &["watch"]) else { return };
    stage.until(|screen| screen.contains("Break"));
    stage.press("C-c");
    let screen = stage.until(|screen| screen.contains("[exit 130]"));
    assert!(!screen.contains("Fetch"), "{screen}");
    drop(stage);

    let Some(stage) = Stage::start(&cli, "14", &["watch"]) else { return };
    stage.until(|screen| screen.contains("Break"));
    let shell = stage.tmux().args(["display-message", "-p", "#{pane_pid}"]).output().unwrap();
    let shell = String::from_utf8(shell.stdout).unwrap();
    // The program is the only child of the pane's shell, which only prints and reads.
    let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", shell.trim())).unwrap();
    let program: i32 = children.trim().parse().unwrap();
    let program = rustix::process::Pid::from_raw(program).unwrap();
    rustix::process::kill_process(program, rustix::process::Signal::TERM).unwrap();
    let screen = stage.until(|screen| screen.contains("[exit 143]"));
    assert!(!screen.contains("Fetch"), "{screen}");
}

/// Returns the request that sets a checklist.
fn manage(id: u32, list: &Value) -> String {
    let params = json!({"name": "manage_tasks", "arguments": {"taskList": list}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string() + "\n"
}

#[test]
fn checklists_of_other_processes_are_drawn_below_the_plan() {
    let cli = Cli::new().with("TERM", "screen");
    begun(&cli);
    let Some(stage) = Stage::start(&cli, "16", &["watch"]) else { return };
    stage.until(|screen| screen.contains("Break"));
    let args = ["mcp", "--dialect", "checklist", "--scope", "talk", "--actor", "bea"];
    let mut server = cli.command(&cli.path("work"), &args);
    let mut server = server.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut client = server.stdin.take().unwrap();
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    writeln!(client, "{}", json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}))
        .unwrap();
    writeln!(client, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).unwrap();
    let item = |id: u32, title: &str, status: &str| json!({"id": id, "title": title, "status": status});
    let list = json!([item(1, "Set **up**", "completed"), item(2, "Build it", "in-progress")]);
    client.write_all(manage(2, &list).as_bytes()).unwrap();
    let screen = stage.until(|screen| screen.contains("Tasks of talk (1/2 completed)"));
    assert!(screen.starts_with("▾ Tasks (2/6 completed)") && screen.contains("Break"), "{screen}");
    assert!(screen.contains("bea") && screen.contains("✓ Set up") && screen.contains("Build it"), "{screen}");
    let list = json!([item(1, "Set up", "completed"), item(2, "Build it", "completed")]);
    client.write_all(manage(3, &list).as_bytes()).unwrap();
    stage.until(|screen| screen.contains("Tasks of talk (2/2 completed)"));
    // The owner of the list ends properly and removes it.
    drop(client);
    assert!(server.wait().unwrap().success());
    stage.until(|screen| !screen.contains("talk"));
    let mut agent = Agent::start(&cli, &cli.path("work"), &["--dialect", "checklist", "--scope", "torn"]);
    agent.ask("tools/call", &json!({"name": "manage_tasks", "arguments": {"taskList": list}}));
    stage.until(|screen| screen.contains("Tasks of torn"));
    // A killed owner sends no event. Its liveness lock is released by the kernel.
    agent.kill();
    stage.until(|screen| !screen.contains("torn"));
}

#[test]
fn a_list_that_was_left_for_review_does_not_move() {
    let cli = Cli::new().with("TERM", "screen");
    begun(&cli);
    cli.run(&["done", "look", "--actor", "ann"]).ok();
    let Some(stage) = Stage::start(&cli, "14", &["watch"]) else { return };
    let args = ["--dialect", "checklist", "--scope", "talk", "--keep"];
    let mut agent = Agent::start(&cli, &cli.path("work"), &args);
    let item = |id: u32, title: &str, status: &str| json!({"id": id, "title": title, "status": status});
    let list = json!([item(1, "Set up", "completed"), item(2, "Build it", "in-progress")]);
    agent.ask("tools/call", &json!({"name": "manage_tasks", "arguments": {"taskList": list}}));
    let turns = |screen: &str| screen.lines().any(|line| line.contains("Build it") && !line.contains('◐'));
    stage.until(|screen| screen.contains("Tasks of talk (1/2 completed)") && turns(screen));
    agent.kill();
    let screen = stage.until(|screen| screen.contains("Tasks of talk (1/2 completed, ended)"));
    assert!(screen.contains("◐ Build it") && !screen.contains("in progress"), "{screen}");
    let once = cli.run(&["watch", "--once", "--json"]).ok().json();
    let list = &once["data"]["lists"][0];
    assert_eq!((&list["ended"], &list["items"][1]["status"]), (&json!(true), &json!("stopped")));
}
