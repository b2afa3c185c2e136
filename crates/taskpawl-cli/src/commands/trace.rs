use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Value, json};
use taskpawl_report::{Detail, chrome_trace, otlp_json, spans};

use super::report::write_file;
use crate::app::App;
use crate::collector::Collector;
use crate::error::CliError;
use crate::output::write_data;
use crate::run_log;

/// Write the trace of a run, or send it to a collector. Works for every run of the history, also for one that was killed
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The spans of tasks lie below that of the run, and those of calls below their task. Their ids are derived from the run: programs, \
HTTP requests and MCP servers get that of their call as the W3C trace context (TRACEPARENT).
A trace is sent only to an address of your own configuration: `[trace] collectors = [\"URL\"]`.

Examples:
  taskpawl trace --format chrome -o trace.json
  taskpawl trace 3f2a --to http://127.0.0.1:4318")]
pub(crate) struct Args {
    /// The run: its id, or the beginning of it [default: the latest]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// The format of the file
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = TraceFormat::Otlp)]
    format: TraceFormat,
    /// Write this file instead of standard output; `-` is that, too
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Send it to this collector of your configuration, by OTLP over HTTP
    #[arg(long, value_name = "URL", conflicts_with_all = ["output", "format"])]
    to: Option<String>,
    /// Also show these: output, errors, args, results, prompts, paths
    #[arg(long, value_name = "DETAILS", value_delimiter = ',')]
    include: Vec<Detail>,
}

/// The format of a trace in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum TraceFormat {
    /// JSON of the OpenTelemetry protocol
    Otlp,
    /// The format of Chrome's trace viewer and Perfetto
    Chrome,
}

/// Writes or sends the trace of a run.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let collector = args.to.as_deref().map(|url| Collector::of(app, url)).transpose()?;
    let plans = app.reader()?;
    let run = run_log::find_run(plans.manager(), args.run.as_deref())?;
    let included = run_log::included(app, &args.include)?;
    let mut spans = spans(&run_log::read(app, plans, &run, &included)?);
    if let Some(collector) = collector {
        let count = spans.len();
        collector
            .send_all(&mut spans, &included)
            .map_err(|source| CliError::Collector { url: collector.url.clone(), source })?;
        if app.is_json() {
            return app.out().data(&json!({"run": run.id, "spans": count, "to": collector.url}));
        }
        app.out().remark(&format!("{count} spans were sent to {}", collector.url));
        return Ok(ExitCode::SUCCESS);
    }
    let text = match args.format {
        TraceFormat::Otlp => otlp_json(&spans, &included).map_err(|error| CliError::Output(error.into()))?,
        TraceFormat::Chrome => chrome_trace(&spans, &included),
    };
    match args.output.as_ref().filter(|path| path.as_os_str() != "-") {
        Some(path) => write_file(path, &text)?,
        // Both formats are JSON, so that the trace is the data of the envelope.
        None if app.is_json() => {
            let trace: Value = serde_json::from_str(&text).map_err(|error| CliError::Output(error.into()))?;
            return app.out().data(&trace);
        }
        None => write_data(text.as_bytes())?,
    }
    if app.is_json() {
        let files: Vec<_> = args.output.iter().map(|file| file.to_string_lossy()).collect();
        return app.out().data(&json!({"run": run.id, "files": files}));
    }
    Ok(ExitCode::SUCCESS)
}
