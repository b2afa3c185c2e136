//! Plans that the host reports itself, and its own messages to the notification program.

use serde_json::json;
use taskpawl_engine::{QuietPlans, RunOptions};

use crate::support::Lab;

const FAILS: &str = "tasks: [{id: a, call: {ok: {}}}, {id: b, call: {bad: {}}}]";

/// Options whose notification program adds the word of each event to a file.
fn options(lab: &Lab) -> RunOptions {
    let script =
        format!("echo $TASKPAWL_EVENT >> {0}; cat >> {0}.json", lab.files.path().join("said").display());
    let notify = ["sh", "-c", &script].map(str::to_owned).to_vec();
    RunOptions { notify, ..RunOptions::default() }
}

fn said(lab: &Lab, name: &str) -> String {
    std::fs::read_to_string(lab.files.path().join(name)).unwrap_or_default()
}

#[tokio::test]
async fn runs_are_silent_about_quiet_plans_alone() {
    let lab = Lab::new(FAILS);
    let quiet = QuietPlans::default();
    quiet.insert("p");
    let options = RunOptions { quiet_plans: quiet, ..options(&lab) };
    assert_eq!(lab.run_with(options.clone()).await.exit, 1);
    assert_eq!(said(&lab, "said"), "", "neither the failure nor the end");
    lab.apply(&FAILS.replace("id: ", "id: x"), "other");
    assert_eq!(lab.run_with(options).await.exit, 1);
    assert_eq!(said(&lab, "said"), "failed\nfinished\n");
}

#[tokio::test]
async fn the_host_sends_messages_of_its_own() {
    let lab = Lab::new("tasks: []");
    let details = json!({"schedule": "nightly"}).as_object().cloned().unwrap();
    let warnings = lab.engine.notify("missed", details.clone(), &options(&lab)).await.unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(said(&lab, "said"), "missed\n");
    let message: serde_json::Value = serde_json::from_str(&said(&lab, "said.json")).unwrap();
    assert_eq!((&message["event"], &message["schedule"]), (&json!("missed"), &json!("nightly")));
    assert!(message["at"].is_string() && message.get("run").is_none(), "{message}");
    let failing = RunOptions { notify: vec!["/nowhere/at-all".to_owned()], ..RunOptions::default() };
    assert_eq!(lab.engine.notify("missed", details.clone(), &failing).await.unwrap().len(), 1);
    let nothing = lab.engine.notify("missed", details, &RunOptions::default()).await.unwrap();
    assert_eq!(nothing, Vec::<String>::new());
}
