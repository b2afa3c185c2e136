//! Writes the plot of the scheduling study to standard output and its figures to standard error: `cargo run -p
//! taskpawl-testkit --example scheduling > docs/scheduling.svg`.

use std::io::Write;

use taskpawl_testkit::scheduling::{Case, Shape, Summary, plot, study};

fn main() -> std::io::Result<()> {
    let cases = study();
    let mut figures = std::io::stderr().lock();
    for shape in Shape::ALL {
        let of_shape: Vec<Case> = cases.iter().filter(|case| case.shape == shape).copied().collect();
        line(&mut figures, shape.name(), &of_shape)?;
    }
    line(&mut figures, "all", &cases)?;
    std::io::stdout().lock().write_all(plot(&cases).as_bytes())
}

fn line(out: &mut impl Write, name: &str, cases: &[Case]) -> std::io::Result<()> {
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
