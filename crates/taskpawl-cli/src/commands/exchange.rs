//! Shared parts of `import` and `export`: format names, bounded reading of files, and the source that tasks
//! are recorded with.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};

use serde::de::IgnoredAny;
use serde_json::{Value, json};
use taskpawl::model::advice::Hint;
use taskpawl::model::command::DivergingField;
use taskpawl::model::value::TaskId;
use taskpawl_formats::{Files, Format, LeftOut, detected};

use crate::app::App;
use crate::commands::features;
use crate::commands::folder::{inner_folders, read_folder};
use crate::error::CliError;

/// Number of bytes that are read, over all files of an import.
pub(super) const MAX_BYTES: u64 = 64 << 20;

/// Number of files that are read from a folder.
pub(super) const MAX_FILES: usize = 10_000;

/// Parses the name of a format.
pub(crate) fn format(name: &str) -> Result<Format, String> {
    Format::from_name(name).ok_or_else(|| {
        let all: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
        let near = Format::nearest(name).map(|near| format!("; did you mean `{}`?", near.name()));
        format!("there is no format `{name}`{}; there are {}", near.unwrap_or_default(), all.join(", "))
    })
}

/// Parses the name of a format that can be written.
pub(crate) fn writable_format(name: &str) -> Result<Format, String> {
    let format = format(name)?;
    if format.is_writable() {
        return Ok(format);
    }
    Err(format!("`{name}` is only read: change issues through GitHub, for example by `gh issue close`"))
}

/// The files of one import, or the existing files of an export.
pub(super) struct Found {
    /// The format.
    pub(super) format: Format,
    /// What was seen, if the format was detected.
    pub(super) why: Option<String>,
    /// The path of the file or folder; `-` means standard input or output.
    pub(super) path: PathBuf,
    /// The contents, with names relative to `path`.
    pub(super) files: Files,
    /// The name of the feature folder, in formats that have one file for each feature.
    pub(super) feature: Option<String>,
    /// Folders that the format does not read.
    pub(super) left_out: Vec<LeftOut>,
}

/// Refuses an export that exceeds the limits of `import`, so that everything written can be read again.
pub(super) fn check_size(path: &Path, files: &Files) -> Result<(), CliError> {
    let bytes: usize = files.iter().map(|(_, text)| text.len()).sum();
    if files.iter().count() <= MAX_FILES && bytes as u64 <= MAX_BYTES {
        return Ok(());
    }
    let limits = format!("{MAX_FILES} files or {} MiB", MAX_BYTES >> 20);
    Err(CliError::usage_with(
        format!("`{}` would have more than {limits}, and could not be read again", path.display()),
        "export a part of it with `--only`",
    ))
}

/// Reads files in the given format, or in the one that is detected without ambiguity. A folder of features has several.
pub(super) fn find_all(app: &App, format: Option<Format>, path: &Path) -> Result<Vec<Found>, CliError> {
    let is_folder = path.as_os_str() != "-" && path.is_dir();
    if is_folder && format.is_none_or(Format::has_features) {
        let features = features::find(format, &absolute(app, path)?, path)?;
        if !features.is_empty() {
            return Ok(features);
        }
    }
    Ok(vec![find(app, format, path)?])
}

/// Like [`find_all`], for a single file, or a folder of a single source.
pub(super) fn find(app: &App, format: Option<Format>, path: &Path) -> Result<Found, CliError> {
    if path.as_os_str() == "-" {
        let bytes = read_some(&mut io::stdin().lock(), path, MAX_BYTES)?;
        let files = Files::single("<stdin>", text_of(path, bytes)?);
        return known("", format, path.to_owned(), files);
    }
    let failed = |source| CliError::File { action: "read", path: path.to_owned(), source };
    let whole = absolute(app, path)?;
    if fs::metadata(path).map_err(failed)?.is_dir() {
        return find_folder(format, path, &whole);
    }
    let files = Files::single(shown_name(path), read_file(path, MAX_BYTES)?);
    known(&whole.to_string_lossy(), format, path.to_owned(), files)
}

