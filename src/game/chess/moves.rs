//! Legal moves and how they are played, on a position from the view of the side to move.
//!
//! Generation takes pins and checks into account, so every move listed is legal; only en passant captures are tested by
//! playing them. Moves are listed as targets of one piece at a time, pieces by ascending square.

use super::board::{self, BISHOP, KING, KNIGHT, LINES, PAWN, QUEEN, ROOK, bit, flip, flip_square, squares};
use crate::device_struct::{device_constants, device_struct};
use bytemuck::{Pod, Zeroable};
use std::ops::ControlFlow;

/// Maximum number of legal moves that any position with promoted pieces out of at most eight pawns has (chessprogramming wiki).
pub const MAX_LEGAL: usize = 218;

device_constants! {
    fn device_constants;
    /// The side to move may castle with its rook on the h-file.
    pub const OWN_SHORT: u8 = 1;
    /// The side to move may castle with its rook on the a-file.
    pub const OWN_LONG: u8 = 2;
    /// The other side may castle with its rook on the h-file.
    pub const OTHER_SHORT: u8 = 4;
    /// The other side may castle with its rook on the a-file.
    pub const OTHER_LONG: u8 = 8;
}

device_struct! {
    /// One position, from the view of the side to move: its first rank is rank 0, a square is `file * 8 + rank`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
    pub struct State {
        /// Squares of each kind of piece of both sides: pawns, knights, bishops, rooks, queens, kings.
        pub pieces: [u64; 6],
        /// Squares of the side to move, squares of the other side.
        pub sides: [u64; 2],
        /// Key of the pieces and the side to move, in absolute colours; castling and en passant are not in it.
        pub hash: u64,
        /// Plies since the last capture or pawn move.
        pub halfmove_clock: u16,
        /// Number of the full move, as in FEN.
        pub fullmove: u16,
        /// Plies played since the start of this game.
        pub plies: u16,
        /// Castling rights, a sum of [`OWN_SHORT`] and its like.
        pub castling: u8,
        /// 0, or 1 + the square passed by the pawn that the side to move can legally take en passant.
        pub en_passant: u8,
        /// Earlier occurrences of this position in the game.
        pub repetitions: u8,
        /// 0 if white is to move, 1 if black is.
        pub colour: u8,
        /// The number of the `Outcome`, 0 while the game is in progress.
        pub outcome: u8 as "Outcome",
        /// Always 0.
        pub padding: [u8; 5],
    }
}

/// Checks and pins, which restrict the side to move.
struct Restraints {
    king: u32,
    /// Targets of pieces other than the king: all squares, those that answer a single check, or none.
    allowed: u64,
    in_check: bool,
    /// Own pieces pinned along each of the king's four lines.
    pinned: [u64; 4],
}

/// One piece and its legal targets.
pub(super) struct LegalTargets {
    /// [`PAWN`] to [`KING`].
    pub kind: usize,
    /// The piece's square.
    pub from: u32,
    /// Never empty.
    pub to: u64,
}

/// The squares that a knight, a bishop, a rook or a queen attacks.
#[inline(always)]
fn attacks_of(kind: usize, from: u32, occupied: u64) -> u64 {
    match kind {
        KNIGHT => board::KNIGHT_ATTACKS[from as usize],
        BISHOP => board::bishop_attacks(from, occupied),
        ROOK => board::rook_attacks(from, occupied),
        _ => board::bishop_attacks(from, occupied) | board::rook_attacks(from, occupied),
    }
}

impl State {
    /// All occupied squares.
    #[inline(always)]
    pub(super) fn occupied(&self) -> u64 {
        self.sides[0] | self.sides[1]
    }

    /// The kind of the piece on an occupied square.
    #[inline(always)]
    pub(super) fn kind_on(&self, square: u32) -> usize {
        (PAWN..KING).find(|&kind| self.pieces[kind] & bit(square) != 0).unwrap_or(KING)
    }

    /// The square of the king of the side to move.
    #[inline(always)]
    pub(super) fn king(&self) -> u32 {
        (self.pieces[KING] & self.sides[0]).trailing_zeros()
    }

