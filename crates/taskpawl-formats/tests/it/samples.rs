//! Samples are read completely, and written back unchanged.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use taskpawl_formats::{Files, Format, Options, acp, read, write, write_over};
use taskpawl_model::task::{BlockedReason, Priority, Status};

use crate::support::{ids, options, over, reading, sample, samples, task, writable};

#[test]
fn a_sample_survives_a_round_trip() {
    for format in Format::ALL.iter().copied() {
        let before = sample(format);
        let tasks = reading(format, &before).tasks;
        assert!(tasks.len() >= 3, "{}", format.name());
        let written = write(format, &tasks, Some(&before));
        assert_eq!(meaning(format, &written.files), meaning(format, &before), "{}", format.name());
        let again = reading(format, &over(&before, &written.files)).tasks;
        assert_eq!(json!(again), json!(tasks), "{}", format.name());
    }
}

#[test]
fn an_export_without_changes_writes_the_same_file() {
    for format in [Format::Beads, Format::Backlog, Format::Markdown] {
        let before = sample(format);
        let written = write(format, &reading(format, &before).tasks, Some(&before)).files;
        assert_eq!(over(&before, &written), before, "{}", format.name());
    }
}

/// Checks that an export to a new file loses no task and no field.
#[test]
fn a_sample_keeps_its_tasks_in_a_new_file() {
    for format in writable() {
        let before = sample(format);
        let tasks = reading(format, &before).tasks;
        let written = write(format, &tasks, None);
        let mut again = reading(format, &written.files).tasks;
        // Subtasks that are not next to their parent in the file move below it in a new checklist.
        again.sort_by_key(|task| tasks.iter().position(|other| other.id == task.id));
        assert_eq!(json!(again), json!(tasks), "{}", format.name());
    }
}

/// Returns the content of files, without the fields that their programs compute.
fn meaning(format: Format, files: &Files) -> BTreeMap<String, Value> {
    let drop = |value: &Value, names: &[&str]| {
        let mut map = value.as_object().cloned().unwrap_or_default();
        map.retain(|name, _| !names.contains(&name.as_str()));
        map
    };
    match format {
        Format::Beads => {
            let lines = files.iter().flat_map(|(_, text)| text.lines());
            let counts = ["dependency_count", "dependent_count", "comment_count", "parent"];
            let line = |(number, line): (usize, &str)| {
                let value: Value = serde_json::from_str(line).unwrap();
                let name = value["id"].as_str().map_or_else(|| number.to_string(), str::to_owned);
                let mut map = drop(&value, &counts);
                map.remove("_type");
                (name, Value::Object(map))
            };
            let mut all: Vec<&str> = lines.collect();
            all.sort_by_key(|line| line.contains("\"id\""));
            all.into_iter().enumerate().map(line).collect()
        }
        Format::Taskwarrior => {
            let list: Vec<Value> = files
                .iter()
                .flat_map(|(_, text)| serde_json::from_str::<Vec<Value>>(text).unwrap())
                .collect();
            list.iter()
                .map(|task| {
                    (task["uuid"].as_str().unwrap().to_owned(), Value::Object(drop(task, &["id", "urgency"])))
                })
                .collect()
        }
        Format::Taskmaster => files
            .iter()
            .map(|(name, text)| (name.to_owned(), plain(serde_json::from_str(text).unwrap())))
            .collect(),
        Format::Claude => {
            files.iter().map(|(name, text)| (name.to_owned(), serde_json::from_str(text).unwrap())).collect()
        }
        Format::Tasks => {
            let text = files.iter().map(|(_, text)| text.replace("\"cli\"", "\"agent\"")).collect::<String>();
            BTreeMap::from([("tasks".to_owned(), serde_json::from_str(&text).unwrap())])
        }
        Format::Backlog => files
            .iter()
            .filter(|(name, _)| name.starts_with("tasks/") || name.starts_with("completed/"))
            .map(|(name, text)| (name.to_owned(), json!(unescaped(text).trim())))
            .collect(),
        Format::Markdown | Format::SpecKit | Format::OpenSpec | Format::Kiro | Format::TodoTxt => {
            files.iter().map(|(name, text)| (name.to_owned(), json!(text))).collect()
        }
        Format::Shrimp | Format::GitHub => {
            files.iter().map(|(name, text)| (name.to_owned(), serde_json::from_str(text).unwrap())).collect()
        }
    }
}

