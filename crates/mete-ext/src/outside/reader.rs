//! Reads the rings of all processors as one sequence.

use mete_policy::Nanoseconds;

use crate::outside::memory::Memory;
use crate::outside::row::Row;

/// Where it has come to in each ring.
///
/// What one client does on two processors is in two rings, and has to be read in the order in which it
/// happened. Rows have times of one clock. A row is whole before the client does anything elsewhere. So up to
/// a time that was read first, all rows are there, and the earliest one of all rings is next.
pub(crate) struct Reader {
    taken: Vec<u32>,
}

impl Reader {
    pub fn of(processors: usize) -> Reader {
        Reader { taken: vec![0; processors] }
    }

    /// Goes on where another reader has come to.
    pub fn go_on(&mut self, memory: &Memory) {
        for (processor, taken) in self.taken.iter_mut().enumerate() {
            *taken = memory.rows_taken(processor);
        }
    }

    /// The next row that is not later than this time, which was read before.
    pub fn next(&mut self, memory: &Memory, latest: Nanoseconds) -> Option<Row> {
        let mut next: Option<(usize, Row)> = None;
        for (processor, taken) in self.taken.iter().enumerate() {
            let earliest = next.map_or(latest, |(_, row)| row.time);
            if let Some(row) = memory.next_row(processor, *taken, earliest)
                && next.is_none_or(|(_, other)| row.time < other.time)
            {
                next = Some((processor, row));
            }
        }
        let (processor, row) = next?;
        self.taken[processor] = self.taken[processor].wrapping_add(1);
        Some(row)
    }

    /// Gives the places of what was read back.
    pub fn release(&self, memory: &Memory) {
        self.taken.iter().enumerate().for_each(|(processor, taken)| memory.release_rows(processor, *taken));
    }
}
