use super::*;
use crate::device_struct::DeviceType;
use crate::game::check_device_header;
use crate::rng::{Key, Purpose};
use board::flip_square;

#[test]
fn generated_header_is_up_to_date() {
    let definitions =
        [board::device_constants(), moves::device_constants(), Outcome::definition(), State::definition()];
    check_device_header::<Chess>("", &definitions);
}

/// Plays games by name and keeps the keys that repetition needs.
struct Line {
    game: Chess,
    state: State,
    history: Vec<u64>,
}

impl Line {
    fn new(options: &str) -> Self {
        let game = Chess::from_options(&options.parse().expect("TOML")).expect("valid");
        Self { state: game.init(), game, history: Vec::new() }
    }

    fn from(fen: &str) -> Self {
        Self::new(&format!("fen = \"{fen}\""))
    }

    fn play(&mut self, moves: &str) -> &mut Self {
        for name in moves.split_whitespace() {
            let history = History { played: &self.history, path: &[] };
            let action = self.game.parse_action(&self.state, history, name);
            let action = action.unwrap_or_else(|| panic!("{name} in {}", self.game.to_fen(&self.state)));
            let key = self.game.history_key(&self.state);
            self.game.step(&mut self.state, action, history);
            self.history.push(key);
        }
        self
    }

    fn fen(&self) -> String {
        self.game.to_fen(&self.state)
    }
}

const KIWIPETE: &str = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1";

/// Known numbers of move sequences of 4 and 5 (position 3: 5 and 6) moves (chessprogramming wiki, "Perft Results"). Builds
/// without optimisation stop at the shallower.
#[test]
fn perft_of_the_six_positions() {
    for (fen, depth, shallow, deep) in [
        (START_FEN, 4, 197_281, 4_865_609),
        (KIWIPETE, 4, 4_085_603, 193_690_690),
        ("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", 5, 674_624, 11_030_083),
        ("r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1", 4, 422_333, 15_833_292),
        ("r2q1rk1/pP1p2pp/Q4n2/bbp1p3/Np6/1B3NBn/pPPP1PPP/R3K2R b KQ - 0 1", 4, 422_333, 15_833_292),
        ("rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8", 4, 2_103_487, 89_941_194),
        (
            "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
            4,
            3_894_594,
            164_075_551,
        ),
    ] {
        let line = Line::from(fen);
        assert_eq!(line.fen(), fen);
        assert_eq!(line.game.perft(&line.state, depth), shallow, "{fen}");
        if !cfg!(debug_assertions) {
            assert_eq!(line.game.perft(&line.state, depth + 1), deep, "{fen}");
        }
    }
}

#[test]
fn the_most_legal_moves_fit() {
    let line = Line::from("R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1");
    assert_eq!(line.game.perft(&line.state, 1), MAX_LEGAL as u64);
}

#[test]
fn actions_are_numbered_as_in_pgx() {
    let mut line = Line::new("");
    let mut legal = [0; MAX_LEGAL];
    let n = line.state.legal(&mut legal);
    // INIT_LEGAL_ACTION_MASK of pgx 2.6.0.
    let expected = [
        89, 90, 652, 656, 673, 674, 1257, 1258, 1841, 1842, 2425, 2426, 3009, 3010, 3572, 3576, 3593, 3594,
        4177, 4178,
    ];
    assert_eq!(legal[..n], expected);
    line.play("e4");
    let n = line.state.legal(&mut legal);
    assert_eq!(legal[..n], expected, "black sees the same squares");
    assert_eq!(line.game.action_name(&line.state, 652), "b8a6");
}

#[test]
fn fens_round_trip_and_keys_are_incremental() {
    let mut line = Line::new("");
    let moves = "e4 a6 e5 d5 exd6 Nf6 dxc7 e6 Nf3 Bd6 cxb8=N O-O Bxa6 bxa6 O-O Rxb8 Kh1 Qe7";
    for name in moves.split_whitespace() {
        line.play(name);
        let fen = line.fen();
        let again = line.game.from_fen(&fen).expect(&fen);
        assert_eq!(State { plies: 0, ..line.state }, again, "{fen}");
        assert_eq!(line.state.hash, line.state.fresh_hash());
    }
    assert_eq!(line.fen(), "1rb2rk1/4qppp/p2bpn2/8/8/5N2/PPPP1PPP/RNBQ1R1K w - - 2 10");
}

