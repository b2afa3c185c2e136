//! The parts of a request that the routes read.

use std::collections::BTreeMap;
use std::str::FromStr;

use percent_encoding::percent_decode_str;

use crate::answer::Problem;

/// The query of a request: each name with its last value.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    pub(crate) fn of(text: Option<&str>) -> Self {
        let pairs = text.unwrap_or_default().split('&').filter_map(|pair| {
            let (name, value) = pair.split_once('=')?;
            // A space in what forms, `fetch` and `curl` send; a plus sign is `%2B`.
            Some((decoded(name)?, decoded(&value.replace('+', " "))?))
        });
        Self(pairs.collect())
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns a number, or `None` without one.
    ///
    /// # Errors
    /// The value is no number of this type.
    pub(crate) fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, Problem> {
        let number =
            |text: &str| text.parse().map_err(|_| Problem::invalid(format!("`{name}` is not a number")));
        self.text(name).map(number).transpose()
    }
}

/// Decodes a part of a path.
pub(crate) fn decoded(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded_and_numbers_checked() {
        let query = Query::of(Some("q=a%20b+c%2Bd&limit=7&at=x&empty=&bad=%ff"));
        assert_eq!(query.text("q"), Some("a b c+d"));
        assert_eq!(query.number::<u64>("limit").unwrap(), Some(7));
        assert_eq!(query.number::<u64>("none").unwrap(), None);
        assert!(query.number::<u64>("at").is_err());
        assert_eq!((query.text("empty"), query.text("bad")), (None, None));
    }
}
