use std::collections::{BTreeMap, BTreeSet, VecDeque};

use maud::{Markup, html};
use serde::Serialize;
use taskpawl::model::rules::resolve;
use taskpawl::model::value::{Key, TaskId};
use taskpawl::model::view::{View, ViewResult};

use super::part;
use crate::answer::Problem;
use crate::asked::Asked;
use crate::board::Cell;
use crate::layout::layout;
use crate::page::Page;

/// Tasks that are drawn.
const MAX_NODES: usize = 150;

/// Size of a node, and distance between nodes.
const WIDTH: usize = 188;
const HEIGHT: usize = 34;
const ACROSS: usize = 240;
const DOWN: usize = 46;

/// Characters of an id that fit into a node.
const MAX_LABEL: usize = 24;

/// A task of a cone, or several that look the same from it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ConeNode {
    id: TaskId,
    /// The state that matters most among its tasks.
    state: Cell,
    /// Number of tasks that it stands for.
    count: usize,
    /// Their number by state.
    states: BTreeMap<&'static str, usize>,
    /// It is on the longest chain of unfinished tasks.
    critical: bool,
}

impl ConeNode {
    /// Describes its tasks, such as `×47: 45 done, 2 failed`.
    fn words(&self) -> String {
        if self.count == 1 {
            return self.state.name().to_owned();
        }
        let states: Vec<String> = self.states.iter().map(|(name, count)| format!("{count} {name}")).collect();
        format!("×{}: {}", self.count, states.join(", "))
    }
}

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

/// Tasks by their dependencies and dependents; the task itself is alone in its group.
type Groups = BTreeMap<(bool, Vec<Key>, Vec<Key>), Vec<Key>>;

/// Returns the cone of a task.
pub(crate) fn cone(page: &Page, id: &str) -> Result<Cone, Problem> {
    let mut cone = page.known(page.reader.read(|view| {
        let key = resolve(view, id)?;
        Ok(read(view, key)?)
    }))?;
    let outlook = page.outlooks.get(page)?;
    let critical = outlook.critical();
    for node in &mut cone.nodes {
        node.critical = critical.contains(&node.id);
    }
    Ok(cone)
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
        groups
            .entry((*key == of, within(view.dependencies(*key)?), within(view.dependents(*key)?)))
            .or_default()
            .push(*key);
    }
    of_groups(view, of, &groups, truncated)
}

/// Draws tasks with the same neighbours as one node.
fn of_groups(view: &dyn View, of: Key, groups: &Groups, truncated: bool) -> ViewResult<Cone> {
    let (mut nodes, mut at) = (Vec::new(), BTreeMap::new());
    for keys in groups.values() {
        for key in keys {
            at.insert(*key, nodes.len());
        }
        nodes.push(node_of(view, keys)?);
    }
    let mut edges = BTreeSet::new();
    for ((_, dependencies, _), keys) in groups {
        edges.extend(dependencies.iter().map(|dependency| (at[dependency], at[&keys[0]])));
    }
    let task = view.id(of)?.unwrap_or_else(|| TaskId::from(""));
    Ok(Cone { task, nodes, edges: edges.into_iter().collect(), truncated })
}

fn node_of(view: &dyn View, keys: &[Key]) -> ViewResult<ConeNode> {
    let (mut states, mut shown) = (BTreeMap::new(), None);
    for key in keys {
        let Some(node) = view.node(*key)? else { continue };
        let cell = Cell::of(&node);
        *states.entry(cell.name()).or_insert(0) += 1;
        // The node shows the state that matters most, and leads to a task in this state.
        if shown.is_none_or(|(rank, _, _)| cell.rank() < rank) {
            shown = Some((cell.rank(), cell, *key));
        }
    }
    let (_, state, key) = shown.unwrap_or((0, Cell::Waiting, keys[0]));
    let id = view.id(key)?.unwrap_or_else(|| TaskId::from(""));
    Ok(ConeNode { id, state, count: keys.len(), states, critical: false })
}

/// Returns the cone of a task as a drawing, and as a list of the same.
pub(super) fn fragment(page: &Page, asked: &Asked) -> Result<Markup, Problem> {
    let cone = cone(page, &asked.value)?;
    Ok(html! {
        h1 { "Graph of " (part::task_link(&cone.task)) }
        p.quiet {
            "Dependencies stand to the left, dependents to the right; arrow keys walk along the edges. Outlined tasks are the longest chain that is left."
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
                    @let is_critical = cone.nodes[*from].critical && cone.nodes[*to].critical;
                    path class=(if is_critical { "edge critical" } else { "edge" }) d=(curve(x1 + WIDTH, y1 + HEIGHT / 2, x2, y2 + HEIGHT / 2)) {}
                }
                @for (at, node) in cone.nodes.iter().enumerate() { (box_of(cone, at, node, place(at))) }
            }
        }
    }
}

fn curve(x1: usize, y1: usize, x2: usize, y2: usize) -> String {
    let middle = usize::midpoint(x1, x2);
    format!("M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}")
}

fn box_of(cone: &Cone, at: usize, node: &ConeNode, (x, y): (usize, usize)) -> Markup {
    let id = node.id.as_str();
    let words = node.words();
    let label = if node.count > 1 { words.as_str() } else { id };
    let short: String = label.chars().take(MAX_LABEL).collect();
    let ends = |is_after: bool| -> String {
        let edges = cone.edges.iter().filter(|(from, to)| if is_after { *from == at } else { *to == at });
        edges.map(|(from, to)| if is_after { to } else { from }.to_string()).collect::<Vec<_>>().join(" ")
    };
    let class = if node.id == cone.task { "node here" } else { "node" };
    let path = if node.id == cone.task {
        format!("/task/{}", part::segment(id))
    } else {
        format!("/graph/{}", part::segment(id))
    };
    html! {
        a href=(path) class={ (class) @if node.critical { " critical" } } data-node=(at) data-before=(ends(false)) data-after=(ends(true)) {
            title { (part::line(id)) @if node.count > 1 { " and " (node.count - 1) " like it" } ": " (words) }
            rect class={ "f-" (node.state.letter()) } x=(x) y=(y) width=(WIDTH) height=(HEIGHT) rx="6" {}
            text x=(x + 12) y=(y + 22) { (part::line(&short)) @if short.len() < label.len() { "…" } }
        }
    }
}
