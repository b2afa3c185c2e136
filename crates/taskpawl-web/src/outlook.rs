//! Forecast and critical path, as the terminal shows them. Both simulate the whole plan, so the answer is kept until the plan has changed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use taskpawl::model::insight::ForecastOptions;
use taskpawl::model::value::{Period, TaskId};

use crate::answer::Problem;
use crate::page::Page;

/// An answer is used for so many times the time that it took, however often the plan changes: the page takes a small part of a core.
const REST: u32 = 20;

/// The future of the plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Outlook {
    pub(crate) revision: u64,
    /// The exit code of a run in which every call succeeds and every approval is given.
    pub(crate) exit: u8,
    /// Number of tasks that would start.
    pub(crate) starts: usize,
    /// The time that they take together, if any duration is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration: Option<Period>,
    /// Number of approvals that are needed.
    pub(crate) approvals: usize,
    /// Number of tasks that would fail.
    pub(crate) failures: usize,
    /// Number of tasks that would not finish.
    pub(crate) left: usize,
    /// The longest chain of unfinished tasks, in order.
    pub(crate) critical: Vec<TaskId>,
    /// The time of this chain; absent without any known duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) critical_length: Option<Period>,
}

impl Outlook {
    /// Returns whether a task is on the critical path.
    pub(crate) fn critical(&self) -> BTreeSet<&TaskId> {
        self.critical.iter().collect()
    }

    /// Describes it in a few words, such as `about 4 min left, 3 questions`.
    pub(crate) fn words(&self) -> String {
        let many = |count: usize, one: &str, more: &str| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            count => Some(format!("{count} {more}")),
        };
        let left = match (self.starts, self.duration) {
            (0, _) => Some("nothing can start".to_owned()),
            (_, Some(duration)) => Some(format!("about {} left", rounded(duration.0))),
            (starts, None) => many(starts, "task left", "tasks left"),
        };
        let parts = [
            left,
            many(self.approvals, "question", "questions"),
            many(self.failures, "would fail", "would fail"),
            many(self.left, "would not finish", "would not finish"),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Returns a length of time in one unit: more would be more exact than the forecast.
fn rounded(duration: Duration) -> String {
    match duration.as_secs() {
        0 => "1 s".to_owned(),
        seconds @ 1..90 => format!("{seconds} s"),
        seconds @ 90..5_400 => format!("{} min", (seconds + 30) / 60),
        seconds => format!("{} h", (seconds + 1_800) / 3_600),
    }
}

/// The last answer.
#[derive(Debug, Default)]
pub(crate) struct Outlooks(Mutex<Option<(Instant, Duration, Arc<Outlook>)>>);

impl Outlooks {
    /// Returns the outlook, at most a short time old. Only one request calculates; the others wait for its answer.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn get(&self, page: &Page) -> Result<Arc<Outlook>, Problem> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let revision = page.hub.board().revision();
        if let Some((at, took, outlook)) = &*last
            && (outlook.revision == revision || at.elapsed() < *took * REST)
        {
            return Ok(Arc::clone(outlook));
        }
        let begin = Instant::now();
        let outlook = Arc::new(page.known(calculated(page, revision))?);
        *last = Some((Instant::now(), begin.elapsed(), Arc::clone(&outlook)));
        Ok(outlook)
    }
}

fn calculated(page: &Page, revision: u64) -> Result<Outlook, taskpawl::Error> {
    let jobs = page.options.run.jobs();
    let options = ForecastOptions { jobs, means: page.options.means.clone(), ..ForecastOptions::default() };
    let forecast = page.reader.forecast(&options)?;
    let critical = page.reader.critical_path(&[], jobs, true)?;
    Ok(Outlook {
        revision,
        exit: forecast.exit,
        starts: forecast.waves.iter().map(|wave| wave.tasks.len()).sum(),
        duration: forecast.duration,
        approvals: forecast.approvals.len(),
        failures: forecast.failures.len(),
        left: forecast.left.len(),
        critical_length: critical.is_timed.then_some(critical.length),
        critical: critical.path.into_iter().map(|task| task.task).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outlook_is_a_few_words() {
        let of = |starts, seconds: Option<u64>, approvals| Outlook {
            revision: 1,
            exit: 0,
            starts,
            duration: seconds.map(|seconds| Period(Duration::from_secs(seconds))),
            approvals,
            failures: 0,
            left: 0,
            critical: Vec::new(),
            critical_length: None,
        };
        assert_eq!(of(9, Some(247), 3).words(), "about 4 min left, 3 questions");
        assert_eq!(of(1, None, 1).words(), "1 task left, 1 question");
        assert_eq!(of(0, None, 0).words(), "nothing can start");
        assert_eq!(
            Outlook { left: 2, ..of(5, Some(9_000), 0) }.words(),
            "about 3 h left, 2 would not finish"
        );
    }
}
