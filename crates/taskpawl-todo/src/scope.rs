//! The scope of a call: the conversation or session whose list it uses.

use taskpawl_tools::CallContext;

use crate::args::Args;

/// Determines the scope of a call.
///
/// The order of precedence is: a fixed scope, the scope of the call ([`CallContext::scope`]), and the argument if the
/// rule allows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScopeRule {
    fixed: Option<String>,
    by_argument: bool,
    has_own: bool,
}

impl ScopeRule {
    /// Uses the scope of the call: for plans, and for programs that embed the tools. Calls without a scope share one
    /// list, except in the dialect [`Conversation`](crate::Dialect::Conversation), which needs the id of a
    /// conversation.
    pub fn of_call() -> Self {
        Self { fixed: None, by_argument: false, has_own: true }
    }

    /// Always uses this scope: for a server that is started for one conversation. Calls cannot override it.
    pub fn fixed(scope: impl Into<String>) -> Self {
        Self { fixed: Some(scope.into()), by_argument: false, has_own: false }
    }

    /// Adds an argument `conversation_id` or `session_id` to the schemas. Calls without it share one list: for a server
    /// with one client.
    pub fn argument_or_own() -> Self {
        Self { fixed: None, by_argument: true, has_own: true }
    }

    /// Adds the argument like [`argument_or_own`](Self::argument_or_own), but refuses calls without it: for a server
    /// with several clients that keeps no state per connection.
    pub fn argument() -> Self {
        Self { fixed: None, by_argument: true, has_own: false }
    }

    /// Returns whether the schemas contain the argument.
    pub(crate) fn is_by_argument(&self) -> bool {
        self.by_argument
    }

    /// Returns the scope that the rule, the call or an argument names.
    pub(crate) fn named(&self, cx: &CallContext, args: Args<'_>, argument: &str) -> Option<String> {
        let brought = || args.filled(argument).filter(|_| self.by_argument).map(str::to_owned);
        self.fixed.clone().or_else(|| cx.scope.clone()).or_else(brought)
    }

    /// Returns the scope of a call. Falls back to `own` if none is named and the rule lets such calls share a list.
    pub(crate) fn any(&self, cx: &CallContext, args: Args<'_>, argument: &str, own: &str) -> Option<String> {
        self.named(cx, args, argument).or_else(|| self.has_own.then(|| own.to_owned()))
    }
}
