//! Checklists with conventions of their own: spec-kit, `OpenSpec` and Kiro.

use taskpawl_model::task::Task;

use crate::escapes::{escaped, unescaped};
use crate::kind::Format;
use crate::record::option_list;

/// The conventions of a checklist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// No conventions.
    Plain,
    /// Ids such as `T001`, with `[P]` for items that may run beside each other. Phases follow one another.
    SpecKit,
    /// Numbers at the start of a text are places.
    Numbered(Format),
}

impl Dialect {
    pub(super) fn of(format: Format) -> Self {
        match format {
            Format::SpecKit => Self::SpecKit,
            Format::OpenSpec | Format::Kiro => Self::Numbered(format),
            Format::Markdown
            | Format::Beads
            | Format::Taskmaster
            | Format::Claude
            | Format::Taskwarrior
            | Format::Backlog
            | Format::TodoTxt
            | Format::Shrimp
            | Format::GitHub
            | Format::Tasks => Self::Plain,
        }
    }

    /// Returns the name of the member with the preserved fields.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => Format::Markdown.name(),
            Self::SpecKit => Format::SpecKit.name(),
            Self::Numbered(format) => format.name(),
        }
    }

    /// Returns the fields of a task that a file has.
    pub(super) fn fields(self) -> Vec<String> {
        let metadata = format!("metadata.{}", self.name());
        let mut fields =
            vec!["name".to_owned(), "status".to_owned(), "parent".to_owned(), "labels".to_owned()];
        if self == Self::SpecKit {
            fields.push("dependencies".to_owned());
        }
        fields.push(metadata);
        fields
    }

    pub(super) fn has_numbers(self) -> bool {
        matches!(self, Self::Numbered(_))
    }

    /// Splits the id and the tags from the text of an item, with the blanks after them.
    pub(super) fn split_tags(self, text: &str) -> (&str, &str) {
        if self != Self::SpecKit {
            return ("", text);
        }
        let after_id =
            self.id_in(text).map(|_| text.split_once(' ').map_or("", |(_, rest)| rest).trim_start());
        let mut rest = after_id.unwrap_or(text);
        while let Some(after) = after_tag(rest) {
            rest = after;
        }
        let (tags, rest) = text.split_at(text.len() - rest.len());
        (tags, unescaped(rest, |rest| self.is_syntax(tags, rest)))
    }

    /// Returns the tags of an item as its task has them now.
    pub(super) fn tags_of(self, tags: &str, task: &Task) -> String {
        if self == Self::SpecKit { with_stories(tags, &option_list(task, "labels")) } else { tags.to_owned() }
    }

    /// Returns a name as the text behind the tags of an item.
    pub(super) fn text_of(self, tags: &str, name: &str) -> String {
        escaped(name, |name| self.is_syntax(tags, name)).into_owned()
    }

    /// Returns true if a reader would take the start of a text for tags.
    fn is_syntax(self, tags: &str, text: &str) -> bool {
        self == Self::SpecKit
            && (after_tag(text).is_some() || (tags.is_empty() && self.id_in(text).is_some()))
    }

    /// Returns the id at the start of a text, such as `T001`.
    pub(super) fn id_in(self, text: &str) -> Option<&str> {
        let word = text.split(' ').next()?.trim_matches('*').trim_end_matches([':', '.']);
        let digits = word.strip_prefix('T')?;
        let is_id = self == Self::SpecKit && digits.len() >= 3 && digits.chars().all(|c| c.is_ascii_digit());
        is_id.then_some(word)
    }

    /// Returns the id in the tags of an item.
    pub(super) fn id_of(self, tags: &str) -> Option<String> {
        self.id_in(tags).map(str::to_owned)
    }

    /// Returns true if the tags of an item let it run beside its neighbours.
    pub(super) fn is_beside(tags: &str) -> bool {
        tags.contains("[P]")
    }
}

/// Returns the text after a tag of spec-kit. Any other brackets belong to the text.
fn after_tag(text: &str) -> Option<&str> {
    let (tag, after) = text.strip_prefix('[')?.split_once(']')?;
    let is_story =
        tag.strip_prefix("US").is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    (after.starts_with(' ') && (tag == "P" || is_story)).then(|| after.trim_start())
}

/// Returns the tags of an item of spec-kit that name a user story, such as `US1`.
pub(super) fn stories(tags: &str) -> Vec<String> {
    let parts = tags.split('[').skip(1).filter_map(|part| part.split_once(']'));
    parts.map(|(tag, _)| tag.to_owned()).filter(|tag| is_story(tag)).collect()
}

/// Returns the labels that name user stories as tags of an item.
pub(super) fn stories_of(labels: &[String]) -> String {
    let tags: Vec<String> =
        labels.iter().filter(|label| is_story(label)).map(|label| format!("[{label}] ")).collect();
    tags.concat()
}

/// Returns the tags of an item with the user stories among these labels, in place of those that it has.
fn with_stories(tags: &str, labels: &[String]) -> String {
    let wanted: Vec<&String> = labels.iter().filter(|label| is_story(label)).collect();
    if stories(tags).iter().eq(wanted) {
        return tags.to_owned();
    }
    let is_tag_of_story =
        |word: &&str| word.strip_prefix('[').and_then(|word| word.strip_suffix(']')).is_some_and(is_story);
    let others = tags.split_whitespace().filter(|word| !is_tag_of_story(word));
    others.map(|word| format!("{word} ")).chain([stories_of(labels)]).collect()
}

pub(super) fn is_story(label: &str) -> bool {
    let number = label.strip_prefix("US").unwrap_or_default();
    !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
}
