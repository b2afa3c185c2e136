//! Tests of kits: grants with a name for named tasks, here with an agent of ssh that the test plays.

use std::os::unix::net::UnixListener;

use serde_json::{Value, json};

use crate::harness::{Cli, Run, may_decide};

/// A project with an agent of ssh. Both tasks connect to it.
struct Scene {
    cli: Cli,
    _agent: UnixListener,
}

impl Scene {
    fn new() -> Self {
        let cli = Cli::new().with_programs();
        let socket = cli.path("agent.sock");
        let agent = UnixListener::bind(&socket).unwrap();
        let cli = cli.with("SSH_AUTH_SOCK", socket.to_str().unwrap());
        let connect =
            "import os, socket\nsocket.socket(socket.AF_UNIX).connect(os.environ['SSH_AUTH_SOCK'])\n";
        cli.file("connect.py", connect);
        let scene = Self { cli, _agent: agent };
        scene.apply("python3 connect.py");
        scene
    }

    fn apply(&self, push: &str) {
        let plan = json!({"name": "p", "tasks": [
            {"id": "push", "run": push},
            {"id": "other", "run": "python3 connect.py"},
        ]});
        self.cli.file("p.json", &plan.to_string());
        self.cli.run(&["apply", "p.json", "--redo-changed", "--quiet"]).ok();
    }

    /// Runs the plan again, and returns the statuses of both tasks.
    fn statuses(&self) -> (Value, Value) {
        self.cli.run(&["run-all-ready", "--plan", "p.json", "--fresh", "--quiet"]);
        let of = |task: &str| {
            let shown = self.cli.run(&["show", task, "--json"]).ok().json()["data"].clone();
            if shown["metadata"]["toolCalls"][0]["result"]["sandbox"]["isolation"].is_string() {
                return Value::Null;
            }
            shown["status"].clone()
        };
        (of("push"), of("other"))
    }

    /// Grants the kit to `push`, and answers yes.
    fn give(&self, more: &[&str]) -> Run {
        let args = [&["allow", "kit:ssh-agent", "--task", "push"], more].concat();
        let person = self.cli.by_person_with(&args, "y\n");
        person.ok()
    }
}

fn done() -> Value {
    json!("done")
}

fn failed() -> Value {
    json!("failed")
}

#[test]
fn a_kit_is_for_the_named_task_as_it_was_defined() {
    if !may_decide() {
        return;
    }
    let scene = Scene::new();
    if scene.statuses().0.is_null() {
        return taskpawl_fuzz::skip("mount namespaces", "kits", "level B or lower".to_owned());
    }
    assert_eq!(scene.statuses(), (failed(), failed()));
    let given = scene.give(&[]);
    let text = given.to_string();
    assert!(
        text.contains("socket:") && text.contains("env:SSH_AUTH_SOCK") && text.contains("connect.py"),
        "{text}"
    );
    assert_eq!(scene.statuses(), (done(), failed()));
    let listed = scene.cli.run(&["allow", "--list", "--json"]).ok().json()["data"][0].clone();
    assert_eq!((&listed["kit"], &listed["tasks"]), (&json!("ssh-agent"), &json!(["push"])));
    assert!(listed["lastUsed"].is_string(), "{listed}");
    // A changed definition asks again, with the difference.
    scene.apply("python3 connect.py; true");
    let run = scene.cli.run(&["run-all-ready", "--plan", "p.json", "--fresh"]);
    assert!(run.stderr.contains("task `push` has changed and does not have the kit ssh-agent"), "{run}");
    assert_eq!(scene.statuses(), (failed(), failed()));
    let again = scene.give(&[]).to_string();
    assert!(again.contains("- ") && again.contains("+ ") && again.contains("connect.py; true"), "{again}");
    assert_eq!(scene.statuses(), (done(), failed()));
    // Another grant widens nothing for this task.
    scene.cli.by_person_with(&["allow", "kit:ssh-agent", "--task", "other", "--agents"], "y\n").ok();
    let listed = scene.cli.run(&["allow", "--list", "--json"]).ok().json()["data"].clone();
    let of = |at: usize| (listed[at]["tasks"].clone(), listed[at]["agents"].clone());
    assert_eq!((of(0), of(1)), ((json!(["push"]), json!(false)), (json!(["other"]), json!(true))));
    assert_eq!(scene.statuses(), (done(), done()));
    scene.cli.by_person(&["allow", "--remove", "kit:ssh-agent"]).ok();
    assert_eq!(scene.statuses(), (failed(), failed()));
}

#[test]
fn a_kit_without_use_is_forgotten() {
    if !may_decide() {
        return;
    }
    let scene = Scene::new();
    scene.give(&[]);
    let listed =
        |cli: &Cli| cli.run(&["allow", "--list", "--json"]).ok().json()["data"].as_array().unwrap().len();
    assert_eq!(listed(&scene.cli), 1);
    let later = scene.cli.with("TASKPAWL_TEST_NOW", "2099-01-01T00:00:00Z");
    assert_eq!(listed(&later), 0);
}

#[test]
fn a_kit_is_for_people_and_needs_the_policy() {
    if !may_decide() {
        return;
    }
    let scene = Scene::new();
    let give = ["allow", "kit:ssh-agent", "--task", "push"];
    assert_eq!(scene.cli.run(&give).code, Some(7));
    assert_eq!(scene.cli.by_person(&["allow", "kit:ssh-agent"]).code, Some(2));
    assert_eq!(scene.cli.by_person(&["allow", "kit:aws", "--task", "push"]).code, Some(2));
    assert_eq!(scene.cli.by_person(&["allow", "kit:docker", "--host", "a.test"]).code, Some(2));
    scene.cli.policy("[powers]\nkits = 'never'\n");
    let refused = scene.cli.by_person_with(&give, "y\n");
    assert_eq!(refused.code, Some(7), "{refused}");
    // A policy that forbids it later holds for what is granted already.
    scene.cli.policy("");
    scene.give(&[]);
    scene.cli.policy("[powers]\nkits = 'never'\n");
    assert_ne!(scene.statuses().0, done());
}
