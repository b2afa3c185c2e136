//! A large plan that comes over MCP takes little memory.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Figures, Home};

/// How much a server may take for a plan of 7 MB, in MiB.
const MOST: u64 = 250;

/// Returns plans of 7 MB: of many tasks, of tasks with long commands, and of a few with long texts.
fn plans() -> [(&'static str, Vec<Value>); 3] {
    let chained = |number: usize| {
        let needs: Vec<String> = (number > 0).then(|| format!("t{}", number - 1)).into_iter().collect();
        let name = format!("task number {number} with a name");
        json!({"id": format!("t{number}"), "name": name, "needs": needs, "run": format!("echo {}", "x".repeat(120))})
    };
    let long = |number: usize| json!({"id": format!("t{number}"), "description": "d".repeat(600), "run": format!("echo {}", "x".repeat(360))});
    let few = |number: usize| json!({"id": format!("t{number}"), "description": "d".repeat(700_000)});
    [
        ("35,000 tasks in a chain", (0..35_000).map(chained).collect()),
        ("7,000 tasks with long commands", (0..7_000).map(long).collect()),
        ("10 tasks with long texts", (0..10).map(few).collect()),
    ]
}

#[test]
fn p12_a_plan_of_7_mb_over_mcp_takes_little_memory() {
    let mut figures = Figures::of("p12_a_plan_of_7_mb_over_mcp_takes_little_memory", 0);
    for (what, tasks) in plans() {
        let count = tasks.len();
        let plan = json!({"name": "large", "tasks": tasks});
        let call = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "plan_write", "arguments": {"plan": plan}},
        });
        let call = call.to_string();
        assert!((6_900_000..8_300_000).contains(&call.len()), "{what}: {} bytes", call.len());
        let peak = peak(&call, count);
        figures.add(format!("{peak} MiB for {what}"));
        assert!(peak < MOST, "{what}: {peak} MiB");
        assert!(peak > call.len() as u64 >> 20, "the figure is that of the server: {peak} MiB");
    }
}

/// Returns the largest size of a server that is sent a call which makes so many tasks, in MiB.
fn peak(call: &str, count: usize) -> u64 {
    let home = Home::new();
    let mut server = home.program(&["mcp"]);
    let mut server =
        server.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (mut input, mut output) =
        (server.stdin.take().unwrap(), BufReader::new(server.stdout.take().unwrap()));
    let client = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client});
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    write!(input, "{initialize}\n{initialized}\n{call}\n").unwrap();
    let answer = loop {
        let mut line = String::new();
        assert!(output.read_line(&mut line).unwrap() > 0, "the server has ended");
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["id"] == 1 {
            break message;
        }
    };
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    drop(input);
    server.wait().unwrap();
    assert_eq!(home.manager().counts().unwrap().values().sum::<u64>(), count as u64);
    kib >> 10
}
