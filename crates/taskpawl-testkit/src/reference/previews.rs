//! Compares the preview of random commands with the store that the same commands leave.

use std::fmt::Debug;

use taskpawl_model::command::Request;
use taskpawl_model::rules::DecideError;
use taskpawl_model::rules::preview;
use taskpawl_model::task::{Status, Work};
use taskpawl_model::value::Key;
use taskpawl_model::view::{Query, View, ViewError, ViewResult};

use super::draw::Draw;
use super::play::Pair;
use crate::random::Random;

/// Previews and then executes `length` random commands; returns the number of accepted ones. `is_stale` compares the
/// store with its state before the command, to prove that a difference is noticed.
///
/// # Errors
/// The first command that leaves another state than its preview showed.
pub fn take_previews(seed: u64, length: usize, is_stale: bool) -> Result<usize, String> {
    let mut random = Random::new(seed ^ 0x9e4e_71e5);
    let (mut pair, mut now, mut accepted) = (Pair::new(None), 0, 0);
    for _ in 0..length {
        now += i64::try_from(random.below(60)).unwrap_or_default();
        let request = Draw { random: &mut random, reference: &pair.reference, now }.request();
        let shown = pair.store.look(|view| previewed(view, &request, is_stale)).map_err(|e| e.to_string())?;
        // A difference between the two models is reported by another test.
        if pair.give(&request).is_err() {
            break;
        }
        if let Some(shown) = shown {
            let left = pair.store.look(state).map_err(|error| error.to_string())?;
            if let Some((shown, left)) = shown.iter().zip(&left).find(|(shown, left)| shown != left) {
                return Err(format!("{:?}\nshown: {shown}\nleft:  {left}", request.command));
            }
            accepted += 1;
        }
    }
    Ok(accepted)
}

/// Returns the state that the preview of a request shows; `None` if the request is refused.
fn previewed(view: &dyn View, request: &Request, is_stale: bool) -> ViewResult<Option<Vec<String>>> {
    match preview(view, &request.command, &request.context, |after| {
        state(if is_stale { view } else { after })
    }) {
        Ok(shown) => shown.map(Some),
        Err(DecideError::View(error)) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Returns everything that a view shows, without its history.
fn state(view: &dyn View) -> ViewResult<Vec<String>> {
    fn text(value: impl Debug) -> String {
        format!("{value:?}")
    }
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    view.each_node(&mut |node| nodes.push(node))?;
    view.each_dependency(&mut |task, on| edges.push((task, on)))?;
    nodes.sort_unstable_by_key(|node| node.key);
    edges.sort_unstable();
    let mut lines = vec![text(&edges), text((view.next_key()?, view.counts()?, view.plans()?))];
    for node in &nodes {
        lines.push(of_task(view, node.key)?);
        lines.push(text(node));
    }
    for query in queries() {
        lines.push(text((view.find(&query)?, &query)));
    }
    lines.push(text((view.leases(None)?, view.running()?, view.on_hold(0)?, view.to_be_opened()?)));
    lines.push(text((view.tools()?, view.ids_with_prefix("t", 100)?)));
    Ok(lines)
}

fn of_task(view: &dyn View, key: Key) -> Result<String, ViewError> {
    let id = view.id(key)?;
    let found = id.as_ref().map(|id| view.key(id.as_str())).transpose()?;
    let edges = (view.dependencies(key)?, view.dependents(key)?, view.subtasks(key)?);
    let rest = (view.task(key)?, view.calls(key)?, view.applied(key)?);
    Ok(format!("{id:?} {found:?} {edges:?} {rest:?}"))
}

fn queries() -> [Query; 5] {
    let all = Query::default();
    [
        Query { ready: Some(Work::ALL.to_vec()), ..all.clone() },
        Query { status: vec![Status::Todo, Status::Blocked], limit: 3, offset: 1, ..all.clone() },
        Query { text: Some("A".to_owned()), ..all.clone() },
        Query { free_for: Some("ann".to_owned()), ..all.clone() },
        all,
    ]
}
