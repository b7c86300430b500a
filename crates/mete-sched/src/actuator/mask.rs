//! Sets of processors, as the kernel keeps them for threads.

use std::fmt;

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::threads::Setting;

const WORDS: usize = 16;

/// The processors that a thread may run on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mask([u64; WORDS]);

impl Mask {
    /// The number of processors that a mask has room for.
    pub const PROCESSORS: usize = WORDS * 64;

    /// The mask of one processor; `None` if a mask has no room for it.
    pub fn single(processor: usize) -> Option<Mask> {
        let mut mask = Mask::default();
        *mask.0.get_mut(processor / 64)? = 1 << (processor % 64);
        Some(mask)
    }

    /// Whether a processor is in the mask.
    pub fn has(&self, processor: usize) -> bool {
        self.0.get(processor / 64).is_some_and(|word| word >> (processor % 64) & 1 == 1)
    }

    /// The processors in one of the two.
    #[must_use]
    pub fn or(&self, other: &Mask) -> Mask {
        Mask(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// The processors in the mask.
    pub fn processors(&self) -> impl Iterator<Item = usize> {
        (0..Mask::PROCESSORS).filter(|&processor| self.has(processor))
    }

    /// The mask of a thread.
    ///
    /// # Errors
    ///
    /// The kernel's answer; `ESRCH` if the thread has ended.
    pub fn of_thread(thread: u32) -> Result<Mask, Errno> {
        let set = sched_getaffinity(Some(number(thread)?))?;
        let mut mask = Mask::default();
        for processor in (0..Mask::PROCESSORS.min(CpuSet::MAX_CPU)).filter(|&processor| set.is_set(processor))
        {
            mask.0[processor / 64] |= 1 << (processor % 64);
        }
        Ok(mask)
    }

    /// Gives a thread this mask.
    ///
    /// # Errors
    ///
    /// The kernel's answer; `ESRCH` if the thread has ended.
    pub fn give_to(&self, thread: u32) -> Result<(), Errno> {
        let mut set = CpuSet::new();
        self.processors()
            .filter(|&processor| processor < CpuSet::MAX_CPU)
            .for_each(|processor| set.set(processor));
        sched_setaffinity(Some(number(thread)?), &set)
    }
}

impl Setting for Mask {
    const BYTES: usize = WORDS * 8;
    const MAGIC: [u8; 8] = *b"METEMSK1";
    const EXTENSION: &'static str = "masks";

    fn of_thread(thread: u32) -> Result<Mask, Errno> {
        Mask::of_thread(thread)
    }

    fn give_to(&self, thread: u32) -> Result<(), Errno> {
        Mask::give_to(self, thread)
    }

    fn write_to(&self, bytes: &mut [u8]) {
        let (words, _) = bytes.as_chunks_mut::<8>();
        words.iter_mut().zip(self.0).for_each(|(place, word)| *place = word.to_le_bytes());
    }

    fn read_from(bytes: &[u8]) -> Mask {
        let mut mask = Mask::default();
        let (words, _) = bytes.as_chunks::<8>();
        for (word, bytes) in mask.0.iter_mut().zip(words) {
            *word = u64::from_le_bytes(*bytes);
        }
        mask
    }
}

/// The number of a thread for a system call. Thread 0 is refused, because it would mean the caller.
pub(super) fn number(thread: u32) -> Result<Pid, Errno> {
    i32::try_from(thread).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)
}

impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for first in self.processors().filter(|&processor| processor == 0 || !self.has(processor - 1)) {
            let last = (first..).take_while(|&processor| self.has(processor)).last().unwrap_or(first);
            write!(f, "{separator}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
            separator = ",";
        }
        if separator.is_empty() { f.write_str("none") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(processors: &[usize]) -> Mask {
        processors.iter().fold(Mask::default(), |mut mask, &processor| {
            mask.0[processor / 64] |= 1 << (processor % 64);
            mask
        })
    }

    #[test]
    fn masks_read_as_the_kernel_writes_them() {
        for (processors, text) in
            [(&[][..], "none"), (&[0], "0"), (&[0, 1, 2, 7], "0-2,7"), (&[63, 64, 65, 1023], "63-65,1023")]
        {
            assert_eq!(mask(processors).to_string(), text);
        }
    }

    #[test]
    fn masks_survive_the_way_through_bytes() {
        let mask = mask(&[0, 5, 64, 1000]);
        let mut bytes = [0; <Mask as Setting>::BYTES];
        mask.write_to(&mut bytes);
        assert_eq!(Mask::read_from(&bytes), mask);
        assert_eq!(mask.processors().collect::<Vec<_>>(), [0, 5, 64, 1000]);
    }

    #[test]
    fn processors_beyond_the_room_are_refused() {
        assert!(Mask::single(Mask::PROCESSORS - 1).is_some());
        assert_eq!(Mask::single(Mask::PROCESSORS), None);
    }
}
