use super::*;
use crate::batch::{GameBatch, Playthrough};
use crate::device_struct::DeviceType;
use crate::game::check_device_header;
use crate::game::view::Viewer;
use crate::registry::any_game;
use crate::rng::{Key, Purpose};

#[test]
fn generated_header_is_up_to_date() {
    let definitions = [
        crate::game::device_constants(),
        table::device_constants(),
        rules::device_constants(),
        observe::device_constants(),
        Phase::definition(),
        State::definition(),
    ];
    check_device_header::<Blob>("", &definitions);
}

/// Every state with a player to move of `games` random games.
pub(super) fn random_states(game: &Blob, games: u64, seed: u64) -> Vec<State> {
    let mut states = Vec::new();
    for number in 0..games {
        let mut rng = Key::new(seed, Purpose::Evaluation).with(number).stream();
        let mut s = game.init();
        let mut legal = [0; NUM_CARDS];
        while game.turn(&s) != Turn::Over {
            if game.turn(&s) != Turn::Chance {
                states.push(s);
            }
            let n = game.legal(&s, History::default(), &mut legal);
            game.step(&mut s, legal[rng.below(n)], History::default());
        }
    }
    states
}

pub(super) fn observation(game: &Blob, s: &State, observer: usize) -> Vec<f32> {
    let mut out = vec![f32::NAN; game.sizes().obs.len()];
    game.observe(s, observer as u8, &mut out);
    out
}

fn refusal(options: &str) -> String {
    match Blob::from_options(&options.parse().expect("TOML")) {
        Ok(game) => panic!("{options} was accepted as {game:?}"),
        Err(error) => error.to_string(),
    }
}

/// A game played from names, spaces between them.
fn played(options: &str, names: &str) -> Playthrough {
    let game = any_game("blob", &options.parse().expect("TOML")).expect("valid");
    let mut playthrough = Playthrough::new(game);
    for name in names.split_whitespace() {
        playthrough.step_text(name).expect("legal");
    }
    playthrough
}

fn state_of(playthrough: &Playthrough) -> State {
    bytemuck::pod_read_unaligned(playthrough.state())
}

#[test]
fn wrong_settings_are_refused_with_the_key() {
    for (options, part) in [
        ("players = 9", "game.players: got 9, expected a whole number from 3 to 8"),
        ("players = 2", "game.players: got 2, expected a whole number from 3 to 8"),
        ("cards = 14", "game.cards: got 14, expected a whole number from 1 to 13"),
        (
            "players = 8\ncards = 7",
            "game.cards: got 7, expected a whole number from 1 to 6, for 8 players share 52 cards",
        ),
        ("cards = 0", "game.cards: got 0"),
        ("dealer = 4", "game.dealer: got 4, expected a whole number from 0 to 3"),
        (
            "players = 5
seated = 2",
            "game.seated: got 2, expected 3 to 8, or 0 for a number drawn for each game",
        ),
        (
            "players = 8
seated = 0
dealer = 3",
            "game.dealer: got 3, expected a whole number from 0 to 2",
        ),
        (
            "players = 6
seated = 5
cards = 11",
            "game.cards: got 11, expected a whole number from 1 to 10",
        ),
        ("trump = 'cups'", "cups"),
        ("jokers = 2", "jokers"),
        ("cards = -1", "game.cards: got -1"),
    ] {
        let message = refusal(options);
        assert!(message.contains(part) && !message.contains('\n'), "{options}: {message}");
    }
}

#[test]
fn settings_round_trip() {
    let options = "players = 5\ncards = 7\nfull = true\ntrump = 'none'\ndealer = 3";
    let game = Blob::from_options(&options.parse().expect("TOML")).expect("valid");
    let again = Blob::from_options(&game.options()).expect("valid");
    assert_eq!(again.options(), game.options());
    assert_eq!((again.players, again.cards, again.full, again.dealer), (5, 7, true, 3));
    assert_eq!(again.trump, Trump::None);
}

#[test]
fn a_full_game_goes_down_and_up_again() {
    let game = Blob { players: 3, cards: 4, full: true, ..Blob::default() };
    let table = game.table(&game.init());
    let cards: Vec<usize> = (0..table.num_rounds()).map(|round| table.cards_in(round)).collect();
    assert_eq!(cards, [4, 3, 2, 1, 1, 1, 2, 3, 4]);
    assert_eq!(table.max_points(), cards.iter().map(|n| n + 10).sum::<usize>());
    assert_eq!(table.max_points_after(5), 12 + 13 + 14);
    let trumps: Vec<Trump> = (0..6).map(|round| table.trump_in(round)).collect();
    use Trump::{Clubs, Diamonds, Hearts, None, Spades};
    assert_eq!(trumps, [Spades, Hearts, Clubs, Diamonds, None, Spades]);
    assert_eq!((0..4).map(|round| table.dealer_in(round)).collect::<Vec<_>>(), [0, 1, 2, 0]);
}

