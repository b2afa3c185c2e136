//! Reads and writes the task files that agents and people already have: beads, Task Master, Claude, Taskwarrior, Backlog.md,
//! Markdown checklists, and `tasks.json`.
//!
//! Pure: texts in, tasks out, and back. What a format says of a task is mapped; what it says beyond that stands in
//! `metadata.<format>` of the task and is given back as it was. A word that means less here than there is kept, too, and given back
//! as long as it still means the state of the task.
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
mod derived;
mod error;
mod existing_document;
mod files;
mod format;
mod front_matter;
mod ids;
pub mod json_text;
mod lines;
mod markdown;
mod own_fields;
mod preserved;
mod record;
mod states;
mod taskmaster;
mod tasks;
mod taskwarrior;
mod times;
mod unsupported;

pub use derived::keep_states;
pub use error::FormatError;
pub use files::Files;
pub use format::{Format, LeftOut, Options, Reading, Written, detect, read, without, write, write_over};
