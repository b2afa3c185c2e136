use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::ExitCode;

use serde::Serialize;
use taskpawl::model::rules::{DecideError, select};
use taskpawl::model::task::Status;
use taskpawl::model::value::Selector;
use taskpawl::model::value::{Key, TaskId};
use taskpawl::model::view::View;

use crate::app::App;
use crate::commands::parse;
use crate::commands::print::some;
use crate::error::CliError;
use crate::shown::{Shown, shown};
use crate::text::{MIN_WRAPPED, Paint, clean, style, wrap};

/// Show the dependency graph. Shows tasks in layers. Each layer depends only on those above it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskpawl graph
  taskpawl graph --format dot | dot -Tsvg > plan.svg
  taskpawl graph --only plan:release --format mermaid")]
pub(crate) struct Args {
    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Only the tasks of a plan, with a label, or a task with all below it; may be given several times
    #[arg(long, value_name = "plan:NAME|label:NAME|ID", value_parser = parse::selector)]
    only: Vec<Selector>,
}

/// How a graph is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Layers, with what each task needs
    Text,
    /// The language of Graphviz
    Dot,
    /// The language of Mermaid
    Mermaid,
}

/// A task of the graph. `needs` and `parent` are positions in the list of tasks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) id: TaskId,
    pub(super) name: String,
    pub(super) status: Status,
    pub(super) needs: Vec<usize>,
    pub(super) parent: Option<usize>,
}

/// A task in the `--json` output.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownTask<'a> {
    id: &'a TaskId,
    name: &'a str,
    status: Status,
    layer: usize,
    dependencies: Vec<&'a TaskId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<&'a TaskId>,
}

/// Shows the dependency graph in the requested format.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let points = app.reader()?.manager().read(|view| load(view, &args.only))?;
    let out = app.out();
    if out.is_json {
        let layers = layers(&points);
        let shown: Vec<ShownTask<'_>> =
            points.iter().zip(layers).map(|(point, layer)| shown(&points, point, layer)).collect();
        return out.data(&shown);
    }
    out.print(match args.format {
        Format::Text => text(&points, out.paint, out.width),
        Format::Dot => dot(&points).into(),
        Format::Mermaid => mermaid(&points).into(),
    })
}

fn shown<'a>(points: &'a [Point], point: &'a Point, layer: usize) -> ShownTask<'a> {
    ShownTask {
        id: &point.id,
        name: &point.name,
        status: point.status,
        layer: layer + 1,
        dependencies: point.needs.iter().map(|on| &points[*on].id).collect(),
        parent: point.parent.map(|parent| &points[parent].id),
    }
}

/// Reads the selected tasks, oldest first. Edges to tasks outside of the selection are left out.
fn load(view: &dyn View, only: &[Selector]) -> Result<Vec<Point>, DecideError> {
    let selected = select(view, only)?;
    let mut nodes = Vec::new();
    view.each_node(&mut |node| {
        if selected.as_ref().is_none_or(|keys| keys.contains(&node.key)) {
            nodes.push((node.key, node.parent));
        }
    })?;
    let positions: BTreeMap<Key, usize> =
        nodes.iter().enumerate().map(|(position, (key, _))| (*key, position)).collect();
    let mut points = Vec::with_capacity(nodes.len());
    for (key, parent) in &nodes {
        let task = view.task(*key)?;
        let parent = parent.and_then(|parent| positions.get(&parent).copied());
        points.extend(task.map(|task| Point {
            status: task.body.state.status(),
            id: task.id,
            name: task.spec.name.clone(),
            needs: Vec::new(),
            parent,
        }));
    }
    view.each_dependency(&mut |task, on| {
        if let (Some(task), Some(on)) = (positions.get(&task), positions.get(&on)) {
            points[*task].needs.push(*on);
        }
    })?;
    Ok(points)
}

/// Returns the layer of each task: one more than the highest of its dependencies and subtasks. A subtask is
/// never placed before its parent can start.
fn layers(points: &[Point]) -> Vec<usize> {
    // Each task has two nodes, entry and exit: a parent starts before its subtasks and ends after them.
    let (entry, exit) = (|task: usize| 2 * task, |task: usize| 2 * task + 1);
    let mut next: Vec<Vec<(usize, usize)>> = vec![Vec::new(); 2 * points.len()];
    let mut open = vec![0_usize; 2 * points.len()];
    let mut edge = |from: usize, to: usize, step: usize| {
        next[from].push((to, step));
        open[to] += 1;
    };
    for (task, point) in points.iter().enumerate() {
        edge(entry(task), exit(task), 0);
        point.needs.iter().for_each(|on| edge(exit(*on), entry(task), 1));
        if let Some(parent) = point.parent {
            edge(entry(parent), entry(task), 0);
            edge(exit(task), exit(parent), 1);
        }
    }
    let mut depth = vec![0_usize; 2 * points.len()];
    let mut free: Vec<usize> = (0..open.len()).filter(|point| open[*point] == 0).collect();
    while let Some(from) = free.pop() {
        // `take` is enough, because each node becomes free once.
        for (to, step) in std::mem::take(&mut next[from]) {
            depth[to] = depth[to].max(depth[from] + step);
            open[to] -= 1;
            if open[to] == 0 {
                free.push(to);
            }
        }
    }
    (0..points.len()).map(|task| depth[exit(task)]).collect()
}

