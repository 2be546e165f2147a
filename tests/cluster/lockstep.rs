//! The parts of a run in strict order, played apart, give the games of self-play in one piece; nothing else is taken.

use super::chunks::forged;
use super::play::Setting;
use std::ops::Range;
use vecaz::backend::RootCache;
use vecaz::cluster::Incarnation;
use vecaz::cluster::chunk::{Chunk, ChunkLimits, ChunkReader, Sealer};
use vecaz::cluster::strict::lockstep::{Lockstep, Offered};
use vecaz::cluster::strict::parts;
use vecaz::cluster::strict::poll::{PartPoll, Recorder, SlotPlies, limits, most_records, open, seal};
use vecaz::config::{Config, SelfPlayConfig};
use vecaz::net::{IoShape, UniformNet};
use vecaz::rng::{Key, Purpose};
use vecaz::selfplay::{FinishedGame, GameRecord, GameSlot, SelfPlay, new_slots};

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
playout_cap_prob = 0.25
fast_simulations = 2
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

/// Self-play in these slots, searched with a network that knows nothing.
fn selfplay(setting: &Setting, slots: Vec<GameSlot>) -> SelfPlay {
    let sizes = setting.game.sizes();
    let network = UniformNet(IoShape {
        obs_len: sizes.obs.len(),
        num_actions: sizes.num_actions,
        num_players: sizes.num_players,
    });
    let selfplay = SelfPlayConfig { games: slots.len(), ..setting.config.selfplay.clone() };
    let config = Config { selfplay, ..setting.config.clone() };
    let mut selfplay = SelfPlay::new(&setting.game, &config, &network, slots, 1).expect("fits");
    selfplay.set_network(&network, RootCache::default()).expect("a network");
    selfplay
}

fn starts(setting: &Setting) -> Vec<GameSlot> {
    new_slots(0, setting.config.selfplay.games, setting.game.as_ref(), &setting.plan)
}

fn bounds(setting: &Setting) -> ChunkLimits {
    let most = parts(setting.config.selfplay.games).map(|part| part.len()).max().expect("a part");
    limits(setting.game.as_ref(), most, setting.config.selfplay.passes_per_poll).expect("small")
}

/// The chunks of the first `polls` polls of a part whose slots are `range`.
fn chunks(setting: &Setting, part: usize, range: Range<usize>, polls: u64) -> Vec<Vec<u8>> {
    let slots: Vec<GameSlot> = starts(setting)[range].iter().map(GameSlot::without_samples).collect();
    let mut recorder = Recorder::new(&slots);
    let mut selfplay = selfplay(setting, slots);
    let mut sealer = Sealer::new(setting.sender(WORKER)).expect("memory");
    let poll = |poll| {
        let finished = selfplay.poll_by_pass().expect("played");
        let plies = recorder.record(&finished, selfplay.slots());
        seal(&mut sealer, &bounds(setting), (VERSION, poll), part, plies).expect("fits")
    };
    (1..=polls).map(poll).collect()
}

fn read(setting: &Setting, bytes: &[u8]) -> Option<PartPoll> {
    read_by(&mut ChunkReader::new().expect("memory"), setting, bytes).ok()
}

/// What the learner does with an entry of the stream.
fn read_by(reader: &mut ChunkReader, setting: &Setting, bytes: &[u8]) -> Result<PartPoll, String> {
    let chunk = Chunk::parse(bytes, &setting.digest, &bounds(setting)).map_err(|e| e.to_string())?;
    open(reader, &chunk, most_records(35, setting.config.selfplay.passes_per_poll))
}

fn lockstep(setting: &Setting, starts: &[GameSlot]) -> Lockstep {
    let mut lockstep = Lockstep::new(
        setting.game.clone(),
        setting.plan,
        starts.to_vec(),
        setting.config.selfplay.passes_per_poll,
    );
    lockstep.begin(VERSION);
    lockstep
}

/// All polls that can be taken.
fn take_all(lockstep: &mut Lockstep) -> Vec<Vec<FinishedGame>> {
    std::iter::from_fn(|| lockstep.take()).map(|poll| poll.expect("by the rules")).collect()
}

