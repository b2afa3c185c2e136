//! What is written: a page with all tables, the figures as JSON, the pictures, and the table of the README.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::group::{Goal, Group, Subject};
use crate::sample::{Metric, Spread};
use crate::{Failure, plot, table};

/// The lines of the README between which the table stands.
const BEGIN: &str = "<!-- benchmarks: written by scripts/bench -->";
const END: &str = "<!-- benchmarks end -->";

/// The groups of which the README shows pictures.
const SHOWN: [&str; 3] = ["memory-layered", "sqlite-layered", "spawn"];

/// The measurements that were taken, by name, and on what.
pub(crate) struct Report {
    pub(crate) groups: Vec<(&'static str, Group)>,
    pub(crate) facts: Map<String, Value>,
    pub(crate) rounds: usize,
}

impl Report {
    /// Writes everything beneath `root`, the directory of the project.
    pub(crate) fn write(&self, root: &Path) -> Result<(), Failure> {
        let directory = root.join("docs/benchmarks");
        std::fs::create_dir_all(&directory)?;
        std::fs::write(directory.join("figures.json"), serde_json::to_string_pretty(&self.json())? + "\n")?;
        for (name, group) in &self.groups {
            if let Some(svg) = plot::svg(group, Metric::Cpu) {
                std::fs::write(directory.join(format!("{name}.svg")), svg)?;
            }
        }
        std::fs::write(directory.join("README.md"), self.page())?;
        let readme = root.join("README.md");
        let text = std::fs::read_to_string(&readme)?;
        Ok(std::fs::write(readme, replaced(&text, &self.in_short())?)?)
    }

    /// Returns what the README shows.
    fn in_short(&self) -> String {
        let is_shown = |name: &&str| {
            let group = self.groups.iter().find(|(other, _)| other == name);
            group.is_some_and(|(_, group)| plot::svg(group, Metric::Cpu).is_some())
        };
        let pictures: Vec<String> = SHOWN
            .into_iter()
            .filter(is_shown)
            .map(|name| format!("![{name}](docs/benchmarks/{name}.svg)\n"))
            .collect();
        format!("{}\n[All figures](docs/benchmarks/README.md).\n\n{}", self.goals(), pictures.join("\n"))
    }

    /// Returns the table of the goals, with what it was taken on.
    pub(crate) fn goals(&self) -> String {
        let groups = self.groups.iter().map(|(_, group)| group);
        format!("{}\n{}\n", table::goals(groups), self.conditions())
    }

    fn conditions(&self) -> String {
        let facts = crate::machine::in_words(&self.facts);
        format!("Medians of {} rounds in which all take turns. {facts}", self.rounds)
    }

    fn page(&self) -> String {
        let intro = "# Benchmarks\n\nWritten by `scripts/bench`; [CONTRIBUTING](../../CONTRIBUTING.md) says how figures are taken. CPU is user and \
                     system time of the process and of what it started. Quote ratios of one run: machines differ. \
                     [What limits each row](limits.md), with profiles. [What the parts take by themselves](inside.txt): model, graph, expressions, stores.\n";
        let sections: Vec<String> = self.groups.iter().map(|(name, group)| section(name, group)).collect();
        format!(
            "{intro}\n{}\n\n## Goals\n\n{}\n## Figures\n\n{}",
            self.conditions(),
            table::goals(self.groups.iter().map(|(_, group)| group)),
            sections.join("\n")
        )
    }

    fn json(&self) -> Value {
        let groups: Map<String, Value> =
            self.groups.iter().map(|(name, group)| ((*name).to_owned(), group_json(group))).collect();
        json!({"machine": self.facts, "rounds": self.rounds, "groups": groups})
    }
}

fn section(name: &str, group: &Group) -> String {
    let table = table::subjects(group);
    if plot::svg(group, Metric::Cpu).is_some() { format!("{table}\n![{name}]({name}.svg)\n") } else { table }
}

fn group_json(group: &Group) -> Value {
    let subjects: Vec<Value> = group.subjects.iter().map(subject_json).collect();
    let goals: Vec<Value> = group.goals.iter().map(|goal| goal_json(group, goal)).collect();
    json!({"title": group.title, "unit": group.unit, "subjects": subjects, "goals": goals})
}

fn subject_json(subject: &Subject) -> Value {
    let rounds: Vec<Value> = subject
        .samples
        .iter()
        .map(|sample| {
            sample.figures().map(|(metric, figure)| (metric.key().to_owned(), json!(figure))).collect()
        })
        .map(Value::Object)
        .collect();
    json!({"name": subject.name, "count": subject.count, "missing": subject.why_missing(), "rounds": rounds})
}

fn goal_json(group: &Group, goal: &Goal) -> Value {
    let found = goal.found(group);
    let spread =
        found.map(|Spread { median, least, most }| json!({"median": median, "least": least, "most": most}));
    json!({"of": goal.of, "goal": table::aim(goal), "found": spread, "verdict": table::verdict(goal, found)})
}

/// Returns `text` with `table` between the two lines for it.
fn replaced(text: &str, table: &str) -> Result<String, Failure> {
    let missing = || format!("the README has no line `{BEGIN}` with a line `{END}` after it");
    let (before, rest) = text.split_once(BEGIN).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    Ok(format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", table.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::{BEGIN, END, replaced};

    #[test]
    fn the_table_of_the_readme_is_replaced_and_nothing_else() {
        let text = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
        let new = replaced(&text, "| new |\n").unwrap();
        assert_eq!(new, format!("before\n{BEGIN}\n\n| new |\n\n{END}\nafter\n"));
        assert_eq!(replaced(&new, "| new |\n").unwrap(), new);
        assert!(replaced("nothing", "").is_err());
    }
}
