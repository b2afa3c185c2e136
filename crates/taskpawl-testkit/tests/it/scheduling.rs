//! The order in which a run takes what is ready: how far makespans are from what is possible, and that it is never worse than
//! first come, first served.

use std::path::Path;

use taskpawl_testkit::Random;
use taskpawl_testkit::scheduling::{
    Case, Instance, Shape, Summary, exact_makespan, lower_bound, plot, run_makespan, study,
};

/// Between two wide parts of a mosaic lies a model of its background that two tasks make one after the other: neither the longest
/// path nor the work says how long the parts take beside it, so that the plain bound is out of reach.
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
            let better = Summary::of(&of_shape, |case| (length(case), case.windowed));
            let first_come = Summary::of(&of_shape, |case| (length(case), case.first_come));
            assert!(plain.worst <= 1.25 || shape == OUT_OF_REACH, "{shape:?}, {how}: {plain:?}");
            assert!(better.worst <= 1.25, "{shape:?}, {how}, better bound: {better:?}");
            assert!(first_come.worst <= 1.02, "{shape:?}, {how}, first come: {first_come:?}");
        }
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scheduling.svg");
    let drawn = plot(&cases);
    let kept = std::fs::read_to_string(file).unwrap();
    assert!(
        kept == drawn,
        "draw it anew: `cargo run -p taskpawl-testkit --example scheduling > docs/scheduling.svg`"
    );
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
