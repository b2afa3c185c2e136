//! Graphs of the benchmarks, the same for taskpawl, for the floors and for the peers.

use clap::ValueEnum;

/// Number of layers of a layered graph.
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
    /// Returns the name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Chain => "chain",
            Self::Wide => "wide",
            Self::Layered => "layered",
        }
    }

    /// Returns the dependencies of each task, which always come before it.
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

/// Returns three pseudo-random tasks of the previous layer. The formula is simple, so that the peers in other languages
/// use the same graphs.
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
