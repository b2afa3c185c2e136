use super::bounds::{lower_bound, tight_bound};
use super::play::{first_come_makespan, run_makespan};
use super::shapes::Shape;
use crate::Random;

/// How many calls run at once in the study.
pub const JOBS: [usize; 4] = [2, 4, 8, 16];

/// How many graphs of each kind the study plays, and how wide they are.
pub const SEEDS: u64 = 4;
/// How wide the graphs of the study are: hundreds of tasks each.
pub const SCALE: usize = 3;

/// A graph with so many jobs, and how long it took.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// The kind of graph.
    pub shape: Shape,
    /// How many calls ran at once.
    pub jobs: usize,
    /// How many tasks there are.
    pub tasks: usize,
    /// The longest path, or the work shared by the jobs.
    pub bound: u64,
    /// A tighter bound.
    pub tight: u64,
    /// With the order of a run, by lengths that are right.
    pub known: u64,
    /// The longest way first, without a rehearsal.
    pub longest: u64,
    /// With the order of a run, by lengths that are wrong by about a fifth.
    pub estimated: u64,
    /// First come, first served.
    pub first_come: u64,
}

/// Figures of several cases, as ratios.
#[derive(Debug, Clone, Copy, Default)]
pub struct Summary {
    /// The mean.
    pub mean: f64,
    /// The largest.
    pub worst: f64,
}

impl Summary {
    /// Returns the mean and the largest of ratios.
    pub fn of(cases: &[Case], ratio: impl Fn(&Case) -> (u64, u64)) -> Self {
        let ratios = cases.iter().map(|case| {
            let (length, compared) = ratio(case);
            as_float(length) / as_float(compared)
        });
        let (mut sum, mut worst) = (0.0, 0.0_f64);
        for ratio in ratios {
            sum += ratio;
            worst = worst.max(ratio);
        }
        Self { mean: sum / as_float(cases.len() as u64), worst }
    }
}

#[expect(clippy::cast_precision_loss, reason = "lengths are far below 2^52 milliseconds")]
pub(super) fn as_float(number: u64) -> f64 {
    number as f64
}

/// Plays graphs of every shape with every number of jobs.
pub fn study() -> Vec<Case> {
    let mut cases = Vec::new();
    for shape in Shape::ALL {
        for seed in 0..SEEDS {
            let mut random = Random::new(seed * 31 + shape as u64);
            let instance = shape.draw(&mut random, SCALE);
            let estimates = instance.estimates(&mut random, 20);
            for jobs in JOBS {
                cases.push(Case {
                    shape,
                    jobs,
                    tasks: instance.len(),
                    bound: lower_bound(&instance, jobs),
                    tight: tight_bound(&instance, jobs),
                    known: run_makespan(&instance, jobs, instance.ranks(&instance.lengths, jobs)),
                    longest: run_makespan(&instance, jobs, instance.longest_ways()),
                    estimated: run_makespan(&instance, jobs, instance.ranks(&estimates, jobs)),
                    first_come: first_come_makespan(&instance, jobs),
                });
            }
        }
    }
    cases
}
