//! Chart of the figures of a group: a bar for each median, and a line from the smallest to the largest figure.

use std::fmt::Write as _;

use crate::group::Group;
use crate::sample::{Metric, Spread};
use crate::table::figure;

const WIDTH: f64 = 760.0;
const LABELS: f64 = 270.0;
const BARS: f64 = 330.0;
const LINE: f64 = 24.0;
const TOP: f64 = 44.0;

/// Returns a chart of a metric of a group with a logarithmic scale; `None` if fewer than two subjects have figures.
pub(crate) fn svg(group: &Group, metric: Metric) -> Option<String> {
    let bars: Vec<(&str, Spread)> = group
        .subjects
        .iter()
        .filter_map(|subject| Some((subject.name.as_str(), subject.spread(metric)?)))
        .filter(|(_, spread)| spread.least > 0.0)
        .collect();
    if bars.len() < 2 {
        return None;
    }
    let scale = Scale::of(bars.iter().map(|(_, spread)| spread));
    let height = TOP + LINE * bars.len() as f64 + 12.0;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"10\" y=\"18\" font-size=\"14\" font-weight=\"bold\">{}</text>\n\
         <text x=\"10\" y=\"34\" fill=\"#666\">{} a {}, logarithmic; bar: median, line: least to most</text>\n",
        escaped(&group.title),
        metric.title(),
        group.unit,
    );
    for (line, (name, spread)) in bars.iter().enumerate() {
        let _ = write!(text, "{}", bar(name, *spread, TOP + LINE * line as f64, scale, metric));
    }
    text.push_str("</svg>\n");
    Some(text)
}

fn bar(name: &str, spread: Spread, top: f64, scale: Scale, metric: Metric) -> String {
    let (baseline, middle) = (top + 15.0, top + 11.0);
    let [least, median, most] = [spread.least, spread.median, spread.most].map(|it| scale.place(it));
    let colour = if name.starts_with("taskpawl") { "#2b6cb0" } else { "#a0aec0" };
    format!(
        "<text x=\"{:.0}\" y=\"{baseline:.0}\" text-anchor=\"end\">{}</text>\n\
         <rect x=\"{LABELS}\" y=\"{:.0}\" width=\"{:.1}\" height=\"14\" fill=\"{colour}\"/>\n\
         <line x1=\"{least:.1}\" y1=\"{middle:.0}\" x2=\"{most:.1}\" y2=\"{middle:.0}\" stroke=\"#1a202c\" stroke-width=\"2\"/>\n\
         <text x=\"{:.1}\" y=\"{baseline:.0}\">{}</text>\n",
        LABELS - 8.0,
        escaped(name),
        top + 4.0,
        median - LABELS,
        most.max(median) + 8.0,
        figure(spread.median, metric),
    )
}

/// Logarithmic scale from the power of ten below the smallest figure to the largest figure.
#[derive(Debug, Clone, Copy)]
struct Scale {
    first: f64,
    decades: f64,
}

impl Scale {
    fn of<'a>(spreads: impl Iterator<Item = &'a Spread> + Clone) -> Self {
        let least = spreads.clone().map(|spread| spread.least).fold(f64::INFINITY, f64::min);
        let most = spreads.map(|spread| spread.most).fold(0.0, f64::max);
        let first = least.log10().floor();
        // A figure at a power of ten would have an empty bar.
        let first = if least.log10() - first < 0.1 { first - 0.5 } else { first };
        Self { first, decades: (most.log10() - first).max(0.1) }
    }

    fn place(self, figure: f64) -> f64 {
        LABELS + BARS * (figure.log10() - self.first) / self.decades
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::svg;
    use crate::group::{Group, Subject};
    use crate::sample::{Metric, Sample};

    fn group(figures: &[f64]) -> Group {
        let subject = |figure: &f64| {
            let figure = *figure;
            Subject::new(format!("a<{figure}"), 1, move || Ok(Sample::default().with(Metric::Cpu, figure)))
        };
        let subjects = figures.iter().map(subject).collect();
        let mut group = Group {
            title: "t".to_owned(),
            unit: "task".into(),
            subjects,
            goals: Vec::new(),
            is_fixed: false,
        };
        group.take(3).unwrap();
        group
    }

    #[test]
    fn longer_bars_are_larger_figures() {
        let svg = svg(&group(&[2.0, 200.0, 20.0]), Metric::Cpu).unwrap();
        let widths: Vec<f64> = svg
            .lines()
            .filter_map(|line| line.split_once("width=\"")?.1.split_once("\" height=\"14\"")?.0.parse().ok())
            .collect();
        assert_eq!(widths.len(), 3);
        assert!(widths[0] > 0.0 && widths[0] < widths[2] && widths[2] < widths[1]);
        assert!(svg.contains("a&lt;2"));
    }

    #[test]
    fn a_single_figure_has_no_chart() {
        assert_eq!(svg(&group(&[2.0]), Metric::Cpu), None);
        assert_eq!(svg(&group(&[2.0, 3.0]), Metric::Syncs), None);
    }
}
