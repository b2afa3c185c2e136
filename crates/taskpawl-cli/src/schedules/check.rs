//! Checks of the field `schedule`, which need a calendar. The model has none.

use taskpawl::model::advice::Hint;
use taskpawl::model::plan::{Plan, PlanSchedule};
use taskpawl_schedule::CalendarError;

use super::Times;
use crate::error::{CliError, Problem};

/// Returns the fault of the schedule of a plan, with its position.
pub(crate) fn fault(plan: &Plan, file: &str) -> Option<Problem> {
    let schedule = plan.schedule.as_ref()?;
    let error = Times::of(schedule).err()?;
    Some(problem(schedule, file, &error))
}

fn problem(schedule: &PlanSchedule, file: &str, error: &CalendarError) -> Problem {
    let is_zone = matches!(error, CalendarError::Zone { .. });
    let (at, path) =
        if is_zone { (schedule.zone_at, "schedule.timezone") } else { (schedule.at, "schedule.cron") };
    let problem = Problem::at(Some(file), at, path.to_owned(), error.to_string());
    Problem { hint: Some(Hint::new(error.remedy())), ..problem }
}

/// Refuses a plan whose schedule is invalid.
pub(crate) fn refuse(plan: &Plan, file: &str) -> Result<(), CliError> {
    fault(plan, file).map_or(Ok(()), |problem| Err(CliError::Schedule { problems: vec![problem] }))
}
