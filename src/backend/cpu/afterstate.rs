//! Rows without trees: a decision is a whole turn. All positions after it, the afterstates, are evaluated in one batch over all rows, and
//! the turn to the best one is played (TD-Gammon, Tesauro 1995). The network sees an afterstate as the player who moved sees it. With a
//! lookahead of two turns, the best turns are then evaluated by the replies to them ([`super::replies`]), as many of all rows in a pass as fit.

use super::replies::Replies;
use crate::backend::plan::{AFTERSTATES, BackendPlan, Reuse, TURN_POSITIONS};
use crate::backend::{Backend, HeadsRead, PassStages, PlyPlan, RowBudget, TreeRows, TreeSnapshot};
use crate::error::{Error, Result};
use crate::game::{
    Duplicates, Game, History, MAX_PLAYERS, MAX_TURN_POSITIONS, Sizes, Turn, WholeTurn, WholeTurns,
};
use crate::search::PassStats;
use crate::search::expand::seat_values;
use crate::search::root::{RootSummary, argmax};

/// The absent evaluation slot: the result of the position is known.
const NO_SLOT: u32 = u32::MAX;

/// How far the turn of a row is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No ply has begun.
    Idle,
    /// A pass will decide it.
    Open,
    /// The best turns are known by themselves, and passes evaluate the replies to them.
    AwaitsReplies,
    /// It is decided.
    Decided,
}

/// What a turn is in its pass.
#[derive(Clone, Copy)]
enum TurnRole {
    /// It is the decision of its row.
    Decision,
    /// It is this reply to one of the row's best turns.
    Reply(usize),
}

/// One row.
struct Row<S> {
    state: S,
    history: Vec<u64>,
    stage: Stage,
    player: u8,
    /// The legal actions. `[E]`
    actions: Vec<u16>,
    /// The value of the best afterstate behind each action, for the player to move; -inf where none was evaluated. `[E]`
    q: Vec<f32>,
    /// The plies of the decided turn that are left, the next one last.
    line: Vec<u16>,
    /// The value of the turn's afterstate for every player. `[P]`
    value: [f32; MAX_PLAYERS],
    /// The best turns and the replies to them.
    replies: Replies<S>,
}

impl<S> Row<S> {
    /// True if it needs no pass.
    fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Idle | Stage::Decided)
    }
}

/// B rows of one game.
pub struct AfterstateBackend<G: Game> {
    game: G,
    sizes: Sizes,
    plan: BackendPlan,
    rows: Vec<Row<G::State>>,
    /// The turns of this pass.
    turns: WholeTurns<G::State>,
    /// The turns of this pass, with their rows.
    open: Vec<(usize, TurnRole, WholeTurn)>,
    /// The evaluation slot of each position of this pass. `[positions]`
    slots: Vec<u32>,
    /// The value of each position of this pass for the player whose turn it is. `[positions]`
    own: Vec<f32>,
    /// Ends of a turn: their positions, and their values for its player.
    ends: Vec<(usize, f32)>,
    /// `[E]`
    legal: Vec<u16>,
}

impl<G: Game> AfterstateBackend<G> {
    /// Inactive rows of `game`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a game with hidden information, and for a lookahead of two turns in one whose rules depend on earlier positions.
    pub fn new(game: G, plan: BackendPlan) -> Result<Self> {
        let sizes = game.sizes();
        if sizes.hidden_information {
            return Err(Error::unsupported(
                format!("the algorithm afterstate in {}", G::NAME),
                "its successors depend on hidden information; puct and gumbel search draws of it",
            ));
        }
        if sizes.uses_history && plan.params.turns > 1 {
            return Err(Error::unsupported(
                format!("a lookahead of {} turns in {}", plan.params.turns, G::NAME),
                "its legal moves depend on the positions before them; eval.turns = 1 looks at the turn alone",
            ));
        }
        let duplicates = if sizes.uses_history { Duplicates::Kept } else { Duplicates::Joined };
        let state = game.init();
        let row = || Row {
            state,
            history: Vec::new(),
            stage: Stage::Idle,
            player: 0,
            actions: Vec::with_capacity(sizes.max_legal),
            q: Vec::with_capacity(sizes.max_legal),
            line: Vec::new(),
            value: [0.0; MAX_PLAYERS],
            replies: Replies::new(),
        };
        let positions = TURN_POSITIONS + MAX_TURN_POSITIONS;
        Ok(Self {
            rows: (0..plan.rows).map(|_| row()).collect(),
            turns: WholeTurns::new(TURN_POSITIONS, duplicates),
            open: Vec::with_capacity(plan.rows),
            slots: Vec::with_capacity(positions),
            own: Vec::with_capacity(positions),
            ends: Vec::with_capacity(MAX_TURN_POSITIONS),
            legal: vec![0; sizes.num_edges()],
            game,
            sizes,
            plan,
        })
    }

