//! Questions that a tool asks while it runs, their answers, the texts that send a call back, and the files that a call leaves.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::value::Timestamp;

/// A question that a tool asked a person while it ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolQuestion {
    /// The name that tells it from equal questions of the same call.
    pub key: String,
    /// The question.
    pub ask: String,
    /// The answers to choose from; any text is an answer if it is empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The SHA-256, in hexadecimal, of the question and of the work that asks it.
    pub hash: String,
}

impl ToolQuestion {
    /// Makes a question. `work` stands for the call with its arguments: an answer is valid for this work alone.
    pub fn new(key: impl Into<String>, ask: impl Into<String>, options: Vec<String>, work: &str) -> Self {
        let (key, ask) = (key.into(), ask.into());
        let parts = [work, &key, &ask].into_iter().chain(options.iter().map(String::as_str));
        // The length before each part keeps different parts from having the same digest.
        let digest = parts.fold(Sha256::new(), |digest, part| {
            digest.chain_update(part.len().to_le_bytes()).chain_update(part)
        });
        let hash = format!("{:x}", digest.finalize());
        Self { key, ask, options, hash }
    }
}

/// An answer to a question of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolAnswer {
    /// The question.
    pub question: ToolQuestion,
    /// The answer: one of the options, or any text.
    pub answer: String,
    /// The actor that answered.
    pub by: String,
    /// The time of the answer.
    pub at: Timestamp,
}

/// The questions of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Asked {
    /// The question that waits for an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<ToolQuestion>,
    /// The answers, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<ToolAnswer>,
    /// The rework of the task that made the call start again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rework: Option<Rework>,
}

/// A round in which the agent of a task corrects work that failed its verification, or that a person sent back, as a call of the task
/// sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Rework {
    /// The number of the round, from 1.
    pub round: u32,
    /// The last round; after it a failed verification fails the task. Each round of a person adds one.
    pub last: u32,
    /// The text of the failed verification, or of a person, for the call of the agent. Other calls begin again from the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// The person who sent the result back; absent for a failed verification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// A file that a call left for its readers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Artifact {
    /// The name, by which expressions read it; without one it is that of the file, up to its last dot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The path: relative to the root of the project, or absolute for a file in the directory of the run.
    pub path: String,
    /// The size in bytes.
    pub bytes: u64,
    /// The SHA-256 of the content, in hexadecimal.
    pub sha256: String,
    /// The media type, such as `text/csv`.
    pub media_type: String,
}

impl Artifact {
    /// Makes the record of a file.
    pub fn new(
        path: impl Into<String>,
        bytes: u64,
        sha256: impl Into<String>,
        media_type: impl Into<String>,
    ) -> Self {
        let (path, sha256, media_type) = (path.into(), sha256.into(), media_type.into());
        Self { name: None, path, bytes, sha256, media_type }
    }

    /// Gives the file a name.
    #[must_use]
    pub fn named(self, name: Option<String>) -> Self {
        Self { name, ..self }
    }

    /// Returns the name by which expressions read it.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_else(|| stem(&self.path))
    }

    /// Returns the value that expressions read.
    pub(crate) fn value(&self) -> Value {
        let Self { path, bytes, sha256, media_type, .. } = self;
        json!({"path": path, "bytes": bytes, "sha256": sha256, "type": media_type})
    }
}

/// Returns the name of a file, up to its last dot.
pub(crate) fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(stem, _)| if stem.is_empty() { name } else { stem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_a_question_is_in_its_hash() {
        let hash = |key: &str, ask: &str, options: &[&str], work: &str| {
            let options = options.iter().map(|option| (*option).to_owned()).collect();
            ToolQuestion::new(key, ask, options, work).hash
        };
        let one = hash("1", "go?", &["a", "b"], "w");
        assert_eq!(one, hash("1", "go?", &["a", "b"], "w"));
        let others = [
            hash("2", "go?", &["a", "b"], "w"),
            hash("1", "go", &["?a", "b"], "w"),
            hash("1", "go?", &["ab"], "w"),
            hash("1", "go?", &["a", "b"], "v"),
        ];
        assert!(others.iter().all(|other| *other != one), "{others:?}");
    }
}
