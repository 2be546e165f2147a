//! The partitions of a run in strict order, played separately, give the games of undivided self-play; nothing else is taken.

use super::chunks::forged;
use super::play::Setting;
use std::ops::Range;
use vecaz::backend::RootCache;
use vecaz::cluster::Incarnation;
use vecaz::cluster::chunk::{Chunk, ChunkLimits, ChunkReader, Sealer};
use vecaz::cluster::strict::partitions;
use vecaz::cluster::strict::poll::{PartitionPoll, Recorder, SlotPlies, limits, max_records, open, seal};
use vecaz::cluster::strict::poll_merger::{Offered, PollMerger};
use vecaz::config::{Config, SelfPlayConfig};
use vecaz::net::{IoShape, UniformNet};
use vecaz::play::{FinishedGame, GameRecord, GameSlot, new_slots};
use vecaz::rng::{Key, Purpose};
use vecaz::selfplay::SelfPlay;

const WORKER: Incarnation = Incarnation(5);
const VERSION: u64 = 3;

const COMMON: &str = "
[search]
simulations = 6
cache_entries = 0
[selfplay]
games = 70
passes_per_poll = 40
opening_plies = 3
";

fn settings() -> Vec<Setting> {
    [
        "name = 'connect_four'",
        "name = 'hex'\nsize = 4",
        "name = 'backgammon'\nshort_game = true",
        "name = 'blob'",
    ]
    .map(|game| Setting::new(&format!("[game]\n{game}\n{COMMON}")))
    .into()
}

/// Self-play in these slots, searched with a uniform network.
fn selfplay(setting: &Setting, slots: Vec<GameSlot>) -> SelfPlay {
    let network = UniformNet(IoShape::of(&setting.game.sizes()));
    let selfplay = SelfPlayConfig { games: slots.len(), ..setting.config.selfplay.clone() };
    let config = Config { selfplay, ..setting.config.clone() };
    let mut selfplay = SelfPlay::new(&setting.game, &config, &network, slots, 1).expect("fits");
    selfplay.set_network(&network, RootCache::default()).expect("a network");
    selfplay
}

fn first_slots(setting: &Setting) -> Vec<GameSlot> {
    new_slots(0, setting.config.selfplay.games, setting.game.as_ref(), &setting.plan)
}

fn bounds(setting: &Setting) -> ChunkLimits {
    let max = partitions(setting.config.selfplay.games).map(|partition| partition.len()).max();
    let passes = setting.config.selfplay.passes_per_poll;
    limits(setting.game.as_ref(), max.expect("a partition"), passes).expect("small")
}

/// The chunks of the first `polls` polls of a partition whose slots are `range`.
fn chunks(setting: &Setting, partition: usize, range: Range<usize>, polls: u64) -> Vec<Vec<u8>> {
    let slots: Vec<GameSlot> = first_slots(setting)[range].iter().map(GameSlot::without_samples).collect();
    let mut recorder = Recorder::new(&slots);
    let mut selfplay = selfplay(setting, slots);
    let mut sealer = Sealer::new(setting.sender(WORKER)).expect("memory");
    let poll = |poll| {
        let finished = selfplay.poll_by_pass().expect("played");
        let plies = recorder.record(&finished, selfplay.slots());
        seal(&mut sealer, &bounds(setting), (VERSION, poll), partition, plies).expect("fits")
    };
    (1..=polls).map(poll).collect()
}

fn read(setting: &Setting, bytes: &[u8]) -> Option<PartitionPoll> {
    read_with(&mut ChunkReader::new().expect("memory"), setting, bytes).ok()
}

/// Reads an entry of the stream as the learner does.
fn read_with(reader: &mut ChunkReader, setting: &Setting, bytes: &[u8]) -> Result<PartitionPoll, String> {
    let chunk = Chunk::parse(bytes, &setting.digest, &bounds(setting)).map_err(|e| e.to_string())?;
    open(reader, &chunk, max_records(35, setting.config.selfplay.passes_per_poll))
}

