//! Perfetto (NEW-6): two other implementations of protocol buffers decode the output. It is the schedule that
//! was recorded, whatever the names of the events are.

use std::process::Command;

use crate::common::{self, Scratch, record, trace_description, write_file};
use crate::perfetto_proto::{self, FtraceEvent, TracePacket};
use mete_convert::{Perfetto, convert};
use mete_schema::{Schema, Source};
use mete_trace::record::{DUMP_BEGIN, DUMP_FINISH, SWITCHED_OFF, SWITCHED_ON};
use mete_trace::{Description, Filter, ThreadName, Trace};
use prost::Message;

/// The paper's event and more, under other names than the shipped ones.
const SCHEMA: &str = "
event GONE { int who  uint how  bool made }
event COME { int who  int of  int urgency  char called[8] }
event CALLED { int who  int by }
event WORK { int pid  u64 amount  char note[8] }
event HERE { u32 number }
at tp_btf:sched_switch {
    log GONE(prev.pid, prev_state, preempt)
    log COME(next.pid, next.tgid, next.prio, next.comm)
}
at tp_btf:sched_waking log CALLED(p.pid, pid)
at tp_btf:sys_enter log WORK(pid, 7, comm)
at tp_btf:sys_exit log HERE(3)
";

/// A number, and after it a text of eight letters, in two words.
fn named(number: u32, name: &str) -> [u64; 2] {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    bytes[4..4 + name.len()].copy_from_slice(name.as_bytes());
    [0, 8].map(|at| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()))
}