#[test]
fn en_passant_counts_only_where_it_is_legal() {
    // No capture is possible after the double step, so the FEN has no square.
    assert_eq!(Line::new("").play("e4").state.en_passant, 0);
    // The taker is pinned along the fifth rank by both pawns leaving it.
    let mut pinned = Line::from("8/2p5/8/KP5r/8/8/8/7k b - - 0 1");
    assert_eq!(pinned.play("c7c5").state.en_passant, 0);
    let mut free = Line::from("8/2p5/K7/1P6/8/8/8/7k b - - 0 1");
    assert_eq!(free.play("c7c5").fen(), "8/8/K7/1Pp5/8/8/8/7k w - c6 0 2");
    assert_eq!(free.play("bxc6").fen(), "8/8/K1P5/8/8/8/8/7k b - - 0 2");
}

/// A bishop told apart by its rank reads like a move of the piece on the b-file.
#[test]
fn a_bishop_of_a_rank_is_not_the_piece_on_the_b_file() {
    let fen = "k7/8/8/5B2/8/8/8/1Q3BK1 w - - 0 1";
    assert_eq!(Line::from(fen).play("B1d3").fen(), "k7/8/8/5B2/8/3B4/8/1Q4K1 b - - 1 1");
    assert_eq!(Line::from(fen).play("b1d3").fen(), "k7/8/8/5B2/8/3Q4/8/5BK1 b - - 1 1");
    assert_eq!(Line::from(fen).play("B1D3").fen(), "k7/8/8/5B2/8/3Q4/8/5BK1 b - - 1 1");
}

#[test]
fn endings() {
    use Outcome::*;
    let tours = "Nf3 Nf6 Ng1 Ng8 ";
    for (fen, moves, expected) in [
        (START_FEN, "f3 e5 g4 Qh4#", BlackMates),
        (START_FEN, "e4 e5 Qh5 Nc6 Bc4 Nf6 Qxf7#", WhiteMates),
        ("7k/5Q2/8/8/8/8/8/K7 w - - 0 1", "f7f6 h8g8 f6e7 g8h8 e7f7", Stalemate),
        ("7k/8/8/8/8/8/1p6/K7 w - - 0 1", "Kxb2", InsufficientMaterial),
        ("7k/8/8/8/8/8/1p6/KN6 w - - 0 1", "Kxb2", InsufficientMaterial),
        ("5b1k/8/8/8/8/8/1p6/K1B5 w - - 0 1", "Kxb2", InsufficientMaterial),
        ("2b4k/8/8/8/8/8/1p6/K1B5 w - - 0 1", "Kxb2", None),
        ("5b1k/8/8/8/8/8/1p6/K1N5 w - - 0 1", "Kxb2", None),
        (START_FEN, "Nf3 Nf6 Ng1 Ng8", None),
        (START_FEN, &tours.repeat(2), Repetition),
        // Castling rights differ the first time round.
        ("4k3/8/8/8/8/8/8/4K2R w K - 0 1", "Ke2 Ke7 Ke1 Ke8 Ke2 Ke7 Ke1 Ke8", None),
        ("4k3/8/8/8/8/8/8/4K2R w K - 0 1", "Ke2 Ke7 Ke1 Ke8 Ke2 Ke7 Ke1 Ke8 Ke2", Repetition),
        ("6k1/8/8/8/8/8/8/K6R w - - 98 90", "Kb1", None),
        ("6k1/8/8/8/8/8/8/K6R w - - 99 90", "Kb1", FiftyMoves),
        ("7k/8/6K1/8/8/8/8/R7 w - - 99 90", "Ra8", WhiteMates),
        ("6k1/7p/8/8/8/8/8/K6R w - - 99 90", "Rxh7", None),
    ] {
        assert_eq!(Line::from(fen).play(moves).state.outcome, expected as u8, "{fen} {moves}");
    }
    assert_eq!(Line::new("max_plies = 3").play("e4 e5 d4").state.outcome, TooLong as u8);
}

