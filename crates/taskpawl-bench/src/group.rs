//! Groups of subjects that are measured in turns, and goals about their ratios.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::sample::{Metric, Sample, Spread};

/// Takes one measurement of a subject. Its figures are totals.
pub(crate) type Measure = Box<dyn FnMut() -> Result<Sample, Failure>>;

/// Something that is measured, together with the results.
#[derive(Serialize, Deserialize)]
pub(crate) struct Subject {
    pub(crate) name: String,
    /// Number of tasks, programs or commands per measurement. Figures are divided by it.
    pub(crate) count: usize,
    #[serde(skip)]
    measure: Option<Measure>,
    /// Reason, if the subject cannot be measured on this machine.
    missing: Option<String>,
    /// Figures per task, one sample for each round.
    #[serde(rename = "rounds")]
    pub(crate) samples: Vec<Sample>,
}

impl Subject {
    pub(crate) fn new(
        name: impl Into<String>,
        count: usize,
        measure: impl FnMut() -> Result<Sample, Failure> + 'static,
    ) -> Self {
        let measure: Measure = Box::new(measure);
        Self { name: name.into(), count, measure: Some(measure), missing: None, samples: Vec::new() }
    }

    /// Returns a subject that cannot be measured on this machine.
    pub(crate) fn missing(name: impl Into<String>, why: impl Into<String>) -> Self {
        let missing = Some(why.into());
        Self { name: name.into(), count: 0, measure: None, missing, samples: Vec::new() }
    }

    /// Returns the reason if the subject cannot be measured on this machine.
    pub(crate) fn why_missing(&self) -> Option<&str> {
        self.missing.as_deref()
    }

    pub(crate) fn spread(&self, metric: Metric) -> Option<Spread> {
        Spread::of(self.samples.iter().filter_map(|sample| sample.get(metric)))
    }

    fn take(&mut self) -> Result<(), Failure> {
        let Some(measure) = &mut self.measure else { return Ok(()) };
        let sample = measure().map_err(|error| format!("{}: {error}", self.name))?;
        self.samples.push(sample.each(self.count));
        Ok(())
    }
}

/// Reference of a goal.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Beside {
    /// Another subject of the group, measured in the same round.
    Subject(String),
    /// A constant.
    Figure(f64),
}

/// Kind of comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Reading {
    /// Subject divided by reference; the limit is a maximum.
    Cost,
    /// Reference divided by subject; the limit is a minimum.
    TimesBetter,
    /// Like `TimesBetter`, for durations, which turns the quotient into a ratio of rates.
    Rate,
}

/// A goal for a metric of a subject, relative to a reference.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Goal {
    pub(crate) of: String,
    pub(crate) metric: Metric,
    pub(crate) beside: Beside,
    pub(crate) reading: Reading,
    pub(crate) limit: f64,
    pub(crate) stretch: Option<f64>,
}

impl Goal {
    /// Returns a goal for a subject to consume at most `limit` times as much as the reference.
    pub(crate) fn at_most(of: &str, limit: f64, beside: &str) -> Self {
        Self {
            of: of.to_owned(),
            metric: Metric::Cpu,
            beside: Beside::Subject(beside.to_owned()),
            reading: Reading::Cost,
            limit,
            stretch: None,
        }
    }

    /// Returns a goal for the reference to consume at least `limit` times as much as the subject.
    pub(crate) fn times_better(of: &str, limit: f64, than: &str) -> Self {
        Self { reading: Reading::TimesBetter, ..Self::at_most(of, limit, than) }
    }

    /// Returns a goal for a subject to be at least `limit` times as fast as the reference.
    pub(crate) fn rate(of: &str, limit: f64, beside: &str) -> Self {
        Self { reading: Reading::Rate, metric: Metric::Wall, ..Self::at_most(of, limit, beside) }
    }

    /// Returns a goal for the figure of a subject to be at most `limit`.
    pub(crate) fn figure_at_most(of: &str, metric: Metric, limit: f64) -> Self {
        Self { metric, beside: Beside::Figure(1.0), ..Self::at_most(of, limit, "") }
    }

    pub(crate) fn in_metric(self, metric: Metric) -> Self {
        Self { metric, ..self }
    }

    pub(crate) fn stretch(self, limit: f64) -> Self {
        Self { stretch: Some(limit), ..self }
    }