#[test]
fn a_round_by_hand() {
    // Cards go to players 0, 1, 2 in turn. Spades are trump, player 0 deals.
    let deal = "2♠ K♥ Q♥ 3♦ 9♣ 10♥";
    let mut p = played("players = 3\ncards = 2", deal);
    assert_eq!(p.turn(), Turn::Player(1));
    assert_eq!(p.legal(), [0, 1, 2]);
    p.step_text("bid 1").expect("legal");
    p.step_text("0").expect("legal");
    // The dealer may not make the sum 2.
    assert_eq!(p.turn(), Turn::Player(0));
    assert_eq!(p.legal(), [0, 2]);
    p.step_text("BID 2").expect("legal");
    p.step_text("kh").expect("legal");
    // Player 2 must follow hearts and has two; player 0 has none and may play anything.
    assert_eq!(p.legal(), [13 + 8, 13 + 10]);
    p.step_text("10♥").expect("legal");
    assert_eq!(p.legal(), [0, 39 + 1]);
    p.step_text("2S").expect("legal");
    // The two of trumps has taken the trick.
    assert_eq!(p.turn(), Turn::Player(0));
    assert_eq!(state_of(&p).tricks[..3], [1, 0, 0]);
    assert_eq!(state_of(&p).voids, 0b0010);
    p.step_text("3D").expect("legal");
    p.step_text("9C").expect("legal");
    p.step_text("Q♥").expect("legal");
    assert_eq!(p.turn(), Turn::Over);
    assert_eq!(state_of(&p).tricks[..3], [2, 0, 0]);
    assert_eq!(p.game().scores(p.state()), [12.0, 0.0, 10.0]);
    // 12 - 5, 0 - 11 and 10 - 6 of 12 possible points.
    let returns = p.game().returns(p.state());
    for (got, right) in returns.iter().zip([7.0 / 12.0, -11.0 / 12.0, 4.0 / 12.0]) {
        assert!((got - right).abs() < 1e-6, "{returns:?}");
    }
}

#[test]
fn without_trump_the_suit_led_wins() {
    let mut p = played("players = 3\ncards = 1\ntrump = 'none'\ndealer = 2", "2♥ A♠ A♦ 1 bid0 1 2h AS");
    assert_eq!(state_of(&p).trick(), [13, 12]);
    p.step_text("A♦").expect("legal");
    assert_eq!(state_of(&p).tricks[..3], [1, 0, 0]);
    let error = p.step(0).expect_err("over").to_string();
    assert!(error.contains("the game is over"), "{error}");
}

#[test]
fn rounds_follow_each_other_and_search_stops_between_them() {
    let options = "players = 3\ncards = 2\nfull = true";
    let first = "2♠ K♥ Q♥ 3♦ 9♣ 10♥ 1 0 2 KH 10H 2S 3D 9C";
    let mut p = played(options, first);
    let game = Blob::from_options(&options.parse().expect("TOML")).expect("valid");
    assert!(!game.is_horizon(&game.init()));
    assert!(!game.is_horizon(&state_of(&p)));
    p.step_text("QH").expect("legal");
    let s = state_of(&p);
    assert!(game.is_horizon(&s));
    let (scores, round_points) = ([12, 0, 10, 0, 0, 0, 0, 0], [12, 0, 10, 0, 0, 0, 0, 0]);
    assert_eq!(s, State { scores, round_points, ..State::at_deal(&game.table(&s), 1) });
    assert_eq!((p.turn(), p.legal().len()), (Turn::Chance, 52));
    for observer in 0..3 {
        assert!(observation(&game, &s, observer).iter().all(|x| x.is_finite()));
    }
    p.step_text("A♥").expect("legal");
    assert!(!game.is_horizon(&state_of(&p)));
    p.step_text("2♥").expect("legal");
    p.step_text("2♣").expect("legal");
    // Player 1 deals now and hearts are trump.
    assert_eq!(p.turn(), Turn::Player(2));
    assert_eq!(p.legal(), [0, 1]);
}

