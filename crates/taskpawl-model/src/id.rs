//! Identifiers: newtypes, so that a task id is never taken for a call id.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The longest id that an author may give, in bytes.
pub const MAX_ID_BYTES: usize = 64;

/// Why a text is no id.
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
        /// Its length.
        bytes: usize,
    },
    /// A character is outside `[A-Za-z0-9._-]`.
    #[error("id `{id}` contains `{}`, allowed are letters, digits, `.`, `_` and `-`", character.escape_default())]
    Character {
        /// The id as given.
        id: String,
        /// The first character that is not allowed.
        character: char,
    },
}

/// Checks that `text` is an id that an author may give: `[A-Za-z0-9._-]{1,64}`.
///
/// # Errors
/// Says which of the rules is broken, and by which character.
pub fn check_id(text: &str) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty);
    }
    if let Some(character) = text.chars().find(|c| !is_id_character(*c)) {
        return Err(IdError::Character { id: text.chars().take(MAX_ID_BYTES).collect(), character });
    }
    if text.len() > MAX_ID_BYTES {
        return Err(IdError::TooLong { id: text[..16].to_owned(), bytes: text.len() });
    }
    Ok(())
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
            /// Returns the id of this text. The text is taken as it is: [`check_id`] is for what authors give.
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
    /// The id of a task: what people and agents call it.
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

/// The dense integer under which a store keeps a task. It never leaves the process: what is outside sees [`TaskId`].
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
    use super::check_id;

    #[test]
    fn an_id_is_short_ascii() {
        assert_eq!(check_id("build-lib_2.0"), Ok(()));
        insta::assert_snapshot!(check_id("a/b").unwrap_err(), @"id `a/b` contains `/`, allowed are letters, digits, `.`, `_` and `-`");
        insta::assert_snapshot!(check_id("").unwrap_err(), @"an id must not be empty");
        insta::assert_snapshot!(check_id(&"x".repeat(65)).unwrap_err(), @"id `xxxxxxxxxxxxxxxx…` has 65 bytes, at most 64 are allowed");
    }
}