    /// Lists the legal actions of row `b`'s position, none of which has a value yet.
    fn list_actions(&mut self, b: usize) {
        let row = &mut self.rows[b];
        let history = History { played: &row.history, path: &[] };
        let count = self.game.legal(&row.state, history, &mut self.legal);
        row.actions.clear();
        row.actions.extend_from_slice(&self.legal[..count]);
        row.q.clear();
        row.q.resize(count, f32::NEG_INFINITY);
    }

    /// Adds the turn of row `b` to the pass.
    fn open_turn(&mut self, b: usize, out: &mut PassStats) -> Result<()> {
        let Self { game, rows, turns, legal, .. } = self;
        let row = &rows[b];
        let turn = game.whole_turn(&row.state, History { played: &row.history, path: &[] }, turns, legal)?;
        self.add_turn(b, TurnRole::Decision, turn, out);
        Ok(())
    }

    /// Adds replies of row `b` to the pass, as many as fit into `limit` evaluations, and at least one to an empty pass.
    fn open_replies(&mut self, b: usize, limit: usize, out: &mut PassStats) -> Result<()> {
        while self.open.is_empty() || self.has_room(limit, out) {
            let Self { game, rows, turns, legal, .. } = self;
            let Some((number, state)) = rows[b].replies.take() else { break };
            let turn = game.whole_turn(&state, History::default(), turns, legal)?;
            self.add_turn(b, TurnRole::Reply(number), turn, out);
        }
        Ok(())
    }

    /// True if a pass with the counts `out` takes another turn.
    fn has_room(&self, limit: usize, out: &PassStats) -> bool {
        out.evaluations < limit && self.slots.len() < TURN_POSITIONS
    }

    /// Adds the ends of `turn` to the evaluations of the pass.
    fn add_turn(&mut self, b: usize, role: TurnRole, turn: WholeTurn, out: &mut PassStats) {
        for position in &self.turns.positions()[turn.positions.clone()] {
            let is_within = self.game.turn(position) == Turn::Player(turn.player);
            let is_known =
                is_within || self.game.turn(position) == Turn::Over || self.game.is_horizon(position);
            self.slots.push(if is_known { NO_SLOT } else { out.evaluations as u32 });
            out.evaluations += usize::from(!is_known);
            out.leaves += usize::from(!is_within);
        }
        self.open.push((b, role, turn));
    }

    /// Uses the turn of `open[number]` with the values `[M, P]` of the pass.
    fn decide(&mut self, number: usize, values: &[f32]) {
        let (b, role, turn) = self.open[number].clone();
        self.evaluate(&turn, values);
        match role {
            TurnRole::Decision => {
                self.decide_row(b, &turn, values);
                self.rows[b].stage = Stage::Decided;
                if self.plan.params.turns > 1 {
                    self.list_replies(b, &turn);
                }
            }
            TurnRole::Reply(reply) => {
                let (first, mut value) = (turn.positions.start, [0.0; MAX_PLAYERS]);
                // The position before a turn has the value of the best end.
                let best =
                    self.ends_of(&turn).find(|&at| self.own[at - first] == self.own[0]).unwrap_or(first);
                self.read_value(best, turn.player, values, &mut value);
                let replies = &mut self.rows[b].replies;
                replies.credit(reply, &value);
                if replies.is_last(reply) {
                    self.decide_by_replies(b);
                }
            }
        }
    }

