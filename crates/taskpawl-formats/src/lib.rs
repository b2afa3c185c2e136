//! Reads and writes the task files that agents and people already have: beads, Task Master, Claude, Taskwarrior, Backlog.md,
//! Markdown checklists, and `tasks.json`.
//!
//! The crate does no I/O: it turns texts into tasks and tasks into texts. Fields that a task can express are mapped. Everything else in
//! a record is preserved in `metadata.<format>` of the task and written back unchanged. A status word that is more precise than the
//! task's status is preserved as well, and written back as long as it still fits that status.
//!
//! ```
//! use taskpawl_formats::{Files, Format, Options, read, write};
//!
//! let files = Files::single("todo.md", "- [x] Design\n- [ ] Build\n");
//! let options = Options::at("2030-01-01T00:00:00Z".parse().unwrap());
//! let reading = read(Format::Markdown, &files, &options).unwrap();
//! assert_eq!(reading.tasks[0].status.as_str(), "done");
//! let written = write(Format::Claude, &reading.tasks, None);
//! assert_eq!(written.files.iter().count(), 2);
//! ```

#![expect(clippy::result_large_err, reason = "an error ends the reading of all files")]

pub mod acp;
mod backlog;
mod beads;
mod claude;
mod content;
mod derived;
mod detect;
mod error;
mod escapes;
mod existing_document;
mod faults;
mod files;
mod format;
mod front_matter;
mod github;
mod ids;
mod items;
pub mod json_text;
mod kind;
mod known;
mod lines;
mod links;
mod markdown;
mod own_fields;
mod preserved;
mod reading;
mod record;
mod shrimp;
mod states;
mod taskmaster;
mod tasks;
mod taskwarrior;
mod times;
mod todotxt;
mod unsupported;
mod uuids;

pub use derived::keep_states;
pub use detect::{Detected, detect, detected};
pub use error::FormatError;
pub use files::Files;
pub use format::{read, read_back, without, write, write_over};
pub use kind::Format;
pub use known::{Ambiguous, Known, Renamed, id_in_renamed_tag};
pub use reading::{LeftOut, Options, Reading, Written};
