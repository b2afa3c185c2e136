//! The flags that every command has.

use clap::Args;

use crate::config::ColorWord;

/// Flags of every command.
#[derive(Debug, Clone, Default, Args)]
#[expect(clippy::doc_markdown, reason = "the comments are help texts")]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Use this store: a database file or json:PATH [env: TASKPAWL_STORE]
    #[arg(long, global = true, value_name = "STORE", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) store: Option<String>,
    // An attribute, because rustdoc would turn `user@host` in a comment into a link.
    #[arg(long, global = true, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new(), help = "Act as an agent of this name [env: TASKPAWL_ACTOR] [default: user@host]")]
    pub(crate) actor: Option<String>,
    /// Print JSON: {schemaVersion, data, page?}, and errors as {schemaVersion, error}, both on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only these fields of each object, as in id,status,metadata.context; implies --json
    #[arg(long, global = true, value_name = "FIELDS", value_delimiter = ',')]
    pub(crate) fields: Vec<String>,
    /// Print ids alone where a command lists the tasks that it changed, and no remarks
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Use colours: auto (on a terminal, unless NO_COLOR is set), always or never [env: TASKPAWL_COLOR]
    #[arg(long, global = true, value_name = "WHEN", value_enum, hide_possible_values = true)]
    pub(crate) color: Option<ColorWord>,
}
