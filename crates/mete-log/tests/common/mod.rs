//! What several tests need: plans for one file, and a clock that the test sets.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::cell::Cell;

use mete_log::handler::Clock;
use mete_log::{Control, DomainId, Entries, EventId, FileId, FileSpec, Plan, Record, Region, Shape, Stamp};

/// A clock whose readings the test sets.
#[derive(Default)]
pub struct SetClock(pub Cell<u64>);

impl Clock for SetClock {
    fn hardware(&self) -> u64 {
        self.0.get()
    }

    fn tick(&self) -> u64 {
        self.0.get() / 1000
    }

    fn run_queue(&self) -> u64 {
        self.0.get() / 2
    }
}

/// All 16 combinations of the entries other than the time stamp.
pub fn all_entries() -> impl Iterator<Item = Entries> {
    (0..16).map(Entries::from_bits)
}

pub const STAMPS: [Stamp; 5] = [Stamp::None, Stamp::Hardware, Stamp::Tick, Stamp::Virtual, Stamp::RunQueue];

/// A small region of one processor in which every event of every domain goes to one file.
pub fn global_log(entries: Entries, stamp: Stamp, add: bool, rows: u32) -> (Region, FileId, Control) {
    let shape = Shape::new(4, 4, 4, 16).unwrap();
    let region = Region::create(shape, 1).unwrap();
    let mut plan = Plan::new(shape);
    let file = plan.file(FileSpec { entries, stamp, add, rows }).unwrap();
    EventId::all_below(shape.events()).for_each(|event| plan.route_event(event, file).unwrap());
    plan.apply(region.area(0));
    (region, file, plan.control(file))
}

pub fn record(event: u16, domain: u16, correspondent: u16, counter: u64) -> Record {
    Record {
        event: EventId::new(event),
        domain: DomainId::new(domain),
        correspondent: DomainId::new(correspondent),
        counter,
    }
}
