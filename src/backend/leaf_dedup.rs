//! Equal leaves of one pass: a small open table from a hash to the first leaf that had it. It may forget, never lie: the
//! caller compares the keys.

/// What [`LeafDedup::ask`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstOrDuplicate {
    /// No leaf with this hash is known; it is now.
    First,
    /// The place of an earlier leaf whose hash falls on the same slot.
    Duplicate(usize),
}

/// The table, emptied every pass in no time.
pub struct LeafDedup {
    /// Pass number that wrote the slot, and the leaf's place.
    slots: Vec<(u32, u32)>,
    pass: u32,
}

impl LeafDedup {
    /// Room for `leaves` a pass.
    pub fn new(leaves: usize) -> Self {
        Self { slots: vec![(0, 0); (4 * leaves).next_power_of_two()], pass: 0 }
    }

    /// A new pass begins.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.pass = self.pass.wrapping_add(1);
        if self.pass == 0 {
            self.slots.fill((0, 0));
            self.pass = 1;
        }
    }

    /// The earlier leaf on the slot of `hash`; where there is none, the slot is `place`'s.
    #[inline(always)]
    pub fn ask(&mut self, hash: u64, place: usize) -> FirstOrDuplicate {
        let at = hash as usize & (self.slots.len() - 1);
        let (pass, leaf) = self.slots[at];
        if pass == self.pass {
            return FirstOrDuplicate::Duplicate(leaf as usize);
        }
        self.slots[at] = (self.pass, place as u32);
        FirstOrDuplicate::First
    }
}
