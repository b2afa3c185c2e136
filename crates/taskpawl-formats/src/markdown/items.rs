//! The items of a checklist: lines with a box.

use crate::content::ContentItem;
use crate::faults::conflicts;
use crate::lines::one_line;
use crate::own_fields::{COMMENT, OwnFields};

use super::dialect::Dialect;

/// The maximum nesting of items; deeper ones become siblings.
const MAX_NESTING: usize = 60;

/// A checklist item.
pub(super) struct Item<'t> {
    /// Its line, counted from 0.
    pub(super) line: usize,
    /// The text before its box: indentation and bullet.
    pub(super) lead: &'t str,
    pub(super) mark: &'t str,
    /// True if a star behind the box marks it as optional.
    pub(super) is_optional: bool,
    /// The id and the tags before its text, with the blanks after them.
    pub(super) tags: String,
    pub(super) text: String,
    pub(super) own_fields: OwnFields,
    /// The index of the parent item.
    pub(super) above: Option<usize>,
    /// The headings above it, outermost first.
    pub(super) headings: Vec<String>,
}

impl Item<'_> {
    /// Returns the innermost heading above the item.
    pub(super) fn section(&self) -> &str {
        self.headings.last().map_or("", String::as_str)
    }
}

/// Returns the items of a text, in text order.
pub(super) fn items(text: &str, dialect: Dialect) -> Vec<Item<'_>> {
    let (mut items, mut open): (Vec<Item<'_>>, Vec<(usize, usize)>) = (Vec::new(), Vec::new());
    let (mut aside, mut headings): (_, Vec<(usize, String)>) = (None, Vec::new());
    let mut conflicts = conflicts(text).into_iter().peekable();
    let lines: Vec<&str> = text.lines().collect();
    for (line, content) in lines.iter().copied().enumerate() {
        let number = u32::try_from(line + 1).unwrap_or(u32::MAX);
        while conflicts.next_if(|region| region.end < number).is_some() {}
        if conflicts.peek().is_some_and(|region| region.start <= number) {
            continue;
        }
        let (trimmed, is_aside) = (content.trim_start(), aside.is_some());
        aside = Aside::after(aside, trimmed);
        if is_aside || aside.is_some() {
            continue;
        }
        if let Some((level, title)) = heading_at(&lines, line) {
            headings.retain(|(other, _)| *other < level);
            headings.push((level, title.to_owned()));
            open.clear();
            continue;
        }
        let Some(found) = boxed(content) else {
            // An unindented line of text ends a list, as in Markdown.
            if !trimmed.is_empty() && trimmed.len() == content.len() && !is_item(trimmed) {
                open.clear();
            }
            continue;
        };
        let depth = width(found.lead);
        // An item with the same indentation is a sibling, so it closes as well.
        while open.last().is_some_and(|(other, _)| *other >= depth) {
            open.pop();
        }
        let above = open.last().map(|(_, position)| *position);
        let (text, own_fields) = take_ours(&one_line(found.text));
        let (tags, text) = dialect.split_tags(&text);
        // A task needs a name.
        let text = if text.is_empty() { "(empty)".to_owned() } else { text.to_owned() };
        let tags = tags.to_owned();
        if open.len() < MAX_NESTING {
            open.push((depth, items.len()));
        }
        let headings = headings.iter().map(|(_, title)| title.clone()).collect();
        let Boxed { lead, mark, is_optional, .. } = found;
        items.push(Item { line, lead, mark, is_optional, tags, text, own_fields, above, headings });
    }
    items
}

