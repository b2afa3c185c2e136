//! The question before the files of a project are pushed to a remote for the first time.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use taskpawl::tools::make_private_directories;

use crate::app::App;
use crate::caller::Caller;
use crate::commands::create::ask;
use crate::commands::prune::size;
use crate::error::CliError;
use crate::person;
use crate::state_files::state_file;
use crate::text::{clean, count};

/// Name of the flag in refusals.
const BY: &str = "--files git";

/// Lets the files of the project go to `remote` if the user has agreed to it, now or before. `is_given` is the agreement by flag.
pub(crate) fn check(app: &App, remote: &str, is_given: bool) -> Result<(), CliError> {
    let root = app.place()?.root.clone();
    let entry = format!("{}\t{remote}", root.display());
    let mut known = read(app);
    if known.contains(&entry) {
        return Ok(());
    }
    person::refuse_within_call(app, BY)?;
    match app.caller() {
        Caller::Agent(sign) => return Err(CliError::ByAgent { by: BY, sign: sign.clone() }),
        _ if is_given => {}
        Caller::Program => {
            let message = format!(
                "`{BY}` would push the files of this project to `{}` for the first time",
                clean(remote)
            );
            return Err(CliError::usage_with(message, "run it at a terminal once, or add `--send-files`"));
        }
        Caller::Person => ask_first(app, &root, remote)?,
    }
    known.insert(entry);
    write(app, &known)
}

/// Shows the number and the size of the files, and asks.
fn ask_first(app: &App, root: &Path, remote: &str) -> Result<(), CliError> {
    let outline = taskpawl::outline(root, &scratch(app)?).map_err(|why| {
        CliError::usage_with(why, "use `--files shared`, or run in the top directory of a repository")
    })?;
    let out = app.out();
    let (files, bytes) = (count(outline.files, "tracked file"), size(outline.bytes));
    let place = clean(&root.display().to_string());
    out.remark(&format!("{files} of `{place}`, {bytes}, go to `{}`", clean(remote)));
    for (path, bytes) in &outline.largest {
        out.remark(&format!("  {}  {}", clean(path), size(*bytes)));
    }
    out.remark("ignored files and `.env*` files stay here; tasks add untracked files with `sends`");
    let answer = ask(app, "push them, now and for later runs (yes/no)")?;
    if answer == "yes" || answer == "y" {
        Ok(())
    } else {
        Err(CliError::usage("the files of the project were not sent"))
    }
}

fn file(app: &App) -> Option<PathBuf> {
    state_file(app, "sent-projects")
}

fn scratch(app: &App) -> Result<PathBuf, CliError> {
    let file = file(app).ok_or_else(|| CliError::usage("there is no state directory for the index"))?;
    if let Some(directory) = file.parent() {
        make_private_directories(directory).map_err(|source| CliError::File {
            action: "make",
            path: directory.to_owned(),
            source,
        })?;
    }
    Ok(file.with_extension("index"))
}

fn read(app: &App) -> BTreeSet<String> {
    let text = file(app).and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn write(app: &App, known: &BTreeSet<String>) -> Result<(), CliError> {
    let Some(path) = file(app) else { return Ok(()) };
    let text: String = known.iter().flat_map(|entry| [entry.as_str(), "\n"]).collect();
    let write = || {
        if let Some(directory) = path.parent() {
            make_private_directories(directory)?;
        }
        fs::write(&path, text)
    };
    write().map_err(|source| CliError::File { action: "write", path: path.clone(), source })
}