/// Replaces the escapes of a title that may be written without them.
fn unescaped(text: &str) -> String {
    text.replace(r#""Größe prüfen — 漢字 \U0001F389: \"quoted\"""#, r#"'Größe prüfen — 漢字 🎉: "quoted"'"#)
}

/// Returns Task Master's content in one of its equivalent forms: dependencies as strings, and without redundant fields.
fn plain(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut out = Map::new();
            for (name, value) in map {
                match (name.as_str(), value) {
                    ("parentId", _) => {}
                    ("dependencies", Value::Array(list)) => {
                        let texts = list
                            .into_iter()
                            .map(|on| on.as_str().map_or_else(|| on.to_string(), str::to_owned));
                        out.insert(name, json!(texts.collect::<Vec<_>>()));
                    }
                    // Some subtasks have an empty field, others have none.
                    ("testStrategy", value) if value == "" => {}
                    (_, value) => {
                        out.insert(name, plain(value));
                    }
                }
            }
            Value::Object(out)
        }
        Value::Array(list) => list.into_iter().map(plain).collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}

#[test]
fn beads_has_statuses_links_and_comments() {
    let read = reading(Format::Beads, &sample(Format::Beads));
    let design = task(&read, "bd-a1b2.1");
    assert_eq!((design.status, design.priority), (Status::Done, Priority::Critical));
    assert_eq!(design.parent.as_ref().unwrap().as_str(), "bd-a1b2");
    assert_eq!(design.options["estimate"], "90m");
    assert_eq!(design.options["labels"], json!(["core", "parser"]));
    assert_eq!((design.notes[0].actor.as_str(), design.notes[0].text.as_str()), ("Bo", "Looks fine"));
    let parser = task(&read, "bd-a1b2.2");
    assert_eq!(parser.status, Status::InProgress);
    assert_eq!(parser.claim.as_ref().unwrap().actor, "bo");
    assert_eq!(ids_of(&parser.dependencies), ["bd-a1b2.1"]);
    assert_eq!(parser.metadata.extra["beads"]["external_ref"], "gh-9");
    let spaces = task(&read, "bd-f00d");
    assert_eq!(spaces.options["links"], json!({"relatesTo": ["bd-a1b2.1"], "discoveredFrom": ["bd-a1b2.2"]}));
    assert_eq!(task(&read, "bd-c0de").status, Status::Cancelled);
    assert_eq!(task(&read, "bd-c0de").error.as_deref(), Some("the same as bd-f00d"));
    assert!(
        matches!(&task(&read, "bd-d00r").blocked_reason, Some(BlockedReason::Manual { text }) if text.contains("deferred"))
    );
    assert_eq!(read.left_out.len(), 1, "{:?}", read.left_out);
}

fn ids_of(ids: &[taskpawl_model::value::TaskId]) -> Vec<&str> {
    ids.iter().map(taskpawl_model::value::TaskId::as_str).collect()
}

#[test]
fn task_master_has_tags_and_subtasks() {
    let read = reading(Format::Taskmaster, &sample(Format::Taskmaster));
    let all = ["feature.1", "feature.2", "1", "2", "2.1", "2.2", "3", "4", "4.1", "5", "6"];
    assert_eq!(sorted(ids(&read.tasks)), sorted(all.to_vec()));
    let tree = task(&read, "2.2");
    assert_eq!((tree.parent.as_ref().unwrap().as_str(), ids_of(&tree.dependencies)), ("2", vec!["2.1"]));
    assert_eq!(task(&read, "1").metadata.extra["taskmaster"]["details"], "Read it.\nAll of it.");
    assert_eq!(task(&read, "feature.1").name, "Try it");
    assert_eq!(task(&read, "3").status, Status::Blocked);
    assert_eq!(ids_of(&task(&read, "3").dependencies), ["1", "2"]);
    let check = task(&read, "4");
    assert_eq!((check.name.as_str(), check.status), ("Größe prüfen — 漢字 🎉", Status::InProgress));
    assert_eq!(ids_of(&task(&read, "4.1").dependencies), ["2.2"]);
    assert_eq!(ids_of(&task(&read, "5").dependencies), ["2.1"]);
    assert_eq!(ids_of(&task(&read, "feature.2").dependencies), ["feature.1"]);
    assert_eq!((task(&read, "5").status, task(&read, "6").status), (Status::Blocked, Status::Cancelled));
}

