//! Files with environment variables: lines of the form `NAME=VALUE`, as `.env` files have them.

use taskpawl_model::task::is_identifier;

/// Syntax error in a file with variables. It never contains a value.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("line {line}: {problem}")]
pub struct EnvFileError {
    /// Line number, from 1.
    pub line: usize,
    /// Description of the problem.
    pub problem: &'static str,
}

/// Returns the variables of a file, in its order.
///
/// Blank lines and lines with `#` at the beginning are ignored, and so is `export` before a name. Values may stand in
/// quotes: single ones keep everything, double ones know `\n`, `\t`, `\"`, `\\` and `\$`. Nothing is expanded.
pub(crate) fn parse(text: &str) -> Result<Vec<(String, String)>, EnvFileError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut variables = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if !line.is_empty() && !line.starts_with('#') {
            let variable = variable(line).map_err(|problem| EnvFileError { line: index + 1, problem })?;
            variables.push(variable);
        }
    }
    Ok(variables)
}

fn variable(line: &str) -> Result<(String, String), &'static str> {
    let exported = line.strip_prefix("export").filter(|rest| rest.starts_with([' ', '\t']));
    let (name, value) = exported.unwrap_or(line).split_once('=').ok_or("expected NAME=VALUE")?;
    let name = name.trim();
    if !is_identifier(name) {
        return Err("expected the name of a variable before `=`");
    }
    Ok((name.to_owned(), value_of(value.trim())?))
}

fn value_of(text: &str) -> Result<String, &'static str> {
    let mut characters = text.chars();
    match characters.next() {
        Some('\'') => {
            let (value, rest) = characters.as_str().split_once('\'').ok_or(UNCLOSED)?;
            ended(value.to_owned(), rest)
        }
        Some('"') => double_quoted(characters.as_str()),
        Some(_) | None => Ok(without_comment(text).to_owned()),
    }
}

const UNCLOSED: &str = "the quote is not closed on the same line";

fn double_quoted(text: &str) -> Result<String, &'static str> {
    let (mut value, mut characters) = (String::new(), text.chars());
    loop {
        match characters.next().ok_or(UNCLOSED)? {
            '"' => return ended(value, characters.as_str()),
            '\\' => match characters.next().ok_or(UNCLOSED)? {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                escaped @ ('"' | '\\' | '$') => value.push(escaped),
                other => value.extend(['\\', other]),
            },
            other => value.push(other),
        }
    }
}

/// Returns the value if nothing but a comment follows its closing quote.
fn ended(value: String, rest: &str) -> Result<String, &'static str> {
    let rest = rest.trim();
    if rest.is_empty() || rest.starts_with('#') { Ok(value) } else { Err("unexpected text after the quote") }
}

/// Returns the text before a comment. A `#` begins one only after a blank, because passwords may contain it.
fn without_comment(text: &str) -> &str {
    let begin = text.match_indices('#').map(|(at, _)| at).find(|at| text[..*at].ends_with([' ', '\t']));
    text[..begin.unwrap_or(text.len())].trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_with_quotes_escapes_and_comments() {
        let text = "\u{feff}# a comment\n\nA=1\nexport B = two words # comment\nC='a $b \"c\" # d'\n\
                    D=\"a\\n\\\"b\\\" \\$c \\x\" # comment\r\nE=\nF=pass#word=\nexported=1\n";
        let read = parse(text).unwrap();
        let read: Vec<_> = read.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(
            read,
            [
                ("A", "1"),
                ("B", "two words"),
                ("C", "a $b \"c\" # d"),
                ("D", "a\n\"b\" $c \\x"),
                ("E", ""),
                ("F", "pass#word="),
                ("exported", "1"),
            ]
        );
    }

    #[test]
    fn errors_name_the_line() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(error("A=1\nB"), "line 2: expected NAME=VALUE");
        assert_eq!(error("1A=1"), "line 1: expected the name of a variable before `=`");
        assert_eq!(error("\nA=\"x"), "line 2: the quote is not closed on the same line");
        assert_eq!(error("A='x' y"), "line 1: unexpected text after the quote");
    }
}
