//! The functions of one game's kernel, callable from Rust: `entry.cpp`.

use crate::host_compiler::{self, Effort};
use bytemuck::Zeroable;
use libloading::Library;
use std::ffi::c_void;
use std::marker::PhantomData;
use vecaz::batch::programs::program;
use vecaz::game::{Game, History, Sizes, Turn};
use vecaz::registry::any_game;

macro_rules! entry_points {
    ($($name:ident($($arg:ty),*) $(-> $out:ty)?;)+) => {
        struct EntryPoints {
            $($name: unsafe extern "C" fn($($arg),*) $(-> $out)?,)+
        }

        impl EntryPoints {
            fn load(library: &Library) -> Self {
                // SAFETY: entry.cpp defines each function under this name and with these types.
                unsafe {
                    Self {
                        $($name: *library
                            .get(concat!("entry_", stringify!($name)))
                            .expect(stringify!($name)),)+
                    }
                }
            }
        }
    };
}

type State = *const c_void;
type StateMut = *mut c_void;

entry_points! {
    init(StateMut);
    turn(State) -> i32;
    legal(State, *const u64, i32, *const u64, i32, *mut u16) -> i32;
    step(StateMut, u16, *const u64, i32, *const u64, i32);
    observe(State, i32, *mut f32);
    observe_lanes(State, i32, *mut f32) -> i32;
    returns(State, *mut f32);
    stage_returns(State, *mut f32);
    num_seated(State) -> i32;
    chance_probs(State, *const u16, i32, *mut f32);
    is_horizon(State) -> i32;
    history_key(State) -> u64;
    determinise(State, i32, u64, u64, u64, StateMut) -> u64;
    transform(State, u64, StateMut);
    transform_action(u16, u64) -> u16;
}

/// What stands below every program's source.
pub const CODE: &str = include_str!("entry.cpp");

/// Entries after the end of an array, which nobody may write to.
const GUARD: usize = 8;

/// The kernel of one game with its settings. Functions are those of [`Game`] with the same names.
pub struct Kernel<G: Game> {
    entry: EntryPoints,
    sizes: Sizes,
    /// Holds the code that `entry` points to.
    _library: Library,
    _game: PhantomData<G>,
}

// SAFETY of all calls below: the functions take the game's state (whose size entry.cpp asserts) and arrays of the lengths
// that `Sizes` tells, and keep no pointer.
impl<G: Game> Kernel<G> {
    pub fn new(game: &G) -> Self {
        let any = any_game(G::NAME, &game.options()).expect("the game's own options");
        let program = program(&*any, "batch").expect("a game with kernels");
        let library =
            host_compiler::library(&program, CODE, Effort::Little).unwrap_or_else(|what| panic!("{what}"));
        let entry = EntryPoints::load(&library);
        Self { entry, sizes: game.sizes(), _library: library, _game: PhantomData }
    }

    pub fn init(&self) -> G::State {
        let mut s = G::State::zeroed();
        unsafe { (self.entry.init)((&raw mut s).cast()) };
        s
    }

    pub fn turn(&self, s: &G::State) -> Turn {
        match unsafe { (self.entry.turn)((&raw const *s).cast()) } {
            -1 => Turn::Chance,
            -2 => Turn::Over,
            player => Turn::Player(player as u8),
        }
    }

    pub fn legal(&self, s: &G::State, history: History<'_>) -> Vec<u16> {
        let length = self.sizes.num_edges();
        let mut out = vec![u16::MAX; length + GUARD];
        let (played, path) = (history.played, history.path);
        let n = unsafe {
            (self.entry.legal)(
                (&raw const *s).cast(),
                played.as_ptr(),
                played.len() as i32,
                path.as_ptr(),
                path.len() as i32,
                out.as_mut_ptr(),
            )
        };
        assert!(out[length..].iter().all(|&x| x == u16::MAX), "game_legal wrote past its array");
        out.truncate(n as usize);
        out
    }

    pub fn step(&self, s: &mut G::State, action: u16, history: History<'_>) {
        let (played, path) = (history.played, history.path);
        unsafe {
            (self.entry.step)(
                (&raw mut *s).cast(),
                action,
                played.as_ptr(),
                played.len() as i32,
                path.as_ptr(),
                path.len() as i32,
            )
        }
    }

    pub fn observe(&self, s: &G::State, player: u8) -> Vec<f32> {
        let mut out = vec![0.0; self.sizes.obs.len()];
        unsafe { (self.entry.observe)((&raw const *s).cast(), i32::from(player), out.as_mut_ptr()) };
        out
    }

    /// As 32 lanes write it together, each its own entries.
    pub fn observe_lanes(&self, s: &G::State, player: u8) -> Vec<f32> {
        let mut out = vec![0.0; self.sizes.obs.len()];
        let wrong = unsafe {
            (self.entry.observe_lanes)((&raw const *s).cast(), i32::from(player), out.as_mut_ptr())
        };
        assert_eq!(wrong, -1, "game_observe: this entry was written by a lane that it does not belong to");
        out
    }

    pub fn returns(&self, s: &G::State) -> Vec<f32> {
        let mut out = vec![f32::NAN; self.sizes.num_players];
        unsafe { (self.entry.returns)((&raw const *s).cast(), out.as_mut_ptr()) };
        out
    }

    pub fn stage_returns(&self, s: &G::State) -> Vec<f32> {
        let mut out = vec![f32::NAN; self.sizes.num_players];
        unsafe { (self.entry.stage_returns)((&raw const *s).cast(), out.as_mut_ptr()) };
        out
    }

    pub fn num_seated(&self, s: &G::State) -> usize {
        unsafe { (self.entry.num_seated)((&raw const *s).cast()) as usize }
    }

    pub fn chance_probs(&self, s: &G::State, outcomes: &[u16]) -> Vec<f32> {
        let mut out = vec![f32::NAN; outcomes.len()];
        unsafe {
            (self.entry.chance_probs)(
                (&raw const *s).cast(),
                outcomes.as_ptr(),
                outcomes.len() as i32,
                out.as_mut_ptr(),
            )
        };
        out
    }

    pub fn is_horizon(&self, s: &G::State) -> bool {
        unsafe { (self.entry.is_horizon)((&raw const *s).cast()) != 0 }
    }

    pub fn history_key(&self, s: &G::State) -> u64 {
        unsafe { (self.entry.history_key)((&raw const *s).cast()) }
    }

    /// With the draws at (`seed`, determinise, `number`, `ply`); the state and the stream's next number after it.
    pub fn determinise(&self, s: &G::State, player: u8, [seed, number, ply]: [u64; 3]) -> (G::State, u64) {
        let mut out = G::State::zeroed();
        let next = unsafe {
            let (s, out) = ((&raw const *s).cast(), (&raw mut out).cast());
            (self.entry.determinise)(s, i32::from(player), seed, number, ply, out)
        };
        (out, next)
    }

    pub fn transform(&self, s: &G::State, symmetry: u64) -> G::State {
        let mut out = G::State::zeroed();
        unsafe { (self.entry.transform)((&raw const *s).cast(), symmetry, (&raw mut out).cast()) };
        out
    }

    pub fn transform_action(&self, action: u16, symmetry: u64) -> u16 {
        unsafe { (self.entry.transform_action)(action, symmetry) }
    }
}