#[test]
fn a_round_counts_alone_in_search() {
    let options = "players = 3\ncards = 2\nfull = true";
    let game = Blob::from_options(&options.parse().expect("TOML")).expect("valid");
    let single = Blob { full: false, ..game.clone() };
    let stage = |s: &State| {
        let mut out = [f32::NAN; 3];
        game.stage_returns(s, &mut out);
        out
    };
    let first = "2♠ K♥ Q♥ 3♦ 9♣ 10♥ 1 0 2 KH 10H 2S 3D 9C QH";
    let second = "2♠ 3♠ 4♠ 0 0 0 4♠ 2♠ 3♠";
    let after = |names: &str| state_of(&played(options, names));
    let (one, two) = (after(first), after(&format!("{first} {second}")));
    let mut alone = [f32::NAN; 3];
    single.returns(&state_of(&played("players = 3\ncards = 2", first)), &mut alone);
    assert_eq!(stage(&one), alone);
    // 10, 10 and 0 points of 11.
    assert_eq!((two.round, two.scores[..3].to_vec()), (2, vec![22, 10, 10]));
    assert_eq!(two.round_points[..3], [10, 10, 0]);
    for (got, right) in stage(&two).into_iter().zip([5.0 / 11.0, 5.0 / 11.0, -10.0 / 11.0]) {
        assert!((got - right).abs() < 1e-6, "{:?}", stage(&two));
    }
    // At the end of the last round, the result of the search is that round's, and the game's that of all rounds.
    let mut s = two;
    let mut legal = [0; NUM_CARDS];
    while game.turn(&s) != Turn::Over {
        assert!(game.legal(&s, History::default(), &mut legal) > 0);
        game.step(&mut s, legal[0], History::default());
    }
    let points = s.round_points.map(f32::from);
    let mut whole = [f32::NAN; 3];
    game.returns(&s, &mut whole);
    for player in 0..3 {
        let [left, right] = [1, 2].map(|steps| points[(player + steps) % 3]);
        let lead = (points[player] - (left + right) / 2.0) / 12.0;
        assert!((stage(&s)[player] - lead).abs() < 1e-6, "{:?}", stage(&s));
        let total = s.scores[..3].iter().sum::<u16>() - s.scores[player];
        let lead = (f32::from(s.scores[player]) - f32::from(total) / 2.0) / 57.0;
        assert!((whole[player] - lead).abs() < 1e-6, "{whole:?}");
    }
}

#[test]
fn a_table_with_empty_seats_is_observed_as_one_without_them() {
    for sight in [Sight::Hand, Sight::Deal] {
        let small = Blob { players: 4, cards: 6, full: true, network_sees: sight, ..Blob::default() };
        let large = Blob { players: 7, seated: 4, ..small.clone() };
        let drawn = Blob { seated: 0, ..large.clone() };
        let (mut start, small_len) = (drawn.init(), small.sizes().obs.len());
        assert_eq!(drawn.turn(&start), Turn::Chance);
        drawn.step(&mut start, 4, History::default());
        assert_eq!((start, large.init()), (small.init(), small.init()));
        let round_at = 3 * NUM_CARDS + 33 * 4;
        for s in random_states(&small, 1, 3) {
            for observer in 0..4 {
                let (seen, wide) = (observation(&small, &s, observer), observation(&large, &s, observer));
                let mut expected = seen[..round_at].to_vec();
                expected.extend([0.0; 33 * 3]);
                expected.extend(&seen[round_at..small.known_obs()]);
                if sight == Sight::Deal {
                    expected.extend(&seen[small.known_obs()..small_len - NUM_CARDS]);
                    expected.extend([0.0; NUM_CARDS * 3]);
                    expected.extend(&seen[small_len - NUM_CARDS..]);
                }
                assert_eq!(wide, expected);
                assert_eq!(observation(&drawn, &s, observer), expected);
            }
            assert_eq!((large.turn(&s), large.num_seated(&s, 7)), (small.turn(&s), 4));
        }
    }
}

#[test]
fn the_number_of_players_is_drawn() {
    let mut p = played("players = 6\ncards = 9\nseated = 0", "");
    assert_eq!((p.turn(), p.legal()), (Turn::Chance, vec![3, 4, 5, 6]));
    assert!(p.known_actions(Viewer::Public).is_empty());
    let mut six = p.clone();
    six.step_text("6").expect("a number of players");
    p.step_text("5 Players").expect("a number of players");
    assert_eq!(p.known_actions(Viewer::Public), [Some((5, "5 players".to_string()))]);
    // Six players share the pack: 8 cards for each.
    for (play, cards) in [(p, 45), (six, 48)] {
        let mut play = play;
        while play.turn() == Turn::Chance {
            let first = play.legal()[0];
            play.step(first).expect("legal");
        }
        assert_eq!(play.actions().len(), 1 + cards);
        assert_eq!(play.turn(), Turn::Player(1));
        assert_eq!(play.game().scores(play.state()), [0.0; 6]);
    }
}

