//! Reports and traces of runs, made from the events of their history.
//!
//! The crate is pure: events and tasks go in, text or bytes come out. It reads no file and no clock, and sends nothing.
//! [`LogBuilder`] collects a [`RunLog`], which holds nothing that a report may not show: output, arguments, results,
//! errors, prompts and paths are dropped there unless [`Included`] names them. Every report is written from it.

mod artifacts;
mod chrome;
mod gen_ai;
mod github;
mod html;
mod included;
mod junit;
mod log;
mod markdown;
mod otlp;
mod sandboxes;
mod spans;
mod timeline;

pub use artifacts::LeftFile;
pub use chrome::chrome_trace;
pub use github::{annotations, without_commands};
pub use html::html;
pub use included::{Detail, Included};
pub use junit::junit;
pub use log::{Attempt, CallLog, LogBuilder, Outcome, Printed, RunEnd, RunLog, SourceLine, TaskLog};
pub use markdown::markdown;
pub use otlp::{otlp_json, otlp_protobuf};
pub use sandboxes::Sandboxes;
pub use spans::{AttributeValue, SpanRecord, SpanStatus, run_span, spans, task_spans};
