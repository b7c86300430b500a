//! The portmap: for each destination port, whether packets for it wake I/O-bound tasks (§3.5.2, figure 4).
//!
//! A saturating counter of N bits for each of the 65,536 ports, packed: N × 8 KiB. It starts at zero.
//! A packet is expected to wake an I/O-bound task while the counter's highest bit is set.

use alloc::vec;
use alloc::vec::Vec;

/// The number of destination ports.
const PORTS: usize = 1 << 16;

/// One virtual processor's counters.
#[derive(Clone)]
pub(super) struct Portmap {
    /// One byte more than the counters take, so that two bytes can be read at each counter.
    bytes: Vec<u8>,
    bits: u8,
}

impl Portmap {
    /// Counters of `bits` bits, 1 to 8.
    pub(super) fn new(bits: u8) -> Portmap {
        let bits = bits.clamp(1, 8);
        Portmap { bytes: vec![0; PORTS * usize::from(bits) / 8 + 1], bits }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.fill(0);
    }

    pub(super) fn counter(&self, port: u16) -> u8 {
        let (byte, shift) = self.place(port);
        (self.pair(byte) >> shift) as u8 & self.most()
    }

    pub(super) fn expects_io_bound(&self, port: u16) -> bool {
        self.counter(port) >> (self.bits - 1) != 0
    }

    /// Counts the first task that was woken by a packet for this port: whether it was I/O-bound.
    pub(super) fn update(&mut self, port: u16, io_bound: bool) {
        let old = self.counter(port);
        let new = if io_bound { old.saturating_add(1).min(self.most()) } else { old.saturating_sub(1) };
        // A counter of up to 8 bits lies in two bytes at most; the others' bits in them stay.
        let (byte, shift) = self.place(port);
        let pair = self.pair(byte) & !(u16::from(self.most()) << shift) | u16::from(new) << shift;
        self.bytes[byte..byte + 2].copy_from_slice(&pair.to_le_bytes());
    }

    fn most(&self) -> u8 {
        u8::MAX >> (8 - self.bits)
    }

    fn place(&self, port: u16) -> (usize, u32) {
        let bit = usize::from(port) * usize::from(self.bits);
        (bit / 8, (bit % 8) as u32)
    }

    fn pair(&self, byte: usize) -> u16 {
        u16::from_le_bytes([self.bytes[byte], self.bytes[byte + 1]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tavs_5_counters_of_every_width_share_bytes_without_touching_each_other() {
        for bits in 1..=8 {
            let mut map = Portmap::new(bits);
            let most = (1u32 << bits) - 1;
            for _ in 0..=most {
                map.update(100, true);
                map.update(u16::MAX, true);
            }
            assert_eq!(u32::from(map.counter(100)), most, "{bits} bits saturate");
            assert_eq!(u32::from(map.counter(u16::MAX)), most);
            for neighbour in [0, 99, 101, 65_534] {
                assert_eq!(map.counter(neighbour), 0, "{bits} bits, port {neighbour}");
            }
            map.update(100, false);
            assert_eq!(u32::from(map.counter(100)), most - 1);
        }
    }
}