fn merger(setting: &Setting, slots: &[GameSlot]) -> PollMerger {
    let mut merger = PollMerger::new(
        setting.game.clone(),
        setting.plan,
        slots.to_vec(),
        setting.config.selfplay.passes_per_poll,
    );
    merger.begin(VERSION);
    merger
}

/// All polls that can be taken.
fn take_all(merger: &mut PollMerger) -> Vec<Vec<FinishedGame>> {
    std::iter::from_fn(|| merger.take()).map(|poll| poll.expect("by the rules")).collect()
}

#[test]
fn partitions_played_separately_give_the_games_of_undivided_selfplay() {
    const POLLS: u64 = 12;
    let mut rng = Key::new(2, Purpose::Evaluation).stream();
    let mut ended = 0;
    for setting in settings() {
        let name = setting.game.name();
        let mut whole = selfplay(&setting, first_slots(&setting));
        let expected: Vec<Vec<FinishedGame>> = (0..POLLS).map(|_| whole.poll().expect("played")).collect();
        ended += expected.iter().flatten().count();
        let games = setting.config.selfplay.games;
        let mut sent: Vec<Vec<u8>> = partitions(games)
            .enumerate()
            .flat_map(|(partition, range)| chunks(&setting, partition, range, POLLS))
            .collect();
        assert_eq!(sent.len(), 2 * POLLS as usize, "two partitions");
        // In random order, and some of them twice.
        (1..sent.len()).for_each(|i| sent.swap(i, rng.below(i + 1)));
        let mut merger = merger(&setting, &first_slots(&setting));
        let (mut found, mut repeated) = (Vec::new(), 0);
        for bytes in sent.iter().chain(&sent[..7]) {
            let poll = read(&setting, bytes).expect("whole");
            repeated += u64::from(merger.offer(poll) == Offered::Repeated);
            found.extend(take_all(&mut merger));
        }
        assert_eq!((merger.taken(), repeated), (POLLS, 7), "{name}");
        assert!(found == expected, "{name}: other games");
        for (found, expected) in merger.slots().iter().zip(whole.slots()) {
            assert_eq!((&found.actions, &found.state), (&expected.actions, &expected.state), "{name}");
            let policies = |slot: &GameSlot| -> Vec<_> {
                slot.samples.iter().map(|sample| (sample.state.clone(), sample.policy.clone())).collect()
            };
            assert!(policies(found) == policies(expected), "{name}: other samples");
        }
    }
    assert!(ended > 500, "{ended} games ended");
}

#[test]
fn polls_of_other_versions_partitions_and_times_are_not_taken() {
    let setting = &settings()[1];
    let poll = read(setting, &chunks(setting, 1, 35..70, 1)[0]).expect("whole");
    let mut merger = merger(setting, &first_slots(setting));
    let mut offered = |change: &dyn Fn(&mut PartitionPoll)| {
        let mut changed = poll.clone();
        change(&mut changed);
        merger.offer(changed)
    };
    assert_eq!(offered(&|poll| poll.version += 1), Offered::OtherVersion);
    assert_eq!(offered(&|poll| poll.poll = 0), Offered::Repeated);
    assert_eq!(offered(&|poll| poll.poll = 1000), Offered::BufferFull);
    assert_eq!(offered(&|poll| poll.partition = 2), Offered::Impossible);
    let max = max_records(35, setting.config.selfplay.passes_per_poll);
    let repeat = |poll: &mut PartitionPoll| poll.plies = vec![poll.plies[0].clone(); max + 1];
    assert_eq!(offered(&repeat), Offered::Impossible);
    assert_eq!(offered(&|_| ()), Offered::Buffered);
    assert!(merger.take().is_none(), "the other partition is missing");
}

