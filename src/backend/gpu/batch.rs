//! N games on a device, without trees: the device's [`crate::batch::GameBatch`], with the kernels of `kernels/batch.cu`.

use crate::batch::ErasedRules;
use crate::batch::programs::program;
use crate::device::{Arg, Device, LaunchShape, WARP};
use crate::device_struct::device_struct;
use crate::error::{Error, Result};
use crate::game::Sizes;
use bytemuck::{NoUninit, Pod};

/// Threads of a block.
const BLOCK: u32 = 128;

/// Maximum number of games of a batch: their threads are numbered by 32 bits.
pub const MAX_GAMES: usize = 1 << 26;

device_struct! {
    /// The parameter block of the kernels: the arrays of N games. Addresses are those on the device.
    #[derive(Clone, Copy, Debug, NoUninit)]
    pub(super) struct BatchBlock {
        /// `[N]`
        states: u64 as "State*",
        /// Keys of earlier positions, oldest first, one per ply. `[N, history]`
        histories: u64 as "u64*",
        /// Plies of each game in progress. `[N]`
        plies: u64 as "u32*",
        /// Games finished in each slot. `[N]`
        games: u64 as "u64*",
        /// Legal actions or outcomes, ascending. `[N, E]`
        legal: u64 as "u16*",
        /// `[N]`
        num_legal: u64 as "u16*",
        /// The actions to play. `[N]`
        actions: u64 as "const u16*",
        /// 1 where a game has ended. `[N]`
        over: u64 as "u8*",
        /// The results of the games that have ended, 0 elsewhere. `[N, P]`
        returns: u64 as "f32*",
        /// `[N, obs]`
        observations: u64 as "f32*",
        /// N.
        num_games: u32,
        /// Up to a multiple of 8 bytes, as CUDA pads a struct that has addresses.
        padding: u32 as "",
    }
}

/// N games of one kind on a device, stepped together. A new game replaces a finished one at once.
pub struct DeviceBatch<D: Device> {
    device: D,
    sizes: Sizes,
    num_games: usize,
    state_bytes: usize,
    /// `[N, state bytes]`
    states: D::Buffer,
    /// Keys of earlier positions, where the game uses them. `[N, max plies]`
    histories: D::Buffer,
    /// Plies of each game in progress. `[N]`
    plies: D::Buffer,
    /// Games finished in each slot. `[N]`
    games: D::Buffer,
    /// `[N, E]`
    legal: D::Buffer,
    /// `[N]`
    num_legal: D::Buffer,
    /// `[N]`
    actions: D::Buffer,
    /// `[N]`
    over: D::Buffer,
    /// `[N, P]`
    returns: D::Buffer,
    /// `[N, obs]`
    observations: D::Buffer,
}

/// The legal actions (or outcomes) of N games.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegalLists {
    /// Ascending, the first `lengths` of each row. `[N, E]`
    pub actions: Vec<u16>,
    /// `[N]`
    pub lengths: Vec<u16>,
}

/// The outcome of one ply in N games.
#[derive(Clone, Debug, PartialEq)]
pub struct StepResults {
    /// 1 where the game ended; a new one has begun there. `[N]`
    pub over: Vec<u8>,
    /// The results of the games that ended, 0 elsewhere. `[N, P]`
    pub returns: Vec<f32>,
}

impl<D: Device> DeviceBatch<D> {
    /// N games at their start on `device`, whose program is replaced.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for more than [`MAX_GAMES`]; as [`program`] and the device.
    pub fn new(mut device: D, game: &dyn ErasedRules, num_games: usize) -> Result<Self> {
        if num_games > MAX_GAMES {
            let why = format!("a batch holds at most {MAX_GAMES}");
            return Err(Error::unsupported(format!("{num_games} games"), why));
        }
        device.load(&program(game, "batch")?)?;
        let (sizes, state_bytes, n) = (game.sizes(), game.state_size(), num_games);
        let history = if sizes.uses_history { sizes.max_plies } else { 0 };
        let of = |entries: usize, bytes: usize| device.alloc((n * entries * bytes).max(8));
        let mut batch = Self {
            states: of(1, state_bytes)?,
            histories: of(history, 8)?,
            plies: of(1, 4)?,
            games: of(1, 8)?,
            legal: of(sizes.num_edges(), 2)?,
            num_legal: of(1, 2)?,
            actions: of(1, 2)?,
            over: of(1, 1)?,
            returns: of(sizes.num_players, 4)?,
            observations: of(sizes.obs.len(), 4)?,
            device,
            sizes,
            num_games,
            state_bytes,
        };
        batch.restart()?;
        Ok(batch)
    }

