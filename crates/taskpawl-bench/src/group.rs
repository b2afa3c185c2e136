//! Things that are measured in turns, and what is expected of how they compare.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::sample::{Metric, Sample, Spread};

/// How one measurement of a subject is taken. Its figures are those of all that it counts.
pub(crate) type Measure = Box<dyn FnMut() -> Result<Sample, Failure>>;

/// One thing that is measured, or was.
#[derive(Serialize, Deserialize)]
pub(crate) struct Subject {
    pub(crate) name: String,
    /// How many tasks (programs, commands) each measurement consists of.
    pub(crate) count: usize,
    #[serde(skip)]
    measure: Option<Measure>,
    /// Why there are no figures, if it cannot be measured here.
    missing: Option<String>,
    /// The figures of a task, one of each round.
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

    /// Returns one that cannot be measured here.
    pub(crate) fn missing(name: impl Into<String>, why: impl Into<String>) -> Self {
        let missing = Some(why.into());
        Self { name: name.into(), count: 0, measure: None, missing, samples: Vec::new() }
    }

    /// Returns why there are no figures, if it cannot be measured here.
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

/// What a subject is held against.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Beside {
    /// Another subject of the group, measured in the same round.
    Subject(String),
    /// A figure.
    Figure(f64),
}

/// How two figures are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Reading {
    /// That of the subject divided by the other: at most the limit.
    Cost,
    /// The other divided by that of the subject: at least the limit.
    TimesBetter,
    /// The same, where the figures are times of as many tasks.
    Rate,
}

/// What is expected of a metric of a subject, beside what it is held against.
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
    /// Returns one that a subject meets if it takes at most `limit` times what the other takes.
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

    /// Returns one that a subject meets if the other takes at least `limit` times what it takes.
    pub(crate) fn times_better(of: &str, limit: f64, than: &str) -> Self {
        Self { reading: Reading::TimesBetter, ..Self::at_most(of, limit, than) }
    }

    /// Returns one that a subject meets if it gets at least `limit` times as much done in the same time as the other.
    pub(crate) fn rate(of: &str, limit: f64, beside: &str) -> Self {
        Self { reading: Reading::Rate, metric: Metric::Wall, ..Self::at_most(of, limit, beside) }
    }

    /// Returns one that a subject meets if its figure is at most `limit`.
    pub(crate) fn figure_at_most(of: &str, metric: Metric, limit: f64) -> Self {
        Self { metric, beside: Beside::Figure(1.0), ..Self::at_most(of, limit, "") }
    }

    pub(crate) fn in_metric(self, metric: Metric) -> Self {
        Self { metric, ..self }
    }

    pub(crate) fn stretch(self, limit: f64) -> Self {
        Self { stretch: Some(limit), ..self }
    }

    /// Returns what is held against the limit: of each round one figure.
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

    /// Returns whether a figure is on the right side of the limit.
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
    /// As it stands in the heading.
    pub(crate) title: String,
    /// What the figures are of.
    pub(crate) unit: Cow<'static, str>,
    pub(crate) subjects: Vec<Subject>,
    pub(crate) goals: Vec<Goal>,
    /// Whether the figures are the same each time, so that one round is enough.
    #[serde(skip)]
    pub(crate) is_fixed: bool,
}

impl Group {
    pub(crate) fn subject(&self, name: &str) -> Option<&Subject> {
        self.subjects.iter().find(|subject| subject.name == name)
    }

    /// Takes `rounds` measurements of each subject: A B C A B C and so on, so that what else the machine does falls on all alike.
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
    fn a_goal_is_met_by_figures_alone() {
        let most = Goal::at_most("mine", 2.0, "other").stretch(1.0);
        assert!(most.is_met_by(2.0) && !most.is_met_by(2.01));
        assert!(most.is_stretch_met_by(1.0) && !most.is_stretch_met_by(1.5));
        let least = Goal::times_better("mine", 3.0, "other");
        assert!(least.is_met_by(3.0) && !least.is_met_by(2.9));
    }

    #[test]
    fn nothing_is_found_of_what_was_not_measured() {
        let mut group = group([1.0; 3], [1.0; 3]);
        group.subjects.push(Subject::missing("peer", "not installed"));
        assert_eq!(Goal::at_most("mine", 1.0, "peer").found(&group), None);
    }
}
