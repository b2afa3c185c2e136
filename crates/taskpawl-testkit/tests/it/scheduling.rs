//! The order in which a run takes what is ready: how far makespans are from what is possible, and that it is never worse than
//! first come, first served.

use std::path::Path;

use taskpawl_testkit::Random;
use taskpawl_testkit::scheduling::{
    Case, Instance, Shape, Summary, exact_makespan, lower_bound, plot, run_makespan, study, tight_bound,
};

/// Between two wide parts of a mosaic lies a model of its background that two tasks make one after the other, with nothing beside
/// them: neither the longest path nor the work says so, and 25 % of the plain bound are out of reach for every order. The proof is
/// the [tight bound](tight_bound), which adds up the work before, the model, and the work behind.
const OUT_OF_REACH: Shape = Shape::Montage;

#[test]
fn makespans_are_near_their_lower_bounds_and_no_worse_than_first_come_first_served() {
    let cases = study();
    let plain = Summary::of(&cases, |case| (case.known, case.bound));
    assert!(plain.mean <= 1.10, "mean of the bound: {plain:?}");
    for shape in Shape::ALL {
        let of_shape: Vec<Case> = cases.iter().filter(|case| case.shape == shape).copied().collect();
        for (how, length) in
            [("known", (|case| case.known) as fn(&Case) -> u64), ("estimated", |case| case.estimated)]
        {
            let plain = Summary::of(&of_shape, |case| (length(case), case.bound));
            let better = Summary::of(&of_shape, |case| (length(case), case.tight));
            let first_come = Summary::of(&of_shape, |case| (length(case), case.first_come));
            assert!(plain.worst <= 1.25 || shape == OUT_OF_REACH, "{shape:?}, {how}: {plain:?}");
            assert!(better.worst <= 1.15, "{shape:?}, {how}, tight bound: {better:?}");
            assert!(first_come.worst <= 1.02, "{shape:?}, {how}, first come: {first_come:?}");
        }
    }
    let (missed, of_all) = (missed(&cases), cases.iter().filter(|case| case.shape == OUT_OF_REACH).count());
    let proven = missed.iter().filter(|case| 4 * case.tight > 5 * case.bound).count();
    assert_eq!((missed.len(), proven, of_all), (6, 2, 16), "{missed:#?}");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scheduling.svg");
    let drawn = plot(&cases);
    let kept = std::fs::read_to_string(file).unwrap();
    assert!(
        kept == drawn,
        "draw it anew: `cargo run -p taskpawl-testkit --example scheduling > docs/scheduling.svg`"
    );
}

/// Returns the cases that take more than a quarter longer than the plain bound.
fn missed(cases: &[Case]) -> Vec<Case> {
    cases.iter().filter(|case| 4 * case.known > 5 * case.bound).copied().collect()
}

#[test]
fn bounds_are_none_that_an_order_beats() {
    let mut random = Random::new(8);
    let mut reached = 0;
    for _ in 0..300 {
        let mut graph = Instance::default();
        for task in 0..7 {
            let needs: Vec<usize> = (0..task).filter(|_| random.chance(35)).collect();
            graph.add(1 + random.below_u64(9), &needs);
        }
        for jobs in [1, 2, 3] {
            let (best, tight) = (exact_makespan(&graph, jobs), tight_bound(&graph, jobs));
            assert!(best >= tight && tight >= lower_bound(&graph, jobs), "{best} {tight}: {graph:?}");
            reached += u32::from(best == tight);
        }
    }
    assert!(reached > 700, "only {reached} of 900 bounds are tight");
}

#[test]
fn on_small_graphs_the_order_is_near_the_best_there_is() {
    let mut random = Random::new(7);
    let (mut sum, mut worst, mut count) = (0, 0, 0);
    for _ in 0..60 {
        let mut graph = Instance::default();
        for task in 0..8 {
            let needs: Vec<usize> = (0..task).filter(|_| random.chance(25)).collect();
            graph.add(1 + random.below_u64(9), &needs);
        }
        for jobs in [2, 3] {
            let best = exact_makespan(&graph, jobs);
            assert!(best >= lower_bound(&graph, jobs));
            let length = run_makespan(&graph, jobs, graph.ranks(&graph.lengths));
            let percent = 100 * length / best;
            (sum, worst, count) = (sum + percent, worst.max(percent), count + 1);
        }
    }
    assert!(sum / count <= 105 && worst <= 130, "mean {} %, worst {worst} %", sum / count);
}
