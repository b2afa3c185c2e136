//! The graphs: the same for taskpawl, for the floors and for the peers.

use clap::ValueEnum;

/// How many layers a layered graph has.
const LAYERS: usize = 100;

/// The shape of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    /// One after the other.
    Chain,
    /// All at once, then a join.
    Wide,
    /// 100 layers; each task needs three of the layer before.
    Layered,
}

impl Shape {
    /// Returns its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Chain => "chain",
            Self::Wide => "wide",
            Self::Layered => "layered",
        }
    }

    /// Returns what each of `tasks` tasks needs: always earlier ones.
    pub(crate) fn needs(self, tasks: usize) -> Vec<Vec<usize>> {
        (0..tasks).map(|task| self.needs_of(task, tasks)).collect()
    }

    fn needs_of(self, task: usize, tasks: usize) -> Vec<usize> {
        match self {
            Self::Chain => task.checked_sub(1).into_iter().collect(),
            Self::Wide if task + 1 == tasks => (0..task).collect(),
            Self::Wide => Vec::new(),
            Self::Layered => layered(task, tasks.div_ceil(LAYERS)),
        }
    }
}

/// Three of the layer before, as if drawn: the same ones each time, in every language.
fn layered(task: usize, width: usize) -> Vec<usize> {
    let Some(layer) = (task / width).checked_sub(1) else { return Vec::new() };
    let mut needs: Vec<usize> = [1, 7, 31].iter().map(|step| layer * width + (task * step) % width).collect();
    needs.sort_unstable();
    needs.dedup();
    needs
}

#[cfg(test)]
mod tests {
    use super::Shape;

    #[test]
    fn tasks_need_earlier_ones() {
        assert_eq!(Shape::Chain.needs(3), [vec![], vec![0], vec![1]]);
        assert_eq!(Shape::Wide.needs(4), [vec![], vec![], vec![], vec![0, 1, 2]]);
        let layered = Shape::Layered.needs(10_000);
        assert!(layered[..100].iter().all(Vec::is_empty));
        assert!(layered[100..].iter().enumerate().all(|(at, needs)| {
            !needs.is_empty() && needs.len() <= 3 && needs.iter().all(|need| need / 100 == at / 100)
        }));
    }
}
