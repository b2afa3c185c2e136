//! Quality of the order in which a run starts ready tasks: makespans in simulated time, compared with lower bounds and
//! with first come, first served.
//!
//! The runs use the real schedule, [`schedule::step`](taskpawl_model::run::schedule::step). The store is replaced by one
//! that answers immediately.

mod bounds;
#[cfg(test)]
mod exact;
mod instance;
mod play;
mod plot;
mod shapes;
mod study;
#[cfg(test)]
mod tests;

use std::io::Write;

use plot::plot;
use shapes::Shape;
use study::{Case, Summary, study};

/// Writes the figures of each shape of graph to standard error, and the plot to standard output.
fn main() -> std::io::Result<()> {
    let cases = study();
    let mut figures = std::io::stderr().lock();
    for shape in Shape::ALL {
        let of_shape: Vec<Case> = cases.iter().filter(|case| case.shape == shape).copied().collect();
        write_line(&mut figures, shape.name(), &of_shape)?;
    }
    write_line(&mut figures, "all", &cases)?;
    std::io::stdout().lock().write_all(plot(&cases).as_bytes())
}

fn write_line(out: &mut impl Write, name: &str, cases: &[Case]) -> std::io::Result<()> {
    let figures = [
        ("bound", Summary::of(cases, |case| (case.known, case.bound))),
        ("without rehearsal", Summary::of(cases, |case| (case.longest, case.bound))),
        ("tight bound", Summary::of(cases, |case| (case.known, case.tight))),
        ("first come", Summary::of(cases, |case| (case.known, case.first_come))),
        ("estimated: bound", Summary::of(cases, |case| (case.estimated, case.bound))),
        ("first come", Summary::of(cases, |case| (case.estimated, case.first_come))),
    ];
    write!(out, "{name:14}")?;
    for (label, summary) in figures {
        write!(out, "  {label} {:.3} ({:.3})", summary.mean, summary.worst)?;
    }
    writeln!(out)
}
