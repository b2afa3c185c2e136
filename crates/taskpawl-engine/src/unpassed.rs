//! Variables that a command uses and that are set outside, but that its programs do not have.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use serde_json::Value;
use taskpawl_model::task::is_identifier;
use taskpawl_tools::CallContext;

/// Shells whose arguments are read as commands, too.
const SHELLS: [&str; 4] = ["sh", "bash", "dash", "zsh"];

/// Variables that shells set themselves.
const OF_SHELLS: [&str; 6] = ["PWD", "OLDPWD", "SHLVL", "BASH", "HOSTNAME", "_"];

/// Prefix of the variables that every call has.
const OF_CALLS: &str = "TASKPAWL_";

/// Longest list of names in a warning.
const MAX_NAMES: usize = 5;

/// Returns a warning for the variables that the commands of a call use without having them. `is_outer` returns whether
/// a variable is set outside.
pub(crate) fn warning(
    tool: &str,
    args: &Value,
    context: &CallContext,
    is_outer: &impl Fn(&str) -> bool,
) -> Option<String> {
    let used = commands(tool, args).into_iter().flat_map(used_variables).collect::<BTreeSet<_>>();
    let is_set = |name: &str| OF_SHELLS.contains(&name) || name.starts_with(OF_CALLS);
    let has = |name: &str| {
        is_set(name) || args["env"].get(name).is_some() || context.environment.contains(OsStr::new(name))
    };
    let names: Vec<&str> = used.into_iter().filter(|name| is_outer(name) && !has(name)).collect();
    let first = names.first()?;
    let shown: Vec<String> = names.iter().take(MAX_NAMES).map(|name| format!("`${name}`")).collect();
    let more = names.len().saturating_sub(MAX_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let list = shown.join(", ");
    Some(format!(
        "the command uses {list}{more}, set here but not passed to it; pass it with `--env {first}`"
    ))
}

/// Returns the texts among the arguments that a shell reads.
fn commands<'a>(tool: &str, args: &'a Value) -> Vec<&'a str> {
    match tool {
        "shell" => args["command"].as_str().into_iter().collect(),
        "exec" => {
            let mut words = args["argv"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let program = words.next().unwrap_or_default();
            let is_shell = SHELLS.contains(&program.rsplit('/').next().unwrap_or(program));
            if is_shell { words.collect() } else { Vec::new() }
        }
        _ => Vec::new(),
    }
}

/// Returns the names of the variables that a command expands, without those that it sets itself.
fn used_variables(command: &str) -> BTreeSet<&str> {
    let (mut used, mut rest, mut is_double) = (BTreeSet::new(), command, false);
    while let Some(at) = rest.find(['$', '\'', '"', '\\']) {
        let (sign, after) = (rest.as_bytes()[at], &rest[at + 1..]);
        rest = match sign {
            b'\\' => after.strip_prefix(|_: char| true).unwrap_or_default(),
            // Single quotes keep `$`, but are ordinary characters within double quotes.
            b'\'' if !is_double => after.split_once('\'').map_or("", |(_, rest)| rest),
            b'$' => {
                used.extend(name_at(after));
                after
            }
            _ => {
                is_double ^= sign == b'"';
                after
            }
        };
    }
    used.retain(|name| !is_set_by(command, name));
    used
}

fn name_at(text: &str) -> Option<&str> {
    let text = text.strip_prefix('{').unwrap_or(text);
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    Some(&text[..end]).filter(|name| is_identifier(name))
}

/// Returns whether a command sets a variable by an assignment, `for` or `read`.
fn is_set_by(command: &str, name: &str) -> bool {
    let is_break = |c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')');
    let mut is_named = false;
    command.split(is_break).any(|word| {
        let was_named = is_named;
        // The names follow `read`, maybe after its options.
        is_named = matches!(word, "for" | "read") || (was_named && word.starts_with('-'));
        word.split_once('=').is_some_and(|(set, _)| set == name) || (was_named && word == name)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde_json::json;
    use taskpawl_tools::Environment;

    use super::*;

    fn used(command: &str) -> Vec<&str> {
        used_variables(command).into_iter().collect()
    }

    #[test]
    fn expanded_variables_are_found_outside_of_single_quotes() {
        assert_eq!(used("psql $URL -c \"select '${NAME}'\" '$NO' \\$NO $1 $$ ${A:-b}"), ["A", "NAME", "URL"]);
        assert_eq!(used("X=1; for F in a b; do echo $F $X; done; read -r L; echo $L $Y"), ["Y"]);
        assert_eq!(used("echo 'open $NO"), [""; 0]);
        assert_eq!(used("echo ü\\"), [""; 0]);
    }

    #[test]
    fn only_variables_that_are_set_outside_and_missing_inside_are_reported() {
        let mut context = CallContext::new("/", "/");
        let inside = BTreeMap::from([("HERE".into(), "1".into())]);
        context.environment = Arc::new(Environment::Exactly(inside));
        let is_outer = |name: &str| name != "NOWHERE";
        let of = |tool: &str, args: Value| warning(tool, &args, &context, &is_outer);
        let text = of("shell", json!({"command": "echo $HERE $OWN $NOWHERE $LOST", "env": {"OWN": "1"}}));
        assert_eq!(
            text.as_deref(),
            Some("the command uses `$LOST`, set here but not passed to it; pass it with `--env LOST`")
        );
        assert!(of("exec", json!({"argv": ["/bin/sh", "-c", "echo $LOST"]})).is_some());
        assert_eq!(of("exec", json!({"argv": ["echo", "$LOST"]})), None);
    }
}
