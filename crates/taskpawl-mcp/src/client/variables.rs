//! `${NAME}` and `${NAME:-default}` in what configuration files say.

/// Replaces variables by what `look_up` knows of them; `Err` names one that is not set.
pub(super) fn expand(text: &str, look_up: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        expanded.push_str(before);
        let Some((inside, after)) = after.split_once('}') else {
            expanded.push_str("${");
            rest = after;
            continue;
        };
        expanded.push_str(&value(inside, look_up)?);
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// As [`expand`], and a text that is nothing but `$NAME` is that variable, too.
pub(super) fn expand_value(text: &str, look_up: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    match text.strip_prefix('$') {
        Some(name) if is_name(name) => value(name, look_up),
        Some(_) | None => expand(text, look_up),
    }
}

fn value(inside: &str, look_up: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let name = name.strip_prefix("env:").unwrap_or(name);
    look_up(name).or_else(|| default.map(str::to_owned)).ok_or_else(|| name.to_owned())
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(name: &str) -> Option<String> {
        (name == "HOME").then(|| "/home/me".to_owned())
    }

    #[test]
    fn variables_are_replaced_and_what_is_none_stays() {
        let texts = ["${HOME}/x", "${NO:-a b}", "${NO:-}", "${env:HOME}", "$HOME", "a $HOME", "100 %", "${"];
        let expanded: Vec<_> = texts.iter().map(|text| expand(text, &known).unwrap()).collect();
        assert_eq!(expanded, ["/home/me/x", "a b", "", "/home/me", "$HOME", "a $HOME", "100 %", "${"]);
        assert_eq!(expand_value("$HOME", &known).unwrap(), "/home/me");
        assert_eq!(expand_value("$HOME/x", &known).unwrap(), "$HOME/x");
    }

    #[test]
    fn one_that_is_not_set_is_named() {
        assert_eq!(expand("a ${TOKEN} b", &known).unwrap_err(), "TOKEN");
        assert_eq!(expand_value("$TOKEN", &known).unwrap_err(), "TOKEN");
    }
}
