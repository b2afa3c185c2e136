//! Plans from goals, by planners of the host.

use std::sync::{Arc, Mutex};

use taskpawl::Taskpawl;
use taskpawl::planning::{Budget, Document, Ending, Planner, PlannerError, Reply, Request, TokenUsage};

/// A planner with two answers, which records what it is asked.
#[derive(Debug, Default)]
struct Script(Mutex<Vec<String>>);

impl Planner for Script {
    fn name(&self) -> String {
        "script".to_owned()
    }

    fn ask(&self, request: &Request<'_>) -> Result<Reply, PlannerError> {
        let mut asked = self.0.lock().unwrap();
        asked.push(request.as_text());
        let text = match asked.len() {
            1 => "{\"name\": \"p\", \"tasks\": [{\"id\": \"a\", \"call\": {\"lgo\": {\"message\": \"x\"}}}]}",
            _ => "{\"name\": \"p\", \"tasks\": [{\"id\": \"a\", \"call\": {\"log\": {\"message\": \"x\"}}}]}",
        };
        Ok(Reply {
            text: text.to_owned(),
            ending: Ending::Complete,
            usage: TokenUsage::default(),
            requests: 1,
        })
    }
}

#[tokio::test]
async fn a_host_brings_its_own_planner() {
    let root = tempfile::tempdir().unwrap();
    let plans = Taskpawl::builder(":memory:").root(root.path()).open().unwrap();
    let planner = Arc::new(Script::default());
    let document = Document { name: "spec".to_owned(), text: "say x".to_owned() };
    let proposal =
        plans.plan_goal("Say x", vec![document], planner.clone(), Budget::default()).await.unwrap();
    assert_eq!(proposal.turns, 2);
    let asked = planner.0.lock().unwrap().clone();
    assert!(asked[0].contains("Goal: Say x") && asked[0].contains("say x"), "{}", asked[0]);
    assert!(asked[1].contains("did you mean `log`?"), "{}", asked[1]);
    plans.apply_text(&proposal.plan.to_string(), "p").await.unwrap();
}