fn known(whole: &str, format: Option<Format>, path: PathBuf, files: Files) -> Result<Found, CliError> {
    let (format, why) = match format {
        Some(format) => (format, None),
        None => match detected(whole, &files) {
            Ok(detected) => (detected.format, Some(detected.why)),
            Err(seen) => return Err(unclear(&path, &files, &seen)),
        },
    };
    let feature = || Path::new(whole).parent()?.file_name()?.to_str().map(str::to_owned);
    let feature = if format.has_features() { feature() } else { None };
    Ok(Found { format, why, path, files, feature, left_out: Vec::new() })
}

fn unclear(path: &Path, files: &Files, seen: &str) -> CliError {
    let shown = path.display();
    let is_json = |name: &str| Path::new(name).extension().is_some_and(|extension| extension == "json");
    let of_json = files.iter().find(|(name, _)| is_json(name));
    let bare = of_json.map(|(_, text)| text.strip_prefix('\u{feff}').unwrap_or(text));
    let broken = bare
        .filter(|text| !text.trim().is_empty())
        .and_then(|text| serde_json::from_str::<IgnoredAny>(text).err());
    match broken {
        Some(error) => CliError::usage_with(
            format!("`{shown}` is not valid JSON: {error}"),
            "restore the file, or let its own program write it again",
        ),
        None => CliError::usage_with(
            format!("it is not clear which format `{shown}` has: {seen}"),
            Hint::new("name it: ").command_of("import FORMAT", [shown.to_string()]),
        ),
    }
}

fn shown_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn find_folder(format: Option<Format>, path: &Path, whole: &Path) -> Result<Found, CliError> {
    // The folder of a format tells more than a folder `tasks` inside it, which Backlog.md has, too.
    if let Some(found) = usual_file(format, path, |usual| inside(usual, whole))? {
        return Ok(found);
    }
    if format.is_none_or(|format| format == Format::Backlog)
        && let Some(root) = backlog_root(path)
    {
        let (files, unreadable) = read_folder(Format::Backlog, &root)?;
        let why = format.is_none().then(|| "it has `tasks/` or `config.yml` of Backlog.md".to_owned());
        let left_out = inner_folders(&root)?.into_iter().chain(unreadable).collect();
        return Ok(Found { format: Format::Backlog, why, path: root, files, feature: None, left_out });
    }
    if let Some(found) = usual_file(format, path, |usual| vec![usual])? {
        return Ok(found);
    }
    match format {
        Some(format) if format.has_features() => Err(CliError::usage_with(
            format!("`{}` has no folders with a `tasks.md`", path.display()),
            Hint::new("name the folder of the features, or a `tasks.md`"),
        )),
        Some(format) if !format.is_folder() => Err(CliError::usage_with(
            format!("`{}` is a folder, and `{}` is one file", path.display(), format.name()),
            "name the file",
        )),
        Some(Format::Backlog) => Err(CliError::usage_with(
            format!("`{}` has neither `tasks` nor `config.yml`", path.display()),
            "name the folder of Backlog.md, which is usually `backlog`",
        )),
        _ => {
            let (files, left_out) = read_folder(Format::Claude, path)?;
            if format.is_none() && files.iter().next().is_none() && left_out.is_empty() {
                let problem = format!("`{}` is a folder without task files that are read", path.display());
                return Err(CliError::usage_with(problem, "name the file"));
            }
            Ok(Found { left_out, ..known("", format, path.to_owned(), files)? })
        }
    }
}

