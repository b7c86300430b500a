//! How producers and the flush thread share a buffer: the memory ordering, in the smallest form, so that loom
//! can check it. `include/mete_trace.h` says the same in C.
//!
//! # Who can interrupt whom
//!
//! In the kernel, a program that records in a task can be interrupted by a program in a soft interrupt, that
//! one by a program in a hard interrupt, and all of them by one in a non-maskable interrupt. These nest. But
//! other programs only stay on their processor: those on user-space probes, and those on tracepoints of
//! kernels that no longer disable preemption around them. Another task may run in between, and may itself be
//! stopped half-way. So the order of nesting does not hold. The flush thread is a producer, too: it writes
//! DUMP_BEGIN and DUMP_FINISH.
//!
//! KLogger blocks interrupts while it takes a place and a serial number (§5.1). An eBPF program cannot do
//! that. If producers always nested, counters would suffice that are loaded, changed and stored again. But a
//! producer that runs between another one's load and store would get the same place. eBPF has no
//! read-modify-write instruction without a lock prefix. So there is one locked instruction for each record:
//!
//! * **Place and serial number are one word** ([`Reserve`]). One compare-and-exchange takes both together. If
//!   another producer came in between, the exchange fails and is tried again.
//! * **The clock is read between the load and the exchange.** If the exchange succeeds, no other producer
//!   took a number in the meantime. So on one processor the time stamps are in the order of the serial
//!   numbers.
//! * **A full buffer costs a serial number and nothing else.** One locked add goes to the upper half of the
//!   word, and its carry leaves the word at the top.
//!
//! # Which records are complete
//!
//! A producer may have reserved a place and not yet written it while later records are complete. So each
//! record commits itself. A place that is not written is zero. A record's first word, which is never zero, is
//! stored last, with release. The flush thread stops at the first zero word. It zeroes what it has taken
//! before it releases the place. Both sides stay exact in whatever way the producers interrupt each other.

use crate::sync::{AtomicU64, Ordering, load_to_exchange};

/// How often a producer tries to take a place before it gives its event up as lost. Each further try means
/// that yet another producer came in between, so on one processor few tries are ever needed.
pub const TRIES: usize = 8;

/// The word from which producers take places. It has how much was ever reserved, in words of 8 bytes, modulo
/// 2^32, and how many events ever occurred, modulo 2^32. A side that knows the whole numbers of a moment ago
/// can recover both, because a buffer has far less than 32 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// Words ever reserved: the lower half.
    pub words: u32,
    /// Events that ever occurred: the upper half.
    pub serial: u32,
}

/// What a lost event adds to the word.
const ONE_EVENT: u64 = 1 << 32;

impl Reserve {
    /// From the word as it stands in memory.
    #[inline(always)]
    pub const fn from_word(word: u64) -> Reserve {
        Reserve { words: word as u32, serial: (word >> 32) as u32 }
    }

    /// The word as it stands in memory.
    #[inline(always)]
    pub const fn to_word(self) -> u64 {
        self.words as u64 | (self.serial as u64) << 32
    }
}

/// A place for one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Bytes from the beginning of the data to the place.
    pub offset: u32,
    /// Bytes of padding before it, up to the end of the data; 0 almost always.
    pub padding: u32,
    /// The record's serial number.
    pub serial: u32,
    /// Its time stamp.
    pub stamp: u64,
    /// Bytes in use once the record is written.
    pub used: u32,
}

/// Takes a place of `bytes` bytes and a serial number. If there is no room it takes only the number, which is
/// the `Err`. `capacity` is a power of two.
#[inline(always)]
pub fn claim(
    reserve: &AtomicU64,
    released: &AtomicU64,
    capacity: u32,
    bytes: u32,
    clock: impl Fn() -> u64,
) -> Result<Place, u32> {
    for _ in 0..TRIES {
        let old = load_to_exchange(reserve);
        // Acquire: our stores to the place come after the flush thread has zeroed it.
        let free_from = released.load(Ordering::Acquire);
        let Some((mut place, new)) = plan(Reserve::from_word(old), free_from, capacity, bytes) else { break };
        place.stamp = clock();
        // Relaxed: the word says nothing about what is written; each record commits itself.
        if reserve.compare_exchange(old, new.to_word(), Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            return Ok(place);
        }
    }
    Err(Reserve::from_word(reserve.fetch_add(ONE_EVENT, Ordering::Relaxed)).serial)
}

