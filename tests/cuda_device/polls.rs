//! Self-play that the GPU drives, on the stand-in driver: in which order passes are launched, counts and decisions copied and waited
//! for. The GPU's part is played here: in every pass of every game slot of tic-tac-toe, the fields are taken in their order.

use super::{Driver, driver, loaded, set};
use libloading::Symbol;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Mutex;
use vecaz::Result;
use vecaz::backend::decisions::SummaryFormat;
use vecaz::backend::gpu::KernelBackend;
use vecaz::backend::gpu::game_slots::{DecisionQueue, GameSlots};
use vecaz::backend::gpu::layout::ParameterBlock;
use vecaz::backend::split::SplitBackend;
use vecaz::backend::{Backend, RootCache};
use vecaz::config::{Config, DeviceName, Layers};
use vecaz::device::Device;
use vecaz::device::cuda::CudaDevice;
use vecaz::net::gpu::network::{DeviceNetwork, ObsFormat, Slots};
use vecaz::net::{IoShape, UniformNet};
use vecaz::play::FinishedGame;
use vecaz::registry::any_game;
use vecaz::selfplay::SelfPlay;

/// Passes of a poll, and slots.
const PASSES: usize = 3;
const SLOTS: usize = 5;
/// Plies until X has the diagonal, where both take the fields in their order.
const GAME: usize = 7;
/// Of tic-tac-toe: 2 players, 9 edges.
const FORMAT: SummaryFormat = SummaryFormat { players: 2, padded_edges: 16 };
const HEADER_BYTES: i64 = 72;

/// The pass that fails.
static FAILS_AT: Mutex<Option<usize>> = Mutex::new(None);
/// Passes made, by the address of the slots' rows on their GPU.
static MADE: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// The argument with this index.
///
/// # Safety
/// It is a `T`.
unsafe fn argument<T: Copy>(arguments: *mut *mut c_void, index: usize) -> T {
    // SAFETY: as promised; arguments are aligned to eight bytes.
    unsafe { **arguments.add(index).cast::<*const T>() }
}

