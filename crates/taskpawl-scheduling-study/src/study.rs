use crate::bounds::{lower_bound, tight_bound};
use crate::play::{first_come_makespan, run_makespan};
use crate::shapes::Shape;
use taskpawl_testkit::Random;

/// Numbers of parallel jobs in the study.
pub(crate) const JOBS: [usize; 4] = [2, 4, 8, 16];

/// Number of graphs of each kind.
pub(crate) const SEEDS: u64 = 4;
/// Width of the graphs: hundreds of tasks each.
pub(crate) const SCALE: usize = 3;

/// Makespans of one graph with one number of jobs, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    /// Kind of the graph.
    pub(crate) shape: Shape,
    /// Number of jobs.
    pub(crate) jobs: usize,
    /// Result of [`lower_bound`].
    pub(crate) bound: u64,
    /// Result of [`tight_bound`].
    pub(crate) tight: u64,
    /// Makespan of a run that knows the lengths.
    pub(crate) known: u64,
    /// Makespan with the longest path first, without a simulated schedule.
    pub(crate) longest: u64,
    /// Makespan of a run whose estimates are wrong by about 20 %.
    pub(crate) estimated: u64,
    /// Makespan of first come, first served.
    pub(crate) first_come: u64,
}

/// Statistics of ratios over several cases.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Summary {
    /// Mean ratio.
    pub(crate) mean: f64,
    /// Largest ratio.
    pub(crate) worst: f64,
}

impl Summary {
    /// Returns the statistics of the quotients of two values.
    pub(crate) fn of(cases: &[Case], ratio: impl Fn(&Case) -> (u64, u64)) -> Self {
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

/// Simulates graphs of every kind with every number of jobs.
pub(crate) fn study() -> Vec<Case> {
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
