//! Moves that a client allows or forbids in the position of an analysis. Below them everything is searched.

use super::position::Position;

/// What a client says of moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restricts {
    /// Others are not searched.
    Others,
    /// They are not searched.
    These,
}

/// Moves of one player, by their names, and what the client says of them.
#[derive(Clone, Debug)]
pub struct Restriction {
    /// Whether the moves are the ones that are searched.
    pub restricts: Restricts,
    /// The player. It holds in positions in which that player is to move.
    pub player: u8,
    /// The moves. Those that are not legal mean nothing.
    pub moves: Vec<String>,
}

/// The legal moves of `position` that `restrictions` leave, where `find` gives the legal move of a name; empty where they leave all.
///
/// # Errors
/// A sentence where no move is left.
pub fn moves_left(
    position: &Position,
    restrictions: &[Restriction],
    find: impl Fn(&str) -> Option<u16>,
) -> Result<Vec<u16>, String> {
    let player = position.player();
    let own = || restrictions.iter().filter(|restriction| Some(restriction.player) == player);
    let legal = position.play().legal();
    let mut left = legal.clone();
    for Restriction { restricts, moves, .. } in own() {
        let named: Vec<u16> = moves.iter().filter_map(|name| find(name)).collect();
        left.retain(|action| named.contains(action) == (*restricts == Restricts::Others));
    }
    match (left.len(), legal.len()) {
        (0, _) => Err("the allowed and avoided moves leave no legal move".into()),
        (left, all) if left == all => Ok(Vec::new()),
        _ => Ok(left),
    }
}