fn sorted(mut ids: Vec<&str>) -> Vec<&str> {
    ids.sort_unstable();
    ids
}

#[test]
fn taskwarrior_has_starts_annotations_and_user_attributes() {
    let read = reading(Format::Taskwarrior, &sample(Format::Taskwarrior));
    let design = read.tasks.iter().find(|task| task.name == "Design the parser").unwrap();
    assert_eq!((design.status, design.priority), (Status::InProgress, Priority::High));
    assert_eq!(design.notes[0].text, "First remark");
    assert_eq!(design.metadata.extra["taskwarrior"]["project"], "sample.core");
    assert_eq!(design.metadata.extra["taskwarrior"]["estimate"], "PT2H");
    assert_eq!(design.notes[1].text, "Zweite Anmerkung: https://example.org/a?b=c&d=é");
    assert_eq!(design.metadata.extra["taskwarrior"]["points"], 3.5);
    let check = read.tasks.iter().find(|task| task.name.starts_with("Größe prüfen — 漢字 🎉")).unwrap();
    assert_eq!(
        (&check.options["labels"], &check.options["dueDate"]),
        (&json!(["grün"]), &json!("2026-12-24T18:00:00Z"))
    );
    let release = read.tasks.iter().find(|task| task.name.starts_with("Release")).unwrap();
    assert_eq!(release.dependencies.len(), 2);
    let states: Vec<Status> = read.tasks.iter().map(|task| task.status).collect();
    assert!(
        states.contains(&Status::Cancelled)
            && states.contains(&Status::Done)
            && states.contains(&Status::Blocked)
    );
}

#[test]
fn backlog_has_front_matter_and_sections() {
    let read = reading(Format::Backlog, &sample(Format::Backlog));
    let design = task(&read, "TASK-1");
    assert_eq!(design.description, "Read the format.\n\nSecond paragraph.");
    assert_eq!((design.status, design.priority), (Status::Done, Priority::High));
    assert_eq!(
        (design.options["assignee"].as_str(), design.options["dueDate"].as_str()),
        (Some("ana"), Some("2026-12-01T00:00:00Z"))
    );
    let parser = task(&read, "TASK-2");
    assert_eq!(ids_of(&parser.dependencies), ["TASK-1"]);
    assert_eq!((parser.notes[0].actor.as_str(), parser.notes[0].text.as_str()), ("bo", "Looks fine"));
    assert_eq!(task(&read, "TASK-2.1").parent.as_ref().unwrap().as_str(), "TASK-2");
    assert_eq!(parser.notes[1].text, "Zweite Zeile:\n\n- eins\n- zwei");
    assert_eq!(task(&read, "TASK-2.2").name, "yes");
    let check = task(&read, "TASK-5");
    assert_eq!(
        (check.name.as_str(), ids_of(&check.dependencies)),
        ("Größe prüfen — 漢字 🎉: \"quoted\"", vec!["TASK-2.1"])
    );
    assert!(check.description.contains("\n## no heading\n<!-- no section -->\n"), "{}", check.description);
    assert_eq!(
        (task(&read, "TASK-6").status, &task(&read, "TASK-6").options["labels"]),
        (Status::Done, &json!(["old"]))
    );
    assert!(read.left_out.iter().any(|left| left.why == "it is a draft"));
}

#[test]
fn claude_names_either_side_of_a_dependency() {
    let mut files = sample(Format::Claude);
    let text = files.get("3.json").unwrap().replace("[\"2\"]", "[]");
    files.insert("3.json", text);
    let read = reading(Format::Claude, &files);
    assert_eq!(ids_of(&task(&read, "3").dependencies), ["2"]);
    assert_eq!(task(&read, "2").claim.as_ref().unwrap().actor, "worker-1");
    let todos = crate::support::files(Format::Claude, &samples().join("claude-todos.json"));
    let tasks = reading(Format::Claude, &todos).tasks;
    assert_eq!(ids(&tasks), ["design-the-parser", "write-the-parser", "release"]);
    let again = write(Format::Claude, &tasks, Some(&todos)).files;
    let value = |files: &Files| serde_json::from_str::<Value>(files.iter().next().unwrap().1).unwrap();
    assert_eq!(value(&again), value(&todos));
}

