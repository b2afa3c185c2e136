//! Conversations of agents that calls share, or go on with.

use taskpawl_model::plan::{parse_plan, task_from_json};

fn resumed(tasks: &str) -> Result<String, String> {
    let plan = parse_plan(&format!("tasks: [{tasks}]")).map_err(|errors| errors.to_string())?;
    let call = &plan.tasks.last().unwrap().calls.last().unwrap().spec;
    Ok(call.args["session"]["resume"].as_str().unwrap().to_owned())
}

fn with(first: &str, more: &str) -> Result<String, String> {
    resumed(&format!("{first}, {{id: b, call: {{agent: {{prompt: x, session: {{resume: a}}}}}}{more}}}"))
}

#[test]
fn a_task_that_is_named_gives_the_session_of_its_last_agent() {
    let agent = "{id: a, call: {agent: {prompt: x}}}";
    assert_eq!(with(agent, ", needs: a").as_deref(), Ok("${{ tasks['a'].result.session }}"));
    let verified = "{id: a, call: {agent: {prompt: x}}, verify: {run: 'true'}}";
    assert_eq!(with(verified, ", needs: a").as_deref(), Ok("${{ tasks['a'].result.session }}"));
    let earlier = "{id: a, calls: [{run: x}, {agent: {prompt: x}}, {run: y}]}";
    assert_eq!(with(earlier, ", needs: a").as_deref(), Ok("${{ tasks['a'].context['c2'].session }}"));
    // The long form reads as it was written.
    let text = with(earlier, ", needs: a").unwrap();
    let long = format!(
        "{earlier}, {{id: b, needs: a, call: {{agent: {{prompt: x, session: {{resume: \"{text}\"}}}}}}}}"
    );
    assert_eq!(resumed(&long), Ok(text));
}

#[test]
fn any_other_text_is_the_id_of_a_session_and_a_misspelt_task_is_not() {
    let id = "{id: b, call: {agent: {prompt: x, session: {resume: 0f9c-11}}}}";
    assert_eq!(resumed(id).as_deref(), Ok("0f9c-11"));
    let error = resumed(
        "{id: design, call: {agent: {prompt: x}}}, {id: b, needs: design, call: {agent: {prompt: x, session: {resume: desing}}}}",
    );
    assert!(error.as_ref().unwrap_err().contains("design"), "{error:?}");
}

#[test]
fn a_session_that_cannot_be_there_is_refused() {
    for (first, more, expected) in [
        ("{id: a, call: {agent: {prompt: x}}}", "", "needs"),
        ("{id: a, run: x}", ", needs: a", "it has no call of `agent`"),
        ("{id: a, forEach: {in: [1]}, call: {agent: {prompt: x}}}", ", needs: a", "each of its items"),
    ] {
        let error = with(first, more).unwrap_err();
        assert!(error.contains(expected), "{first}: {error}");
    }
    let other = "{id: a, call: {agent: {prompt: x, using: one}}}, {id: b, needs: a, call: {agent: {prompt: x, using: two, session: {resume: a}}}}";
    assert!(resumed(other).unwrap_err().contains("its agent is another one"));
    let own = "{id: b, call: {agent: {prompt: x, session: {resume: b}}}}";
    assert!(resumed(own).is_err());
}

#[test]
fn tasks_that_share_a_conversation_take_turns() {
    let plan = parse_plan(
        "tasks: [{id: a, call: {agent: {prompt: x, session: shared}}}, {id: b, call: {agent: {prompt: x}}}]",
    )
    .unwrap();
    let held = |index: usize| plan.tasks[index].spec.wanted_resources(Some("p")).collect::<Vec<_>>();
    assert_eq!((held(0), held(1)), (vec![("agent-session:p".to_owned(), 1)], vec![]));
    let single = serde_json::json!({"id": "a", "call": {"agent": {"prompt": "x", "session": "shared"}}});
    assert_eq!(task_from_json(&single).unwrap().spec.resources.get("agent-session"), Some(&1));
    let beside = "tasks: [{id: a, mode: parallel, calls: [{agent: {prompt: x, session: shared}}, {agent: {prompt: y, session: shared}}]}]";
    let errors = parse_plan(beside).unwrap_err().to_string();
    assert!(errors.contains("`session: shared` cannot be combined with `mode: parallel`"), "{errors}");
}
