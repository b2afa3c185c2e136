//! Implementation of [`Tool`] for the tools of all dialects.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use taskpawl_tools::{CallContext, Tool, ToolError, ToolSpec};

use crate::answer::Answer;
use crate::args::Args;
use crate::lists::Lists;
use crate::vocabulary::{ToolText, Verb, of_dialect};
use crate::{Dialect, checklist, conversation, queue, session};

/// A tool of a dialect.
#[derive(Debug)]
pub(crate) struct DialectTool {
    text: &'static ToolText,
    spec: ToolSpec,
    lists: Lists,
}

impl DialectTool {
    pub(crate) fn new(text: &'static ToolText, lists: Lists) -> Self {
        Self { text, spec: text.spec(lists.rule().is_by_argument()), lists }
    }

    /// Returns the names of the arguments.
    fn params(&self) -> Vec<&'static str> {
        let alias = if self.text.verb == Verb::Manage { &checklist::LIST_ARGUMENTS[..] } else { &[] };
        // The scope argument is accepted even if the scope is fixed; it is ignored then.
        let params = self.text.all_params(true).map(|param| param.name);
        params.chain(alias.iter().copied()).collect()
    }
}

#[async_trait]
impl Tool for DialectTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn reaches_plan(&self) -> bool {
        false
    }

    async fn call(&self, cx: CallContext, args: Value) -> Result<Value, ToolError> {
        cx.check()?;
        let (verb, lists) = (self.text.verb, self.lists.clone());
        let ignored: Vec<String> = Args::of(&args).unknown(&self.params()).map(str::to_owned).collect();
        // Session lists are only in memory. All other dialects may block on files or the store.
        if matches!(verb, Verb::Write | Verb::Read) {
            return answer(&lists, verb, &cx, &args).ignoring(ignored).into_result();
        }
        match tokio::task::spawn_blocking(move || answer(&lists, verb, &cx, &args)).await {
            Ok(answer) => answer.ignoring(ignored).into_result(),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime shut down before the work started.
                Err(_) => Err(ToolError::Cancelled { result: None }),
            },
        }
    }

    /// Skips the validation by the host: the dialect has its own error texts, which models know.
    fn policy_args(&self) -> Option<Vec<&str>> {
        Some(self.params())
    }

    fn is_repeatable(&self, args: &Value) -> bool {
        // Repeating `ack` is safe: a receipt that was already acknowledged is an error that changes nothing.
        let looks = ["lpeek", "rpeek", "list", "count", "ack"];
        let is_look = || Args::of(args).text("operation").is_some_and(|word| looks.contains(&word));
        self.spec.hints.idempotent || (self.text.verb == Verb::Queue && is_look())
    }
}

fn answer(lists: &Lists, verb: Verb, cx: &CallContext, args: &Value) -> Answer {
    let args = Args::of(args);
    match verb {
        Verb::ListTasks | Verb::AddTask | Verb::CompleteTask | Verb::UncompleteTask | Verb::DeleteTask => {
            conversation::answer(lists, verb, cx, args)
        }
        Verb::Manage => checklist::answer(lists, cx, args),
        Verb::Write | Verb::Read => session::answer(lists, verb, cx, args),
        Verb::Queue => queue::answer(lists, cx, args),
        Verb::Promote => unreachable!("BUG: it is no tool of a dialect"),
    }
}

impl Lists {
    /// Returns the tools of a dialect, for a registry, a server, or any other host of tools.
    ///
    /// Hosts must not validate arguments against the schemas ([`policy_args`](Tool::policy_args)), because each dialect
    /// has its own answers for invalid ones. Results are texts for the model, as a
    /// [`Value::String`](serde_json::Value). Failures are [`ToolError::Answered`](taskpawl_tools::ToolError::Answered)
    /// with such a text as their result.
    pub fn tools(&self, dialect: Dialect) -> Vec<Arc<dyn Tool>> {
        let tool = |text| Arc::new(DialectTool::new(text, self.clone())) as Arc<dyn Tool>;
        of_dialect(dialect).map(tool).collect()
    }
}
