use std::fmt::Write;

use crate::shapes::Shape;
use crate::study::{Case, JOBS, as_float};

/// Size of the plot, which has a column of dots for each shape and number of jobs. Each dot is a graph; 1 is the lower
/// bound.
const WIDTH: u64 = 1_000;
const HEIGHT: u64 = 420;
const LEFT: u64 = 60;
const TOP: u64 = 50;
const BOTTOM: u64 = 340;

/// Returns an SVG that compares both orders with the lower bounds.
pub(crate) fn plot(cases: &[Case]) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"20\" font-size=\"15\">Makespan, as a multiple of max(critical path, work / jobs)</text>\n"
    );
    let highest = cases.iter().map(|case| ratio(case.first_come, case).max(ratio(case.known, case)));
    let highest = highest.fold(1.1, f64::max);
    let y = |ratio: f64| as_float(BOTTOM) - (ratio - 1.0) / (highest - 1.0) * as_float(BOTTOM - TOP);
    axis(&mut svg, highest, &y);
    legend(&mut svg);
    let column = as_float(WIDTH - LEFT - 20) / as_float((Shape::ALL.len() * JOBS.len()) as u64);
    for (place, shape) in Shape::ALL.iter().enumerate() {
        for (number, jobs) in JOBS.iter().enumerate() {
            let at = as_float((place * JOBS.len() + number) as u64);
            let x = as_float(LEFT) + (at + 0.5) * column;
            for case in cases.iter().filter(|case| case.shape == *shape && case.jobs == *jobs) {
                dot(&mut svg, x - 3.0, y(ratio(case.first_come, case)), "#d95f02");
                dot(&mut svg, x + 3.0, y(ratio(case.known, case)), "#1b6ca8");
                dash(&mut svg, x, y(ratio(case.tight, case)));
            }
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\" font-size=\"9\">{jobs}</text>",
                BOTTOM + 16
            );
        }
        let middle = as_float(LEFT) + (as_float((place * JOBS.len()) as u64) + 2.0) * column;
        let _ = writeln!(
            svg,
            "<text x=\"{middle:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            BOTTOM + 36,
            shape.name()
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{}\" font-size=\"10\">jobs above the kinds of graphs; each dot is a graph</text>",
        BOTTOM + 60
    );
    svg.push_str("</svg>\n");
    svg
}

fn ratio(length: u64, case: &Case) -> f64 {
    as_float(length) / as_float(case.bound)
}

fn dot(svg: &mut String, x: f64, y: f64, color: &str) {
    let _ = writeln!(
        svg,
        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.2\" fill=\"{color}\" fill-opacity=\"0.6\"/>"
    );
}

/// Draws a bound across both columns of dots.
fn dash(svg: &mut String, x: f64, y: f64) {
    let (from, to) = (x - 7.0, x + 7.0);
    let _ =
        writeln!(svg, "<line x1=\"{from:.1}\" y1=\"{y:.1}\" x2=\"{to:.1}\" y2=\"{y:.1}\" stroke=\"#333\"/>");
}

fn axis(svg: &mut String, highest: f64, y: &dyn Fn(f64) -> f64) {
    let mut mark = 1.0;
    while mark <= highest {
        let at = y(mark);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>",
            WIDTH - 20
        );
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{mark:.1}</text>",
            LEFT - 8,
            at + 4.0
        );
        mark += 0.1;
    }
}

fn legend(svg: &mut String) {
    dash(svg, 396.0, 36.0);
    let _ = writeln!(svg, "<text x=\"408\" y=\"40\">tight lower bound</text>");
    for (x, color, words) in
        [(560.0, "#1b6ca8", "a run, lengths known"), (780.0, "#d95f02", "first come, first served")]
    {
        dot(svg, x, 36.0, color);
        let _ = writeln!(svg, "<text x=\"{}\" y=\"40\">{words}</text>", x + 10.0);
    }
}
