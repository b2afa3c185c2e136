//! Changes of the configuration files.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use taskpawl::model::advice::Hint;

use crate::app::App;
use crate::caller::Caller;
use crate::config::{ConfigFile, SetError};
use crate::error::CliError;
use crate::files::{read_file, replace_file};
use crate::person;
use crate::text::{clean, quoted};

/// Sets one key in a file.
pub(super) fn set(app: &App, key: &str, value: &str, is_project: bool) -> Result<ExitCode, CliError> {
    refuse_agents(app, "config set")?;
    let file = file(app, is_project)?;
    let text = file.read()?;
    let changed = match file.with_value(app.environment(), &text, key, value) {
        Ok(changed) => changed,
        Err(SetError::Config(error)) => return Err(error.into()),
        Err(SetError::Form) => {
            return Err(CliError::usage_with(
                format!("`{}` cannot be set by itself in {}", clean(key), path_of(&file.path)),
                Hint::default().command(edit_words(is_project)).text(" opens the file"),
            ));
        }
    };
    if changed == text {
        app.out().remark(&format!("{} is unchanged", path_of(&file.path)));
        return Ok(ExitCode::SUCCESS);
    }
    write(&file.path, &changed)?;
    app.out().remark(&format!("set `{}` in {}", clean(key), path_of(&file.path)));
    Ok(ExitCode::SUCCESS)
}

/// Lets the person edit a file. An invalid text is kept beside it as a draft, which the next edit continues.
pub(super) fn edit(app: &App, is_project: bool) -> Result<ExitCode, CliError> {
    refuse_agents(app, "config edit")?;
    if !app.terminal().can_ask() {
        return Err(CliError::NoTerminal { by: "config edit" });
    }
    let file = file(app, is_project)?;
    let before = file.read()?;
    let draft = draft_of(&file.path);
    if draft.exists() {
        app.out().remark(&format!("continuing the draft {}", path_of(&draft)));
    } else {
        write(&draft, &before)?;
    }
    run_editor(app, &draft)?;
    let failed = |action, source| CliError::File { action, path: draft.clone(), source };
    let text = read_file(&draft).map_err(|source| failed("read", source))?;
    if let Err(error) = file.check(app.environment(), &text) {
        let again = Hint::default().command(edit_words(is_project));
        app.out().advise(
            &again.text(" continues what was written, which is in ").data(draft.display().to_string()),
        );
        return Err(error.into());
    }
    if text == before {
        app.out().remark(&format!("{} is unchanged", path_of(&file.path)));
    } else {
        write(&file.path, &text)?;
        app.out().remark(&format!("wrote {}", path_of(&file.path)));
    }
    std::fs::remove_file(&draft).map_err(|source| failed("remove", source))?;
    Ok(ExitCode::SUCCESS)
}

fn edit_words(is_project: bool) -> &'static str {
    if is_project { "config edit --project" } else { "config edit" }
}

fn draft_of(path: &Path) -> PathBuf {
    path.with_extension("draft.toml")
}

fn path_of(path: &Path) -> String {
    quoted(&path.display().to_string())
}

/// Refuses programs of tasks and coding agents: the configuration decides what they may do.
fn refuse_agents(app: &App, by: &'static str) -> Result<(), CliError> {
    person::refuse_within_call(app, by)?;
    match app.caller() {
        Caller::Agent(sign) => Err(CliError::ByAgent { by, sign: sign.clone() }),
        Caller::Person | Caller::Program => Ok(()),
    }
}

fn file(app: &App, is_project: bool) -> Result<ConfigFile, CliError> {
    if is_project {
        return Ok(ConfigFile::of_project(app.environment(), app.root()));
    }
    ConfigFile::of_user(app.environment()).ok_or_else(|| {
        CliError::usage_with("there is no place for the configuration of the user", "set HOME")
    })
}

fn write(path: &Path, text: &str) -> Result<(), CliError> {
    replace_file(path, text).map_err(|source| CliError::File {
        action: "write",
        path: path.to_owned(),
        source,
    })
}

/// Runs the editor of the user and waits for its end.
fn run_editor(app: &App, path: &Path) -> Result<(), CliError> {
    let variables = ["VISUAL", "EDITOR"].into_iter().find_map(|name| app.environment().text(name));
    let editor = variables.unwrap_or_else(|| "vi".to_owned());
    // As in git: the variable is a command line, and the file its last argument.
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(path);
    let status = command.status().map_err(|source| CliError::File {
        action: "start the editor for",
        path: path.to_owned(),
        source,
    })?;
    if status.success() {
        return Ok(());
    }
    Err(CliError::usage_with(
        format!("the editor `{}` failed: {status}", clean(&editor)),
        "set VISUAL or EDITOR to an editor",
    ))
}
