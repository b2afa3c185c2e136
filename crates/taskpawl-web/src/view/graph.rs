use std::collections::{BTreeMap, BTreeSet, VecDeque};

use maud::{Markup, html};
use serde::Serialize;
use taskpawl::model::rules::resolve;
use taskpawl::model::value::{Key, TaskId};
use taskpawl::model::view::{View, ViewResult};

use super::part;
use crate::answer::Problem;
use crate::board::Cell;
use crate::layout::layout;
use crate::server::{Asked, Inner};

/// Tasks that are drawn.
const MAX_NODES: usize = 150;

/// Size of a node, and distance between nodes.
const WIDTH: usize = 168;
const HEIGHT: usize = 34;
const ACROSS: usize = 220;
const DOWN: usize = 46;

/// Characters of an id that fit into a node.
const MAX_LABEL: usize = 20;

/// A task of a cone, or several that look the same from it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ConeNode {
    id: TaskId,
    state: &'static str,
    #[serde(skip)]
    cell: CellWord,
    /// Number of tasks that it stands for.
    count: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct CellWord(Cell);

/// The dependencies and dependents of a task, direct and indirect.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cone {
    task: TaskId,
    nodes: Vec<ConeNode>,
    /// Dependency and dependent, as positions in `nodes`.
    edges: Vec<(usize, usize)>,
    /// Further tasks exist beyond those that are drawn.
    truncated: bool,
}

/// Tasks by their dependencies, dependents and state.
type Groups = BTreeMap<(Vec<Key>, Vec<Key>, char), Vec<Key>>;

/// Returns the cone of a task.
pub(crate) fn cone(page: &Inner, id: &str) -> Result<Cone, Problem> {
    page.known(page.reader.read(|view| {
        let key = resolve(view, id)?;
        Ok(read(view, key)?)
    }))
}

fn read(view: &dyn View, of: Key) -> ViewResult<Cone> {
    let mut truncated = false;
    let mut keys = BTreeSet::from([of]);
    for up in [true, false] {
        let most = keys.len() + MAX_NODES / 2;
        let mut next = VecDeque::from([of]);
        while let Some(key) = next.pop_front() {
            let others = if up { view.dependencies(key)? } else { view.dependents(key)? };
            for other in others {
                if keys.len() >= most {
                    truncated = true;
                } else if keys.insert(other) {
                    next.push_back(other);
                }
            }
        }
    }
    let mut groups = Groups::new();
    for key in &keys {
        let within =
            |others: Vec<Key>| others.into_iter().filter(|other| keys.contains(other)).collect::<Vec<_>>();
        let node = view.node(*key)?;
        // The task itself is never one of several.
        let letter = if *key == of { ' ' } else { node.map_or('w', |node| Cell::of(&node).letter()) };
        groups
            .entry((within(view.dependencies(*key)?), within(view.dependents(*key)?), letter))
            .or_default()
            .push(*key);
    }
    of_groups(view, of, &groups, truncated)
}

/// Draws tasks with the same neighbours and the same state as one node.
fn of_groups(view: &dyn View, of: Key, groups: &Groups, truncated: bool) -> ViewResult<Cone> {
    let (mut nodes, mut at) = (Vec::new(), BTreeMap::new());
    for keys in groups.values() {
        for key in keys {
            at.insert(*key, nodes.len());
        }
        let (Some(id), Some(node)) = (view.id(keys[0])?, view.node(keys[0])?) else { continue };
        let cell = Cell::of(&node);
        nodes.push(ConeNode { id, state: cell.name(), cell: CellWord(cell), count: keys.len() });
    }
    let mut edges = BTreeSet::new();
    for ((dependencies, ..), keys) in groups {
        edges.extend(dependencies.iter().map(|dependency| (at[dependency], at[&keys[0]])));
    }
    let task = view.id(of)?.unwrap_or_else(|| TaskId::from(""));
    Ok(Cone { task, nodes, edges: edges.into_iter().collect(), truncated })
}

/// Returns the cone of a task as a drawing, and as a list of the same.
pub(super) fn fragment(page: &Inner, asked: &Asked) -> Result<Markup, Problem> {
    let cone = cone(page, &asked.value)?;
    Ok(html! {
        h1 { "Graph of " (part::task_link(&cone.task)) }
        p.quiet {
            "Dependencies stand to the left, dependents to the right."
            @if cone.truncated { " Only the nearest " (MAX_NODES) " are drawn." }
        }
        (drawn(&cone))
    })
}

fn drawn(cone: &Cone) -> Markup {
    let placed = layout(cone.nodes.len(), &cone.edges);
    let (width, height) = (placed.columns.max(1) * ACROSS, placed.rows.max(1) * DOWN + 28);
    let place = |node: usize| (placed.places[node].0 * ACROSS + 12, placed.places[node].1 * DOWN + 20);
    html! {
        div.graph tabindex="0" role="region" aria-label="Graph, scrolls" {
            svg width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) {
                @for (from, to) in &cone.edges {
                    @let ((x1, y1), (x2, y2)) = (place(*from), place(*to));
                    path.edge d=(curve(x1 + WIDTH, y1 + HEIGHT / 2, x2, y2 + HEIGHT / 2)) {}
                }
                @for (at, node) in cone.nodes.iter().enumerate() { (box_of(cone, node, place(at))) }
            }
        }
    }
}

fn curve(x1: usize, y1: usize, x2: usize, y2: usize) -> String {
    let middle = usize::midpoint(x1, x2);
    format!("M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}")
}

fn box_of(cone: &Cone, node: &ConeNode, (x, y): (usize, usize)) -> Markup {
    let cell = node.cell.0;
    let id = node.id.as_str();
    let label: String = id.chars().take(MAX_LABEL).collect();
    let count = if node.count > 1 { format!(" ×{}", node.count) } else { String::new() };
    let path = if node.id == cone.task {
        format!("/task/{}", part::segment(id))
    } else {
        format!("/graph/{}", part::segment(id))
    };
    html! {
        a href=(path) class=(if node.id == cone.task { "node here" } else { "node" }) {
            title { (part::line(id)) (count) ": " (cell.name()) }
            rect class={ "f-" (cell.letter()) } x=(x) y=(y) width=(WIDTH) height=(HEIGHT) rx="6" {}
            text x=(x + 12) y=(y + 22) { (part::line(&label)) @if label.len() < id.len() { "…" } (count) }
        }
    }
}