#[test]
fn the_mate_counts_for_the_winner() {
    let mut line = Line::new("");
    let mut returns = [0.0; 2];
    line.play("f3 e5 g4 Qh4");
    line.game.returns(&line.state, &mut returns);
    assert_eq!(returns, [-1.0, 1.0]);
}

#[test]
fn names_are_read() {
    let castle = Line::from("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1");
    let read = |line: &Line, text: &str| line.game.parse_action(&line.state, History::default(), text);
    let name = |line: &Line, action: u16| line.game.action_name(&line.state, action);
    for (text, expected) in [("O-O", "e1g1"), ("0-0-0", "e1c1"), ("E1G1", "e1g1"), ("Rxa8+", "a1a8")] {
        assert_eq!(read(&castle, text).map(|a| name(&castle, a)).as_deref(), Some(expected), "{text}");
    }
    let knights = Line::from("4k3/8/8/8/8/8/4K3/1N3N2 w - - 0 1");
    assert_eq!(read(&knights, "Nd2"), None, "two knights can");
    assert_eq!(read(&knights, "Nbd2").map(|a| name(&knights, a)).as_deref(), Some("b1d2"));
    let promotion = Line::from("1n2k3/2P5/8/8/8/8/8/4K3 w - - 0 1");
    assert_eq!(read(&promotion, "c8"), None, "promotion must be named");
    for (text, expected) in [("cxb8=R+", "c7b8r"), ("c8=Q", "c7c8q"), ("c7c8N", "c7c8n")] {
        assert_eq!(read(&promotion, text).map(|a| name(&promotion, a)).as_deref(), Some(expected), "{text}");
    }
    // FIDE has no sign before the piece.
    for (text, expected) in [("c8Q+", "c7c8q"), ("cxb8B", "c7b8b"), ("c8R", "c7c8r"), ("Kd1", "e1d1")] {
        assert_eq!(read(&promotion, text).map(|a| name(&promotion, a)).as_deref(), Some(expected), "{text}");
    }
    for text in ["c8K", "c8QQ", "cQ", "Q", "Kd1Q"] {
        assert_eq!(read(&promotion, text), None, "{text}");
    }
    for text in ["", "♞c3", "x", "e9", "Pe4", "c8=", "c8=QQ"] {
        assert_eq!(read(&castle, text), None, "{text}");
    }
}

#[test]
fn wrong_positions_are_refused_in_one_sentence() {
    for (fen, part) in [
        ("", "4 to 6 fields"),
        ("8/8/8/8/8/8/8 w - - 0 1", "8 ranks"),
        (
            "rnbqkbnr/ppppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
            "(ppppppppp in rank 7), expected 8 squares",
        ),
        (
            "rnbqkbnr/pppppppx/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
            "(x in rank 7), expected a piece of pnbrqk",
        ),
        ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR x KQkq - 0 1", "w or b"),
        ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KX - 0 1", "castling rights"),
        ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKB1R w KQkq e9 0 1", "en passant"),
        ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 100 1", "halfmove"),
        ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 0", "full move"),
        ("8/8/8/8/8/8/8/K7 w - - 0 1", "(0 black kings), expected one"),
        ("k7/8/8/8/8/8/8/K6P w - - 0 1", "pawns"),
        ("k7/8/8/8/8/8/PPPPPPPP/K1QQ4 w - - 0 1", "promoted"),
        ("4k3/8/8/8/8/8/8/4K2R w Q - 0 1", "castling right Q"),
        ("4k2r/8/8/8/8/8/8/4K3 w q - 0 1", "castling right q"),
        ("4k3/8/8/8/8/8/8/4RK2 w - - 0 1", "not to move"),
        ("4k3/8/8/8/8/8/8/4K3 w - - 0 1", "(the game is over), expected"),
        ("R3k3/8/4K3/8/8/8/8/8 b - - 0 1", "(the game is over), expected"),
    ] {
        let options: toml::Table = format!("fen = \"{fen}\"").parse().expect("TOML");
        let message = Chess::from_options(&options).map(drop).expect_err(fen).to_string();
        assert!(
            message.contains(part) && message.contains("game.fen") && !message.contains('\n'),
            "{message}"
        );
    }
}

