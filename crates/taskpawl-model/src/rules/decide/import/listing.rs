//! Lists what an import did not follow, and stores what the source says now.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::Importing;
use super::baseline::{self, Before};
use crate::command::import::{DivergingField, ImportMode, SourceRecord};
use crate::rules::decide::merge::{self, is_equal, said};
use crate::rules::draft::{Decided, Draft};
use crate::task::Outcome;
use crate::task::record::Work;
use crate::task::status::Status;
use crate::value::{Key, TaskId};
use crate::view::Query;

impl Importing<'_> {
    /// Lists tasks of earlier imports that are gone from the source.
    pub(super) fn list_gone(&mut self, draft: &mut Draft<'_>) -> Decided<()> {
        let present: BTreeSet<Key> = self.found.iter().filter_map(|found| found.key).collect();
        let mut sources: BTreeSet<String> =
            self.found.iter().map(|found| found.record.source.clone()).collect();
        sources.insert(self.import.source.clone());
        for key in draft.view.find(&Query::default())? {
            if present.contains(&key) {
                continue;
            }
            let (mut before, mut adapted) = (None, None);
            for source in baseline::among(draft, key, &sources)? {
                let Before { said, apart, record } = baseline::of(draft, key, source)?;
                adapted = adapted.or(record.as_ref().and_then(|record| record.adapted));
                if let (Some(said), Some(record)) = (&said, record.filter(|record| !record.gone)) {
                    let record = SourceRecord { gone: true, ..record };
                    baseline::note(draft, key, source, said.clone(), apart, record)?;
                }
                before = before.or(said);
            }
            let Some(before) = before else { continue };
            let id = draft.id(key)?;
            if self.is_changed_since(draft, key, &before, adapted)? {
                self.report.gone_changed.push(id.clone());
            }
            self.report.gone.push(id);
        }
        Ok(())
    }

    /// Returns whether a task in the store differs from the last values of its source. `adapted` is the status that stands
    /// for another one in the source.
    pub(super) fn is_changed_since(
        &self,
        draft: &mut Draft<'_>,
        key: Key,
        before: &BTreeMap<String, Value>,
        adapted: Option<Status>,
    ) -> Decided<bool> {
        let fields: Vec<String> = before.keys().cloned().collect();
        let here = said(&draft.flat_task(key)?, &fields);
        let is_deleted = |id: &str| self.deleted.contains(&TaskId::from(id));
        for (field, before) in before {
            let now = here.get(field);
            let is_same = match field.as_str() {
                "status" => {
                    // An earlier import set this status in place of the source's.
                    let is_adapted = adapted.is_some_and(|adapted| now == Some(&json!(adapted)));
                    is_adapted || Self::is_state_as_said(draft, key, now, before)?
                }
                "notes" => {
                    now.and_then(Value::as_array).map_or(0, Vec::len) == before.as_array().map_or(0, Vec::len)
                }
                "metadata.toolCalls" => is_equal(field, now, before),
                _ => merge::is_as_said(field, now, before, is_deleted),
            };
            if !is_same {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Lists the fields in which store and source differ; fields that are equal again are removed.
    pub(super) fn list_apart(&mut self, draft: &mut Draft<'_>) -> Decided<()> {
        for position in 0..self.found.len() {
            if self.found[position].apart.is_empty() {
                continue;
            }
            let here = said(&draft.flat_task(self.key(position))?, &self.import.fields);
            let found = &mut self.found[position];
            let null = Value::Null;
            found.apart.retain(|field| {
                let (here, there) = (here.get(field), found.now.get(field).unwrap_or(&null));
                let is_apart = !is_equal(field, here, there);
                if is_apart {
                    let (here, there) = (here.cloned().unwrap_or_default(), there.clone());
                    self.report.apart.push(DivergingField {
                        task: found.task.id.clone(),
                        field: field.clone(),
                        here,
                        there,
                    });
                }
                is_apart
            });
        }
        Ok(())
    }

    /// Stores the current values of the source. After writing to the source, every field is equal by definition.
    pub(super) fn note_said(&self, draft: &mut Draft<'_>) -> Decided<()> {
        for (position, found) in self.found.iter().enumerate() {
            let is_written = self.import.mode == ImportMode::Record;
            let mut apart = found.apart.clone();
            if is_written {
                // A derived status is an exception: the source keeps its own word for it. So is a task at the top level that an
                // import could not put below its parent: the source keeps its place.
                apart.retain(|field| matches!(field.as_str(), "status" | "parent"));
            }
            let mut record = found.record.record.clone();
            // Once the task has left that status, its status is one that was set here.
            let status = draft.task(found.key())?.body.state.status();
            record.adapted = found.adapted.filter(|adapted| *adapted == status);
            if found.before.as_ref() != Some(&found.now)
                || found.apart_before != apart
                || found.record_before.as_ref() != Some(&record)
            {
                let source = found.record.source.clone();
                baseline::note(draft, self.key(position), &source, found.now.clone(), apart, record)?;
            }
        }
        Ok(())
    }

    /// Lists parents that are open in the source and done here.
    pub(super) fn list_different(&mut self, draft: &Draft<'_>) -> Decided<()> {
        for found in &self.found {
            let there = found.task.status;
            let Some(key) = found.key.filter(|_| !there.is_finished()) else { continue };
            let node = draft.node(key)?;
            if node.work == Work::Automatic && node.status_kind.outcome_above() == Outcome::Done {
                self.report.differs.push(DivergingField {
                    task: found.task.id.clone(),
                    field: "status".to_owned(),
                    here: json!(Status::Done),
                    there: json!(there),
                });
            }
        }
        Ok(())
    }
}
