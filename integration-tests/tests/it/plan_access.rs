//! A call with `planAccess: add` cannot change existing tasks, and one with `read` cannot change anything.

use serde_json::json;

use crate::support::{Figures, Home};

/// Commands that are refused with `planAccess: add`.
const ADDING: [&str; 5] = [
    "add-dependency mine far",
    "add-tool-call mine --tool log --args {\"message\":\"x\"}",
    "create Under --id under --parent mine",
    "note far x",
    "add-dependency far mine",
];

/// Further commands that are refused with `planAccess: read`.
const READING: [&str; 2] = ["create Late --id late", "note mine x"];

#[test]
fn calls_add_to_their_plans_and_no_more() {
    let mut figures = Figures::of("calls_add_to_their_plans_and_no_more", 0);
    let refused = codes("");
    assert!(refused.iter().all(|code| code == "7"), "{refused:?}");
    figures.add(format!("{} changes refused", refused.len()));
    let control = codes("AddAnything");
    let made = control.iter().filter(|code| *code == "0").count();
    assert_eq!(made, control.len() - 1, "the control, where only the circle is refused: {control:?}");
}

/// Returns the exit code of each attempt.
fn codes(fault: &str) -> Vec<String> {
    let home = Home::new().with_fault(fault);
    let script = |name: &str, attempts: &[&str]| {
        let program = env!("CARGO_BIN_EXE_taskpawl-under-test");
        let lines = attempts.iter().map(|attempt| {
            format!("{program} {} >/dev/null 2>&1; echo $? >>{name}.codes\n", attempt.replace('"', "\\\""))
        });
        home.file(name, &lines.collect::<String>());
    };
    script("adds", &ADDING);
    script("reads", &READING);
    let call = |access: &str, name: &str| json!({"toolName": "shell", "planAccess": access, "args": {"command": format!("sh {name}")}});
    let task = |id: &str, access: &str, name: &str| json!({"id": id, "metadata": {"toolCalls": [call(access, name)]}});
    home.create("far");
    let tasks = [
        task("adder", "add", "adds"),
        task("reader", "read", "reads"),
        json!({"id": "mine", "needs": ["adder", "reader"]}),
    ];
    home.apply(&json!({"tasks": tasks}).to_string());
    let run = home.run(&["run-all-ready", "--jobs", "1"]);
    let codes = ["adds", "reads"].map(|name| {
        let path = home.path("work").join(format!("{name}.codes"));
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{error}: {run:?}"))
    });
    let codes: String = codes.concat();
    let codes: Vec<String> = codes.lines().map(str::to_owned).collect();
    assert_eq!(codes.len(), ADDING.len() + READING.len());
    codes
}
