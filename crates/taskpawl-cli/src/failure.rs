//! Printing of a command's error: as text on standard error, or as JSON on standard output.

use std::process::ExitCode;

use serde::Serialize;
use taskpawl::model::command::ChangesSince;
use taskpawl::model::value::bounded;

use crate::commands::history;
use crate::error::{CliError, Problem};
use crate::output::{Output, SCHEMA_VERSION, say, to_text, write_out};
use crate::shown::{Shown, shown};
use crate::text::{Paint, clean_block, style};

/// The maximum number of error groups in a text; `--json` prints all errors.
pub(crate) const MAX_SHOWN: usize = bounded::MAX_ITEMS;

/// The maximum bytes of a line about one group, which keeps the whole text below 2 kB.
const MAX_LINE: usize = 180;

impl CliError {
    /// Prints the error to standard error, or with `--json` to standard output. Returns the exit code.
    pub(crate) fn report(&self, out: &Output) -> ExitCode {
        // `settle` reports the failed stream and replaces this success.
        if let Self::Unread = self {
            return ExitCode::SUCCESS;
        }
        if let Self::Clap(error) = self
            && !error.use_stderr()
        {
            let help = error.render();
            let help = if out.paint.is_on {
                Shown::of_help(&help.ansi().to_string())
            } else {
                help.to_string().into()
            };
            let _ = write_out(&help);
            return ExitCode::SUCCESS;
        }
        match (self, out.is_json) {
            (_, true) => self.print_json(out),
            (Self::Clap(error), false) => print_usage(error, out.paint_err),
            (_, false) => self.print_text(out),
        }
        ExitCode::from(self.class().code())
    }

    fn print_text(&self, out: &Output) {
        let paint = out.paint_err;
        say(shown![paint.style(style::ERROR, "error:"), " ", clean_block(&self.message())]);
        let label = paint.style(style::HINT, "hint:");
        let groups = Problem::kinds(self.problems_in(out));
        for group in groups.iter().take(MAX_SHOWN) {
            let line = bounded::cut_to(&group.counted(&group.first.line()), MAX_LINE).into_owned();
            say(shown!["  ", clean_block(&line)]);
            if let Some(hint) = &group.first.hint {
                let hint = bounded::cut_to(&hint.to_string(), MAX_LINE).into_owned();
                say(shown!["    ", label, " ", clean_block(&hint)]);
            }
        }
        let more: usize = groups.iter().skip(MAX_SHOWN).map(|group| group.count).sum();
        if more > 0 {
            say(format!("  … and {more} more: `--json` lists all of them"));
        }
        for line in self.since().map(since_lines).unwrap_or_default() {
            say(shown!["  ", clean_block(&line)]);
        }
        if let Some(hint) = self.hint_in(out) {
            say(shown![label, " ", clean_block(&hint)]);
        }
    }

    /// Returns the hint, whose commands repeat the flags of this one.
    fn hint_in(&self, out: &Output) -> Option<String> {
        let hint = self.hint()?.format_with(&*out.line);
        // A command must not be cut: it would do something else. A long value in it is one of the caller.
        Some(if hint.len() > bounded::MAX_BYTES { bounded::message(&hint).into_owned() } else { hint })
    }

    /// Returns the problems with their hints, whose commands repeat the flags of this one.
    fn problems_in(&self, out: &Output) -> Vec<Problem> {
        let mut problems = self.problems();
        for hint in problems.iter_mut().filter_map(|problem| problem.hint.as_mut()) {
            *hint = hint.format_with(&*out.line).into();
        }
        problems
    }

    fn print_json(&self, out: &Output) {
        let error = ErrorJson {
            code: self.class().code(),
            kind: self.class().word(),
            message: self.message(),
            hint: self.hint_in(out),
            problems: [self.problems_in(out), self.conflicts()].concat(),
            since: self.since(),
        };
        let envelope = ErrorEnvelope { schema_version: SCHEMA_VERSION, error };
        let text = to_text(&envelope, out.is_pretty).expect("BUG: an error is always valid JSON");
        // The exit code reports the error as well, so a failed write is ignored.
        let _ = write_out(&(text + "\n").into());
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ErrorEnvelope<'a> {
    schema_version: u32,
    error: ErrorJson<'a>,
}

#[derive(Serialize)]
struct ErrorJson<'a> {
    code: u8,
    kind: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<Problem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<&'a ChangesSince>,
}

fn since_lines(since: &ChangesSince) -> Vec<String> {
    let earlier = (since.earlier > 0).then(|| format!("since then: {} changes, and", since.earlier));
    let first = earlier.unwrap_or_else(|| "since then:".to_owned());
    std::iter::once(first).chain(since.events.iter().map(history::line)).collect()
}

/// Prints a parse error of clap. It quotes the command line, which may contain control characters.
fn print_usage(error: &clap::Error, paint: Paint) {
    const LABEL: &str = "error:";
    let text = bounded::message(&error.render().to_string()).into_owned();
    let (label, rest) = text.strip_prefix(LABEL).map_or(("", text.as_str()), |rest| (LABEL, rest));
    say(shown![paint.style(style::ERROR, label), clean_block(rest.trim_end())]);
}