#[test]
fn observation_is_the_movers() {
    let mut line = Line::new("");
    let mut white = vec![0.5; PLANES * 64];
    let mut black = white.clone();
    line.game.observe(&line.state, 0, &mut white);
    assert_eq!(white[6 * 8..7 * 8], [1.0; 8], "own pawns on the second row from below");
    assert_eq!(white[5 * 64 + 7 * 8 + 4], 1.0, "own king on e1");
    assert_eq!(white[11 * 64 + 4], 1.0, "the other king on e8");
    line.play("Nf3 Nf6 Ng1 Ng8");
    line.game.observe(&line.state, 0, &mut white);
    line.game.observe(&line.state, 1, &mut black);
    assert_eq!(white[..12 * 64], black[..12 * 64], "the start is symmetric");
    assert_eq!((white[12 * 64], white[18 * 64], white[19 * 64]), (1.0, 0.04, 0.0));
    assert_eq!(black[19 * 64], 1.0);
}

/// The point of the observation that a move is numbered by has the piece that moves, for both colours.
#[test]
fn a_move_is_at_the_point_of_its_piece() {
    for fen in [KIWIPETE, &KIWIPETE.replace(" w ", " b ")] {
        let Line { game, state, .. } = Line::from(fen);
        let Turn::Player(mover) = game.turn(&state) else { panic!("{fen}: over") };
        let sizes = game.sizes();
        let PointActions { planes, order } = sizes.point_actions.expect("moves are at squares");
        let (mut obs, mut legal) = (vec![0.0; sizes.obs.len()], vec![0; sizes.max_legal]);
        game.observe(&state, mover, &mut obs);
        let count = game.legal(&state, History::default(), &mut legal);
        let points: Vec<usize> =
            legal[..count].iter().map(|&action| order.point(usize::from(action) / planes, [8, 8])).collect();
        let has_own = |point: &usize| obs.chunks_exact(64).take(6).any(|plane| plane[*point] == 1.0);
        assert!(count > 40 && points.iter().all(has_own), "{fen}: {points:?}");
    }
}

#[test]
fn attacked_squares_are_those_with_attackers() {
    let options = "network_sees = 'attacks'".parse().expect("TOML");
    let game = Chess::from_options(&options).expect("valid");
    let mut rng = Key::new(3, Purpose::Evaluation).stream();
    for _ in 0..5 {
        let mut s = game.init();
        while let Turn::Player(player) = game.turn(&s) {
            for viewer in [player, 1 - player] {
                let mut planes = vec![f32::NAN; game.sizes().obs.len()];
                game.observe(&s, viewer, &mut planes);
                let view = if viewer == s.colour { s } else { s.turned() };
                let turned = view.turned();
                for square in 0..64 {
                    // Attackers of the side to move's square are the other side's: once as the view has it, once turned.
                    let own = turned
                        .attackers(flip_square(square), turned.occupied(), turned.sides[1])
                        .count_ones();
                    let other = view.attackers(square, view.occupied(), view.sides[1]).count_ones();
                    let at = notation::obs_squares(1 << square).next().expect("one");
                    let seen = [21, 22, 23, 24].map(|plane| planes[plane * 64 + at] == 1.0);
                    assert_eq!(
                        seen,
                        [own > 0, own > 1, other > 0, other > 1],
                        "{} {square}",
                        game.to_fen(&s)
                    );
                }
            }
            let mut legal = [0; MAX_LEGAL];
            let n = s.legal(&mut legal);
            game.step(&mut s, legal[rng.below(n)], History::default());
        }
    }
}
