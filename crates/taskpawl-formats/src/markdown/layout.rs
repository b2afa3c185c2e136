//! Positions of tasks in a checklist. Existing items stay on their lines. New ones go below their parent, under their heading, or to the
//! end.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use taskpawl_model::task::Task;
use taskpawl_model::value::TaskId;

use super::dialect::Dialect;
use super::items::{Aside, Item, bullet, heading, heading_at, items, open_at_end, width};
use super::moves::Moves;
use super::{Line, What};
use crate::existing_document::ExistingDocument;
use crate::lines::{self, parts};
use crate::preserved::kept;

/// Returns the lines of a text with tasks in it. The tasks of `document` are those of its items, in their order.
pub(super) fn lines<'t>(
    tasks: &'t [Task],
    text: &'t str,
    document: &ExistingDocument<'t>,
    dialect: Dialect,
) -> Vec<Line<'t>> {
    let items = items(text, dialect);
    let (mut lines, mut shown) = in_place(tasks, text, &items, document);
    let moves = Moves::of(tasks, &Page::of(text.lines().collect(), &items), document, &mut shown);
    let left: Vec<&Task> = tasks.iter().filter(|task| !shown.contains_key(&task.id)).collect();
    if left.is_empty() {
        return lines;
    }
    // New lines inside an open code block or comment would not be items, so it is closed first.
    let end = open_at_end(text).map(Aside::end);
    let texts: Vec<&str> = text.lines().chain(end.as_deref()).collect();
    lines.extend(end.as_deref().map(Line::text));
    let page = Page::of(texts, &items);
    let mut forest = Forest::of(&left, &shown, &moves, dialect);
    let mut added = Added::default();
    for (above, tasks) in std::mem::take(&mut forest.below_shown) {
        let at = page.end_of(page.items[above].line);
        added.put(at, &mut forest, &tasks, &page.lead_below(above));
    }
    for (section, tasks) in std::mem::take(&mut forest.in_sections) {
        match page.section(&section) {
            Some((at, lead)) => added.put(at, &mut forest, &tasks, &lead),
            None => added.at_end.push((section, tasks)),
        }
    }
    let roots = std::mem::take(&mut forest.roots);
    let mut lines = added.with_lines(lines, &moves);
    append(&mut lines, &mut forest, &roots, added.at_end);
    lines
}

/// Returns a text without some of its items. Lines indented below them go, too, except for other items and the lines below those.
pub(super) fn without(text: &str, is_out: &[bool], dialect: Dialect) -> String {
    let items = items(text, dialect);
    let page = Page::of(text.lines().collect(), &items);
    let mut goes = vec![false; page.texts.len()];
    // Later items overwrite the range of their ancestors, so that a nested item keeps its own decision.
    for (item, is_out) in items.iter().zip(is_out) {
        goes[item.line..page.end_of(item.line)].fill(*is_out);
    }
    let lines = parts(text).zip(goes).filter(|(_, goes)| !goes);
    let lines: Vec<lines::Line<'_>> =
        lines.map(|((line, end), _)| lines::Line::document(line, end)).collect();
    lines::joined(&lines, text)
}

/// Puts the tasks of a text on their existing lines. Also returns the index of each task's item.
fn in_place<'t>(
    tasks: &'t [Task],
    text: &'t str,
    items: &[Item<'_>],
    document: &ExistingDocument<'t>,
) -> (Vec<Line<'t>>, BTreeMap<&'t TaskId, usize>) {
    let line = |document: (&'t str, &'t str)| Line { document: Some(document), ..Line::text(document.0) };
    let mut lines: Vec<Line<'t>> = parts(text).map(line).collect();
    let by_id: BTreeMap<&TaskId, &Task> = tasks.iter().map(|task| (&task.id, task)).collect();
    let mut shown: BTreeMap<&TaskId, usize> = BTreeMap::new();
    for (position, (item, said)) in items.iter().zip(document.tasks).enumerate() {
        lines[item.line].id = Some(&said.id);
        // An item without a task here keeps its line.
        let Some(task) = by_id.get(&said.id).copied() else { continue };
        let has_comment = item.own_fields.id.as_deref() == Some(said.id.as_str());
        let lead = item.lead.to_owned();
        lines[item.line].what = What::Task { task, lead, said: Some(said), has_comment };
        shown.insert(&task.id, position);
    }
    (lines, shown)
}