    /// N.
    pub fn len(&self) -> usize {
        self.num_games
    }

    /// True for a batch of no games.
    pub fn is_empty(&self) -> bool {
        self.num_games == 0
    }

    /// Sets every game to its start and the number of finished games to 0.
    ///
    /// # Errors
    /// Those of the device.
    pub fn restart(&mut self) -> Result<()> {
        self.launch("batch_init", 1)
    }

    /// The legal actions (or outcomes) of every game.
    ///
    /// # Errors
    /// Those of the device.
    pub fn legal(&mut self) -> Result<LegalLists> {
        self.launch("batch_legal", 1)?;
        let actions = self.download(&self.legal, self.sizes.num_edges())?;
        Ok(LegalLists { actions, lengths: self.download(&self.num_legal, 1)? })
    }

    /// Makes one ply in every game. `actions` is `[N]`, each one of [`DeviceBatch::legal`].
    ///
    /// # Errors
    /// [`Error::Mismatch`] where there are not N actions; those of the device.
    pub fn step(&mut self, actions: &[u16]) -> Result<StepResults> {
        if actions.len() != self.num_games {
            return Err(Error::mismatch(
                "actions for a batch",
                actions.len(),
                format_args!("{}, one a game", self.num_games),
            ));
        }
        self.device.upload(&mut self.actions, 0, bytemuck::cast_slice(actions))?;
        self.launch("batch_step", 1)?;
        let returns = self.download(&self.returns, self.sizes.num_players)?;
        Ok(StepResults { over: self.download(&self.over, 1)?, returns })
    }

    /// The observation of the player to move in every game; player 0's at chance nodes. `[N, obs]`
    ///
    /// # Errors
    /// Those of the device.
    pub fn observe(&mut self) -> Result<Vec<f32>> {
        self.launch("batch_observe", WARP)?;
        self.download(&self.observations, self.sizes.obs.len())
    }

    /// Makes `num_plies` random plies in every game in one launch, with the draws of [`crate::batch::GameBatch::step_random`] for the
    /// same seed.
    ///
    /// # Errors
    /// Those of the device.
    pub fn random_play(&mut self, seed: u64, num_plies: u32) -> Result<()> {
        let block = self.block();
        let args = [Arg::of(&block), Arg::U32(num_plies), Arg::U64(seed)];
        self.device.launch("batch_random_play", self.shape(1), &args)
    }

    /// The states' bytes. `[N, state bytes]`
    ///
    /// # Errors
    /// Those of the device.
    pub fn states(&self) -> Result<Vec<u8>> {
        self.download(&self.states, self.state_bytes)
    }

    /// Plies of each game in progress. `[N]`
    ///
    /// # Errors
    /// Those of the device.
    pub fn plies(&self) -> Result<Vec<u32>> {
        self.download(&self.plies, 1)
    }

    /// Games finished in each slot. `[N]`
    ///
    /// # Errors
    /// Those of the device.
    pub fn finished(&self) -> Result<Vec<u64>> {
        self.download(&self.games, 1)
    }

    fn block(&self) -> BatchBlock {
        let address = |buffer| self.device.address(buffer);
        BatchBlock {
            states: address(&self.states),
            histories: address(&self.histories),
            plies: address(&self.plies),
            games: address(&self.games),
            legal: address(&self.legal),
            num_legal: address(&self.num_legal),
            actions: address(&self.actions),
            over: address(&self.over),
            returns: address(&self.returns),
            observations: address(&self.observations),
            num_games: self.num_games as u32,
            padding: 0,
        }
    }

    /// Launches `kernel` with `threads` threads a game.
    fn launch(&self, kernel: &'static str, threads: usize) -> Result<()> {
        self.device.launch(kernel, self.shape(threads), &[Arg::of(&self.block())])
    }

    /// `threads` threads a game, at least one block.
    fn shape(&self, threads: usize) -> LaunchShape {
        let grid = (self.num_games * threads).div_ceil(BLOCK as usize).max(1) as u32;
        LaunchShape { grid, block: BLOCK, shared: 0 }
    }

    /// Copies `entries` values a game to the host.
    fn download<T: Pod>(&self, from: &D::Buffer, entries: usize) -> Result<Vec<T>> {
        let mut out = vec![T::zeroed(); self.num_games * entries];
        self.device.download(from, 0, bytemuck::cast_slice_mut(&mut out))?;
        Ok(out)
    }
}