fn come(serial: u64, time: u64, [who, of, urgency]: [u32; 3], called: &str) -> (u64, Vec<u64>) {
    let [first, second] = named(urgency, called);
    (serial, record(17, serial, time, &[pair(who, of), first, second]))
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// Thread 11 of process 10 and thread 20; a wake-up; work; a flush; a loss while 20 runs.
fn trace(scratch: &Scratch, schema: &str, records: &[(u64, Vec<u64>)], occurred: u64) -> Trace {
    let source = Source::new("test", schema);
    let read = Schema::read(std::slice::from_ref(&source)).unwrap_or_else(|_| panic!("the schema is right"));
    let mut description = trace_description(1);
    description.machine.kernel = "Linux 6.18.1".to_owned();
    description.description = Description::of_schema(&read, &[source]);
    description.write(scratch.path()).unwrap();
    write_file(scratch.path(), 0, records, occurred);
    Trace::open(scratch.path()).unwrap()
}

fn recorded() -> (Vec<(u64, Vec<u64>)>, u64) {
    let work = named(11, "worker");
    let records = vec![
        come(0, 1000, [11, 10, 120], "worker"),
        (1, record(19, 1, 1100, &[42, work[0], work[1]])),
        (2, record(18, 2, 1200, &[pair(20, 11)])),
        (3, record(DUMP_BEGIN, 3, 1250, &[])),
        (4, record(DUMP_FINISH, 4, 1260, &[])),
        (5, record(16, 5, 1300, &[pair(11, 2), 0])),
        come(6, 1301, [20, 20, 98], "other"),
        (7, record(20, 7, 1350, &[3])),
        // Three events are lost.
        (11, record(16, 11, 2000, &[pair(11, 0), 1])),
        come(12, 2001, [20, 20, 98], "other"),
    ];
    (records, 14)
}

/// The packets, and the file.
fn packets(trace: &Trace) -> (Vec<TracePacket>, Vec<u8>) {
    let mut out = Vec::new();
    convert(trace, Filter::default(), &mut Perfetto::new(&mut out, trace)).unwrap();
    (perfetto_proto::Trace::decode(&out[..]).unwrap().packet, out)
}

fn scheduling(packets: &[TracePacket]) -> Vec<FtraceEvent> {
    let bundles = packets.iter().filter_map(|packet| packet.ftrace_events.as_ref());
    bundles.flat_map(|bundle| bundle.event.clone()).collect()
}

/// Time, the thread that leaves and its state, the thread that comes.
fn switches(packets: &[TracePacket]) -> Vec<(u64, i32, i64, i32)> {
    let events = scheduling(packets);
    let switch = |event: &FtraceEvent| {
        let switch = event.sched_switch.as_ref()?;
        Some((event.timestamp?, switch.prev_pid?, switch.prev_state?, switch.next_pid?))
    };
    events.iter().filter_map(switch).collect()
}

#[test]
fn new_6_the_schedule_follows_from_what_fields_were_filled_with() {
    let scratch = Scratch::new("perfetto-schedule");
    let (records, occurred) = recorded();
    let (packets, _) = packets(&trace(&scratch, SCHEMA, &records, occurred));
    let expected = [
        (1000, 0, 0, 11),
        (1301, 11, 2, 20),
        // It is not known which thread ran from the loss on, so none is drawn. It is known that 11 ran last.
        (1350, 20, 0, 0),
        (2000, 0, 0, 11),
        (2001, 11, 0x100, 20),
        (2001, 20, 0, 0),
    ];
    assert_eq!(switches(&packets), expected);
    let events = scheduling(&packets);
    let last = events[events.len() - 2].sched_switch.clone().unwrap();
    assert_eq!(
        (last.next_comm.as_deref(), last.next_prio, last.prev_comm.as_deref()),
        (Some("other"), Some(98), Some("worker"))
    );
    let waking: Vec<_> = events.iter().filter(|event| event.sched_waking.is_some()).collect();
    let woken = waking[0].sched_waking.clone().unwrap();
    assert_eq!(
        (waking.len(), waking[0].timestamp, waking[0].pid, woken.pid),
        (1, Some(1200), Some(11), Some(20))
    );
    let lost: Vec<_> =
        packets.iter().filter_map(|packet| packet.ftrace_events.as_ref()?.lost_events).collect();
    assert_eq!(lost, [true, true], "the mark stands before the event after each of the two losses");
}

#[test]
fn new_6_threads_that_no_event_names_have_the_names_that_the_recorder_saw() {
    let scratch = Scratch::new("perfetto-names");
    let (records, occurred) = recorded();
    let mut description = trace(&scratch, SCHEMA, &records, occurred).description().clone();
    description.machine.threads =
        vec![ThreadName { thread: 77, process: 70, name: "sleeper".to_owned() }, ThreadName::default()];
    description.write(scratch.path()).unwrap();
    let (packets, _) = packets(&Trace::open(scratch.path()).unwrap());
    let trees = packets.iter().filter_map(|packet| packet.process_tree.as_ref());
    let threads: Vec<_> = trees.flat_map(|tree| tree.threads.clone()).collect();
    let of = threads.iter().filter(|thread| thread.tid == Some(77)).collect::<Vec<_>>();
    assert_eq!((of.len(), of[0].name.as_deref(), of[0].tgid), (1, Some("sleeper"), Some(70)));
    assert!(threads.iter().all(|thread| thread.tid != Some(0)), "0 is no thread");
}

#[test]
fn new_6_other_events_stand_on_their_threads_and_losses_and_flushes_on_tracks_of_their_own() {
    let scratch = Scratch::new("perfetto-tracks");
    let (records, occurred) = recorded();
    let (packets, _) = packets(&trace(&scratch, SCHEMA, &records, occurred));
    let tree: Vec<_> = packets.iter().filter_map(|packet| packet.process_tree.clone()).collect();
    assert_eq!((tree[0].threads[0].tid, tree[0].threads[0].tgid), (Some(11), Some(10)));
    assert_eq!(tree[0].threads[0].name.as_deref(), Some("worker"));
    let tracks: Vec<_> = packets.iter().filter_map(|packet| packet.track_descriptor.clone()).collect();
    let name_of = |uuid: Option<u64>| {
        let track = tracks.iter().find(|track| track.uuid == uuid).unwrap();
        match &track.thread {
            Some(thread) => format!("thread {} of {}", thread.tid.unwrap(), thread.pid.unwrap()),
            None => track.name.clone().unwrap(),
        }
    };
    let interned = packets.iter().find_map(|packet| packet.interned_data.clone()).unwrap();
    let event_name =
        |iid| interned.event_names.iter().find(|name| name.iid == iid).unwrap().name.clone().unwrap();
    let mut seen = Vec::new();
    for packet in &packets {
        let Some(event) = &packet.track_event else { continue };
        let name = event
            .name
            .clone()
            .or_else(|| event.name_iid.map(|iid| event_name(Some(iid))))
            .unwrap_or_default();
        seen.push((packet.timestamp.unwrap(), event.r#type.unwrap(), name_of(event.track_uuid), name));
    }
    let (begin, end, instant) = (1, 2, 3);
    let whole = "processor 0: 10 records, 4 events lost, of #0 to #13";
    let completeness = "processor 0: completeness";
    let expected = [
        (1100, instant, "thread 11 of 10", "WORK"),
        (1250, begin, "processor 0: recorder", "flush"),
        (1260, end, "processor 0: recorder", ""),
        (1350, instant, "processor 0: events", "HERE"),
        (1350, begin, completeness, "3 events lost"),
        (2000, end, completeness, ""),
        (2001, begin, completeness, "1 events lost"),
        (2001, end, completeness, ""),
        (2001, instant, completeness, whole),
    ];
    let expected = expected.map(|(time, kind, track, name)| (time, kind, track.to_owned(), name.to_owned()));
    assert_eq!(seen, expected);
    let work = packets.iter().filter_map(|packet| packet.track_event.clone()).next().unwrap();
    let annotation = |iid| {
        interned.debug_annotation_names.iter().find(|name| name.iid == iid).unwrap().name.clone().unwrap()
    };
    let values: Vec<_> = work
        .debug_annotations
        .iter()
        .map(|it| {
            let name = it.name.clone().unwrap_or_else(|| annotation(it.name_iid));
            (name, it.int_value.or(it.uint_value.map(|value| value as i64)), it.string_value.clone())
        })
        .collect();
    let said = |name: &str, number, text: Option<&str>| (name.to_owned(), number, text.map(str::to_owned));
    let expected = [
        said("pid", Some(11), None),
        said("amount", Some(42), None),
        said("note", None, Some("worker")),
        said("processor", Some(0), None),
        said("serial", Some(1), None),
    ];
    assert_eq!(values, expected);
}

#[test]
fn new_6_the_papers_schedin_alone_makes_a_schedule() {
    let scratch = Scratch::new("perfetto-paper");
    let schema = "event SCHEDIN { int pid  ulonglong L2_cache_misses }\n\
                  at tp_btf:sched_switch log SCHEDIN(next.pid, counter0)\narch any { counter0 l2_cache_misses }";
    let records: Vec<_> = [(0, 5), (1, 6), (2, 0), (3, 5)]
        .into_iter()
        .map(|(nth, pid)| (nth, record(16, nth, 100 * (nth + 1), &[1, pid])))
        .collect();
    let (packets, _) = packets(&trace(&scratch, schema, &records, 4));
    assert_eq!(switches(&packets), [(100, 0, 0, 5), (200, 5, 0, 6), (300, 6, 0, 0), (400, 0, 0, 5)]);
}

/// KLogger §4.3: an event that is off may still occur.
#[test]
fn klog_4_no_thread_is_drawn_as_running_while_switches_are_off() {
    let scratch = Scratch::new("perfetto-off");
    let off =
        |serial: u64, time: u64, event: u16, number: u64| (serial, record(event, serial, time, &[number; 9]));
    let records = [
        come(0, 1000, [11, 10, 120], "worker"),
        // The event for the thread that leaves says nothing about the thread that comes.
        off(1, 1100, SWITCHED_OFF, 16),
        come(2, 1200, [20, 20, 98], "other"),
        off(3, 1300, SWITCHED_OFF, 17),
        // The record of a program that was still running.
        come(4, 1301, [11, 10, 120], "worker"),
        off(5, 9000, SWITCHED_ON, 17),
        come(6, 9100, [20, 20, 98], "other"),
    ];
    let (packets, _) = packets(&trace(&scratch, SCHEMA, &records, 7));
    assert_eq!(switches(&packets), [(1000, 0, 0, 11), (1200, 11, 0, 20), (1300, 20, 0, 0), (9100, 0, 0, 20)]);
}

#[test]
fn new_6_where_only_some_switches_are_recorded_no_false_schedule_is_drawn() {
    let some = "event SCHEDIN { int pid }\nat tp_btf:sched_switch when next.pid > 10 log SCHEDIN(next.pid)";
    let records = [(0, record(16, 0, 100, &[11])), (1, record(16, 1, 200, &[12]))];
    let scratch = Scratch::new("perfetto-some");
    let (found, _) = packets(&trace(&scratch, some, &records, 2));
    assert!(switches(&found).is_empty());
    let instants = found.iter().filter(|packet| packet.track_event.is_some()).count();
    assert_eq!(instants, 3, "two events and the statement of what is in the trace");
    // If both sides of a switch are recorded, it is drawn, and nothing between the switches.
    let both = "event IN { int pid }\nevent OUT { int pid }\nat tp_btf:sched_switch {\n\
                if prev.pid > 10 log OUT(prev.pid)\nif next.pid > 10 log IN(next.pid)\n}";
    let records = [
        (0, record(16, 0, 100, &[11])),
        (1, record(17, 1, 150, &[11])),
        (2, record(16, 2, 200, &[12])),
        (3, record(17, 3, 250, &[12])),
        (4, record(16, 4, 251, &[13])),
    ];
    let scratch = Scratch::new("perfetto-both");
    let (found, _) = packets(&trace(&scratch, both, &records, 5));
    // Serial numbers alone do not tell whether 12 came right after 11 or after a pause. So each event keeps
    // its own time.
    let expected = [(100, 0, 0, 11), (200, 11, 0, 12), (251, 12, 0, 13)];
    assert_eq!(switches(&found), expected);
}

#[test]
fn new_6_perfettos_own_python_package_decodes_it() {
    let scratch = Scratch::new("perfetto-python");
    let Some(python) = common::python_with("perfetto") else {
        return println!(
            "SKIPPED: Perfetto's python package decodes it: no python3 with perfetto; {}",
            common::HOW_TO_GET_IT
        );
    };
    let (records, occurred) = recorded();
    let (_, bytes) = packets(&trace(&scratch, SCHEMA, &records, occurred));
    let path = scratch.path().join("trace.pftrace");
    std::fs::write(&path, bytes).unwrap();
    let program = r#"
import sys
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
trace = pb.Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())
def unknown(message):
    from google.protobuf.unknown_fields import UnknownFieldSet
    assert not len(UnknownFieldSet(message)), message
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for part in (value if field.is_repeated else [value]):
                unknown(part)
unknown(trace)
switches, instants, tracks = [], 0, set()
for packet in trace.packet:
    for event in packet.ftrace_events.event:
        if event.HasField("sched_switch"):
            s = event.sched_switch
            switches.append((event.timestamp, s.prev_pid, s.prev_state, s.next_pid, s.next_comm))
    if packet.HasField("track_event"):
        assert packet.track_event.track_uuid in tracks
        instants += packet.track_event.type == pb.TrackEvent.TYPE_INSTANT
    if packet.HasField("track_descriptor"):
        tracks.add(packet.track_descriptor.uuid)
assert trace.packet[0].clock_snapshot.primary_trace_clock == 6
assert trace.packet[1].system_info.utsname.release == "6.18.1"
print(switches[1], len(switches), instants)
"#;
    let output = Command::new(python).args(["-c", program]).arg(&path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "(1301, 11, 2, 20, 'other') 6 3\n");
}
