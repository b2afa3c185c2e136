//! Links between the tasks of a file that cannot hold here: they are dropped and listed, and an export leaves them in the file.

use std::collections::{BTreeMap, BTreeSet};

use taskpawl_model::rules::Graph;
use taskpawl_model::task::{Status, Task};
use taskpawl_model::value::{Key, TaskId};

use crate::reading::{LeftOut, Reading};

/// The number of circles that are resolved one by one. A file with more is refused as a whole.
const MAX_CIRCLES: usize = 1_000;

/// Drops dependencies on tasks above or below, and those that close a circle with a finished task. `keep` preserves a dropped
/// link; it gets the task, and the id that the file gives the other one.
pub(crate) fn settle(reading: &mut Reading, keep: impl Fn(&mut Task, &str)) {
    if reading.tasks.iter().all(|task| task.dependencies.is_empty()) {
        return;
    }
    let places: BTreeMap<TaskId, usize> =
        reading.tasks.iter().enumerate().map(|(place, task)| (task.id.clone(), place)).collect();
    let parents: Vec<Option<usize>> = reading
        .tasks
        .iter()
        .map(|task| task.parent.as_ref().and_then(|parent| places.get(parent)).copied())
        .collect();
    // Circular parents are refused elsewhere; `take` ends the walk for them.
    let above =
        |place: usize| std::iter::successors(parents[place], |place| parents[*place]).take(parents.len());
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
    for _ in 0..MAX_CIRCLES {
        let Some((place, on)) = finished_in_circle(&reading.tasks, &places, &parents) else { break };
        let why = format!("it and `{on}` wait for each other, and one of them is over");
        drop_link(reading, &places, place, &on, why, &keep);
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

/// Returns a dependency of a circle that has a finished end.
fn finished_in_circle(
    tasks: &[Task],
    places: &BTreeMap<TaskId, usize>,
    parents: &[Option<usize>],
) -> Option<(usize, TaskId)> {
    let key = |place: usize| Key(u32::try_from(place).unwrap_or(u32::MAX));
    let mut graph = Graph::default();
    for (place, task) in tasks.iter().enumerate() {
        graph.add_task(key(place));
        if let Some(parent) = parents[place] {
            graph.add_subtask(key(place), key(parent));
        }
        for on in task.dependencies.iter().filter_map(|on| places.get(on)) {
            graph.add_dependency(key(place), key(*on));
        }
    }
    let circle: Vec<usize> =
        graph.find_cycle()?.into_iter().filter_map(|key| usize::try_from(key.0).ok()).collect();
    let is_over =
        |place: usize| matches!(tasks[place].status, Status::Done | Status::Cancelled | Status::Skipped);
    let is_in: BTreeSet<usize> = circle.iter().copied().collect();
    let links = circle.iter().flat_map(|place| tasks[*place].dependencies.iter().map(move |on| (*place, on)));
    let mut links = links.filter_map(|(place, on)| Some((place, *places.get(on)?, on)));
    links
        .find(|(place, other, _)| is_in.contains(other) && (is_over(*place) || is_over(*other)))
        .map(|(place, _, on)| (place, on.clone()))
}
