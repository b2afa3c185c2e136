//! A model with prepared answers, in place of one behind an API.

use serde_json::Value;
use taskpawl::tools::ToolSpec;

/// Proposals for the goal, each better than the one before: a model learns from the faults that it hears.
const PROPOSALS: [&str; 3] = [
    // An unknown tool, a missing argument, an unknown dependency.
    "{name: digest, tasks: [{id: words, call: {count_word: {}}}, {id: sum, needs: wordz, call: {add_up: {numbers: [1]}}}]}",
    // A wrong type, and a cycle.
    "{name: digest, tasks: [{id: words, needs: sum, call: {count_words: {text: 3}}}, {id: sum, needs: words, call: {add_up: {numbers: [1]}}}]}",
    "name: digest
tasks:
  - {id: words, call: {count_words: {text: nothing lost and nothing run twice}}}
  - {id: more, call: {count_words: {text: derived from what ran}}}
  - {id: sum, needs: [words, more], call: {add_up: {numbers: [\"${{ tasks.words.result.words }}\", \"${{ tasks.more.result.words }}\"]}}}
  - {id: publish, needs: sum, approval: {ask: Publish the number?}, call: {publish: {text: \"${{ tasks.sum.result }} words\"}}}
",
];

#[derive(Debug, Default)]
pub(crate) struct Model {
    heard: Vec<Value>,
}

impl Model {
    /// Returns the next proposal. A real model reads the goal, the tools and the faults so far.
    pub(crate) fn propose(&self, tools: &[ToolSpec]) -> &'static str {
        assert!(tools.iter().any(|tool| tool.name == "count_words"), "the model sees the tools");
        PROPOSALS[self.heard.len().min(PROPOSALS.len() - 1)]
    }

    /// Takes the faults of the last proposal.
    pub(crate) fn hear(&mut self, faults: Value) {
        self.heard.push(faults);
    }
}
