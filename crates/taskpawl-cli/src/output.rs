//! The only path to standard output and standard error: data on the first, everything else on the second.
//!
//! A failed write never replaces a command's own result. The failure is remembered, and [`settle`] combines it with
//! the exit code of the command.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};

use serde::Serialize;
use serde_json::{Map, Value};
use taskpawl::Page;
use taskpawl::model::insight::UnrunnableTask;
use taskpawl::model::value::{Timestamp, is_deceptive};

use taskpawl::model::advice::{CommandLine, Hint};

use crate::error::CliError;
use crate::shown::{Shown, shown};
use crate::text::{Paint, clean_block, nearest, style};

/// The version of the shape of everything that `--json` prints.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// The exit code of a command that succeeded but could not print all of its output.
const UNWRITTEN: u8 = 8;

/// The form of the output.
#[derive(Debug, Clone, Default)]
pub(crate) struct Output {
    /// True if data is printed as JSON.
    pub(crate) is_json: bool,
    /// True if JSON is indented for people; programs get one line.
    pub(crate) is_pretty: bool,
    /// The fields to print; empty means all.
    pub(crate) fields: Vec<String>,
    /// True if remarks are suppressed.
    pub(crate) is_quiet: bool,
    /// The colours of standard output.
    pub(crate) paint: Paint,
    /// The colours of standard error.
    pub(crate) paint_err: Paint,
    /// The columns of standard output, if it is a terminal.
    pub(crate) width: Option<usize>,
    /// The time from which times are told to a person at a terminal; elsewhere they are printed in full.
    pub(crate) now: Option<Timestamp>,
    /// The flags that advised commands repeat.
    pub(crate) line: std::sync::Arc<CommandLine>,
}

