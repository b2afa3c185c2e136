//! Records the prefix of idempotency keys.

use std::collections::BTreeMap;

use crate::rules::draft::{Decided, Draft};
use crate::task::key_space::{CallIdentity, KeyRequest, KeySpace};
use crate::task::status::CallStatus;
use crate::value::Key;

impl Draft<'_> {
    /// Records the prefix of idempotency keys. Calls that were keys and may start again keep their previous prefix.
    pub(super) fn settle_keys(&mut self, request: &KeyRequest) -> Decided<()> {
        let stored = self.view.key_space()?;
        if request.is_settled(stored.as_ref()) {
            return Ok(());
        }
        let project = request.project(stored.as_ref()).to_owned();
        let before =
            stored.unwrap_or_else(|| KeySpace { project: request.before.clone(), ..KeySpace::default() });
        let fence = before.fence;
        let kept = if before.project == project { before.kept } else { self.kept_keys(before)? };
        self.changes.key_space = Some(KeySpace { project, path: request.path.clone(), kept, fence });
        Ok(())
    }

    /// Returns the calls that keep the prefix of `space`. Succeeded calls are left out: only a new generation runs them
    /// again, and a new generation has new keys.
    fn kept_keys(&self, space: KeySpace) -> Decided<BTreeMap<String, String>> {
        let mut keys: Vec<Key> = Vec::new();
        self.view.each_node(&mut |node| keys.push(node.key))?;
        let mut kept = space.kept;
        for key in keys {
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
                    rework: call.body.rework_round(),
                };
                // A call that already kept an older prefix must not get this one: its server may know it by the older
                // key.
                kept.entry(identity.to_string()).or_insert_with(|| space.project.clone());
            }
        }
        Ok(kept)
    }
}
