//! The level of the sandbox in reports.

use serde_json::{Value, json};
use taskpawl_report::{Included, LogBuilder, RunEnd, RunLog, html, markdown};

use crate::support::{ended, event, run, started, status};

/// Returns the log of a run with a task for each sandbox, whose calls are those of `tool`.
fn log(tool: &str, sandboxes: &[Value]) -> RunLog {
    let mut builder = LogBuilder::new(&run(), RunEnd::Exit(0), Included::default());
    for (number, sandbox) in sandboxes.iter().enumerate() {
        let id = format!("t{number}");
        builder.take(&event(&id, 0, &status("todo", "in_progress", None)));
        builder.take(&event(&id, 0, &started("c1")));
        builder.take(&event(&id, 1, &ended("c1", "succeeded", None)));
        builder.take(&event(&id, 1, &status("in_progress", "done", None)));
        let task = json!({
            "id": id, "name": id, "status": "done", "attempt": 1,
            "createdAt": "2026-01-02T03:04:05Z", "updatedAt": "2026-01-02T03:04:05Z",
            "metadata": {"context": {}, "toolCalls": [{
                "id": "c1", "toolName": tool, "args": {}, "status": "succeeded", "attempts": 1, "origin": "cli",
                "result": {"exitCode": 0, "sandbox": sandbox},
            }]},
        });
        builder.describe(&serde_json::from_value(task).unwrap());
    }
    builder.finish()
}

#[test]
fn a_report_names_every_level_and_markdown_only_lower_ones() {
    let whole = json!({"level": "standard"});
    let (b, off) = (json!({"level": "standard", "isolation": "B"}), json!({"level": "off"}));
    for (sandboxes, page, summary) in [
        (vec![], None, None),
        (vec![whole.clone(), whole.clone()], Some("level A"), None),
        (vec![b.clone()], Some("level B"), Some("Sandbox of programs: level B.")),
        (
            vec![whole, off, b],
            Some("level A; level B; off"),
            Some("Sandbox of programs: level A; level B; off."),
        ),
    ] {
        let log = log("shell", &sandboxes);
        let (html, markdown) = (html(&log), markdown(&log));
        match page {
            Some(text) => assert!(html.contains(&format!("<dt>Sandbox</dt><dd>{text}</dd>")), "{html}"),
            None => assert!(!html.contains("Sandbox"), "{html}"),
        }
        match summary {
            Some(text) => assert!(markdown.contains(text), "{markdown}"),
            None => assert!(!markdown.contains("Sandbox"), "{markdown}"),
        }
    }
}

#[test]
fn the_words_of_another_tool_are_not_taken() {
    let forged = json!({"level": "standard", "isolation": "<b>A+</b>"});
    assert!(log("server/tool", &[json!({"level": "off"})]).sandboxes.is_empty());
    assert_eq!(log("exec", &[forged]).sandboxes.to_string(), "level A");
}
