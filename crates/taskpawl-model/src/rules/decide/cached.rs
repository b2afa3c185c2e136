//! Cached results of tasks: their inputs, how they are recorded and how they are used.

use std::collections::BTreeMap;

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::command::{CacheInputs, Report};
use crate::rules::draft::{Decided, Draft};
use crate::rules::failure::Problem;
use crate::rules::flow::{self, KnownArgs};
use crate::task::record::{Cached, TaskRecord};
use crate::task::status::{CallStatus, Cause, TaskStatus};
use crate::value::Key;
use crate::value::format_time;
use crate::value::usage::add_usage;

impl Draft<'_> {
    /// Returns the cache inputs of a task that has `cache` and no finished call; or the problem of its key expression.
    pub(super) fn cache_inputs(
        &mut self,
        key: Key,
        record: &TaskRecord,
    ) -> Decided<Result<Option<CacheInputs>, Problem>> {
        let Some(cache) = &record.spec.cache else { return Ok(Ok(None)) };
        let calls = self.calls(key)?.clone();
        // Each round returns tasks, but only the results of the last round would be recorded.
        let emits_in_rounds = record.spec.repeat.is_some() && calls.iter().any(|call| call.spec.emit);
        if emits_in_rounds || calls.iter().any(|call| call.body.status.is_settled()) {
            return Ok(Ok(None));
        }
        let value = cache.key.as_ref().map(|text| flow::value(self, record, &calls, text)).transpose()?;
        let value = match value.transpose() {
            Ok(value) => value.map(|value| value.value),
            Err(problem) => return Ok(Err(problem)),
        };
        let mut work = Vec::with_capacity(calls.len());
        for call in &calls {
            let KnownArgs { args, unknown, untrusted: _ } = flow::known_args(self, record, &calls, call)?;
            let spec = &call.spec;
            let mut parts = vec![
                json!(call.id),
                json!(spec.tool_name),
                json!(args),
                json!(unknown),
                json!(spec.when),
                json!(spec.save_as),
                json!(spec.emit),
            ];
            // Added only if present, so that fingerprints recorded by earlier versions stay valid.
            parts.extend(spec.keep.map(|keep| json!(keep)));
            let variables = spec.variables();
            if !variables.is_empty() {
                let digests = &self.room.rules.variables;
                parts.push(json!(variables.iter().map(|name| (name, digests.get(name))).collect::<Vec<_>>()));
            }
            work.push(parts);
        }
        let repeat = record.spec.repeat.as_ref().map(|repeat| (&repeat.until, repeat.max));
        let work = json!([work, value, repeat]).to_string();
        let recorded = record.body.progress.cached.as_ref().filter(|_| !self.room.rules.no_cache);
        Ok(Ok(Some(CacheInputs {
            work: format!("{:x}", Sha256::digest(work.as_bytes())),
            files: cache.inputs.clone(),
            recorded: recorded.map(|cached| cached.fingerprint.clone()),
        })))
    }

    /// Returns the inputs that the executor of a task's last call must check again after it ended.
    pub(super) fn inputs_to_check(&mut self, key: Key, record: &TaskRecord) -> Decided<Option<CacheInputs>> {
        let (Some(fingerprint), Some(cache)) = (&record.body.progress.fingerprint, &record.spec.cache) else {
            return Ok(None);
        };
        let left = self.calls(key)?.iter().filter(|call| call.body.status == CallStatus::Pending).count();
        let work = fingerprint.split('.').next().unwrap_or_default().to_owned();
        let (files, recorded) = (cache.inputs.clone(), Some(fingerprint.to_string()));
        Ok((left == 0).then_some(CacheInputs { work, files, recorded }))
    }

    /// Finishes a task by its cached results; returns whether that was possible.
    ///
    /// It is not if tasks that its calls returned cannot join the plan again.
    pub(super) fn take_recorded(&mut self, key: Key) -> Decided<bool> {
        let Some(cached) = self.task(key)?.body.progress.cached.clone() else { return Ok(false) };
        let now = self.now();
        let emits = self.calls(key)?.iter().any(|call| call.spec.emit);
        // Adding returned tasks may be refused halfway. The copy then restores the draft, and the task runs as usual.
        let before = emits.then(|| self.clone());
        for position in 0..self.calls(key)?.len() {
            self.update_call(key, position, |call| {
                let result = cached.results.get(&call.id).cloned();
                let body = &mut call.body;
                // Only succeeded calls have a cached result, so the others were skipped.
                body.status = if result.is_some() { CallStatus::Succeeded } else { CallStatus::Skipped };
                body.result = result;
                body.cut = cached.cut.get(&call.id).cloned().map(Box::new);
                body.inserted = cached.inserted.get(&call.id).cloned().map(Box::new);
                body.error = None;
                body.finished_at = Some(now);
            })?;
        }
        if let Some(before) = before
            && !self.emit_recorded(key)?
        {
            *self = before;
            return Ok(false);
        }
        self.update_task(key, |record| record.body.progress.cached_from = Some(cached.at))?;
        let text = format!("its inputs have not changed since {}", format_time(cached.at));
        self.set_state(key, TaskStatus::Done, Cause::Cached, Some(text))?;
        Ok(true)
    }

    /// Marks a task as done, and records its results for the cache if it has a fingerprint.
    pub(super) fn succeed(&mut self, key: Key, cause: Cause, text: Option<String>) -> Decided<()> {
        let now = self.now();
        let fingerprint = self.look_at(key)?.body.progress.fingerprint.clone();
        if let Some(fingerprint) = fingerprint {
            let calls = self.calls(key)?;
            let results = calls.iter().filter(|call| call.body.status == CallStatus::Succeeded);
            let cut = results.clone().filter_map(|call| Some((call.id.clone(), *call.body.cut.clone()?)));
            let cut: BTreeMap<_, _> = cut.collect();
            // Also of skipped calls: a model may have given a value that its condition read.
            let inserted =
                calls.iter().filter_map(|call| Some((call.id.clone(), *call.body.inserted.clone()?)));
            let inserted: BTreeMap<_, _> = inserted.collect();
            let results: BTreeMap<_, _> =
                results.map(|call| (call.id.clone(), call.body.result.clone().unwrap_or_default())).collect();
            self.update_task(key, |record| {
                record.body.progress.fingerprint = None;
                record.body.progress.cached = Some(Box::new(Cached {
                    fingerprint: fingerprint.into(),
                    at: now,
                    results,
                    cut,
                    inserted,
                }));
            })?;
        }
        self.set_state(key, TaskStatus::Done, cause, text)
    }

    /// Records observations of a run about a task's files during a call, and the usage of the call.
    pub(super) fn take_findings(&mut self, key: Key, position: usize, report: &Report) -> Decided<()> {
        if let Some(usage) = &report.usage {
            self.update_call(key, position, |call| {
                let mut sum = call.body.usage.take().map(|sum| *sum);
                add_usage(&mut sum, usage.clone());
                call.body.usage = sum.map(Box::new);
            })?;
        }
        if report.changed_beyond.is_empty() && report.changes_unknown.is_none() && !report.inputs_changed {
            return Ok(());
        }
        self.update_task(key, |record| {
            let progress = &mut record.body.progress;
            if report.inputs_changed {
                progress.fingerprint = None;
            }
            progress.changed_beyond.extend(report.changed_beyond.iter().cloned());
            progress.changed_beyond.sort();
            progress.changed_beyond.dedup();
            if report.changes_unknown.is_some() {
                progress.changes_unknown = report.changes_unknown.as_deref().map(Box::from);
            }
        })
    }
}
