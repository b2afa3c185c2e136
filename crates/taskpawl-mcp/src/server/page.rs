//! Pages of lists and texts that are longer than an answer: as much as fits, and the offset of the next page.
//! Following `nextOffset` to the end reads everything exactly once.

use serde_json::{Map, Value, json};

use super::actions::Action;

/// One page of a list or a text.
#[derive(Debug)]
pub(super) struct Page {
    /// The field of the answer for the page.
    field: &'static str,
    /// Its offset in the whole: elements of a list, bytes of a text.
    offset: u64,
    pieces: Pieces,
    /// True if there is more after the given pieces.
    goes_on: bool,
    /// The call that this page answers, without its offset. With the next offset it gets the next page.
    same: Option<Action>,
}

#[derive(Debug)]
enum Pieces {
    Elements(Vec<Value>),
    /// The end of a text: if it does not fit, its beginning is left out.
    End(Vec<(char, usize)>),
    /// Characters, each with its length in bytes. A replacement character has the length of the invalid bytes that it
    /// replaces.
    Chars(Vec<(char, usize)>),
}

impl Page {
    pub(super) fn of_list(field: &'static str, offset: usize, elements: Vec<Value>, goes_on: bool) -> Self {
        Self { field, offset: offset as u64, pieces: Pieces::Elements(elements), goes_on, same: None }
    }

    /// Returns a page of a text that begins with `bytes`.
    pub(super) fn of_text(field: &'static str, offset: u64, bytes: &[u8], goes_on: bool) -> Self {
        Self { field, offset, pieces: Pieces::Chars(chars(bytes).collect()), goes_on, same: None }
    }

    /// Returns the end of a text, which begins at `offset`.
    pub(super) fn of_end(field: &'static str, offset: u64, bytes: &[u8]) -> Self {
        Self { field, offset, pieces: Pieces::End(chars(bytes).collect()), goes_on: false, same: None }
    }

    /// Sets the call that this page answers. If there are more pages, the call with the next offset becomes a next
    /// step.
    pub(super) fn then(self, same: Action) -> Self {
        Self { same: Some(same), ..self }
    }

    /// Adds an agent's name to that call.
    pub(super) fn in_name_of(self, agent: Option<&str>) -> Self {
        Self { same: self.same.map(|same| same.in_name_of(agent)), ..self }
    }

    /// Returns the size of all its pieces, in bytes of JSON.
    pub(super) fn size(&self) -> usize {
        match &self.pieces {
            Pieces::Elements(elements) => elements.iter().map(|element| element.to_string().len() + 1).sum(),
            Pieces::Chars(chars) | Pieces::End(chars) => chars.iter().map(|(c, _)| json_size(*c)).sum(),
        }
    }

    /// Returns the call that this page answers.
    pub(super) fn same(&self) -> Option<&Action> {
        self.same.as_ref()
    }

    /// Inserts as many pieces into an answer as fit, and at least one, so that pages always make progress. Returns
    /// whether pieces were left out.
    pub(super) fn put_into(self, answer: &mut Map<String, Value>, room: usize) -> bool {
        let is_end = matches!(self.pieces, Pieces::End(_));
        let (shown, delivered, is_cut) = match self.pieces {
            Pieces::Elements(mut elements) => {
                let count = fitting(elements.iter().map(|element| element.to_string().len() + 1), room);
                let is_cut = count < elements.len();
                elements.truncate(count);
                let delivered = elements.len() as u64;
                (Value::Array(elements), delivered, is_cut)
            }
            Pieces::Chars(chars) => {
                let count = fitting_chars(chars.iter(), room);
                let shown: String = chars.iter().take(count).map(|(c, _)| c).collect();
                let delivered = chars.iter().take(count).map(|(_, bytes)| *bytes as u64).sum();
                (Value::String(shown), delivered, count < chars.len())
            }
            Pieces::End(chars) => {
                let left_out = chars.len() - fitting_chars(chars.iter().rev(), room).min(chars.len());
                let skipped: u64 = chars.iter().take(left_out).map(|(_, bytes)| *bytes as u64).sum();
                answer.insert("offset".to_owned(), json!(self.offset + skipped));
                let shown: String = chars.iter().skip(left_out).map(|(c, _)| c).collect();
                (Value::String(shown), 0, left_out > 0)
            }
        };
        answer.insert(self.field.to_owned(), shown);
        if (is_cut && !is_end) || self.goes_on {
            answer.insert("nextOffset".to_owned(), json!(self.offset + delivered));
        }
        is_cut
    }
}

