use std::collections::BTreeMap;

use taskpawl_model::rules::resolve;
use taskpawl_model::task::EventKind;
use taskpawl_model::value::RunId;
use taskpawl_model::value::Timestamp;
use taskpawl_model::view::{View, ViewResult};

use crate::error::Error;
use crate::manager::Manager;

impl Manager {
    /// Returns the ids of pruned runs, with the time of the pruning.
    pub fn pruned_runs(&self) -> Result<Vec<(RunId, Timestamp)>, Error> {
        Ok(self.store().view(|view| view.pruned_runs(""))?)
    }

    /// Returns the time when output of a task was last removed, either with its run or to limit disk usage.
    pub fn output_pruned_at(&self, id: &str) -> Result<Option<Timestamp>, Error> {
        self.read(|view| {
            let key = resolve(view, id)?;
            let mut starts = BTreeMap::new();
            for event in view.events(0, Some(key), 0)? {
                if let (EventKind::CallStarted { call, start, .. }, Some(run)) = (event.kind, event.run) {
                    starts.insert((call, start), run);
                }
            }
            let mut last = None;
            for run in starts.values() {
                last = last.max(pruned_at(view, run)?);
            }
            Ok(last)
        })
    }
}

fn pruned_at(view: &dyn View, run: &RunId) -> ViewResult<Option<Timestamp>> {
    if let Some(run) = view.run(run)? {
        return Ok(run.output_pruned_at);
    }
    let pruned = view.pruned_runs(run.as_str())?.into_iter().find(|(id, _)| id == run);
    Ok(pruned.map(|(_, at)| at))
}