/// What an address points to on the stand-in GPU, which is the host's memory.
fn at<T>(address: u64) -> *mut T {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

/// Runs a kernel: 0, or the driver's error.
unsafe extern "C" fn run(name: *const c_char, arguments: *mut *mut c_void) -> c_int {
    // SAFETY: the driver gives the kernel's name and its arguments, whose types are those of kernels/search.cu.
    unsafe {
        match CStr::from_ptr(name).to_str().expect("ASCII") {
            "simulate_rows" => (0..argument::<u32>(arguments, 4))
                .map(|_| pass(arguments))
                .find(|error| *error != 0)
                .unwrap_or(0),
            "act_game_slots" => pass(arguments),
            "end_poll" => {
                let queue = &mut *at::<DecisionQueue>(argument::<GameSlots>(arguments, 1).queue);
                let header = &mut *at::<[u32; 18]>(argument(arguments, 5));
                let half = argument::<u32>(arguments, 4);
                header.fill(0);
                header[16] = queue.num;
                *queue = DecisionQueue { num: 0, first: if queue.first == 0 { half } else { 0 } };
                0
            }
            _ => 0,
        }
    }
}

/// One pass: every slot of the launch's GPU takes the next field.
unsafe fn pass(arguments: *mut *mut c_void) -> c_int {
    // SAFETY: as for `run`; there is room for the decisions of a poll in each half.
    unsafe {
        let slots = argument::<GameSlots>(arguments, 1);
        let queue = &mut *at::<DecisionQueue>(slots.queue);
        let gpu = slots.all as usize;
        let mut all = MADE.lock().expect("no panic");
        let made = all.iter().position(|(known, _)| *known == gpu).unwrap_or_else(|| {
            all.push((gpu, 0));
            all.len() - 1
        });
        let made = &mut all[made].1;
        if *FAILS_AT.lock().expect("no panic") == Some(*made) {
            return 700;
        }
        for slot in 0..argument::<ParameterBlock>(arguments, 0).num_rows {
            let mut words = vec![0u32; FORMAT.decision_bytes() / 4];
            words[..8].copy_from_slice(&[slot, *made as u32 + 1, 0, 0, 1, 0, 0, 0]);
            words[8 + 2 + 4 * 16] = 1f32.to_bits();
            words[8 + 2 + 5 * 16] = (*made % GAME) as u32;
            let to =
                at::<u8>(slots.decisions).add((queue.num + queue.first) as usize * FORMAT.decision_bytes());
            to.copy_from_nonoverlapping(words.as_ptr().cast(), FORMAT.decision_bytes());
            queue.num += 1;
        }
        *made += 1;
        0
    }
}

/// Gives the driver the kernels of a search.
fn add_kernels(driver: &Driver) {
    let slots = vec![size_of::<GameSlots>()];
    let kernels: [(&str, Vec<usize>); 11] = [
        ("set_roots", vec![8, 8, 8, 4]),
        ("begin_rows", vec![8, 4]),
        ("simulate_rows", [slots.clone(), vec![8, 8, 4]].concat()),
        ("select_rows", vec![]),
        ("observe_leaves", vec![8]),
        ("expand_leaves", vec![8, 8]),
        ("backup_rows", vec![]),
        ("act_game_slots", [slots.clone(), vec![4]].concat()),
        ("start_rows", slots.clone()),
        ("count_rows", vec![8]),
        ("end_poll", [slots, vec![8, 8, 4, 8]].concat()),
    ];
    type Run = unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int;
    set(driver, "driver_run", run as Run);
    set(driver, "driver_memory", 1u64 << 30);
    for (name, more) in kernels {
        let sizes = [vec![size_of::<ParameterBlock>()], more].concat();
        let name = CString::new(name).expect("no zero");
        // SAFETY: the function is in driver.c; it copies the name and the sizes.
        unsafe {
            let add: Symbol<'_, unsafe extern "C" fn(*const c_char, c_int, *const usize)> =
                driver.get(b"driver_add_kernel").expect("in driver.c");
            add(name.as_ptr(), sizes.len() as c_int, sizes.as_ptr());
        }
    }
    MADE.lock().expect("no panic").clear();
    *FAILS_AT.lock().expect("no panic") = None;
}

/// The driver's calls so far, which it forgets.
fn calls(driver: &Driver) -> Vec<(String, i64)> {
    #[repr(C)]
    struct Call(*const c_char, i64);
    // SAFETY: the log and its length are global variables of driver.c, and only one test runs at a time.
    unsafe {
        let count: Symbol<'_, *mut i32> = driver.get(b"driver_calls").expect("in driver.c");
        let log: Symbol<'_, *const Call> = driver.get(b"driver_log").expect("in driver.c");
        let calls = std::slice::from_raw_parts(*log, **count as usize);
        **count = 0;
        calls.iter().map(|call| (CStr::from_ptr(call.0).to_string_lossy().into_owned(), call.1)).collect()
    }
}

/// A network whose outputs nobody reads.
struct Silent;

impl DeviceNetwork<CudaDevice> for Silent {
    fn format(&self) -> ObsFormat {
        ObsFormat::F32
    }

    fn forward(&mut self, _: &CudaDevice, _: Slots<'_, <CudaDevice as Device>::Buffer>) -> Result<()> {
        Ok(())
    }
}

/// What answers leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaves {
    Constant,
    Resident,
}

fn config() -> Config {
    let text = format!(
        "[game]\nname = 'tic_tac_toe'\n[search]\nsimulations = 4\n[selfplay]\ngames = {SLOTS}\nopening_plies = 0\nfirst_game = 'start'\n\
         passes_per_poll = {PASSES}\n"
    );
    Layers::default().text(&text, "test").and_then(Layers::resolve).expect("valid")
}

/// Self-play on so many of the driver's GPUs.
fn selfplay(num: u32, leaves: Leaves) -> (SelfPlay, UniformNet) {
    drop(loaded(None)); // the compiler
    let config = config();
    let game = any_game("tic_tac_toe", &config.game_options()).expect("registered");
    let sizes = game.sizes();
    let network = UniformNet(IoShape {
        obs_len: sizes.obs.len(),
        num_actions: sizes.num_actions,
        num_players: sizes.num_players,
    });
    let on = |device: DeviceName, plan| -> Result<Box<dyn Backend>> {
        let DeviceName::Cuda(number) = device else { panic!("{device} is no GPU") };
        let mut backend = KernelBackend::new(CudaDevice::open(number, None)?, game.as_ref(), plan)?;
        if leaves == Leaves::Resident {
            backend.set_network(Some(Box::new(Silent)));
        }
        Ok(Box::new(backend))
    };
    let devices: Vec<DeviceName> = (0..num).map(DeviceName::Cuda).collect();
    let selfplay = SelfPlay::with_backends(&game, &config, &network, Vec::new(), 1, &|plan| match num {
        1 => on(DeviceName::Cuda(0), plan),
        _ => Ok(Box::new(SplitBackend::new(plan, &devices, 1, &on)?)),
    });
    (selfplay.expect("memory"), network)
}

