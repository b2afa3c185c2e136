//! The records that a file of Task Master has before an export.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use taskpawl_model::value::Map;

use super::tags::is_without_tags;
use super::words::{MASTER, tag_of, whole_below};
use crate::existing_document::{self, ExistingDocument, text_of};

/// The records of a file.
#[derive(Default)]
pub(super) struct Raw {
    /// The records without their subtasks, by tag and full number. Of two with one number the first counts.
    pub(super) records: BTreeMap<(String, String), Map>,
    /// The index of each record in its list.
    pub(super) index: BTreeMap<(String, String), usize>,
    /// The lists by tag, and by the number of the task above.
    pub(super) lists: BTreeMap<(String, Option<String>), Vec<Value>>,
    /// The elements of lists that tasks were read from.
    read: BTreeSet<(String, Option<String>, usize)>,
    /// The numbers in use, of faulty records as well.
    pub(super) numbers: BTreeSet<(String, String)>,
}

impl Raw {
    pub(super) fn of(text: &str, document: &ExistingDocument<'_>) -> Self {
        let Ok(Value::Object(file)) = serde_json::from_str::<Value>(text) else { return Self::default() };
        let file = if is_without_tags(&file) {
            Map::from_iter([(MASTER.to_owned(), Value::Object(file))])
        } else {
            file
        };
        let known: BTreeSet<(String, &str)> =
            document.tasks.iter().map(tag_of).zip(document.names.iter().map(String::as_str)).collect();
        let is_read = |tag: &str, number: &str| known.contains(&(tag.to_owned(), number));
        let mut raw = Self::default();
        for (tag, value) in &file {
            raw.add_list(tag, None, value.get("tasks"), &is_read);
        }
        raw
    }

    fn add_list(
        &mut self,
        tag: &str,
        above: Option<&str>,
        list: Option<&Value>,
        is_read: &impl Fn(&str, &str) -> bool,
    ) {
        let Some(list) = list.and_then(Value::as_array) else { return };
        for (index, value) in list.iter().enumerate() {
            let Some(record) = value.as_object() else { continue };
            let own = record.get("id").map(text_of).unwrap_or_default();
            let number = above.map_or_else(|| own.clone(), |above| whole_below(above, &own));
            let key = (tag.to_owned(), number.clone());
            self.numbers.insert(key.clone());
            if self.records.contains_key(&key) || !is_read(tag, &number) {
                continue;
            }
            let mut record = record.clone();
            if above.is_none() && record.get("subtasks").is_some_and(Value::is_array) {
                let below = record.insert("subtasks".to_owned(), json!([]));
                self.add_list(tag, Some(&number), below.as_ref(), is_read);
            }
            self.records.insert(key.clone(), record);
            self.index.insert(key, index);
            self.read.insert((tag.to_owned(), above.map(str::to_owned), index));
        }
        self.lists.insert((tag.to_owned(), above.map(str::to_owned)), list.clone());
    }

    /// Returns a list with the elements of the file that no task was read from.
    pub(super) fn with_unread(
        &self,
        list: Option<&(String, Option<String>)>,
        written: Vec<(Option<usize>, Value)>,
    ) -> Vec<Value> {
        let raw = list.and_then(|list| self.lists.get(list));
        let is_read = |index: usize| {
            list.is_some_and(|(tag, above)| self.read.contains(&(tag.clone(), above.clone(), index)))
        };
        existing_document::with_unread(written, raw.map_or(&[], Vec::as_slice), is_read)
    }
}

/// Returns the full number that a dependency means. In a subtask, one without a dot means a sibling, be it a number or a text;
/// a top-level task only if there is no such sibling. The parent depends on its subtasks anyway.
pub(super) fn number_of_link(
    link: &Value,
    from: &str,
    above: Option<&str>,
    is_there: impl Fn(&str) -> bool,
) -> String {
    let text = text_of(link);
    let Some(above) = above.filter(|_| !text.contains('.')) else { return text };
    let sibling = format!("{above}.{text}");
    let is_top = text != above && !is_there(&sibling) && is_there(&text);
    if is_top || (sibling == from && text != above) { text } else { sibling }
}
