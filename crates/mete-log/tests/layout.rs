//! The layout is part of the interface, so a change to it must show in review (LOG-4, LOG-5). The output of
//! this test is kept in `layout.txt`; `METE_BLESS=1 cargo test -p mete-log --test layout` writes it anew.
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

use std::fmt::Write;

use mete_log::layout::*;
use mete_log::{Control, DomainId, Entries, EventId, Shape, Stamp, bindings, region, row};

fn dump() -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: u64| writeln!(text, "{name} {value:#x}").unwrap();
    line("magic", MAGIC);
    line("header.magic", HEADER_MAGIC as u64);
    line("header.shape", HEADER_SHAPE as u64);
    line("header.processor", HEADER_PROCESSOR as u64);
    line("header.virtual_clock", HEADER_VIRTUAL_CLOCK as u64);
    line("register.bytes", REGISTER_BYTES as u64);
    line("register.index", REGISTER_INDEX as u64);
    line("register.control", REGISTER_CONTROL as u64);
    line("register.lost", REGISTER_LOST as u64);
    line("register.busy", REGISTER_BUSY as u64);
    line("pair.bytes", PAIR_BYTES as u64);
    line("pair.selector", PAIR_SELECTOR as u64);
    line("pair.flags", PAIR_FLAGS as u64);
    line("pair.threshold", PAIR_THRESHOLD as u64);
    line("pair.count", PAIR_COUNT as u64);
    line("pair.flag.keep_internal", PAIR_KEEP_INTERNAL.into());
    line("slack.bytes", SLACK_BYTES as u64);
    line("bindings.bytes", bindings::BYTES as u64);
    line("region.areas", region::areas_offset() as u64);
    for (name, shape) in [("component", Shape::COMPONENT), ("kernel", Shape::KERNEL)] {
        line(&format!("{name}.shape"), u32::from_le_bytes(shape.to_bytes()).into());
        line(&format!("{name}.table"), shape.table_offset() as u64);
        line(&format!("{name}.data"), shape.data_offset() as u64);
        line(&format!("{name}.bytes"), shape.area_bytes() as u64);
    }
    for entries in (0..16).map(Entries::from_bits) {
        let control = Control::new(entries, Stamp::None, false, 4, 0x40);
        line(&format!("control.entries.{}", entries.bits()), control.to_bits());
    }
    for stamp in [Stamp::Hardware, Stamp::Tick, Stamp::Virtual, Stamp::RunQueue] {
        let control = Control::new(Entries::ALL, stamp, true, 10, 0x1000);
        line(&format!("control.stamp.{stamp:?}"), control.to_bits());
    }
    line("control.frozen", Control::OFF.with_frozen(true).to_bits());
    line("row.who", row::who(EventId::new(0x1111), DomainId::new(0x2222), DomainId::new(0x3333)));
    text
}

#[test]
fn log_4_the_layout_is_the_one_that_was_reviewed() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/layout.txt");
    if std::env::var_os("METE_BLESS").is_some() {
        std::fs::write(path, dump()).unwrap();
    }
    let reviewed = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(dump(), reviewed, "the layout changed; if that is meant, run this test with METE_BLESS=1");
}
