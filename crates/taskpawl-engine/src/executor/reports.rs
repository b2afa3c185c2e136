//! The reports of a tool while it runs: usage, cut parts of the result, artifacts.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use taskpawl_model::task::{Artifact, CallSpec, is_too_deep};
use taskpawl_model::value::{ByteSize, add_usage, cost};
use taskpawl_tools::{CallContext, CutSink, UsageSink, Vault};

use crate::asking::Artifacts;
use crate::secrets::redactor;

/// Largest number of result parts that are recorded as cut.
const MAX_CUT_PARTS: usize = 32;

/// Longest JSON Pointer of such a part, in bytes.
const MAX_POINTER_BYTES: usize = 256;

/// Largest usage record that is stored, in bytes.
const MAX_USAGE_BYTES: usize = 4096;

/// The reports of one start of a call.
pub(super) struct CallReports {
    usage: Arc<Mutex<Option<Value>>>,
    cut: Arc<Mutex<Vec<String>>>,
    artifacts: Artifacts,
}

impl CallReports {
    /// Connects the sinks of a context.
    pub(super) fn of(context: &mut CallContext, vault: &Vault) -> Self {
        let (usage, cut, artifacts) = (Arc::default(), Arc::default(), Artifacts::default());
        context.usage = Some(usage_sink(&usage));
        context.cut = Some(cut_sink(&cut));
        context.artifacts = Some(artifacts.sink(vault));
        Self { usage, cut, artifacts }
    }

    /// Takes the sum of the usage. It comes from the tool and may contain a secret, like a result.
    pub(super) fn usage(&self, vault: &Vault) -> Option<Value> {
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(usage) = &mut usage {
            redactor(vault).value(usage);
        }
        usage
    }

    /// Takes the parts of the result that are incomplete; `stand_in` are those of a result that is stored in a file.
    ///
    /// Parts that are shorter because the author asked for less with `keep` do not count.
    pub(super) fn cut(&self, spec: &CallSpec, stand_in: Vec<String>) -> Vec<String> {
        if !stand_in.is_empty() {
            return stand_in;
        }
        let is_asked_for = spec.keep.is_some_and(|keep| keep < ByteSize::DEFAULT_KEEP);
        let cut = std::mem::take(&mut *self.cut.lock().unwrap_or_else(PoisonError::into_inner));
        if is_asked_for { Vec::new() } else { cut }
    }

    pub(super) fn artifacts(&self) -> Vec<Artifact> {
        self.artifacts.take()
    }
}

/// Collects the usage reports of a call as a sum. Of a report that is too large to store only the cost is kept.
fn usage_sink(usage: &Arc<Mutex<Option<Value>>>) -> UsageSink {
    let usage = Arc::clone(usage);
    Arc::new(move |more| {
        let is_small = more.is_object() && !is_too_deep(&more) && more.to_string().len() <= MAX_USAGE_BYTES;
        let more = if is_small { more } else { json!({"cost": cost(&more)}) };
        let mut usage = usage.lock().unwrap_or_else(PoisonError::into_inner);
        add_usage(&mut usage, more);
        // The sum may become too large although each report is small, because every report may add new names.
        if let Some(total) = usage.as_mut().filter(|total| total.to_string().len() > MAX_USAGE_BYTES) {
            *total = json!({"cost": cost(total)});
        }
    })
}

/// Collects the parts of a result that its tool has cut.
fn cut_sink(cut: &Arc<Mutex<Vec<String>>>) -> CutSink {
    let cut = Arc::clone(cut);
    Arc::new(move |pointer| {
        let mut cut = cut.lock().unwrap_or_else(PoisonError::into_inner);
        // Beyond these limits the whole result, which is the empty pointer, is marked as cut.
        if cut.len() >= MAX_CUT_PARTS || pointer.len() > MAX_POINTER_BYTES {
            *cut = vec![String::new()];
        } else if !cut.contains(&pointer) {
            cut.push(pointer);
        }
    })
}
