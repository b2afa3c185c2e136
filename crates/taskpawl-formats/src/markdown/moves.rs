//! Items that belong elsewhere in a checklist, because their tasks have another parent now. They take along the lines below them.

use std::collections::{BTreeMap, BTreeSet};

use taskpawl_model::task::Task;
use taskpawl_model::value::TaskId;

use super::layout::Page;
use super::{Line, What};
use crate::existing_document::ExistingDocument;
use crate::reading::LeftOut;

/// The items that leave their lines.
#[derive(Default)]
pub(super) struct Moves<'t> {
    by_task: BTreeMap<&'t TaskId, Moved<'t>>,
    /// The lines that they leave.
    left: BTreeSet<usize>,
}

/// An item that leaves its line.
struct Moved<'t> {
    /// The task as it was read from the line.
    said: &'t Task,
    has_comment: bool,
    /// The text before its box.
    lead: String,
    /// The lines below it that are no tasks.
    notes: Vec<(String, Option<&'t TaskId>)>,
}

impl<'t> Moves<'t> {
    /// Takes items with another parent out of `shown`, with all items below them.
    pub(super) fn of(
        tasks: &'t [Task],
        page: &Page<'_>,
        document: &ExistingDocument<'t>,
        shown: &mut BTreeMap<&'t TaskId, usize>,
    ) -> Self {
        let places: BTreeMap<usize, &'t TaskId> = shown.iter().map(|(id, place)| (*place, *id)).collect();
        let mut moves = Self::default();
        let present: BTreeSet<&TaskId> = tasks.iter().map(|task| &task.id).collect();
        let is_moved = |task: &&Task| {
            let is_there = task.parent.as_ref().is_none_or(|parent| present.contains(parent));
            is_there && document.task(&task.id).is_some_and(|said| said.parent != task.parent)
        };
        let roots: BTreeSet<&TaskId> = tasks.iter().filter(is_moved).map(|task| &task.id).collect();
        if roots.is_empty() {
            return moves;
        }
        let mut leaves: Vec<bool> = Vec::with_capacity(page.items.len());
        for (place, item) in page.items.iter().enumerate() {
            let is_root = places.get(&place).is_some_and(|id| roots.contains(id));
            let is_below = item.above.is_some_and(|above| leaves[above]);
            leaves.push(is_root || is_below);
        }
        for (place, item) in page.items.iter().enumerate().filter(|(place, _)| leaves[*place]) {
            let Some((id, said)) = places.get(&place).and_then(|id| Some((*id, document.task(id)?))) else {
                continue;
            };
            shown.remove(id);
            let has_comment = item.own_fields.id.as_deref() == Some(id.as_str());
            let lead = item.lead.to_owned();
            moves.by_task.insert(id, Moved { said, has_comment, lead, notes: Vec::new() });
        }
        moves.take_lines(page, &places, document);
        moves
    }

    /// Takes the lines of the moved items. A line that is no task goes with the innermost item that it stands below.
    fn take_lines(
        &mut self,
        page: &Page<'_>,
        places: &BTreeMap<usize, &'t TaskId>,
        document: &ExistingDocument<'t>,
    ) {
        let by_line: BTreeMap<usize, usize> =
            page.items.iter().enumerate().map(|(place, item)| (item.line, place)).collect();
        // The moved items around the current line, each with the line behind it.
        let mut open: Vec<(&TaskId, usize)> = Vec::new();
        for line in 0..page.texts.len() {
            open.retain(|(_, end)| *end > line);
            let place = by_line.get(&line).copied();
            let own = place.and_then(|place| places.get(&place)).copied();
            if let Some(id) = own.filter(|id| self.by_task.contains_key(id)) {
                open.push((id, page.end_of(line)));
                self.left.insert(line);
            } else if let Some((id, _)) = open.last()
                && let Some(moved) = self.by_task.get_mut(id)
            {
                // An item without a task here moves unchanged.
                let other = place.and_then(|place| document.tasks.get(place)).map(|task| &task.id);
                moved.notes.push((page.texts[line].to_owned(), other));
                self.left.insert(line);
            }
        }
    }

    /// Returns true if the line leaves its place.
    pub(super) fn takes(&self, line: usize) -> bool {
        self.left.contains(&line)
    }

    /// Returns the line of a task at its new place, with the lines below it. A task that is new to the file has one line.
    pub(super) fn lines(&self, task: &'t Task, lead: String) -> Vec<Line<'t>> {
        let id = Some(&task.id);
        let Some(moved) = self.by_task.get(&task.id) else {
            let what = What::Task { task, lead, said: None, has_comment: false };
            return vec![Line { what, document: None, id }];
        };
        let notes = moved.notes.iter().map(|(text, id)| {
            let what = What::Text(indented(text, &moved.lead, &lead));
            Line { what, document: None, id: *id }
        });
        let notes: Vec<Line<'t>> = notes.collect();
        let what = What::Task { task, lead, said: Some(moved.said), has_comment: moved.has_comment };
        std::iter::once(Line { what, document: None, id }).chain(notes).collect()
    }
}

/// Returns a line below an item as it stands below one with another lead.
fn indented(text: &str, before: &str, now: &str) -> String {
    if text.trim().is_empty() {
        return text.to_owned();
    }
    let blanks = |lead: &str| lead.len() - lead.trim_start().len();
    let (old, new) = (blanks(before), blanks(now));
    let own = blanks(text).min(old);
    // Text below a number needs more blanks than text below a bullet.
    let more = (now.len() - new).saturating_sub(before.len() - old);
    let blank = if text.starts_with(char::is_whitespace) { " ".repeat(more) } else { String::new() };
    format!("{}{blank}{}", &now[..new], &text[own..])
}

/// Reports tasks whose line has another parent than they have here.
pub(super) fn say_parents(tasks: &[Task], document: &ExistingDocument<'_>, left_out: &mut Vec<LeftOut>) {
    let present: BTreeSet<&TaskId> = tasks.iter().map(|task| &task.id).collect();
    for task in tasks {
        let there = document.task(&task.id).and_then(|said| said.parent.as_ref());
        let parent =
            task.parent.as_ref().filter(|parent| !present.contains(parent) && there != Some(*parent));
        if let Some(parent) = parent {
            let why = format!("`{parent}` is not exported");
            left_out.push(LeftOut::new(format!("{}: parent", task.id), why));
        }
    }
}