#[test]
fn parts_played_apart_give_the_games_of_one_piece() {
    const POLLS: u64 = 12;
    let mut rng = Key::new(2, Purpose::Evaluation).stream();
    let mut ended = 0;
    for setting in settings() {
        let name = setting.game.name();
        let mut whole = selfplay(&setting, starts(&setting));
        let expected: Vec<Vec<FinishedGame>> = (0..POLLS).map(|_| whole.poll().expect("played")).collect();
        ended += expected.iter().flatten().count();
        let games = setting.config.selfplay.games;
        let mut sent: Vec<Vec<u8>> =
            parts(games).enumerate().flat_map(|(part, range)| chunks(&setting, part, range, POLLS)).collect();
        assert_eq!(sent.len(), 2 * POLLS as usize, "two parts");
        // In any order, and some of them again.
        (1..sent.len()).for_each(|i| sent.swap(i, rng.below(i + 1)));
        let mut lockstep = lockstep(&setting, &starts(&setting));
        let (mut found, mut repeated) = (Vec::new(), 0);
        for bytes in sent.iter().chain(&sent[..7]) {
            let poll = read(&setting, bytes).expect("whole");
            repeated += u64::from(lockstep.offer(poll) == Offered::Repeated);
            found.extend(take_all(&mut lockstep));
        }
        assert_eq!((lockstep.taken(), repeated), (POLLS, 7), "{name}");
        assert!(found == expected, "{name}: other games");
        for (found, expected) in lockstep.slots().iter().zip(whole.slots()) {
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
fn polls_of_other_versions_parts_and_times_are_not_taken() {
    let setting = &settings()[1];
    let poll = read(setting, &chunks(setting, 1, 35..70, 1)[0]).expect("whole");
    let mut lockstep = lockstep(setting, &starts(setting));
    let mut offered = |change: &dyn Fn(&mut PartPoll)| {
        let mut changed = poll.clone();
        change(&mut changed);
        lockstep.offer(changed)
    };
    assert_eq!(offered(&|poll| poll.version += 1), Offered::OtherVersion);
    assert_eq!(offered(&|poll| poll.poll = 0), Offered::Repeated);
    assert_eq!(offered(&|poll| poll.poll = 1000), Offered::Impossible);
    assert_eq!(offered(&|poll| poll.part = 2), Offered::Impossible);
    let most = most_records(35, setting.config.selfplay.passes_per_poll);
    let repeat = |poll: &mut PartPoll| poll.plies = vec![poll.plies[0].clone(); most + 1];
    assert_eq!(offered(&repeat), Offered::Impossible);
    assert_eq!(offered(&|_| ()), Offered::Waits);
    assert!(lockstep.take().is_none(), "the other part is missing");
}

/// The first `polls` polls of every part, part after part, and the games of a run on one machine, by poll.
fn polls_of_all_parts(setting: &Setting, polls: u64) -> (Vec<PartPoll>, Vec<Vec<FinishedGame>>) {
    let mut whole = selfplay(setting, starts(setting));
    let games = (0..polls).map(|_| whole.poll().expect("played")).collect();
    let sent = parts(setting.config.selfplay.games)
        .enumerate()
        .flat_map(|(part, range)| chunks(setting, part, range, polls))
        .map(|bytes| read(setting, &bytes).expect("whole"))
        .collect();
    (sent, games)
}

/// A process that sends what no worker plays may have kept the polls of another from being taken; what was sent is then read again.
#[test]
fn a_part_goes_on_when_its_polls_come_again_after_those_of_a_process_that_is_refused() {
    const POLLS: u64 = 3;
    let setting = &settings()[0];
    let (sent, expected) = polls_of_all_parts(setting, POLLS);
    let hostile = |number: u64| {
        let mut poll = sent.iter().find(|poll| (poll.part, poll.poll) == (1, number)).expect("sent").clone();
        (poll.incarnation, poll.plies) = (99, Vec::new());
        let stolen = sent.iter().find(|poll| poll.part == 0).expect("sent");
        poll.plies.extend(stolen.plies.iter().take(1).cloned());
        poll
    };
    let mut lockstep = lockstep(setting, &starts(setting));
    for number in 1..=POLLS {
        assert_eq!(lockstep.offer(hostile(number)), Offered::Waits);
    }
    let offered: Vec<Offered> = sent.iter().map(|poll| lockstep.offer(poll.clone())).collect();
    assert_eq!(offered[POLLS as usize..], [Offered::Repeated; POLLS as usize]);
    let refused = lockstep.take().expect("both parts").expect_err("a slot of another part");
    assert_eq!((refused.incarnation, refused.part, refused.processes), (99, 1, 1));
    assert!(lockstep.take().is_none(), "nothing of that part waits");
    assert_eq!(lockstep.offer(hostile(1)), Offered::Impossible);
    for poll in &sent {
        lockstep.offer(poll.clone());
    }
    assert!(take_all(&mut lockstep) == expected, "other games");
}

/// The parts are sent one after the other, each whole, so that all polls of the first wait for those of the second.
#[test]
fn polls_without_room_are_taken_when_they_are_read_again() {
    const POLLS: u64 = 12;
    let setting = &settings()[0];
    let (sent, expected) = polls_of_all_parts(setting, POLLS);
    let most = sent.iter().map(PartPoll::bytes).max().expect("polls") as u64;
    let mut lockstep = lockstep(setting, &starts(setting)).with_room(3 * most);
    let (mut found, mut left_out) = (Vec::new(), 0);
    let mut rounds = 0;
    while lockstep.taken() < POLLS {
        for poll in &sent {
            left_out += u64::from(lockstep.offer(poll.clone()) == Offered::NoRoom);
            assert!(lockstep.bytes() <= 3 * most, "{} bytes", lockstep.bytes());
            found.extend(take_all(&mut lockstep));
        }
        rounds += 1;
        assert!(lockstep.wants_again() || lockstep.taken() == POLLS, "{} taken", lockstep.taken());
        assert!(!lockstep.wants_again(), "once");
    }
    assert!(rounds > 2 && left_out > POLLS, "{rounds} rounds, {left_out} left out");
    assert!(found == expected, "other games");
    assert_eq!(lockstep.bytes(), 0);

    // The next polls always have room.
    let mut lockstep = self::lockstep(setting, &starts(setting)).with_room(0);
    let offered: Vec<Offered> = sent.iter().map(|poll| lockstep.offer(poll.clone())).collect();
    let waits = offered.iter().filter(|offered| **offered == Offered::Waits).count();
    assert_eq!((waits, take_all(&mut lockstep).len()), (2, 1));
}

#[test]
fn a_poll_of_many_empty_records_is_refused_before_they_are_read() {
    let setting = &settings()[1];
    let poll = read(setting, &chunks(setting, 1, 35..70, 1)[0]).expect("whole");
    let most = most_records(35, setting.config.selfplay.passes_per_poll);
    let mut sealer = Sealer::new(setting.sender(WORKER)).expect("memory");
    let mut read_with = |records: usize| {
        let empty = SlotPlies { ended_by: None, record: GameRecord::default() };
        let plies = vec![empty; records];
        let chunk = seal(&mut sealer, &bounds(setting), (VERSION, 1), 1, plies).expect("a few bytes each");
        read_by(&mut ChunkReader::new().expect("memory"), setting, &chunk)
    };
    assert_eq!(read_with(most).map(|read| (read.part, read.plies.len())), Ok((poll.part, most)));
    let error = read_with(most + 1).expect_err("one too many");
    assert_eq!(error, format!("{} records of games, at most {most}", most + 1));
}

/// Entries of the stream as a hostile worker may send them.
#[test]
fn changed_polls_give_no_games_outside_the_rules() {
    let mut rng = Key::new(12, Purpose::Evaluation).stream();
    let mut reader = ChunkReader::new().expect("memory");
    let (mut refused, mut taken) = (0, 0);
    for setting in settings() {
        let all: Vec<Vec<u8>> = parts(setting.config.selfplay.games)
            .enumerate()
            .map(|(part, range)| chunks(&setting, part, range, 1).remove(0))
            .collect();
        let [first, second] = [0, 1].map(|i| read(&setting, &all[i]).expect("whole"));
        let starts = starts(&setting);
        let mut right = lockstep(&setting, &starts);
        right.offer(first.clone());
        right.offer(second.clone());
        right.take().expect("both parts").expect("by the rules");
        let raw = postcard::to_stdvec(&(1_u32, &second.plies)).expect("in memory");
        let mut lockstep = lockstep(&setting, &starts);
        for number in 0..7_000 {
            let poll = match read_by(&mut reader, &setting, &forged(&all[1], &raw, &mut rng)) {
                Ok(poll) => poll,
                Err(what) => {
                    refused += 1;
                    assert_eq!(what.lines().count(), 1, "{what}");
                    continue;
                }
            };
            lockstep.begin(VERSION);
            lockstep.offer(first.clone());
            let offered = lockstep.offer(poll);
            match (offered, lockstep.take()) {
                (Offered::Waits, Some(Ok(_))) => {
                    taken += 1;
                    for slot in lockstep.slots() {
                        let name = setting.game.name();
                        slot.check(setting.game.as_ref(), slot.slot)
                            .unwrap_or_else(|e| panic!("{name} {number}: {e}"));
                    }
                    lockstep = self::lockstep(&setting, &starts);
                }
                (_, None | Some(Err(_))) => {
                    refused += 1;
                    assert!(lockstep.slots() == starts, "nothing has changed");
                }
                (offered, Some(Ok(_))) => panic!("{offered:?} and taken"),
            }
        }
    }
    assert!(refused > 14_000 && taken > 500, "{refused} refused, {taken} taken");
}
