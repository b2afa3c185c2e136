//! `prune`: what is over and old is forgotten.

use crate::command::Prune;
use crate::draft::{Decided, Draft};
use crate::event::EventKind;
use crate::view::EventQuery;

impl Draft<'_> {
    pub(super) fn prune(&mut self, prune: &Prune) -> Decided<()> {
        let now = self.now();
        for id in &prune.runs {
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
        if let Some(before) = prune.before {
            let first = EventQuery { since: Some(before), limit: 1, ..EventQuery::default() };
            let first = self.view.find_events(&first)?.pop();
            let last = match first {
                Some(event) => event.revision - 1,
                None => self.view.revision()?,
            };
            self.changes.images_gone = Some(last);
        }
        let runs = self.changes.runs_gone.len() as u64;
        let Prune { files, bytes, before, .. } = *prune;
        self.emit(None, EventKind::Pruned { runs, outputs, files, bytes, before })
    }
}
