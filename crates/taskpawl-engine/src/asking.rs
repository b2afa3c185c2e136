//! Questions that a tool asks while it runs, and the artifacts that it records.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use taskpawl_model::task::{Artifact, Asked, ToolAnswer, ToolQuestion};
use taskpawl_tools::{ArtifactSink, Ask, CallQuestions, MAX_ARTIFACTS, ToolError, Vault};
use tokio_util::sync::CancellationToken;

use crate::secrets::redactor;

/// Largest number of answered questions of a call. A tool that asks in a loop without an end would otherwise ask people for ever.
const MAX_ANSWERS: usize = 100;

/// The questions of one start of a call.
#[derive(Debug)]
pub(crate) struct StartQuestions {
    answers: Vec<ToolAnswer>,
    /// Stands for the tool and its arguments.
    work: String,
    /// True if the tool may start over although its effects are not known to be in steps.
    is_repeatable: bool,
    vault: Vault,
    state: Mutex<State>,
    /// Fires once a question is asked that has no answer.
    is_asked: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    has_steps: bool,
    /// Number of questions of this start with the same text and options, for questions without a key.
    counts: BTreeMap<(String, Vec<String>), u32>,
    asked: Option<ToolQuestion>,
}

impl StartQuestions {
    pub(crate) fn new(asked: Option<&Asked>, work: String, is_repeatable: bool, vault: Vault) -> Self {
        let answers = asked.map(|asked| asked.answers.clone()).unwrap_or_default();
        let (state, is_asked) = (Mutex::default(), CancellationToken::new());
        Self { answers, work, is_repeatable, vault, state, is_asked }
    }

    /// Waits until the start asks a question without an answer. Never returns if it does not.
    ///
    /// # Cancel safety
    /// The question is kept for the next call.
    pub(crate) async fn asked(&self) -> Box<ToolQuestion> {
        self.is_asked.cancelled().await;
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Box::new(state.asked.clone().expect("BUG: a start asked without a question"))
    }
}

impl CallQuestions for StartQuestions {
    fn ask(&self, ask: &Ask) -> Result<Option<String>, ToolError> {
        // The question is stored: a secret in it must not be.
        let redactor = redactor(&self.vault);
        let clean = |text: &str| redactor.text(text).into_owned();
        let (text, options) =
            (clean(ask.text()), ask.options().iter().map(|option| clean(option)).collect::<Vec<_>>());
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let key = if let Some(key) = ask.name() {
            clean(key)
        } else {
            let count = state.counts.entry((text.clone(), options.clone())).or_default();
            *count += 1;
            count.to_string()
        };
        let question = ToolQuestion::new(key, text, options, &self.work);
        if let Some(known) = self.answers.iter().rev().find(|known| known.question.hash == question.hash) {
            return Ok(Some(known.answer.clone()));
        }
        if !self.is_repeatable && !state.has_steps {
            return Err(ToolError::failed(
                "a tool that asks starts over with the answer, and this one may not: it is neither `idempotent` nor `read_only`; \
                 do what comes before the question in `step`",
            ));
        }
        if self.answers.len() >= MAX_ANSWERS {
            return Err(ToolError::failed(format!(
                "the call has asked {MAX_ANSWERS} questions, and may ask no more"
            )));
        }
        // Of several questions at once the first is asked; the others follow with the next start.
        state.asked.get_or_insert(question);
        self.is_asked.cancel();
        Ok(None)
    }

    fn note_step(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).has_steps = true;
    }
}

/// Artifacts by path and name: one file may have several names.
type ArtifactsByPath = BTreeMap<(String, Option<String>), Artifact>;

/// The artifacts of a call, in the order of their paths.
#[derive(Debug, Clone, Default)]
pub(crate) struct Artifacts(Arc<Mutex<ArtifactsByPath>>);

impl Artifacts {
    /// Returns the sink that fills them. Paths are stored: a secret in one must not be.
    pub(crate) fn sink(&self, vault: &Vault) -> ArtifactSink {
        let (into, vault) = (Arc::clone(&self.0), vault.clone());
        Arc::new(move |file| {
            let path = redactor(&vault).text(&file.path.to_string_lossy()).into_owned();
            let mut artifacts = into.lock().unwrap_or_else(PoisonError::into_inner);
            let key = (path.clone(), file.name.clone());
            let has_room = artifacts.len() < MAX_ARTIFACTS || artifacts.contains_key(&key);
            if has_room {
                let name = file.name.map(|name| redactor(&vault).text(&name).into_owned());
                let artifact = Artifact::new(path.clone(), file.bytes, file.sha256, file.media_type);
                artifacts.insert(key, artifact.named(name));
            }
            has_room
        })
    }

    pub(crate) fn take(&self) -> Vec<Artifact> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use taskpawl_tools::NoSecrets;

    use super::*;

    fn start(answers: &[(&str, &str, &str)], is_repeatable: bool) -> StartQuestions {
        let answer = |(key, ask, answer): &(&str, &str, &str)| {
            let question = ToolQuestion::new(*key, *ask, Vec::new(), "work");
            serde_json::from_value(serde_json::json!({
                "question": question, "answer": answer, "by": "me", "at": "2026-01-01T00:00:00Z",
            }))
            .unwrap()
        };
        let mut asked = Asked::default();
        asked.answers = answers.iter().map(answer).collect();
        StartQuestions::new(Some(&asked), "work".to_owned(), is_repeatable, Vault::open(Arc::new(NoSecrets)))
    }

    #[tokio::test]
    async fn equal_questions_are_counted_and_a_key_names_them() {
        let start = start(&[("1", "go?", "first"), ("2", "go?", "second"), ("k", "go?", "named")], true);
        assert_eq!(start.ask(&Ask::new("go?")).unwrap().as_deref(), Some("first"));
        assert_eq!(start.ask(&Ask::new("go?").key("k")).unwrap().as_deref(), Some("named"));
        assert_eq!(start.ask(&Ask::new("go?")).unwrap().as_deref(), Some("second"));
        assert_eq!(start.ask(&Ask::new("go?")).unwrap(), None);
        assert_eq!(start.ask(&Ask::new("stop?")).unwrap(), None);
        let asked = start.asked().await;
        assert_eq!((asked.ask.as_str(), asked.key.as_str()), ("go?", "3"));
    }

    #[test]
    fn a_tool_that_may_not_start_over_needs_a_step_before_it_asks() {
        let start = start(&[("1", "go?", "yes")], false);
        assert_eq!(start.ask(&Ask::new("go?")).unwrap().as_deref(), Some("yes"));
        let error = start.ask(&Ask::new("on?")).unwrap_err().to_string();
        assert!(error.contains("neither `idempotent` nor `read_only`"), "{error}");
        start.note_step();
        assert_eq!(start.ask(&Ask::new("on?")).unwrap(), None);
    }

    #[test]
    fn questions_without_an_end_are_refused() {
        let answers: Vec<_> = (0..MAX_ANSWERS).map(|at| at.to_string()).collect();
        let answers: Vec<_> = answers.iter().map(|key| (key.as_str(), "go?", "yes")).collect();
        let error = start(&answers, true).ask(&Ask::new("on?")).unwrap_err().to_string();
        assert!(error.contains("asked 100 questions"), "{error}");
    }
}
