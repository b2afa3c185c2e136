use serde_json::Value;
use taskpawl_text::cut;
use taskpawl_tools::ToolSpec;

/// The most characters of a tool's description.
const MAX_DESCRIPTION: usize = 70;

/// Tools whose calls fields of tasks add: `artifacts`, `include` and `worktree`.
const OF_FIELDS: [&str; 3] = ["artifacts", "return", "worktree_commit"];

/// Returns the tools that a planner may call, by name.
pub(crate) fn offered<'t>(tools: impl IntoIterator<Item = &'t ToolSpec>) -> Vec<&'t ToolSpec> {
    let mut tools: Vec<&ToolSpec> =
        tools.into_iter().filter(|tool| !OF_FIELDS.contains(&tool.name.as_str())).collect();
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    tools
}

/// Returns a tool in one line: its arguments, optional ones with a question mark, and its effect.
pub fn signature(spec: &ToolSpec) -> String {
    let required: Vec<&str> =
        spec.args_schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = spec.args_schema["properties"].as_object();
    let others = properties.into_iter().flatten().map(|(name, _)| name.as_str());
    let others = others.filter(|name| !required.contains(name)).map(|name| format!("{name}?"));
    let arguments: Vec<String> = required.iter().map(|name| (*name).to_owned()).chain(others).collect();
    format!("{} {{{}}}: {}", spec.name, arguments.join(", "), cut(&spec.description, MAX_DESCRIPTION))
}
