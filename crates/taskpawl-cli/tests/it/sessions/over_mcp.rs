//! Sessions of agents that have the tools of the MCP server and nothing else.
//!
//! Each call is the first one of its connection, or one that an answer has offered. An agent adds its own words to it:
//! results and notes, and corrected work.

use serde_json::{Value, json};

use super::{Bounds, Cost};
use crate::harness::Cli;
use crate::mcp_server::Agent;

/// Arguments that an agent adds to an offered call, or fills with its own words.
const OWN_WORDS: [&str; 5] = ["result", "note", "next", "fields", "wait_s"];

/// A connection whose calls follow the answers.
struct Scripted {
    agent: Agent,
    offered: Vec<Value>,
}

impl Scripted {
    /// Connects at a time. An agent reads the instructions first.
    fn connect(cli: &Cli, options: &[&str], now: &str, cost: &mut Cost) -> Self {
        let (agent, instructions) = Agent::start_at(cli, options, now);
        cost.bytes_out += instructions.len();
        Self { agent, offered: Vec::new() }
    }

    fn call(&mut self, cost: &mut Cost, tool: &str, arguments: &Value) -> Value {
        let is_offered = self.offered.iter().any(|offered| is_followed(offered, tool, arguments));
        assert!(
            self.offered.is_empty() || is_offered,
            "{tool} {arguments} was not offered: {:#?}",
            self.offered
        );
        let answer = self.agent.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        cost.commands += 1;
        cost.bytes_in += tool.len() + arguments.to_string().len();
        cost.bytes_out += text.len();
        cost.refusals += usize::from(result["isError"] == json!(true));
        let answer = result["structuredContent"].clone();
        assert_eq!(result["isError"], json!(false), "{tool} {arguments}: {answer}");
        collect(&answer, &mut self.offered);
        answer
    }

    /// Makes the first call that the latest answer offers with this tool, with more of the agent's own words.
    fn follow(&mut self, cost: &mut Cost, answer: &Value, tool: &str, words: &Value) -> Value {
        let actions = answer["nextActions"].as_array().cloned().unwrap_or_default();
        let offered = actions.iter().find(|action| action["tool"] == tool);
        let offered = offered.unwrap_or_else(|| panic!("no {tool} is offered: {answer}"));
        let mut arguments = offered["arguments"].as_object().unwrap().clone();
        arguments.extend(words.as_object().unwrap().clone());
        self.call(cost, tool, &arguments.into())
    }
}

/// Returns whether a call is the offered one, with the agent's own words.
fn is_followed(offered: &Value, tool: &str, arguments: &Value) -> bool {
    let (Some(given), Some(expected)) = (arguments.as_object(), offered["arguments"].as_object()) else {
        return false;
    };
    let is_own = |name: &str| OWN_WORDS.contains(&name);
    offered["tool"] == tool
        && expected.iter().all(|(name, value)| is_own(name) || given.get(name) == Some(value))
        && given.keys().all(|name| is_own(name) || expected.contains_key(name))
}

