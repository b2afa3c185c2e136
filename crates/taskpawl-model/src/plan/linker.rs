//! References between the tasks of a plan: their targets, the order of the tasks, and their relations.

use std::collections::HashMap;
use std::mem;

use taskpawl_text::nearest;

use super::draft::{Draft, Place, Reference, Subtask};
use super::reader::{push_index, push_key};
use super::{PlanError, PlanProblem, cycle};
use crate::advice::hint::Hint;
use crate::value::{TaskId, check_id};
use taskpawl_json::Position;

/// The references between the drafts of a plan.
pub(super) struct Linker<'d, 'n> {
    pub(super) drafts: &'d [Draft<'n>],
    /// True if the text is the list of tasks itself, without the field `tasks`.
    pub(super) listed: bool,
    /// True if its tasks need no others: the plan is included by another one.
    pub(super) is_closed: bool,
    pub(super) errors: Vec<PlanError>,
    pub(super) ids: HashMap<&'d str, usize>,
    pub(super) names: HashMap<&'d str, Named>,
    pub(super) parents: Vec<Option<usize>>,
    pub(super) children: Vec<Vec<usize>>,
    /// The dependencies of each draft, each with the index of the reference.
    pub(super) needs: Vec<Vec<(usize, usize)>>,
    pub(super) outside: Vec<Vec<TaskId>>,
    /// The drafts whose included tasks are missing.
    incomplete: Vec<usize>,
}

/// The first two tasks with a name; `second` is missing for unique names.
#[derive(Clone, Copy)]
pub(super) struct Named {
    first: usize,
    second: Option<usize>,
}

pub(super) enum Found {
    One(usize),
    Several(usize, usize),
    Nobody,
}

/// The order of the tasks: every task before its subtasks, and these before the next task.
pub(super) struct Order {
    /// The drafts in this order.
    drafts: Vec<usize>,
    /// For each draft, its position and the position after its last descendant. `None` if its ancestors form a cycle.
    pub(super) spans: Vec<Option<(usize, usize)>>,
}