#[test]
fn names_are_read_as_they_are_written() {
    for card in 0..NUM_CARDS as u16 {
        let name = names::card_name(card);
        assert_eq!(names::parse_card(&name), Some(card));
        assert_eq!(names::parse_card(&name.to_lowercase()), Some(card));
    }
    for (text, card) in
        [("KH", Some(24)), ("k♥\u{fe0f}", Some(24)), ("Ts", Some(8)), ("10 s", Some(8)), ("2d", Some(39))]
    {
        assert_eq!(names::parse_card(text), card, "{text}");
    }
    for text in ["", "H", "1H", "11H", "KX", "♥K", "KHH"] {
        assert_eq!(names::parse_card(text), None, "{text}");
    }
    assert_eq!(names::parse_bid("bid 12"), Some(12));
    assert_eq!(names::parse_bid("Bid3"), Some(3));
    assert_eq!(names::parse_bid("bid"), None);
}

#[test]
fn a_player_sees_the_own_cards_of_a_deal_and_all_bids_and_plays() {
    let p = played("players = 3\ncards = 2", "2♠ K♥ Q♥ 3♦ 9♣ 10♥ 1 0 2 KH");
    for player in 0..3 {
        let known = p.known_actions(Viewer::Player(player));
        let dealt: Vec<bool> = known[..6].iter().map(Option::is_some).collect();
        assert_eq!(dealt, (0..6).map(|k| k % 3 == player).collect::<Vec<_>>());
        assert!(known[6..].iter().all(Option::is_some), "{known:?}");
    }
    assert!(p.known_actions(Viewer::Public)[..6].iter().all(Option::is_none));
    let legal = |viewer| p.view(viewer).actions.iter().map(|a| a.action).collect::<Vec<u16>>();
    assert_eq!((legal(Viewer::Player(2)), legal(Viewer::Player(1))), (vec![21, 23], vec![]));
    assert_eq!(p.view(Viewer::Player(0)).last, [Spot::Card(24)]);
}

#[test]
fn observations_turn_with_the_observer() {
    let p = played("players = 3\ncards = 2", "2♠ K♥ Q♥ 3♦ 9♣ 10♥ 1 0 2 KH");
    let (game, s) = (Blob { players: 3, cards: 2, ..Blob::default() }, state_of(&p));
    let seats = 3 * NUM_CARDS;
    for observer in 0..3 {
        let seen = observation(&game, &s, observer);
        assert_eq!(seen.len(), 175 + 33 * 3);
        let hand: Vec<usize> = (0..NUM_CARDS).filter(|&card| seen[card] == 1.0).collect();
        assert_eq!(hand, [vec![0, 40], vec![33], vec![21, 23]][observer]);
        assert_eq!(seen[2 * NUM_CARDS + 24], 1.0);
        for seat in 0..3 {
            let player = (observer + seat) % 3;
            let block = &seen[seats + 33 * seat..][..33];
            // The suit and rank of K♥, best so far, are player 1's.
            let trick = if player == 1 { [0.0, 1.0, 0.0, 0.0, 12.0 / 13.0, 1.0] } else { [0.0; 6] };
            assert_eq!(block[..6], trick);
            let bid = block[6..20].iter().position(|&x| x == 1.0);
            assert_eq!(bid, Some([2, 1, 0][player]));
            assert_eq!(block[23], f32::from(player == 2), "bid = taken");
            assert_eq!(block[24] * 13.0, [2.0, 1.0, 2.0][player]);
            // Dealer 0, leader 1, to act 2.
            assert_eq!(block[29..32], [0, 1, 2].map(|p| f32::from(p == player)));
        }
        let round = &seen[seats + 99..];
        assert_eq!(round[..13], [1., 0., 0., 0., 0., 0., 1., 0., 0., 0., 0., 1., 0.]);
    }
}

/// The indices of the elements that are 1 in a block of 52 of the observation of the deal.
fn shown(game: &Blob, s: &State, observer: usize, block: usize) -> Vec<usize> {
    let seen = observation(game, s, observer);
    let start = game.known_obs() + NUM_CARDS * block;
    (0..NUM_CARDS).filter(|&i| seen[start + i] == 1.0).collect()
}

