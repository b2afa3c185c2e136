//! Identifiers as newtypes, so that a task id cannot be used as a call id.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The maximum length of an id that an author gives, in bytes. Generated ids may be longer.
pub const MAX_ID_BYTES: usize = 64;

/// The reason why a text is no id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdError {
    /// The text is empty.
    #[error("an id must not be empty")]
    Empty,
    /// The text is longer than [`MAX_ID_BYTES`].
    #[error("id `{id}…` has {bytes} bytes, at most {MAX_ID_BYTES} are allowed")]
    TooLong {
        /// The first characters of the id.
        id: String,
        /// The length.
        bytes: usize,
    },
    /// A character is outside `[A-Za-z0-9._-]`.
    #[error("id `{id}` contains `{}`, allowed are letters, digits, `.`, `_` and `-`", character.escape_default())]
    Character {
        /// The beginning of the given id.
        id: String,
        /// The first forbidden character.
        character: char,
    },
}

/// Checks that `text` is an id that authors may give: `[A-Za-z0-9._-]{1,64}`.
///
/// # Errors
/// The rule that is broken, with the character.
pub fn check_id(text: &str) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty);
    }
    if let Some(character) = text.chars().find(|c| !is_id_character(*c)) {
        return Err(IdError::Character { id: text.chars().take(MAX_ID_BYTES).collect(), character });
    }
    if text.len() > MAX_ID_BYTES {
        // All characters are ASCII here, so the slice cannot split one.
        return Err(IdError::TooLong { id: text[..16].to_owned(), bytes: text.len() });
    }
    Ok(())
}

/// The maximum length of an id that is made from a name, in bytes.
const MAX_NAME_BYTES: usize = 40;

/// Returns an id for a task with this name: its words in lower case, such as `write-tests`.
///
/// Letters outside ASCII cannot be part of an id. Without any other the id is `task`.
pub fn id_from_name(name: &str) -> String {
    let mut id = String::new();
    for word in name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        if !id.is_empty() && id.len() + 1 + word.len() > MAX_NAME_BYTES {
            break;
        }
        if !id.is_empty() {
            id.push('-');
        }
        id.push_str(&word.to_ascii_lowercase());
    }
    // Only the first word can be longer. All characters are ASCII here.
    id.truncate(MAX_NAME_BYTES);
    if id.is_empty() { "task".to_owned() } else { id }
}

fn is_id_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Creates an id without checks. [`check_id`] is for ids from authors.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new("")
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self::new(text)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

text_id! {
    /// The id of a task, as people and agents use it.
    TaskId
}
text_id! {
    /// The id of a tool call, unique within its task.
    CallId
}
text_id! {
    /// The id of a run: one `run-all-ready`.
    RunId
}

/// The dense integer key of a task in a store. It is internal to the process; interfaces use [`TaskId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Key(pub u32);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_NAME_BYTES, check_id, id_from_name};

    #[test]
    fn an_id_is_made_from_the_words_of_a_name() {
        for (name, id) in [
            ("Write tests", "write-tests"),
            ("  Fix: `parse_plan()` (again)!  ", "fix-parse-plan-again"),
            ("v2.0", "v2-0"),
            ("Prüfung", "pr-fung"),
            ("書く", "task"),
            ("--", "task"),
            ("a line that is longer than forty characters", "a-line-that-is-longer-than-forty"),
        ] {
            assert_eq!(id_from_name(name), id, "{name}");
            assert_eq!(check_id(id), Ok(()));
        }
        assert_eq!(id_from_name(&"x".repeat(500)).len(), MAX_NAME_BYTES);
    }

    #[test]
    fn ids_are_short_ascii_texts() {
        assert_eq!(check_id("build-lib_2.0"), Ok(()));
        insta::assert_snapshot!(check_id("a/b").unwrap_err(), @"id `a/b` contains `/`, allowed are letters, digits, `.`, `_` and `-`");
        insta::assert_snapshot!(check_id("").unwrap_err(), @"an id must not be empty");
        insta::assert_snapshot!(check_id(&"x".repeat(65)).unwrap_err(), @"id `xxxxxxxxxxxxxxxx…` has 65 bytes, at most 64 are allowed");
    }
}