    /// The positions that end `turn`.
    fn ends_of(&self, turn: &WholeTurn) -> impl Iterator<Item = usize> {
        let is_end = |&at: &usize| self.game.turn(&self.turns.positions()[at]) != Turn::Player(turn.player);
        turn.positions.clone().filter(is_end)
    }

    /// Writes the value for every player of position `at`, which ends a turn of `player`.
    fn read_value(&self, at: usize, player: u8, values: &[f32], out: &mut [f32; MAX_PLAYERS]) {
        let (p, state) = (self.sizes.num_players, &self.turns.positions()[at]);
        match self.slots[at] {
            NO_SLOT => self.game.stage_returns(state, &mut out[..p]),
            slot => {
                let seated = self.game.num_seated(state, p);
                seat_values(&values[slot as usize * p..][..p], player, seated, &mut out[..p]);
            }
        }
    }

    /// Computes the value of each position of `turn` for its player.
    fn evaluate(&mut self, turn: &WholeTurn, values: &[f32]) {
        let (player, first) = (usize::from(turn.player), turn.positions.start);
        let (p, positions, plies) = (self.sizes.num_players, self.turns.positions(), self.turns.plies());
        // Positions stand after those that lead to them: plies in descending order see the value of the position after them.
        self.own.clear();
        self.own.resize(turn.positions.len(), f32::NEG_INFINITY);
        let mut known = [0.0; MAX_PLAYERS];
        for (own, at) in self.own.iter_mut().zip(turn.positions.clone()) {
            let state = &positions[at];
            match self.slots[at] {
                NO_SLOT if self.game.turn(state) == Turn::Player(turn.player) => {}
                NO_SLOT => {
                    self.game.stage_returns(state, &mut known[..p]);
                    *own = known[player];
                }
                slot => *own = values[slot as usize * p],
            }
        }
        for ply in plies[turn.plies.clone()].iter().rev() {
            let after = self.own[ply.to as usize - first];
            let before = &mut self.own[ply.from as usize - first];
            *before = before.max(after);
        }
    }

    /// Decides row `b` by the values of its turn alone.
    fn decide_row(&mut self, b: usize, turn: &WholeTurn, values: &[f32]) {
        let (first, plies) = (turn.positions.start, self.turns.plies());
        let row = &mut self.rows[b];
        row.line.clear();
        let of_root = plies[turn.plies.clone()].iter().take_while(|ply| ply.from as usize == first);
        row.q.iter_mut().zip(of_root).for_each(|(q, ply)| *q = self.own[ply.to as usize - first]);
        let mut at = first;
        // The first best ply of each position, as the plies are in ascending order.
        for ply in &plies[turn.plies.clone()] {
            let is_best = || self.own[ply.to as usize - first] == self.own[at - first];
            if ply.from as usize == at && is_best() {
                row.line.push(ply.action);
                at = ply.to as usize;
            }
        }
        row.line.reverse();
        let mut value = row.value;
        self.read_value(at, turn.player, values, &mut value);
        self.rows[b].value = value;
    }

    /// Lists the replies to the best of the turns of row `b`, which is decided, unless one turn is better than all others.
    fn list_replies(&mut self, b: usize, turn: &WholeTurn) {
        let first = turn.positions.start;
        let mut ends = std::mem::take(&mut self.ends);
        ends.clear();
        ends.extend(self.ends_of(turn).map(|at| (at, self.own[at - first])));
        Replies::<G::State>::best_of(&mut ends);
        let (positions, plies) = (self.turns.positions(), &self.turns.plies()[turn.plies.clone()]);
        let replies = &mut self.rows[b].replies;
        replies.clear();
        if ends.len() > 1 {
            for &(end, _) in &ends {
                let before = |&(at, _): &(usize, u16)| {
                    let ply = plies.iter().find(|ply| ply.to as usize == at)?;
                    Some((ply.from as usize, ply.action))
                };
                let back = std::iter::successors(before(&(end, 0)), before);
                replies.add(&positions[end], back.map(|(_, action)| action));
            }
            replies.list(&self.game, &mut self.legal);
        }
        match (ends.len(), replies.is_empty()) {
            (..=1, _) => {}
            // All of them end the game.
            (_, true) => self.decide_by_replies(b),
            (_, false) => self.rows[b].stage = Stage::AwaitsReplies,
        }
        self.ends = ends;
    }