#[test]
fn a_deal_is_observed_by_the_ranks_of_its_live_cards() {
    let p = played("players = 3\ncards = 2", "2♠ K♥ Q♥ 3♦ 9♣ 10♥ 1 0 2 KH");
    let (hand, s) = (Blob { players: 3, cards: 2, ..Blob::default() }, state_of(&p));
    let deal = Blob { network_sees: Sight::Deal, ..hand.clone() };
    for observer in 0..3 {
        let seen = observation(&deal, &s, observer);
        assert_eq!(seen.len(), 175 + 33 * 3 + 52 * 4);
        assert_eq!(seen[..deal.known_obs()], observation(&hand, &s, observer));
        for seat in 0..3 {
            // 2♠ and 3♦; 9♣; Q♥ and 10♥, of which K♥ in the trick leaves them the second and third heart.
            let right = [vec![0, 39], vec![26], vec![14, 15]][(observer + seat) % 3].clone();
            assert_eq!(shown(&deal, &s, observer, seat), right, "observer {observer}, seat {seat}");
        }
        assert_eq!(shown(&deal, &s, observer, 3), [13]);
    }
    // With hearts as trumps they come first, then clubs, diamonds, spades.
    let hearts = Blob { trump: Trump::Hearts, ..deal };
    assert_eq!(shown(&hearts, &s, 0, 0), [26, 39]);
    assert_eq!(shown(&hearts, &s, 0, 2), [1, 2]);
}

#[test]
fn cards_out_of_play_change_nothing_of_a_deal() {
    let game = Blob { network_sees: Sight::Deal, ..Blob::default() };
    let mut moved = 0;
    for s in random_states(&game, 20, 4) {
        // A held card becomes the next lower one of its suit, where that one is in the stock.
        for card in (0..NUM_CARDS).filter(|card| card % 13 > 0) {
            let (from, to) = (1u64 << card, 1u64 << (card - 1));
            let Some(holder) = s.hands.iter().position(|hand| hand & from != 0) else { continue };
            if s.stock() & to == 0 {
                continue;
            }
            let mut other = s;
            other.hands[holder] ^= from | to;
            for observer in 0..4 {
                let deal = |s| observation(&game, s, observer)[game.known_obs()..].to_vec();
                assert_eq!(deal(&other), deal(&s));
            }
            moved += 1;
        }
    }
    assert!(moved > 1000, "{moved}");
}

#[test]
fn hand_sizes_follow_from_public_facts() {
    let game = Blob { players: 5, cards: 3, full: true, ..Blob::default() };
    for s in random_states(&game, 3, 9) {
        let seen = observation(&game, &s, 2);
        for seat in 0..5 {
            let size = seen[3 * NUM_CARDS + 33 * seat + 24] * 13.0;
            assert_eq!(size.round() as u32, s.hands[(2 + seat) % 5].count_ones());
        }
        assert!(seen.iter().all(|x| (-1.0..=1.0).contains(x)));
        let Turn::Player(player) = game.turn(&s) else { panic!("a decision") };
        let player = usize::from(player);
        assert_eq!(observation(&game, &s, player), observation(&game, &game.canonical(&s), player));
    }
}

#[test]
fn random_games_end_in_time_with_sums_of_zero() {
    for (players, cards, full) in [(3, 13, true), (4, 5, false), (4, 5, true), (8, 6, true), (5, 10, false)] {
        let game = Blob { players, cards, full, ..Blob::default() };
        let sizes = game.sizes();
        for seed in 0..4 {
            let mut batch = GameBatch::new(game.clone(), 3);
            let mut before = batch.clone();
            while batch.finished().iter().all(|&games| games == 0) {
                assert!(batch.legal(0).len() <= sizes.num_edges());
                before = batch.clone();
                batch.step_random(seed);
            }
            assert_eq!(before.plies()[0] as usize + 1, sizes.max_plies);
            let mut last = before.states()[0];
            game.step(&mut last, before.legal(0)[0], History::default());
            assert_eq!(game.turn(&last), Turn::Over);
            let mut returns = vec![0.0; players as usize];
            game.returns(&last, &mut returns);
            assert!(returns.iter().sum::<f32>().abs() < 1e-6, "{returns:?}");
            assert!(returns.iter().all(|r| (-1.0..=1.0).contains(r)));
        }
    }
}