    /// Returns the statistics of the comparison. Each round yields one ratio.
    pub(crate) fn found(&self, group: &Group) -> Option<Spread> {
        let of = group.subject(&self.of)?;
        let others: Vec<f64> = match &self.beside {
            Beside::Figure(figure) => vec![*figure; of.samples.len()],
            Beside::Subject(name) => {
                group.subject(name)?.samples.iter().filter_map(|sample| sample.get(self.metric)).collect()
            }
        };
        let mine = of.samples.iter().filter_map(|sample| sample.get(self.metric));
        let pairs = mine.zip(others);
        Spread::of(pairs.map(|(mine, other)| match self.reading {
            Reading::Cost => mine / other,
            Reading::TimesBetter | Reading::Rate => other / mine,
        }))
    }

    /// Returns whether a figure meets the goal.
    pub(crate) fn is_met_by(&self, figure: f64) -> bool {
        self.is_within(figure, self.limit)
    }

    pub(crate) fn is_stretch_met_by(&self, figure: f64) -> bool {
        self.stretch.is_some_and(|stretch| self.is_within(figure, stretch))
    }

    fn is_within(&self, figure: f64, limit: f64) -> bool {
        match self.reading {
            Reading::Cost => figure <= limit,
            Reading::TimesBetter | Reading::Rate => figure >= limit,
        }
    }
}

/// Subjects that take turns.
#[derive(Serialize, Deserialize)]
pub(crate) struct Group {
    /// Title for headings.
    pub(crate) title: String,
    /// Unit of the figures, such as `task`.
    pub(crate) unit: Cow<'static, str>,
    pub(crate) subjects: Vec<Subject>,
    pub(crate) goals: Vec<Goal>,
    /// True if all rounds have the same result, so that one is enough.
    #[serde(skip)]
    pub(crate) is_fixed: bool,
}

impl Group {
    pub(crate) fn subject(&self, name: &str) -> Option<&Subject> {
        self.subjects.iter().find(|subject| subject.name == name)
    }

    /// Takes `rounds` measurements of each subject in the order A B C A B C …. Other load on the machine then affects all
    /// of them alike.
    pub(crate) fn take(&mut self, rounds: usize) -> Result<(), Failure> {
        for _ in 0..if self.is_fixed { 1 } else { rounds } {
            for subject in &mut self.subjects {
                subject.take()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Goal, Group, Subject};
    use crate::sample::{Metric, Sample};

    fn group(mine: [f64; 3], other: [f64; 3]) -> Group {
        let subject = |name: &str, figures: [f64; 3]| {
            let mut figures = figures.into_iter();
            Subject::new(name, 10, move || {
                Ok(Sample::default().with(Metric::Cpu, figures.next().unwrap_or_default()))
            })
        };
        let subjects = vec![subject("mine", mine), subject("other", other)];
        let mut group =
            Group { title: String::new(), unit: "task".into(), subjects, goals: Vec::new(), is_fixed: false };
        group.take(3).unwrap();
        group
    }

    #[test]
    fn figures_are_compared_round_by_round() {
        let group = group([10.0, 40.0, 30.0], [10.0, 20.0, 10.0]);
        let found = Goal::at_most("mine", 2.0, "other").found(&group).unwrap();
        assert_eq!((found.least, found.median, found.most), (1.0, 2.0, 3.0));
        let better = Goal::times_better("other", 2.0, "mine").found(&group).unwrap();
        assert_eq!((better.least, better.median, better.most), (1.0, 2.0, 3.0));
    }

    #[test]
    fn goals_are_met_by_figures_within_the_limit() {
        let most = Goal::at_most("mine", 2.0, "other").stretch(1.0);
        assert!(most.is_met_by(2.0) && !most.is_met_by(2.01));
        assert!(most.is_stretch_met_by(1.0) && !most.is_stretch_met_by(1.5));
        let least = Goal::times_better("mine", 3.0, "other");
        assert!(least.is_met_by(3.0) && !least.is_met_by(2.9));
    }

    #[test]
    fn a_missing_subject_has_no_comparison() {
        let mut group = group([1.0; 3], [1.0; 3]);
        group.subjects.push(Subject::missing("peer", "not installed"));
        assert_eq!(Goal::at_most("mine", 1.0, "peer").found(&group), None);
    }
}