    /// Decides row `b` by the replies to its best turns. The values of their first actions are those after the replies; those of all other
    /// actions stay values of one turn.
    fn decide_by_replies(&mut self, b: usize) {
        let Row { actions, q, line, value, player, replies, stage, .. } = &mut self.rows[b];
        let player = usize::from(*player);
        let index_of = |line: &[u16]| line.last().and_then(|action| actions.binary_search(action).ok());
        for index in replies.found().filter_map(|(line, _)| index_of(line)) {
            q[index] = f32::NEG_INFINITY;
        }
        let mut best = f32::NEG_INFINITY;
        for (found, of_found) in replies.found() {
            if let Some(index) = index_of(found) {
                q[index] = q[index].max(of_found[player]);
            }
            if of_found[player] > best {
                best = of_found[player];
                line.clear();
                line.extend_from_slice(found);
                *value = *of_found;
            }
        }
        *stage = Stage::Decided;
    }
}

impl<G: Game> TreeRows for AfterstateBackend<G> {
    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn rows(&self) -> usize {
        self.plan.rows
    }

    fn set_root(&mut self, b: usize, state: &[u8], history: &[u64]) -> Result<()> {
        let row = &mut self.rows[b];
        row.state = bytemuck::pod_read_unaligned(state);
        row.history.clear();
        row.history.extend_from_slice(history);
        row.line.clear();
        row.replies.clear();
        row.stage = Stage::Idle;
        if let Turn::Player(player) = self.game.turn(&row.state) {
            row.player = player;
        }
        self.list_actions(b);
        Ok(())
    }

    fn set_root_tree(&mut self, _b: usize, _snapshot: &TreeSnapshot) -> Result<()> {
        Err(no_trees())
    }

    fn snapshot(&mut self, _b: usize, _limit: usize) -> Result<TreeSnapshot> {
        Err(no_trees())
    }

    /// Begins a ply: one of a turn that is decided already needs no pass.
    fn begin(&mut self, b: usize, _plan: PlyPlan) -> Result<()> {
        let row = &mut self.rows[b];
        row.stage = if row.line.is_empty() { Stage::Open } else { Stage::Decided };
        Ok(())
    }

    fn is_done(&mut self, b: usize) -> Result<bool> {
        Ok(self.rows[b].is_done())
    }

    fn any_done(&mut self) -> Result<bool> {
        Ok(self.rows.iter().any(Row::is_done))
    }

    /// The policy is the action of the best turn.
    fn summarise(&mut self, b: usize, out: &mut RootSummary) -> Result<()> {
        let Row { actions, q, line, value, player, stage, .. } = &self.rows[b];
        let count = actions.len();
        let is_decided = matches!(stage, Stage::AwaitsReplies | Stage::Decided);
        let is_known = |q: f32| q > f32::NEG_INFINITY;
        out.q.clear();
        out.q.extend(q.iter().map(|&q| if is_known(q) { q } else { 0.0 }));
        out.actions.clone_from(actions);
        for visits in [&mut out.visits, &mut out.new_visits] {
            visits.clear();
            visits.extend(q.iter().map(|&q| i32::from(is_decided && is_known(q))));
        }
        out.prior.clear();
        out.prior.resize(count, 1.0 / count.max(1) as f32);
        out.best = match line.last() {
            Some(action) => actions.binary_search(action).unwrap_or(0),
            None => argmax(q),
        };
        out.policy.clear();
        out.policy.resize(count, 0.0);
        if let Some(best) = out.policy.get_mut(out.best) {
            *best = 1.0;
        }
        out.value.clear();
        out.value.extend_from_slice(&value[..self.sizes.num_players]);
        (out.player, out.proven) = (*player, false);
        Ok(())
    }

