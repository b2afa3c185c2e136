//! Pairs items with the records that tasks remember.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::ContentItem;
use super::text::{folded, full, share_half, without_number, without_place, without_places};
use crate::known::{Known, KnownRecord, Renamed};

/// An item that is a known record, by its place.
type Pair<'m> = (usize, &'m KnownRecord);

/// Returns the pairs of items and records, and those whose text differs.
pub(super) fn pairs<'m>(items: &'m [ContentItem], known: &'m Known) -> (Vec<Pair<'m>>, Vec<Renamed>) {
    let mut matching = Matching::of(items, known);
    matching.by_id();
    let keys: Vec<Keys> = Kind::ALL.iter().map(|kind| Keys::of(*kind, &matching)).collect();
    // Unique keys first, of every kind: the pairs that they give tell apart the items with equal keys.
    for keys in &keys {
        matching.alone(keys);
    }
    for keys in &keys {
        matching.beside(keys);
    }
    matching.by_changed_id();
    for keys in &keys {
        matching.in_gaps(keys, &matching.anchors_before());
        matching.in_gaps(keys, &matching.anchors_behind());
    }
    for keys in &keys {
        matching.in_order(keys, false);
    }
    // A text that was removed may come back, such as from a conflict. Anywhere else, an equal text is another item.
    matching.in_order(&keys[0], true);
    matching.renames();
    let renamed = matching.renamed();
    (matching.matched, renamed)
}

/// The part of items and records that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The text, and all headings and items above it.
    Full,
    /// The text and the innermost heading, for records of version 0.1.
    Legacy,
    /// Like [`Full`](Self::Full), without numbers such as `2.1`: a new section renumbers those below it.
    Unnumbered,
    /// The text alone.
    Text,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Full, Self::Legacy, Self::Unnumbered, Self::Text];

    fn of_item(self, item: &ContentItem) -> String {
        let under = if self == Self::Legacy { item.heading() } else { &item.under };
        self.key(&item.text, under, item.has_number)
    }

    fn of_record(self, known: &KnownRecord, has_numbers: bool) -> Option<String> {
        let is_compared = known.is_legacy == (self == Self::Legacy) || self == Self::Text;
        is_compared.then(|| self.key(known.text(), &known.record.under, has_numbers))
    }

    fn key(self, text: &str, under: &[String], has_number: bool) -> String {
        let bare = |text: &'_ str| if has_number { without_number(text).to_owned() } else { text.to_owned() };
        let text = bare(text);
        match self {
            Self::Full | Self::Legacy => full(&text, under.iter().map(|above| bare(above))),
            Self::Unnumbered => full(without_place(&text), under.iter().map(|above| without_places(above))),
            Self::Text => folded(&text),
        }
    }
}

/// The keys of all items and records, as numbers.
struct Keys {
    kind: Kind,
    items: Vec<usize>,
    records: Vec<Option<usize>>,
    count: usize,
}

impl Keys {
    fn of(kind: Kind, matching: &Matching<'_>) -> Self {
        let mut numbers = HashMap::new();
        let mut number = |key: String| {
            let next = numbers.len();
            *numbers.entry(key).or_insert(next)
        };
        let has_numbers = matching.items.iter().any(|item| item.has_number);
        let items = matching.items.iter().map(|item| number(kind.of_item(item))).collect();
        let records = matching.known.records().iter();
        let records = records.map(|known| Some(number(kind.of_record(known, has_numbers)?))).collect();
        Self { kind, items, records, count: numbers.len() }
    }

    /// Returns the unpaired items and records of each key, in their order.
    fn groups(&self, matching: &Matching<'_>, is_gone: bool) -> Vec<(Vec<usize>, Vec<usize>)> {
        let mut groups = vec![(Vec::new(), Vec::new()); self.count];
        for (place, key) in self.items.iter().enumerate().filter(|(place, _)| !matching.is_matched(*place)) {
            groups[*key].0.push(place);
        }
        for (place, key) in self.records.iter().enumerate() {
            let is_wanted = matching.known.records()[place].record.gone == is_gone && !matching.taken[place];
            if let Some(key) = key.filter(|_| is_wanted) {
                groups[key].1.push(place);
            }
        }
        groups.retain(|(items, records)| !items.is_empty() && !records.is_empty());
        groups
    }
}