/// Collects the calls in an answer, wherever they stand.
fn collect(answer: &Value, offered: &mut Vec<Value>) {
    match answer {
        Value::Array(items) => items.iter().for_each(|item| collect(item, offered)),
        Value::Object(fields) if fields.contains_key("tool") && fields.contains_key("arguments") => {
            offered.push(answer.clone());
        }
        Value::Object(fields) => fields.values().for_each(|value| collect(value, offered)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is(task: &Value, id: &str) {
    assert_eq!(task["id"], id, "{task}");
}

#[test]
fn three_agents_do_research_and_one_of_them_dies() {
    let cli = Cli::without_store();
    cli.run(&["init"]).ok();
    let cost = &mut Cost::default();
    let begin = "2026-01-02T03:00:00Z";
    let mut lead = Scripted::connect(&cli, &[], begin, cost);
    let topic = |id: &str, name: &str| json!({"id": id, "name": name});
    let plan = json!({"name": "storage", "description": "Which store for 10 million small files?", "tasks": [
        topic("sqlite", "Measure SQLite"), topic("files", "Measure plain files"), topic("lmdb", "Measure LMDB"),
        {"id": "report", "name": "Recommend one", "needs": ["sqlite", "files", "lmdb"]},
    ]});
    let written = lead.call(cost, "plan_write", &json!({"plan": plan, "agent": "lead"}));
    assert_eq!(written["nextActions"][0]["tool"], "ready_list", "{written}");

    let worker = &["--tools", "work"][..];
    let claim = |agent: &str| json!({"claim": true, "agent": agent});
    let mut ann = Scripted::connect(&cli, worker, begin, cost);
    let of_ann = ann.call(cost, "ready_list", &claim("ann"));
    is(&of_ann["claimed"], "sqlite");
    let mut bob = Scripted::connect(&cli, worker, begin, cost);
    let of_bob = bob.call(cost, "ready_list", &claim("bob"));
    is(&of_bob["claimed"], "files");
    let mut cyd = Scripted::connect(&cli, worker, begin, cost);
    let of_cyd = cyd.call(cost, "ready_list", &claim("cyd"));
    is(&of_cyd["claimed"], "lmdb");
    // One leaves a note of what it has found so far, and dies.
    let renew =
        of_cyd["nextActions"].as_array().unwrap().iter().find(|next| next["arguments"]["action"] == "renew");
    let mut renew = renew.unwrap()["arguments"].clone();
    renew["note"] = json!("writes: 80,000 a second; reads are not measured yet");
    cyd.call(cost, "task_update", &renew);
    cyd.agent.kill();

    let found = |result: &str| json!({"result": result, "next": true});
    let ended = ann.follow(cost, &of_ann, "task_update", &found("reads 210,000 a second, one file"));
    assert!(ended["notClaimed"].is_string(), "{ended}");
    let ended = bob.follow(cost, &of_bob, "task_update", &found("reads 90,000 a second, slow to copy"));
    assert!(ended["notClaimed"].is_string(), "{ended}");

    // The control: before that nothing is taken from an agent that may be at work.
    let mut early = Scripted::connect(&cli, &[], "2026-01-02T03:10:00Z", &mut Cost::default());
    let plan = early.call(&mut Cost::default(), "plan_show", &json!({"agent": "lead"}));
    assert!(plan["heldByOthers"][0]["by"] == "cyd" && !plan.to_string().contains("release"), "{plan}");

    // More than half of its lease later, the lead looks at the plan, and gives the task to another agent.
    let mut lead = Scripted::connect(&cli, &[], "2026-01-02T03:20:00Z", cost);
    let plan = lead.call(cost, "plan_show", &json!({"agent": "lead"}));
    assert_eq!(plan["heldByOthers"][0]["by"], "cyd", "{plan}");
    let released =
        lead.follow(cost, &plan, "task_update", &json!({"note": "cyd is gone; its note has the writes"}));
    assert_eq!(released["task"]["status"], "todo", "{released}");

    let mut ann = Scripted::connect(&cli, worker, "2026-01-02T03:21:00Z", cost);
    let taken = ann.call(cost, "ready_list", &claim("ann"));
    is(&taken["claimed"], "lmdb");
    let notes = taken["claimed"]["notes"].to_string();
    assert!(notes.contains("80,000") && notes.contains("cyd is gone"), "the notes are handed on: {taken}");
    // The next task comes with all that was found.
    let report = ann.follow(cost, &taken, "task_update", &found("reads 400,000 a second, writes 80,000"));
    is(&report["claimed"], "report");
    for id in ["sqlite", "files", "lmdb"] {
        let need = report["needs"].as_array().unwrap().iter().find(|need| need["id"] == id);
        assert!(need.is_some_and(|need| need["result"].to_string().contains("a second")), "{report}");
    }
    let end = json!({"result": "LMDB"});
    let ended = ann.follow(cost, &report, "task_update", &end);
    assert_eq!(ended["task"]["status"], "done", "{ended}");
    assert_eq!(cli.run(&["list", "--status", "done", "--json"]).ok().json()["page"]["total"], 4);
    cost.ends_within("research", &Bounds { commands: 12, bytes_in: 1_200, bytes_out: 8_800 });
}

#[test]
fn an_agent_without_memory_finishes_the_work() {
    let cli = Cli::without_store().with_programs().with_clock();
    cli.run(&["init"]).ok();
    let trusting = &["--allow", "sandboxed"][..];
    // The session before: a plan, one task done, one failed, one claimed with a note.
    let before = &mut Cost::default();
    let mut agent = Scripted::connect(&cli, trusting, "", before);
    let plan = json!({"name": "greeter", "description": "Release the greeter in version 2", "tasks": [
        {"id": "design", "name": "Decide what greet says", "description": "One line, for one person."},
        {"id": "build", "needs": ["design"], "run": "echo 'echo Hello' > greet.sh"},
        {"id": "test", "needs": ["build"], "run": "sh greet.sh | grep hello"},
        {"id": "notes", "name": "Write the release notes into NOTES", "needs": ["design"]},
        {"id": "publish", "needs": ["test", "notes"], "run": "cat greet.sh NOTES > release"},
    ]});
    let written = agent.call(before, "plan_write", &json!({"plan": plan, "agent": "coder"}));
    let design = agent.follow(before, &written, "ready_list", &json!({}));
    agent.follow(before, &design, "task_update", &json!({"result": "it says Hello", "next": true}));
    agent.agent.ask(
        "tools/call",
        &json!({"name": "task_update", "arguments": {
        "id": "notes", "note": "NOTES has the first line; the second says what changed", "agent": "coder"}}),
    );
    let run = json!({"name": "run_ready", "arguments": {"wait_s": 40, "agent": "coder"}});
    let run = agent.agent.ask("tools/call", &run)["result"]["structuredContent"].clone();
    assert_eq!(run["counts"]["failed"], 1, "{run}");
    agent.agent.kill();

    // The session after it knows its name and nothing else.
    let cost = &mut Cost::default();
    let mut agent = Scripted::connect(&cli, trusting, "", cost);
    let plan = agent.call(cost, "plan_show", &json!({"agent": "coder"}));
    assert_eq!(plan["plans"][0]["description"], "Release the greeter in version 2", "{plan}");
    is(&plan["claimedByYou"][0], "notes");
    assert!(plan["claimedByYou"][0]["note"].as_str().unwrap().contains("first line"), "{plan}");
    assert!(plan["failed"].to_string().contains("grep hello"), "{plan}");
    cli.file("NOTES", "Version 2\nIt says Hello.\n");
    let noted = agent.follow(cost, &plan, "task_update", &json!({"result": "in NOTES"}));
    assert_eq!(noted["task"]["status"], "done", "{noted}");
    // Of the failed task, the plan offered the repair.
    let repair =
        plan["nextActions"].as_array().unwrap().iter().find(|action| action["arguments"]["id"] == "test");
    let mut repair = repair.unwrap_or_else(|| panic!("no repair is offered: {plan}"))["arguments"].clone();
    assert_eq!(repair["fields"]["run"], "sh greet.sh | grep hello", "{repair}");
    repair["fields"]["run"] = json!("sh greet.sh | grep Hello");
    let corrected = agent.call(cost, "task_update", &repair);
    let ran = agent.follow(cost, &corrected, "run_ready", &json!({"wait_s": 40}));
    assert_eq!(ran["counts"]["failed"], Value::Null, "{ran}");
    // The rest of the plan is outside the scope of that run.
    let ran = agent.follow(cost, &ran, "run_ready", &json!({"wait_s": 40}));
    assert_eq!(ran["exit"], 0, "{ran}");
    assert_eq!(cli.run(&["list", "--status", "done", "--json"]).ok().json()["page"]["total"], 5);
    assert!(cli.path("work/release").exists());
    cost.ends_within("context loss", &Bounds { commands: 5, bytes_in: 310, bytes_out: 2_790 });
}
