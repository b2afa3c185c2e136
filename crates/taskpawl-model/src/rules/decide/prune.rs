//! `prune`: deletes the records of old, finished runs.

use crate::command::Prune;
use crate::rules::draft::{Decided, Draft};
use crate::task::event::EventKind;

impl Draft<'_> {
    pub(super) fn prune(&mut self, prune: &Prune) -> Decided<()> {
        let now = self.now();
        for id in &prune.runs {
            // The caller chose the runs from an earlier read. Another process may have pruned them since.
            if self.view.run(id)?.is_some_and(|run| !run.is_open()) {
                self.changes.runs_gone.push((id.clone(), now));
            }
        }
        let mut outputs = 0;
        for id in &prune.outputs {
            if let Some(mut run) = self.view.run(id)?.filter(|run| !run.is_open()) {
                run.output_pruned_at = Some(now);
                self.changes.runs.insert(id.clone(), run);
                outputs += 1;
            }
        }
        self.changes.images_gone = prune.commands;
        self.changes.requests_gone = prune.before;
        let runs = self.changes.runs_gone.len() as u64;
        let Prune { files, bytes, before, .. } = *prune;
        self.emit(None, EventKind::Pruned { runs, outputs, files, bytes, before })
    }
}
