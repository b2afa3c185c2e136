//! Finds the cycle that a new edge would close.
//!
//! Each task has an entry and an exit. The exit comes after the entry and after the exits of the subtasks. The entry
//! comes after the exits of the dependencies and the entry of the parent.

use crate::view::ReadGraph;
use std::collections::{BTreeMap, VecDeque};

use crate::rules::draft::{Decided, Draft};
use crate::value::Key;

/// An edge to be added.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Edge {
    Dependency { task: Key, on: Key },
    Subtask { task: Key, parent: Key },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Point {
    Entry(Key),
    Exit(Key),
}

impl Point {
    fn key(self) -> Key {
        match self {
            Self::Entry(key) | Self::Exit(key) => key,
        }
    }
}

/// Returns the cycle that the edge would close, as tasks in order with the first one repeated at the end. `None`
/// without a cycle.
pub(crate) fn find(draft: &Draft<'_>, edge: Edge) -> Decided<Option<Vec<Key>>> {
    let paths = match edge {
        Edge::Dependency { task, on } => vec![(Point::Entry(task), Point::Exit(on))],
        Edge::Subtask { task, parent } => {
            // A subtask adds two edges, one between the entries and one between the exits. Either can close a cycle.
            vec![(Point::Entry(task), Point::Entry(parent)), (Point::Exit(parent), Point::Exit(task))]
        }
    };
    for (from, to) in paths {
        if let Some(points) = connect(draft, from, to)? {
            return Ok(Some(circle(&points)));
        }
    }
    Ok(None)
}

/// Walks forward from one point and backward from the other in turn, so that the smaller side decides the cost.
fn connect(draft: &Draft<'_>, from: Point, to: Point) -> Decided<Option<Vec<Point>>> {
    let mut forward = Walk::new(from);
    let mut backward = Walk::new(to);
    loop {
        for is_forward in [true, false] {
            let (walk, other) =
                if is_forward { (&mut forward, &backward) } else { (&mut backward, &forward) };
            // One side is exhausted without meeting the other, so no path exists.
            let Some(point) = walk.queue.pop_front() else { return Ok(None) };
            if other.came_from.contains_key(&point) {
                return Ok(Some(join(&forward, &backward, point)));
            }
            let next = if is_forward { after(draft, point)? } else { before(draft, point)? };
            walk.extend(point, next);
        }
    }
}

struct Walk {
    queue: VecDeque<Point>,
    came_from: BTreeMap<Point, Option<Point>>,
}

impl Walk {
    fn new(start: Point) -> Self {
        Self { queue: VecDeque::from([start]), came_from: BTreeMap::from([(start, None)]) }
    }

    fn extend(&mut self, point: Point, next: Vec<Point>) {
        for next in next {
            self.came_from.entry(next).or_insert_with(|| {
                self.queue.push_back(next);
                Some(point)
            });
        }
    }

    fn trail(&self, end: Point) -> Vec<Point> {
        let step = |point: &Point| self.came_from.get(point).copied().flatten();
        std::iter::successors(Some(end), step).collect()
    }
}

fn after(draft: &Draft<'_>, point: Point) -> Decided<Vec<Point>> {
    Ok(match point {
        Point::Entry(key) => {
            let below = draft.subtasks(key)?.into_iter().map(Point::Entry);
            std::iter::once(Point::Exit(key)).chain(below).collect()
        }
        Point::Exit(key) => {
            let above = draft.node(key)?.parent.map(Point::Exit);
            draft.dependents(key)?.into_iter().map(Point::Entry).chain(above).collect()
        }
    })
}

fn before(draft: &Draft<'_>, point: Point) -> Decided<Vec<Point>> {
    Ok(match point {
        Point::Exit(key) => {
            let below = draft.subtasks(key)?.into_iter().map(Point::Exit);
            std::iter::once(Point::Entry(key)).chain(below).collect()
        }
        Point::Entry(key) => {
            let above = draft.node(key)?.parent.map(Point::Entry);
            draft.dependencies(key)?.into_iter().map(Point::Exit).chain(above).collect()
        }
    })
}

fn join(forward: &Walk, backward: &Walk, middle: Point) -> Vec<Point> {
    let mut points = forward.trail(middle);
    points.reverse();
    points.extend(backward.trail(middle).into_iter().skip(1));
    points
}

fn circle(points: &[Point]) -> Vec<Key> {
    let mut keys: Vec<Key> = points.iter().map(|point| point.key()).collect();
    keys.dedup();
    if keys.len() > 1 && keys.first() == keys.last() {
        return keys;
    }
    keys.extend(keys.first().copied());
    keys
}
