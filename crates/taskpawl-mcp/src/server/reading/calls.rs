//! Tool calls in the form of other programs.

use serde_json::{Map, Value, json};

use super::texts::{duration, object};
use super::values::rename;
use super::{Reading, words};

impl Reading<'_> {
    /// Reads a call, or a list of calls.
    pub(super) fn calls(&mut self, value: &mut Value) {
        if let Some(read) = value.as_str().and_then(object) {
            self.replace("call", value, read);
        }
        match value {
            Value::Array(calls) => calls.iter_mut().for_each(|call| self.calls(call)),
            Value::Object(call) => self.call(call),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn call(&mut self, call: &mut Map<String, Value>) {
        self.long_form(call);
        if let Some(timeout) = call.get_mut("timeout") {
            let read = match &*timeout {
                Value::Number(seconds) => Some(json!(format!("{seconds}s"))),
                Value::String(text) => duration(text).map(Value::from),
                Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
            };
            if let Some(read) = read {
                self.replace("timeout", timeout, read);
            }
        }
        if let Some(name) = call.get("toolName").and_then(Value::as_str).map(str::to_owned) {
            let known = self.tool_named(&name);
            if known != name {
                call.insert("toolName".to_owned(), json!(known));
            }
            if let Some(Value::Object(args)) = call.get_mut("args") {
                self.arguments(&known, args);
            }
            return;
        }
        let names: Vec<String> = call.keys().cloned().collect();
        for name in names {
            let known = self.tool_named(&name);
            let is_there = rename(call, &name, &known) || known == name;
            if let Some(Value::Object(args)) = call.get_mut(&known).filter(|_| is_there) {
                self.arguments(&known, args);
            }
        }
    }

    /// Reads `{name or tool, arguments or args or input}` as the long form.
    fn long_form(&mut self, call: &mut Map<String, Value>) {
        let has_args =
            ["args", "arguments", "input", "parameters"].into_iter().find(|name| call.contains_key(*name));
        let name = ["tool", "name", "tool_name"]
            .into_iter()
            .find(|name| call.get(*name).is_some_and(Value::is_string));
        let (Some(name), false) = (name, call.contains_key("toolName")) else { return };
        if call.len() > 2 + usize::from(call.contains_key("id")) {
            return;
        }
        if rename(call, name, "toolName") {
            self.tell_name(name, "toolName");
        }
        if let Some(args) = has_args.filter(|args| *args != "args")
            && rename(call, args, "args")
        {
            self.tell_name(args, "args");
        }
        if let Some(args) = call.get_mut("args")
            && let Some(read) = args.as_str().and_then(object)
        {
            self.replace("args", args, read);
        }
    }

    /// Returns the tool that a name means. A registered tool's exact name wins.
    fn tool_named(&mut self, name: &str) -> String {
        let meant = words::tool(name)
            .filter(|meant| self.tools.get(name).is_none() && self.tools.get(meant).is_some());
        match meant {
            Some(meant) => {
                self.tell_name(name, meant);
                meant.to_owned()
            }
            None => name.to_owned(),
        }
    }

    /// Renames arguments of a built-in tool. Their values are taken as they are.
    fn arguments(&mut self, tool: &str, args: &mut Map<String, Value>) {
        let names: Vec<String> = args.keys().cloned().collect();
        for name in names {
            let Some(meant) = words::tool_argument(tool, &name) else { continue };
            if meant == "argv" && !args[&name].is_array() {
                continue;
            }
            if rename(args, &name, meant) {
                self.tell_name(&format!("{tool}.{name}"), meant);
            }
        }
    }
}