/// The tasks that a text does not have yet, or has elsewhere, by their future position.
struct Forest<'f, 't> {
    moves: &'f Moves<'t>,
    /// Tasks below an existing item, by its index.
    below_shown: BTreeMap<usize, Vec<&'t Task>>,
    /// Tasks below another new task.
    below: BTreeMap<&'t TaskId, Vec<&'t Task>>,
    /// Tasks under the heading that they were imported from, in the order of first use.
    in_sections: Vec<(String, Vec<&'t Task>)>,
    /// Tasks without parent and heading.
    roots: Vec<&'t Task>,
}

impl<'f, 't> Forest<'f, 't> {
    fn of(
        left: &[&'t Task],
        shown: &BTreeMap<&TaskId, usize>,
        moves: &'f Moves<'t>,
        dialect: Dialect,
    ) -> Self {
        let present: BTreeSet<&TaskId> = left.iter().map(|task| &task.id).collect();
        let mut forest = Self {
            moves,
            below_shown: BTreeMap::new(),
            below: BTreeMap::new(),
            in_sections: Vec::new(),
            roots: Vec::new(),
        };
        for task in left {
            let parent = task.parent.as_ref();
            if let Some(above) = parent.and_then(|parent| shown.get(parent)) {
                forest.below_shown.entry(*above).or_default().push(task);
            } else if let Some(parent) = parent.filter(|parent| present.contains(parent)) {
                forest.below.entry(parent).or_default().push(task);
            } else {
                forest.add_root(task, dialect);
            }
        }
        forest
    }

    fn add_root(&mut self, task: &'t Task, dialect: Dialect) {
        let kept = kept(task, dialect.name());
        let section = kept.get("section").and_then(Value::as_str).unwrap_or_default();
        if section.is_empty() {
            self.roots.push(task);
        } else if let Some((_, tasks)) = self.in_sections.iter_mut().find(|(known, _)| known == section) {
            tasks.push(task);
        } else {
            self.in_sections.push((section.to_owned(), vec![task]));
        }
    }

    /// Takes tasks out, with all their subtasks, and returns their lines.
    fn take(&mut self, tasks: &[&'t Task], lead: &Lead) -> Vec<Line<'t>> {
        let mut lines = Vec::new();
        // The stack is filled in reverse, so that the first task is taken first.
        let mut open: Vec<(&Task, usize)> = tasks.iter().rev().map(|task| (*task, 0)).collect();
        let mut number = lead.number;
        while let Some((task, depth)) = open.pop() {
            let lead = if depth == 0 {
                lead.text(number)
            } else {
                format!("{}{}- ", lead.inside(), "  ".repeat(depth - 1))
            };
            number += u64::from(depth == 0);
            lines.extend(self.moves.lines(task, lead));
            let below = self.below.remove(&task.id);
            open.extend(below.into_iter().flatten().rev().map(|task| (task, depth + 1)));
        }
        lines
    }
}

/// The text before the box of an item.
struct Lead {
    /// The indentation.
    blank: String,
    /// The bullet, or the text after the number.
    mark: String,
    /// The number of the first item; 0 for bullets.
    number: u64,
    /// True if the item follows a line of text. An empty line must separate them.
    follows_text: bool,
}

impl Lead {
    fn plain() -> Self {
        Self { blank: String::new(), mark: "- ".to_owned(), number: 0, follows_text: false }
    }

    /// Returns the lead of the item that follows one with this lead.
    fn behind(lead: &str) -> Self {
        let rest = lead.trim_start();
        let blank = lead[..lead.len() - rest.len()].to_owned();
        let mark = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = rest[..rest.len() - mark.len()].parse::<u64>();
        let number = number.map_or(0, |number| number + 1);
        Self { blank, mark: mark.to_owned(), number, follows_text: false }
    }

    fn text(&self, number: u64) -> String {
        // Markdown allows at most nine digits.
        let number = if self.number == 0 { String::new() } else { number.min(999_999_999).to_string() };
        format!("{}{number}{}", self.blank, self.mark)
    }

    /// Returns the indentation of lines below the item.
    fn inside(&self) -> String {
        let length = self.text(self.number).len() - self.blank.len();
        format!("{}{}", self.blank, " ".repeat(length))
    }
}

/// A text and its items.
pub(super) struct Page<'p> {
    pub(super) texts: Vec<&'p str>,
    pub(super) items: &'p [Item<'p>],
    /// The last item below each item.
    last_below: BTreeMap<usize, usize>,
}

impl<'p> Page<'p> {
    fn of(texts: Vec<&'p str>, items: &'p [Item<'p>]) -> Self {
        let below = items.iter().enumerate().filter_map(|(place, item)| Some((item.above?, place)));
        Self { texts, items, last_below: below.collect() }
    }

    /// Returns the line after an item and all lines indented below it.
    pub(super) fn end_of(&self, line: usize) -> usize {
        let depth = width(self.texts[line]);
        let (mut end, mut aside) = (line + 1, None);
        for (number, text) in self.texts.iter().enumerate().skip(line + 1) {
            let (trimmed, is_aside) = (text.trim_start(), aside.is_some());
            // An empty line belongs to the item only if indented lines follow.
            if !is_aside && trimmed.is_empty() {
                continue;
            }
            if !is_aside && width(text) <= depth {
                break;
            }
            aside = Aside::after(aside, trimmed);
            end = number + 1;
        }
        end
    }

    /// Returns the lead of a new item below another one: that of its last subitem, if there is one.
    fn lead_below(&self, above: usize) -> Lead {
        if let Some(last) = self.last_below.get(&above) {
            return Lead::behind(self.items[*last].lead);
        }
        let lead = self.items[above].lead;
        let rest = lead.trim_start();
        let length = bullet(rest).unwrap_or(rest.len()).min(rest.len());
        let blank = format!("{}{}", &lead[..lead.len() - rest.len()], " ".repeat(length));
        Lead { blank, ..Lead::plain() }
    }

    /// Returns the line after the last item of a section, and the lead of a new item there.
    fn section(&self, title: &str) -> Option<(usize, Lead)> {
        let last = self.items.iter().rev().find(|item| item.section() == title);
        if let Some(last) = last {
            let mut root = last;
            while let Some(above) = root.above {
                root = &self.items[above];
            }
            return Some((self.end_of(root.line), Lead::behind(root.lead)));
        }
        let at = self.end_of_heading(title)?;
        let is_heading = heading(self.texts[at - 1]).is_some_and(|(_, other)| other == title);
        Some((at, Lead { follows_text: !is_heading, ..Lead::plain() }))
    }

    /// Returns the line after the last non-empty line of a section.
    fn end_of_heading(&self, title: &str) -> Option<usize> {
        let (mut aside, mut end) = (None, None);
        for (number, text) in self.texts.iter().enumerate() {
            let is_aside = aside.is_some();
            aside = Aside::after(aside, text.trim_start());
            // A `#` line inside a code block is no heading.
            match heading_at(&self.texts, number).filter(|_| !is_aside).map(|(_, title)| title) {
                Some(_) if end.is_some() => break,
                Some(other) if other == title => end = Some(number + 1),
                _ if end.is_some() && !text.trim().is_empty() => end = Some(number + 1),
                _ => {}
            }
        }
        end
    }
}

/// Lines to insert into a text.
#[derive(Default)]
struct Added<'t> {
    /// New lines by the line that follows them.
    by_line: BTreeMap<usize, Vec<Line<'t>>>,
    /// Tasks of headings that the text does not have.
    at_end: Vec<(String, Vec<&'t Task>)>,
}

impl<'t> Added<'t> {
    fn put(&mut self, at: usize, forest: &mut Forest<'_, 't>, tasks: &[&'t Task], lead: &Lead) {
        let mut lines = forest.take(tasks, lead);
        if lead.follows_text {
            lines.insert(0, Line::text(""));
        }
        let document = self.by_line.entry(at).or_default();
        // Lines that are indented further belong to the line before, so these lines go after them.
        let depth = width(&lead.blank);
        let is_deeper = |line: &Line<'_>| match &line.what {
            What::Task { lead, .. } => width(lead) > depth,
            What::Text(text) => width(text) > depth,
        };
        let place = document.iter().take_while(|line| is_deeper(line)).count();
        document.splice(place..place, lines);
    }

