//! Exports over an existing file change only changed fields: all others keep their position, and comments stay.

use taskpawl_formats::{Files, Format, write};

use crate::support::{over, reading};

/// Renames the task `First` of a file, and returns the new text.
fn renamed(format: Format, name: &str, text: &str) -> String {
    let before = Files::single(name, text);
    let mut tasks = reading(format, &before).tasks;
    let task = tasks.iter_mut().find(|task| task.name == "First").unwrap();
    "Other".clone_into(&mut task.name);
    let files = over(&before, &write(format, &tasks, Some(&before)).files);
    files.get(name).unwrap().to_owned()
}

#[test]
fn fields_keep_their_order() {
    let beads = concat!(
        r#"{"_schema":1}"#,
        "\n",
        r#"{"title":"Below","id":"b","status":"open","priority":2,"issue_type":"task","updated_at":"2026-01-01T00:00:00Z","created_at":"2026-01-01T00:00:00Z","dependencies":[{"type":"parent-child","depends_on_id":"a","issue_id":"b"},{"type":"blocks","depends_on_id":"a","issue_id":"b"}]}"#,
        "\n",
        r#"{"key":"k","_type":"memory"}"#,
        "\n",
        r#"{"title":"First","_type":"issue","id":"a","zeta":{"b":1,"a":[{"y":1,"x":1}]},"status":"open","priority":1,"issue_type":"task","updated_at":"2026-01-01T00:00:00Z","created_at":"2026-01-01T00:00:00Z"}"#,
        "\n",
    );
    let claude = r#"{
  "subject": "First",
  "id": "1",
  "status": "pending",
  "zeta": 1,
  "activeForm": "Beginning",
  "description": "",
  "blocks": [],
  "blockedBy": []
}"#;
    let taskmaster = r#"{
  "zeta": {
    "tasks": [
      {
        "title": "First",
        "id": 1,
        "description": "",
        "details": "",
        "testStrategy": "",
        "status": "pending",
        "priority": "medium",
        "dependencies": [],
        "subtasks": []
      }
    ],
    "metadata": {
      "version": "1",
      "created": "2026"
    }
  },
  "alpha": {
    "tasks": []
  }
}
"#;
    let taskwarrior = r#"[
{"uuid":"8ec1b0fa-1d37-4efe-ba80-87d43af76359","status":"pending","description":"First","zeta":1,"modified":"20260101T000000Z","entry":"20260101T000000Z"}
]
"#;
    let files = [
        (Format::Beads, "i.jsonl", beads),
        (Format::Claude, "1.json", claude),
        (Format::Taskmaster, "t.json", taskmaster),
        (Format::Taskwarrior, "w.json", taskwarrior),
    ];
    for (format, name, text) in files {
        assert_eq!(renamed(format, name, text), text.replace("First", "Other"), "{}", format.name());
    }
}

#[test]
fn front_matter_keeps_comments_order_and_line_ends() {
    let text = "---\n# by hand\nstatus: To Do  # so far\n\nid: TASK-1\ntitle: First\ncreated_date: 2026-01-01 10:00\nlabels: [a, b]\nassignee: @ana\nowner:\n  name: x # who\n# the end\n---\n\nText\n\n\n";
    for text in [text.to_owned(), text.replace('\n', "\r\n")] {
        let name = "tasks/task-a.md";
        assert_eq!(renamed(Format::Backlog, name, &text), text.replace("First", "Other"));
    }
    // An entry whose name is not a plain word forces a new front matter, with the same values.
    let odd = "---\n\"a b\": 1\nid: TASK-1\ntitle: First\n---\n";
    let again = renamed(Format::Backlog, "tasks/task-a.md", odd);
    let tasks = reading(Format::Backlog, &Files::single("tasks/task-a.md", again)).tasks;
    assert_eq!((tasks[0].name.as_str(), &tasks[0].metadata.extra["backlog"]["a b"]), ("Other", &1.into()));
}

#[test]
fn new_issues_follow_the_last_one() {
    let text = "{\"id\":\"b\",\"title\":\"B\"}\n{\"id\":\"a\",\"title\":\"A\"}\n{\"_type\":\"memory\"}\n";
    let before = Files::single("i.jsonl", text);
    let mut tasks = reading(Format::Beads, &before).tasks;
    tasks.sort_by(|one, other| one.id.cmp(&other.id));
    let mut new = tasks[0].clone();
    new.id = "aa".into();
    tasks.insert(1, new);
    let files = write(Format::Beads, &tasks, Some(&before)).files;
    let begins = |line: &str| {
        line.split(',').find(|part| part.contains("\"id\"") || part.contains("memory")).unwrap().to_owned()
    };
    let lines: Vec<String> = files.get("i.jsonl").unwrap().lines().map(begins).collect();
    assert_eq!(lines, ["{\"id\":\"b\"", "{\"id\":\"a\"", "\"id\":\"aa\"", "{\"_type\":\"memory\"}"]);
}

#[test]
fn an_existing_list_of_subtasks_is_kept_up_to_date() {
    let above = "---\nid: TASK-1\nsubtasks: [task-1.2, TASK-1.1]\ntitle: First\ncreated_date: 2026-01-01\nstatus: To Do\n---\n";
    let below = |id: &str| {
        format!(
            "---\nid: {id}\ntitle: Below\ncreated_date: 2026-01-01\nparent_task_id: TASK-1\nstatus: To Do\n---\n"
        )
    };
    let mut before = Files::single("tasks/task-a.md", above);
    before.insert("tasks/task-b.md", below("TASK-1.1"));
    before.insert("tasks/task-c.md", below("TASK-1.2"));
    before.insert("config.yml", "");
    let mut tasks = reading(Format::Backlog, &before).tasks;
    assert_eq!(over(&before, &write(Format::Backlog, &tasks, Some(&before)).files), before);
    tasks.retain(|task| task.id.as_str() != "TASK-1.2");
    let files = write(Format::Backlog, &tasks, Some(&before)).files;
    let said = above.replace(" [task-1.2, TASK-1.1]", "\n  - TASK-1.1");
    assert_eq!(files.get("tasks/task-a.md"), Some(said.as_str()));
}