/// The first `polls` polls of every partition, partition after partition, and the games of a run on one machine, by poll.
fn polls_of_all_partitions(setting: &Setting, polls: u64) -> (Vec<PartitionPoll>, Vec<Vec<FinishedGame>>) {
    let mut whole = selfplay(setting, first_slots(setting));
    let games = (0..polls).map(|_| whole.poll().expect("played")).collect();
    let sent = partitions(setting.config.selfplay.games)
        .enumerate()
        .flat_map(|(partition, range)| chunks(setting, partition, range, polls))
        .map(|bytes| read(setting, &bytes).expect("whole"))
        .collect();
    (sent, games)
}

/// The invalid polls of a hostile process take the place of those of an honest worker, until they are refused and the entries are read
/// again.
#[test]
fn after_a_refusal_the_polls_of_another_process_are_taken_when_they_are_offered_again() {
    const POLLS: u64 = 3;
    let setting = &settings()[0];
    let (sent, expected) = polls_of_all_partitions(setting, POLLS);
    let hostile = |number: u64| {
        let mut poll =
            sent.iter().find(|poll| (poll.partition, poll.poll) == (1, number)).expect("sent").clone();
        (poll.incarnation, poll.plies) = (99, Vec::new());
        let stolen = sent.iter().find(|poll| poll.partition == 0).expect("sent");
        poll.plies.extend(stolen.plies.iter().take(1).cloned());
        poll
    };
    let mut merger = merger(setting, &first_slots(setting));
    for number in 1..=POLLS {
        assert_eq!(merger.offer(hostile(number)), Offered::Buffered);
    }
    let offered: Vec<Offered> = sent.iter().map(|poll| merger.offer(poll.clone())).collect();
    assert_eq!(offered[POLLS as usize..], [Offered::Repeated; POLLS as usize]);
    let refused = merger.take().expect("both partitions").expect_err("a slot of another partition");
    assert_eq!((refused.incarnation, refused.partition, refused.processes), (99, 1, 1));
    assert!(merger.take().is_none(), "nothing of that partition is buffered");
    assert_eq!(merger.offer(hostile(1)), Offered::Impossible);
    for poll in &sent {
        merger.offer(poll.clone());
    }
    assert!(take_all(&mut merger) == expected, "other games");
}

/// The partitions are sent one after the other, so that the polls of the first fill the buffer before those of the second arrive.
#[test]
fn polls_that_the_full_buffer_drops_are_taken_when_they_are_offered_again() {
    const POLLS: u64 = 12;
    let setting = &settings()[0];
    let (sent, expected) = polls_of_all_partitions(setting, POLLS);
    let max = sent.iter().map(PartitionPoll::bytes).max().expect("polls") as u64;
    let mut merger = merger(setting, &first_slots(setting)).with_buffer_limit(3 * max);
    let (mut found, mut dropped) = (Vec::new(), 0);
    let mut rounds = 0;
    while merger.taken() < POLLS {
        for poll in &sent {
            dropped += u64::from(merger.offer(poll.clone()) == Offered::BufferFull);
            assert!(merger.bytes() <= 3 * max, "{} bytes", merger.bytes());
            found.extend(take_all(&mut merger));
        }
        rounds += 1;
        assert!(merger.take_reread_request() || merger.taken() == POLLS, "{} taken", merger.taken());
        assert!(!merger.take_reread_request(), "once");
    }
    assert!(rounds > 2 && dropped > POLLS, "{rounds} rounds, {dropped} dropped");
    assert!(found == expected, "other games");
    assert_eq!(merger.bytes(), 0);

    // The next polls are buffered even beyond the limit.
    let mut merger = self::merger(setting, &first_slots(setting)).with_buffer_limit(0);
    let offered: Vec<Offered> = sent.iter().map(|poll| merger.offer(poll.clone())).collect();
    let buffered = offered.iter().filter(|offered| **offered == Offered::Buffered).count();
    assert_eq!((buffered, take_all(&mut merger).len()), (2, 1));
}

