//! The first part of idempotency keys is settled.

use std::collections::BTreeMap;

use crate::Key;
use crate::draft::{Decided, Draft};
use crate::key_space::{CallIdentity, KeyRequest, KeySpace};
use crate::status::CallStatus;

impl Draft<'_> {
    /// Records the first part of keys. Calls that have started and may start again keep the key that they have.
    pub(super) fn settle_keys(&mut self, request: &KeyRequest) -> Decided<()> {
        let known = self.view.key_space()?;
        if request.is_settled(known.as_ref()) {
            return Ok(());
        }
        let project = request.project(known.as_ref()).to_owned();
        let before =
            known.unwrap_or_else(|| KeySpace { project: request.before.clone(), ..KeySpace::default() });
        let kept = if before.project == project { before.kept } else { self.kept_keys(before)? };
        self.changes.key_space = Some(KeySpace { project, path: request.path.clone(), kept });
        Ok(())
    }

    /// Returns the calls that keep the first part which they have in `space`. Done tasks have none: only a new generation of them
    /// starts again.
    fn kept_keys(&self, space: KeySpace) -> Decided<BTreeMap<String, String>> {
        let mut started: Vec<Key> = Vec::new();
        self.view.each_node(&mut |node| started.push(node.key))?;
        let mut kept = space.kept;
        for key in started {
            let record = self.task(key)?;
            if record.body.attempt == 0 {
                continue;
            }
            for call in self.known_calls(key)? {
                if call.body.attempts == 0 || call.body.status == CallStatus::Succeeded {
                    continue;
                }
                let identity = CallIdentity {
                    task: &record.id,
                    call: &call.id,
                    generation: record.body.generation,
                    round: record.body.progress.round,
                };
                kept.entry(identity.to_string()).or_insert_with(|| space.project.clone());
            }
        }
        Ok(kept)
    }
}
