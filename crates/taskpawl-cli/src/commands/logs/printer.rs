//! Printing of output, piece by piece and with a heading for each part.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;

use taskpawl::Taskpawl;
use taskpawl::model::task::Task;
use taskpawl::tools::{RedactorStream, Vault};

use super::args::Args;
use super::parts::{Name, Source, parts, read_from};
use super::wanted::{Starts, Wanted};
use super::worker_of;
use crate::app::App;
use crate::error::CliError;
use crate::output::{is_read_by_runner, write_data, write_out};
use crate::shown::shown;
use crate::text::{clean, clean_block, style, without_sequences};

/// Prints parts, and remembers the position in each.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(super) struct Printer {
    is_cleaned: bool,
    has_heads: bool,
    paint: crate::text::Paint,
    /// Printed bytes of each part, counted after secrets were removed.
    printed: BTreeMap<Name, u64>,
    /// Readers of parts whose programs still write.
    unfinished: BTreeMap<Name, Unfinished>,
    vault: Vault,
    follows: bool,
    /// The starts of calls that are printed; all without it.
    starts: Option<Starts>,
    /// True if headings name the task.
    names_tasks: bool,
    /// The last printed part: another one needs a heading.
    last: Option<Name>,
    ends_line: bool,
}

/// Position in a part whose program still writes.
struct Unfinished {
    read: u64,
    /// `None` once everything is printed.
    stream: Option<RedactorStream>,
    /// Inode of the file. After the program ends, the redacted output replaces it under the same path.
    inode: u64,
}

impl Printer {
    pub(super) fn new(app: &App, args: &Args, wanted: &Wanted, vault: Vault) -> Self {
        let out = app.out();
        Self {
            // A file or pipe gets the original bytes. On a terminal, control sequences are removed, so that
            // they cannot move the cursor. A runner would take lines of programs as its commands.
            is_cleaned: (app.terminal().stdout || is_read_by_runner()) && !args.raw,
            has_heads: !out.is_quiet && !args.raw,
            paint: out.paint,
            printed: BTreeMap::new(),
            unfinished: BTreeMap::new(),
            vault,
            follows: args.follow,
            starts: wanted.starts.clone(),
            names_tasks: wanted.task.is_none(),
            last: None,
            ends_line: true,
        }
    }

    /// Prints new output, and returns the number of parts.
    pub(super) fn print(&mut self, plans: &Taskpawl, args: &Args, tasks: &[Task]) -> Result<usize, CliError> {
        let parts = parts(plans, &self.vault, args, self.starts.as_ref(), tasks);
        let has_heads = self.has_heads && (parts.len() > 1 || args.follow || self.names_tasks);
        for (name, source, task) in &parts {
            self.print_part(name, source, has_heads, task)?;
        }
        Ok(parts.len())
    }

    fn print_part(
        &mut self,
        name: &Name,
        source: &Source,
        has_head: bool,
        task: &Task,
    ) -> Result<(), CliError> {
        loop {
            let offset = self.printed.get(name).copied().unwrap_or(0);
            let Some(bytes) = self.next(name, source, offset)? else { return Ok(()) };
            if bytes.is_empty() {
                continue;
            }
            if has_head && self.last.as_ref() != Some(name) {
                self.head(name, task)?;
            }
            self.last = Some(name.clone());
            self.printed.insert(name.clone(), offset + bytes.len() as u64);
            self.ends_line = bytes.ends_with(b"\n");
            self.write(&bytes)?;
        }
    }

    /// Returns the next bytes of a part, which can be empty for now. `None` means that nothing more can be
    /// read at present.
    fn next(&mut self, name: &Name, source: &Source, offset: u64) -> Result<Option<Vec<u8>>, CliError> {
        let mut bytes = Vec::new();
        let Source::Unfinished(path) = source else {
            read_from(source, offset, &mut bytes)?;
            return Ok(Some(bytes).filter(|bytes| !bytes.is_empty()));
        };
        // The file may have been replaced since it was listed. The next pass finds the new one.
        let Ok(data) = std::fs::metadata(path) else { return Ok(None) };
        let redactor = self.vault.redactor();
        let new = || Unfinished { read: 0, stream: Some(redactor.stream()), inode: data.ino() };
        let part = self.unfinished.entry(name.clone()).or_insert_with(new);
        let Some(stream) = part.stream.as_mut().filter(|_| part.inode == data.ino()) else { return Ok(None) };
        read_from(source, part.read, &mut bytes)?;
        part.read += bytes.len() as u64;
        let mut clean = Vec::new();
        stream.push(&bytes, &mut clean);
        if !bytes.is_empty() {
            return Ok(Some(clean));
        }
        // Without `--follow`, the text that the redactor holds back is flushed: no later text can complete a
        // secret in it.
        match part.stream.take() {
            Some(stream) if !self.follows => stream.finish(&mut clean),
            stream => part.stream = stream,
        }
        Ok(Some(clean).filter(|clean| !clean.is_empty()))
    }

    fn head(&mut self, name: &Name, task: &Task) -> Result<(), CliError> {
        let break_line = if self.ends_line { "" } else { "\n" };
        let tool = &task.metadata.tool_calls[name.position].tool_name;
        let has_task = self.names_tasks || task.progress.item.is_some();
        let item = if has_task { format!("{}: ", name.task) } else { String::new() };
        let worker = worker_of(name, task).map(|worker| format!(" @{worker}")).unwrap_or_default();
        let head = format!("== {item}{} {tool}{worker}, start {}, {} ==", name.call, name.start, name.stream);
        let head = self.paint.style(style::DIM, &clean(&head));
        write_out(&shown![break_line, head, "\n"])
    }

    fn write(&self, bytes: &[u8]) -> Result<(), CliError> {
        if !self.is_cleaned {
            return write_data(bytes);
        }
        write_out(&clean_block(&without_sequences(&String::from_utf8_lossy(bytes))).into())
    }
}