/// Returns the ends of a usual path below a folder whose path ends with its beginning.
fn inside(usual: &'static Path, folder: &Path) -> Vec<&'static Path> {
    let above = usual.ancestors().skip(1).filter(|above| *above != Path::new("") && folder.ends_with(above));
    above.filter_map(|above| usual.strip_prefix(above).ok()).collect()
}

/// Reads the file that a project usually has for a format of single files. `names` returns where in the folder it may be, from its usual
/// path.
fn usual_file(
    format: Option<Format>,
    folder: &Path,
    names: impl Fn(&'static Path) -> Vec<&'static Path>,
) -> Result<Option<Found>, CliError> {
    let formats = Format::ALL.iter().copied();
    let formats = formats
        .filter(|other| format.is_none_or(|format| format == *other))
        .filter(|other| !other.is_folder() && !other.has_features());
    let found = formats.filter_map(|format| {
        let names = names(Path::new(format.usual_path()?));
        let mut paths = names.into_iter().map(|name| folder.join(name));
        Some((format, paths.find(|path| path.is_file() && !path.is_symlink())?))
    });
    let found: Vec<(Format, PathBuf)> = found.collect();
    match found.as_slice() {
        [] => Ok(None),
        [(found, path)] => {
            let why = format.is_none().then(|| format!("it has `{}`", path.display()));
            let files = Files::single(shown_name(path), read_file(path, MAX_BYTES)?);
            let path = path.clone();
            Ok(Some(Found { format: *found, why, path, files, feature: None, left_out: Vec::new() }))
        }
        several => {
            let paths: Vec<String> = several
                .iter()
                .map(|(format, path)| format!("`{}` ({})", path.display(), format.name()))
                .collect();
            Err(CliError::usage_with(
                format!("`{}` has several files with tasks: {}", folder.display(), paths.join(", ")),
                "name one of them",
            ))
        }
    }
}

/// Returns the folder itself, or the Backlog.md folder of a project.
pub(super) fn backlog_root(path: &Path) -> Option<PathBuf> {
    let is_root = |path: &PathBuf| path.join("config.yml").is_file() || path.join("tasks").is_dir();
    [path.to_owned(), path.join("backlog"), path.join(".backlog")].into_iter().find(is_root)
}

/// Reads a regular file. A link is followed only if the command line names it: then the user chose to open
/// it.
fn read_file(path: &Path, most: u64) -> Result<String, CliError> {
    text_of(path, read_bytes(path, most)?)
}

/// Like [`read_file`], for any content.
pub(super) fn read_bytes(path: &Path, most: u64) -> Result<Vec<u8>, CliError> {
    let failed = |source| CliError::File { action: "read", path: path.to_owned(), source };
    // `O_NONBLOCK` opens a FIFO without waiting for a writer. Otherwise the check below would come too late.
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let flags = flags.bits().cast_signed();
    let mut file: File = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(CliError::usage_with(
            format!("`{}` is not a file", path.display()),
            "`-` stands for standard input",
        ));
    }
    read_some(&mut file, path, most)
}

fn text_of(path: &Path, bytes: Vec<u8>) -> Result<String, CliError> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let problem = format!("`{}` is not UTF-8 (byte {at})", path.display());
        CliError::usage_with(problem, "save it as UTF-8")
    })
}

fn read_some(from: &mut dyn io::Read, path: &Path, most: u64) -> Result<Vec<u8>, CliError> {
    let failed = |source| CliError::File { action: "read", path: path.to_owned(), source };
    let mut bytes = Vec::new();
    // One byte more than the limit tells a file of exactly that size from a longer one.
    from.take(most + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > most {
        let problem = format!("`{}` exceeds {} MiB in total", path.display(), MAX_BYTES >> 20);
        return Err(CliError::usage_with(problem, "split it, or leave finished tasks out of it"));
    }
    Ok(bytes)
}

fn absolute(app: &App, path: &Path) -> Result<PathBuf, CliError> {
    let whole = std::path::absolute(app.environment().directory.join(path));
    let whole = whole.map_err(|source| CliError::File { action: "find", path: path.to_owned(), source })?;
    Ok(normal(&whole))
}

/// Returns the source of an import. It is stored with the tasks, so it must not depend on the working
/// directory.
pub(super) fn source(app: &App, format: Format, path: &Path) -> Result<String, CliError> {
    let place = if path.as_os_str() == "-" {
        "standard input".to_owned()
    } else {
        let whole = absolute(app, path)?;
        // Relative to the project, so that a project that moves keeps its sources.
        let root = app.place()?.root.clone();
        whole
            .strip_prefix(&root)
            .map_or_else(|_| whole.display().to_string(), |path| path.display().to_string())
    };
    Ok(format!("{} {place}", format.name()))
}

/// Returns true if the file of a source is gone, or was standard input.
pub(super) fn is_gone(app: &App, format: Format, source: &str) -> bool {
    let Some(place) = source.strip_prefix(format.name()).and_then(|place| place.strip_prefix(' ')) else {
        return false;
    };
    let root = app.place().map(|place| place.root.clone()).unwrap_or_default();
    place == "standard input" || !root.join(place).exists()
}

/// Resolves `.` and `..` in a path by its text alone: links are not followed, and the file may not exist.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => normal.push(part),
        }
    }
    normal
}

