//! Game files that no program wrote: SGF, PGN, FEN, matches, JSON and positions with letters changed, lost and doubled. Each is read or
//! refused in one line.

use vecaz::batch::Playthrough;
use vecaz::game::set_up::PlacedPieces;
use vecaz::game::{Turn, view::Viewer};
use vecaz::records::{Format, Players, read};
use vecaz::registry::Registry;
use vecaz::rng::{Key, Purpose, RngStream};

/// Files of the default test; the variable VECAZ_FILES sets another number.
const FILES: u64 = 6000;

fn num_files() -> u64 {
    std::env::var("VECAZ_FILES").map_or(FILES, |text| text.parse().expect("a number"))
}

/// Files that are right: random games in all formats, and by hand what vecaz does not write.
fn valid_files(registry: &Registry) -> Vec<String> {
    let mut files: Vec<String> = [
        "(;FF[4]GM[1]SZ[9]HA[2]AB[cg][gc]PL[W]C[a \\] b];W[ee](;B[ed];W[de])(;B[dd]))",
        "(;GM[2]SZ[8]AB[ed][de]AW[dd][ee];B[ef];W[df])",
        "[Event \"?\"]\n[FEN \"4k3/8/8/8/8/8/8/4K2R w K - 0 1\"]\n\n1. O-O {castles} Kd7 $1 (1... Ke7) 2. Rd1+ *\n",
        "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 1/2-1/2",
        "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
        "{\"format\":\"vecaz game\",\"version\":1,\"game\":\"go\",\"options\":{\"size\":5},\"placed\":{\"cells\":\"0.1......................\",\"player\":1},\"actions\":[12,13]}",
    ]
    .map(str::to_string)
    .into();
    for (name, options) in [
        ("go", "size = 5"),
        ("hex", "size = 4\nswap = true"),
        ("gomoku", "size = 7"),
        ("othello", "size = 6"),
        ("chess", "max_plies = 60"),
        ("backgammon", ""),
        ("blob", "players = 3\ncards = 3"),
        ("clique", ""),
    ] {
        let game = registry.game(name, &options.parse().expect("TOML")).expect("valid");
        let mut play = Playthrough::new(game.clone());
        while play.turn() != Turn::Over && play.actions().len() < 80 {
            let legal = play.legal();
            let mut rng = Key::new(3, Purpose::Evaluation).with(play.actions().len() as u64).stream();
            play.step(legal[rng.below(legal.len())]).expect("legal");
        }
        for format in Format::of(game.as_ref()) {
            files.extend(format.write(&play, &Players::default()));
        }
    }
    files
}

/// A file with one to six changes of its letters, words and lines.
fn changed(rng: &mut RngStream, file: &str) -> String {
    const PIECES: [&str; 24] = [
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ";",
        "\"",
        "\\",
        "0",
        "-1",
        "99999999999999999999",
        "1e300",
        "null",
        "tt",
        "pass",
        "AB[aa:cc]",
        "PL[X]",
        "SZ[19:3]",
        "O-O-O",
        "e8=Q#",
        "\u{feff}",
        "\u{202e}Ä",
        "\0",
    ];
    let mut letters: Vec<char> = file.chars().collect();
    for _ in 0..1 + rng.below(6) {
        let at = rng.below(letters.len() + 1);
        let other = rng.below(letters.len() + 1);
        match rng.below(6) {
            0 if at < letters.len() => drop(letters.remove(at)),
            1 => letters.truncate(at.max(1)),
            2 => drop(letters.splice(at..at, PIECES[rng.below(PIECES.len())].chars())),
            3 if at < letters.len() && other < letters.len() => letters.swap(at, other),
            4 => {
                let (from, to) = (at.min(other), at.max(other).min(at.min(other) + 40));
                let part: Vec<char> = letters[from..to.min(letters.len())].to_vec();
                letters.splice(at..at, part);
            }
            _ if at < letters.len() => letters[at] = char::from(32 + rng.below(95) as u8),
            _ => {}
        }
    }
    letters.into_iter().collect()
}

#[test]
fn changed_game_files_are_read_or_refused_in_a_line() {
    let registry = Registry::built_in();
    let files = valid_files(&registry);
    for file in &files {
        read(file, &registry).unwrap_or_else(|e| panic!("{e}: {file}"));
    }
    let (mut taken, mut refused) = (0, 0);
    for number in 0..num_files() {
        let mut rng = Key::new(41, Purpose::Evaluation).with(number).stream();
        let file = changed(&mut rng, &files[number as usize % files.len()]);
        match read(&file, &registry) {
            Ok(play) => {
                taken += 1;
                assert!(play.turn() == Turn::Over || !play.legal().is_empty());
            }
            Err(error) => {
                refused += 1;
                let text = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(text.len() > 5 && text.len() < 4000, "{text}");
            }
        }
    }
    eprintln!("{} files: {taken} read, {refused} refused", taken + refused);
    assert!(taken > num_files() / 50 && refused > num_files() / 4, "{taken} {refused}");
}

/// Random pieces on the boards of all games: a position of a game in progress, or a line that says why not.
#[test]
fn random_positions_are_set_up_or_refused_in_a_line() {
    let registry = Registry::built_in();
    let (mut taken, mut refused) = (0, 0);
    for number in 0..num_files() {
        let mut rng = Key::new(43, Purpose::Evaluation).with(number).stream();
        let names = registry.names();
        let name = names[number as usize % names.len()];
        let options = match name {
            "hex" => "size = 3\nswap = true",
            "gomoku" | "go" => "size = 5",
            "othello" => "size = 6",
            "connect_four" => "rows = 3\ncolumns = 3\nconnect = 3",
            _ => "",
        };
        let game = registry.game(name, &options.parse().expect("TOML")).expect("valid");
        let start = PlacedPieces::of(&Playthrough::new(game.clone()).view(Viewer::All), 0);
        let mut cells: Vec<char> = start.map(|start| start.cells.chars().collect()).unwrap_or_default();
        let letters: &[u8] = if rng.below(20) == 0 { b".0123456789abz?" } else { b"...01" };
        for _ in 0..rng.below(12) {
            match cells.len() {
                0 => cells.push('0'),
                count => cells[rng.below(count)] = char::from(letters[rng.below(letters.len())]),
            }
        }
        if rng.below(30) == 0 {
            cells.pop();
        }
        let placed = PlacedPieces {
            cells: cells.into_iter().collect(),
            player: if rng.below(20) == 0 { 2 } else { rng.below(2) as u8 },
        };
        match Playthrough::set_up(game, &placed) {
            Ok(mut play) => {
                taken += 1;
                assert!(matches!(play.turn(), Turn::Player(_)), "{name} {placed:?}");
                while play.turn() != Turn::Over && play.actions().len() < 400 {
                    let legal = play.legal();
                    play.step(legal[rng.below(legal.len())]).expect("legal");
                }
            }
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().contains('\n'), "{error}");
            }
        }
    }
    eprintln!("{} positions: {taken} set up, {refused} refused", taken + refused);
    assert!(taken > num_files() / 50 && refused > num_files() / 4, "{taken} {refused}");
}
