//! The flush thread's side of a buffer: takes complete records out, in order, and accounts for
//! every serial number (KLOG-6).
//!
//! Nothing in the buffer is trusted. A record's first word is loaded once and checked; the record
//! is copied by the size in that copy; what the buffer says later changes nothing.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::buffer::Buffer;
use crate::protocol::{self, Reserve};
use crate::record::{Head, MAX_BYTES, PADDING, unfold};

/// What a buffer held is not what a producer writes. Everything in it was thrown away; the next
/// good record shows the loss by its serial number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Garbled {
    /// More is reserved than the buffer has.
    #[error("{used} bytes are reserved in a recording buffer of {capacity}; a producer garbled it")]
    Reserve {
        /// Bytes reserved and not released.
        used: u64,
        /// Bytes of the buffer.
        capacity: u32,
    },
    /// A first word that no producer writes.
    #[error(
        "at byte {position} of a recording buffer stands {word:#x}, which begins no record; a producer garbled it"
    )]
    Head {
        /// Bytes since recording began.
        position: u64,
        /// What stands there.
        word: u64,
    },
    /// A serial number that was not given out, or not yet.
    #[error(
        "at byte {position} of a recording buffer serial number {serial} follows {expected}; a producer garbled it"
    )]
    Serial {
        /// Bytes since recording began.
        position: u64,
        /// Low half of what stands there.
        serial: u32,
        /// The lowest that could.
        expected: u64,
    },
}

/// What one pass took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Records handed out.
    pub records: u64,
    /// Bytes given back to the producers.
    pub bytes: u64,
    /// Whether the pass ended at a place that is reserved but not written yet.
    pub stalled: bool,
}

/// Takes records out of one buffer. There must be one consumer to a buffer at a time; with two,
/// records would go to either, or look garbled.
#[derive(Debug)]
pub struct Consumer<'a> {
    buffer: Buffer<'a>,
    /// Bytes ever released: our own count, never read back from the memory.
    released: u64,
    /// The serial number that follows the last one handed out.
    next_serial: u64,
    record: Box<[u64; MAX_BYTES / 8]>,
}

/// Where in a pass we are.
struct Pass {
    position: u64,
    end: u64,
    end_serial: u64,
}

enum Found {
    Record { serial: u64, bytes: usize },
    Padding { bytes: usize },
    Nothing,
}

impl<'a> Consumer<'a> {
    /// The consumer of a buffer that nothing was recorded into yet.
    pub fn new(buffer: Buffer<'a>) -> Consumer<'a> {
        Consumer::at(buffer, 0)
    }

    /// The same of a buffer that has begun at this serial number.
    pub(crate) fn at(buffer: Buffer<'a>, next_serial: u64) -> Consumer<'a> {
        Consumer { buffer, released: 0, next_serial, record: Box::new([0; MAX_BYTES / 8]) }
    }

    /// The buffer.
    pub fn buffer(&self) -> Buffer<'a> {
        self.buffer
    }

    /// Events that occurred up to now: the serial number of the next one.
    pub fn occurred(&self) -> u64 {
        unfold(self.next_serial, self.buffer.reserved().serial)
    }

    /// The serial number that follows the last one handed out.
    pub fn next_serial(&self) -> u64 {
        self.next_serial
    }

    /// One pass over what is complete: hands each record out with its serial number, until there
    /// is none, `sink` refuses one (it stays in the buffer), or everything that was reserved when
    /// the pass began has been handed out. Its places go back to the producers at the end.
    ///
    /// # Errors
    ///
    /// [`Garbled`] if the memory holds what no producer writes. The buffer is empty then.
    pub fn drain(&mut self, mut sink: impl FnMut(u64, &[u64]) -> bool) -> Result<Drained, Garbled> {
        let mut drained = Drained::default();
        let result = self.walk(&mut sink, &mut drained);
        if result.is_err() {
            self.abandon();
        }
        result.map(|()| drained)
    }

    fn walk(
        &mut self,
        sink: &mut impl FnMut(u64, &[u64]) -> bool,
        drained: &mut Drained,
    ) -> Result<(), Garbled> {
        let mut pass = self.begin()?;
        while pass.position < pass.end {
            let bytes = match self.look(&pass)? {
                Found::Record { serial, bytes } => {
                    if !sink(serial, &self.record[..bytes / 8]) {
                        break;
                    }
                    self.next_serial = serial + 1;
                    drained.records += 1;
                    bytes
                }
                Found::Padding { bytes } => bytes,
                Found::Nothing => {
                    drained.stalled = true;
                    break;
                }
            };
            self.clear(pass.position, bytes);
            pass.position += bytes as u64;
        }
        drained.bytes = pass.position - self.released;
        self.give_back(pass.position);
        Ok(())
    }

    fn begin(&self) -> Result<Pass, Garbled> {
        let Reserve { words, serial } = self.buffer.reserved();
        let used = u64::from(words.wrapping_sub((self.released >> 3) as u32)) * 8;
        let capacity = self.buffer.capacity();
        if used > u64::from(capacity) {
            return Err(Garbled::Reserve { used, capacity });
        }
        let end_serial = unfold(self.next_serial, serial);
        Ok(Pass { position: self.released, end: self.released + used, end_serial })
    }

    /// Looks at the place where the pass is; a record is copied out.
    fn look(&mut self, pass: &Pass) -> Result<Found, Garbled> {
        let words = self.words_at(pass.position);
        let word = protocol::committed(&words[0]);
        if word == 0 {
            return Ok(Found::Nothing);
        }
        let head = Head::from_word(word);
        let bytes = usize::from(head.bytes);
        let garbled = Garbled::Head { position: pass.position, word };
        if bytes as u64 > pass.end - pass.position || bytes / 8 > words.len() {
            return Err(garbled);
        }
        if head.event == PADDING {
            let fills = bytes / 8 == words.len() && bytes.is_multiple_of(8);
            return if fills { Ok(Found::Padding { bytes }) } else { Err(garbled) };
        }
        if !head.is_sound() {
            return Err(garbled);
        }
        let serial = self.check_serial(head.serial, pass)?;
        copy(&words[..bytes / 8], &mut self.record[..bytes / 8]);
        self.record[0] = word;
        Ok(Found::Record { serial, bytes })
    }

    fn check_serial(&self, low: u32, pass: &Pass) -> Result<u64, Garbled> {
        let serial = unfold(self.next_serial, low);
        if serial < pass.end_serial {
            Ok(serial)
        } else {
            Err(Garbled::Serial { position: pass.position, serial: low, expected: self.next_serial })
        }
    }

    /// Throws away what is in the buffer and begins behind it. For a buffer that a killed producer
    /// left a hole in, once nobody writes into it: what is thrown away shows as a gap.
    pub fn abandon(&mut self) {
        let reserved = self.buffer.reserved();
        self.buffer.data_from(0).iter().for_each(|word| word.store(0, Ordering::Relaxed));
        let ahead = u64::from(reserved.words.wrapping_sub((self.released >> 3) as u32)) * 8;
        self.give_back(self.released + ahead);
    }

    fn give_back(&mut self, position: u64) {
        self.released = position;
        protocol::release(self.buffer.released_word(), position);
    }

    fn clear(&self, position: u64, bytes: usize) {
        let words = &self.words_at(position)[..bytes / 8];
        words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    fn words_at(&self, position: u64) -> &'a [AtomicU64] {
        self.buffer.data_from((position & u64::from(self.buffer.capacity() - 1)) as u32)
    }
}

fn copy(from: &[AtomicU64], to: &mut [u64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = from.load(Ordering::Relaxed);
    }
}