/// Where the next record goes; `None` if it has no room. A record never wraps around the end of the data: the
/// space into which it does not fit becomes padding.
#[inline(always)]
fn plan(old: Reserve, released: u64, capacity: u32, bytes: u32) -> Option<(Place, Reserve)> {
    let offset = old.words.wrapping_mul(8) & (capacity - 1);
    let to_end = capacity - offset;
    let padding = if bytes > to_end { to_end } else { 0 };
    // Both counts are modulo 2^32 words; their difference is what is in use, which is far less.
    let before = u64::from(old.words.wrapping_sub((released >> 3) as u32)) * 8;
    let used = before + u64::from(padding + bytes);
    if used > u64::from(capacity) {
        return None;
    }
    let new =
        Reserve { words: old.words.wrapping_add((padding + bytes) / 8), serial: old.serial.wrapping_add(1) };
    let offset = if padding > 0 { 0 } else { offset };
    Some((Place { offset, padding, serial: old.serial, stamp: 0, used: used as u32 }, new))
}

/// Writes a record's words into its place. The first word is written last and commits the record.
#[inline(always)]
pub fn commit<'a>(head: &AtomicU64, head_word: u64, body: impl Iterator<Item = (&'a AtomicU64, u64)>) {
    for (place, word) in body {
        place.store(word, Ordering::Relaxed);
    }
    // Release: a thread that sees this word sees the others.
    head.store(head_word, Ordering::Release);
}

/// The first word at a place. It is zero as long as no producer has committed a record there.
#[inline(always)]
pub fn committed(head: &AtomicU64) -> u64 {
    head.load(Ordering::Acquire)
}

/// How far producers have reserved. The consumer looks at nothing beyond.
#[inline(always)]
pub fn reserved(reserve: &AtomicU64) -> Reserve {
    Reserve::from_word(reserve.load(Ordering::Acquire))
}

/// Gives everything before `position` bytes, which must be zeroed, back to the producers.
#[inline(always)]
pub fn release(released: &AtomicU64, position: u64) {
    // Release: a producer that sees the position sees the zeroes.
    released.store(position, Ordering::Release);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn klog_6_a_lost_event_takes_a_serial_and_no_place_also_where_the_serial_wraps() {
        let full = Reserve { words: 512, serial: u32::MAX };
        let reserve = AtomicU64::new(full.to_word());
        assert_eq!(claim(&reserve, &AtomicU64::new(0), 4096, 16, || 0), Err(u32::MAX));
        assert_eq!(reserved(&reserve), Reserve { words: 512, serial: 0 });
    }

    #[test]
    fn klog_5_positions_wrap_at_32_gib_without_harm() {
        let reserve = AtomicU64::new(Reserve { words: u32::MAX - 1, serial: 0 }.to_word());
        let released = AtomicU64::new((u64::from(u32::MAX) - 1) * 8);
        let place = claim(&reserve, &released, 4096, 16, || 0).unwrap();
        assert_eq!((place.offset, place.padding, place.used), (4080, 0, 16));
        assert_eq!(reserved(&reserve).words, 0);
    }

    #[test]
    fn klog_5_a_record_that_does_not_fit_before_the_end_goes_to_the_beginning() {
        let reserve = AtomicU64::new(Reserve { words: 510, serial: 0 }.to_word());
        let place = claim(&reserve, &AtomicU64::new(4080), 4096, 24, || 0).unwrap();
        assert_eq!((place.offset, place.padding, place.used), (0, 16, 40));
        assert_eq!(reserved(&reserve).words, 515);
    }

    #[test]
    fn klog_5_the_buffer_can_be_filled_to_the_last_byte_and_no_further() {
        let (reserve, released) = (AtomicU64::new(0), AtomicU64::new(0));
        let taken = (0..300).filter(|_| claim(&reserve, &released, 4096, 16, || 0).is_ok()).count();
        assert_eq!(taken, 256);
        assert_eq!(reserved(&reserve), Reserve { words: 512, serial: 300 });
    }
}
