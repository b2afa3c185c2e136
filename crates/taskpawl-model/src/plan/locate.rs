//! Positions of parts of a plan file, for problems that are found after it was read.

use std::collections::BTreeMap;

use super::linker::path_of;
use super::node::{Content, Node};
use super::places::Places;
use super::reader::{Reader, push_index, push_key};
use super::site::{Site, Stage};
use super::text;
use super::text_rules::Rules;
use crate::expr::{result_fields, result_fields_of_condition};
use crate::value::{Map, secret_names};
use taskpawl_json::Position;

/// A part of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanSpot {
    /// The position of the task, as in [`PlanTask::at`](super::PlanTask::at).
    pub task: Position,
    /// The part of the task.
    pub part: PlanPart,
}

/// A part of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanPart {
    /// The task itself.
    Task,
    /// A dependency, as its author wrote it.
    Need(String),
    /// The name of the tool of the call at this index.
    Tool(usize),
    /// An argument of the call at an index: a path below its arguments, such as `.argv[0]`.
    Argument(usize, String),
    /// An argument of the call at an index that names a secret.
    Secret(usize, String),
    /// An expression that reads a field of the result of another task.
    ResultField {
        /// The other task, as the expression names it.
        task: String,
        /// The field.
        field: String,
    },
}

/// A position in a plan file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanPlace {
    /// The position.
    pub at: Position,
    /// The path of the value there, such as `tasks[0].run`.
    pub path: String,
}

/// Finds parts of the plan in `text`. A part that is not in the file, such as an argument from the defaults, gets the
/// position of its call or of its task; `None` if even that is not there.
///
/// The text is parsed for that: a plan in memory does not remember positions, because few plans have problems.
pub fn locate(text: &str, spots: &[PlanSpot]) -> Vec<Option<PlanPlace>> {
    if cfg!(not(feature = "yaml")) {
        // The reader of JSON has no positions.
        return vec![None; spots.len()];
    }
    let text = text::prepared(text);
    let Some(node) = text::parse(&text, Rules::PLAN, &mut Vec::new()) else { return vec![None; spots.len()] };
    let mut reader = Reader::default();
    (reader.source, reader.is_located) = (&text, true);
    reader.plan(&node);
    let locator = Locator::new(&reader);
    spots.iter().map(|spot| locator.find(spot)).collect()
}

struct Locator<'r, 'n> {
    reader: &'r Reader<'n>,
    places: Places<'r>,
    /// The indexes of the drafts by the positions of their tasks.
    drafts: BTreeMap<Position, usize>,
    /// The values with expressions, and the arguments, of each draft.
    sites: BTreeMap<usize, Vec<&'r Site<'n>>>,
}

impl<'r, 'n> Locator<'r, 'n> {
    fn new(reader: &'r Reader<'n>) -> Self {
        let drafts = reader.drafts.iter().enumerate();
        let drafts = drafts.map(|(index, draft)| (draft.task.at, index)).collect();
        let mut sites: BTreeMap<usize, Vec<&Site<'n>>> = BTreeMap::new();
        for site in &reader.sites {
            if let Some(draft) = site.draft {
                sites.entry(draft).or_default().push(site);
            }
        }
        Self { reader, places: Places::new(reader.source), drafts, sites }
    }

    fn find(&self, spot: &PlanSpot) -> Option<PlanPlace> {
        let draft = *self.drafts.get(&spot.task)?;
        let found = match &spot.part {
            PlanPart::Task => None,
            PlanPart::Need(id) => self.need(draft, id),
            PlanPart::Tool(call) => self.tool(draft, *call),
            PlanPart::Argument(call, below) => {
                self.argument(draft, *call, below).or_else(|| self.tool(draft, *call))
            }
            PlanPart::Secret(call, name) => {
                self.secret(draft, *call, name).or_else(|| self.tool(draft, *call))
            }
            PlanPart::ResultField { task, field } => self.result_field(draft, task, field),
        };
        found.or_else(|| Some(PlanPlace { at: spot.task, path: self.path_of(draft) }))
    }

    fn path_of(&self, draft: usize) -> String {
        path_of(&self.reader.drafts, self.reader.listed, draft)
    }

    fn need(&self, draft: usize, id: &str) -> Option<PlanPlace> {
        let need = self.reader.drafts[draft].needs.iter().find(|need| need.text == id)?;
        let mut path = self.path_of(draft);
        push_key(&mut path, need.field);
        if let Some(index) = need.index {
            push_index(&mut path, index);
        }
        Some(PlanPlace { at: need.at, path })
    }