    /// The pieces of `others` that attack `square`, with `occupied` squares in the way.
    #[inline(always)]
    pub(super) fn attackers(&self, square: u32, occupied: u64, others: u64) -> u64 {
        let at = square as usize;
        let [pawns, knights, bishops, rooks, queens, kings] = self.pieces;
        others
            & (board::PAWN_ATTACKS[at] & pawns
                | board::KNIGHT_ATTACKS[at] & knights
                | board::KING_ATTACKS[at] & kings
                | board::bishop_attacks(square, occupied) & (bishops | queens)
                | board::rook_attacks(square, occupied) & (rooks | queens))
    }

    /// The squares that one or more pieces of the side to move attack, and those that two or more do.
    pub(super) fn attacked(&self) -> [u64; 2] {
        let occupied = self.occupied();
        let (mut once, mut twice) = (0, 0);
        for from in squares(self.sides[0]) {
            let to = match self.kind_on(from) {
                PAWN => board::PAWN_ATTACKS[from as usize],
                KING => board::KING_ATTACKS[from as usize],
                kind => attacks_of(kind, from, occupied),
            };
            twice |= once & to;
            once |= to;
        }
        [once, twice]
    }

    /// True if the king of the side to move is attacked.
    pub(super) fn in_check(&self) -> bool {
        self.attackers(self.king(), self.occupied(), self.sides[1]) != 0
    }

    /// True if the side to move could take the other king, which is impossible in a game.
    pub(super) fn other_in_check(&self) -> bool {
        self.turned().in_check()
    }

    /// The same position from the view of the other side, which becomes the side to move. Keys and clocks stay.
    pub(super) fn turned(&self) -> State {
        State {
            pieces: self.pieces.map(flip),
            sides: [flip(self.sides[1]), flip(self.sides[0])],
            castling: (self.castling << 2 | self.castling >> 2) & 15,
            en_passant: if self.en_passant == 0 {
                0
            } else {
                flip_square(u32::from(self.en_passant) - 1) as u8 + 1
            },
            colour: 1 - self.colour,
            ..*self
        }
    }

    fn restraints(&self) -> Restraints {
        let king = self.king();
        let (own, other) = (self.sides[0], self.sides[1]);
        let occupied = own | other;
        let at = king as usize;
        let mut checkers = other
            & (board::PAWN_ATTACKS[at] & self.pieces[PAWN] | board::KNIGHT_ATTACKS[at] & self.pieces[KNIGHT]);
        let mut allowed = checkers;
        let mut pinned = [0; 4];
        let straight = other & (self.pieces[ROOK] | self.pieces[QUEEN]);
        let diagonal = other & (self.pieces[BISHOP] | self.pieces[QUEEN]);
        for (l, line) in LINES[at].iter().enumerate() {
            let sliders = line.both() & if l < 2 { straight } else { diagonal };
            if sliders == 0 {
                continue;
            }
            let seen = line.attacks(occupied);
            for slider in squares(sliders) {
                let back = LINES[slider as usize][l].attacks(occupied);
                if seen & bit(slider) != 0 {
                    checkers |= bit(slider);
                    allowed |= seen & back & !occupied | bit(slider);
                } else {
                    pinned[l] |= seen & back & own;
                }
            }
        }
        allowed = match checkers.count_ones() {
            0 => u64::MAX,
            1 => allowed,
            _ => 0,
        };
        Restraints { king, allowed, in_check: checkers != 0, pinned }
    }

    #[inline(always)]
    fn pawn_targets(&self, from: u32, occupied: u64) -> u64 {
        let one = bit(from + 1) & !occupied;
        let two = if bit(from) & board::RANK_2 != 0 { one << 1 & !occupied } else { 0 };
        one | two | board::PAWN_ATTACKS[from as usize] & self.sides[1]
    }

    /// True if taking en passant from `from` leaves the own king safe.
    fn en_passant_is_safe(&self, from: u32, to: u32) -> bool {
        let taken = bit(to - 1);
        let occupied = (self.occupied() ^ bit(from) ^ taken) | bit(to);
        self.attackers(self.king(), occupied, self.sides[1] ^ taken) == 0
    }

    /// The own pawns that may legally take a pawn that has just passed over `square`.
    fn en_passant_takers(&self, square: u32) -> u64 {
        let behind = flip(board::PAWN_ATTACKS[flip_square(square) as usize]);
        squares(behind & self.pieces[PAWN] & self.sides[0])
            .filter(|&from| self.en_passant_is_safe(from, square))
            .fold(0, |takers, from| takers | bit(from))
    }

