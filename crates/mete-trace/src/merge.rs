//! All processors' records in one order: by time stamp, and by processor where time stamps are equal.
//!
//! The records of one processor stay in the order of their serial numbers, even if its clock went back. A gap
//! or an unreadable part comes where the records before it were.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use mete_log::Ticks;

use crate::completeness::Account;
use crate::file::ReadError;
use crate::filter::Filter;
use crate::reader::{Item, ProcessorReader, Step};

/// Merges processors' files. One block of each is in memory.
#[derive(Debug)]
pub struct Merge {
    readers: Vec<ProcessorReader>,
    /// The step of each reader that was taken and not handed out yet.
    steps: Vec<Option<Step>>,
    /// Time and reader of each such step, the earliest first.
    heads: BinaryHeap<Reverse<(Ticks, usize)>>,
    filter: Filter,
    /// Files that could not be opened, handed out before everything else.
    missing: Vec<ReadError>,
    /// The reader whose step was handed out last.
    last: Option<usize>,
}

impl Merge {
    /// Merges readers, which should be in the order of their processors, and reports the files that
    /// are `missing`.
    pub fn new(readers: Vec<ProcessorReader>, missing: Vec<ReadError>, filter: Filter) -> Merge {
        let steps = readers.iter().map(|_| None).collect();
        let mut merge = Merge { readers, steps, heads: BinaryHeap::new(), filter, missing, last: None };
        for index in 0..merge.readers.len() {
            if let Some(time) = merge.advance(index) {
                merge.heads.push(Reverse((time, index)));
            }
        }
        merge
    }

    /// Takes a reader's next step. Returns its time; `None` at the end of the file.
    #[inline]
    fn advance(&mut self, index: usize) -> Option<Ticks> {
        let reader = &mut self.readers[index];
        let before = reader.last_time();
        let step = reader.step()?;
        self.steps[index] = Some(step);
        // The latest time so far, and not the record's own: so records stay in order where a clock goes back.
        Some(reader.last_time().max(before).unwrap_or_default())
    }

    /// The reader whose step comes next. Mostly it is the last one again, and nothing needs to be sorted.
    #[inline]
    fn next_reader(&mut self) -> Option<usize> {
        let Some(last) = self.last.take() else { return Some(self.heads.pop()?.0.1) };
        let Some(time) = self.advance(last) else { return Some(self.heads.pop()?.0.1) };
        match self.heads.peek_mut() {
            // Another reader is earlier: the two change places, which costs one sift instead of a pop and a
            // push.
            Some(mut head) if (time, last) > head.0 => {
                let Reverse((_, index)) = std::mem::replace(&mut *head, Reverse((time, last)));
                Some(index)
            }
            _ => Some(last),
        }
    }

    /// The next record or gap, or the error for a part that cannot be read. After an error the merge goes on.
    #[allow(clippy::should_implement_trait, reason = "what it hands out is borrowed from it")]
    pub fn next(&mut self) -> Option<Result<Item<'_>, ReadError>> {
        if !self.missing.is_empty() {
            return Some(Err(self.missing.remove(0)));
        }
        loop {
            let index = self.next_reader()?;
            self.last = Some(index);
            match self.steps[index].take()? {
                Step::Record if self.filter.has(&self.readers[index].record()) => {
                    return Some(Ok(Item::Record(self.readers[index].record())));
                }
                Step::Lost(gap) => return Some(Ok(Item::Lost(gap))),
                Step::Unreadable(error) => return Some(Err(error)),
                Step::Record => {}
            }
        }
    }

    /// What has been read so far of the filter's time, of each processor (NEW-2). Filters on events do not
    /// change it.
    pub fn accounts(&self) -> Vec<Account> {
        self.readers.iter().map(ProcessorReader::account).collect()
    }

    /// The number of blocks that were read, and the number of all blocks that may have to be read.
    pub fn blocks(&self) -> (u64, u64) {
        let blocks = self.readers.iter().map(ProcessorReader::blocks);
        blocks.fold((0, 0), |(done, all), (read, of)| (done + read, all + of))
    }
}