/// Returns the number of pieces that fit, by their sizes; at least one.
fn fitting(sizes: impl Iterator<Item = usize>, room: usize) -> usize {
    let mut taken = 0;
    let fits = |size: &usize| {
        taken += *size;
        taken <= room
    };
    sizes.take_while(fits).count().max(1)
}

/// Returns the number of characters that fit into a text, at least one.
fn fitting_chars<'c>(chars: impl Iterator<Item = &'c (char, usize)>, room: usize) -> usize {
    fitting(chars.map(|(c, _)| json_size(*c)), room.saturating_sub(QUOTES))
}

/// Size of the quotes around a text.
const QUOTES: usize = 2;

fn json_size(c: char) -> usize {
    json!(c).to_string().len() - QUOTES
}

/// Returns the characters of bytes that may be invalid UTF-8.
fn chars(bytes: &[u8]) -> impl Iterator<Item = (char, usize)> {
    bytes.utf8_chunks().flat_map(|chunk| {
        let invalid = chunk.invalid().len();
        let replaced = (invalid > 0).then_some((char::REPLACEMENT_CHARACTER, invalid));
        chunk.valid().chars().map(|c| (c, c.len_utf8())).chain(replaced)
    })
}

/// Maximum number of bytes of a character before or after a position inside it.
pub(super) const AROUND: usize = 3;

/// Extends a piece from `start` to `end` so that it divides no character.
pub(super) fn borders(bytes: &[u8], start: usize, end: usize) -> (usize, usize) {
    let around = |at: usize| character_around(bytes, at.min(bytes.len()));
    (around(start).0, around(end).1)
}

/// Returns the start and end of the character around a position. Returns the position itself if it is between
/// characters, or in invalid UTF-8.
fn character_around(bytes: &[u8], at: usize) -> (usize, usize) {
    let first_end = |start: usize| {
        let most = (start + AROUND + 1).min(bytes.len());
        let first = bytes[start..most].utf8_chunks().next()?.valid().chars().next()?;
        Some(start + first.len_utf8())
    };
    let mut characters = (at.saturating_sub(AROUND)..at).filter_map(|start| Some((start, first_end(start)?)));
    characters.find(|(_, end)| *end > at).unwrap_or((at, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads all pages of a text, each cut to `room`.
    fn read(bytes: &[u8], limit: usize, room: usize) -> String {
        let (mut text, mut offset) = (String::new(), 0);
        loop {
            let (start, end) = borders(bytes, offset, offset + limit);
            assert_eq!(start, offset, "a page begins where a character does");
            let mut answer = Map::new();
            let page = Page::of_text("text", start as u64, &bytes[start..end], end < bytes.len());
            page.put_into(&mut answer, room);
            text.push_str(answer["text"].as_str().unwrap());
            let Some(next) = answer.get("nextOffset") else { return text };
            let next = usize::try_from(next.as_u64().unwrap()).unwrap();
            assert!(next > offset, "every page goes on");
            offset = next;
        }
    }

    #[test]
    fn pages_are_the_whole_text() {
        let controls = "\u{1b}[31mred\u{1b}[0m \"x\\y\"\n\u{0}".repeat(50);
        for text in ["é€😀".repeat(100), controls, "plain ".repeat(100), String::new()] {
            for (limit, room) in [(1, 10_000), (7, 10_000), (200, 100), (10_000, 500), (10_000, 0)] {
                assert_eq!(read(text.as_bytes(), limit, room), text, "{limit} {room}");
            }
        }
    }

    #[test]
    fn the_end_of_a_text_loses_its_beginning() {
        for (room, offset, shown) in [(11, 10, "é€😀"), (10, 12, "€😀"), (0, 15, "😀")] {
            let mut answer = Map::new();
            let is_cut = Page::of_end("text", 10, "é€😀".as_bytes()).put_into(&mut answer, room);
            let expected = json!({"text": shown, "offset": offset});
            assert_eq!((Value::Object(answer), is_cut), (expected, offset > 10), "{room}");
        }
    }

    #[test]
    fn what_is_no_text_is_passed_over() {
        assert_eq!(read(b"a\xff\xffb", 2, 1_000), "a\u{fffd}\u{fffd}b");
        assert_eq!(read(&[0x80; 10], 4, 1_000), "\u{fffd}".repeat(10));
        assert_eq!(read(b"\xc3\xa9\x80\xf0\x80", 1, 0), "é\u{fffd}\u{fffd}\u{fffd}");
        assert_eq!(borders("€".as_bytes(), 1, 2), (0, 3));
    }
}
