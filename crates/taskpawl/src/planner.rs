//! Plans from a goal, proposed by a planner and checked here.

mod change;

use std::sync::Arc;

use taskpawl_engine::RunVariables;
use taskpawl_manager::Error;
use taskpawl_model::rules::authorize_planned;
use taskpawl_model::task::{CallSpec, Origin, PolicyDecision, TaskSpec};
use taskpawl_planner::{
    Budget, Document, Facts, Planner, Prompt, Proposal, ProposeError, answer_schema, propose,
};
use taskpawl_tools::ToolSpec;

use crate::blocking::Blocking;
use crate::check::{CheckOptions, CheckSeverity};
use crate::facade::Taskpawl;

pub use change::{ChangeRequest, MAX_REPAIRS, NoChange, PlanChange};

impl Taskpawl {
    /// Asks a planner for a plan that reaches a goal. The planner gets the goal, the documents, the tools, and names of files of the
    /// project. Its answer is checked, and all problems go back to it in one list, until an answer has none. Nothing is applied.
    ///
    /// Apply the plan with a handle whose origin is `agent`, so that the policy decides about its calls as about those of a model.
    ///
    /// # Errors
    /// The planner fails, or none of its answers is accepted.
    pub async fn plan_goal(
        &self,
        goal: &str,
        documents: Vec<Document>,
        planner: Arc<dyn Planner>,
        budget: Budget,
    ) -> Result<Proposal, ProposeError<Error>> {
        let goal = goal.to_owned();
        self.offload(move |plans| {
            let tools = plans.tools_for(Origin::Agent);
            let facts = Facts::of_directory(&plans.engine.project().root);
            let prompt = Prompt::new(&goal, &documents, &tools, &facts, budget.max_tasks);
            let (variables, explain) = (RunVariables::default(), plans.explain_tool());
            let options =
                CheckOptions { origin: Origin::Agent, variables: &variables, explain: &explain, files: None };
            plans.propose(&prompt, &tools, &*planner, budget, options)
        })
        .await
    }
}

impl Blocking {
    /// Returns the tools that the policy does not deny to calls of an origin, whatever their arguments are.
    pub fn tools_for(&self, origin: Origin) -> Vec<ToolSpec> {
        let hook = self.manager().policy_hook().map(|hook| &**hook);
        let is_denied = |tool: &ToolSpec| {
            let call = CallSpec { tool_name: tool.name.clone(), ..CallSpec::default() };
            let decision = authorize_planned(hook, &TaskSpec::default(), &call, origin);
            matches!(decision, PolicyDecision::Deny { .. })
        };
        let tools = self.engine.tools().iter().map(|tool| tool.spec().clone());
        tools.filter(|tool| !is_denied(tool)).collect()
    }

    /// Asks a planner with a prompt until [`check_text`](Self::check_text) finds no error in its answer.
    ///
    /// # Errors
    /// The planner fails, or none of its answers is accepted.
    pub fn propose(
        &self,
        prompt: &Prompt,
        tools: &[ToolSpec],
        planner: &dyn Planner,
        budget: Budget,
        options: CheckOptions<'_>,
    ) -> Result<Proposal, ProposeError<Error>> {
        let schema = answer_schema(tools, budget.max_tasks);
        propose(planner, prompt.messages(), &schema, budget, |text| {
            let found = self.check_text(text, options)?;
            // Warnings, and calls that ask a person, are for the person who applies the plan.
            let errors = found.problems.iter().filter(|problem| problem.severity == CheckSeverity::Error);
            Ok(errors.map(ToString::to_string).collect())
        })
    }
}
