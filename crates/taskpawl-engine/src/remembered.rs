//! Grants that a task has already, so that nothing suggests them.

use std::path::PathBuf;

use taskpawl_model::task::Grant;
use taskpawl_tools::{NamedGrant, RememberedGrant};

/// Returns whether remembered grants give all calls of a plan what a failed call would have needed.
///
/// The failure may be that of an earlier run. A grant for one run does not count: its flag has to be given again. Nor does one for single
/// calls, which has an end that only their definition tells.
pub(crate) fn is_given(remembered: &[RememberedGrant], plan: Option<&str>, grant: &Grant) -> bool {
    let Some(needed) = named(grant) else { return false };
    let is_of_plan = |own: &RememberedGrant| {
        own.only.is_none() && own.plan.as_deref().is_none_or(|own| own == plan.unwrap_or_default())
    };
    remembered.iter().any(|own| is_of_plan(own) && own.grant.covers(&needed))
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
    use super::*;

    #[test]
    fn what_a_plan_has_for_later_runs_is_not_suggested() {
        let remembered = |grant: &str, plan: Option<&str>| RememberedGrant {
            plan: plan.map(str::to_owned),
            agents: false,
            only: None,
            kit: None,
            grant: grant.parse().unwrap(),
        };
        let host = Grant::Host("a.test".to_owned());
        let of_plan = [remembered("host:a.test", Some("build"))];
        assert!(is_given(&of_plan, Some("build"), &host));
        assert!(!is_given(&of_plan, Some("other"), &host) && !is_given(&of_plan, None, &host));
        let of_all = [remembered("host:*.a.test", None), remembered("write:/srv", None)];
        assert!(is_given(&of_all, None, &Grant::Host("b.a.test".to_owned())));
        assert!(is_given(&of_all, None, &Grant::Read("/srv/x".to_owned())));
        assert!(!is_given(&of_all, None, &host) && !is_given(&of_all, None, &Grant::Network));
        assert!(!is_given(&of_all, None, &Grant::Port(1)));
        let of_one = RememberedGrant { only: Some(Vec::new()), ..remembered("host:a.test", None) };
        assert!(!is_given(&[of_one], None, &host));
    }
}
