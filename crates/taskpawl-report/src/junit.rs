//! JUnit XML, as GitHub actions and GitLab read it: a test suite for each plan, a test case for each task.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use taskpawl_model::value::format_time;
use taskpawl_text::is_deceptive;

use crate::log::{CallLog, Outcome, RunLog, TaskLog};

/// The name of the suite of tasks without a plan.
const NO_PLAN: &str = "tasks";

/// Returns the run as JUnit XML.
pub fn junit(log: &RunLog) -> String {
    let mut suites: BTreeMap<&str, Vec<&TaskLog>> = BTreeMap::new();
    for task in &log.tasks {
        suites.entry(task.plan.as_deref().unwrap_or(NO_PLAN)).or_default().push(task);
    }
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let all: Vec<&TaskLog> = log.tasks.iter().collect();
    let _ = writeln!(xml, "<testsuites name=\"taskpawl\" {}>", totals(&all, log));
    for (plan, tasks) in &suites {
        suite(&mut xml, log, plan, tasks);
    }
    xml + "</testsuites>\n"
}

/// Returns the attributes that count tests.
fn totals(tasks: &[&TaskLog], log: &RunLog) -> String {
    let count = |outcomes: &[Outcome]| tasks.iter().filter(|task| outcomes.contains(&task.outcome())).count();
    format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3}\" timestamp=\"{}\"",
        tasks.len(),
        count(&[Outcome::Failed]),
        count(&[Outcome::Unfinished]),
        count(&[Outcome::Skipped, Outcome::Blocked, Outcome::Waiting]),
        log.took().as_secs_f64(),
        escaped(&format_time(log.started_at)),
    )
}

fn suite(xml: &mut String, log: &RunLog, plan: &str, tasks: &[&TaskLog]) {
    let _ = writeln!(xml, "  <testsuite name=\"{}\" {}>", escaped(plan), totals(tasks, log));
    let run = [("taskpawl.run", log.id.to_string()), ("taskpawl.end", log.end_text())];
    xml.push_str("    <properties>\n");
    for (name, value) in run.into_iter().chain([("taskpawl.included", log.included.to_string())]) {
        let _ = writeln!(xml, "      <property name=\"{name}\" value=\"{}\"/>", escaped(&value));
    }
    xml.push_str("    </properties>\n");
    for task in tasks {
        case(xml, log, plan, task);
    }
    xml.push_str("  </testsuite>\n");
}

fn case(xml: &mut String, log: &RunLog, plan: &str, task: &TaskLog) {
    let time = task.took(log.ended_at).as_secs_f64();
    let class = format!("{plan}.{}", task.id);
    let _ = write!(
        xml,
        "    <testcase name=\"{}\" classname=\"{}\" time=\"{time:.3}\"",
        escaped(&task.name),
        escaped(&class)
    );
    if let Some(line) = &task.line {
        let _ = write!(xml, " file=\"{}\" line=\"{}\"", escaped(&line.file), line.line);
    }
    xml.push_str(">\n");
    let failure = escaped(&task.failure());
    let _ = match task.outcome() {
        Outcome::Done => Ok(()),
        Outcome::Failed => writeln!(xml, "      <failure message=\"{failure}\">{failure}</failure>"),
        Outcome::Unfinished => writeln!(xml, "      <error message=\"{failure}\">{failure}</error>"),
        outcome @ (Outcome::Skipped | Outcome::Blocked | Outcome::Waiting) => {
            writeln!(xml, "      <skipped message=\"{}\"/>", outcome.as_str())
        }
    };
    for (element, stream) in [("system-out", "stdout"), ("system-err", "stderr")] {
        let text = printed(&task.calls, stream);
        if !text.is_empty() {
            let _ = writeln!(xml, "      <{element}>{}</{element}>", escaped(&text));
        }
    }
    xml.push_str("    </testcase>\n");
}

/// Returns what the calls printed to a stream. The arguments and results go to the standard output.
fn printed(calls: &[CallLog], stream: &str) -> String {
    let mut text = String::new();
    for call in calls {
        if stream == "stdout" {
            for (name, value) in [("args", &call.args), ("result", &call.result)] {
                if let Some(value) = value {
                    let _ = writeln!(text, "[{} {name}] {value}", call.id);
                }
            }
        }
        for part in call.output.iter().filter(|part| part.stream == stream) {
            let cut = if part.is_cut { " (the end)" } else { "" };
            let _ = writeln!(text, "[{} start {}{cut}]\n{}", call.id, call.start, part.text.trim_end());
        }
    }
    text
}

/// Returns text for XML. XML 1.0 has no form for most control characters, so they and other deceptive characters are
/// written as `\u{…}`.
fn escaped(text: &str) -> String {
    let mut xml = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' => xml.push_str("&quot;"),
            '\n' => xml.push_str("&#10;"),
            '\t' => xml.push_str("&#9;"),
            '\u{fffe}' | '\u{ffff}' => _ = write!(xml, "{}", c.escape_unicode()),
            c if is_deceptive(c) => _ = write!(xml, "{}", c.escape_unicode()),
            c => xml.push(c),
        }
    }
    xml
}
