//! Tests of the log of decisions.

use std::fs;

use serde_json::Value;

use crate::harness::{Cli, may_decide};

fn actions(cli: &Cli) -> Vec<String> {
    let data = cli.run(&["audit", "--json"]).ok().json()["data"]["entries"].clone();
    let text =
        |entry: &Value| format!("{} {}", entry["action"].as_str().unwrap(), entry["about"].as_str().unwrap());
    data.as_array().unwrap().iter().map(text).collect()
}

#[test]
fn each_decision_is_logged_and_a_changed_log_shows() {
    if !may_decide() {
        return;
    }
    let cli = Cli::new().with_programs();
    assert_eq!(actions(&cli), [""; 0]);
    cli.file("plan.yaml", "tasks: [{id: a, approval: {ask: Now?}}, {id: b, approval: {ask: Now?}}]");
    cli.run(&["run-all-ready", "--plan", "plan.yaml", "--quiet"]);
    cli.by_person(&["approve", "a"]).ok();
    cli.by_person(&["reject", "b"]).ok();
    cli.by_person(&["allow", "--port", "5432", "--all-plans"]).ok();
    cli.by_person(&["allow", "--remove", "--port", "5432"]).ok();
    cli.policy("[powers]\nnet = 'never'\n");
    cli.run(&["run-all-ready", "--quiet"]);
    cli.run(&["run-all-ready", "--quiet"]);
    let logged = actions(&cli);
    assert_eq!(logged[..4], ["approve a", "reject b", "grant port:5432 for all plans", "revoke port:5432"]);
    assert!(logged.len() == 5 && logged[4].starts_with("policy machine "), "{logged:?}");
    let recent = cli.run(&["audit", "--since", "1h"]).ok();
    assert_eq!(recent.stdout.lines().count(), 5, "{recent}");

    let file = cli.path(".local/state/taskpawl/audit.ndjson");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("revoke", "grant")).unwrap();
    let changed = cli.run(&["audit"]);
    assert_eq!(changed.code, Some(1), "{changed}");
    assert!(changed.stderr.contains("line 5 does not follow from the line before"), "{changed}");
}