/// Fails where the host's slots are not those after `polls` polls, of which `games` came of the last one.
fn check_slots(selfplay: &SelfPlay, games: &[FinishedGame], polls: usize) {
    let plies = polls * PASSES;
    let finished = plies / GAME - (plies - PASSES) / GAME;
    assert_eq!(games.len(), finished * SLOTS, "after {polls} polls");
    for slot in selfplay.slots() {
        assert_eq!(
            (slot.game as usize, slot.actions.len()),
            (plies / GAME, plies % GAME),
            "after {polls} polls"
        );
    }
}

/// On each GPU the driver says 0.25 ms of every poll.
fn check_seconds(selfplay: &mut SelfPlay, polls: u32) {
    let (found, right) = (selfplay.take_metrics().device, f64::from(polls) * 0.25e-3);
    assert!((found - right).abs() < 1e-9, "{found} seconds of {polls} polls");
}

#[test]
fn the_next_passes_are_launched_before_decisions_are_read() {
    for leaves in [Leaves::Constant, Leaves::Resident] {
        let driver = driver();
        add_kernels(&driver);
        let (mut selfplay, network) = selfplay(1, leaves);
        selfplay.set_network(&network, RootCache::default()).expect("attached");
        let games = selfplay.poll().expect("played");
        check_slots(&selfplay, &games, 1);
        calls(&driver);
        for polls in 2..8 {
            let games = selfplay.poll().expect("played");
            check_slots(&selfplay, &games, polls);
            let found = calls(&driver);
            let passes = match leaves {
                Leaves::Constant => vec![("simulate_rows", 1)],
                Leaves::Resident => vec![("graph", 6); PASSES],
            };
            // A poll's records: before and after its passes, of its header, and of the decisions of the poll before, whose other records
            // are the last ones before `began`.
            let began = found.iter().find(|(name, _)| name == "record").expect("before the passes").1;
            let header = began - 2;
            let decisions = (SLOTS * PASSES * FORMAT.decision_bytes()) as i64;
            let right = [
                vec![("record", began)],
                passes,
                vec![("count_rows", 1), ("end_poll", 1), ("record", began + 1)],
                vec![("copy", HEADER_BYTES), ("record", began + 2)],
                vec![("wait for a record", header)],
                vec![("copy", decisions), ("record", began + 3), ("wait for a record", began + 3)],
                vec![("wait for a record", header - 2), ("wait for a record", header - 1)],
                vec![("wait for a record", began + 3)],
            ]
            .concat();
            let found: Vec<(&str, i64)> =
                found.iter().map(|(name, number)| (name.as_str(), *number)).collect();
            assert_eq!(found, right, "poll {polls}, {leaves:?}");
        }
        check_seconds(&mut selfplay, 7);
        // New weights: the poll that is under way is discarded.
        let before: Vec<_> = selfplay.slots().cloned().collect();
        selfplay.set_network(&network, RootCache::default()).expect("attached");
        assert!(selfplay.slots().eq(&before), "nothing of the poll under way is applied");
    }
}

#[test]
fn all_gpus_have_their_next_passes_before_any_is_waited_for() {
    let driver = driver();
    add_kernels(&driver);
    let (mut selfplay, network) = selfplay(2, Leaves::Constant);
    selfplay.set_network(&network, RootCache::default()).expect("attached");
    for polls in 1..6 {
        calls(&driver);
        let games = selfplay.poll().expect("played");
        check_slots(&selfplay, &games, polls);
        let found = calls(&driver);
        let launched = found.iter().rposition(|(name, _)| name == "end_poll").expect("launched");
        let waited = found.iter().position(|(name, _)| name.starts_with("wait")).expect("waited");
        assert!(launched < waited, "{found:?}");
        let num = found.iter().filter(|(name, _)| name == "end_poll").count();
        assert_eq!(num, if polls == 1 { 4 } else { 2 }, "one poll of each GPU more than is applied");
    }
    check_seconds(&mut selfplay, 5);
}

#[test]
fn a_pass_that_fails_is_reported_by_its_poll_or_the_one_before() {
    for fails_at in [0, 4, 8] {
        let driver = driver();
        add_kernels(&driver);
        let (mut selfplay, network) = selfplay(1, Leaves::Constant);
        selfplay.set_network(&network, RootCache::default()).expect("attached");
        *FAILS_AT.lock().expect("no panic") = Some(fails_at);
        let (poll, error) =
            (0..10).find_map(|poll| Some((poll, selfplay.poll().err()?.to_string()))).expect("a pass fails");
        let own = fails_at / PASSES;
        assert!(poll == own || poll + 1 == own, "poll {poll} reports a pass of poll {own}");
        assert!(error.contains("simulate_rows (") && error.contains("an illegal memory access"), "{error}");
        assert!(selfplay.set_network(&network, RootCache::default()).is_err(), "the failure stays");
    }
}