/// Items and known records, and the pairs found so far.
struct Matching<'m> {
    items: &'m [ContentItem],
    known: &'m Known,
    matched: Vec<Pair<'m>>,
    /// Places of the matched records.
    taken: Vec<bool>,
    /// The place of the record of each matched item.
    record_of: Vec<Option<usize>>,
}

/// The nearest pairs of items and of records, by the place of its record.
struct Anchors {
    items: Vec<Option<usize>>,
    records: Vec<Option<usize>>,
}

/// Replaces a value if there is a new one. Returns the value.
fn replace_some(last: &mut Option<usize>, new: Option<usize>) -> Option<usize> {
    *last = new.or(*last);
    *last
}

impl<'m> Matching<'m> {
    fn of(items: &'m [ContentItem], known: &'m Known) -> Self {
        let taken = vec![false; known.records().len()];
        Self { items, known, matched: Vec::new(), taken, record_of: vec![None; items.len()] }
    }

    fn pair(&mut self, item: usize, record: usize) {
        self.taken[record] = true;
        self.record_of[item] = Some(record);
        self.matched.push((item, &self.known.records()[record]));
    }

    fn is_matched(&self, item: usize) -> bool {
        self.record_of[item].is_some()
    }

    /// Pairs items by the task ids that an export wrote into them, then by their own ids. Another text under an id may mean that
    /// the ids were assigned again, so such pairs come later.
    fn by_id(&mut self) {
        let records = self.known.records();
        let by_task: HashMap<&str, usize> =
            records.iter().enumerate().rev().map(|(place, known)| (known.task.as_str(), place)).collect();
        for (place, item) in self.items.iter().enumerate() {
            let found = item.task.as_deref().and_then(|task| by_task.get(task)).copied();
            if let Some(record) = found.filter(|record| !self.taken[*record]) {
                self.pair(place, record);
            }
        }
        self.by_own_id(true);
    }

    /// Pairs items by their ids where no other item has the text of the record.
    fn by_changed_id(&mut self) {
        self.by_own_id(false);
    }

    /// Pairs items and records with equal ids, in their order. Indexed, because thousands of items may share an id. With `has_text`
    /// the texts must be equal, too; without it, records that are gone from the file do not count.
    fn by_own_id(&mut self, has_text: bool) {
        if self.items.iter().all(|item| item.id.is_none()) {
            return;
        }
        let key = |text: &str| if has_text { folded(text) } else { String::new() };
        let records = self.known.records();
        let mut by_id: HashMap<(&str, String), VecDeque<usize>> = HashMap::new();
        let is_free = |place: usize| !self.taken[place] && (has_text || !records[place].record.gone);
        for (place, known) in records.iter().enumerate().filter(|(place, _)| is_free(*place)) {
            by_id.entry((known.record.id.as_str(), key(known.text()))).or_default().push_back(place);
        }
        for (place, item) in self.items.iter().enumerate() {
            let Some(id) = item.id.as_deref().filter(|_| !self.is_matched(place)) else { continue };
            // A record without a name has its id as text, and stands for any text.
            let exact = by_id.get_mut(&(id, key(&item.text))).and_then(VecDeque::pop_front);
            let found = exact.or_else(|| by_id.get_mut(&(id, key(id)))?.pop_front());
            if let Some(record) = found {
                self.pair(place, record);
            }
        }
    }

    /// Pairs an item and a record that are the only ones with their key.
    fn alone(&mut self, keys: &Keys) {
        for (items, records) in keys.groups(self, false) {
            if let ([item], [record]) = (items.as_slice(), records.as_slice()) {
                self.pair(*item, *record);
            }
        }
    }

    /// Pairs items that have a record's key, and the neighbour that the record has.
    fn beside(&mut self, keys: &Keys) {
        for place in 1..self.items.len() {
            let next = self.record_of[place - 1].map(|record| record + 1);
            self.pair_next(keys, place, next);
        }
        for place in (0..self.items.len().saturating_sub(1)).rev() {
            let next = self.record_of[place + 1].and_then(|record| record.checked_sub(1));
            self.pair_next(keys, place, next);
        }
    }

