//! Folders with one `tasks.md` for each feature: spec-kit, `OpenSpec` and Kiro.

use std::fs;
use std::path::{Path, PathBuf};

use taskpawl_formats::{Files, Format, LeftOut, detected};

use crate::commands::exchange::{self, Found};
use crate::commands::folder;
use crate::error::CliError;

/// The file of a feature.
const FILE: &str = "tasks.md";

/// Returns the features of a folder: those in its subfolders, its own, or those at the usual path of a project. `whole` is the
/// absolute path.
pub(super) fn find(format: Option<Format>, whole: &Path, path: &Path) -> Result<Vec<Found>, CliError> {
    let mut paths = below(path)?;
    if paths.files.is_empty() && path.join(FILE).is_file() {
        paths.files.push(path.join(FILE));
    }
    if !paths.files.is_empty() {
        return of_paths(format, whole, &paths);
    }
    let all = [Format::SpecKit, Format::OpenSpec, Format::Kiro];
    let wanted = all.into_iter().filter(|other| format.is_none_or(|format| format == *other));
    let mut found = Vec::new();
    for format in wanted {
        let Some(usual) = format.usual_path() else { continue };
        // `openspec` and `.kiro` are the folders above theirs.
        let inner = Path::new(usual).strip_prefix(whole.file_name().unwrap_or_default()).ok();
        for folder in [Some(Path::new(usual)), inner].into_iter().flatten().map(|folder| path.join(folder)) {
            let paths = below(&folder)?;
            if !paths.files.is_empty() {
                // Inside `.kiro`, `specs` is Kiro's, and not that of spec-kit.
                found.retain(|(_, other, _)| *other != folder);
                found.push((format, folder, paths));
                break;
            }
        }
    }
    match found.as_slice() {
        [(format, folder, paths)] => {
            let why = format!("it has `{}`", folder.display());
            let mut features = of_paths(Some(*format), whole, paths)?;
            for feature in &mut features {
                feature.why = Some(why.clone());
            }
            Ok(features)
        }
        [] => Ok(Vec::new()),
        several => {
            let names: Vec<String> = several
                .iter()
                .map(|(format, folder, _)| format!("`{}` ({})", folder.display(), format.name()))
                .collect();
            Err(CliError::usage_with(
                format!("`{}` has several folders of features: {}", path.display(), names.join(", ")),
                "name one of them",
            ))
        }
    }
}

/// The files of the features in a folder, and those that are links.
#[derive(Default)]
struct Below {
    files: Vec<PathBuf>,
    links: Vec<PathBuf>,
}

/// Returns the files of the features in a folder, by name. Archived changes of `OpenSpec` lie one level deeper.
fn below(folder: &Path) -> Result<Below, CliError> {
    let failed = |source| CliError::File { action: "read", path: folder.to_owned(), source };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Below::default()),
        Err(error) => return Err(failed(error)),
    };
    let mut below = Below::default();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let file = entry.path().join(FILE);
        if !file.is_file() {
            continue;
        }
        let is_link = entry.file_type().map_err(failed)?.is_symlink() || file.is_symlink();
        if is_link { &mut below.links } else { &mut below.files }.push(file);
    }
    below.files.sort();
    below.links.sort();
    Ok(below)
}

fn of_paths(format: Option<Format>, whole: &Path, paths: &Below) -> Result<Vec<Found>, CliError> {
    let link = |path: &PathBuf| {
        let (why, hint) = folder::LINK;
        folder::unread(path.display().to_string(), why, hint)
    };
    let mut unreadable: Vec<LeftOut> = paths.links.iter().map(link).collect();
    let (mut features, mut left) = (Vec::new(), exchange::MAX_BYTES);
    for path in &paths.files {
        let name = || path.display().to_string();
        let bytes = match exchange::read_bytes(path, left) {
            Ok(bytes) => bytes,
            Err(CliError::File { source, .. }) => {
                let why = format!("it cannot be read: {source}");
                unreadable.push(folder::unread(name(), why, "make it readable"));
                continue;
            }
            Err(error) => return Err(error),
        };
        left -= bytes.len() as u64;
        match String::from_utf8(bytes) {
            Ok(text) => features.push((path.clone(), text)),
            Err(error) => unreadable.push(folder::not_utf8(name(), &error)),
        }
    }
    if let (true, Some(LeftOut { what, why, hint, .. })) = (features.is_empty(), unreadable.first()) {
        return Err(CliError::usage_with(format!("`{what}`: {why}"), hint.clone()));
    }
    let (format, why) = match format {
        Some(format) => (format, None),
        None => match detect(whole, &features) {
            Some((format, why)) => (format, Some(why)),
            None => return Ok(Vec::new()),
        },
    };
    let found = features.into_iter().map(|(path, text)| {
        let whole = if path.is_absolute() { path.clone() } else { whole.join(FILE) };
        let parent = path.parent().and_then(Path::file_name).or(whole.parent().and_then(Path::file_name));
        let feature = parent.map(|name| name.to_string_lossy().into_owned());
        // Messages name the file, and all features call theirs alike.
        let (why, files) = (why.clone(), Files::single(path.display().to_string(), text));
        // The files that cannot be read are listed once.
        let left_out = std::mem::take(&mut unreadable);
        Found { format, why, path, files, feature, left_out }
    });
    Ok(found.collect())
}

/// Returns the format of a folder: by its path, by what its features have beside `tasks.md`, or by the ids of their items.
fn detect(whole: &Path, features: &[(PathBuf, String)]) -> Option<(Format, String)> {
    let whole = whole.to_string_lossy().into_owned() + "/";
    let has = |name: &str| features.iter().any(|(path, _)| path.with_file_name(name).is_file());
    for (format, above) in [(Format::Kiro, "/.kiro/specs/"), (Format::OpenSpec, "/openspec/changes/")] {
        if whole.contains(above) {
            return Some((format, format!("it lies below `{}`", above.trim_matches('/'))));
        }
    }
    let beside = [
        (Format::OpenSpec, "proposal.md"),
        (Format::SpecKit, "plan.md"),
        (Format::SpecKit, "spec.md"),
        (Format::Kiro, "requirements.md"),
    ];
    for (format, name) in beside {
        if has(name) {
            return Some((format, format!("it has folders with `{FILE}` and `{name}`")));
        }
    }
    let (_, text) = features.first()?;
    let found = detected("", &Files::single(FILE, text.as_str())).ok()?;
    found.format.has_features().then_some((found.format, found.why))
}