/// A worker that sends an epoch again to a learner that has begun it again sends more than that one takes ahead.
#[test]
fn polls_that_come_too_early_are_taken_when_they_are_offered_again() {
    const POLLS: u64 = 40;
    let setting = &settings()[1];
    let (sent, expected) = polls_of_all_partitions(setting, POLLS);
    let mut merger = merger(setting, &first_slots(setting));
    let (mut found, mut rounds) = (Vec::new(), 0);
    while merger.taken() < POLLS {
        for poll in &sent {
            let offered = merger.offer(poll.clone());
            assert_ne!(offered, Offered::Impossible);
            found.extend(take_all(&mut merger));
        }
        rounds += 1;
        assert!(merger.take_reread_request() || merger.taken() == POLLS, "{} taken", merger.taken());
    }
    assert!((2..=4).contains(&rounds), "{rounds} rounds");
    assert!(found == expected, "other games");
}

#[test]
fn a_poll_of_many_empty_records_is_refused_before_they_are_read() {
    let setting = &settings()[1];
    let poll = read(setting, &chunks(setting, 1, 35..70, 1)[0]).expect("whole");
    let max = max_records(35, setting.config.selfplay.passes_per_poll);
    let mut sealer = Sealer::new(setting.sender(WORKER)).expect("memory");
    let mut read_records = |records: usize| {
        let empty = SlotPlies { ended_by: None, record: GameRecord::default() };
        let plies = vec![empty; records];
        let chunk = seal(&mut sealer, &bounds(setting), (VERSION, 1), 1, plies).expect("a few bytes each");
        read_with(&mut ChunkReader::new().expect("memory"), setting, &chunk)
    };
    assert_eq!(read_records(max).map(|read| (read.partition, read.plies.len())), Ok((poll.partition, max)));
    let error = read_records(max + 1).expect_err("one too many");
    assert_eq!(error, format!("{} records of games, expected at most {max}", max + 1));
}

/// Entries of the stream as a hostile worker may send them.
#[test]
fn changed_polls_give_no_games_outside_the_rules() {
    let mut rng = Key::new(12, Purpose::Evaluation).stream();
    let mut reader = ChunkReader::new().expect("memory");
    let (mut refused, mut taken) = (0, 0);
    for setting in settings() {
        let all: Vec<Vec<u8>> = partitions(setting.config.selfplay.games)
            .enumerate()
            .map(|(partition, range)| chunks(&setting, partition, range, 1).remove(0))
            .collect();
        let [first, second] = [0, 1].map(|i| read(&setting, &all[i]).expect("whole"));
        let slots = first_slots(&setting);
        let mut right = merger(&setting, &slots);
        right.offer(first.clone());
        right.offer(second.clone());
        right.take().expect("both partitions").expect("by the rules");
        let raw = postcard::to_stdvec(&(1_u32, &second.plies)).expect("in memory");
        let mut merger = merger(&setting, &slots);
        for number in 0..7_000 {
            let poll = match read_with(&mut reader, &setting, &forged(&all[1], &raw, &mut rng)) {
                Ok(poll) => poll,
                Err(what) => {
                    refused += 1;
                    assert_eq!(what.lines().count(), 1, "{what}");
                    continue;
                }
            };
            merger.begin(VERSION);
            merger.offer(first.clone());
            let offered = merger.offer(poll);
            match (offered, merger.take()) {
                (Offered::Buffered, Some(Ok(_))) => {
                    taken += 1;
                    for slot in merger.slots() {
                        let name = setting.game.name();
                        slot.check(setting.game.as_ref(), slot.slot)
                            .unwrap_or_else(|e| panic!("{name} {number}: {e}"));
                    }
                    merger = self::merger(&setting, &slots);
                }
                (_, None | Some(Err(_))) => {
                    refused += 1;
                    assert!(merger.slots() == slots, "nothing has changed");
                }
                (offered, Some(Ok(_))) => panic!("{offered:?} and taken"),
            }
        }
    }
    assert!(refused > 14_000 && taken > 500, "{refused} refused, {taken} taken");
}
