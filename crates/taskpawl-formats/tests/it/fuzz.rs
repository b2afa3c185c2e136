//! Hostile input for the readers: it is refused or read, and never causes a panic. Tasks that were read have the same meaning after an
//! export and another import.

use taskpawl_formats::{Files, Format, read, write};
use taskpawl_fuzz::Target;
use taskpawl_model::task::{Status, Task};

use crate::support::{options, over};

const WORDS: &[&str] = &[
    "id",
    "title",
    "name",
    "status",
    "priority",
    "dependencies",
    "metadata",
    "taskpawl",
    "id=a status=failed",
    "a",
    "b",
    "2026-01-01T00:00:00Z",
    "20260101T000000Z",
    "null",
    "-1",
    "1e400",
    "[]",
    "{}",
    "\u{0}",
    "é",
    "\n",
    "---\n",
    "<!--",
    "-->",
    "done",
    "todo",
    "blocked",
];

fn name(format: Format) -> &'static str {
    if format == Format::Backlog { "tasks/task-a.md" } else { "a.json" }
}

/// Reads, writes and reads again. Returns true if the input is of the format.
fn round(format: Format, text: &str) -> bool {
    let before = Files::single(name(format), text);
    let Ok(reading) = read(format, &before, &options()) else { return false };
    for before in [Some(&before), None] {
        let written = write(format, &reading.tasks, before);
        let files = before.map_or_else(|| written.files.clone(), |before| over(before, &written.files));
        let again = match read(format, &files, &options()) {
            Ok(again) => again,
            Err(error) => panic!("what was written cannot be read: {error}\n{files:?}"),
        };
        let known = said(&reading.tasks);
        assert_eq!(said(&again.tasks), known, "{files:?}");
    }
    true
}

fn said(tasks: &[Task]) -> Vec<(String, String, Status)> {
    let mut said: Vec<_> =
        tasks.iter().map(|task| (task.id.to_string(), task.name.clone(), task.status)).collect();
    said.sort();
    said
}

fn fuzz(format: Format, corpus: &'static [&'static str], words: &[&str]) {
    let words: Vec<&str> = WORDS.iter().chain(words).copied().collect();
    let target = Target { name: format.name(), corpus, words: &words };
    // Each input is read and written several times.
    target.fuzz_part(10, |text| round(format, text));
}

#[test]
fn beads() {
    fuzz(
        Format::Beads,
        &[
            include_str!("../samples/beads.jsonl"),
            "{\"id\":\"a\",\"title\":\"A\",\"status\":\"closed\",\"close_reason\":\"failed: x\"}\n{\"id\":\"b/\",\"title\":\"B\",\"dependencies\":[{\"depends_on_id\":\"a\",\"type\":\"blocks\"}]}",
            "{\"_schema\":1}",
        ],
        &[
            "close_reason",
            "failed: ",
            "cancelled",
            "depends_on_id",
            "type",
            "blocks",
            "parent-child",
            "comments",
            "_type",
            "memory",
            "tombstone",
        ],
    );
}

#[test]
fn taskmaster() {
    fuzz(
        Format::Taskmaster,
        &[
            include_str!("../samples/taskmaster.json"),
            "{\"tasks\":[{\"id\":\"1\",\"title\":\"A\",\"subtasks\":[{\"id\":1,\"title\":\"B\",\"dependencies\":[1]}]}]}",
        ],
        &["tasks", "subtasks", "master", "details", "1.1", "pending", "in-progress"],
    );
}

#[test]
fn claude() {
    fuzz(
        Format::Claude,
        &[
            include_str!("../samples/claude/2.json"),
            include_str!("../samples/claude-todos.json"),
            "{\"id\":3,\"subject\":\"A\",\"status\":\"pending\",\"metadata\":{\"taskpawl\":\"id=b status=failed\"}}",
        ],
        &["subject", "content", "blockedBy", "blocks", "owner", "activeForm", "completed", "pending"],
    );
}

#[test]
fn taskwarrior() {
    fuzz(
        Format::Taskwarrior,
        &[
            "[{\"uuid\":\"8ec1b0fa-1d37-4efe-ba80-87d43af76359\",\"description\":\"A\",\"status\":\"pending\",\"start\":\"20261122T144015Z\",\"depends\":\"x,y\",\"tags\":[\"a\"],\"annotations\":[{\"entry\":\"20261122T144015Z\",\"description\":\"n\"}],\"priority\":\"H\"}]",
            "{\"uuid\":\"x\",\"description\":\"A\",\"status\":\"recurring\"},\n{\"uuid\":\"y\",\"description\":\"B\",\"status\":\"waiting\"}",
        ],
        &["uuid", "description", "depends", "entry", "start", "pending", "waiting", "H"],
    );
}

