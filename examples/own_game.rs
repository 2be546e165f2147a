//! The whole program for a game of one's own, Nim: `cargo run --release --example own_game -- run --game nim --minutes 0.2`, then `eval`,
//! `play`, `serve` and the rest. What belongs to a game beside its rules, and a project to begin with: docs/your-game.md.
use vecaz::config::keys::section;
use vecaz::game::{Game, History, ObsShape, Sizes, Turn, options_by_section};
section! {
    Nim {
        /// Stones at the start. A player takes one to three of them.
        stones: u32 [1..=60] = 21,
    }
}
impl Game for Nim {
    /// Stones that are left, and the player to move.
    type State = [u32; 2];
    const NAME: &'static str = "nim";
    options_by_section!();
    fn aim(&self, _: u8) -> String {
        "takes the last stone".into()
    }
    fn sizes(&self) -> Sizes {
        let max_plies = self.stones as usize;
        let obs = ObsShape { channels: 1, height: 1, width: max_plies };
        Sizes { num_actions: 3, max_legal: 3, max_plies, obs, ..Sizes::default() }
    }
    fn init(&self) -> [u32; 2] {
        [self.stones, 0]
    }
    fn turn(&self, &[left, player]: &[u32; 2]) -> Turn {
        if left == 0 { Turn::Over } else { Turn::Player(player as u8) }
    }
    fn is_valid(&self, &[_, player]: &[u32; 2]) -> bool {
        player < 2
    }
    fn legal(&self, &[left, _]: &[u32; 2], _: History<'_>, out: &mut [u16]) -> usize {
        out.iter_mut().zip(0..left.min(3) as u16).map(|(out, action)| *out = action).count()
    }
    fn step(&self, [left, player]: &mut [u32; 2], action: u16, _: History<'_>) {
        (*left, *player) = (*left - u32::from(action) - 1, 1 - *player);
    }
    fn observe(&self, &[left, _]: &[u32; 2], _: u8, out: &mut [f32]) {
        (1..).zip(out).for_each(|(stones, out)| *out = f32::from(left == stones));
    }
    fn returns(&self, &[_, loser]: &[u32; 2], out: &mut [f32]) {
        out.copy_from_slice([[-1.0, 1.0], [1.0, -1.0]][loser as usize].as_slice());
    }
    fn action_name(&self, _: &[u32; 2], action: u16) -> String {
        format!("take {}", action + 1)
    }
}
fn main() -> std::process::ExitCode {
    vecaz::cli::program_with(vecaz::registry::Registry::built_in().with::<Nim>())
}