    fn with_lines(&mut self, lines: Vec<Line<'t>>, moves: &Moves<'t>) -> Vec<Line<'t>> {
        let mut all = Vec::with_capacity(lines.len());
        for (number, line) in lines.into_iter().enumerate() {
            all.extend(self.by_line.remove(&number).into_iter().flatten());
            all.extend((!moves.takes(number)).then_some(line));
        }
        all.extend(std::mem::take(&mut self.by_line).into_values().flatten());
        all
    }
}

/// Appends the tasks and sections that have no position inside the text.
fn append<'t>(
    lines: &mut Vec<Line<'t>>,
    forest: &mut Forest<'_, 't>,
    roots: &[&'t Task],
    sections: Vec<(String, Vec<&'t Task>)>,
) {
    let blank = |lines: &mut Vec<Line<'t>>| {
        let is_blank = |line: &Line<'_>| matches!(&line.what, What::Text(text) if text.trim().is_empty());
        if lines.last().is_some_and(|line| !is_blank(line)) {
            lines.push(Line::text(""));
        }
    };
    if !roots.is_empty() {
        blank(lines);
        lines.extend(forest.take(roots, &Lead::plain()));
    }
    for (section, tasks) in sections {
        blank(lines);
        lines.extend([Line::text(format!("## {section}")), Line::text("")]);
        lines.extend(forest.take(&tasks, &Lead::plain()));
    }
}