/// Returns the omitted fields, records and lines for `--json`.
pub(super) fn left_out(list: &[LeftOut]) -> Vec<Value> {
    let one = |left: &LeftOut| {
        let mut value = json!({ "what": left.what, "why": left.why });
        if !left.file.is_empty() {
            value["file"] = json!(left.file);
        }
        if let Some(line) = left.line {
            value["line"] = json!(line);
        }
        value
    };
    list.iter().map(one).collect()
}

/// Reports fields, records and lines that are left out. Faulty ones are counted.
pub(super) fn remark_left_out(app: &App, list: &[LeftOut]) {
    let place = |left: &LeftOut| match (left.file.as_str(), left.line) {
        ("", _) => String::new(),
        (file, Some(line)) => format!("{file}:{line}: "),
        (file, None) if file == left.what => String::new(),
        (file, None) => format!("{file}: "),
    };
    let lines = list.iter().map(|left| format!("{}{}: {}", place(left), left.what, left.why));
    remark_some(app, "left out", lines);
    let faults = list.iter().filter(|left| left.is_fault).count();
    if faults > 0 {
        let count = crate::text::count(faults as u64, "faulty record");
        app.out().remark(&format!("warning: {count} left out; `--strict` refuses such a file"));
    }
}

/// Reports values of the file that the export replaced.
pub(super) fn remark_overwritten(app: &App, list: &[DivergingField]) {
    let lines = list.iter().map(|apart| format!("{}: {}: {}", apart.task, apart.field, both(apart)));
    remark_some(app, "overwritten", lines);
}

/// Reports tasks that were removed from the file and are written to it again.
pub(super) fn remark_again(app: &App, list: &[TaskId]) {
    remark_some(app, "written again", list.iter().map(|id| format!("{id}: it was removed from the file")));
}

/// Reports tasks of the file that were deleted in the store: they stay in the file unless `--take-out` is
/// given.
pub(super) fn remark_deleted(app: &App, list: &BTreeSet<TaskId>, is_out: bool) {
    let (label, what) = if is_out {
        ("removed", "it was deleted here")
    } else {
        ("deleted here", "it stays in the file; `--take-out` removes it")
    };
    remark_some(app, label, list.iter().map(|id| format!("{id}: {what}")));
}

pub(super) fn remark_some(app: &App, label: &str, lines: impl ExactSizeIterator<Item = String>) {
    const MAX_SHOWN: usize = 10;
    let more = lines.len().saturating_sub(MAX_SHOWN);
    for line in lines.take(MAX_SHOWN) {
        app.out().remark(&format!("{label}: {line}"));
    }
    if more > 0 {
        app.out().remark(&format!("{label}: {more} more (--json lists them)"));
    }
}

/// Formats both values of a field. Long ones are not printed.
pub(super) fn both(apart: &DivergingField) -> String {
    const MAX_SHOWN: usize = 60;
    let short = |value: &Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let is_short = text.chars().count() <= MAX_SHOWN && !text.contains('\n');
        is_short.then(|| if value.is_null() { "nothing".to_owned() } else { format!("`{text}`") })
    };
    match short(&apart.there).zip(short(&apart.here)) {
        Some((there, here)) => format!("{there} there, {here} here"),
        None => "one text there, another one here (--json has both)".to_owned(),
    }
}
