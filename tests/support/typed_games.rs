//! Built-in games by name with their types, for tests and benchmarks that compare typed play with something else.

use vecaz::Result;
use vecaz::game::Game;

/// An operation on a game whose type is known only at run time.
pub trait GameVisitor {
    /// The type of its result.
    type Out;
    /// Applies the operation to `game`.
    fn visit<G: Game>(self, game: G) -> Self::Out;
}

macro_rules! typed_games {
    ($($game:ty),+ $(,)?) => {
        /// Passes the built-in game called `name` with its `options` to `visitor`.
        pub fn dispatch<V: GameVisitor>(name: &str, options: &toml::Table, visitor: V) -> Result<V::Out> {
            $(if name == <$game as Game>::NAME {
                return Ok(visitor.visit(<$game as Game>::from_options(options)?));
            })+
            panic!("{name} is missing in tests/support/typed_games.rs")
        }
    };
}

typed_games! {
    vecaz::game::tic_tac_toe::TicTacToe,
    vecaz::game::connect_four::ConnectFour,
    vecaz::game::othello::Othello,
    vecaz::game::hex::Hex,
    vecaz::game::gomoku::Gomoku,
    vecaz::game::go::Go,
    vecaz::game::chess::Chess,
    vecaz::game::clique::Clique,
    vecaz::game::backgammon::Backgammon,
    vecaz::game::blob::Blob,
}
