//! Linking: resolves all references of a plan, and puts its tasks in order.

use std::mem;

use serde_json::Value;

use super::draft::Draft;
use super::linker::{Linker, Order};
use super::reader::Reader;
use super::{PlanTask, expressions, include, sessions};
use crate::task::MERGE_TOOL;
use crate::value::TaskId;

/// Resolves the references of the drafts and returns the tasks, each after its parent.
pub(super) fn link(reader: &mut Reader) -> Vec<PlanTask> {
    let mut drafts = mem::take(&mut reader.drafts);
    let mut linker = Linker::new(&drafts, reader.listed);
    linker.is_closed = reader.includes.is_included();
    linker.check_names();
    linker.find_parents();
    linker.find_needs();
    let order = linker.order();
    linker.check_kinship(&order);
    linker.check_cycles();
    // Otherwise unresolved references would be reported twice.
    let is_linked = linker.errors.is_empty();
    reader.errors.append(&mut linker.errors);
    let mut names = if is_linked { expressions::check(reader, &linker) } else { Vec::new() };
    if is_linked {
        include::add_names(&linker, &mut names);
        name_merged(&linker, &mut names);
        reader.check_returns(&linker);
    }
    let resumed = if is_linked { sessions::resolve(reader, &linker, &mut names) } else { Vec::new() };
    if !is_linked {
        expressions::check_syntax(reader);
    }
    let Linker { parents, needs, outside, .. } = linker;
    for session in resumed {
        session.write(&mut drafts);
    }
    if !reader.errors.is_empty() {
        // Further checks look at each task on its own.
        let unlinked = |(draft, needs_outside): (Draft, _)| PlanTask { needs_outside, ..draft.task };
        let is_read_on = reader.is_inspected;
        return drafts.into_iter().zip(outside).filter(|_| is_read_on).map(unlinked).collect();
    }
    arrange(drafts, &order, &parents, Links { needs, outside, names })
}

/// Records the tasks that calls of `merge` name, as for expressions: ids in the store are made from names, or have a prefix.
fn name_merged(linker: &Linker<'_, '_>, names: &mut expressions::Names) {
    // Those of an included plan have their ids already.
    let own = linker.drafts.iter().enumerate().filter(|(_, draft)| !draft.is_included());
    for (number, draft) in own {
        let calls = draft.task.calls.iter().filter(|call| call.spec.tool_name == MERGE_TOOL);
        let merged = calls.filter_map(|call| call.spec.args.get("of")?.as_array()).flatten();
        for text in merged.filter_map(Value::as_str) {
            names[number].extend(linker.one(text).map(|other| (text.to_owned(), other)));
        }
    }
}

/// The resolved references of each draft.
struct Links {
    needs: Vec<Vec<(usize, usize)>>,
    outside: Vec<Vec<TaskId>>,
    names: expressions::Names,
}

fn arrange(drafts: Vec<Draft>, order: &Order, parents: &[Option<usize>], links: Links) -> Vec<PlanTask> {
    let position = |number: usize| order.spans[number].map_or(number, |(position, _)| position);
    let mut tasks: Vec<(usize, PlanTask)> = drafts
        .into_iter()
        .zip(links.needs)
        .zip(links.outside)
        .zip(links.names)
        .enumerate()
        .map(|(number, (((draft, needs), needs_outside), names))| {
            let needs = needs.into_iter().map(|(needed, _)| position(needed)).collect();
            let names = names.into_iter().map(|(name, other)| (name, position(other))).collect();
            let parent = parents[number].map(position);
            (position(number), PlanTask { needs, needs_outside, names, parent, ..draft.task })
        })
        .collect();
    tasks.sort_by_key(|(position, _)| *position);
    let mut tasks: Vec<PlanTask> = tasks.into_iter().map(|(_, task)| task).collect();
    // `collect` reuses the memory of the drafts, which are four times as large.
    tasks.shrink_to_fit();
    tasks
}
