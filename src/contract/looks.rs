//! The laws of a game's look.

use super::law::{Law, equal, holds};
use super::trail::Trail;
use super::walk::{play_on, walk};
use crate::game::set_up::{PlacedPieces, SetUp};
use crate::game::view::{Board, Spot, Viewer};
use crate::game::{Game, Turn, describe, is_known};
use std::collections::HashSet;

/// A view has the legal actions, each with a spot on the board and no two alike, and its drawing has at most 80 columns. The spots that
/// decided a game belong to one player.
pub(super) fn views_describe_the_position<G: Game>(game: &G, trail: &Trail) -> Law {
    walk(game, trail, |position, _| {
        let view = describe(game, &position.state, position.history(), Viewer::All);
        let listed: Vec<u16> = view.actions.iter().map(|action| action.action).collect();
        equal!(listed, position.legal);
        let alike: HashSet<_> = view.actions.iter().map(|action| (&action.name, action.spot)).collect();
        holds!(alike.len() == listed.len(), "two actions look the same: {:?}", view.actions);
        let marked = view.line.iter().copied().chain(view.marks.iter().map(|mark| mark.at));
        for spot in view.actions.iter().map(|action| action.spot).chain(marked) {
            holds!(is_on(&view.board, spot)?, "{spot:?} is not on the board");
        }
        let owners: HashSet<Option<u8>> = view.line.iter().map(|&spot| owner(&view.board, spot)).collect();
        holds!(owners.len() <= 1 && !owners.contains(&None), "the line {:?} has no one owner", view.line);
        holds!(view.line.is_empty() || position.is_over(), "{:?} decides a game that is not over", view.line);
        let (colours, players) = (view.colours.len(), game.sizes().num_players);
        holds!(colours >= players, "{colours} colours for {players} players");
        if let Board::Cards(cards) = &view.board {
            let ragged = cards.seats.iter().find(|seat| seat.values.len() != cards.columns.len());
            holds!(ragged.is_none(), "the columns {:?} and the values of {ragged:?}", cards.columns);
        }
        let text = crate::view::text(&view);
        holds!(!text.trim().is_empty(), "the drawing is empty");
        let wide = text.lines().find(|line| line.chars().count() > 80);
        holds!(wide.is_none(), "a line of more than 80 columns: {wide:?}");
        Ok(())
    })
}

/// True if the spot is part of the board.
fn is_on(board: &Board, spot: Spot) -> Result<bool, String> {
    let num_spots = match board {
        Board::Grid(grid) => {
            let (columns, cells) = (grid.columns.len(), grid.cells.len());
            holds!(columns > 0 && cells.is_multiple_of(columns), "{cells} cells in {columns} columns");
            let rows = grid.rows.len();
            holds!(rows == 0 || rows * columns == cells, "{rows} rows of {columns} for {cells} cells");
            cells
        }
        Board::Slots(slots) => {
            equal!(slots.rows[0].len(), slots.rows[1].len());
            2 * slots.rows[0].len()
        }
        Board::Graph(_) | Board::Cards(_) | Board::Text { .. } => 0,
    };
    Ok(match (board, spot) {
        (_, Spot::Button) => true,
        (_, Spot::Place(at)) => usize::from(at) < num_spots,
        (_, Spot::Move(from, to)) => from != to && usize::from(from.max(to)) < num_spots,
        (Board::Graph(graph), Spot::Edge(a, b)) => graph.edges.iter().any(|edge| edge.ends == [a, b]),
        (Board::Cards(_), Spot::Card(_)) => true,
        _ => false,
    })
}

/// The player whose piece is on a cell or an edge.
fn owner(board: &Board, spot: Spot) -> Option<u8> {
    let (pieces, piece) = match (board, spot) {
        (Board::Grid(grid), Spot::Place(at)) => (&grid.pieces, *grid.cells.get(usize::from(at))?),
        (Board::Graph(graph), Spot::Edge(a, b)) => {
            (&graph.pieces, graph.edges.iter().find(|edge| edge.ends == [a, b])?.piece)
        }
        _ => return None,
    };
    pieces.get(usize::from(piece?))?.owner
}

/// A player's view does not change with what the player cannot see, and a view for all changes with nothing that some player cannot see.
/// Without hidden information all views are equal.
pub(super) fn views_show_nothing_hidden<G: Game>(game: &G, trail: &Trail) -> Law {
    let sizes = game.sizes();
    let mut differ = false;
    walk(game, trail, |position, rng| {
        let of = |state: &G::State, viewer| describe(game, state, position.history(), viewer);
        let (all, public) = (of(&position.state, Viewer::All), of(&position.state, Viewer::Public));
        differ |= all != public;
        let hides = sizes.hidden_information;
        if position.turn == Turn::Chance {
            holds!(!hides || public.actions.is_empty(), "outcomes are listed for all: {:?}", public.actions);
        }
        for player in 0..sizes.num_players as u8 {
            let view = of(&position.state, Viewer::Player(player));
            holds!(hides || view == all, "player {player} does not see everything");
            if let Turn::Player(mover) = position.turn {
                holds!(mover != player || view.actions == all.actions, "player {player} lacks legal actions");
                let drawn = game.determinise(&position.state, player, rng);
                equal!(of(&drawn, Viewer::Player(player)), view, "the view of player {player}");
                equal!(of(&drawn, Viewer::Public), public, "the view for all, of what player {player} draws");
            }
        }
        for &action in &position.legal {
            let sees = |viewer| is_known(game, &position.state, action, viewer);
            let all_see = (0..sizes.num_players as u8).all(|player| sees(Viewer::Player(player)));
            equal!(sees(Viewer::Public), all_see, "action {action}");
            holds!(sees(Viewer::All) && (hides || all_see), "action {action} is hidden");
            let Turn::Player(mover) = position.turn else { continue };
            holds!(sees(Viewer::Player(mover)), "player {mover} does not see the own action {action}");
        }
        Ok(())
    })?;
    equal!(differ, sizes.hidden_information, "whether views differ, against hidden_information");
    Ok(())
}

/// In a game that sets up the pieces of its start, a position that is set up shows the pieces that were placed, and the same player is to move.
pub(super) fn placed_pieces_give_the_position<G: Game>(game: &G, trail: &Trail) -> Law {
    let pieces = |state: &G::State| match game.turn(state) {
        Turn::Player(player) => PlacedPieces::of(&game.view(state, Viewer::All), player),
        Turn::Chance | Turn::Over => None,
    };
    let set_up = |placed: &PlacedPieces| {
        let cells = placed.pieces()?;
        game.set_up(SetUp { cells: &cells, player: placed.player })
    };
    if pieces(&game.init()).is_none_or(|start| set_up(&start).is_err()) {
        return Ok(());
    }
    walk(game, trail, |position, rng| {
        let Some(placed) = pieces(&position.state) else { return Ok(()) };
        // A game may refuse what its rules cannot tell from the pieces.
        let Ok(again) = set_up(&placed) else { return Ok(()) };
        equal!(pieces(&again), Some(placed), "the pieces of a position that was set up");
        holds!(game.is_valid(&again), "`is_valid` refuses a position that was set up: {again:?}");
        play_on(game, &again, &[], rng).map_err(|what| format!("in a position that was set up: {what}"))?;
        Ok(())
    })
}
