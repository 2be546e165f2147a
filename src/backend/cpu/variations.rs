//! The lines of a tree that are shown to people: the actions of most visits.

use crate::tree::{NO_NODE, REFUTED, ROOT, RowMut};

/// For each of the root's actions `first`, that action and those of most visits below it, at most `max_len` in all.
pub(in crate::backend) fn variations(row: &RowMut<'_>, first: &[u16], max_len: usize) -> Vec<Vec<u16>> {
    let num_edges = usize::from(row.nodes[ROOT as usize].num_edges);
    let below = |&action: &u16| {
        let edge = row.actions(ROOT)[..num_edges].iter().position(|&a| a == action);
        let mut line = vec![action];
        line_below(row, edge.map_or(NO_NODE, |edge| row.child(ROOT, edge)), max_len, &mut line);
        line
    };
    first.iter().map(below).collect()
}

/// Adds the actions of most visits from `node` downwards to `line`, up to `max_len` actions. At a proven node, only those that reach its
/// value count, elsewhere only those that are not refuted, if there are any.
fn line_below(row: &RowMut<'_>, mut node: i32, max_len: usize, line: &mut Vec<u16>) {
    while line.len() < max_len && node != NO_NODE {
        let edges = row.edges(node);
        let num_edges = usize::from(row.nodes[node as usize].num_edges);
        let holds = |e: usize| row.edge_holds(node, e);
        let is_open = |e: usize| edges.value_sum[e] != REFUTED;
        let best =
            (0..num_edges).max_by_key(|&e| (holds(e), is_open(e), edges.visits[e], std::cmp::Reverse(e)));
        match best {
            Some(e) if edges.visits[e] > 0 => {
                line.push(row.actions(node)[e]);
                node = edges.child[e];
            }
            _ => break,
        }
    }
}
