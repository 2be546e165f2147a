//! The laws of vecaz that every game must keep.

use vecaz::contract::check;

#[test]
fn breakthrough_keeps_the_laws() {
    check::<vecaz_games::breakthrough::Breakthrough>().unwrap();
}

#[test]
fn dots_and_boxes_keeps_the_laws() {
    check::<vecaz_games::dots_and_boxes::DotsAndBoxes>().unwrap();
}

#[test]
fn quoridor_keeps_the_laws() {
    check::<vecaz_games::quoridor::Quoridor>().unwrap();
}

#[test]
fn ultimate_tic_tac_toe_keeps_the_laws() {
    check::<vecaz_games::ultimate_tic_tac_toe::UltimateTicTacToe>().unwrap();
}

#[test]
fn twenty_forty_eight_keeps_the_laws() {
    check::<vecaz_games::twenty_forty_eight::TwentyFortyEight>().unwrap();
}

/// Each game has a configuration of its own name that is read.
#[test]
fn every_game_has_a_configuration() {
    let registry = vecaz_games::registry().unwrap();
    for name in ["breakthrough", "dots_and_boxes", "quoridor", "ultimate_tic_tac_toe", "2048"] {
        let config: toml::Table = registry.config(name).expect(name).parse().expect(name);
        let mut options = config["game"].as_table().expect(name).clone();
        assert_eq!(options.remove("name"), Some(name.into()));
        assert_eq!(registry.game(name, &options).expect(name).name(), name);
    }
}
