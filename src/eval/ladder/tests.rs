use super::*;

fn rungs(epochs: &[u64]) -> Vec<LadderRung> {
    epochs.iter().map(|&epoch| LadderRung { epoch, updates: 10 * epoch, ..LadderRung::default() }).collect()
}

const CONDITIONS: Conditions =
    Conditions { measure: Measure::Elo, simulations: 16, opening_plies: 4, seed: 3 };

fn outcome(margins: &[f32]) -> MatchOutcome {
    let mut outcome = MatchOutcome::default();
    margins.iter().for_each(|&margin| outcome.result.add(margin));
    outcome.scores = margins.iter().map(|&margin| f64::from(margin)).collect();
    outcome.other_scores = margins.iter().map(|&margin| -f64::from(margin)).collect();
    outcome.returns.clone_from(&outcome.scores);
    outcome
}

#[test]
fn epochs_of_a_ladder_are_the_first_of_each_block_the_last_and_the_best() {
    let all: Vec<u64> = [1, 10, 20, 30, 40, 47, 48, 49].to_vec();
    assert_eq!(choose(&all, 10, None), [1, 10, 20, 30, 40, 49]);
    assert_eq!(choose(&all, 10, Some(48)), [1, 10, 20, 30, 40, 48, 49]);
    assert_eq!(choose(&all, 20, Some(1)), [1, 20, 40, 49]);
    assert_eq!(choose(&[5, 6, 7], 10, None), [5, 7]);
    assert_eq!(choose(&[5, 6, 7], 1, None), [5, 6, 7]);
    assert_eq!(choose(&[], 10, None), [0; 0]);
}

#[test]
fn a_thinned_ladder_keeps_its_ends() {
    let all: Vec<u64> = (1..=9).collect();
    assert_eq!(thin(&all, 20, Some(8)), all);
    assert_eq!(thin(&all, 5, None), [1, 3, 5, 7, 9]);
    assert_eq!(thin(&all, 0, Some(8)), [1, 9]);
    for max in 2..9 {
        for best in 1..=9 {
            let thinned = thin(&all, max, Some(best));
            assert!(thinned.len() == max && thinned.is_sorted_by(|a, b| a < b), "{thinned:?}");
            assert_eq!((thinned[0], thinned[max - 1]), (1, 9));
        }
    }
}

#[test]
fn a_thinned_ladder_keeps_the_best_network() {
    let all: Vec<u64> = (1..=9).collect();
    assert_eq!(thin(&all, 5, Some(8)), [1, 3, 5, 8, 9]);
    assert_eq!(thin(&all, 3, Some(2)), [1, 2, 9]);
    assert_eq!(thin(&all, 5, Some(5)), thin(&all, 5, None));
    assert_eq!(thin(&all, 5, Some(99)), thin(&all, 5, None), "an epoch without a network");
    for max in 3..9 {
        for best in 1..=9 {
            assert!(thin(&all, max, Some(best)).contains(&best), "{best} of {max}");
        }
    }
}

#[test]
fn neighbours_and_next_but_one_meet() {
    assert_eq!(pairings(4, Measure::Elo), [(1, 0), (2, 1), (3, 2), (2, 0), (3, 1)]);
    assert_eq!(pairings(3, Measure::Score), [(1, 0), (2, 1)]);
    assert_eq!(pairings(2, Measure::Points), [(1, 0)]);
}

#[test]
fn strengths_are_relative_to_the_first_network() {
    let won = outcome(&[1.0, 1.0, 0.0, 1.0, -1.0, 1.0]);
    let matches =
        [Pairing { first: 1, second: 0, result: won.clone() }, Pairing { first: 2, second: 1, result: won }];
    let ladder = Ladder::new(CONDITIONS, rungs(&[1, 10, 20]), &matches);
    let [first, second, third] = ladder.rungs[..] else { panic!("{ladder:?}") };
    assert_eq!((first.strength, first.interval, first.gain, first.games), (0.0, None, None, 6));
    assert!((third.strength - 2.0 * second.strength).abs() < 1e-6 && second.strength > 100.0);
    assert!((third.gain.unwrap() - second.strength).abs() < 1e-6);
    assert_eq!((second.games, third.games), (12, 6));
    let of = ladder.matches[1];
    assert_eq!((of.later, of.earlier, of.games), (20, 10, 6));
    assert_eq!(of.result, Some(MatchResult { wins: 4, draws: 1, losses: 1, ..MatchResult::default() }));
}

#[test]
fn points_and_scores_take_the_place_of_elo() {
    let leads = outcome(&[3.0, 1.0, 2.0]); // of 6, 2 and 4 over the others
    let matches = [Pairing { first: 1, second: 0, result: leads }];
    let points = Ladder::new(Conditions { measure: Measure::Points, ..CONDITIONS }, rungs(&[1, 9]), &matches);
    assert!((points.rungs[1].strength - 4.0).abs() < 1e-9, "{points:?}");
    let mut alone = MatchOutcome { is_for_one_player: true, ..MatchOutcome::default() };
    (alone.scores, alone.other_scores) = (vec![5.0, 7.0], vec![4.0, 2.0]);
    let matches = [Pairing { first: 1, second: 0, result: alone }];
    let scores = Ladder::new(Conditions { measure: Measure::Score, ..CONDITIONS }, rungs(&[1, 9]), &matches);
    let [first, second] = scores.rungs[..] else { panic!("{scores:?}") };
    assert_eq!((first.strength, second.strength, second.gain), (3.0, 6.0, Some(3.0)));
    assert!(first.interval.is_some() && scores.matches[0].result.is_none());
}

#[test]
fn a_ladder_is_read_as_it_was_written_and_damaged_ones_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(Ladder::read(folder.path()).expect("none"), None);
    let matches = [Pairing { first: 1, second: 0, result: outcome(&[1.0, -1.0, 1.0]) }];
    let ladder = Ladder::new(CONDITIONS, rungs(&[2, 4]), &matches);
    ladder.write(folder.path()).expect("written");
    assert_eq!(Ladder::read(folder.path()).expect("valid"), Some(ladder.clone()));
    let path = folder.path().join(FILE_NAME);
    let text = std::fs::read_to_string(&path).expect("read");
    for (changed, part) in [
        (text[..text.len() / 2].to_string(), "no ladder: "),
        (text.replace("\"format\": 1", "\"format\": 9"), "has format 9, expected 1"),
        ("[]".into(), "no ladder: "),
    ] {
        std::fs::write(&path, changed).expect("written");
        let error = Ladder::read(folder.path()).expect_err(part).to_string();
        assert!(error.contains(part) && error.contains("--ladder"), "{error}");
    }
}
