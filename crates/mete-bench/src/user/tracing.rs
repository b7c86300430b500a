//! The peer that most Rust programs use: `tracing`. Its subscriber does as little as a log of numbers can do:
//! it stores the fields and a time stamp into a ring.

use std::cell::Cell;

use mete_log::clock::ticks;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Dispatch, Event, Metadata, Subscriber};

const ROWS: usize = 1024;

thread_local! {
    static RING: [Cell<[u64; 4]>; ROWS] = const { [const { Cell::new([0; 4]) }; ROWS] };
    static NEXT: Cell<usize> = const { Cell::new(0) };
}

struct Ring;

struct Values {
    values: [u64; 4],
    used: usize,
}

impl Visit for Values {
    fn record_u64(&mut self, _field: &Field, value: u64) {
        // Fields beyond the fourth are counted and left out.
        if let Some(place) = self.values.get_mut(self.used) {
            *place = value;
        }
        self.used += 1;
    }

    fn record_debug(&mut self, _field: &Field, _value: &dyn std::fmt::Debug) {}
}

impl Subscriber for Ring {
    fn register_callsite(&self, _metadata: &'static Metadata<'static>) -> Interest {
        Interest::always()
    }

    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _attributes: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut values = Values { values: [0; 4], used: 0 };
        event.record(&mut values);
        // The three fields of the event are in places 0 to 2.
        values.values[3] = ticks().get();
        let next = NEXT.get();
        NEXT.set(next.wrapping_add(1));
        RING.with(|ring| ring[next % ROWS].set(values.values));
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

/// Runs with the ring as this thread's subscriber.
pub fn with_ring<T>(run: impl FnOnce() -> T) -> T {
    ::tracing::dispatcher::with_default(&Dispatch::new(Ring), run)
}

/// Logs `times` events.
#[inline(never)]
pub fn events(times: u64) {
    for at in 0..times {
        ::tracing::info!(domain = 1u64, correspondent = 2u64, counter = at);
    }
}
