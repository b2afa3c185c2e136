//! Links between the tasks of a file that cannot hold here: they are dropped and listed, and an export leaves them in the file.

use std::collections::{BTreeMap, BTreeSet};

use taskpawl_model::rules::Graph;
use taskpawl_model::task::{Status, Task};
use taskpawl_model::value::{Key, TaskId};

use crate::reading::{LeftOut, Reading};

/// The number of rounds that drop one dependency of every circle. Tangles that need more lose several at once.
const MAX_ROUNDS: usize = 50;

/// Drops repeated dependencies, those on tasks above or below, and those that close a circle. `keep` preserves a dropped
/// link; it gets the task, and the id that the file gives the other one.
pub(crate) fn settle(reading: &mut Reading, keep: impl Fn(&mut Task, &str)) {
    let places: BTreeMap<TaskId, usize> =
        reading.tasks.iter().enumerate().map(|(place, task)| (task.id.clone(), place)).collect();
    drop_parents_in_circles(reading, &places);
    if reading.tasks.iter().all(|task| task.dependencies.is_empty()) {
        return;
    }
    for task in &mut reading.tasks {
        let mut seen = BTreeSet::new();
        task.dependencies.retain(|on| seen.insert(on.clone()));
    }
    let parents = parents_of(&reading.tasks, &places);
    let above = |place: usize| std::iter::successors(parents[place], |place| parents[*place]);
    let mut dropped = Vec::new();
    for (place, task) in reading.tasks.iter().enumerate() {
        for on in &task.dependencies {
            let Some(other) = places.get(on).copied() else { continue };
            let why = if above(place).any(|above| above == other) {
                format!("`{on}` is above it, and is done only when it is")
            } else if above(other).any(|above| above == place) {
                format!("`{on}` is below it, and it waits for that anyway")
            } else {
                continue;
            };
            dropped.push((place, on.clone(), why));
        }
    }
    for (place, on, why) in dropped {
        drop_link(reading, &places, place, &on, why, &keep);
    }
    for round in 0.. {
        let choice = match round {
            0..MAX_ROUNDS => Choice::One,
            MAX_ROUNDS => Choice::Later,
            _ => Choice::All,
        };
        let links = closing(&reading.tasks, &places, &parents, choice);
        if links.is_empty() {
            break;
        }
        for Closing { place, on, is_over } in links {
            let rest = if is_over { ", and one of them is over" } else { "" };
            let why = format!("it and `{on}` wait for each other{rest}");
            drop_link(reading, &places, place, &on, why, &keep);
            if let Some(left) = reading.left_out.last_mut().filter(|_| !is_over) {
                left.is_fault = true;
            }
        }
    }
}

/// Returns the place of the parent of each task.
fn parents_of(tasks: &[Task], places: &BTreeMap<TaskId, usize>) -> Vec<Option<usize>> {
    tasks.iter().map(|task| task.parent.as_ref().and_then(|parent| places.get(parent)).copied()).collect()
}

/// Drops parents that close a circle, of each circle that of the task that stands last in the file. A task can be its own parent.
fn drop_parents_in_circles(reading: &mut Reading, places: &BTreeMap<TaskId, usize>) {
    let mut parents = parents_of(&reading.tasks, places);
    // The walk that has been here, by its number from 1.
    let mut seen = vec![0; parents.len()];
    for start in 0..parents.len() {
        let (mut at, walk) = (start, start + 1);
        while seen[at] == 0
            && let Some(above) = parents[at]
        {
            seen[at] = walk;
            at = above;
        }
        if seen[at] != walk {
            continue;
        }
        let circle = std::iter::successors(parents[at], |place| parents[*place].filter(|_| *place != at));
        let last = circle.max().unwrap_or(at);
        parents[last] = None;
        let task = &mut reading.tasks[last];
        let parent = task.parent.take().map(|parent| parent.to_string()).unwrap_or_default();
        let why = if parent == task.id.as_str() {
            "a task is not its own parent".to_owned()
        } else {
            format!("it and `{parent}` are below each other")
        };
        let left = LeftOut::new(format!("{}: parent", task.id), why);
        reading.left_out.push(LeftOut { is_fault: true, ..left });
    }
}

fn drop_link(
    reading: &mut Reading,
    places: &BTreeMap<TaskId, usize>,
    place: usize,
    on: &TaskId,
    why: String,
    keep: &impl Fn(&mut Task, &str),
) {
    let name = reading.names[places[on]].clone();
    let task = &mut reading.tasks[place];
    task.dependencies.retain(|other| other != on);
    keep(task, &name);
    reading.left_out.push(LeftOut::new(format!("{}: dependencies", task.id), why));
}

/// A dependency that closes a circle.
struct Closing {
    place: usize,
    on: TaskId,
    /// True if one of the two tasks is over: its dependency no longer orders anything.
    is_over: bool,
}

/// The dependencies to drop of a circle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    /// One: with a finished end, otherwise the last one in the file.
    One,
    /// Those on tasks later in the file, or all if there are none.
    Later,
    /// All. Nothing in the circle waits for another task of it then.
    All,
}

/// Returns dependencies that close circles: at least one of each.
fn closing(
    tasks: &[Task],
    places: &BTreeMap<TaskId, usize>,
    parents: &[Option<usize>],
    choice: Choice,
) -> Vec<Closing> {
    let key = |place: usize| Key(u32::try_from(place).unwrap_or(u32::MAX));
    let mut graph = Graph::default();
    // All tasks first: the graph ignores edges to tasks that it does not have yet.
    (0..tasks.len()).for_each(|place| graph.add_task(key(place)));
    for (place, task) in tasks.iter().enumerate() {
        if let Some(parent) = parents[place] {
            graph.add_subtask(key(place), key(parent));
        }
        for on in task.dependencies.iter().filter_map(|on| places.get(on)) {
            graph.add_dependency(key(place), key(*on));
        }
    }
    let circles = graph.find_cycles().into_iter();
    circles.flat_map(|circle| closing_in(tasks, places, &circle, choice)).collect()
}

fn closing_in(
    tasks: &[Task],
    places: &BTreeMap<TaskId, usize>,
    circle: &[Key],
    choice: Choice,
) -> Vec<Closing> {
    let circle: BTreeSet<usize> = circle.iter().filter_map(|key| usize::try_from(key.0).ok()).collect();
    let is_over =
        |place: usize| matches!(tasks[place].status, Status::Done | Status::Cancelled | Status::Skipped);
    let links = circle.iter().flat_map(|place| tasks[*place].dependencies.iter().map(move |on| (*place, on)));
    let links = links.filter_map(|(place, on)| {
        let other = places.get(on).filter(|other| circle.contains(other))?;
        Some(Closing { place, on: on.clone(), is_over: is_over(place) || is_over(*other) })
    });
    let mut links: Vec<Closing> = links.collect();
    match choice {
        Choice::One => {
            let finished = links.iter().position(|link| link.is_over);
            let place = finished.or(links.len().checked_sub(1));
            place.map(|place| links.swap_remove(place)).into_iter().collect()
        }
        Choice::Later => {
            let is_later = |link: &Closing| places[&link.on] > link.place;
            if links.iter().any(is_later) {
                links.retain(is_later);
            }
            links
        }
        Choice::All => links,
    }
}
