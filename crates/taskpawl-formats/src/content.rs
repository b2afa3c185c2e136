//! Identity by content: finds the tasks of items that have no ids in their file.
//!
//! An item is the task that remembers an equal text under the same headings and items, else under the same heading, else
//! anywhere. Among equals the order decides. Every step is linear: a list may have thousands of equal items.

use std::collections::{BTreeMap, VecDeque};

use taskpawl_model::command::SourceRecord;
use taskpawl_model::value::TaskId;

use crate::ids::Ids;
use crate::known::{Known, KnownRecord, Renamed};

/// An item without an id.
#[derive(Debug, Clone, Default)]
pub(crate) struct ContentItem {
    pub(crate) text: String,
    /// The headings and items above it, outermost first.
    pub(crate) under: Vec<String>,
    /// The number of headings in `under`.
    pub(crate) headings: usize,
    /// The task id that an earlier export wrote into it.
    pub(crate) task: Option<String>,
    /// The id that its file gives it.
    pub(crate) id: Option<String>,
    /// True if a number at the start of the text is only its place.
    pub(crate) has_number: bool,
}

/// The tasks of items, in the order of the items.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) ids: Vec<TaskId>,
    pub(crate) records: Vec<SourceRecord>,
    pub(crate) renamed: Vec<Renamed>,
}

/// Finds the task of every item. Items without one get a new id.
pub(crate) fn find(items: &[ContentItem], ids: &mut Ids<'_>) -> Found {
    let known = ids.known();
    let mut matching = Matching::of(items, known);
    matching.by_id();
    matching.by(
        |item| full(&item.text, &item.under),
        |known| (!known.is_legacy).then(|| full(&known.record.id, &known.record.under)),
    );
    matching.by(
        |item| full(&item.text, item.heading()),
        |known| known.is_legacy.then(|| full(&known.record.id, &known.record.under)),
    );
    matching.by(|item| folded(&item.text), |known| Some(folded(&known.record.id)));
    let mut renamed = matching.by_number();
    renamed.extend(matching.renames());
    let matched = matching.matched;
    let mut found = Found { renamed, ..Found::default() };
    // Known tasks first: no new item may take the id of one that stands further below.
    for (_, known) in &matched {
        ids.take(known.task.clone());
    }
    let matched: BTreeMap<usize, &KnownRecord> = matched.into_iter().collect();
    // Then the ids that an export wrote into the file: an item above may have the same slug.
    let is_new = |place: &usize| !matched.contains_key(place);
    let written: BTreeMap<usize, TaskId> = (0..items.len())
        .filter(is_new)
        .filter_map(|place| Some((place, ids.add_written(items[place].task.as_deref()?)?)))
        .collect();
    for (place, item) in items.iter().enumerate() {
        let known = matched.get(&place).map(|known| known.task.clone());
        let id = known.or_else(|| written.get(&place).cloned());
        let id = id.unwrap_or_else(|| ids.add_item(item.id.as_deref(), &item.text));
        found.records.push(record(item, place, ids));
        found.ids.push(id);
    }
    found
}

fn record(item: &ContentItem, place: usize, ids: &Ids<'_>) -> SourceRecord {
    let id = item.id.clone().unwrap_or_else(|| item.text.clone());
    let place = u64::try_from(place).ok();
    SourceRecord {
        id,
        under: item.under.clone(),
        place,
        prefix: ids.prefix().cloned(),
        ..SourceRecord::default()
    }
}

impl ContentItem {
    /// Returns the innermost heading above the item.
    fn heading(&self) -> &[String] {
        &self.under[self.headings.saturating_sub(1)..self.headings]
    }
}

/// Items and known records, and the pairs found so far.
struct Matching<'m> {
    items: &'m [ContentItem],
    known: &'m Known,
    matched: Vec<(usize, &'m KnownRecord)>,
    is_matched: Vec<bool>,
    /// Places of the matched records.
    taken: Vec<bool>,
    /// The place of the record of each matched item.
    record_of: Vec<Option<usize>>,
}

impl<'m> Matching<'m> {
    fn of(items: &'m [ContentItem], known: &'m Known) -> Self {
        Self {
            items,
            known,
            matched: Vec::new(),
            is_matched: vec![false; items.len()],
            taken: vec![false; known.records().len()],
            record_of: vec![None; items.len()],
        }
    }

    fn pair(&mut self, item: usize, record: usize) {
        self.is_matched[item] = true;
        self.taken[record] = true;
        self.record_of[item] = Some(record);
        self.matched.push((item, &self.known.records()[record]));
    }