    fn pair_next(&mut self, keys: &Keys, place: usize, record: Option<usize>) {
        let Some(record) = record.filter(|_| !self.is_matched(place)) else { return };
        let is_free = self.taken.get(record) == Some(&false) && !self.known.records()[record].record.gone;
        if is_free && keys.records[record] == Some(keys.items[place]) {
            self.pair(place, record);
        }
    }

    /// Returns the nearest pair before each item and each record.
    fn anchors_before(&self) -> Anchors {
        let mut last = None;
        let items = self.record_of.iter().map(|record| replace_some(&mut last, *record)).collect();
        let mut last = None;
        let records =
            (0..self.taken.len()).map(|place| replace_some(&mut last, self.taken[place].then_some(place)));
        Anchors { items, records: records.collect() }
    }

    /// Returns the nearest pair behind each item and each record.
    fn anchors_behind(&self) -> Anchors {
        let mut last = None;
        let mut items: Vec<Option<usize>> =
            self.record_of.iter().rev().map(|record| replace_some(&mut last, *record)).collect();
        let mut last = None;
        let records = (0..self.taken.len()).rev();
        let mut records: Vec<Option<usize>> =
            records.map(|place| replace_some(&mut last, self.taken[place].then_some(place))).collect();
        items.reverse();
        records.reverse();
        Anchors { items, records }
    }

    /// Pairs items and records with equal keys that stand beside the same pair, in their order.
    fn in_gaps(&mut self, keys: &Keys, anchors: &Anchors) {
        for (items, records) in keys.groups(self, false) {
            let mut gaps: BTreeMap<Option<usize>, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
            for item in items {
                gaps.entry(anchors.items[item]).or_default().0.push(item);
            }
            for record in records {
                gaps.entry(anchors.records[record]).or_default().1.push(record);
            }
            for (items, records) in gaps.into_values() {
                self.pair_all(keys.kind, &items, &records);
            }
        }
    }

    /// Pairs items and records. Texts alone are only paired if there are as many items as records: otherwise some items are new,
    /// and nothing tells which.
    fn pair_all(&mut self, kind: Kind, items: &[usize], records: &[usize]) {
        if kind != Kind::Text || items.len() == records.len() {
            for (item, record) in items.iter().zip(records) {
                self.pair(*item, *record);
            }
        }
    }

    /// Pairs the remaining items and records with equal keys in their order, if there are as many items as records. `is_gone` is about
    /// records that were removed from the file.
    fn in_order(&mut self, keys: &Keys, is_gone: bool) {
        for (items, records) in keys.groups(self, is_gone) {
            if items.len() == records.len() {
                self.pair_all(keys.kind, &items, &records);
            }
        }
    }

    /// Pairs an item with a record if both stand alone between the same two neighbours and share half of the item's words.
    fn renames(&mut self) {
        for place in 1..self.items.len().saturating_sub(1) {
            let (before, after) = (self.record_of[place - 1], self.record_of[place + 1]);
            let (Some(before), Some(after)) = (before, after) else { continue };
            let between = before + 1;
            let records = self.known.records();
            let is_alone = !self.is_matched(place) && after == before + 2 && !self.taken[between];
            if !is_alone || records[after].record.gone {
                continue;
            }
            let item = &self.items[place];
            let bare = |text: &'m str| if item.has_number { without_number(text) } else { text };
            if item.id.is_none() && share_half(bare(&item.text), bare(records[between].text())) {
                self.pair(place, between);
            }
        }
    }

    /// Returns the pairs with different texts.
    fn renamed(&self) -> Vec<Renamed> {
        let is_renamed = |(item, known): &&Pair<'_>| {
            // A record without a name is known by its id alone.
            let is_comparable = known.name.is_some() || self.items[*item].id.is_none();
            is_comparable && folded(&self.items[*item].text) != folded(known.text())
        };
        let mut renamed: Vec<&Pair<'_>> = self.matched.iter().filter(is_renamed).collect();
        renamed.sort_by_key(|(item, _)| *item);
        let renamed = renamed.into_iter().map(|(item, known)| Renamed {
            task: known.task.clone(),
            from: known.text().to_owned(),
            to: self.items[*item].text.clone(),
        });
        renamed.collect()
    }
}
