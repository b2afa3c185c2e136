//! Tests of `prime`, which runs at the start of an agent's session: its text is short and true, and it never
//! fails.

use serde_json::{Value, json};

use crate::harness::Cli;

#[test]
fn where_there_is_no_project_it_says_nothing() {
    let cli = Cli::without_store();
    let run = cli.run(&["prime"]).ok();
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
    assert_eq!(cli.run(&["prime", "--json"]).ok().json()["data"], Value::Null);
}

#[test]
fn it_never_fails() {
    let cli = Cli::new();
    std::fs::write(cli.path("tasks.db"), "no database at all, but a text that is long enough").unwrap();
    let run = cli.run(&["prime"]).ok();
    assert!(run.stdout.starts_with("taskpawl: the plan cannot be read now: "), "{run}");
    assert_eq!(run.stdout.lines().count(), 1);
    assert_eq!(cli.run(&["prime", "--json"]).ok().json()["data"], Value::Null);
}

#[test]
fn it_says_where_the_plan_stands() {
    let cli = Cli::new().with_programs();
    cli.file(
        "plan.yaml",
        "tasks: [{id: good, call: {log: {message: x}}}, {id: bad, call: {fail: {message: no luck}}},
          {id: later, needs: bad, call: {log: {message: y}}}, {id: look, name: Look at the list, needs: good},
          {id: ask, approval: {ask: 'Publish?'}, call: {log: {message: z}}}, {id: taken, name: Write it}]",
    );
    insta::assert_snapshot!(cli.run(&["prime"]).ok());
    cli.run(&["apply", "plan.yaml"]).ok();
    cli.run(&["claim", "taken"]).ok();
    cli.run(&["note", "taken", "half of it is written"]).ok();
    cli.run(&["run-all-ready"]);
    let text = cli.run(&["prime"]).ok().to_string();
    let run = text.find("Run ").unwrap();
    insta::assert_snapshot!(text.replace(&text[run + 4..run + 12], "[RUN-ID]"));
    let json = cli.run(&["prime", "--json", "--actor", "somebody"]).ok().json();
    assert_eq!(json["data"]["mine"]["items"], json!([]));
    assert_eq!(json["data"]["held"]["items"][0]["task"], "taken");
    assert_eq!(json["data"]["nextActions"][0]["action"], "approve");
}

#[test]
fn what_no_run_here_can_take_is_not_said_to_be_ready() {
    let cli = Cli::new();
    cli.file("plan.yaml", "{tools: [nonsense], tasks: [{id: u, call: {nonsense: {}}}]}");
    cli.run(&["apply", "plan.yaml"]).ok();
    let text = cli.run(&["prime"]).ok().stdout;
    assert!(text.contains("Ready, but for no run here:\n- u: ") && text.contains("`nonsense`"), "{text}");
    assert!(text.contains("`taskpawl explain u`") && !text.contains("run-all-ready"), "{text}");
    let digest = cli.run(&["prime", "--json"]).ok().json()["data"].clone();
    assert_eq!(digest["forNobody"]["items"][0]["missingTool"], "nonsense");
    assert_eq!(digest["readyToRun"]["items"], json!([]));
    let listed = cli.run(&["ready"]).ok();
    assert_eq!(listed.stdout, "");
    assert!(listed.stderr.contains("u is ready, and no run here can take it"), "{listed}");
    assert!(listed.stderr.contains("`taskpawl explain u` says what helps"), "{listed}");
    let page = cli.run(&["ready", "--json"]).ok().json();
    assert_eq!((&page["data"], &page["page"]["totalForNobody"]), (&json!([]), &json!(1)));
    assert_eq!(page["page"]["forNobody"][0]["task"], "u");
    // The list holds the task that a person can do, and not the unrunnable one.
    cli.run(&["create", "Look", "--id", "look"]).ok();
    let page = cli.run(&["ready", "--json", "--fields", "id"]).ok().json();
    assert_eq!(page["data"], json!([{"id": "look"}]));
}

#[test]
fn commands_name_the_store_that_the_command_line_named() {
    let cli = Cli::new();
    let store = cli.path("other.db").display().to_string();
    let at = |words: &[&str]| cli.run(&[words, &["--store", &store]].concat());
    let is_named =
        |text: &str| text.matches("`taskpawl ").count() == text.matches("`taskpawl --store ").count();
    let empty = at(&["prime"]).ok().stdout;
    assert!(empty.contains("`taskpawl --store ") && is_named(&empty), "{empty}");
    for number in 0..30 {
        at(&["create", "By hand", "--id", &format!("t{number}")]).ok();
    }
    at(&["create", "Lost", "--id", "lost", "--tool", "nonsense"]).ok();
    for command in [&["prime"][..], &["ready"], &["show", "nowhere"], &["claim", "lost"]] {
        let said = at(command).to_string();
        assert!(said.contains("`taskpawl --store ") && is_named(&said), "{said}");
    }
    let plain = cli.run(&["show", "nowhere"]).to_string();
    assert!(plain.contains("`taskpawl list`"), "{plain}");
}

/// Estimates tokens as documented in the help of `prime`.
fn tokens(text: &str) -> usize {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    ascii.div_ceil(4) + text.chars().filter(|c| !c.is_ascii()).count()
}

#[test]
fn huge_plans_fit_into_a_thousand_tokens() {
    let cli = Cli::new();
    for name in ["a rather long name of a task ".repeat(30), "漢字".repeat(300), "\u{1b}[31m\n".repeat(200)]
    {
        let task = |kind: &str, number: usize| json!({"id": format!("{kind}-{number}"), "name": name});
        let mut tasks: Vec<Value> = (0..300).map(|number| task("hand", number)).collect();
        tasks.extend((0..300).map(|number| {
            let mut task = task("call", number);
            task["call"] = json!({"log": {"message": "x"}});
            task
        }));
        let plan = json!({"name": format!("p{}", name.len()), "tasks": tasks}).to_string();
        let plan = plan
            .replace("hand-", &format!("h{}-", name.len()))
            .replace("call-", &format!("c{}-", name.len()));
        let file = format!("p{}.json", name.len());
        cli.file(&file, &plan);
        cli.run(&["apply", &file]).ok();
        for kind in ["claim", "block", "fail"] {
            let ids: Vec<String> = cli.run(&["ready", "--limit", "30", "--json"]).ok().json()["data"]
                .as_array()
                .unwrap()
                .iter()
                .map(|task| task["id"].as_str().unwrap().to_owned())
                .filter(|id| id.starts_with('h'))
                .collect();
            for id in ids.iter().take(12) {
                let reason = name.chars().take(2_000).collect::<String>();
                match kind {
                    "claim" => cli.run(&["claim", id]),
                    "block" => cli.run(&["block", id, "--reason", &reason]),
                    _ => cli.run(&["fail", id, "--note", &reason]),
                };
            }
        }
        let text = cli.run(&["prime"]).ok().stdout;
        assert!(tokens(&text) <= 1_000, "{} tokens:\n{text}", tokens(&text));
        assert!(text.contains("You hold:") && text.contains("Next:"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
}