    /// Pairs items by the ids that they have.
    fn by_id(&mut self) {
        let by_task: BTreeMap<&str, usize> = self
            .known
            .records()
            .iter()
            .enumerate()
            .rev()
            .map(|(place, known)| (known.task.as_str(), place))
            .collect();
        let by_id: BTreeMap<&str, usize> = self
            .known
            .records()
            .iter()
            .enumerate()
            .rev()
            .map(|(place, known)| (known.record.id.as_str(), place))
            .collect();
        for (place, item) in self.items.iter().enumerate() {
            let own = item.task.as_deref().and_then(|task| by_task.get(task));
            let found = own.or_else(|| by_id.get(item.id.as_deref()?));
            if let Some(record) = found.copied().filter(|record| !self.taken[*record]) {
                self.pair(place, record);
            }
        }
    }

    /// Pairs the remaining items and records with equal keys, in their order.
    fn by(
        &mut self,
        of_item: impl Fn(&ContentItem) -> String,
        of_record: impl Fn(&KnownRecord) -> Option<String>,
    ) {
        let mut records: BTreeMap<String, VecDeque<usize>> = BTreeMap::new();
        for (place, known) in self.known.records().iter().enumerate().filter(|(place, _)| !self.taken[*place])
        {
            if let Some(key) = of_record(known) {
                records.entry(key).or_default().push_back(place);
            }
        }
        if records.is_empty() {
            return;
        }
        for place in 0..self.items.len() {
            if self.is_matched[place] || self.items[place].id.is_some() {
                continue;
            }
            let key = of_item(&self.items[place]);
            if let Some(record) = records.get_mut(&key).and_then(VecDeque::pop_front) {
                self.pair(place, record);
            }
        }
    }

    /// Pairs items whose text differs in its leading number only, where that is the item's place.
    fn by_number(&mut self) -> Vec<Renamed> {
        if !self.items.iter().any(|item| item.has_number) {
            return Vec::new();
        }
        let first = self.matched.len();
        self.by(
            |item| full(without_number(&item.text), &item.under),
            |known| Some(full(without_number(&known.record.id), &known.record.under)),
        );
        self.by(
            |item| folded(without_number(&item.text)),
            |known| Some(folded(without_number(&known.record.id))),
        );
        let renamed = self.matched[first..].iter();
        renamed.map(|(item, known)| renamed_of(&self.items[*item], known)).collect()
    }

    /// Pairs an item with a record if both stand alone between the same two neighbours and share half of the item's words.
    fn renames(&mut self) -> Vec<Renamed> {
        let mut renamed = Vec::new();
        for place in 1..self.items.len().saturating_sub(1) {
            let (before, after) = (self.record_of[place - 1], self.record_of[place + 1]);
            let (Some(before), Some(after)) = (before, after) else { continue };
            let between = before + 1;
            if self.is_matched[place]
                || after != before + 2
                || self.taken[between]
                || self.known.records()[after].record.gone
            {
                continue;
            }
            let known = &self.known.records()[between];
            let item = &self.items[place];
            if item.id.is_none() && share_half(&item.text, &known.record.id) {
                renamed.push((place, between));
            }
        }
        let pairs = renamed.into_iter();
        pairs
            .map(|(place, between)| {
                self.pair(place, between);
                renamed_of(&self.items[place], &self.known.records()[between])
            })
            .collect()
    }
}

fn renamed_of(item: &ContentItem, known: &KnownRecord) -> Renamed {
    Renamed { task: known.task.clone(), from: known.record.id.clone(), to: item.text.clone() }
}

/// Returns a text with white space and case folded.
pub(crate) fn folded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.extend(word.chars().flat_map(char::to_lowercase));
    }
    out
}

fn full(text: &str, under: &[String]) -> String {
    let mut key = folded(text);
    for above in under {
        // No folded text has a line break.
        key.push('\n');
        key.push_str(&folded(above));
    }
    key
}

/// Returns a text without a leading number such as `1.` or `2.3`.
fn without_number(text: &str) -> &str {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    if rest.len() < text.len() && rest.starts_with(' ') && text.starts_with(|c: char| c.is_ascii_digit()) {
        rest.trim_start()
    } else {
        text
    }
}

/// Returns true if at least half of the words of `text` are also in `other`.
fn share_half(text: &str, other: &str) -> bool {
    let (words, mut others) = (words(text), words(other));
    let mut shared = 0;
    for word in &words {
        if let Some(place) = others.iter().position(|other| other == word) {
            others.swap_remove(place);
            shared += 1;
        }
    }
    shared > 0 && 2 * shared >= words.len()
}

/// Returns the words of a text, folded. Scripts without spaces have a word for each character.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in text.chars().flat_map(char::to_lowercase) {
        if is_ideograph(c) {
            words.extend([c.to_string(), String::new()]);
        } else if c.is_alphanumeric() {
            if let Some(word) = words.last_mut() {
                word.push(c);
            }
        } else {
            words.push(String::new());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}
