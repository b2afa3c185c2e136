//! Splits texts into plain text and `${{ … }}`. The scanner knows quotes and braces, so that `}}` inside an expression
//! does not end it.

use super::ast::MAX_BYTES;
use super::error::{ExprFault, Fault};

/// The start of an expression.
pub(crate) const OPEN: &str = "${{";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Plain text.
    Text(&'a str),
    /// The text between the braces, with its byte position.
    Expression { source: &'a str, at: usize },
}

/// Returns the pieces of a text. `$${{` is an escape for the text `${{`.
pub(super) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, Fault> {
    let mut pieces = Vec::new();
    let mut begin = 0;
    let mut from = 0;
    while let Some(found) = text[from..].find(OPEN).map(|offset| from + offset) {
        if text[begin..found].ends_with('$') {
            // The first dollar is dropped.
            push_text(&mut pieces, &text[begin..found - 1]);
            begin = found;
            from = found + OPEN.len();
            continue;
        }
        push_text(&mut pieces, &text[begin..found]);
        let at = found + OPEN.len();
        let length = length_of_expression(&text[at..]).ok_or_else(|| unclosed(found))?;
        if length > MAX_BYTES {
            return Err(Fault::new(found, ExprFault::TooLong { limit: MAX_BYTES }));
        }
        pieces.push(Piece::Expression { source: &text[at..at + length], at });
        begin = at + length + 2;
        from = begin;
    }
    push_text(&mut pieces, &text[begin..]);
    Ok(pieces)
}

fn push_text<'a>(pieces: &mut Vec<Piece<'a>>, text: &'a str) {
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
}

fn unclosed(at: usize) -> Fault {
    Fault::new(at, ExprFault::Unclosed).hint("close it with `}}`, or write `$${{` for the text `${{`")
}

/// Returns the number of bytes before the `}}` that ends an expression.
fn length_of_expression(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut open = 0_usize;
    let mut escaped = false;
    let bytes = text.as_bytes();
    for (index, byte) in bytes.iter().copied().enumerate() {
        if let Some(closing) = quote {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                byte if byte == closing => quote = None,
                _ => {}
            }
            continue;
        }
        match byte {
            b'\'' | b'"' => quote = Some(byte),
            b'{' => open += 1,
            b'}' if open == 0 => return (bytes.get(index + 1) == Some(&b'}')).then_some(index),
            b'}' => open -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Piece, pieces};

    fn shown(text: &str) -> String {
        let shown = |piece: Piece<'_>| match piece {
            Piece::Text(text) => format!("text {text:?}"),
            Piece::Expression { source, at } => format!("expression {source:?} at {at}"),
        };
        match pieces(text) {
            Ok(pieces) => pieces.into_iter().map(shown).collect::<Vec<_>>().join(", "),
            Err(fault) => format!("{} at {}", fault.what, fault.offset),
        }
    }

    #[test]
    fn the_end_of_an_expression_is_found_behind_texts_and_braces() {
        let table: Vec<String> = [
            "plain",
            "${{ a }}",
            "x ${{ a }}${{ b }} y",
            "${{ '}}' }}",
            "${{ \"\\\"}}\" }}",
            "${{ {'a': {'b': 1}} }}",
            "${{{'a': 1}}}",
            "$${{ a }} ${{ b }}",
            "$$${{ a }}",
            "$ { { ${ {{",
            "ü ${{ a",
            "${{ a } }",
            "${{ 'a }}",
            "${{}}",
        ]
        .iter()
        .map(|text| format!("{text:<28}{}", shown(text)))
        .collect();
        insta::assert_snapshot!(table.join("\n"));
    }
}
