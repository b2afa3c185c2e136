//! Tests of values from agents in plans of people: the command line names them, and explains how to trust or
//! avoid them.

use crate::harness::{Cli, unhashed};

const PLAN: &str = "name: p
tasks:
- {id: review}
- {id: deploy, needs: review, when: tasks.review.result.ok, run: 'echo ${{ tasks.review.result.env }}'}
- {id: trusting, needs: review, trustInputs: review, run: 'printf x > ${{ tasks.review.result.env }}'}
- {id: report, needs: review, run: 'echo ${{ tasks.review.result.env }}'}
- {id: gate, assignee: person}
- {id: last, needs: gate, when: tasks.gate.status == 'done', run: echo last}
";

#[test]
fn the_value_that_decides_is_named_everywhere() {
    let cli = Cli::new().with_programs();
    cli.file("plan.yaml", PLAN);
    insta::assert_snapshot!(unhashed(&cli.session(&[
        &["plan", "check", "plan.yaml"],
        &["apply", "plan.yaml", "--quiet"],
        &["policy", "check", "--task", "deploy"],
        &["done", "review", "--result", "{\"ok\": true, \"env\": \"out\"}", "--actor", "bot"],
        &["policy", "check", "--task", "deploy"],
        &["policy", "check", "--task", "trusting", "--json"],
        &["policy", "check", "--task", "nothing"],
        &["run-all-ready", "--quiet"],
        &["show", "trusting"],
        &["done", "gate", "--actor", "bot"],
        &["claim", "gate"],
        &["skip", "gate"],
        &["update", "gate", "--unset", "assignee"],
    ])));
}