/// The position of a printed page in its list.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageInfo {
    /// The requested number of items; 0 for all.
    pub(crate) limit: usize,
    /// The number of items before this page.
    pub(crate) offset: usize,
    /// The number of items on this page.
    pub(crate) count: usize,
    /// The number of items in the list, if it is known without counting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) total: Option<u64>,
    /// True if items follow this page.
    pub(crate) truncated: bool,
    /// Tasks that would be ready, but need a tool or an actor that no run here has.
    #[serde(rename = "forNobody", skip_serializing_if = "Vec::is_empty")]
    pub(crate) unrunnable: Vec<UnrunnableTask>,
    /// The number of unrunnable tasks up to the end of this page, including those that are not listed.
    #[serde(rename = "totalForNobody", skip_serializing_if = "is_zero")]
    pub(crate) total_unrunnable: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl PageInfo {
    /// Returns the position of `page` in its list.
    pub(crate) fn of(page: &Page, limit: usize, offset: usize) -> Self {
        let Page { tasks, total, truncated } = page;
        Self { limit, offset, count: tasks.len(), total: *total, truncated: *truncated, ..Self::default() }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a, T> {
    schema_version: u32,
    data: &'a T,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<&'a PageInfo>,
}

impl Output {
    /// Prints `data` in the envelope of `--json`.
    pub(crate) fn data(&self, data: &impl Serialize) -> Result<ExitCode, CliError> {
        self.envelope(data, None)
    }

    /// Prints a page of a list in the envelope of `--json`.
    pub(crate) fn page(&self, data: &impl Serialize, page: &PageInfo) -> Result<ExitCode, CliError> {
        self.envelope(data, Some(page))
    }

    fn envelope(&self, data: &impl Serialize, page: Option<&PageInfo>) -> Result<ExitCode, CliError> {
        if self.fields.is_empty() {
            return self.json(&Envelope { schema_version: SCHEMA_VERSION, data, page }, self.is_pretty);
        }
        let data = &self.selected(data)?;
        self.json(&Envelope { schema_version: SCHEMA_VERSION, data, page }, self.is_pretty)
    }

    fn json(&self, value: &impl Serialize, is_pretty: bool) -> Result<ExitCode, CliError> {
        let text = to_text(value, is_pretty).map_err(|error| CliError::Output(error.into()))?;
        self.print(text + "\n")
    }

    /// Prints JSON objects as lines of a stream, without an envelope.
    ///
    /// # Errors
    /// Standard output takes no more data, so the caller can stop reading.
    pub(crate) fn lines(&self, values: &[impl Serialize]) -> Result<(), CliError> {
        let mut text = String::new();
        for value in values {
            text.push_str(&self.object(value)?);
            text.push('\n');
        }
        write_out(&text.into())
    }

    /// Prints text of a stream.
    #[expect(clippy::unused_self, reason = "an output is the only way to print")]
    pub(crate) fn piece(&self, text: &Shown) -> Result<(), CliError> {
        write_out(text)
    }

    /// Prints a list in the envelope of `--json` piece by piece, so that a long list is never held in memory. `each`
    /// passes the pieces on and returns the position of the page.
    pub(crate) fn stream<T: Serialize>(
        &self,
        each: impl FnOnce(&mut dyn FnMut(&[T]) -> Result<(), CliError>) -> Result<PageInfo, CliError>,
    ) -> Result<ExitCode, CliError> {
        write_out(&format!("{{\"schemaVersion\":{SCHEMA_VERSION},\"data\":[").into())?;
        let mut separator = "";
        let page = each(&mut |values| {
            let mut text = String::new();
            for value in values {
                text.push_str(separator);
                text.push_str(&self.object(value)?);
                separator = ",";
            }
            write_out(&text.into())
        })?;
        let page = to_text(&page, false).map_err(|error| CliError::Output(error.into()))?;
        self.print(format!("],\"page\":{page}}}\n"))
    }

    fn object(&self, value: &impl Serialize) -> Result<String, CliError> {
        let text = if self.fields.is_empty() {
            to_text(value, false)
        } else {
            to_text(&self.selected(value)?, false)
        };
        text.map_err(|error| CliError::Output(error.into()))
    }

    fn selected(&self, data: &impl Serialize) -> Result<Value, CliError> {
        let data = serde_json::to_value(data).map_err(|error| CliError::Output(error.into()))?;
        let selection = select(&data, &self.fields);
        for field in self.fields.iter().filter(|field| !has_field(&selection, field)) {
            if let Some(near) = nearest(field, names(&data)) {
                self.warn(&format!("no field `{field}` here; did you mean `{near}`?"));
            }
        }
        Ok(selection)
    }

    /// Prints text. Returns success even if the write fails: the command keeps its own result, and [`settle`] reports
    /// the failure.
    #[expect(clippy::unused_self, reason = "an output is the only way to print")]
    #[expect(clippy::unnecessary_wraps, reason = "most commands end with it, as they do with `data`")]
    pub(crate) fn print(&self, text: impl Into<Shown>) -> Result<ExitCode, CliError> {
        let _ = write_out(&text.into());
        Ok(ExitCode::SUCCESS)
    }

    /// Prints a remark to standard error, unless `--quiet`.
    pub(crate) fn remark(&self, text: &str) {
        if !self.is_quiet {
            say(clean_block(text));
        }
    }

    /// Prints a hint to standard error, unless `--quiet`. Commands in it repeat the flags of this one.
    pub(crate) fn advise(&self, hint: &Hint) {
        self.remark(&hint.format_with(&*self.line));
    }

    /// Prints a warning to standard error.
    pub(crate) fn warn(&self, text: &str) {
        let label = self.paint_err.style(style::WARNING, "warning:");
        say(shown![label, " ", clean_block(text)]);
    }
}

/// The first failure of standard output. Later output is dropped: writing on would leave a gap in the middle.
static FAILURE: Mutex<Option<io::Error>> = Mutex::new(None);

fn failure() -> MutexGuard<'static, Option<io::Error>> {
    FAILURE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True if the output is read by a runner of GitHub actions.
static IS_READ_BY_RUNNER: AtomicBool = AtomicBool::new(false);

/// Keeps the texts of tasks and tools from being workflow commands of GitHub actions, in all later output.
pub(crate) fn neutralize_workflow_commands() {
    IS_READ_BY_RUNNER.store(true, Ordering::Relaxed);
}

/// Returns whether a runner of GitHub actions reads the output.
pub(crate) fn is_read_by_runner() -> bool {
    IS_READ_BY_RUNNER.load(Ordering::Relaxed)
}

/// Returns text as the reader of the output may get it.
fn for_reader(text: &Shown) -> Cow<'_, str> {
    if is_read_by_runner() {
        taskpawl_report::without_commands(text.as_str())
    } else {
        Cow::Borrowed(text.as_str())
    }
}

/// Writes to standard output in one call, so that processes that share the stream do not mix their lines.
///
/// # Errors
/// Standard output takes no more data, now or since an earlier call. The failure is remembered for [`settle`].
pub(crate) fn write_out(text: &Shown) -> Result<(), CliError> {
    write_data(for_reader(text).as_bytes())
}

/// Writes raw bytes to standard output, such as the stored output of a program. Text for people is [`Shown`].
///
/// # Errors
/// The same as [`write_out`].
pub(crate) fn write_data(bytes: &[u8]) -> Result<(), CliError> {
    // Locked during the write, so that no other thread writes after a failure.
    let mut failure = failure();
    if failure.is_none() {
        *failure = write_whole(io::stdout().lock(), bytes).err();
    }
    if failure.is_some() { Err(CliError::Unread) } else { Ok(()) }
}

/// Returns the exit code of the process for a command that ended with `code`. A closed pipe is no error: the reader
/// has read enough. Any other write failure turns success into the exit code of a store failure.
pub(crate) fn settle(code: ExitCode, paint: Paint) -> ExitCode {
    let Some(error) = failure().take().filter(|error| error.kind() != io::ErrorKind::BrokenPipe) else {
        return code;
    };
    say(shown![paint.style(style::ERROR, "error:"), " failed to write to standard output: ", error]);
    if code == ExitCode::SUCCESS { ExitCode::from(UNWRITTEN) } else { code }
}

/// Writes a line to standard error. A failure is ignored, because there is no other stream to report it on.
pub(crate) fn say(line: impl Into<Shown>) {
    let _ = write_err(&shown![line.into(), "\n"].wrapped(columns_of_stderr()));
}

/// Returns the columns of standard error; `None` if it is no terminal.
pub(crate) fn columns_of_stderr() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Writes text without a line break to standard error, such as a question.
pub(crate) fn write_err(text: &Shown) -> io::Result<()> {
    write_whole(io::stderr().lock(), for_reader(text).as_bytes())
}

/// Writes all bytes, even to a non-blocking stream: another process that shares the terminal may have set
/// `O_NONBLOCK`.
fn write_whole(mut stream: impl Write + AsFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) => go_on_after(error, &stream)?,
        }
    }
    while let Err(error) = stream.flush() {
        go_on_after(error, &stream)?;
    }
    Ok(())
}