/// Returns the items as their texts identify them.
pub(super) fn contents(items: &[Item<'_>], dialect: Dialect) -> Vec<ContentItem> {
    let mut contents: Vec<ContentItem> = Vec::with_capacity(items.len());
    for item in items {
        let mut under = item.headings.clone();
        if let Some(above) = item.above {
            let parents = &contents[above];
            under.extend_from_slice(&parents.under[parents.headings..]);
            under.push(items[above].text.clone());
        }
        contents.push(ContentItem {
            text: item.text.clone(),
            under,
            headings: item.headings.len(),
            task: item.own_fields.id.clone(),
            id: dialect.id_in(&item.tags).map(str::to_owned),
            has_number: dialect.has_numbers(),
        });
    }
    contents
}

/// A block whose lines are never items, because Markdown shows them verbatim or not at all.
#[derive(Debug, Clone, Copy)]
pub(super) enum Aside {
    /// A fenced code block. It ends with a fence of the same character that is at least as long.
    Code { mark: char, length: usize },
    /// A comment of several lines.
    Comment,
}

impl Aside {
    /// Returns the block that a line opens.
    fn begun(trimmed: &str) -> Option<Self> {
        let comment = trimmed.strip_prefix("<!--");
        if comment.is_some_and(|rest| !rest.contains("-->")) {
            return Some(Self::Comment);
        }
        let (mark, length, rest) = fence(trimmed)?;
        // Backticks after the fence make it inline code, as CommonMark defines.
        (mark != '`' || !rest.contains('`')).then_some(Self::Code { mark, length })
    }

    /// Returns the block that is open after a line.
    pub(super) fn after(open: Option<Self>, trimmed: &str) -> Option<Self> {
        let Some(open) = open else { return Self::begun(trimmed) };
        let is_end = match open {
            Self::Comment => trimmed.contains("-->"),
            Self::Code { mark, length } => fence(trimmed)
                .is_some_and(|(other, long, rest)| other == mark && long >= length && rest.trim().is_empty()),
        };
        (!is_end).then_some(open)
    }

    /// Returns a line that closes the block.
    pub(super) fn end(self) -> String {
        match self {
            Self::Comment => "-->".to_owned(),
            Self::Code { mark, length } => mark.to_string().repeat(length),
        }
    }
}

/// Returns the block that is still open at the end of a text.
pub(super) fn open_at_end(text: &str) -> Option<Aside> {
    text.lines().fold(None, |open, line| Aside::after(open, line.trim_start()))
}

/// Returns the character of a fence, its length, and the text after it.
fn fence(trimmed: &str) -> Option<(char, usize, &str)> {
    let mark = trimmed.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let rest = trimmed.trim_start_matches(mark);
    let length = trimmed.len() - rest.len();
    (length >= 3).then_some((mark, length, rest))
}

/// Returns the level and the title of the heading that begins at a line.
pub(super) fn heading_at<'t>(lines: &[&'t str], place: usize) -> Option<(usize, &'t str)> {
    heading(lines[place]).or_else(|| underlined(lines, place))
}

/// Returns the level and the title of an underlined heading: a line of text that stands alone above a line of `=` or `-`.
fn underlined<'t>(lines: &[&'t str], place: usize) -> Option<(usize, &'t str)> {
    const MIN_UNDERLINE: usize = 3;
    let (title, line) = (lines[place], lines.get(place + 1)?.trim_end());
    let level = match line.chars().next()? {
        '=' => 1,
        '-' => 2,
        _ => return None,
    };
    let is_line = line.len() >= MIN_UNDERLINE && line.trim_start_matches(['=', '-']).is_empty();
    let is_whole = line.chars().all(|c| line.starts_with(c));
    let is_alone = place == 0 || lines[place - 1].trim().is_empty();
    // Other blocks begin with these characters, and lines of front matter have no empty line before them.
    let is_text =
        title.starts_with(|c: char| !c.is_whitespace() && !">#|`~<=-".contains(c)) && !is_item(title);
    (is_line && is_whole && is_alone && is_text).then(|| (level, title.trim()))
}

/// Returns the level and the title of a heading.
pub(super) fn heading(line: &str) -> Option<(usize, &str)> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    ((1..=6).contains(&level) && title.starts_with(' '))
        .then(|| (level, title.trim().trim_end_matches('#').trim_end()))
}

fn is_item(trimmed: &str) -> bool {
    bullet(trimmed).is_some()
}

/// Returns the length of the bullet or number of an item, spaces after it included.
pub(super) fn bullet(trimmed: &str) -> Option<usize> {
    let digits = trimmed.chars().take_while(char::is_ascii_digit).count();
    let end = match trimmed.chars().nth(digits)? {
        '-' | '*' | '+' if digits == 0 => 1,
        '.' | ')' if (1..10).contains(&digits) => digits + 1,
        _ => return None,
    };
    let spaces = trimmed[end..].len() - trimmed[end..].trim_start_matches([' ', '\t']).len();
    (spaces > 0).then_some(end + spaces)
}

