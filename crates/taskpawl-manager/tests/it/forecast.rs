//! Forecasts: known expressions are evaluated, unknown ones are reported as open, and every failure has a
//! reason.

use taskpawl_model::insight::{Forecast, ForecastOptions};
use taskpawl_model::rules::Means;

use crate::support::Fixture;

fn desk_of(plan: &str) -> Fixture {
    let fixture = Fixture::new();
    fixture.apply(plan);
    fixture
}

fn options(what_if: &[&str]) -> ForecastOptions {
    let what_if = what_if.iter().map(|text| text.parse().unwrap()).collect();
    ForecastOptions { jobs: 2, what_if, ..ForecastOptions::default() }
}

fn failures(forecast: &Forecast) -> Vec<String> {
    forecast.failures.iter().map(|failed| format!("{}: {}", failed.task, failed.reason)).collect()
}

#[test]
fn an_unknown_list_is_open_with_and_without_braces() {
    for list in ["tasks.l.result.json", "'${{ tasks.l.result.json }}'", "['${{ tasks.l.result.json }}']"] {
        let fixture = desk_of(&format!(
            "tasks: [{{id: l, run: echo}}, {{id: f, needs: l, forEach: {{in: {list}}}, run: 'echo'}}]"
        ));
        let forecast = fixture.manager.forecast(&options(&[])).unwrap();
        assert_eq!((forecast.exit, forecast.failures.len()), (0, 0), "{list}: {forecast:#?}");
        assert_eq!((forecast.open[0].task.as_str(), forecast.open[0].field), ("f", "forEach"), "{list}");
    }
}

#[test]
fn every_predicted_failure_has_a_reason() {
    let fixture = desk_of(
        "tasks: [{id: a, run: echo}, {id: b, needs: e, forEach: {in: \"${{ 'text' }}\"}, run: echo}, {id: c},
          {id: d, needs: c, run: echo}, {id: e, run: echo}]",
    );
    fixture.fail("c");
    let forecast = fixture.manager.forecast(&options(&["fail:a"])).unwrap();
    assert_eq!(forecast.exit, 1);
    assert_eq!(
        failures(&forecast),
        [
            "a: it is assumed to fail",
            "b: `forEach`: expected a list, found text; `| fromjson` reads a list from it",
            "c: reported as failed",
        ]
    );
}

#[test]
fn contradicting_assumptions_about_a_task_are_refused() {
    let fixture = Fixture::with(&["build calls=1"]);
    let refused = fixture.refuse(|manager| manager.forecast(&options(&["done:build", "fail:bui"])));
    assert!(refused.contains("`done:build` and `fail:bui` contradict each other"), "{refused}");
    assert!(fixture.manager.forecast(&options(&["done:build", "done:bui"])).is_ok());
}

#[test]
fn missing_tools_and_resources_make_the_predicted_run_fail() {
    let fixture = Fixture::new();
    fixture.apply("tasks: [{id: a, resources: {lock: 3}, run: echo}, {id: f, resources: {lock: 2}, forEach: {in: [1]}, run: echo}]");
    let told = |lock: Option<u32>| {
        let means = Means {
            capacities: lock.map(|lock| ("lock".to_owned(), lock)).into_iter().collect(),
            ..Means::default()
        };
        let forecast = fixture.manager.forecast(&ForecastOptions { means, ..options(&[]) }).unwrap();
        (forecast.exit, forecast.left.first().map(|left| left.reason.clone()))
    };
    assert_eq!(told(None), (4, Some("it needs 3 of resource `lock`, which has 1".to_owned())));
    assert_eq!(told(Some(2)), (4, Some("it needs 3 of resource `lock`, which has 2".to_owned())));
    assert_eq!(told(Some(3)), (0, None));
}
