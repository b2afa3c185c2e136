use std::process::ExitCode;

use taskpawl::model::rules::resolve;
use taskpawl::model::task::{Priority, Status};
use taskpawl::model::view::Query;

use crate::app::App;
use crate::commands::{parse, print};
use crate::error::CliError;
use crate::text::quoted;

/// List tasks. Lists all tasks by age, unless filtered
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl list --status failed,blocked
  taskpawl list --plan release --assignee ada --limit 0
  taskpawl list --text report --fields id,status")]
pub(crate) struct Args {
    /// Only in these states
    #[arg(long, short, value_name = "STATUS", value_delimiter = ',', value_parser = parse::status())]
    status: Vec<Status>,
    /// Only assigned to
    #[arg(long, value_name = "NAME")]
    assignee: Option<String>,
    /// Only of these priorities
    #[arg(long, value_name = "PRIORITY", value_delimiter = ',', value_parser = parse::priority())]
    priority: Vec<Priority>,
    /// Only with this label; given twice, with both
    #[arg(long = "label", value_name = "LABEL", value_delimiter = ',')]
    labels: Vec<String>,
    /// Only of this plan
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,
    /// Only directly below this task
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
    /// Only with this text in id, name or description, in any case
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

/// Which part of a list is shown.
#[derive(Debug, clap::Args)]
pub(crate) struct PageArgs {
    /// Show at most so many, 0 for all [default: 50]
    #[arg(long, short = 'n', value_name = "N", value_parser = parse::number::<usize>)]
    pub(super) limit: Option<usize>,
    /// Leave out so many at the beginning
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = parse::number::<usize>)]
    pub(super) offset: usize,
}

impl PageArgs {
    /// Returns the page size, from the flag or the configuration; 0 means no limit.
    pub(super) fn limit(&self, app: &App) -> Result<usize, CliError> {
        self.limit.map_or_else(|| Ok(app.config()?.limit), Ok)
    }
}

/// Lists the tasks that match all filters.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let manager = app.reader()?.manager();
    let parent = args.parent.as_deref().map(|id| manager.read(|view| resolve(view, id))).transpose()?;
    let (limit, offset) = (args.page.limit(app)?, args.page.offset);
    let query = Query {
        status: args.status.clone(),
        ready: None,
        assignee: args.assignee.clone(),
        free_for: None,
        priority: args.priority.clone(),
        labels: args.labels.clone(),
        plan: args.plan.clone(),
        parent,
        text: args.text.clone(),
        limit,
        offset,
    };
    print::page(app, &manager.list(&query)?, limit, offset, &args.command())
}

impl Args {
    /// Returns a command with the same filters, for the hint about the next page.
    fn command(&self) -> String {
        let mut command = "list".to_owned();
        let mut add = |flag: &str, value: &str| {
            if !value.is_empty() {
                command = format!("{command} --{flag} {}", quoted(value));
            }
        };
        let words = |words: Vec<&str>| words.join(",");
        add("status", &words(self.status.iter().map(|status| status.as_str()).collect()));
        add("priority", &words(self.priority.iter().map(|priority| priority.as_str()).collect()));
        self.labels.iter().for_each(|label| add("label", label));
        for (flag, value) in [
            ("assignee", &self.assignee),
            ("plan", &self.plan),
            ("parent", &self.parent),
            ("text", &self.text),
        ] {
            add(flag, value.as_deref().unwrap_or_default());
        }
        command
    }
}
