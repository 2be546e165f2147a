//! The sizes of a game, which fix every array.

use serde::{Deserialize, Serialize};

/// Shape of one observation, channels first: `[channels, height, width]`; a plain vector is `[F, 1, 1]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObsShape {
    /// Feature planes, or the length of a vector.
    pub channels: usize,
    /// Rows of the board, 1 for a vector.
    pub height: usize,
    /// Columns of the board, 1 for a vector.
    pub width: usize,
}

impl ObsShape {
    /// F: elements of one observation.
    pub fn len(&self) -> usize {
        self.channels * self.height * self.width
    }

    /// True for an observation without elements, which no game has.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The sizes that fix every array. They are fields of the game's settings: one type serves every board size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// P, 1 to 8.
    pub num_players: usize,
    /// A: actions of the policy head.
    pub num_actions: usize,
    /// How actions are numbered where they are points of the board of `obs`: a network may then have the same weights at every point
    /// (`net.policy_head`). None where actions are something else.
    pub point_actions: Option<PointActions>,
    /// Maximum number of actions legal in one state.
    pub max_legal: usize,
    /// C: chance outcomes, 0 where the game has none. Outcomes are numbered 0..C apart from the actions.
    pub num_chance: usize,
    /// Maximum number of chance states in a row that search can meet below a decision, 0 where there are none.
    pub max_chance_run: usize,
    /// Shape of one observation.
    pub obs: ObsShape,
    /// A bound on the number of plies (chance outcomes count) of any game.
    pub max_plies: usize,
    /// Symmetries of the game, the identity included; they are numbered 0..num_symmetries with 0 the identity.
    pub num_symmetries: u64,
    /// True where returns always sum to 0.
    pub zero_sum: bool,
    /// True where all players always get the same return, so that they do not compete: matches have a mean return, and no Elo.
    pub cooperative: bool,
    /// True where some player does not see the whole state.
    pub hidden_information: bool,
    /// True where rules look at earlier positions (repetition, superko): [`super::Game::history_key`] is then kept per ply.
    pub uses_history: bool,
}

impl Default for Sizes {
    /// Those of a board game of two players without symmetries: a game sets what differs, and the other sizes, which are 0.
    fn default() -> Self {
        Self {
            num_players: 2,
            num_actions: 0,
            point_actions: None,
            max_legal: 0,
            num_chance: 0,
            max_chance_run: 0,
            obs: ObsShape { channels: 0, height: 1, width: 1 },
            max_plies: 0,
            num_symmetries: 1,
            zero_sum: true,
            cooperative: false,
            hidden_information: false,
            uses_history: false,
        }
    }
}

impl Sizes {
    /// True for two players of whom one wins what the other loses, so that one value says both.
    pub fn is_zero_sum_pair(&self) -> bool {
        self.num_players == 2 && self.zero_sum
    }

    /// D: the deals of one position that are searched if `wanted` are asked for: 1 where nothing is hidden.
    pub fn determinisations(&self, wanted: u32) -> u32 {
        if self.hidden_information { wanted } else { 1 }
    }

    /// Maximum number of actions or outcomes that [`super::Game::legal`] lists.
    pub fn num_edges(&self) -> usize {
        self.max_legal.max(self.num_chance)
    }

    /// E: edges of a node of a search tree. Outcomes count only where search can meet them.
    pub fn tree_edges(&self) -> usize {
        if self.max_chance_run > 0 { self.num_edges() } else { self.max_legal }
    }
}

/// Actions that are numbered point by point: action `k * planes + plane` is at point k in `order`. Further actions are at no point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointActions {
    /// Actions at each point.
    pub planes: usize,
    /// The order of the points.
    pub order: PointOrder,
}

impl PointActions {
    /// One action at each point, row by row.
    pub const ONE: Self = Self { planes: 1, order: PointOrder::Rows };
}

/// An order of the points of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PointOrder {
    /// Row by row from the first, as in an observation.
    Rows,
    /// Column by column from the first, each from the last row to the first.
    Columns,
}

impl PointOrder {
    /// The index, row by row, of point number `number` of a board of `height` rows and `width` columns.
    pub fn point(self, number: usize, [height, width]: [usize; 2]) -> usize {
        match self {
            Self::Rows => number,
            Self::Columns => (height - 1 - number % height) * width + number / height,
        }
    }

    /// The number of the point with index `point`.
    pub fn number(self, point: usize, [height, width]: [usize; 2]) -> usize {
        match self {
            Self::Rows => point,
            Self::Columns => point % width * height + height - 1 - point / width,
        }
    }
}

/// A target of a game's own, which a network may learn besides policy and values (`net.auxiliary`): numbers in [-1, 1] that follow
/// from a position and from the end of its game.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Its name in `net.auxiliary`, metrics and files: not one of "policy", "value", "values" and "outcome".
    pub name: String,
    /// Its shape for one position.
    pub shape: TargetShape,
    /// The meaning of its numbers.
    pub kind: TargetKind,
}

impl Target {
    /// A target.
    pub fn new(name: &str, shape: TargetShape, kind: TargetKind) -> Self {
        Self { name: name.to_string(), shape, kind }
    }
}

/// For every point the player who owns it at the end of the game, from the viewpoint of the player to move: 1, -1, or 0 for neither.
pub fn ownership() -> Target {
    Target::new("ownership", TargetShape::Points, TargetKind::Sign)
}

/// The largest length of a target that is a vector.
pub const MAX_TARGET_LEN: usize = 65_536;

/// The shape of a [`Target`] for one position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetShape {
    /// A number for each point of the board. `[height, width]` of [`Sizes::obs`]
    Points,
    /// A vector of this length, 1 to [`MAX_TARGET_LEN`].
    Vector(usize),
}

/// The meaning of the numbers of a [`Target`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// 1 or -1, or the mean of such signs: the network learns the probability of 1.
    Sign,
    /// An amount: the network learns its mean.
    Amount,
}
