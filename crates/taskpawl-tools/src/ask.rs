//! Questions of a tool for a person.

use std::sync::Arc;

use crate::error::ToolError;

/// Longest question, in bytes.
const MAX_QUESTION_BYTES: usize = 4 << 10;

/// Longest option, in bytes.
const MAX_OPTION_BYTES: usize = 200;

/// Largest number of options.
const MAX_OPTIONS: usize = 20;

/// A question of a tool for a person. See [`CallContext::ask`](crate::CallContext::ask).
///
/// ```
/// use taskpawl_tools::Ask;
///
/// let ask = Ask::new("Publish the draft?").option("publish").option("keep");
/// assert_eq!(ask.options(), ["publish", "keep"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a question is asked with `CallContext::ask`"]
pub struct Ask {
    text: String,
    options: Vec<String>,
    key: Option<String>,
}

impl Ask {
    /// Makes a question that any text answers.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), options: Vec::new(), key: None }
    }

    /// Adds an answer to choose from; other answers are refused then.
    pub fn option(mut self, option: impl Into<String>) -> Self {
        self.options.push(option.into());
        self
    }

    /// Names the question. By default equal questions of a call are counted, in the order in which each start asks them.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Returns the question.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the answers to choose from; empty if any text is an answer.
    pub fn options(&self) -> &[String] {
        &self.options
    }

    /// Returns the name of the question, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Refuses a question that is empty or too long.
    pub(crate) fn check(&self) -> Result<(), ToolError> {
        let is_bad = |text: &str, most: usize| text.trim().is_empty() || text.len() > most;
        let problem = if is_bad(&self.text, MAX_QUESTION_BYTES) {
            format!("its text is empty, or longer than {MAX_QUESTION_BYTES} bytes")
        } else if self.options.len() > MAX_OPTIONS {
            format!("it has more than {MAX_OPTIONS} options")
        } else if self.options.iter().any(|option| is_bad(option, MAX_OPTION_BYTES)) {
            format!("an option is empty, or longer than {MAX_OPTION_BYTES} bytes")
        } else if (1..self.options.len()).any(|at| self.options[..at].contains(&self.options[at])) {
            "two options are equal".to_owned()
        } else if self.key.as_deref().is_some_and(|key| is_bad(key, MAX_OPTION_BYTES)) {
            format!("its key is empty, or longer than {MAX_OPTION_BYTES} bytes")
        } else {
            return Ok(());
        };
        Err(ToolError::failed(format!("the question cannot be asked: {problem}")))
    }
}

impl From<&str> for Ask {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Ask {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

/// The questions of one start of a call, with the answers of earlier ones. The engine implements it.
pub trait CallQuestions: Send + Sync {
    /// Returns the recorded answer to the next question of this start, or puts the question to a person. Then the start ends: its future
    /// is dropped, and the answer starts the call again.
    ///
    /// # Errors
    /// The call may not start again, or has asked too much.
    fn ask(&self, ask: &Ask) -> Result<Option<String>, ToolError>;

    /// Records that a step of this start is done, so that the start of the call that follows does not repeat it.
    fn note_step(&self);
}

/// Questions that clones of a context share.
pub type SharedQuestions = Arc<dyn CallQuestions>;
