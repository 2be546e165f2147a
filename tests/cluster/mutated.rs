//! Worker and `vecaz top` on changed data of a run: no panic, but one sentence or a value that a run may have. Other tests cover
//! chunks, polls, weights and results of evaluations.

use super::chunks::change;
use super::play::Setting;
use super::server::{Redis, TINY, find_worker, publish};
use vecaz::cluster::digest;
use vecaz::cluster::overview::Overview;
use vecaz::cluster::published::{PublishedRun, hex, taken_polls};
use vecaz::cluster::status::{TimeShares, WorkerStatus};
use vecaz::cluster::strict::epoch_slots::EpochSlots;
use vecaz::cluster::strict::partitions;
use vecaz::config::Layers;
use vecaz::play::{GameSlot, new_slots};
use vecaz::registry::any_game;
use vecaz::report::metrics::EpochRecord;
use vecaz::report::workers::{WorkerCounts, WorkerShare};
use vecaz::rng::{Key, Purpose, RngStream};
use vecaz::run::memory::peak_bytes;

fn random() -> RngStream {
    Key::new(14, Purpose::Evaluation).stream()
}

fn changed(bytes: &[u8], rng: &mut RngStream) -> Vec<u8> {
    let mut out = bytes.to_vec();
    change(&mut out, rng);
    out
}

/// Checks that the text is one line, not empty and without control characters.
fn check_sentence(text: &str) {
    assert!(!text.is_empty() && !text.chars().any(char::is_control), "{text:?}");
}

#[test]
fn changed_epoch_slots_are_refused_or_games_in_progress_of_the_rules() {
    let mut rng = random();
    let (mut refused, mut taken) = (0, 0);
    for (game, count) in
        [("name = 'hex'\nsize = 4", 9_000), ("name = 'backgammon'\nshort_game = true", 3_000)]
    {
        let setting = Setting::new(&format!(
            "[game]\n{game}\n[selfplay]\ngames = 66\nopening_plies = 4\n[search]\nnodes = 64"
        ));
        let game = setting.game.as_ref();
        let slots = new_slots(0, 66, game, &setting.plan);
        let partition = partitions(66).nth(1).expect("two partitions");
        let bytes = EpochSlots::of(&slots).partitions.swap_remove(1);
        let kept: Vec<GameSlot> = slots[partition.clone()].iter().map(GameSlot::without_samples).collect();
        assert!(EpochSlots::read(&bytes, partition.clone(), game).as_ref() == Ok(&kept), "what was written");
        let raw = postcard::to_stdvec(&kept).expect("in memory");
        for number in 0..count {
            // Any bytes changed, or only the body or the slots, with a right checksum.
            let forged = match rng.below(4) {
                0 => changed(&bytes, &mut rng),
                1 => signed(changed(&bytes[4..], &mut rng)),
                _ => signed(zstd::bulk::compress(&changed(&raw, &mut rng), 1).expect("in memory")),
            };
            match EpochSlots::read(&forged, partition.clone(), game) {
                Err(what) => {
                    refused += 1;
                    check_sentence(&what);
                }
                Ok(read) => {
                    taken += 1;
                    assert_eq!(read.len(), partition.len());
                    for (slot, number_of) in read.iter().zip(partition.clone()) {
                        slot.check(game, number_of as u64).unwrap_or_else(|e| panic!("{number}: {e}"));
                    }
                }
            }
        }
    }
    // Taken slots differ in numbers of games.
    assert!(refused > 6_000 && taken > 10, "{refused} refused, {taken} taken");
}

/// A body after its checksum.
fn signed(body: Vec<u8>) -> Vec<u8> {
    [&crc32c::crc32c(&body).to_le_bytes()[..], &body].concat()
}