    fn tool(&self, draft: usize, call: usize) -> Option<PlanPlace> {
        let tool = self.reader.tools.iter().find(|tool| tool.draft == draft && tool.call == call)?;
        Some(PlanPlace { at: tool.at, path: tool.path.clone() })
    }

    fn argument(&self, draft: usize, call: usize, below: &str) -> Option<PlanPlace> {
        let site = self.sites.get(&draft)?.iter().find(|site| site.stage == Stage::Args(call))?;
        let mut steps = steps(below).into_iter().peekable();
        let (mut at, mut path, mut node) = (site.node.at, site.path.clone(), site.node);
        if node.as_object().is_none() {
            // The value of `run` is the argument itself. Other arguments of its call are not in it.
            steps.next_if(|step| matches!(step, Step::Key(key) if key == "command" || key == "argv"));
        }
        for step in steps {
            let next = match &step {
                Step::Key(key) => node.as_object().and_then(|entries| {
                    let entry = entries.iter().find(|entry| entry.key == *key)?;
                    push_key(&mut path, key);
                    Some((entry.key_at, &entry.value))
                }),
                Step::Index(index) => node.as_list().and_then(|items| {
                    let item = items.get(*index)?;
                    push_index(&mut path, *index);
                    Some((item.at, item))
                }),
            };
            let Some(next) = next else {
                // A missing field.
                if let (Step::Key(key), Some(_)) = (&step, node.as_object()) {
                    push_key(&mut path, key);
                }
                break;
            };
            (at, node) = next;
        }
        Some(PlanPlace { at, path })
    }

    fn secret(&self, draft: usize, call: usize, name: &str) -> Option<PlanPlace> {
        let site = self.sites.get(&draft)?.iter().find(|site| site.stage == Stage::Args(call))?;
        let names = |text: &str| {
            let args = Map::from_iter([(String::new(), text.into())]);
            secret_names(&args).contains(name)
        };
        let mut path = site.path.clone();
        let (node, text) = text_in(site.node, &mut path, &names)?;
        let offset = text.find(name).unwrap_or(0);
        Some(PlanPlace { at: self.places.within(node.at, text, offset), path })
    }

    fn result_field(&self, draft: usize, task: &str, field: &str) -> Option<PlanPlace> {
        let wanted = (task.to_owned(), field.to_owned());
        self.sites.get(&draft)?.iter().find_map(|site| {
            let reads = |text: &str| {
                let value = || serde_json::Value::String(text.to_owned());
                let read = if site.bare { result_fields_of_condition(text) } else { result_fields(&value()) };
                read.contains(&wanted)
            };
            let mut path = site.path.clone();
            let (node, text) = text_in(site.node, &mut path, &reads)?;
            let offset = text.find(&format!(".{field}")).map_or(0, |dot| dot + 1);
            Some(PlanPlace { at: self.places.within(node.at, text, offset), path })
        })
    }
}

/// Returns the first text in a value that fits, and leaves its path in `path`.
fn text_in<'n>(
    node: &'n Node<'_>,
    path: &mut String,
    fits: &dyn Fn(&str) -> bool,
) -> Option<(&'n Node<'n>, &'n str)> {
    let length = path.len();
    match &node.content {
        Content::Text(text) => return fits(text).then_some((node, &**text)),
        Content::List(items) => {
            for (index, item) in items.iter().enumerate() {
                push_index(path, index);
                if let Some(found) = text_in(item, path, fits) {
                    return Some(found);
                }
                path.truncate(length);
            }
        }
        Content::Object(entries) => {
            for entry in entries {
                push_key(path, &entry.key);
                if let Some(found) = text_in(&entry.value, path, fits) {
                    return Some(found);
                }
                path.truncate(length);
            }
        }
        Content::Null | Content::Bool(_) | Content::Number(_) => {}
    }
    None
}

/// A step from a value to a value inside it.
enum Step {
    Key(String),
    Index(usize),
}

/// Splits a path such as `.env["A B"][0]`. What cannot be read ends it: the value before it is near enough.
fn steps(path: &str) -> Vec<Step> {
    let (mut steps, mut rest) = (Vec::new(), path);
    loop {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            steps.push(Step::Key(after[..end].to_owned()));
            rest = &after[end..];
        } else if let Some((inner, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            let key = serde_json::from_str(inner).ok().map(Step::Key);
            let Some(step) = inner.parse().ok().map(Step::Index).or(key) else { return steps };
            steps.push(step);
            rest = after;
        } else {
            return steps;
        }
    }
}