    fn king_targets(&self, r: &Restraints) -> u64 {
        let occupied = self.occupied();
        let without_king = occupied ^ bit(r.king);
        let safe = |square: u32| self.attackers(square, without_king, self.sides[1]) == 0;
        let mut targets = 0;
        for to in squares(board::KING_ATTACKS[r.king as usize] & !self.sides[0]) {
            targets |= u64::from(safe(to)) << to;
        }
        if self.castling & (OWN_SHORT | OWN_LONG) != 0 && !r.in_check {
            let (d1, f1) = (bit(board::KING_HOME - 8), bit(board::KING_HOME + 8));
            let (b1, c1, g1) = (bit(8), bit(16), bit(48));
            let short = self.castling & OWN_SHORT != 0 && targets & f1 != 0 && occupied & (f1 | g1) == 0;
            let long = self.castling & OWN_LONG != 0 && targets & d1 != 0 && occupied & (b1 | c1 | d1) == 0;
            if short && safe(48) {
                targets |= g1;
            }
            if long && safe(16) {
                targets |= c1;
            }
        }
        targets
    }

    /// Calls `visit` with every piece that can move, by ascending square, and its legal targets, until it breaks off.
    #[inline(always)]
    pub(super) fn visit_moves(
        &self,
        mut visit: impl FnMut(LegalTargets) -> ControlFlow<()>,
    ) -> (ControlFlow<()>, bool) {
        let r = self.restraints();
        let occupied = self.occupied();
        let all_pinned = r.pinned[0] | r.pinned[1] | r.pinned[2] | r.pinned[3];
        let (en_passant, takers) = match self.en_passant {
            0 => (0, 0),
            square => (u32::from(square) - 1, self.en_passant_takers(u32::from(square) - 1)),
        };
        let movers = if r.allowed == 0 { bit(r.king) } else { self.sides[0] };
        for from in squares(movers) {
            let kind = self.kind_on(from);
            let mut to = match kind {
                PAWN => self.pawn_targets(from, occupied),
                KING => self.king_targets(&r),
                kind => attacks_of(kind, from, occupied),
            };
            if kind != KING {
                to &= r.allowed & !self.sides[0];
                if all_pinned & bit(from) != 0 {
                    let l = r.pinned.iter().position(|p| p & bit(from) != 0).unwrap_or(0);
                    to &= LINES[r.king as usize][l].both();
                }
                if takers & bit(from) != 0 {
                    to |= bit(en_passant);
                }
            }
            if to != 0 && visit(LegalTargets { kind, from, to }).is_break() {
                return (ControlFlow::Break(()), r.in_check);
            }
        }
        (ControlFlow::Continue(()), r.in_check)
    }

    /// Writes the legal actions, ascending, and returns the count.
    pub(super) fn legal(&self, out: &mut [u16]) -> usize {
        let mut n = 0;
        let _ = self.visit_moves(|LegalTargets { kind, from, to }| {
            let first = from as u16 * 73;
            if kind == PAWN && to & board::RANK_8 != 0 {
                // Rook, bishop, knight, each straight on, to the right, to the left.
                let steps = [1, 9, -7].map(|delta: i32| to >> ((from as i32 + delta) & 63) & 1 != 0);
                for plane in 0..9 {
                    out[n] = first + plane;
                    n += usize::from(steps[usize::from(plane) % 3]);
                }
            }
            let mut planes = 0u64;
            for target in squares(to) {
                planes |= 1 << board::PLANES[from as usize][target as usize];
            }
            for plane in squares(planes) {
                out[n] = first + 9 + plane as u16;
                n += 1;
            }
            ControlFlow::Continue(())
        });
        n
    }

    /// Whether the side to move has a move, and whether it is in check.
    pub(super) fn has_move_and_check(&self) -> (bool, bool) {
        let (flow, in_check) = self.visit_moves(|_| ControlFlow::Break(()));
        (flow.is_break(), in_check)
    }

    /// The key for repetition: pieces, side to move, castling rights and the file of a legal en passant capture, which
    /// is when positions are the same under FIDE article 9.2.3.
    #[inline]
    pub(super) fn key(&self) -> u64 {
        let absolute =
            if self.colour == 0 { self.castling } else { (self.castling << 2 | self.castling >> 2) & 15 };
        let mut key = self.hash ^ board::CASTLING_KEYS[usize::from(absolute)];
        if self.en_passant != 0 {
            key ^= board::EN_PASSANT_KEYS[(usize::from(self.en_passant) - 1) / 8];
        }
        key
    }