#[test]
fn changed_states_and_numbers_are_refused_in_one_sentence_or_read() {
    let mut rng = random();
    let state = PublishedRun {
        protocol: 1,
        run: 7,
        generation: 1 << 63,
        digest: [0xa5; 32],
        version: 12,
        sha256: [3; 32],
        window: 1 << 20,
    };
    let whole = state.fields().map(|(_, value)| Some(value.into_bytes()));
    assert_eq!(PublishedRun::parse(&whole), Ok(state));
    let (mut refused, mut taken) = (0, 0);
    for _ in 0..20_000 {
        let mut values = whole.to_vec();
        let field = rng.below(values.len());
        values[field] =
            values[field].as_deref().map(|value| changed(value, &mut rng)).filter(|_| rng.below(20) > 0);
        match PublishedRun::parse(&values[..values.len() - usize::from(rng.below(20) == 0)]) {
            Ok(_) => taken += 1,
            Err(what) => {
                refused += 1;
                check_sentence(&what);
            }
        }
        // The text of the number of polls is arbitrary.
        let polls = changed(b"12 345", &mut rng);
        let version = String::from_utf8(polls.clone())
            .ok()
            .and_then(|text| Some(text.split_once(' ')?.0.parse::<u64>().ok()));
        let of_this = version.flatten() == Some(12);
        assert!(of_this || taken_polls(&polls, 12).is_none(), "{polls:?}");
    }
    assert_eq!(
        [&b"12 18446744073709551615"[..], b"12 -1", b"12", b"13 4", b"\xff 1"]
            .map(|text| taken_polls(text, 12)),
        [Some(u64::MAX), None, None, None, None]
    );
    assert!(refused > 5_000 && taken > 500, "{refused} refused, {taken} taken");
}

#[test]
fn changed_statuses_and_records_are_ignored_or_displayed_within_their_lines() {
    let mut rng = random();
    let shares = TimeShares { game: 0.25, network: 0.5, link: 0.0, learner: 0.25 };
    let status = WorkerStatus {
        name: "worker".into(),
        number: 5,
        version: 3,
        games: 700,
        samples: 9_000,
        games_per_second: 2.5,
        samples_per_second: 35.0,
        shares,
        max_silence: 40.0,
        has_left: false,
    };
    let counts = WorkerCounts { each: vec![WorkerShare::default()], ..WorkerCounts::default() };
    let record = EpochRecord { epoch: 3, workers: Some(counts), ..EpochRecord::default() };
    let [status, record] =
        [serde_json::to_vec(&status), serde_json::to_vec(&record)].map(|text| text.expect("in memory"));
    let lines = Overview {
        address: "redis://host:6379/run".into(),
        version: 3,
        is_over: false,
        record: serde_json::from_slice(&record).ok(),
        queued_chunks: 4,
        workers: WorkerStatus::read(&status).into_iter().collect(),
        ages: vec![0.5],
    };
    let expected = lines.to_string().lines().count();
    let (mut refused, mut taken) = (0, 0);
    for number in 0..30_000 {
        let [status, record] = match number % 2 {
            0 => [changed_json(&status, &mut rng), record.clone()],
            _ => [status.clone(), changed_json(&record, &mut rng)],
        };
        let (status, record) = (WorkerStatus::read(&status), serde_json::from_slice::<EpochRecord>(&record));
        let (Some(status), Ok(record)) = (status, record) else {
            refused += 1;
            continue;
        };
        taken += 1;
        check_sentence(&format!("of {}: {status}", status.name));
        assert!(!format!("{:?}", status.metrics()).contains("NaN"));
        let is_whole = record.workers.is_some();
        let shown = Overview { record: Some(record), workers: vec![status], ..lines.clone() }.to_string();
        assert_eq!(shown.lines().count(), expected - usize::from(!is_whole), "{shown}");
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
    }
    assert!(refused > 5_000 && taken > 2_000, "{refused} refused, {taken} taken");
}

/// JSON after changes of arbitrary bytes, or of its digits.
fn changed_json(text: &[u8], rng: &mut RngStream) -> Vec<u8> {
    if rng.below(3) == 0 {
        return changed(text, rng);
    }
    let mut out = text.to_vec();
    for _ in 0..1 + rng.below(4) {
        let digits: Vec<usize> = (0..out.len()).filter(|&i| out[i].is_ascii_digit()).collect();
        let index = digits[rng.below(digits.len())];
        let other = ["7", "-1", "1e9", "1e300", "0.1", "99999999999999999999", "null", "\"\\u001b[2J\""]
            [rng.below(8)];
        out.splice(index..=index, other.bytes());
    }
    out
}

