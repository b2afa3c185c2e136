//! Kinds of failures in the words of people.

/// Describes the failures of a tool with this error class. `tool` is empty if no call failed.
pub(crate) fn failure_words(tool: &str, class: &str) -> String {
    let what = match class {
        "expression" => "an expression has no value",
        "truncated" => "an expression reads a shortened value",
        "rounds" => "the rounds of `repeat` are used up",
        "reported" => "reported as failed",
        "exit_code" => "the command failed",
        "interrupted" => "it was interrupted",
        "emit" => "its new tasks were refused",
        "denied" => "the policy denies it",
        "timeout" => "it took too long",
        "cancelled" => "it was cancelled",
        "lost" => "its end is not known",
        "spawn" => "the program did not start",
        "invalid_args" => "the arguments are wrong",
        "invalid_json" => "the output is no JSON",
        "output_limit" => "it printed too much",
        "io" => "a file could not be read or written",
        "outside_root" => "a path leads out of the project",
        "protected" => "a file is protected",
        "secret" => "a secret is missing",
        "blocked_address" => "the address is not allowed",
        "http" => "there was no answer",
        "http_status" => "the server answered with an error",
        "tool_error" => "the tool reported an error",
        "server" => "the MCP server failed",
        "panic" => "the tool has a bug",
        "failed" => "the tool failed",
        other => return with_tool(tool, &other.replace('_', " ")),
    };
    with_tool(tool, what)
}

fn with_tool(tool: &str, what: &str) -> String {
    if tool.is_empty() { what.to_owned() } else { format!("{tool}: {what}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_of_the_schema_is_shown() {
        assert_eq!(failure_words("shell", "exit_code"), "shell: the command failed");
        assert_eq!(failure_words("", "rounds"), "the rounds of `repeat` are used up");
        assert_eq!(failure_words("srv/x", "class_of_mine"), "srv/x: class of mine");
    }
}
