//! The file or folder that an export writes over.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use taskpawl::Manager;
use taskpawl::model::advice::Hint;
use taskpawl::model::command::{DivergingField, ImportMode, ImportReport, PreservedField};
use taskpawl::model::value::TaskId;
use taskpawl_formats::{Format, Reading};

use super::args::Args;
use crate::app::App;
use crate::commands::exchange::{self, Found};
use crate::commands::folder;
use crate::commands::import::{self, Records};
use crate::error::CliError;
use crate::text::path_word;

/// Facts about an existing file.
#[derive(Default)]
pub(super) struct Existing {
    /// The contents that could be read.
    pub(super) reading: Reading,
    /// True if every task is written, as into a new file: the file has no tasks, or `--force` replaces them.
    pub(super) takes_all: bool,
    /// True if nothing of the file stays, because it cannot be read.
    pub(super) is_unreadable: bool,
    /// True if the file has faulty records: a task without a record may be among them.
    pub(super) has_faults: bool,
    /// Fields with another value than in the store, although the last import or export knew that value.
    pub(super) apart: Vec<DivergingField>,
    /// Tasks that were removed from the file since.
    pub(super) gone: Vec<TaskId>,
    /// Those of `gone` that have changed in the store since.
    pub(super) gone_changed: Vec<TaskId>,
    /// Tasks in the file that were deleted in the store.
    pub(super) deleted: BTreeSet<TaskId>,
}

impl Existing {
    fn replaced() -> Self {
        Self { takes_all: true, ..Self::default() }
    }

    /// Reads the existing file. Without `--force` it is refused if it holds changes that the store lacks, or if nothing in it can be
    /// read. One of several features (`is_alone` is false) gets no other tasks, so the latter only stays as it is.
    pub(super) fn of(
        app: &App,
        args: &Args,
        manager: &Manager,
        records: &Records,
        found: &Found,
        source: &str,
        is_alone: bool,
    ) -> Result<Self, CliError> {
        if found.files.are_blank() {
            return Ok(Self::replaced());
        }
        let reading = match import::reading(app, found, records, args.prefix.as_ref()) {
            Ok(mut reading) => {
                // A file that cannot be read counts like a faulty record: it may have any of the tasks.
                reading.left_out.extend(found.left_out.iter().cloned());
                reading
            }
            // `--force` also replaces a file that cannot be parsed.
            Err(_) if args.force => return Ok(Self { is_unreadable: true, ..Self::replaced() }),
            Err(error) => return Err(error),
        };
        if is_alone && reading.tasks.is_empty() && reading.faults().next().is_some() {
            if args.force {
                return Ok(Self { is_unreadable: true, ..Self::replaced() });
            }
            import::refuse_any(args.format, &reading.left_out)?;
        }
        let refuse = |why: String| {
            let words = [args.format.name().to_owned(), path_word(&found.path)];
            let hint = Hint::default()
                .command_of("import", words)
                .text(" takes over the changes there; `--force` overwrites them");
            CliError::NotHere { path: found.path.clone(), why, hint }
        };
        let import = import::import_of(reading.clone(), source, ImportMode::Merge);
        match manager.preview_import(import) {
            Ok(report) => match news(&report) {
                Some(why) if !args.force => Err(refuse(why)),
                _ => Ok(Self::with(report, reading)),
            },
            Err(_) if args.force => Ok(Self { reading, ..Self::replaced() }),
            Err(error) => Err(refuse(CliError::from(error).message())),
        }
    }

    fn with(report: ImportReport, reading: Reading) -> Self {
        let ImportReport { apart, gone, mut gone_changed, kept, .. } = report;
        let has_faults = reading.faults().any(|fault| !fault.file.is_empty());
        if has_faults {
            // A second record beside a faulty one would split the task once that is corrected.
            gone_changed.clear();
        }
        let deleted = kept.into_iter().filter(|kept| kept.field == "id").map(|kept| kept.task);
        let is_known = reading.is_known.iter().any(|is_known| *is_known);
        // Only `--force` gets here with records that no task came from.
        let takes_all =
            gone.is_empty() && (reading.tasks.is_empty() || (!is_known && !report.created.is_empty()));
        Self {
            reading,
            takes_all,
            is_unreadable: false,
            has_faults,
            apart,
            gone,
            gone_changed,
            deleted: deleted.collect(),
        }
    }
}

/// Reads the file or folder that exists at the path.
pub(super) fn before(app: &App, args: &Args, path: &Path) -> Result<Option<Found>, CliError> {
    if path.is_symlink() && !path.is_dir() {
        let hint = Hint::new("name the file that it leads to");
        // An import through the link remembers its path: the file takes over those tasks.
        let hint = match fs::read_link(path).ok().and_then(|target| target.to_str().map(str::to_owned)) {
            Some(target) => {
                let target = path.with_file_name(target).display().to_string();
                let words = [path.display().to_string(), target];
                hint.text(", after ").command_of("import --moved", words)
            }
            None => hint,
        };
        return Err(CliError::usage_with(format!("`{}` is a symbolic link", path.display()), hint));
    }
    match fs::metadata(path) {
        // Only a missing file means a new one. Any other error must fail: it would overwrite a file that it
        // cannot read.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Ok(metadata) if metadata.is_dir() && args.format.is_folder() => {
            let root = if args.format == Format::Backlog { exchange::backlog_root(path) } else { None };
            let path = root.unwrap_or_else(|| path.to_owned());
            let (files, left_out) = folder::read_folder(args.format, &path)?;
            Ok(Some(Found { format: args.format, why: None, path, files, feature: None, left_out }))
        }
        _ => exchange::find(app, Some(args.format), path).map(Some),
    }
}

/// Describes changes in the file that the store lacks.
fn news(report: &ImportReport) -> Option<String> {
    // Deletions and statuses always stay as they are in the store, so they are no unseen changes.
    let is_news = |kept: &&PreservedField| !matches!(kept.field.as_str(), "id" | "status");
    let both: BTreeSet<&TaskId> = report.kept.iter().filter(is_news).map(|kept| &kept.task).collect();
    let changed: BTreeSet<&TaskId> = report.changed.iter().collect();
    let both: Vec<TaskId> = both.difference(&changed).map(|id| (*id).clone()).collect();
    let lists =
        [("new", &report.created), ("other than here", &report.changed), ("changed on both sides", &both)];
    let words = lists.into_iter().filter(|(_, ids)| !ids.is_empty());
    let words: Vec<String> = words
        .map(|(word, ids)| {
            format!("{} of its tasks {} {word}", ids.len(), if ids.len() == 1 { "is" } else { "are" })
        })
        .collect();
    let ids = lists.iter().flat_map(|(_, ids)| ids.iter()).take(5).map(|id| format!("`{id}`"));
    let ids: Vec<String> = ids.collect();
    (!words.is_empty()).then(|| format!("{} ({})", words.join(", "), ids.join(", ")))
}
