//! No bytes of a trace make a converter panic, and no format hides an event that another format shows
//! (NEW-6).

use crate::common::{self, BLOCK_BYTES, Scratch, trace_description};
use mete_convert::{
    ArrowFile, Csv, Ctf, CtfVersion, Format, JsonLines, Parquet, Perfetto, Perl, Text, convert,
};
use mete_schema::{Schema, Source};
use mete_trace::block::{HEADER_BYTES, checksum, offset};
use mete_trace::description::{ClockAnchor, file_name};
use mete_trace::{ClockSource, Description, EventLayout, FieldKind, FieldLayout, Filter, Ticks, Trace};
use proptest::prelude::*;

/// Events whose fields have a meaning for the formats that look for one. The numbers in the trace are
/// arbitrary.
const SCHEMA: &str = "
event OUT { int pid  uint state  bool made  char name[5] }
event IN { long pid  u16 tgid  int prio  char name[5] }
event WAKE { u64 pid  int by  u32 to }
event OTHER { int pid  u8 a  address b  u16 domain }
at tp_btf:sched_switch { log OUT(prev.pid, prev_state, preempt, prev.comm)  log IN(next.pid, next.tgid, next.prio, next.comm) }
at tp_btf:sched_waking log WAKE(p.pid, pid, p.thread_info.cpu)
at tp_btf:sys_enter log OTHER(pid, 1, 2, domain)
";

/// Fields of any kind, anywhere in the record.
fn any_event(id: u16) -> impl Strategy<Value = EventLayout> {
    let kinds = [
        (FieldKind::Unsigned, 8),
        (FieldKind::Signed, 4),
        (FieldKind::Float, 4),
        (FieldKind::Bool, 1),
        (FieldKind::Address, 8),
        (FieldKind::Text, 13),
        (FieldKind::Bytes, 7),
    ];
    let field = ("[a-c_]{1,3}", 16_u16..60, proptest::sample::select(kinds.to_vec())).prop_map(
        |(name, offset, (kind, bytes))| FieldLayout { name, kind, offset, bytes, doc: "\"\n*/".to_owned() },
    );
    proptest::collection::vec(field, 0..6).prop_map(move |fields| EventLayout {
        id,
        name: format!("E{id}"),
        doc: "\u{1e}".to_owned(),
        fields,
    })
}

/// A block of records with arbitrary events and times. The sizes are right, so that the records are read.
fn block(records: &[(u16, u64, Vec<u8>)], gap: u64) -> Vec<u8> {
    let mut builder = mete_trace::block::Builder::new(common::RECORDING, 0, BLOCK_BYTES);
    for (nth, (event, time, fields)) in records.iter().enumerate() {
        let serial = (nth as u64) * (1 + gap);
        let mut words: Vec<_> = fields
            .chunks(8)
            .map(|part| {
                let mut word = [0; 8];
                word[..part.len()].copy_from_slice(part);
                u64::from_le_bytes(word)
            })
            .collect();
        let mut whole = common::record(*event, serial, *time, &[]);
        whole[0] = mete_trace::record::Head {
            event: *event,
            bytes: 16 + 8 * words.len() as u16,
            serial: serial as u32,
        }
        .to_word();
        whole.append(&mut words);
        if !builder.push(serial, &whole) {
            break;
        }
    }
    builder.seal_last(0).bytes
}

fn describe(scratch: &Scratch, events: Vec<EventLayout>, is_schema: bool, ticks: u64) {
    let mut description = trace_description(1);
    if is_schema {
        let source = Source::new("test", SCHEMA);
        let schema = Schema::read(std::slice::from_ref(&source)).unwrap_or_else(|_| panic!("it is right"));
        description.description = Description::of_schema(&schema, &[source]);
    } else {
        description.description.events = events;
    }
    let anchor = |ticks, ns| {
        let ticks = Ticks::new(ticks);
        ClockAnchor { processor: 0, ticks, monotonic_ns: ns, realtime_ns: u64::MAX }
    };
    description.clock.source = ClockSource::Counter;
    description.clock.anchors = vec![anchor(0, 5), anchor(ticks, u64::MAX)];
    description.write(scratch.path()).unwrap();
}

fn convert_all(scratch: &Scratch) {
    let trace = Trace::open(scratch.path()).unwrap();
    let sink = std::io::sink;
    let mut formats: Vec<Box<dyn Format>> = vec![
        Box::new(Text::new(sink())),
        Box::new(Csv::new(sink())),
        Box::new(JsonLines::new(sink())),
        Box::new(Perl::new(sink())),
        Box::new(Perfetto::new(sink(), &trace)),
        Box::new(Parquet::new(sink(), &trace).unwrap()),
        Box::new(ArrowFile::new(sink(), &trace).unwrap()),
    ];
    for version in [CtfVersion::One, CtfVersion::Two] {
        let own = scratch.path().join(format!("{version:?}"));
        std::fs::create_dir_all(&own).unwrap();
        formats.push(Box::new(Ctf::new(&own, version, &trace)));
    }
    let done: Vec<_> = formats
        .iter_mut()
        .map(|format| convert(&trace, Filter::default(), &mut **format).unwrap().events)
        .collect();
    assert!(done.iter().all(|events| *events == done[0]), "{done:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn new_6_no_bytes_of_a_trace_make_a_converter_panic(
        events in (any_event(16), any_event(17), any_event(0xffef)),
        is_schema: bool,
        ticks: u64,
        records in proptest::collection::vec(
            (prop_oneof![16_u16..21, any::<u16>().prop_filter("padding is in no file", |event| *event != 0xffff)],
             any::<u64>(), proptest::collection::vec(any::<u8>(), 0..64)),
            0..40,
        ),
        gap in 0_u64..3,
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        is_right: bool,
    ) {
        let scratch = Scratch::new("any-bytes");
        describe(&scratch, vec![events.0, events.1, events.2], is_schema, ticks);
        let mut file = block(&records, gap);
        for (at, byte) in &damage {
            let at = at.index(file.len());
            file[at] = *byte;
        }
        let used = u32::from_le_bytes([84, 85, 86, 87].map(|at| file[at])) as usize;
        if is_right && let Some(written) = file.get(..HEADER_BYTES.saturating_add(used)) {
            let sum = checksum(written);
            file[offset::CHECKSUM..HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
        }
        std::fs::write(scratch.path().join(file_name(0)), &file).unwrap();
        convert_all(&scratch);
    }
}
