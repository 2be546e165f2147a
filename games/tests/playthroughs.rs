//! Replays games that OpenSpiel has played: the files under `games/tests/fixtures/`, made by `tests/oracles/games_crate.py`, and those of
//! the folder in `VECAZ_PLAYTHROUGHS`, if it is set (`tests/oracles/fresh_games.sh`).

#[path = "../../tests/support/playthrough.rs"]
mod playthrough;

use std::path::Path;

#[test]
fn games_of_open_spiel_replay_alike() {
    let registry = vecaz_games::registry().unwrap();
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    playthrough::replay_folder(&registry, &committed);
    if let Some(folder) = std::env::var_os("VECAZ_PLAYTHROUGHS") {
        let games = playthrough::replay_folder(&registry, Path::new(&folder));
        println!("{games} fresh games agree with OpenSpiel");
    }
}
