//! Output files: a page with all tables, the figures as JSON, and the charts.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::group::Group;
use crate::sample::Metric;
use crate::{Failure, machine, plot, table};

/// Path of the figures, relative to the project.
const FIGURES: &str = "docs/benchmarks/figures.json";

/// The measurements by name, in the order of their display.
pub(crate) struct Report {
    pub(crate) groups: Vec<(&'static str, Taken)>,
}

/// Measurements of a group, with the conditions under which they were taken.
#[derive(Serialize, Deserialize)]
pub(crate) struct Taken {
    #[serde(flatten)]
    pub(crate) group: Group,
    pub(crate) machine: Map<String, Value>,
    pub(crate) rounds: usize,
}

impl Taken {
    fn is_of_the_run_of(&self, other: &Self) -> bool {
        (&self.machine, self.rounds) == (&other.machine, other.rounds)
    }
}

/// Returns the measurements of earlier runs below `root`, by name; empty if there are none.
pub(crate) fn written(root: &Path) -> Result<BTreeMap<String, Taken>, Failure> {
    #[derive(Deserialize)]
    struct Written {
        groups: BTreeMap<String, Taken>,
    }
    let path = root.join(FIGURES);
    if !path.exists() {
        return Ok(BTreeMap::new());
    }
    let written: Result<Written, _> = serde_json::from_str(&std::fs::read_to_string(&path)?);
    let old = |error| format!("{}: {error}: without `--only` all of it is taken anew", path.display());
    Ok(written.map_err(old)?.groups)
}

impl Report {
    /// Writes all files below `root`, the directory of the project.
    pub(crate) fn write(&self, root: &Path) -> Result<(), Failure> {
        let directory = root.join("docs/benchmarks");
        std::fs::create_dir_all(&directory)?;
        std::fs::write(root.join(FIGURES), serde_json::to_string_pretty(&self.json()?)? + "\n")?;
        for (name, taken) in &self.groups {
            if let Some(svg) = plot::svg(&taken.group, Metric::Cpu) {
                std::fs::write(directory.join(format!("{name}.svg")), svg)?;
            }
        }
        Ok(std::fs::write(directory.join("README.md"), self.page())?)
    }

    /// Returns the table of goals with the conditions of the measurements.
    pub(crate) fn goals(&self) -> String {
        format!("{}\n{}\n", table::goals(self.all()), self.conditions())
    }

    fn all(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().map(|(_, taken)| &taken.group)
    }

    /// Returns the conditions of most figures, and the differences for figures of other runs.
    fn conditions(&self) -> String {
        let mut runs: Vec<(&Taken, Vec<&str>)> = Vec::new();
        for (name, taken) in &self.groups {
            match runs.iter_mut().find(|(other, _)| other.is_of_the_run_of(taken)) {
                Some((_, names)) => names.push(name),
                None => runs.push((taken, vec![name])),
            }
        }
        runs.sort_by_key(|(_, names)| Reverse(names.len()));
        let Some(((most, _), others)) = runs.split_first() else { return String::new() };
        let facts = machine::in_words(&most.machine);
        let mut text = format!("Medians of {} rounds in which all take turns. {facts}", most.rounds);
        for (taken, names) in others {
            let is_other = |(name, fact): &(&String, &Value)| most.machine.get(*name) != Some(*fact);
            let facts = taken.machine.iter().filter(is_other);
            let facts: Map<_, _> = facts.map(|(name, fact)| (name.clone(), fact.clone())).collect();
            let (names, facts) = (names.join("`, `"), machine::in_words(&facts));
            let _ = write!(text, "\n\nTaken in another run, of {} rounds: `{names}`. {facts}", taken.rounds);
        }
        text
    }

    fn page(&self) -> String {
        let intro = "# Benchmarks\n\nWritten by `scripts/bench`; [CONTRIBUTING](../../CONTRIBUTING.md) says how figures are taken. CPU is user and \
                     system time of the process and of what it started. Quote ratios of one run: machines differ. \
                     [What limits each row](limits.md), with profiles. [What the parts take by themselves](inside.txt): model, graph, expressions, stores.\n";
        let sections = self.groups.iter().map(|(name, taken)| section(name, &taken.group));
        format!(
            "{intro}\n{}\n\n## Goals\n\n{}\n## Figures\n\n{}",
            self.conditions(),
            table::goals(self.all()),
            sections.collect::<Vec<_>>().join("\n")
        )
    }

