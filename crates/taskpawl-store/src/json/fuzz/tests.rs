use taskpawl_fuzz::Target;

use super::file;

const FILE: Target<'_> = Target {
    name: "store files",
    corpus: &[
        r#"{"schemaVersion": 4, "revision": 0, "tasks": []}"#,
        r#"{"schemaVersion": 4, "revision": 2, "tasks": [{"id": "a", "name": "a", "description": "", "status": "todo", "priority": "medium", "dependencies": [], "subtasks": [], "metadata": {"toolCalls": [], "context": {}}, "attempt": 0, "version": 1, "createdAt": "2026-01-02T03:04:05Z", "updatedAt": "2026-01-02T03:04:05Z"}, {"id": "b", "name": "b", "description": "", "status": "todo", "priority": "low", "dependencies": ["a"], "subtasks": ["c"], "metadata": {"toolCalls": [{"id": "c1", "toolName": "log", "args": {}, "status": "pending", "attempts": 0, "origin": "cli"}], "context": {}}, "attempt": 0, "version": 1, "createdAt": "2026-01-02T03:04:05Z", "updatedAt": "2026-01-02T03:04:05Z"}, {"id": "c", "name": "c", "description": "", "status": "done", "priority": "low", "dependencies": [], "subtasks": [], "metadata": {"toolCalls": [], "context": {}}, "attempt": 0, "version": 1, "createdAt": "2026-01-02T03:04:05Z", "updatedAt": "2026-01-02T03:04:05Z"}], "index": {"nextKey": 3, "tasks": {"a": {"key": 0, "seal": "x"}, "b": {"key": 1, "seal": "y"}}}}"#,
    ],
    words: &[
        "tasks",
        "id",
        "a",
        "b",
        "c",
        "dependencies",
        "subtasks",
        "status",
        "in_progress",
        "blocked",
        "failed",
        "skipped",
        "index",
        "nextKey",
        "key",
        "seal",
        "revision",
        "plans",
        "runs",
        "events",
        "deletedIds",
        "applied",
        "undo",
        "metadata",
        "toolCalls",
        "blockedReason",
        "type",
        "dependency",
        "ids",
        "waiting",
        "forEach",
        "in",
        "trigger",
        "any_failed",
        "when",
        "false",
        "milestone",
        "4294967295",
        "attempt",
    ],
};

#[test]
fn the_corpus_is_read_or_refused() {
    FILE.corpus(file);
}

#[test]
fn hostile_files_cause_no_panic() {
    FILE.fuzz(file);
}
