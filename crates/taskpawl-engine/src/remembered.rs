//! Grants that calls have already, so that nothing suggests them.

use std::path::PathBuf;

use taskpawl_model::task::{CallRecord, Grant, Origin, SandboxRequest, TaskRecord};
use taskpawl_model::view::GivenGrants;
use taskpawl_tools::{GrantedCall, NamedGrant, RememberedGrant, Widening};

/// The remembered grants of a project, as advice has to know them.
///
/// A grant for one run does not count: its flag has to be given again. Nor does one for the calls of a coding agent, which only their tool
/// tells.
#[derive(Debug, Clone, Default)]
pub struct RememberedGrants(Vec<RememberedGrant>);

impl RememberedGrants {
    /// Takes the grants of [`SandboxSettings::remembered`](taskpawl_tools::SandboxSettings).
    pub fn new(grants: Vec<RememberedGrant>) -> Self {
        Self(grants)
    }
}

impl GivenGrants for RememberedGrants {
    fn is_given(&self, task: &TaskRecord, call: &CallRecord, grant: &Grant) -> bool {
        let Some(needed) = named(grant) else { return false };
        let asking = GrantedCall {
            plan: task.plan.as_deref().unwrap_or_default(),
            task: task.id.as_str(),
            definition: &|| call.spec.definition_hash(),
            kit: None,
            is_model: is_model(call),
        };
        self.0.iter().any(|own| own.is_of(asking) && own.grant.covers(&needed))
    }
}

/// Converts the approved sandbox request of a call.
pub(crate) fn widening(allowed: Option<SandboxRequest>) -> Widening {
    let SandboxRequest { net, read, write } = allowed.unwrap_or_default();
    let paths = |texts: Vec<String>| texts.into_iter().map(PathBuf::from).collect();
    Widening { net, read: paths(read), write: paths(write), ..Widening::default() }
}

/// Returns whether a model wrote a call. Such a call has only what a person remembered for agents as well.
pub(crate) fn is_model(call: &CallRecord) -> bool {
    matches!(call.origin, Origin::Mcp | Origin::Agent)
}

/// Returns a grant as it is remembered; `None` for one that is never remembered.
fn named(grant: &Grant) -> Option<NamedGrant> {
    match grant {
        Grant::Host(host) => host.parse().ok().map(NamedGrant::Host),
        Grant::Port(port) => Some(NamedGrant::Port(*port)),
        Grant::Read(path) => Some(NamedGrant::Read(PathBuf::from(path))),
        Grant::Write(path) => Some(NamedGrant::Write(PathBuf::from(path))),
        Grant::Network | _ => None,
    }
}

#[cfg(test)]
mod tests {
    use taskpawl_model::task::{CallBody, CallSpec, TaskBody, TaskSpec};
    use taskpawl_model::value::{CallId, TaskId, Timestamp};
    use taskpawl_tools::GrantedWork;

    use super::*;

    fn remembered(grant: &str, plan: Option<&str>) -> RememberedGrant {
        RememberedGrant {
            plan: plan.map(str::to_owned),
            agents: false,
            only: None,
            kit: None,
            grant: grant.parse().unwrap(),
        }
    }

    fn call(origin: Origin) -> CallRecord {
        let spec = CallSpec { tool_name: "shell".to_owned(), ..CallSpec::default() };
        CallRecord { id: CallId::from("c1"), spec: spec.into(), origin, body: CallBody::default().into() }
    }

    fn is_given(own: &[RememberedGrant], plan: Option<&str>, call: &CallRecord, grant: &Grant) -> bool {
        let task = TaskRecord {
            id: TaskId::from("t"),
            spec: TaskSpec::default().into(),
            body: TaskBody::default().into(),
            plan: plan.map(Into::into),
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: Timestamp::UNIX_EPOCH,
            version: 1,
        };
        RememberedGrants::new(own.to_vec()).is_given(&task, call, grant)
    }

    #[test]
    fn only_what_a_plan_has_for_later_runs_is_given() {
        let (own, host) = (call(Origin::Plan), Grant::Host("a.test".to_owned()));
        let of_plan = [remembered("host:a.test", Some("build"))];
        assert!(is_given(&of_plan, Some("build"), &own, &host));
        assert!(!is_given(&of_plan, Some("other"), &own, &host) && !is_given(&of_plan, None, &own, &host));
        let of_all = [remembered("host:*.a.test", None), remembered("write:/srv", None)];
        assert!(is_given(&of_all, None, &own, &Grant::Host("b.a.test".to_owned())));
        assert!(is_given(&of_all, None, &own, &Grant::Read("/srv/x".to_owned())));
        assert!(!is_given(&of_all, None, &own, &host) && !is_given(&of_all, None, &own, &Grant::Network));
        assert!(!is_given(&of_all, None, &own, &Grant::Port(1)));
    }

    #[test]
    fn only_what_the_call_itself_has_is_given() {
        let (own, host) = (call(Origin::Plan), Grant::Host("a.test".to_owned()));
        let all = remembered("host:a.test", None);
        assert!(!is_given(std::slice::from_ref(&all), None, &call(Origin::Agent), &host));
        let for_agents = RememberedGrant { agents: true, ..all.clone() };
        assert!(is_given(&[for_agents], None, &call(Origin::Agent), &host));
        let of = |task: &str, definition: String| RememberedGrant {
            only: Some(vec![GrantedWork { task: task.to_owned(), definition }]),
            ..all.clone()
        };
        assert!(is_given(&[of("t", own.spec.definition_hash())], None, &own, &host));
        assert!(!is_given(&[of("t", "another".to_owned())], None, &own, &host));
        assert!(!is_given(&[of("u", own.spec.definition_hash())], None, &own, &host));
        let of_a_kit = RememberedGrant { kit: Some("agent:a".to_owned()), ..all };
        assert!(!is_given(&[of_a_kit], None, &own, &host));
    }
}