impl<'d, 'n> Linker<'d, 'n> {
    pub(super) fn new(drafts: &'d [Draft<'n>], listed: bool) -> Self {
        let count = drafts.len();
        Self {
            drafts,
            listed,
            is_closed: false,
            errors: Vec::new(),
            ids: HashMap::with_capacity(count),
            names: HashMap::with_capacity(count),
            parents: vec![None; count],
            children: vec![Vec::new(); count],
            needs: vec![Vec::new(); count],
            outside: vec![Vec::new(); count],
            incomplete: (0..count).filter(|number| drafts[*number].is_incomplete).collect(),
        }
    }

    /// Indexes ids and names, and checks that every task can be referred to.
    pub(super) fn check_names(&mut self) {
        for (number, draft) in self.drafts.iter().enumerate() {
            if let Some(id) = &draft.task.id {
                let first = *self.ids.entry(id.as_str()).or_insert(number);
                if first != number {
                    let problem = PlanProblem::DuplicateId { id: id.to_string(), first: self.at(first) };
                    self.report(number, None, problem, Some("give each task an id of its own".to_owned()));
                }
            }
            let named = self
                .names
                .entry(draft.task.spec.name.as_str())
                .or_insert(Named { first: number, second: None });
            if named.first != number && named.second.is_none() {
                named.second = Some(number);
            }
        }
        for number in 0..self.drafts.len() {
            self.check_known_by_name(number);
        }
    }

    fn check_known_by_name(&mut self, number: usize) {
        let task = &self.drafts[number].task;
        let name = task.spec.name.as_str();
        if task.id.is_some() || name.is_empty() {
            return;
        }
        let named = self.names.get(name).and_then(|named| named.second.map(|second| (named.first, second)));
        // Of two tasks with the same name, only the later one is reported.
        let other = match named {
            Some((first, second)) if first == number => {
                self.drafts[second].task.id.is_some().then_some(second)
            }
            Some((first, _)) => Some(first),
            None => None,
        };
        let Some(other) = self.ids.get(name).copied().or(other) else { return };
        let problem = PlanProblem::DuplicateName { name: name.to_owned(), other: self.at(other) };
        self.report(number, None, problem, Some("give it an `id`".to_owned()));
    }

    pub(super) fn find(&self, text: &str) -> Found {
        if let Some(number) = self.ids.get(text) {
            return Found::One(*number);
        }
        match self.names.get(text) {
            Some(Named { first, second: None }) => Found::One(*first),
            Some(Named { first, second: Some(second) }) => Found::Several(*first, *second),
            None => self.of_incomplete(text).map_or(Found::Nobody, Found::One),
        }
    }

    /// Returns the task that stands for an included one whose plan has an error, so that one mistake leads to one error.
    fn of_incomplete(&self, text: &str) -> Option<usize> {
        let is_below = |number: &usize| {
            let id = self.drafts[*number].task.id.as_ref();
            id.is_some_and(|id| text.strip_prefix(id.as_str()).is_some_and(|rest| rest.starts_with('.')))
        };
        self.incomplete.iter().copied().find(is_below)
    }

    pub(super) fn find_parents(&mut self) {
        // The position at which each task is listed as a subtask.
        let mut given: Vec<Option<Position>> = vec![None; self.drafts.len()];
        for (parent, draft) in self.drafts.iter().enumerate() {
            for subtask in &draft.subtasks {
                let (child, reference) = match subtask {
                    Subtask::Nested(child) => (Some(*child), None),
                    Subtask::Named(reference) => (self.subtask(parent, reference), Some(reference)),
                };
                let Some(child) = child else { continue };
                // The first parent is kept, so that one mistake leads to one error.
                if let Some(first) = given[child] {
                    let problem = PlanProblem::TwoParents { task: self.label(child), first };
                    self.report(parent, reference, problem, None);
                    continue;
                }
                given[child] = Some(reference.map_or(self.at(child), |reference| reference.at));
                self.parents[child] = Some(parent);
                self.children[parent].push(child);
            }
        }
    }

    fn subtask(&mut self, parent: usize, reference: &Reference<'n>) -> Option<usize> {
        match self.find(reference.text) {
            Found::One(child) if child == parent => {
                let problem = PlanProblem::Itself { task: self.label(parent), relation: "a subtask" };
                self.report(parent, Some(reference), problem, None);
            }
            Found::One(child) => return Some(child),
            Found::Several(first, second) => self.ambiguous(parent, reference, first, second),
            Found::Nobody => self.unknown(parent, reference),
        }
        None
    }

    pub(super) fn find_needs(&mut self) {
        for (number, draft) in self.drafts.iter().enumerate() {
            for (index, reference) in draft.needs.iter().enumerate() {
                self.need(number, index, reference);
            }
            let resolved = draft.resolved.iter().flat_map(|resolved| &resolved.needs);
            // They have no place in this plan.
            self.needs[number].extend(resolved.map(|needed| (*needed, usize::MAX)));
        }
    }

    fn need(&mut self, number: usize, index: usize, reference: &Reference<'n>) {
        match self.find(reference.text) {
            Found::One(needed) if needed == number => {
                let problem = PlanProblem::Itself { task: self.label(number), relation: "a dependency" };
                self.report(number, Some(reference), problem, None);
            }
            Found::One(needed) => {
                if !self.needs[number].iter().any(|(other, _)| *other == needed) {
                    self.needs[number].push((needed, index));
                }
            }
            Found::Several(first, second) => self.ambiguous(number, reference, first, second),
            // A valid id that is not in the plan may be in the store. The store reports it if it is not.
            Found::Nobody if !self.is_closed && check_id(reference.text).is_ok() => {
                self.need_outside(number, reference);
            }
            Found::Nobody => self.unknown(number, reference),
        }
    }

    fn need_outside(&mut self, number: usize, reference: &Reference<'n>) {
        let id = TaskId::from(reference.text);
        if !self.outside[number].contains(&id) {
            self.outside[number].push(id);
        }
    }

    fn ambiguous(&mut self, number: usize, reference: &Reference<'n>, first: usize, second: usize) {
        let name = reference.text.to_owned();
        let problem = PlanProblem::Ambiguous { name, first: self.at(first), second: self.at(second) };
        self.report(number, Some(reference), problem, Some("give the tasks ids and use those".to_owned()));
    }

    /// Returns the ids and names of all other tasks, for suggestions: a task never refers to itself.
    pub(super) fn others(&self, number: usize) -> impl Iterator<Item = &'d str> {
        let ids = self.ids.iter().filter(move |(_, other)| **other != number).map(|(id, _)| *id);
        ids.chain(self.names.iter().filter(move |(_, named)| named.first != number).map(|(name, _)| *name))
    }

    fn unknown(&mut self, number: usize, reference: &Reference<'n>) {
        let known = if self.is_closed {
            "a plan that is included has tasks of its own alone; the task that includes it may need others"
        } else {
            "write the id or name of a task of this plan, or the id of one in the store"
        };
        let hint = nearest(reference.text, self.others(number))
            .map_or_else(|| known.to_owned(), |nearest| format!("did you mean `{nearest}`?"));
        let problem = PlanProblem::UnknownTask { reference: reference.text.to_owned() };
        self.report(number, Some(reference), problem, Some(hint));
    }

    /// Walks from the tasks without parents. It uses its own stack, because subtasks listed by id may be nested to any
    /// depth.
    pub(super) fn order(&self) -> Order {
        let mut order =
            Order { drafts: Vec::with_capacity(self.drafts.len()), spans: vec![None; self.drafts.len()] };
        for root in (0..self.drafts.len()).filter(|number| self.parents[*number].is_none()) {
            let mut stack = vec![(root, false)];
            while let Some((number, left)) = stack.pop() {
                let position = order.drafts.len();
                if left {
                    order.spans[number] = order.spans[number].map(|(begin, _)| (begin, position));
                    continue;
                }
                order.drafts.push(number);
                order.spans[number] = Some((position, position + 1));
                stack.push((number, true));
                stack.extend(self.children[number].iter().rev().map(|child| (*child, false)));
            }
        }
        order
    }

    /// Reports and removes dependencies on ancestors and descendants. As edges they would also show up as cycles.
    pub(super) fn check_kinship(&mut self, order: &Order) {
        for number in 0..self.drafts.len() {
            let needs = mem::take(&mut self.needs[number]);
            self.needs[number] =
                needs.into_iter().filter(|need| self.is_no_kin(order, number, *need)).collect();
        }
    }

    fn is_no_kin(&mut self, order: &Order, number: usize, (needed, index): (usize, usize)) -> bool {
        let (task, other) = (self.label(number), self.label(needed));
        let problem = if order.is_beneath(number, needed) {
            PlanProblem::OnAncestor { task, ancestor: other }
        } else if order.is_beneath(needed, number) {
            PlanProblem::OnDescendant { task, descendant: other }
        } else {
            return true;
        };
        let reference = self.drafts[number].needs[index];
        let hint = "leave it out; a task starts before its subtasks and ends after them";
        self.report(number, Some(&reference), problem, Some(hint.to_owned()));
        false
    }

    pub(super) fn check_cycles(&mut self) {
        for cycle in cycle::find(&self.parents, &self.needs) {
            let [first, next, ..] = cycle[..] else { continue };
            let reference = self.reference(first, next);
            let cycle = cycle.iter().map(|number| self.label(*number)).collect();
            let hint = "remove one of these dependencies".to_owned();
            self.report(first, reference.as_ref(), PlanProblem::Cycle { cycle }, Some(hint));
        }
    }

    /// Returns the reference that makes one task wait for another.
    fn reference(&self, number: usize, other: usize) -> Option<Reference<'n>> {
        let draft = &self.drafts[number];
        let need = self.needs[number].iter().find(|(needed, _)| *needed == other);
        need.and_then(|(_, index)| draft.needs.get(*index).copied()).or_else(|| {
            draft.subtasks.iter().find_map(|subtask| match subtask {
                Subtask::Named(reference) if matches!(self.find(reference.text), Found::One(n) if n == other) => {
                    Some(*reference)
                }
                Subtask::Named(_) | Subtask::Nested(_) => None,
            })
        })
    }

    pub(super) fn at(&self, number: usize) -> Position {
        self.drafts[number].task.at
    }

    pub(super) fn label(&self, number: usize) -> String {
        self.drafts[number].label().to_owned()
    }

    fn report(
        &mut self,
        number: usize,
        reference: Option<&Reference>,
        problem: PlanProblem,
        hint: Option<String>,
    ) {
        let mut path = self.path(number);
        if let Some(reference) = reference {
            push_key(&mut path, reference.field);
            if let Some(index) = reference.index {
                push_index(&mut path, index);
            }
        }
        let at = reference.map_or(self.at(number), |reference| reference.at);
        self.errors.push(PlanError { at, path, problem, hint: hint.map(Hint::from) });
    }

    fn path(&self, number: usize) -> String {
        path_of(self.drafts, self.listed, number)
    }
}

/// Returns the path of a draft in the plan.
pub(super) fn path_of(drafts: &[Draft<'_>], listed: bool, number: usize) -> String {
    match drafts[number].place {
        Place::Alone => String::new(),
        Place::Top(index) => {
            let mut path = if listed { String::new() } else { "tasks".to_owned() };
            push_index(&mut path, index);
            path
        }
        Place::Included { by } => {
            let mut path = path_of(drafts, listed, by);
            push_key(&mut path, "include");
            path
        }
        Place::Nested { parent, index } => {
            // Recursion is safe: nested objects are at most 64 deep.
            let mut path = path_of(drafts, listed, parent);
            push_key(&mut path, "subtasks");
            push_index(&mut path, index);
            path
        }
    }
}

impl Order {
    fn is_beneath(&self, number: usize, other: usize) -> bool {
        match (self.spans[number], self.spans[other]) {
            (Some((position, _)), Some((begin, end))) => begin < position && position < end,
            _ => false,
        }
    }
}