#[test]
fn backlog() {
    fuzz(
        Format::Backlog,
        &[
            "---\nid: TASK-1\ntitle: Design the parser\nstatus: Done\nassignee:\n  - '@ana'\ncreated_date: '2026-11-22 14:40'\nlabels: []\ndependencies: []\npriority: high\nextra: {a: [1, b]}\n---\n\n## Description\n\n<!-- SECTION:DESCRIPTION:BEGIN -->\nText\n<!-- SECTION:DESCRIPTION:END -->\n\n## Comments\n\n<!-- COMMENTS:BEGIN -->\nauthor: @bo\ncreated: 2026-11-22 14:40\n---\nLooks fine\n---\n<!-- COMMENTS:END -->\n",
            "---\nid: task-2\ntitle: \"B: \\u00e9\"\nassignee: [@x, y]\n---\n## Description\nplain\n## Other\nx\n<!-- taskpawl id=b status=failed -->",
            "---\r\nid: TASK-3\r\ntitle: C\r\n---\r\ntext\r\n",
        ],
        &[
            "assignee",
            "labels",
            "parent_task_id",
            "created_date",
            "'@a'",
            "@a",
            "TASK-1",
            "To Do",
            "## Description",
            "<!-- SECTION:DESCRIPTION:BEGIN -->",
            "<!-- SECTION:DESCRIPTION:END -->",
            "<!-- COMMENTS:BEGIN -->",
            "<!-- COMMENTS:END -->",
            "- ",
            ": ",
            "|\n",
            "&a",
            "*a",
        ],
    );
}

#[test]
fn markdown() {
    fuzz(
        Format::Markdown,
        &[
            include_str!("../samples/checklist.md"),
            "- [ ] a <!-- taskpawl id=x status=failed priority=low -->\n\t- [x] b\n- [ ]\n",
        ],
        &["- [ ] ", "  - [x] ", "1. [ ] ", "# ", "```", "\t", "[/]", "* [-] x", "<!-- taskpawl id=a -->"],
    );
}

#[test]
fn tasks() {
    fuzz(
        Format::Tasks,
        &[
            include_str!("../samples/tasks.json"),
            "[{\"id\":\"a\",\"name\":\"A\",\"metadata\":{\"toolCalls\":[{\"toolName\":\"log\",\"args\":{\"message\":\"x\"}}]}}]",
        ],
        &[
            "toolCalls",
            "toolName",
            "args",
            "context",
            "subtasks",
            "parent",
            "blockedReason",
            "dueDate",
            "labels",
            "exec",
        ],
    );
}

#[test]
fn spec_kit() {
    fuzz(
        Format::SpecKit,
        &[
            include_str!("../samples/spec-kit/specs/001-photo-albums/tasks.md"),
            include_str!("../samples/kiro/.kiro/specs/login/tasks.md"),
        ],
        &["- [ ] ", "T001 ", "[P] ", "[US1] ", "## Phase 2", "- [ ]* ", "<!-- taskpawl id=a -->"],
    );
}

#[test]
fn todo_txt() {
    fuzz(
        Format::TodoTxt,
        &[
            include_str!("../samples/todo.txt"),
            "x 2026-01-02 a taskpawl:id=b taskpawl:status=skipped\n(B) x a\n",
        ],
        &["x ", "(A) ", "2026-01-02 ", "+a", "@b", "due:2026-01-02", "pri:A", "taskpawl:id=c"],
    );
}

#[test]
fn shrimp() {
    fuzz(
        Format::Shrimp,
        &[
            include_str!("../samples/shrimp.json"),
            "{\"tasks\":[{\"id\":1,\"name\":\"A\",\"status\":\"completed\"}]}",
        ],
        &["tasks", "taskId", "dependencies", "pending", "completed", "in_progress", "relatedFiles"],
    );
}

#[test]
fn a_planted_panic_is_found() {
    let target = Target { name: "planted", corpus: &["- [ ] a\n"], words: &["- [ ] ", "x"] };
    let found = target.search(100_000, 1, |text| {
        let files = Files::single("a.md", text);
        let tasks = read(Format::Markdown, &files, &options()).unwrap().tasks;
        assert!(tasks.len() < 3, "three");
        !tasks.is_empty()
    });
    assert!(found.is_some_and(|found| found.message.contains("three")));
}
