//! Help for models: the language of plans, one construct at a time, and the tools that calls can name.

use serde_json::json;
use taskpawl::tools::ToolSpec;
use taskpawl_planner::language::{self, CONSTRUCTS, PLAN, PLAN_EXAMPLE, topics};
use taskpawl_planner::signature;

use super::actions::Action;
use super::answer::Answer;
use super::caller::Caller;
use super::refusal::Refused;

/// Ways of this server, after the everyday constructs in the answer to `plan`. The other topics follow it.
const OVER_MCP: &str = "\
Repair a failed task with task_update {id, action: retry, fields: {run: ...}}; plan_write of the changed plan does the same. Free data \
goes under metadata.";

/// Returns help about a topic: `plan`, `tools`, the name of a construct or of a tool.
pub(super) fn help(caller: &Caller, topic: &str) -> Result<Answer, Refused> {
    let known = ["plan", "tools"].into_iter().chain(CONSTRUCTS.iter().map(|construct| construct.name));
    let topic = known.into_iter().find(|known| known.eq_ignore_ascii_case(topic)).unwrap_or(topic);
    match topic {
        "plan" => {
            let more =
                format!("more: plan_show {{help: TOPIC}} with {}; or tools, or a tool's name", topics());
            Ok(Answer::new(json!({"help": of_plan(), "example": PLAN_EXAMPLE, "topics": more})))
        }
        "tools" => {
            let tools: Vec<String> = tools(caller).map(|spec| signature(&spec)).collect();
            let hint = "plan_show {help: NAME} has the arguments of one tool";
            Ok(Answer::new(json!({"tools": tools, "hint": hint}))
                .rest(Action::call("plan_show", json!({"help": "tools"}))))
        }
        _ => construct(topic).or_else(|| tool(caller, topic)).ok_or_else(|| {
            Refused::argument("help", format!("no such topic: there are plan, tools, {}", topics()))
        }),
    }
}

fn of_plan() -> String {
    format!("{PLAN} {OVER_MCP}")
}

fn construct(topic: &str) -> Option<Answer> {
    let found = language::construct(topic)?;
    Some(Answer::new(json!({"help": found.text, "example": found.example})))
}

/// Returns a tool with the shape of its arguments.
fn tool(caller: &Caller, name: &str) -> Option<Answer> {
    let spec = tools(caller).find(|spec| spec.name == name)?;
    let mut told = json!({"tool": spec.name, "description": spec.description, "arguments": spec.args_schema["properties"]});
    if let Some(required) = spec.args_schema.get("required") {
        told["required"] = required.clone();
    }
    Some(Answer::new(told).rest(Action::call("plan_show", json!({"help": name}))))
}

/// Returns the tools that calls of a plan can name, by name.
fn tools(caller: &Caller) -> impl Iterator<Item = ToolSpec> {
    let registry = caller.plans.engine().tools();
    let mut all: Vec<ToolSpec> = registry.iter().map(|tool| tool.spec().clone()).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all.into_iter()
}

/// Returns the names of the tools, for a message about an unknown one.
pub(super) fn tool_names(caller: &Caller) -> Vec<String> {
    tools(caller).map(|spec| spec.name).collect()
}

#[cfg(test)]
mod tests {
    use taskpawl_planner::language::Construct;

    use super::*;

    /// Maximum size of the help for everyday constructs, in bytes.
    const MAX_PLAN: usize = 1_500;

    /// Maximum size of the help for one construct.
    const MAX_CONSTRUCT: usize = 600;

    #[test]
    fn help_is_short() {
        let plan = json!({"help": of_plan(), "example": PLAN_EXAMPLE, "topics": topics()}).to_string();
        assert!(plan.len() + 80 <= MAX_PLAN, "{}", plan.len());
        for Construct { name, .. } in CONSTRUCTS {
            let size = construct(name).unwrap().into_json().to_string().len();
            assert!(size <= MAX_CONSTRUCT, "{name}: {size}");
        }
    }
}
