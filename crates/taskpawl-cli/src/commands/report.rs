use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use serde_json::json;
use taskpawl::Taskpawl;
use taskpawl::model::value::RunId;
use taskpawl_report::{Detail, RunLog, annotations, html, junit, markdown};

use crate::app::App;
use crate::error::CliError;
use crate::files::write_output;
use crate::output::{neutralize_workflow_commands, write_data};
use crate::run_log;

/// Write a report of a run: a page, JUnit, Markdown or annotations. Works for every run of the history, also for one that was killed
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A report has names, statuses, times and exit codes. `--include` adds output and errors of failed calls, arguments and \
results of calls, descriptions of tasks as prompts, and paths below the home directory; the head of the report lists them.

Examples:
  taskpawl report --html run.html --include output,errors
  taskpawl report 3f2a --junit junit.xml --md summary.md
  taskpawl report --md -")]
pub(crate) struct Args {
    /// The run: its id, or the beginning of it [default: the latest]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Write a self-contained page; `-` for standard output
    #[arg(long, value_name = "FILE", required_unless_present_any = ["junit", "md", "github"])]
    html: Option<PathBuf>,
    /// Write JUnit XML; `-` for standard output
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write Markdown for the summary of a CI step; `-` for standard output
    #[arg(long, value_name = "FILE")]
    md: Option<PathBuf>,
    /// Print annotations for GitHub actions
    #[arg(long)]
    github: bool,
    /// Also show these: output, errors, args, results, prompts, paths
    #[arg(long, value_name = "DETAILS", value_delimiter = ',')]
    include: Vec<Detail>,
}

/// A report that a command writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    Html(PathBuf),
    Junit(PathBuf),
    Markdown(PathBuf),
    Github,
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (format, file) = text.split_once('=').unwrap_or((text, ""));
        let path = PathBuf::from(file);
        match format {
            "github" if file.is_empty() => Ok(Self::Github),
            "html" if !file.is_empty() => Ok(Self::Html(path)),
            "junit" if !file.is_empty() => Ok(Self::Junit(path)),
            "md" if !file.is_empty() => Ok(Self::Markdown(path)),
            _ => Err("expected html=FILE, junit=FILE, md=FILE or github".to_owned()),
        }
    }
}

impl Target {
    fn file(&self) -> Option<&PathBuf> {
        match self {
            Self::Html(file) | Self::Junit(file) | Self::Markdown(file) => Some(file),
            Self::Github => None,
        }
    }

    fn text(&self, log: &RunLog) -> String {
        match self {
            Self::Html(_) => html(log),
            Self::Junit(_) => junit(log),
            Self::Markdown(_) => markdown(log),
            Self::Github => annotations(log),
        }
    }

    fn write(&self, log: &RunLog) -> Result<(), CliError> {
        let text = self.text(log);
        match self.file() {
            Some(path) if path.as_os_str() != "-" => write_file(path, &text),
            // Not as text for a terminal: these bytes are the document.
            Some(_) | None => write_data(text.as_bytes()),
        }
    }
}

/// Writes a file that the command line names.
pub(super) fn write_file(path: &Path, text: &str) -> Result<(), CliError> {
    write_output(path, text).map_err(|source| CliError::File {
        action: "write",
        path: path.to_owned(),
        source,
    })
}

/// Writes reports of a past run.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let files = [
        args.html.clone().map(Target::Html),
        args.junit.clone().map(Target::Junit),
        args.md.clone().map(Target::Markdown),
        args.github.then_some(Target::Github),
    ];
    let targets: Vec<Target> = files.into_iter().flatten().collect();
    check(&targets, app.is_json())?;
    let plans = app.reader()?;
    let run = run_log::find_run(plans.manager(), args.run.as_deref())?;
    write_all(app, plans, &run.id, &targets, &args.include)?;
    let out = app.out();
    if out.is_json {
        let files = targets.iter().filter_map(Target::file).map(|file| file.to_string_lossy());
        let files: Vec<_> = files.collect();
        return out.data(&json!({"run": run.id, "files": files}));
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes reports of a run.
pub(super) fn write_all(
    app: &App,
    plans: &Taskpawl,
    run: &RunId,
    targets: &[Target],
    details: &[Detail],
) -> Result<(), CliError> {
    if targets.is_empty() {
        return Ok(());
    }
    let run = plans.manager().run(run)?;
    let log = run_log::read_for_report(app, plans, &run, &run_log::included(app, details)?)?;
    targets.iter().try_for_each(|target| target.write(&log))
}

/// Refuses reports that would mix with each other, or with the JSON of the command, in one place.
pub(super) fn check(targets: &[Target], is_json: bool) -> Result<(), CliError> {
    let files: Vec<&PathBuf> = targets.iter().filter_map(Target::file).collect();
    if let Some(file) = (1..files.len()).find_map(|at| files[..at].contains(&files[at]).then_some(files[at]))
    {
        return Err(CliError::usage(format!("two reports cannot be written to `{}`", file.display())));
    }
    let is_printed = |target: &&Target| target.file().is_none_or(|file| file.as_os_str() == "-");
    let printed = targets.iter().filter(is_printed).count();
    if printed > 1 {
        let hint = "name a file for all but one of them";
        return Err(CliError::usage_with("several reports go to standard output", hint));
    }
    let prints = printed > 0;
    if !(is_json && prints) {
        return Ok(());
    }
    let hint = "leave out `--json`, or make the report later: `taskpawl report`";
    Err(CliError::usage_with("the report goes to standard output, and so does JSON", hint))
}

/// Prepares for reports at the end of a run: a file that cannot be written is an error before anything runs.
pub(super) fn prepare(targets: &[Target]) -> Result<(), CliError> {
    if targets.contains(&Target::Github) {
        neutralize_workflow_commands();
    }
    for path in targets.iter().filter_map(Target::file).filter(|path| path.as_os_str() != "-") {
        let (data, is_new) = (std::fs::metadata(path).ok(), !path.exists());
        // Opening a pipe waits for its reader, and a link that leads nowhere must stay one.
        if data.is_some_and(|data| !data.is_file() && !data.is_dir()) || is_new && path.is_symlink() {
            continue;
        }
        let opened = std::fs::OpenOptions::new().create(true).append(true).open(path);
        // A run that is refused leaves no empty report.
        let checked = opened.and_then(|_| if is_new { std::fs::remove_file(path) } else { Ok(()) });
        checked.map_err(|source| CliError::File { action: "write", path: path.clone(), source })?;
    }
    Ok(())
}