/// Waits until the stream takes more data. Returns any error other than "interrupted" and "would block".
fn go_on_after(error: io::Error, stream: &impl AsFd) -> io::Result<()> {
    if error.kind() == io::ErrorKind::Interrupted {
        return Ok(());
    }
    if error.kind() != io::ErrorKind::WouldBlock {
        return Err(error);
    }
    match poll(&mut [PollFd::new(stream, PollFlags::OUT)], None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns JSON in which every character is harmless on a terminal.
pub(crate) fn to_text(value: &impl Serialize, is_pretty: bool) -> Result<String, serde_json::Error> {
    let mut text =
        if is_pretty { serde_json::to_string_pretty(value)? } else { serde_json::to_string(value)? };
    if is_read_by_runner() {
        // These characters appear only inside strings, where the escape has the same meaning.
        text = text.replace("##[", "#\\u0023[");
    }
    let is_raw = |c: char| c != '\n' && is_deceptive(c);
    if !text.contains(is_raw) {
        return Ok(text);
    }
    // Deceptive characters appear only inside strings, where an escape has the same meaning.
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_raw(c) {
            // JSON escapes a character beyond U+FFFF as a surrogate pair.
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    Ok(escaped)
}

fn select(data: &Value, fields: &[String]) -> Value {
    match data {
        Value::Array(items) => items.iter().map(|item| select(item, fields)).collect(),
        Value::Object(object) => {
            let mut selection = Map::new();
            for field in fields {
                copy(object, field, &mut selection);
            }
            Value::Object(selection)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => data.clone(),
    }
}

/// Copies one field, which may be a path such as `metadata.context`, to the same path in `to`.
fn copy(from: &Map<String, Value>, field: &str, to: &mut Map<String, Value>) {
    if let Some(value) = from.get(field) {
        to.insert(field.to_owned(), value.clone());
        return;
    }
    let Some((first, rest)) = field.split_once('.') else { return };
    let Some(Value::Object(inner)) = from.get(first) else { return };
    let below = to.entry(first).or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(below) = below {
        copy(inner, rest, below);
    }
}

fn has_field(selection: &Value, field: &str) -> bool {
    let first = field.split('.').next().unwrap_or(field);
    match selection {
        // An empty list has no field to compare with, so it never counts as a misspelt name.
        Value::Array(items) => items.is_empty() || items.iter().any(|item| has_field(item, field)),
        Value::Object(object) => object.contains_key(field) || object.contains_key(first),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

fn names(data: &Value) -> Vec<&str> {
    match data {
        Value::Array(items) => items.iter().flat_map(names).collect(),
        Value::Object(object) => object.keys().map(String::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_selected_by_path() {
        let data = json!([{"id": "a", "name": "A", "metadata": {"context": {"x": 1}, "toolCalls": []}}]);
        let fields = ["id", "metadata.context", "absent"].map(str::to_owned);
        assert_eq!(select(&data, &fields), json!([{"id": "a", "metadata": {"context": {"x": 1}}}]));
    }

    #[test]
    fn json_keeps_its_meaning_and_does_nothing_to_a_terminal() {
        let value = json!({"name": "a\u{9b}2J\u{202e}b\u{1b}[31m\u{7f}\u{e0041}"});
        let text = to_text(&value, true).unwrap();
        assert!(!text.contains(|c: char| c != '\n' && is_deceptive(c)), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
