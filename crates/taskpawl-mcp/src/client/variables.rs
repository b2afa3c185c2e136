//! Placeholders in configuration files: `${NAME}`, `${NAME:-default}` and `${secret:NAME}`.

use std::fmt;

use taskpawl::model::value::is_secret_name;

/// The prefix of a secret's name in a placeholder.
const SECRET: &str = "secret:";

/// The name in a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name<'t> {
    /// An environment variable.
    Variable(&'t str),
    /// A secret, which is resolved when the server is started.
    Secret(&'t str),
}

/// The reason why a placeholder cannot be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unfilled {
    /// The variable is not set.
    Unset(String),
    /// The name of the secret is not valid.
    NoName(String),
    /// A placeholder contains another one.
    Nested(String),
}

impl fmt::Display for Unfilled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset(name) => {
                write!(f, "variable `{name}` is not set; set it, or write `${{{name}:-default}}`")
            }
            Self::NoName(name) => write!(
                f,
                "`${{secret:{name}}}` names no secret: a name has 1 to 64 letters, digits, `_` and `-`"
            ),
            Self::Nested(inside) => {
                write!(f, "`${{{inside}` has a placeholder within another one, which is not understood")
            }
        }
    }
}

/// Replaces placeholders by the values that `look_up` returns. Inserted values are not expanded again.
pub(super) fn expand(text: &str, look_up: &dyn Fn(Name<'_>) -> Option<String>) -> Result<String, Unfilled> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        // `$${secret:…}` stands for the literal text. A `$$` before any other placeholder is not an escape.
        if let Some(before) = before.strip_suffix('$').filter(|_| after.starts_with(SECRET)) {
            expanded.push_str(before);
            expanded.push_str("${");
            rest = after;
            continue;
        }
        expanded.push_str(before);
        let Some((inside, after)) = after.split_once('}') else {
            // An unclosed `${` is literal text, but a secret is probably meant here.
            if let Some(name) = after.strip_prefix(SECRET) {
                return Err(Unfilled::NoName(name.chars().take(64).collect()));
            }
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

/// Does the same as [`expand`], and also replaces a whole text of the form `$NAME`.
pub(super) fn expand_value(
    text: &str,
    look_up: &dyn Fn(Name<'_>) -> Option<String>,
) -> Result<String, Unfilled> {
    match text.strip_prefix('$') {
        Some(name) if is_name(name) => value(name, look_up),
        Some(_) | None => expand(text, look_up),
    }
}

fn value(inside: &str, look_up: &dyn Fn(Name<'_>) -> Option<String>) -> Result<String, Unfilled> {
    if let Some(name) = inside.strip_prefix(SECRET) {
        let value = look_up(Name::Secret(name)).filter(|_| is_secret_name(name));
        return value.ok_or_else(|| Unfilled::NoName(name.to_owned()));
    }
    // The text was cut at the first `}`, which ends the inner placeholder.
    if inside.contains("${") {
        return Err(Unfilled::Nested(inside.to_owned()));
    }
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    // Some editors write `${env:NAME}`.
    let name = name.strip_prefix("env:").unwrap_or(name);
    let value = look_up(Name::Variable(name)).or_else(|| default.map(str::to_owned));
    value.ok_or_else(|| Unfilled::Unset(name.to_owned()))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(name: Name<'_>) -> Option<String> {
        match name {
            Name::Variable("HOME") => Some("/home/me".to_owned()),
            Name::Variable("ODD") => Some("${secret:KEY}".to_owned()),
            Name::Secret("KEY") => Some("${HOME}-opened".to_owned()),
            Name::Variable(_) | Name::Secret(_) => None,
        }
    }

    fn refused(text: &str) -> String {
        expand(text, &known).unwrap_err().to_string()
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
    fn secrets_are_put_in_where_they_are_written_and_nowhere_else() {
        let texts = ["Bearer ${secret:KEY}", "$${secret:KEY}", "${ODD}", "${secret:KEY}${HOME}"];
        let expanded: Vec<_> = texts.iter().map(|text| expand(text, &known).unwrap()).collect();
        let expected = ["Bearer ${HOME}-opened", "${secret:KEY}", "${secret:KEY}", "${HOME}-opened/home/me"];
        assert_eq!(expanded, expected);
        assert_eq!(expand_value("${secret:KEY}", &known).unwrap(), "${HOME}-opened");
    }

    #[test]
    fn what_cannot_be_filled_in_is_named() {
        let texts = ["a ${TOKEN} b", "${secret:a b}", "${secret:KEY", "${NO:-${secret:KEY}}"];
        insta::assert_snapshot!(texts.map(refused).join("\n"), @r###"
variable `TOKEN` is not set; set it, or write `${TOKEN:-default}`
`${secret:a b}` names no secret: a name has 1 to 64 letters, digits, `_` and `-`
`${secret:KEY}` names no secret: a name has 1 to 64 letters, digits, `_` and `-`
`${NO:-${secret:KEY` has a placeholder within another one, which is not understood
"###);
        assert_eq!(expand_value("$TOKEN", &known), Err(Unfilled::Unset("TOKEN".to_owned())));
    }
}
