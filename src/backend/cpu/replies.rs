//! The second ply of decisions on whole turns: the best turns of a row, and the turns that can follow each of them. The value of a turn is
//! the mean over chance of what the best reply leaves (2-ply search, Tesauro 1995).

use crate::backend::plan::CANDIDATES;
use crate::game::{Game, MAX_PLAYERS, Turn};

/// Only turns whose value by themselves is within this of the best one's are looked at further. gnubg's filter for the same lookahead is 0.16 points
/// of 3, about 0.05, and eight turns besides the best.
const MARGIN: f32 = 0.06;

/// A turn of which the replies are evaluated.
#[derive(Clone, Copy)]
struct Candidate<S> {
    /// The position after it.
    state: S,
    /// The number of its plies.
    len: usize,
    /// The sum so far of the values for every player, weighted by their probabilities. `[P]`
    value: [f32; MAX_PLAYERS],
}

/// A turn that can follow a candidate.
#[derive(Clone, Copy)]
struct Reply<S> {
    candidate: usize,
    probability: f32,
    /// The position in which its player decides.
    state: S,
}

/// The candidates of one row and the replies to them.
pub(super) struct Replies<S> {
    candidates: Vec<Candidate<S>>,
    /// The plies of all candidates, one after the other.
    lines: Vec<u16>,
    replies: Vec<Reply<S>>,
    /// The first reply that no pass has taken.
    next: usize,
    /// Positions before which chance decides, while replies are listed: their candidate and probability.
    dealt: Vec<Reply<S>>,
    probabilities: Vec<f32>,
}

impl<S: Copy> Replies<S> {
    /// None.
    pub fn new() -> Self {
        let (candidates, lines, replies) = (Vec::new(), Vec::new(), Vec::new());
        Self { candidates, lines, replies, next: 0, dealt: Vec::new(), probabilities: Vec::new() }
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.candidates.clear();
        self.lines.clear();
        self.replies.clear();
        self.next = 0;
    }

    /// The ends of a turn whose replies are evaluated: of `ends`, positions and their values for its player, the best ones.
    pub fn best_of(ends: &mut Vec<(usize, f32)>) {
        ends.sort_by(|a, b| b.1.total_cmp(&a.1));
        let best = ends.first().map_or(0.0, |end| end.1);
        ends.retain(|end| end.1 >= best - MARGIN);
        ends.truncate(CANDIDATES);
    }

    /// Adds the turn to `state` by the plies `line`.
    pub fn add(&mut self, state: &S, line: impl Iterator<Item = u16>) {
        let before = self.lines.len();
        self.lines.extend(line);
        let len = self.lines.len() - before;
        self.candidates.push(Candidate { state: *state, len, value: [0.0; MAX_PLAYERS] });
    }

    /// Lists the replies to all candidates: the positions in which a player decides next, whatever chance deals before. Where the game ends
    /// before, the result is the value. `legal` is scratch for outcomes.
    pub fn list<G: Game<State = S>>(&mut self, game: &G, legal: &mut [u16]) {
        let players = game.sizes().num_players;
        let Self { candidates, replies, dealt, probabilities, .. } = self;
        probabilities.resize(legal.len(), 0.0);
        for (index, candidate) in candidates.iter_mut().enumerate() {
            dealt.clear();
            dealt.push(Reply { candidate: index, probability: 1.0, state: candidate.state });
            while let Some(at) = dealt.pop() {
                match game.turn(&at.state) {
                    Turn::Player(_) => replies.push(at),
                    Turn::Chance if !game.is_horizon(&at.state) => {
                        let count = game.legal(&at.state, Default::default(), legal);
                        game.chance_probs(&at.state, &legal[..count], &mut probabilities[..count]);
                        for (&outcome, &probability) in legal[..count].iter().zip(&*probabilities).rev() {
                            let mut state = at.state;
                            game.step(&mut state, outcome, Default::default());
                            dealt.push(Reply { probability: at.probability * probability, state, ..at });
                        }
                    }
                    Turn::Chance | Turn::Over => {
                        let mut value = [0.0; MAX_PLAYERS];
                        game.stage_returns(&at.state, &mut value[..players]);
                        candidate.add(at.probability, &value);
                    }
                }
            }
        }
    }

    /// The next reply that no pass has taken: its number, and the position in which its player decides.
    pub fn take(&mut self) -> Option<(usize, S)> {
        let number = self.next;
        let reply = self.replies.get(number)?;
        self.next += 1;
        Some((number, reply.state))
    }

    /// Counts that reply `number` leaves `value` for every player.
    pub fn credit(&mut self, number: usize, value: &[f32; MAX_PLAYERS]) {
        let reply = &self.replies[number];
        self.candidates[reply.candidate].add(reply.probability, value);
    }

    /// True once reply `number` was the last.
    pub fn is_last(&self, number: usize) -> bool {
        number + 1 == self.replies.len()
    }

    /// True if no reply is to be evaluated.
    pub fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }

    /// All candidates: their plies, and their values for every player.
    pub fn found(&self) -> impl Iterator<Item = (&[u16], &[f32; MAX_PLAYERS])> {
        let mut lines = self.lines.as_slice();
        self.candidates.iter().map(move |candidate| {
            let (line, rest) = lines.split_at(candidate.len);
            lines = rest;
            (line, &candidate.value)
        })
    }
}

impl<S> Candidate<S> {
    fn add(&mut self, probability: f32, value: &[f32; MAX_PLAYERS]) {
        self.value.iter_mut().zip(value).for_each(|(sum, value)| *sum += probability * value);
    }
}
