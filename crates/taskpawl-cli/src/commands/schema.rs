use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::app::App;
use crate::error::CliError;
use crate::schema;
use crate::state_files::write_state;

/// Print JSON Schemas. Prints the schema of plan files, of a part of them, of events, or of the configuration
#[derive(Debug, clap::Args)]
#[command(after_help = "\
`--install` writes the schema to the data directory of the user, `~/.local/share/taskpawl`, and prints the line that names it in \
a file. With it as its first line, editors with a YAML language server complete fields and mark misspelt ones.

Examples:
  taskpawl schema > plan.schema.json
  taskpawl schema task
  taskpawl schema plan --install")]
pub(crate) struct Args {
    /// Of what
    #[arg(value_name = "WHAT", value_enum, default_value_t = What::Plan)]
    what: What,
    /// Write the schema for editors, and print the line that names it in a file
    #[arg(long)]
    install: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    /// A plan file
    Plan,
    /// A task of a plan
    Task,
    /// A tool call of a task
    Call,
    /// A file of the configuration
    Config,
    /// A policy file
    Policy,
    /// A change, as `history` exports it
    Event,
}

impl What {
    fn schema(self) -> Value {
        match self {
            Self::Plan => schema::plan(),
            Self::Task => schema::task(),
            Self::Call => schema::call(),
            Self::Config => schema::config(),
            Self::Policy => taskpawl::tools::policy_schema(),
            Self::Event => schema::event(),
        }
    }

    /// Returns the comment with which a file names its schema. Configuration and policies are TOML files, for which Taplo reads it.
    fn line(self, path: &str) -> String {
        // The name of a schema ends at a space, while an address has none.
        let is_plain = !path.contains(' ');
        let path = if is_plain { path.to_owned() } else { format!("file://{}", path.replace(' ', "%20")) };
        match self {
            Self::Config | Self::Policy => format!("#:schema {path}"),
            Self::Plan | Self::Task | Self::Call | Self::Event => {
                format!("# yaml-language-server: $schema={path}")
            }
        }
    }
}

/// Prints a JSON schema, or writes it for editors.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let schema = args.what.schema();
    let out = app.out();
    if out.is_json && !args.install {
        return out.data(&schema);
    }
    // The output is a schema file, so `--json` adds no envelope to it.
    let text = crate::output::to_text(&schema, true).map_err(|error| CliError::Output(error.into()))? + "\n";
    if !args.install {
        return out.print(&text);
    }
    let path = installed(app, args.what)?;
    write_state(&path, &text).map_err(|source| CliError::File {
        action: "write",
        path: path.clone(),
        source,
    })?;
    let path = path.display().to_string();
    let line = args.what.line(&path);
    if out.is_json {
        return out.data(&json!({ "path": path, "line": line }));
    }
    out.print(format!("wrote {path}\nthe first line of a file that names it:\n{line}\n"))
}

/// Returns the place of an installed schema.
fn installed(app: &App, what: What) -> Result<PathBuf, CliError> {
    let environment = app.environment();
    let is_absolute = |path: &PathBuf| path.is_absolute();
    let home = || environment.path("HOME").filter(is_absolute).map(|home| home.join(".local").join("share"));
    let base = environment.path("XDG_DATA_HOME").filter(is_absolute).or_else(home);
    let name = what.to_possible_value().expect("BUG: no kind of schema is hidden");
    let name = name.get_name();
    let base = base.ok_or_else(|| {
        let hint = format!("write it to a place of your choice: taskpawl schema {name} > {name}.schema.json");
        CliError::usage_with(
            "no place for the schema: neither `HOME` nor `XDG_DATA_HOME` is an absolute path",
            hint,
        )
    })?;
    Ok(base.join("taskpawl").join(format!("{name}.schema.json")))
}
