//! Places the nodes of a graph in layers. Pure: numbers in, numbers out.

use std::collections::BTreeMap;

/// Rounds of ordering. More change little.
const ROUNDS: usize = 4;

/// The place of each node: its column, by dependencies, and its row within the column.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) places: Vec<(usize, usize)>,
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// Places `count` nodes. Each edge goes from a dependency to its dependent. Edges must have no cycle.
pub(crate) fn layout(count: usize, edges: &[(usize, usize)]) -> Layout {
    let columns_of = columns(count, edges);
    let mut columns: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (node, column) in columns_of.iter().enumerate() {
        columns.entry(*column).or_default().push(node);
    }
    let mut rows = vec![0; count];
    for nodes in columns.values() {
        number(nodes, &mut rows);
    }
    for round in 0..ROUNDS {
        let forward = round % 2 == 0;
        let ordered: Vec<usize> =
            if forward { columns.keys().copied().collect() } else { columns.keys().rev().copied().collect() };
        for column in ordered {
            if let Some(nodes) = columns.get_mut(&column) {
                order(nodes, edges, &rows, forward);
                number(nodes, &mut rows);
            }
        }
    }
    Layout {
        columns: columns.len(),
        rows: columns.values().map(Vec::len).max().unwrap_or_default(),
        places: columns_of.into_iter().zip(rows).collect(),
    }
}

fn number(nodes: &[usize], rows: &mut [usize]) {
    for (row, node) in nodes.iter().enumerate() {
        rows[*node] = row;
    }
}

/// Returns the column of each node: one more than the highest of its dependencies.
fn columns(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut columns = vec![0; count];
    // At most `count` rounds, since there is no cycle; a cycle would end with them as well.
    for _ in 0..count {
        let mut is_stable = true;
        for (from, to) in edges {
            if columns[*to] <= columns[*from] {
                columns[*to] = columns[*from] + 1;
                is_stable = false;
            }
        }
        if is_stable {
            break;
        }
    }
    columns
}

/// Sorts the nodes of a column by the middle of their neighbours, which lets few edges cross.
fn order(nodes: &mut [usize], edges: &[(usize, usize)], rows: &[usize], forward: bool) {
    let middle = |node: usize| {
        let neighbours = edges.iter().filter_map(|(from, to)| {
            if forward { (*to == node).then_some(rows[*from]) } else { (*from == node).then_some(rows[*to]) }
        });
        let (sum, count) = neighbours.fold((0, 0), |(sum, count), row| (sum + row, count + 1));
        // In thousandths, so that equal columns stay stable without floats.
        (sum * 1_000).checked_div(count).unwrap_or(rows[node] * 1_000)
    };
    nodes.sort_by_key(|node| middle(*node));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_follow_dependencies_and_rows_their_neighbours() {
        // A diamond with a crossing: 0 -> 2, 1 -> 3, 0 -> 4, all of column 1 in the order that crosses.
        let placed = layout(5, &[(0, 4), (1, 2), (0, 3), (3, 4)]);
        assert_eq!(placed.columns, 3);
        assert_eq!(placed.places[4].0, 2);
        assert!(placed.places[3].1 < placed.places[2].1, "{placed:?}");
        assert_eq!(layout(0, &[]), Layout { places: Vec::new(), columns: 0, rows: 0 });
    }

    #[test]
    fn no_two_nodes_share_a_place() {
        let edges: Vec<(usize, usize)> = (1..60).map(|node| (node / 3, node)).collect();
        let placed = layout(60, &edges);
        let unique: std::collections::BTreeSet<_> = placed.places.iter().collect();
        assert_eq!(unique.len(), 60);
    }
}