fn text(points: &[Point], paint: Paint, width: Option<usize>) -> Shown {
    let mut order: Vec<(usize, usize)> = layers(points).into_iter().zip(0..).collect();
    order.sort_unstable();
    let id_width = points.iter().map(|point| point.id.as_str().chars().count().min(24)).max().unwrap_or(0);
    let (mut text, mut last) = (Shown::new(), None);
    for (layer, task) in order {
        if last != Some(layer) {
            text.push(shown![paint.style(style::DIM, &format!("layer {}", layer + 1)), "\n"]);
            last = Some(layer);
        }
        text.push(line(points, &points[task], id_width, paint, width));
    }
    text
}

fn line(points: &[Point], task: &Point, id_width: usize, paint: Paint, width: Option<usize>) -> Shown {
    let state = format!("  {:<11}", task.status.as_str());
    let id = clean(task.id.as_str());
    let mut rest = format!("  {id:<id_width$}");
    if task.name != task.id.as_str() {
        let _ = write!(rest, "  {}", clean(&task.name));
    }
    if !task.needs.is_empty() {
        let needs: Vec<TaskId> = task.needs.iter().map(|on| points[*on].id.clone()).collect();
        let _ = write!(rest, "  ← {}", clean(&some(&needs)));
    }
    if let Some(parent) = task.parent {
        let _ = write!(rest, "  (part of {})", clean(points[parent].id.as_str()));
    }
    let rest = rest.trim_end();
    let rest = rest.trim_start();
    let indent = state.len() + 2;
    let lines = match width {
        Some(width) => wrap(rest, width.saturating_sub(indent).max(MIN_WRAPPED)),
        None => vec![rest.to_owned()],
    };
    let rest = lines.join(&format!("\n{}", " ".repeat(indent)));
    shown![paint.style(style::of_status(task.status), &state), "  ", rest, "\n"]
}

fn dot(points: &[Point]) -> String {
    let mut text = String::from("digraph taskpawl {\n  rankdir=LR;\n  node [shape=box, style=filled];\n");
    for point in points {
        let label = if point.name == point.id.as_str() {
            String::new()
        } else {
            format!("\\n{}", dot_text(&point.name))
        };
        let id = dot_text(point.id.as_str());
        let color = color(point.status);
        let _ =
            writeln!(text, "  \"{id}\" [label=\"{id}{label}\\n{}\", fillcolor=\"{color}\"];", point.status);
    }
    for point in points {
        let id = dot_text(point.id.as_str());
        for on in &point.needs {
            let _ = writeln!(text, "  \"{}\" -> \"{id}\";", dot_text(points[*on].id.as_str()));
        }
        if let Some(parent) = point.parent {
            let parent = dot_text(points[parent].id.as_str());
            let _ = writeln!(text, "  \"{id}\" -> \"{parent}\" [style=dashed, arrowhead=odiamond];");
        }
    }
    text + "}\n"
}

fn dot_text(text: &str) -> String {
    clean(text).replace('\\', "\\\\").replace('"', "\\\"")
}

fn mermaid(points: &[Point]) -> String {
    let mut text = String::from("flowchart LR\n");
    for (number, point) in points.iter().enumerate() {
        let name = if point.name == point.id.as_str() { String::new() } else { format!(": {}", point.name) };
        let label = mermaid_text(&format!("{}{name}", point.id));
        let _ = writeln!(text, "  t{number}[\"{label}\"]:::{}", point.status);
    }
    for (number, point) in points.iter().enumerate() {
        point.needs.iter().for_each(|on| {
            let _ = writeln!(text, "  t{on} --> t{number}");
        });
        if let Some(parent) = point.parent {
            let _ = writeln!(text, "  t{number} -.-> t{parent}");
        }
    }
    for status in Status::ALL {
        let _ = writeln!(text, "  classDef {status} fill:{},color:#000", color(*status));
    }
    text
}

/// Escapes text so that it can neither end a label nor start markup.
fn mermaid_text(text: &str) -> String {
    let escape = |c: char| match c {
        '#' | '"' | '<' | '>' | '&' | '`' | '\\' => format!("#{};", u32::from(c)),
        other => other.to_string(),
    };
    clean(text).chars().map(escape).collect()
}

fn color(status: Status) -> &'static str {
    match status {
        Status::Todo => "#ffffff",
        Status::InProgress => "#9ad7e8",
        Status::Blocked => "#f2e08c",
        Status::Done => "#a9dfa4",
        Status::Failed => "#f0a6a0",
        Status::Cancelled | Status::Skipped => "#d8d8d8",
    }
}
