//! The log of a conversation: the messages and actions of the agent as text, in the output file of the call.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

use serde_json::Value;
use taskpawl_tools::{CallContext, StreamFilter, ToolError, make_private_directories};

use crate::words::{plain, text};

/// Longest title of an action in the log, in characters.
const MAX_TITLE: usize = 500;

/// Writes the log, without secrets.
pub(crate) struct Transcript {
    file: File,
    filter: Option<Box<dyn StreamFilter>>,
    /// Bytes written.
    written: u64,
    /// True if the last line is not complete.
    is_open_line: bool,
    limit: u64,
}

impl Transcript {
    /// Begins the log in the output file of the call.
    pub(crate) fn begin(cx: &CallContext) -> Result<Self, ToolError> {
        let path = cx.stdout_path();
        let opened = || {
            if let Some(directory) = path.parent() {
                make_private_directories(directory)?;
            }
            OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&path)
        };
        let file =
            opened().map_err(|source| ToolError::Io { action: "write", path: path.clone(), source })?;
        let filter = cx.programs.output_filter().map(|filter| filter.begin());
        Ok(Self { file, filter, written: 0, is_open_line: false, limit: cx.limits.output_bytes })
    }

    /// Adds a part of a message.
    pub(crate) fn message(&mut self, text: &str) -> Result<(), ToolError> {
        self.is_open_line = !text.is_empty() && !text.ends_with('\n');
        self.push(text.as_bytes())
    }

    /// Adds a line of its own.
    pub(crate) fn line(&mut self, line: &str) -> Result<(), ToolError> {
        let begin = if std::mem::take(&mut self.is_open_line) { "\n" } else { "" };
        self.push(format!("{begin}{line}\n").as_bytes())
    }

    /// Adds the update of an action. Returns its title if the action has just begun.
    pub(crate) fn action(&mut self, update: &Value) -> Result<Option<String>, ToolError> {
        let (title, status) = (plain(text(update, "title"), MAX_TITLE), text(update, "status"));
        if text(update, "sessionUpdate") == "tool_call" {
            let kind = text(update, "kind");
            let kind = if kind.is_empty() { "other" } else { kind };
            self.line(&format!("[{}] {title}", plain(kind, 40)))?;
            return Ok(Some(title));
        }
        if matches!(status, "completed" | "failed") {
            let name = plain(if title.is_empty() { text(update, "toolCallId") } else { &title }, MAX_TITLE);
            self.line(&format!("[{status}] {name}"))?;
        }
        Ok(None)
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), ToolError> {
        self.written = self.written.saturating_add(bytes.len() as u64);
        if self.written > self.limit {
            return Err(ToolError::OutputLimit { limit_bytes: self.limit, result: None });
        }
        let written = match &mut self.filter {
            Some(filter) => {
                let mut clean = Vec::new();
                filter.push(bytes, &mut clean);
                self.file.write_all(&clean)
            }
            None => self.file.write_all(bytes),
        };
        Ok(written?)
    }

    fn finish(&mut self) -> io::Result<()> {
        let Some(filter) = self.filter.take() else { return Ok(()) };
        let mut rest = Vec::new();
        filter.finish(&mut rest);
        self.file.write_all(&rest)
    }
}

impl Drop for Transcript {
    fn drop(&mut self) {
        // The error is ignored: the conversation is over, and its result does not depend on the log.
        let _ = self.finish();
    }
}

impl std::fmt::Debug for Transcript {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transcript").field("written", &self.written).finish_non_exhaustive()
    }
}
