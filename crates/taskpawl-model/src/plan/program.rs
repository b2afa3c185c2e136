//! Defaults for programs: `env`, `cwd`, `shell` and `idempotent` of a call with `run`, of a task and of the plan.
//!
//! They are written into the arguments of `exec` and `shell` calls, so that policy, approvals and cache see one place.

use serde_json::{Value, json};

use crate::task::CallSpec;
use crate::task::interpreter::INTERPRETER;
use crate::value::Map;

/// The fields, in plans.
pub(crate) const FIELDS: [&str; 4] = ["env", "cwd", INTERPRETER, "idempotent"];

/// Defaults for calls that run a program.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ProgramDefaults {
    pub(super) env: Map,
    pub(super) cwd: Option<String>,
    pub(super) shell: Option<Value>,
    pub(super) idempotent: Option<bool>,
}

impl ProgramDefaults {
    /// Returns these defaults, completed by those of the plan. Variables are merged by name.
    pub(super) fn or(mut self, outer: &Self, nulls: &[&str]) -> Self {
        let inherits = |field: &str| !nulls.contains(&field);
        if inherits("env") {
            add_missing(&mut self.env, &outer.env);
        }
        self.cwd = self.cwd.or_else(|| outer.cwd.clone().filter(|_| inherits("cwd")));
        self.shell = self.shell.or_else(|| outer.shell.clone().filter(|_| inherits(INTERPRETER)));
        self.idempotent = self.idempotent.or(outer.idempotent.filter(|_| inherits("idempotent")));
        self
    }

    /// Writes the defaults into a call that runs a program. What the call says itself wins.
    pub(super) fn fill(&self, call: &mut CallSpec) {
        if !matches!(call.tool_name.as_str(), "exec" | "shell") {
            return;
        }
        call.idempotent = call.idempotent.or(self.idempotent);
        if let Some(cwd) = &self.cwd {
            call.args.entry("cwd").or_insert_with(|| cwd.as_str().into());
        }
        if !self.env.is_empty() {
            let env = call.args.entry("env").or_insert_with(|| json!({}));
            if let Value::Object(env) = env {
                add_missing(env, &self.env);
            }
        }
        if let Some(shell) = self.shell.as_ref().filter(|_| call.tool_name == "shell") {
            call.args.entry(INTERPRETER).or_insert_with(|| shell.clone());
        }
    }
}

fn add_missing(map: &mut Map, more: &Map) {
    for (name, value) in more {
        map.entry(name.as_str()).or_insert_with(|| value.clone());
    }
}
