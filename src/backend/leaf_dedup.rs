//! The leaves of a pass, and which of them are equal: a table from the hash of a leaf's key to the first leaf with that hash.
//!
//! It has one entry for each slot and no probing. Two keys may share a slot, so the caller compares the keys themselves.

/// One leaf of a pass.
#[derive(Clone, Copy, Debug)]
pub struct Leaf {
    /// Its node.
    pub node: i32,
    /// Index among the M leaves that need the network, or -1.
    pub slot: i32,
    /// Hash of its evaluation cache key.
    pub hash: u64,
}

/// The result of [`LeafDedup::insert`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstOrDuplicate {
    /// The slot was empty; the leaf has it now.
    First,
    /// The index of the earlier leaf that has the slot.
    Duplicate(usize),
}

/// The table. Emptying it costs one addition.
pub struct LeafDedup {
    /// The pass that wrote the slot, and the leaf's index. A slot of another pass counts as empty.
    slots: Vec<(u32, u32)>,
    pass: u32,
}

impl LeafDedup {
    /// A table for `leaves` leaves a pass.
    pub fn new(leaves: usize) -> Self {
        Self { slots: vec![(0, 0); (4 * leaves).next_power_of_two()], pass: 0 }
    }

    /// Empties the table for a new pass.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.pass = self.pass.wrapping_add(1);
        if self.pass == 0 {
            self.slots.fill((0, 0));
            self.pass = 1;
        }
    }

    /// Gives the slot of `hash` to leaf `index`, unless an earlier leaf has it.
    #[inline(always)]
    pub fn insert(&mut self, hash: u64, index: usize) -> FirstOrDuplicate {
        let at = hash as usize & (self.slots.len() - 1);
        let (pass, leaf) = self.slots[at];
        if pass == self.pass {
            return FirstOrDuplicate::Duplicate(leaf as usize);
        }
        self.slots[at] = (self.pass, index as u32);
        FirstOrDuplicate::First
    }
}
