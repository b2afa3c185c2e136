//! The files that the tasks of a run left.

use maud::{Markup, html};
use taskpawl_model::task::{Artifact, ToolCall};
use taskpawl_text::escaped;

use crate::included::Included;

/// The most files of one task that a report lists.
const MAX_LISTED: usize = 50;

/// A file that a call left. Reports name it without its directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftFile {
    /// The name.
    pub name: String,
    /// The media type.
    pub media_type: String,
    /// The size in bytes.
    pub bytes: u64,
}

impl LeftFile {
    /// Returns the files of a call.
    pub(crate) fn of(call: &ToolCall, included: &Included) -> Vec<Self> {
        let file = |artifact: &Artifact| Self {
            name: included.text(artifact.name()),
            media_type: included.text(&artifact.media_type),
            bytes: artifact.bytes,
        };
        call.artifacts.iter().map(file).collect()
    }

    /// Returns the file as a text, such as `plan (text/markdown, 12 bytes)`.
    pub(crate) fn text(&self) -> String {
        format!("{} ({}, {} bytes)", self.name, self.media_type, self.bytes)
    }
}

/// Returns the files of a task as texts, the first of many.
pub(crate) fn texts(files: &[LeftFile]) -> Vec<String> {
    let mut texts: Vec<String> = files.iter().take(MAX_LISTED).map(LeftFile::text).collect();
    if files.len() > MAX_LISTED {
        texts.push(format!("and {} more", files.len() - MAX_LISTED));
    }
    texts
}

/// Returns the files of a task as HTML.
pub(crate) fn html(files: &[LeftFile]) -> Markup {
    html! { @for text in texts(files) { p.quiet { "artifact " (escaped(&text)) } } }
}
