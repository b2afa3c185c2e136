//! Calls that ask a person.

use super::CallContext;
use crate::ask::Ask;
use crate::error::ToolError;

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
