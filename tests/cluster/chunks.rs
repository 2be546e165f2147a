//! Chunks give back the games that were written. Changed bytes are refused or give other games of the rules.

use super::play::Setting;
use vecaz::batch::Playthrough;
use vecaz::cluster::Incarnation;
pub use vecaz::cluster::chunk::HEADER_BYTES;
use vecaz::cluster::chunk::{Chunk, FULL_CHUNK, Refusal};
use vecaz::game::Turn;
use vecaz::play::FinishedGame;
use vecaz::rng::{Key, Purpose, RngStream};
use vecaz::search::root::RowKey;

const WORKER: Incarnation = Incarnation(0x1234_5678_9abc_def0);
/// Offsets of the checksum in the header.
const CHECKSUM: std::ops::Range<usize> = 112..116;

/// Settings with random openings, proven values and dice.
fn settings() -> Vec<Setting> {
    let common = "
[search]
simulations = 8
cache_entries = 0
[selfplay]
games = 8
opening_plies = 3
";
    [
        "name = 'tic_tac_toe'",
        "name = 'connect_four'",
        "name = 'hex'\nsize = 4",
        "name = 'backgammon'\nshort_game = true",
    ]
    .map(|game| Setting::new(&format!("[game]\n{game}\n{common}")))
    .into()
}

fn chunk_of(setting: &Setting, games: &[FinishedGame]) -> Vec<u8> {
    let mut writer = setting.writer(WORKER);
    games.iter().for_each(|game| writer.push(game).expect("fits"));
    let (sequence, bytes) = writer.finish(3).expect("compressed");
    assert_eq!(sequence, 1);
    bytes
}

fn read(setting: &mut Setting, bytes: &[u8]) -> Result<Vec<FinishedGame>, Refusal> {
    let chunk = Chunk::parse(bytes, &setting.digest, &setting.limits)?;
    setting.reader.games(&chunk, setting.game.as_ref(), &setting.plan)
}

#[test]
fn a_chunk_gives_back_its_games_to_the_bit() {
    for mut setting in settings() {
        let games = setting.play(WORKER, 20);
        let bytes = chunk_of(&setting, &games);
        assert!(bytes.len() <= setting.limits.bytes());
        let chunk = Chunk::parse(&bytes, &setting.digest, &setting.limits).expect("whole");
        let header = chunk.header;
        assert_eq!((header.name().as_str(), header.incarnation, header.version), ("worker", WORKER.0, 3));
        assert_eq!(read(&mut setting, &bytes).expect("its games"), games, "{}", setting.game.name());
    }
}

#[test]
fn chunks_are_numbered_and_full_at_their_bound() {
    let setting = Setting::new("[search]\nsimulations = 2\ncache_entries = 0\n[selfplay]\ngames = 64");
    let games = setting.play(WORKER, 64);
    let mut writer = setting.writer(WORKER);
    for number in 1..=2 {
        let mut pushed = 0;
        while !writer.is_full() {
            writer.push(&games[pushed % games.len()]).expect("fits");
            pushed += 1;
        }
        assert!(pushed > FULL_CHUNK / 4096, "{pushed} games");
        assert_eq!(writer.finish(0).expect("compressed").0, number);
        assert!(writer.is_empty());
    }
}

#[test]
fn another_configuration_another_slot_and_another_protocol_are_refused() {
    let mut setting = Setting::new("[game]\nname = 'tic_tac_toe'\n[selfplay]\ngames = 4");
    let other = Setting::new("[game]\nname = 'tic_tac_toe'\n[selfplay]\ngames = 4\nopening_plies = 1");
    let games = setting.play(WORKER, 3);
    assert_eq!(read(&mut setting, &chunk_of(&other, &games)), Err(Refusal::Configuration));
    let others = setting.play(Incarnation(7), 1);
    let bytes = chunk_of(&setting, &others);
    let error = read(&mut setting, &bytes).expect_err("slots of another process");
    assert!(error.to_string().contains("expected a slot of its sender"), "{error}");
    let mut bytes = chunk_of(&setting, &games);
    bytes[4] += 1;
    sign(&mut bytes);
    let error = read(&mut setting, &bytes).expect_err("another protocol").to_string();
    assert_eq!(error, "protocol 2, expected 1");
    // Devices, threads, number formats and the number of games at once may differ.
    let same = Setting::new(
        "[game]\nname = 'tic_tac_toe'\n[net]\nprecision = 'bf16'\n[run]\nthreads = 3\n[selfplay]\ngames = 9",
    );
    assert_eq!(same.digest, setting.digest);
}

/// Writes the right checksum into the header.
fn sign(bytes: &mut [u8]) {
    bytes[CHECKSUM].fill(0);
    let sum = crc32c::crc32c(bytes);
    bytes[CHECKSUM].copy_from_slice(&sum.to_le_bytes());
}

