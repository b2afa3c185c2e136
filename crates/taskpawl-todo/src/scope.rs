//! Whose list a call is about.

use taskpawl_tools::CallContext;

use crate::args::Args;

/// Where the scope of a call comes from: the conversation or session whose list it is about.
///
/// A scope that is fixed comes first, then that of the call ([`CallContext::scope`]), then the argument, where calls may bring it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScopeRule {
    fixed: Option<String>,
    by_argument: bool,
    has_own: bool,
}

impl ScopeRule {
    /// The scope of the call: for programs that embed the tools, and for plans. Calls without one share a list, but for the dialect
    /// [`Conversation`](crate::Dialect::Conversation), which needs the id of a conversation.
    pub fn of_call() -> Self {
        Self { fixed: None, by_argument: false, has_own: true }
    }

    /// Always this one: for a server that was started for one conversation. Nothing that calls bring changes it.
    pub fn fixed(scope: impl Into<String>) -> Self {
        Self { fixed: Some(scope.into()), by_argument: false, has_own: false }
    }

    /// An argument of the call, `conversation_id` or `session_id`, which then stands in the schemas; without it one list for all of
    /// this process: for a server with one client.
    pub fn argument_or_own() -> Self {
        Self { fixed: None, by_argument: true, has_own: true }
    }

    /// An argument of the call, as of [`argument_or_own`](Self::argument_or_own); without it a call is refused: for a server with
    /// several clients that keeps nothing on their connections.
    pub fn argument() -> Self {
        Self { fixed: None, by_argument: true, has_own: false }
    }

    /// Returns whether schemas have the argument.
    pub(crate) fn is_by_argument(&self) -> bool {
        self.by_argument
    }

    /// Returns the scope of a call that somebody named.
    pub(crate) fn named(&self, cx: &CallContext, args: Args<'_>, argument: &str) -> Option<String> {
        let brought = || args.filled(argument).filter(|_| self.by_argument).map(str::to_owned);
        self.fixed.clone().or_else(|| cx.scope.clone()).or_else(brought)
    }

    /// Returns the scope of a call, or `own` where nobody named one and calls without may share a list.
    pub(crate) fn any(&self, cx: &CallContext, args: Args<'_>, argument: &str, own: &str) -> Option<String> {
        self.named(cx, args, argument).or_else(|| self.has_own.then(|| own.to_owned()))
    }
}
