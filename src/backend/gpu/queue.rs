//! Commands to rows between two passes, gathered into batches: one launch runs the same command in many rows.
//!
//! Commands of one row keep their order; those of different rows need not, since rows are independent. So a command joins the first
//! batch of its kind after the last batch with a command for the same row.

use super::layout::{AdvanceCommand, BeginCommand, SetRootCommand};

/// Commands of one kind, at most one a row.
#[derive(Clone, Debug)]
pub enum CommandBatch {
    /// Rows get new roots.
    SetRoot(RootBatch),
    /// Rows get copies of the uploaded snapshot.
    Clone(Vec<u32>),
    /// Rows begin a ply.
    Begin(Vec<BeginCommand>),
    /// Rows play an action.
    Advance(Vec<AdvanceCommand>),
}

/// New roots with their states and histories.
#[derive(Clone, Debug, Default)]
pub struct RootBatch {
    /// `[num]`
    pub commands: Vec<SetRootCommand>,
    /// `[num, state bytes]`
    pub states: Vec<u8>,
    /// The keys of all histories.
    pub keys: Vec<u64>,
}

/// Batches in the order in which they are to run.
#[derive(Debug)]
pub struct Queue {
    batches: Vec<CommandBatch>,
    /// The first batch that the row's next command may join. `[B]`
    after: Vec<u32>,
}

impl Queue {
    /// An empty queue for `rows` rows.
    pub fn new(rows: usize) -> Self {
        Self { batches: Vec::new(), after: vec![0; rows] }
    }

    /// True where no command waits.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// True if a copy of the uploaded snapshot to some row is queued.
    pub fn has_clones(&self) -> bool {
        self.batches.iter().any(|batch| matches!(batch, CommandBatch::Clone(_)))
    }

    /// Takes all batches out.
    pub fn take(&mut self) -> Vec<CommandBatch> {
        self.after.fill(0);
        std::mem::take(&mut self.batches)
    }

    /// The batch that row `b`'s next command joins: the first that `fits`, or `new`.
    fn batch(
        &mut self,
        b: usize,
        fits: impl Fn(&CommandBatch) -> bool,
        new: CommandBatch,
    ) -> &mut CommandBatch {
        let after = self.after[b] as usize;
        let found = self.batches[after..].iter().position(fits).map(|index| after + index);
        let index = found.unwrap_or_else(|| {
            self.batches.push(new);
            self.batches.len() - 1
        });
        self.after[b] = index as u32 + 1;
        &mut self.batches[index]
    }

    /// Row `b` gets a new root.
    pub fn set_root(&mut self, b: usize, state: &[u8], history: &[u64]) {
        let new = CommandBatch::SetRoot(RootBatch::default());
        if let CommandBatch::SetRoot(batch) =
            self.batch(b, |batch| matches!(batch, CommandBatch::SetRoot(_)), new)
        {
            let first_key = batch.keys.len() as u64;
            batch.commands.push(SetRootCommand {
                row: b as u32,
                num_history: history.len() as u32,
                first_key,
            });
            batch.states.extend_from_slice(state);
            batch.keys.extend_from_slice(history);
        }
    }

    /// Row `b` gets a copy of the uploaded snapshot.
    pub fn clone_snapshot(&mut self, b: usize) {
        let new = CommandBatch::Clone(Vec::new());
        if let CommandBatch::Clone(rows) = self.batch(b, |batch| matches!(batch, CommandBatch::Clone(_)), new)
        {
            rows.push(b as u32);
        }
    }

    /// The command's row begins a ply.
    pub fn begin(&mut self, command: BeginCommand) {
        let new = CommandBatch::Begin(Vec::new());
        let b = command.row as usize;
        if let CommandBatch::Begin(commands) =
            self.batch(b, |batch| matches!(batch, CommandBatch::Begin(_)), new)
        {
            commands.push(command);
        }
    }

    /// Row `b` plays `action`.
    pub fn advance(&mut self, b: usize, action: u16) {
        let new = CommandBatch::Advance(Vec::new());
        if let CommandBatch::Advance(commands) =
            self.batch(b, |batch| matches!(batch, CommandBatch::Advance(_)), new)
        {
            commands.push(AdvanceCommand { row: b as u32, action: u32::from(action) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::root::RowKey;

    fn kinds(queue: &Queue) -> String {
        let one = |batch: &CommandBatch| match batch {
            CommandBatch::SetRoot(batch) => format!("P{}", batch.commands.len()),
            CommandBatch::Clone(rows) => format!("C{}", rows.len()),
            CommandBatch::Begin(commands) => format!("B{}", commands.len()),
            CommandBatch::Advance(commands) => format!("A{}", commands.len()),
        };
        queue.batches.iter().map(one).collect()
    }

    fn begin(row: u32) -> BeginCommand {
        BeginCommand { row, simulations: 3, noisy: 0, schedule: 0, key: RowKey::default() }
    }

    #[test]
    fn rows_share_batches_and_keep_the_order_of_their_commands() {
        let mut queue = Queue::new(5);
        for b in 0..2 {
            queue.set_root(b, &[7; 3], &[1, 2]);
            queue.begin(begin(b as u32));
        }
        queue.advance(2, 4);
        queue.advance(2, 5);
        queue.begin(begin(2));
        queue.advance(3, 6);
        queue.begin(begin(3));
        assert_eq!(kinds(&queue), "P2B2A2A1B2");
        assert_eq!(queue.take().len(), 5);
        assert!(queue.is_empty());
        queue.clone_snapshot(2);
        queue.begin(begin(2));
        assert!(queue.has_clones());
        assert_eq!(kinds(&queue), "C1B1");
    }
}