/// Replaces a chunk's body by `raw`, compressed, with right sizes and checksum.
pub fn replace_body(chunk: &mut Vec<u8>, raw: &[u8]) {
    let body = zstd::bulk::compress(raw, 1).expect("in memory");
    chunk.truncate(HEADER_BYTES);
    chunk[72..76].copy_from_slice(&(raw.len() as u32).to_le_bytes());
    chunk[76..80].copy_from_slice(&(body.len() as u32).to_le_bytes());
    chunk.extend(body);
    sign(chunk);
}

/// Changes one to three bytes at random offsets.
pub fn change(bytes: &mut Vec<u8>, rng: &mut RngStream) {
    for _ in 0..1 + rng.below(3) {
        let index = rng.below(bytes.len());
        let extremes = [0, 1, 127, 128, 255, bytes[index] ^ 1 << rng.below(8), rng.below(256) as u8];
        match rng.below(12) {
            0 => bytes.truncate(index.max(1)),
            1 => bytes.insert(index, extremes[rng.below(7)]),
            2 => drop((bytes.len() > 1).then(|| bytes.remove(index))),
            _ => bytes[index] = extremes[rng.below(7)],
        }
    }
}

/// The bytes of a chunk after changes: at any offset; in the header or in the body, with a right checksum; or in the games before
/// compression, with right sizes and checksum.
pub fn forged(bytes: &[u8], raw: &[u8], rng: &mut RngStream) -> Vec<u8> {
    let mut out = bytes.to_vec();
    match rng.below(5) {
        0 => change(&mut out, rng),
        1 => {
            let mut header = out[..HEADER_BYTES].to_vec();
            change(&mut header, rng);
            header.resize(HEADER_BYTES, 0);
            out[..HEADER_BYTES].copy_from_slice(&header);
            sign(&mut out);
        }
        2 => {
            let mut body = out.split_off(HEADER_BYTES);
            change(&mut body, rng);
            out[76..80].copy_from_slice(&(body.len() as u32).to_le_bytes());
            out.extend(body);
            sign(&mut out);
        }
        _ => {
            let mut games = raw.to_vec();
            change(&mut games, rng);
            replace_body(&mut out, &games);
        }
    }
    out
}

/// Checks a game against the rules and its key: an oracle that shares no code with the replay of chunks.
fn check(setting: &Setting, finished: &FinishedGame) -> Result<(), String> {
    let mut play = Playthrough::new(setting.game.clone());
    let mut samples = finished.samples.iter().peekable();
    for (ply, &action) in finished.actions.iter().enumerate() {
        let key = RowKey {
            seed: setting.plan.seed,
            slot: finished.slot,
            game: finished.game,
            determinisation: 0,
            ply: ply as u64,
        };
        let legal = play.legal();
        match play.turn() {
            Turn::Chance => {
                let probs = setting.game.chance_probs(play.state(), &legal);
                let dealt = legal[key.key(Purpose::Chance).stream().weighted(&probs)];
                if action != dealt {
                    return Err(format!("ply {ply}: {action} dealt, its key deals {dealt}"));
                }
            }
            Turn::Player(player) => {
                let fits = |sample: &&vecaz::play::Sample| {
                    sample.state == play.state() && sample.player == player && sample.actions == legal
                };
                if let Some(sample) = samples.next_if(fits) {
                    let sum: f32 = sample.policy.iter().sum();
                    if (sum - 1.0).abs() > 2e-3 || sample.policy.iter().any(|p| !(0.0..=1.01).contains(p)) {
                        return Err(format!("ply {ply}: the policy {:?}", sample.policy));
                    }
                    if sample.values.iter().any(|value| !(-1.01..=1.01).contains(value)) {
                        return Err(format!("ply {ply}: the values {:?}", sample.values));
                    }
                }
            }
            Turn::Over => return Err(format!("ply {ply} after the end")),
        }
        play.step(action).map_err(|e| e.to_string())?;
    }
    if play.turn() != Turn::Over || samples.peek().is_some() {
        return Err("not over, or with samples of no position".into());
    }
    match setting.game.returns(play.state()) == finished.returns {
        true => Ok(()),
        false => Err("other returns".into()),
    }
}

#[test]
fn changed_chunks_give_no_games_outside_the_rules() {
    let mut rng = Key::new(11, Purpose::Evaluation).stream();
    let (mut refused, mut taken) = (0, 0);
    for mut setting in settings() {
        let games = setting.play(WORKER, 3);
        games.iter().for_each(|game| check(&setting, game).expect("played by the rules"));
        let bytes = chunk_of(&setting, &games);
        let raw_bytes = u32::from_le_bytes(bytes[72..76].try_into().expect("four")) as usize;
        let raw = zstd::bulk::decompress(&bytes[HEADER_BYTES..], raw_bytes).expect("whole");
        for number in 0..26_000 {
            match read(&mut setting, &forged(&bytes, &raw, &mut rng)) {
                Err(_) => refused += 1,
                Ok(found) => {
                    taken += 1;
                    for game in &found {
                        check(&setting, game)
                            .unwrap_or_else(|e| panic!("{} {number}: {e}", setting.game.name()));
                    }
                }
            }
        }
    }
    // Taken chunks differ in names, versions and low bits of probabilities.
    assert!(refused > 60_000 && taken > 1_000, "{refused} refused, {taken} taken");
}
