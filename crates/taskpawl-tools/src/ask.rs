//! Questions of a tool for a person.

use std::sync::Arc;

use crate::context::CallContext;
use crate::error::ToolError;

/// Longest question, in bytes.
const MAX_QUESTION_BYTES: usize = 4 << 10;

/// Longest option, in bytes.
const MAX_OPTION_BYTES: usize = 200;

/// Largest number of options.
const MAX_OPTIONS: usize = 20;

/// A question of a tool for a person. See [`CallContext::ask`].
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

    fn check(&self) -> Result<(), ToolError> {
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

impl CallContext {
    /// Asks a person, and returns the answer.
    ///
    /// The task waits with the question as with an approval, and the run continues with other work. The answer comes in the ways of
    /// approvals: the approver of the run, `taskpawl approve --answer`, MCP clients that ask people. A plain approval answers `yes`;
    /// a rejection cancels the task.
    ///
    /// Without a recorded answer this does not return: the future of the call is dropped, and after the answer, in this process or another
    /// one, **the tool starts over** and gets the recorded answer here. An answer belongs to the question, its key and the arguments of the
    /// call. Put effects before the question into [`step`](Self::step), so that they are not repeated.
    ///
    /// ```
    /// # async fn publish(cx: taskpawl_tools::CallContext) -> Result<String, taskpawl_tools::ToolError> {
    /// use taskpawl_tools::{Ask, ToolError};
    ///
    /// let draft: String = cx.step("draft", async { Ok::<_, ToolError>("a text".to_owned()) }).await?;
    /// match cx.ask(Ask::new(format!("Publish {draft}?")).option("yes").option("no")).await?.as_str() {
    ///     "yes" => Ok("published".to_owned()),
    ///     _ => Ok("kept".to_owned()),
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// The call is outside of a run; or the tool is neither `idempotent` nor `read_only` and has done no [`step`](Self::step), so that it
    /// must not start over; or the question is too long.
    pub async fn ask(&self, question: impl Into<Ask>) -> Result<String, ToolError> {
        let ask = question.into();
        ask.check()?;
        let Some(questions) = &self.questions else {
            return Err(ToolError::failed("only calls of a run can ask a person"));
        };
        match questions.ask(&ask)? {
            Some(answer) => Ok(answer),
            // The engine drops the call. An error instead could be caught by the tool or by a layer, which would then go on unanswered.
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bad_questions_and_questions_outside_of_a_run_are_refused() {
        let cx = CallContext::new("/", "/");
        let refused = async |ask: Ask| cx.ask(ask).await.unwrap_err().to_string();
        assert_eq!(refused("go?".into()).await, "only calls of a run can ask a person");
        for (ask, says) in [
            (Ask::new(" "), "its text is empty"),
            (Ask::new("x".repeat(5000)), "longer than 4096 bytes"),
            (Ask::new("go?").option("a").option("a"), "two options are equal"),
            (Ask::new("go?").option(""), "an option is empty"),
            (Ask::new("go?").key(""), "its key is empty"),
            ((0..21).fold(Ask::new("go?"), |ask, at| ask.option(at.to_string())), "more than 20 options"),
        ] {
            let error = refused(ask).await;
            assert!(error.contains(says), "{error}");
        }
    }
}
