//! Markdown for the summary of a CI step.

use std::fmt::Write as _;

use taskpawl_model::value::format_time;
use taskpawl_text::{cut, duration, escaped, plain_line, without_sequences};

use crate::log::{Outcome, RunLog, TaskLog};

/// The most bytes of a summary: GitHub refuses one of more than 1 MiB.
const MAX_BYTES: usize = 900_000;

/// The most characters of one block of output.
const MAX_OUTPUT: usize = 8_000;

/// Returns the run as Markdown. Texts of tasks and tools stand in elements of code with every mark escaped, so that
/// they cannot add markup, links or mentions.
pub fn markdown(log: &RunLog) -> String {
    let mut text = format!("### taskpawl: {}\n\n", log.end_text());
    let scope = if log.scope.is_empty() { "everything".to_owned() } else { log.scope.join(" ") };
    let _ = writeln!(
        text,
        "{} in {}, run {} of {}, started {}.\nIncluded beyond names, statuses, times and exit codes: {}.\n",
        log.counts_text(),
        duration(log.took()),
        code(&log.short_id()),
        code(&scope),
        format_time(log.started_at),
        log.included,
    );
    if !log.sandboxes.are_whole() {
        let _ = writeln!(text, "Sandbox of programs: {}.\n", log.sandboxes);
    }
    for task in log.failures() {
        if !push_whole(&mut text, &failure(log, task)) {
            return text + "\nMore failures are left out.\n";
        }
    }
    if !log.tasks.is_empty() {
        text.push_str("\n| status | task | time | calls |\n| --- | --- | --- | --- |\n");
    }
    for task in &log.tasks {
        if !push_whole(&mut text, &row(log, task)) {
            return text + "\nMore tasks are left out.\n";
        }
    }
    for task in log.tasks.iter().filter(|task| !task.artifacts.is_empty()) {
        if !push_whole(&mut text, &artifacts(task)) {
            return text + "\nMore artifacts are left out.\n";
        }
    }
    text
}

/// Returns the files of a task.
fn artifacts(task: &TaskLog) -> String {
    let files: Vec<String> = crate::artifacts::texts(&task.artifacts).iter().map(|file| code(file)).collect();
    format!("\nArtifacts of {}: {}\n", code(task.id.as_str()), files.join(", "))
}

fn push_whole(text: &mut String, part: &str) -> bool {
    let fits = text.len() + part.len() <= MAX_BYTES;
    if fits {
        text.push_str(part);
    }
    fits
}

fn row(log: &RunLog, task: &TaskLog) -> String {
    let sign = match task.outcome() {
        Outcome::Failed | Outcome::Unfinished => "✗",
        Outcome::Waiting | Outcome::Blocked => "…",
        Outcome::Skipped => "–",
        Outcome::Done => "✓",
    };
    let took = if task.attempts.is_empty() { String::new() } else { duration(task.took(log.ended_at)) };
    format!("| {sign} {} | {} | {took} | {} |\n", task.outcome().as_str(), named(task), task.calls.len())
}

/// Returns the name of a task, with its id if that differs.
fn named(task: &TaskLog) -> String {
    let id = task.id.to_string();
    if id == task.name { code(&id) } else { format!("{} {}", code(&id), code(&task.name)) }
}

fn failure(log: &RunLog, task: &TaskLog) -> String {
    let how = if task.outcome() == Outcome::Failed { "failed" } else { "did not finish" };
    let line = task.line.as_ref().map(|line| format!(" ({})", code(&format!("{}:{}", line.file, line.line))));
    let mut text = format!(
        "**{}** {how} after {}{}: {}\n\n",
        named(task),
        duration(task.took(log.ended_at)),
        line.unwrap_or_default(),
        code(&task.failure()),
    );
    for call in &task.calls {
        for (name, value) in [("args", &call.args), ("result", &call.result)] {
            if let Some(value) = value {
                let _ =
                    writeln!(text, "{} {name}: {}\n", code(call.id.as_str()), code(&cut(value, MAX_OUTPUT)));
            }
        }
        for part in &call.output {
            let printed = without_sequences(&part.text);
            let printed = printed.trim_end();
            let start = printed.char_indices().rev().nth(MAX_OUTPUT).map_or(0, |(at, _)| at);
            let _ = writeln!(
                text,
                "<details><summary>{} of {}</summary><pre>{}</pre></details>\n",
                code(&part.stream),
                code(call.id.as_str()),
                literal(&escaped(&printed[start..])),
            );
        }
    }
    text
}

/// Returns one line of foreign text as an element of code.
fn code(text: &str) -> String {
    format!("<code>{}</code>", literal(&cut(&plain_line(text), 2_000)))
}

/// Returns text in which each ASCII mark is a character reference: none is markup, and no address becomes a link.
fn literal(text: &str) -> String {
    let mut literal = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() && !c.is_ascii_alphanumeric() && c != ' ' {
            let _ = write!(literal, "&#{};", u32::from(c));
        } else {
            literal.push(c);
        }
    }
    literal
}
