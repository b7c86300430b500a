//! Whatever stands in a recording buffer, and however it changes between passes, what is handed
//! out are whole records with rising serial numbers, and a pass ends (KLOG-6, LOG-11).
#![no_main]

use std::sync::atomic::{AtomicU64, Ordering};

use libfuzzer_sys::fuzz_target;
use mete_trace::layout::area_bytes;
use mete_trace::record::Head;
use mete_trace::{Buffer, Consumer, Producer, Ticks};

/// Words of the header, and the first of the data, that inputs reach.
const REACHED: usize = 512 + 256;

fuzz_target!(|input: &[u8]| {
    let area: Vec<_> = (0..area_bytes(16) / 8).map(|_| AtomicU64::new(0)).collect();
    let Some(buffer) = Buffer::new(&area) else { return };
    buffer.initialise(0, 10);
    let mut consumer = Consumer::new(buffer);
    let producer = Producer::new(buffer);
    let mut last = None;
    for step in input.chunks_exact(10) {
        let at = u16::from_le_bytes([step[0], step[1]]);
        let value = step[2..].try_into().map(u64::from_le_bytes).unwrap_or_default();
        match at % 4 {
            0 => area[at as usize / 4 % REACHED].store(value, Ordering::Relaxed),
            // The words that matter most: reserve, released, mark.
            1 => area[[8, 16, 17][at as usize / 4 % 3]].store(value, Ordering::Relaxed),
            2 => {
                let fields = [value; 40];
                let _ = producer.record(step[2].into(), &fields[..usize::from(step[3]) % 40], || Ticks::new(value));
            }
            _ => {
                let _ = consumer.drain(|serial, record| {
                    let head = Head::from_word(record[0]);
                    assert!(head.is_sound() && usize::from(head.bytes) == record.len() * 8);
                    assert!(last.is_none_or(|last| serial > last));
                    last = Some(serial);
                    true
                });
            }
        }
    }
});
