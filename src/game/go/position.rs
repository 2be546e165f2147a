//! A position of Go unpacked: what moves capture, which points may be played, which positions would repeat.

use super::points::{Grid, MAX_POINTS, Points};
use super::{KEY_INDEX, KEY_SEED, KEYS_PER_PLAYER, State};
use crate::game::History;
use crate::rng;

/// The keys by their index. The low bits of a key are its own index, so the difference of two positions' keys identifies the only stone
/// that could make it.
static KEYS: [u64; 2 * KEYS_PER_PLAYER] = keys();

const fn keys() -> [u64; 2 * KEYS_PER_PLAYER] {
    let mut out = rng::table(KEY_SEED);
    let mut i = 0;
    while i < out.len() {
        out[i] = out[i] & !KEY_INDEX | i as u64;
        i += 1;
    }
    out
}

#[inline(always)]
pub(super) fn key(player: usize, point: u16) -> u64 {
    KEYS[player * KEYS_PER_PLAYER + usize::from(point)]
}

pub(super) fn keys_of<const W: usize>(player: usize, points: Points<W>) -> u64 {
    points.iter().fold(0, |sum, point| sum ^ key(player, point))
}

/// A position unpacked: the words that its board needs, the player to move first.
pub(super) struct Board<const W: usize> {
    grid: Grid<W>,
    own: Points<W>,
    other: Points<W>,
    own_atari: Points<W>,
    other_atari: Points<W>,
    empty: Points<W>,
    player: usize,
}

impl<const W: usize> Board<W> {
    #[inline(always)]
    pub(super) fn new(size: u32, s: &State) -> Self {
        let player = usize::from(s.plies & 1);
        let grid = Grid::new(size);
        let (own, other) = (Points::load(&s.stones[player]), Points::load(&s.stones[1 - player]));
        Self {
            grid,
            own,
            other,
            own_atari: Points::load(&s.atari[player]),
            other_atari: Points::load(&s.atari[1 - player]),
            empty: grid.full.without(own.or(other)),
            player,
        }
    }

    /// The stones that a move to `point` captures: groups whose last liberty it is.
    #[inline(always)]
    fn captured(&self, stone: Points<W>) -> Points<W> {
        let seeds = self.grid.beside(stone).and(self.other_atari);
        if seeds.is_empty() { seeds } else { self.grid.flood(seeds, self.other_atari) }
    }

    /// All points that may be played, without regard to repetition: points with a liberty, next to an own group with another
    /// liberty, or capturing.
    #[inline(always)]
    pub(super) fn playable(&self) -> Points<W> {
        let sources = self.empty.or(self.own.without(self.own_atari)).or(self.other_atari);
        self.grid.beside(sources).and(self.empty)
    }

    /// The points whose position has been on the board before: in `history` or as `before`, the position one ply ago.
    pub(super) fn repeating(&self, s: &State, before: u64, history: History<'_>) -> Points<W> {
        let playable = self.playable();
        let taking = self.grid.beside(self.other_atari).and(playable);
        let mut repeating = Points::EMPTY;
        for &earlier in history.played.iter().chain(history.path) {
            let difference = earlier ^ s.hash;
            let index = (difference & KEY_INDEX) as usize;
            let (player, point) = (index / KEYS_PER_PLAYER, index % KEYS_PER_PLAYER);
            if KEYS[index] == difference && player == self.player && point < MAX_POINTS {
                repeating = repeating.or(Points::one(point as u16));
            }
        }
        repeating = repeating.without(taking);
        for point in taking.iter() {
            let captured = self.captured(Points::one(point));
            let after = s.hash ^ key(self.player, point) ^ keys_of(1 - self.player, captured);
            if after == before || history.path.contains(&after) || history.played.contains(&after) {
                repeating = repeating.or(Points::one(point));
            }
        }
        repeating.and(playable)
    }

    /// Plays a point, keeping both sides' groups in atari up to date.
    #[inline(always)]
    pub(super) fn place(&mut self, s: &mut State, point: u16) {
        let stone = Points::one(point);
        let beside = self.grid.beside(stone);
        s.hash ^= key(self.player, point);
        let captured = self.captured(stone);
        self.own = self.own.or(stone);
        self.empty = self.empty.without(stone);
        if !captured.is_empty() {
            s.captures = 1;
            s.hash ^= keys_of(1 - self.player, captured);
            self.other = self.other.without(captured);
            self.other_atari = self.other_atari.without(captured);
            self.empty = self.empty.or(captured);
            self.relieve(self.grid.beside(captured));
        }
        self.relieve(beside);
        if let Some(group) = self.grid.group_in_atari(stone, self.own, self.empty) {
            self.own_atari = self.own_atari.or(group);
        }
        // Neighbouring groups in atari are captured by now, so the remaining ones had two liberties or more.
        let mut rest = beside.and(self.other);
        while !rest.is_empty() {
            let seed = rest.lowest();
            rest = rest.without(seed);
            if let Some(group) = self.grid.group_in_atari(seed, self.other, self.empty) {
                self.other_atari = self.other_atari.or(group);
                rest = rest.without(group);
            }
        }
    }

    /// Removes the own groups that touch `points` from those in atari.
    #[inline(always)]
    fn relieve(&mut self, points: Points<W>) {
        let seeds = points.and(self.own_atari);
        if !seeds.is_empty() {
            self.own_atari = self.own_atari.without(self.grid.flood(seeds, self.own_atari));
        }
    }

    /// The same board with the other player to move.
    #[inline(always)]
    pub(super) fn turned(self) -> Self {
        Self {
            own: self.other,
            other: self.own,
            own_atari: self.other_atari,
            other_atari: self.own_atari,
            player: 1 - self.player,
            ..self
        }
    }

    #[inline(always)]
    pub(super) fn write(&self, s: &mut State) {
        self.own.store(&mut s.stones[self.player]);
        self.other.store(&mut s.stones[1 - self.player]);
        self.own_atari.store(&mut s.atari[self.player]);
        self.other_atari.store(&mut s.atari[1 - self.player]);
    }
}

/// The points of black and of white: stones, and empty regions that touch only that colour.
pub(super) fn owned<const W: usize>(size: u32, s: &State) -> [Points<W>; 2] {
    let grid = Grid::<W>::new(size);
    let stones = s.stones.map(|words| Points::<W>::load(&words));
    let empty = grid.full.without(stones[0].or(stones[1]));
    let reached = stones.map(|own| grid.flood(own, empty.or(own)));
    [reached[0].without(reached[1]), reached[1].without(reached[0])]
}

/// Writes 1 for the stones of `player` in groups with two liberties in the first plane, in groups with three in the second, else 0.
/// `planes` is `[2, size, size]`.
#[inline(always)]
pub(super) fn write_liberties<const W: usize>(size: u32, s: &State, player: usize, planes: &mut [f32]) {
    let grid = Grid::<W>::new(size);
    let stones = s.stones.map(|words| Points::<W>::load(&words));
    let empty = grid.full.without(stones[0].or(stones[1]));
    let mut rest = stones[player].without(Points::load(&s.atari[player]));
    let (mut two, mut three) = (Points::EMPTY, Points::EMPTY);
    while !rest.is_empty() {
        let group = grid.flood(rest.lowest(), rest);
        rest = rest.without(group);
        match grid.beside(group).and(empty).count() {
            2 => two = two.or(group),
            3 => three = three.or(group),
            _ => {}
        }
    }
    for (groups, plane) in [two, three].into_iter().zip(planes.chunks_exact_mut((size * size) as usize)) {
        groups.write_plane(plane);
    }
}