/// A configuration after a change of its text, of one value, or of its lines.
fn changed_config(text: &str, rng: &mut RngStream) -> String {
    const VALUES: [&str; 16] = [
        "0",
        "1",
        "-1",
        "2147483648",
        "9223372036854775807",
        "18446744073709551616",
        "1e308",
        "nan",
        "inf",
        "''",
        "'cpu'",
        "'cuda'",
        "[]",
        "{}",
        "true",
        "1048576",
    ];
    const GAMES: [&str; 6] = ["hex", "go", "clique", "backgammon", "blob", "ludo"];
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    match rng.below(5) {
        0 => return String::from_utf8_lossy(&changed(text.as_bytes(), rng)).into_owned(),
        1 => {
            let line = rng.below(lines.len());
            let other = lines[rng.below(lines.len())].clone();
            lines.insert(line, other);
        }
        2 => drop(lines.remove(rng.below(lines.len()))),
        _ => {
            for _ in 0..1 + rng.below(3) {
                let line = rng.below(lines.len());
                if let Some((key, _)) = lines[line].split_once(" = ") {
                    lines[line] = format!("{key} = {}", VALUES[rng.below(VALUES.len())]);
                }
            }
        }
    }
    let text = lines.join("\n");
    match rng.below(4) {
        0 => text.replace("tic_tac_toe", GAMES[rng.below(GAMES.len())]),
        _ => text,
    }
}

/// Takes the way of a real worker. The digest is that of the changed configuration if it has one.
#[test]
fn a_worker_refuses_a_changed_configuration_in_one_sentence_or_can_play_it() {
    const GIB: u64 = 1 << 30;
    let Some(redis) = Redis::start(&[]) else { return };
    let setting = Setting::new(TINY);
    let text = setting.config.to_toml();
    let mut rng = random();
    let mut client = redis.client();
    let mut publish = |text: &str, digest| publish(&mut client, text, digest);
    let before = peak_bytes();
    let find = || find_worker(redis.server("run"), &[("run.threads", Some("1".into()))]);
    publish(&text, setting.digest);
    find().expect("the configuration as it was written");
    let (mut refused, mut taken) = (0, 0);
    for _ in 0..1_500 {
        let text = changed_config(&text, &mut rng);
        let config = Layers::default().text(&text, "test").and_then(Layers::resolve);
        let found = config.and_then(|config| {
            Ok(digest(&config, any_game(config.game_name(), &config.game_options())?.as_ref()))
        });
        publish(&text, found.unwrap_or(setting.digest));
        match find() {
            Err(error) => {
                refused += 1;
                check_sentence(&error.to_string());
            }
            Ok(worker) => {
                taken += 1;
                check_sentence(&worker.describe(1));
            }
        }
    }
    assert!(refused > 300 && taken > 100, "{refused} refused, {taken} taken");
    // Linux counts pages by CPU and adds them up now and then, so that a later peak may be some KiB lower.
    let grown = peak_bytes().zip(before).map_or(0, |(now, before)| now.saturating_sub(before));
    assert!(grown < GIB, "{grown} bytes");

    // A text that is too long, one that is not UTF-8, and a wrong checksum.
    publish(&"#".repeat((1 << 20) + 1), setting.digest);
    let error = find().err().expect("too long").to_string();
    assert!(error.contains("the run's configuration has 1048577 bytes, expected at most 1048576"), "{error}");
    redis.command_with(&["HSET", "run:state", "config"], b"\xff\xfe");
    let error = find().err().expect("not UTF-8").to_string();
    assert!(error.contains("the run's configuration is not UTF-8"), "{error}");
    redis.command(&["HSET", "run:state", "sha256", &hex(&[1; 31])]);
    let error = find().err().expect("not a checksum").to_string();
    assert!(error.contains("field sha256 of the run's state is"), "{error}");
}
