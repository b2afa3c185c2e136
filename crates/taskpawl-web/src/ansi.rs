//! Colours of terminal output as spans. All other sequences are left out.

use maud::{Markup, html};
use taskpawl_text::revealed;

/// The style that the text so far has set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent attributes of text")]
struct Style {
    /// One of the 16 colours.
    colour: Option<u8>,
    is_bold: bool,
    is_dim: bool,
    is_italic: bool,
    is_underlined: bool,
}

impl Style {
    /// Applies the parameters of an SGR sequence.
    fn apply(&mut self, parameters: &str) {
        let mut numbers = parameters.split([';', ':']).map(|text| text.parse::<u16>().unwrap_or_default());
        while let Some(number) = numbers.next() {
            match number {
                0 => *self = Self::default(),
                1 => self.is_bold = true,
                2 => self.is_dim = true,
                3 => self.is_italic = true,
                4 => self.is_underlined = true,
                22 => (self.is_bold, self.is_dim) = (false, false),
                23 => self.is_italic = false,
                24 => self.is_underlined = false,
                30..=37 => self.colour = u8::try_from(number - 30).ok(),
                90..=97 => self.colour = u8::try_from(number - 82).ok(),
                39 => self.colour = None,
                // Colours of a palette or by their parts: the first 16 of the palette are named, others are left out.
                38 | 48 => {
                    let colour = extended(&mut numbers);
                    if number == 38 {
                        self.colour = colour.filter(|colour| *colour < 16);
                    }
                }
                _ => {}
            }
        }
    }

    fn classes(self) -> String {
        let mut classes: Vec<String> = self.colour.map(|colour| format!("c{colour}")).into_iter().collect();
        let flags =
            [(self.is_bold, "cb"), (self.is_dim, "cd"), (self.is_italic, "ci"), (self.is_underlined, "cu")];
        classes.extend(flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name.to_owned()));
        classes.join(" ")
    }
}

/// Reads the rest of an extended colour, and returns its number in the palette.
fn extended(numbers: &mut impl Iterator<Item = u16>) -> Option<u8> {
    match numbers.next() {
        Some(5) => numbers.next().and_then(|colour| u8::try_from(colour).ok()),
        Some(2) => {
            numbers.by_ref().take(3).for_each(drop);
            None
        }
        _ => None,
    }
}

/// Returns a line of output as HTML. Control characters, and those that hide or turn text, are written out.
pub(crate) fn line(text: &str) -> Markup {
    let mut style = Style::default();
    let spans = pieces(text).map(|piece| match piece {
        Piece::Text(text) => html! {
            @if style == Style::default() { (revealed(text)) } @else { span class=(style.classes()) { (revealed(text)) } }
        },
        Piece::Style(parameters) => {
            style.apply(parameters);
            Markup::default()
        }
    });
    let spans: Vec<Markup> = spans.collect();
    html! { @for span in &spans { (span) } }
}

#[derive(Debug, PartialEq)]
enum Piece<'t> {
    Text(&'t str),
    /// The parameters of an SGR sequence.
    Style(&'t str),
}

/// Splits a line into texts and styles.
fn pieces(mut rest: &str) -> impl Iterator<Item = Piece<'_>> {
    std::iter::from_fn(move || {
        loop {
            if rest.is_empty() {
                return None;
            }
            let at = rest.find('\u{1b}').unwrap_or(rest.len());
            if at > 0 {
                let (text, after) = rest.split_at(at);
                rest = after;
                return Some(Piece::Text(text));
            }
            let (sequence, after) = sequence(rest);
            rest = after;
            if let Some(parameters) = sequence {
                return Some(Piece::Style(parameters));
            }
        }
    })
}

/// Splits an escape sequence off, and returns its parameters if it sets a style.
fn sequence(text: &str) -> (Option<&str>, &str) {
    let body = &text[1..];
    if let Some(body) = body.strip_prefix('[') {
        let end = body.find(|byte: char| ('@'..='~').contains(&byte));
        return match end {
            Some(end) => (body[end..].starts_with('m').then(|| &body[..end]), &body[end + 1..]),
            None => (None, ""),
        };
    }
    if let Some(body) = body.strip_prefix(']') {
        // A title or a link: it ends with BEL or ESC \.
        let end = body.find('\u{7}').map(|at| at + 1).or_else(|| body.find("\u{1b}\\").map(|at| at + 2));
        return (None, end.map_or("", |end| &body[end..]));
    }
    let next = body.chars().next().map_or(0, char::len_utf8);
    (None, &body[next..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html_of(text: &str) -> String {
        line(text).into_string()
    }

    #[test]
    fn colours_become_spans_and_markup_stays_text() {
        assert_eq!(html_of("a \u{1b}[1;31mred\u{1b}[0m <b>"), "a <span class=\"c1 cb\">red</span> &lt;b&gt;");
        assert_eq!(html_of("\u{1b}[38;5;9mx\u{1b}[39my"), "<span class=\"c9\">x</span>y");
        assert_eq!(html_of("\u{1b}[38;2;1;2;3mx\u{1b}[m"), "x");
    }

    #[test]
    fn other_sequences_are_left_out_also_unfinished_ones() {
        for text in
            ["\u{1b}[2Jx", "\u{1b}]0;title\u{7}x", "\u{1b}]8;;http://a\u{1b}\\x", "\u{1b}(x", "x\u{1b}[31"]
        {
            assert!(["x", ""].contains(&html_of(text).as_str()), "{text:?}: {}", html_of(text));
        }
        assert_eq!(html_of("a\u{202e}b"), "a\\u{202e}b");
    }
}