    /// [`State::hash`] computed from the position.
    pub(super) fn fresh_hash(&self) -> u64 {
        let mut hash = if self.colour == 0 { 0 } else { board::BLACK_KEY[0] };
        for (side, &board) in self.sides.iter().enumerate() {
            for square in squares(board) {
                hash ^= self.key_of(self.kind_on(square), side, square);
            }
        }
        hash
    }

    /// The key of a piece of `side` (0 to move, 1 other) on a square from the view of the side to move.
    #[inline(always)]
    fn key_of(&self, kind: usize, side: usize, square: u32) -> u64 {
        let colour = usize::from(self.colour);
        let absolute = if colour == 0 { square } else { flip_square(square) };
        board::piece_key(kind, side ^ colour, absolute)
    }

    #[inline(always)]
    fn toggle(&mut self, kind: usize, side: usize, square: u32) {
        self.pieces[kind] ^= bit(square);
        self.sides[side] ^= bit(square);
        self.hash ^= self.key_of(kind, side, square);
    }

    /// Plays a legal action and switches to the other side's view. Does not update repetitions or the outcome.
    pub(super) fn play(&mut self, action: u16) {
        let (from, plane) = (u32::from(action / 73), usize::from(action % 73));
        let to = from.wrapping_add_signed(i32::from(board::PLANE_DELTAS[plane])) & 63;
        let kind = self.kind_on(from);
        let mut quiet = kind != PAWN;
        if self.sides[1] & bit(to) != 0 {
            self.toggle(self.kind_on(to), 1, to);
            quiet = false;
        }
        self.toggle(kind, 0, from);
        let promoted = kind == PAWN && bit(to) & board::RANK_8 != 0;
        let placed = if promoted { [ROOK, BISHOP, KNIGHT, QUEEN][(plane / 3).min(3)] } else { kind };
        self.toggle(placed, 0, to);
        if kind == PAWN && self.en_passant != 0 && to == u32::from(self.en_passant) - 1 {
            self.toggle(PAWN, 1, to - 1);
        }
        if kind == KING && from == board::KING_HOME && to.abs_diff(from) == 16 {
            let (rook, stop) =
                if to > from { (board::ROOK_HOME_H, from + 8) } else { (board::ROOK_HOME_A, from - 8) };
            self.toggle(ROOK, 0, rook);
            self.toggle(ROOK, 0, stop);
        }
        self.castling &= !(lost_rights(from) | lost_rights(to));
        self.halfmove_clock = if quiet { self.halfmove_clock + 1 } else { 0 };
        self.fullmove += u16::from(self.colour);
        self.plies += 1;
        self.en_passant = 0;
        *self = self.turned();
        self.hash ^= board::BLACK_KEY[0];
        if kind == PAWN && to.abs_diff(from) == 2 {
            self.allow_en_passant(flip_square(from + 1));
        }
    }

    /// Sets the en passant square to `square` if a legal capture exists.
    pub(super) fn allow_en_passant(&mut self, square: u32) {
        if self.en_passant_takers(square) != 0 {
            self.en_passant = square as u8 + 1;
        }
    }

    /// True if no sequence of moves can mate: kings alone, with one minor piece, or with bishops of one square colour.
    pub(super) fn insufficient_material(&self) -> bool {
        let [pawns, knights, bishops, rooks, queens, _] = self.pieces;
        if pawns | rooks | queens != 0 {
            return false;
        }
        if knights != 0 {
            return bishops == 0 && knights.count_ones() == 1;
        }
        bishops & board::DARK == 0 || bishops & !board::DARK == 0
    }
}

/// The castling rights that end when a piece leaves or reaches a square.
#[inline(always)]
fn lost_rights(square: u32) -> u8 {
    match square {
        board::KING_HOME => OWN_SHORT | OWN_LONG,
        board::ROOK_HOME_A => OWN_LONG,
        board::ROOK_HOME_H => OWN_SHORT,
        7 => OTHER_LONG,
        63 => OTHER_SHORT,
        _ => 0,
    }
}
