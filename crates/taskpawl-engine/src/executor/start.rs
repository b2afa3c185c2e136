//! One start of a call, from its first poll to the result.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use taskpawl_model::command::{CallEnd, StartedCall};
use taskpawl_model::task::CallSpec;
use taskpawl_tools::{
    CallContext, Confinement, GrantedCall, Progress, RegisteredTool, SharedQuestions, Widening,
};

use super::ended::Ended;
use super::limit::Limit;
use super::outcome::{self, Outcome, failed, is_repeatable, not_started, unknown_tool};
use super::reports::CallReports;
use super::run_context::RunContext;
use crate::asking::StartQuestions;
use crate::broker::Broker;
use crate::call_executor::Ticket;
use crate::files_by_git::SentFiles;
use crate::journal::FileJournal;
use crate::remembered::{is_model, widening};
use crate::scans::{CallScans, confined};
use crate::shared_sessions;
use crate::unpassed;

/// One start of a call. Nothing has happened yet.
pub(super) struct CallStart {
    pub(super) started: StartedCall,
    pub(super) tool: Option<RegisteredTool>,
    pub(super) context: CallContext,
    pub(super) limit: Limit,
    /// Prefix of the files with its steps.
    pub(super) steps: PathBuf,
    pub(super) reports: CallReports,
    /// Files that came with the call of another process.
    pub(super) files: Option<(SentFiles, Ticket)>,
    pub(super) scans: Option<CallScans>,
}

impl CallStart {
    /// Runs the call to its end.
    pub(super) async fn run(self, run: &RunContext) -> Ended {
        let Self { mut started, tool, mut context, limit, steps, reports, files, scans } = self;
        // The clock starts after the snapshot of the files, so that the scan does not count as run time of the call.
        let before = match &scans {
            Some(scans) => scans.before(&started.spec.writes).await,
            None => None,
        };
        let (begin, begin_at) = (Instant::now(), run.source.now());
        let (entered, tree) = run.enter(&started, files, &mut context).await;
        run.share(&started, &mut context).await;
        let broker = Broker::open(&run.call_manager, &run.resources.vault, &started);
        context.plan = broker.as_ref().ok().and_then(|broker| Some(broker.as_ref()?.descriptor()));
        let args = Value::Object(std::mem::take(&mut started.args));
        let widening = run.widening(&started, tool.as_ref(), &args, &context);
        let questions = run.remember(&mut context, steps, &started, &args, tool.as_ref());
        let Outcome { end, stand_in, hint } = match (entered, &broker) {
            (Err(error), _) => failed(error.class, error.message, None).into(),
            (Ok(_), Err(error)) => {
                failed("io", format!("failed to give the call access to the plan: {error}"), None).into()
            }
            (Ok(of_worktree), Ok(_)) => {
                let confinement = of_worktree.unwrap_or_else(|| Arc::clone(&run.resources.confinement));
                let spec = &started.call.spec;
                let prepared = PreparedCall { run, spec, tool, args, context, questions, limit: &limit };
                prepared.run(&confinement, widening).await
            }
        };
        let cut = reports.cut(&started.call.spec, stand_in);
        // The plan access ends before the call is reported, so that nothing can be added in the name of a finished
        // call.
        if let Ok(Some(broker)) = broker {
            broker.close().await;
        }
        let (took, spent) = (begin.elapsed(), (run.source.now() - begin_at).to_std().unwrap_or_default());
        let (mut changed, inputs_changed) = match &scans {
            Some(scans) => scans.after(before, started.cache, &end).await,
            None => Default::default(),
        };
        let (end, files) = run.leave(tree, end, &mut changed).await;
        let StartedCall { key, attempt, call, plan, .. } = started;
        Ended {
            key,
            attempt,
            call: call.id,
            end,
            took,
            spent,
            plan,
            usage: reports.usage(&run.resources.vault),
            cut,
            artifacts: reports.artifacts(),
            changed,
            hint,
            inputs_changed,
            files,
            worker: None,
            is_unsent: false,
        }
    }
}

