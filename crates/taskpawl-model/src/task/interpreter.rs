//! The program that reads the command of a `shell` call.
//!
//! It is an argument of the call, so that policy, approvals and cache see it. Calls stored by version 0.1 have none and
//! run as they were written, with `/bin/sh -c`.

use serde_json::Value;

use super::spec::CallSpec;
use crate::value::Shared;

/// Name of the argument, and of the field in plans.
pub(crate) const INTERPRETER: &str = "shell";

/// The interpreter of calls that name none: `/bin/sh -e`.
const DEFAULT: &str = "sh";

impl CallSpec {
    /// Returns whether another program than a known shell reads the command. Its rules for quoting are unknown.
    pub(crate) fn has_own_interpreter(&self) -> bool {
        self.tool_name == "shell" && self.args.get(INTERPRETER).is_some_and(Value::is_array)
    }

    /// Writes the default interpreter into a `shell` call that names none.
    pub(crate) fn fill_interpreter(&mut self) {
        if self.lacks_interpreter() {
            self.args.insert(INTERPRETER.to_owned(), DEFAULT.into());
        }
    }

    fn lacks_interpreter(&self) -> bool {
        self.tool_name == "shell" && !self.args.contains_key(INTERPRETER)
    }

    /// Returns whether two calls do the same in the eyes of their author, who may have written them for version 0.1.
    pub(crate) fn is_same_work(&self, other: &Self) -> bool {
        if self.lacks_interpreter() == other.lacks_interpreter() {
            return self == other;
        }
        let filled = |call: &Self| {
            let mut call = call.clone();
            call.fill_interpreter();
            call
        };
        filled(self) == filled(other)
    }
}

/// Returns the call with its interpreter.
pub(crate) fn with_interpreter(call: &Shared<CallSpec>) -> Shared<CallSpec> {
    let mut call = call.clone();
    if call.lacks_interpreter() {
        call.fill_interpreter();
    }
    call
}