    /// Returns the figures; each goal is accompanied by its text, the comparison and the verdict.
    fn json(&self) -> Result<Value, Failure> {
        let mut groups = Map::new();
        for (name, taken) in &self.groups {
            let mut json = serde_json::to_value(taken)?;
            let shown = json["goals"].as_array_mut().into_iter().flatten();
            for (shown, goal) in shown.zip(&taken.group.goals) {
                let found = goal.found(&taken.group);
                shown["goal"] = table::aim(goal).into();
                shown["found"] = json!(found);
                shown["verdict"] = table::verdict(goal, found).into();
            }
            groups.insert((*name).to_owned(), json);
        }
        Ok(json!({"groups": groups}))
    }
}

fn section(name: &str, group: &Group) -> String {
    let table = table::subjects(group);
    if plot::svg(group, Metric::Cpu).is_some() { format!("{table}\n![{name}]({name}.svg)\n") } else { table }
}

#[cfg(test)]
mod tests {
    use super::{Report, Taken, written};
    use crate::group::{Goal, Group, Subject};
    use crate::sample::{Metric, Sample};

    fn taken(title: &str, commit: &str) -> Taken {
        let mine = || Ok(Sample::default().with(Metric::Cpu, 12.5).with(Metric::Wall, 20.0));
        let subjects = vec![
            Subject::new("mine", 10, mine),
            Subject::new("other", 10, mine),
            Subject::missing("peer", "not here"),
        ];
        let goals = vec![
            Goal::at_most("mine", 2.0, "other").stretch(0.5),
            Goal::figure_at_most("mine", Metric::Wall, 1.0),
            Goal::rate("mine", 1.0, "peer"),
        ];
        let mut group =
            Group { title: title.to_owned(), unit: "task".into(), subjects, goals, is_fixed: false };
        group.take(2).unwrap();
        let facts = serde_json::json!({"commit": commit, "cores": "2"});
        Taken { group, machine: facts.as_object().unwrap().clone(), rounds: 2 }
    }

    #[test]
    fn figures_of_earlier_runs_are_kept_next_to_new_ones() {
        let root = tempfile::tempdir().unwrap();
        let files = || {
            let read = |name| std::fs::read_to_string(root.path().join(name)).unwrap();
            ["docs/benchmarks/README.md", "docs/benchmarks/figures.json", "docs/benchmarks/b.svg"].map(read)
        };
        assert!(written(root.path()).unwrap().is_empty());
        let groups = vec![("a", taken("A", "one")), ("b", taken("B", "one")), ("c", taken("C", "one"))];
        Report { groups }.write(root.path()).unwrap();
        let before = files();
        assert!(before[0].contains("commit: one") && !before[0].contains("another run"), "{}", before[0]);

        let mut kept = written(root.path()).unwrap();
        let mut keep = |name: &'static str| (name, kept.remove(name).unwrap());
        Report { groups: vec![keep("a"), keep("b"), keep("c")] }.write(root.path()).unwrap();
        assert_eq!(files(), before);

        let mut kept = written(root.path()).unwrap();
        let mut keep = |name: &'static str| (name, kept.remove(name).unwrap());
        Report { groups: vec![("a", taken("new", "two")), keep("b"), keep("c")] }.write(root.path()).unwrap();
        let [page, ..] = files();
        assert!(page.contains("rounds in which all take turns. commit: one · cores: 2\n"), "{page}");
        assert!(page.contains("\n\nTaken in another run, of 2 rounds: `a`. commit: two\n"), "{page}");
        assert!(page.contains("| new: mine |") && page.contains("| B: mine |"), "{page}");
        std::fs::write(root.path().join("docs/benchmarks/figures.json"), "{}").unwrap();
        let error = written(root.path()).err().unwrap().to_string();
        assert!(error.contains("figures.json") && error.contains("without `--only`"), "{error}");
    }
}