    /// Goes on with the decided turn where `actions` is its next ply.
    fn advance(&mut self, b: usize, actions: &[u16], state: &[u8], history: &[u64]) -> Result<()> {
        let mut line = std::mem::take(&mut self.rows[b].line);
        let follows = self.plan.reuse == Reuse::Keep && line.pop().is_some_and(|action| *actions == [action]);
        self.set_root(b, state, history)?;
        if !follows {
            line.clear();
        }
        let Row { actions, q, value, player, line: of_row, .. } = &mut self.rows[b];
        if let Some(next) = line.last().and_then(|next| actions.binary_search(next).ok()) {
            q[next] = value[usize::from(*player)];
        }
        *of_row = line;
        Ok(())
    }

    fn root_state(&mut self, b: usize) -> Result<&[u8]> {
        Ok(bytemuck::bytes_of(&self.rows[b].state))
    }

    fn root_history(&mut self, b: usize) -> Result<&[u64]> {
        Ok(&self.rows[b].history)
    }

    fn num_nodes(&mut self, _b: usize) -> Result<usize> {
        Ok(1)
    }

    /// The best turn for its first action, and all other actions alone.
    fn variations(&mut self, b: usize, first: &[u16], max_len: usize) -> Result<Vec<Vec<u16>>> {
        let line: Vec<u16> = self.rows[b].line.iter().rev().copied().take(max_len).collect();
        let of_first =
            |&action: &u16| if line.first() == Some(&action) { line.clone() } else { vec![action] };
        Ok(first.iter().map(of_first).collect())
    }
}

impl<G: Game> PassStages for AfterstateBackend<G> {
    /// Adds the turns of the rows of `budget` to the pass, up to `AFTERSTATES` of them that need the network.
    fn select(&mut self, budget: RowBudget) -> Result<PassStats> {
        self.turns.clear();
        self.open.clear();
        self.slots.clear();
        let mut out = PassStats::default();
        let limit = budget.evaluations.min(AFTERSTATES);
        while out.visited < budget.rows.min(self.plan.rows) {
            if out.visited > 0 && !self.has_room(limit, &out) {
                break;
            }
            let b = (budget.first + out.visited) % self.plan.rows;
            out.visited += 1;
            out.rows += usize::from(!self.rows[b].is_done());
            match self.rows[b].stage {
                Stage::Idle | Stage::Decided => {}
                Stage::Open => self.open_turn(b, &mut out)?,
                Stage::AwaitsReplies => self.open_replies(b, limit, &mut out)?,
            }
        }
        (out.simulations, out.depth_sum, out.depth_max) = (out.leaves, out.leaves as u64, 1);
        Ok(out)
    }

    fn observe(&mut self, obs: &mut [f32]) -> Result<()> {
        let mut rows = obs.chunks_exact_mut(self.sizes.obs.len());
        for (_, _, turn) in &self.open {
            for at in turn.positions.clone().filter(|&at| self.slots[at] != NO_SLOT) {
                if let Some(out) = rows.next() {
                    self.game.observe(&self.turns.positions()[at], turn.player, out);
                }
            }
        }
        Ok(())
    }

    fn heads_read(&self) -> HeadsRead {
        HeadsRead::Values
    }

    fn expand(&mut self, _logits: &[f32], values: &[f32]) -> Result<()> {
        (0..self.open.len()).for_each(|number| self.decide(number, values));
        self.open.clear();
        Ok(())
    }

    fn backup(&mut self) -> Result<()> {
        Ok(())
    }
}

impl<G: Game> Backend for AfterstateBackend<G> {}

fn no_trees() -> Error {
    Error::unsupported("trees with the algorithm afterstate", "it evaluates the positions after a turn alone")
}