/// A call in its directory. Its sandbox is not made yet.
struct PreparedCall<'a> {
    run: &'a RunContext,
    spec: &'a CallSpec,
    tool: Option<RegisteredTool>,
    args: Value,
    context: CallContext,
    questions: Arc<StartQuestions>,
    limit: &'a Limit,
}

impl PreparedCall<'_> {
    /// Runs the tool in its sandbox until it ends or asks a question.
    async fn run(self, confinement: &Arc<Confinement>, widening: Widening) -> Outcome {
        let Self { run, spec, tool, args, context, questions, limit } = self;
        let Some(tool) = tool else { return unknown_tool(&spec.tool_name).into() };
        let mut context = match confined(context, confinement, widening).await {
            Ok(context) => context,
            Err(error) => return not_started(&error, limit).into(),
        };
        let resources = &run.resources;
        resources.variables.fill(&spec.tool_name, &mut context);
        let is_outer = |name: &str| run.engine.has_outer_variable(name);
        let unpassed = unpassed::warning(&spec.tool_name, &args, &context, &is_outer);
        let report = context.progress.clone();
        let (tool, secrets) = ((tool, &*run.engine.layers), (&resources.vault, &resources.values));
        let ending = outcome::run(tool, context, args, spec, &run.output, secrets, limit);
        let ended = tokio::select! {
            // A tool that ended by itself has not waited for the answer.
            biased;
            ended = ending => ended,
            question = questions.asked() => CallEnd::Asks(question).into(),
        };
        if let (Some(message), Some(report)) = (unpassed, report) {
            report(Progress::Warning(message));
        }
        ended
    }
}

impl RunContext {
    /// Gives a call what it shares with others: directories for artifacts, and conversations.
    async fn share(&self, started: &StartedCall, context: &mut CallContext) {
        context.artifact_dirs = self.artifact_dirs(started).await;
        match shared_sessions::of_call(&self.call_manager, started).await {
            Ok(sessions) => context.shared_sessions = sessions,
            Err(error) => context.warn(format!("the shared conversation is unknown: {error}")),
        }
    }

    /// Returns the permissions of a call: those that it was granted, those that a person remembered for it, and the directory of the run
    /// for artifacts.
    fn widening(
        &self,
        started: &StartedCall,
        tool: Option<&RegisteredTool>,
        args: &Value,
        context: &CallContext,
    ) -> Widening {
        let StartedCall { call, plan, task, sandbox, .. } = started;
        let kit = tool.and_then(|tool| tool.tool().kit(args));
        let remembered = self.resources.confinement.remembered(GrantedCall {
            plan: plan.as_deref().unwrap_or_default(),
            task: task.as_str(),
            definition: &|| call.spec.definition_hash(),
            kit: kit.as_deref(),
            is_model: is_model(call),
        });
        let of_artifacts = self.widening_for_artifacts(context.artifact_dirs.as_deref());
        widening(sandbox.clone()).and(remembered).and(of_artifacts)
    }

    /// Gives a call its journal, and the questions that earlier attempts asked.
    fn remember(
        &self,
        context: &mut CallContext,
        steps: PathBuf,
        started: &StartedCall,
        args: &Value,
        tool: Option<&RegisteredTool>,
    ) -> Arc<StartQuestions> {
        let (call, vault) = (&started.call, &self.resources.vault);
        let journal = FileJournal::new(steps, &call.spec.tool_name, args, vault.clone());
        let repeatable = tool.is_some_and(|tool| is_repeatable(tool, &call.spec, args));
        let work = journal.work().to_owned();
        let questions = StartQuestions::new(call.body.asked.as_deref(), work, repeatable, vault.clone());
        let questions = Arc::new(questions);
        context.journal = Some(Arc::new(journal));
        context.questions = Some(Arc::clone(&questions) as SharedQuestions);
        questions
    }
}