/// A line split at its box.
pub(super) struct Boxed<'l> {
    pub(super) lead: &'l str,
    pub(super) mark: &'l str,
    pub(super) is_optional: bool,
    pub(super) text: &'l str,
}

/// Splits a line at its box.
pub(super) fn boxed(line: &str) -> Option<Boxed<'_>> {
    let trimmed = line.trim_start();
    let at = line.len() - trimmed.len() + bullet(trimmed)?;
    let (mark, after) = line[at..].strip_prefix('[')?.split_once(']')?;
    let first = mark.chars().next()?;
    // A mark is one character, with the selector that makes it an emoji. A letter in brackets, other than an `x`, is a link or
    // text such as `[a]`.
    let rest = mark[first.len_utf8()..].trim_end_matches('\u{fe0f}');
    let is_mark = (!first.is_alphanumeric() || matches!(first, 'x' | 'X')) && rest.is_empty();
    // `str::lines` keeps a `\r` at the end of a text. It becomes part of the line ending once an export adds `\n`.
    let after = after.trim_end_matches('\r');
    let (is_optional, after) = after.strip_prefix('*').map_or((false, after), |after| (true, after));
    let is_box = is_mark && (after.is_empty() || after.starts_with(char::is_whitespace));
    (is_box && !first.is_control()).then(|| Boxed {
        lead: &line[..at],
        mark,
        is_optional,
        text: after.trim(),
    })
}

/// Returns the lines, counted from 1, that were probably meant as items, with the reason why they are none.
pub(super) fn near_items(text: &str) -> Vec<(u32, &'static str)> {
    let mut aside = None;
    let is_shown = |content: &str| {
        let is_aside = aside.is_some();
        aside = Aside::after(aside, content.trim_start());
        !is_aside && aside.is_none()
    };
    let shown: Vec<bool> = text.lines().map(is_shown).collect();
    let lines = (1..).zip(text.lines()).zip(shown).filter(|(_, is_shown)| *is_shown);
    lines.filter_map(|((number, line), _)| Some((number, no_item(line)?))).collect()
}

/// Returns the reason why a line with a box, or nearly one, is no item.
fn no_item(line: &str) -> Option<&'static str> {
    if boxed(line).is_some() {
        return None;
    }
    let trimmed = line.trim_start();
    let quoted = trimmed.trim_start_matches(['>', ' ', '\t']);
    if trimmed.starts_with('>') {
        return boxed(quoted).map(|_| "it is no item, because it is in a quote");
    }
    let is_near = |text: &str| {
        let inside = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        inside.is_some_and(|(mark, after)| {
            let is_link = after.starts_with(['(', '[', ':']);
            matches!(mark.trim(), "" | "x" | "X") && !is_link
        })
    };
    match bullet(trimmed) {
        Some(at) => is_near(&trimmed[at..])
            .then_some("it is no item: a box is `[ ]` or `[x]`, with a space behind it"),
        None => is_near(trimmed.trim_start_matches(['-', '*', '+']))
            .then_some("it is no item: an item begins with a bullet or a number, and a space"),
    }
}

/// Returns the width of the indentation in columns; a tab advances to the next multiple of 4.
pub(super) fn width(lead: &str) -> usize {
    let blank = lead.chars().take_while(|c| c.is_whitespace());
    blank.fold(0, |width, c| if c == '\t' { width / 4 * 4 + 4 } else { width + 1 })
}

pub(super) fn take_ours(text: &str) -> (String, OwnFields) {
    let found = text
        .rfind(COMMENT)
        .and_then(|at| Some((at, text[at..].strip_prefix(COMMENT)?.strip_suffix(" -->")?)));
    match found {
        Some((at, inside)) => (text[..at].trim_end().to_owned(), OwnFields::parse(inside)),
        None => (text.to_owned(), OwnFields::default()),
    }
}