#[test]
fn a_checklist_is_nested_and_excludes_code_blocks() {
    let read = reading(Format::Markdown, &sample(Format::Markdown));
    assert_eq!(
        ids(&read.tasks),
        [
            "design-the-parser",
            "read-the-format",
            "write-down-its-fields",
            "write-the-parser",
            "errors",
            "handle-the-old-format",
            "handle-errors",
            "ship-it"
        ]
    );
    assert_eq!(task(&read, "read-the-format").parent.as_ref().unwrap().as_str(), "design-the-parser");
    assert_eq!(task(&read, "errors").parent.as_ref().unwrap().as_str(), "write-the-parser");
    assert_eq!(task(&read, "handle-errors").parent, None);
    assert_eq!(task(&read, "write-the-parser").status, Status::InProgress);
    assert_eq!(task(&read, "handle-the-old-format").status, Status::InProgress);
    assert_eq!(task(&read, "ship-it").metadata.extra["markdown"]["section"], "Release");
}

#[test]
fn a_checklist_changes_only_in_lines_of_changed_tasks() {
    let before = sample(Format::Markdown);
    let mut tasks = reading(Format::Markdown, &before).tasks;
    tasks.iter_mut().find(|task| task.id.as_str() == "ship-it").unwrap().status = Status::Done;
    let written = write(Format::Markdown, &tasks, Some(&before)).files;
    let text = before.get("checklist.md").unwrap().replace("+ [ ] Ship it", "+ [x] Ship it");
    assert_eq!(written.get("checklist.md"), Some(text.as_str()));
}

#[test]
fn tasks_json_has_exactly_the_common_fields() {
    let mut tasks = reading(Format::Tasks, &sample(Format::Tasks)).tasks;
    assert!(matches!(&tasks[2].blocked_reason, None | Some(BlockedReason::Manual { .. })));
    assert_eq!(tasks[2].parent.as_ref().unwrap().as_str(), "write");
    assert_eq!(tasks[1].metadata.tool_calls[0].origin.as_str(), "agent");
    tasks[0].options.insert("labels".to_owned(), json!(["core"]));
    let written = write(Format::Tasks, &tasks, None);
    let value: Value = serde_json::from_str(written.files.get("tasks.json").unwrap()).unwrap();
    for task in value["tasks"].as_array().unwrap() {
        let mut names: Vec<&str> = task.as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        let mut always = [
            "id",
            "name",
            "description",
            "status",
            "priority",
            "dependencies",
            "subtasks",
            "metadata",
            "createdAt",
            "updatedAt",
        ];
        always.sort_unstable();
        assert_eq!(names, always);
        assert_eq!(
            task["metadata"].as_object().unwrap().keys().collect::<Vec<_>>(),
            ["context", "toolCalls"]
        );
    }
    assert!(written.left_out.iter().any(|left| left.what == "design: labels"), "{:?}", written.left_out);
}

#[test]
fn a_prefix_is_added_on_import_and_removed_on_export() {
    for format in
        Format::ALL.iter().copied().filter(|format| !matches!(format, Format::Markdown | Format::Tasks))
    {
        let before = sample(format);
        let prefixed = Options { prefix: Some("p".to_owned()), ..options() };
        let reading = read(format, &before, &prefixed).unwrap();
        let tasks = &reading.tasks;
        assert!(
            tasks.iter().all(|task| task.id.as_str().starts_with("p.")),
            "{}: {:?}",
            format.name(),
            ids(tasks)
        );
        let written = write_over(format, tasks, &before, &reading);
        assert_eq!(meaning(format, &written.files), meaning(format, &before), "{}", format.name());
    }
}

#[test]
fn a_plan_of_the_agent_client_protocol_has_open_and_finished_tasks() {
    let tasks = reading(Format::Beads, &sample(Format::Beads)).tasks;
    let plan = acp::plan(&tasks);
    assert_eq!(plan["sessionUpdate"], "plan");
    let entries = plan["entries"].as_array().unwrap();
    assert_eq!(entries.len(), tasks.len() - 1, "what was cancelled is no part of it");
    assert_eq!(
        entries[1],
        json!({ "content": "Design the parser", "priority": "high", "status": "completed" })
    );
    assert_eq!(entries[2]["status"], "in_progress");
}
