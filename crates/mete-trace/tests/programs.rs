//! Programs that record their own events by generated encoders, in C, C++ and Rust (KLOG-2, KLOG-5, KLOG-6).
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]
#![cfg(all(not(loom), not(miri)))]

use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::{env, fs};

use mete_schema::{Schema, generate, shipped};
use mete_trace::invitation::VARIABLE;
use mete_trace::layout::MIN_SIZE_LOG2;
use mete_trace::{
    Buffers, Channel, ClockSource, Consumer, Description, Filter, Invitation, Item, Memory, Options,
    Producer, Recorder, Ticks, Together, Trace,
};

const ROUNDS: u64 = 50;

fn stopwatch() -> Schema {
    Schema::read(&[shipped::by_name("stopwatch").unwrap().source()]).unwrap()
}

/// Buffers, and an invitation in which the stopwatch's events have other numbers than in the program.
fn invite(is_on: impl Fn(u16) -> bool) -> (Arc<Memory>, Invitation) {
    let memory = Arc::new(Memory::new(processors(), MIN_SIZE_LOG2, 10).unwrap());
    let numbered =
        |(nth, event): (usize, &mete_schema::schema::Event)| (event.fingerprint(), 700 + nth as u16);
    let events: Vec<_> = stopwatch().events.iter().enumerate().map(numbered).collect();
    let invitation = Invitation::new(Arc::clone(&memory), ClockSource::Monotonic, &events).unwrap();
    invitation.switch(is_on);
    (memory, invitation)
}

fn processors() -> usize {
    let text = fs::read_to_string("/sys/devices/system/cpu/possible").unwrap();
    text.trim().rsplit(['-', ',']).next().unwrap().parse::<usize>().unwrap() + 1
}

/// A record: time, number of the event, words of the fields.
type Found = (u64, u16, Vec<u64>);

/// The records in the buffers, in order of time.
fn drain(memory: &Memory) -> Vec<Found> {
    let mut found = Vec::new();
    for processor in 0..memory.processors() {
        let mut consumer = Consumer::new(memory.buffer(processor));
        let keep = |_, record: &[u64]| {
            found.push((record[1], record[0] as u16, record[2..].to_vec()));
            true
        };
        consumer.drain(keep).unwrap();
        assert_eq!(consumer.occurred(), consumer.next_serial(), "no event is lost");
    }
    found.sort();
    found
}

/// A directory that is removed at the end of the test.
struct TestDirectory(PathBuf);

impl TestDirectory {
    fn new(test: &str) -> TestDirectory {
        let path = env::temp_dir().join(format!("mete-trace-programs-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        TestDirectory(path)
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Compiles the C example as its own comment says; `None` if there is no such compiler.
fn compile(place: &TestDirectory, compiler: &[&str]) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::write(place.0.join("stopwatch.h"), generate::c(&stopwatch())).unwrap();
    let program = place.0.join("stopwatch");
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).args(["-O2", "-Wall", "-Wextra", "-Werror", "-I"]).arg(&place.0);
    command.arg("-I").arg(root.join("include")).arg(root.join("../../examples/c/stopwatch.c"));
    match command.arg("-o").arg(&program).status() {
        Err(error) => {
            println!("SKIPPED: {}: {error}", compiler[0]);
            None
        }
        Ok(status) => {
            assert!(status.success(), "{compiler:?} refuses the example");
            Some(program)
        }
    }
}

fn run(program: &Path, files: &str) {
    let status = Command::new(program).arg(ROUNDS.to_string()).env(VARIABLE, files).status().unwrap();
    assert!(status.success());
}

/// Checks that START and STOP alternate, and that each round has its number.
fn assert_is_stopwatch(found: &[Found]) {
    assert_eq!(found.len(), 2 * ROUNDS as usize);
    for (round, pair) in found.chunks_exact(2).enumerate() {
        let [(begun, start, fields), (ended, stop, results)] = pair else { panic!() };
        assert_eq!((start, stop), (&700, &701));
        assert!(begun <= ended);
        // The largest field comes first, then `watch` and `pid` in one word.
        assert_eq!(fields[0], round as u64);
        assert_eq!(fields[1], results[1], "the same watch and the same process");
    }
}

#[test]
fn klog_2_events_of_c_and_cplusplus_programs_come_with_the_recorders_numbers_in_order() {
    for compiler in [&["cc", "-std=c11"][..], &["cc", "-std=gnu17"], &["c++", "-x", "c++", "-std=c++17"]] {
        let place = TestDirectory::new(compiler.last().unwrap());
        let Some(program) = compile(&place, compiler) else { continue };
        let (memory, invitation) = invite(|_| true);
        run(&program, &invitation.hand_out().unwrap());
        assert_is_stopwatch(&drain(&memory));
        invitation.switch(|number| number == 701);
        run(&program, &invitation.hand_out().unwrap());
        let memory = drain_rest(&memory);
        assert_eq!(memory, ROUNDS, "START is off");
    }
}

/// The number of events after those of the first run.
fn drain_rest(memory: &Memory) -> u64 {
    let occurred = (0..memory.processors()).map(|nth| u64::from(memory.buffer(nth).reserved().serial));
    occurred.sum::<u64>() - 2 * ROUNDS
}

#[test]
fn klog_2_invalid_invitations_leave_a_program_as_it_is() {
    let place = TestDirectory::new("none");
    let Some(program) = compile(&place, &["cc", "-std=c11"]) else { return };
    for files in ["", "x", "3", "3,", "0,0", "99,98", "-1,-1", "1,2,3", "99999999999999999999,1"] {
        run(&program, files);
        assert!(!Channel::join(files, &[(16, 1)]).is_joined(), "{files:?}");
    }
}

/// The numbers are inherited, and a program in between may have closed these descriptors.
#[test]
fn klog_2_another_file_under_an_inherited_number_is_not_written_into() {
    let place = TestDirectory::new("another");
    let Some(program) = compile(&place, &["cc", "-std=c11"]) else { return };
    let (memory, invitation) = invite(|_| true);
    let path = place.0.join("data");
    let bytes = memory.processors() * mete_trace::layout::area_bytes(MIN_SIZE_LOG2);
    fs::write(&path, vec![7; bytes]).unwrap();
    let data = fs::File::options().read(true).write(true).open(&path).unwrap();
    rustix::io::fcntl_setfd(&data, rustix::io::FdFlags::empty()).unwrap();
    let files = invitation.hand_out().unwrap();
    let files = format!("{},{}", files.split_once(',').unwrap().0, data.as_raw_fd());
    run(&program, &files);
    assert!(!Channel::join(&files, &[(16, 1)]).is_joined());
    assert!(fs::read(&path).unwrap().iter().all(|byte| *byte == 7));
}

/// A process that has the file could cut it, and the program would be killed at its next event.
#[test]
fn klog_2_a_file_that_could_still_change_its_size_is_not_written_into() {
    let place = TestDirectory::new("unsealed");
    let Some(program) = compile(&place, &["cc", "-std=c11"]) else { return };
    let (_memory, invitation) = invite(|_| true);
    let files = invitation.hand_out().unwrap();
    let (page, buffers) = files.split_once(',').unwrap();
    let content = fs::read(format!("/proc/self/fd/{buffers}")).unwrap();
    let flags = rustix::fs::MemfdFlags::ALLOW_SEALING;
    let copy = fs::File::from(rustix::fs::memfd_create("unsealed", flags).unwrap());
    copy.write_all_at(&content, 0).unwrap();
    let files = format!("{page},{}", copy.as_raw_fd());
    run(&program, &files);
    assert!(!Channel::join(&files, &[(16, 1)]).is_joined());
    let mut after = vec![0; content.len()];
    copy.read_exact_at(&mut after, 0).unwrap();
    assert!(after == content, "nothing is written into the copy");
}

#[test]
fn klog_2_disabled_calls_leave_nothing_of_the_recorder_in_a_c_program() {
    let place = TestDirectory::new("disabled");
    let Some(program) = compile(&place, &["cc", "-std=c11", "-DMETE_DISABLE"]) else { return };
    let (memory, invitation) = invite(|_| true);
    run(&program, &invitation.hand_out().unwrap());
    assert_eq!(drain(&memory), []);
    let imported = fs::read(&program).unwrap();
    for name in [&b"sched_getcpu"[..], b"METE_RECORDER", b"mmap"] {
        assert!(!imported.windows(name.len()).any(|bytes| bytes == name), "{name:?}");
    }
}

#[test]
fn klog_2_rust_programs_record_what_is_on_and_known_and_nothing_else() {
    let schema = stopwatch();
    let own: Vec<_> = schema.events.iter().map(|event| (event.id, event.fingerprint())).collect();
    let (memory, invitation) = invite(|number| number == 701);
    let unknown = [(own[0].0, own[0].1), (own[1].0, 1)];
    let files = invitation.hand_out().unwrap();
    let record = |number: u16| {
        let words = [u64::from(number) | 32 << 16, 0, 5, 6];
        words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>()
    };
    let channel = Channel::join(&files, &own);
    assert!(channel.is_joined());
    channel.emit(&record(own[0].0));
    channel.emit(&record(own[1].0));
    channel.emit(&record(3));
    channel.emit(&record(9000));
    channel.emit(&[]);
    Channel::join(&files, &unknown).emit(&record(own[1].0));
    let found = drain(&memory);
    assert_eq!(
        found.iter().map(|(_, number, words)| (*number, words.clone())).collect::<Vec<_>>(),
        [(701, vec![5, 6])]
    );
}

/// After a change of the schema or of the generator, run this test with METE_BLESS set.
#[test]
fn klog_2_rust_example_has_the_events_as_they_are_generated() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/stopwatch/events.rs");
    let text = generate::rust(&stopwatch());
    if env::var_os("METE_BLESS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), text, "METE_BLESS=1 makes it so");
}

/// A program that is killed in the middle of a record holds up programs' events only.
#[test]
fn klog_6_programs_events_have_files_of_their_own_and_the_processor_that_they_happened_on() {
    let place = TestDirectory::new("together");
    let [kernel, programs] = [2, 2].map(|count| Arc::new(Memory::new(count, MIN_SIZE_LOG2, 10).unwrap()));
    let both = Together::new(Some(Arc::clone(&kernel)), Some(Arc::clone(&programs)));
    let recorder =
        Recorder::start(Arc::new(both), Description::default(), Options::directory(place.0.join("trace")));
    let recorder = recorder.unwrap();
    for (memory, event) in [(&programs, 700), (&kernel, 600)] {
        for processor in 0..2 {
            let producer = Producer::new(memory.buffer(processor));
            let _ = producer.record(event + processor as u16, &[7], || ClockSource::Counter.now());
        }
    }
    let described = recorder.stop().unwrap();
    let accounts: Vec<_> = described.completeness.iter().map(|it| (it.processor, it.programs_of)).collect();
    assert_eq!(accounts, [(0, None), (1, None), (2, Some(0)), (3, Some(1))]);
    assert!(described.completeness[3].to_string().starts_with("programs on processor 1 (file 3): "));
    let trace = Trace::open(place.0.join("trace")).unwrap();
    assert_eq!(trace.check().0, described.completeness);
    let found = |filter: Filter| {
        let (mut found, mut merged) = (Vec::new(), trace.merge(filter.without_marks()));
        while let Some(item) = merged.next() {
            if let Item::Record(record) = item.unwrap() {
                found.push((record.event, record.processor));
            }
        }
        found
    };
    assert_eq!(found(Filter::default()), [(700, 0), (701, 1), (600, 0), (601, 1)]);
    assert_eq!(found(Filter::default().processors([1])), [(701, 1), (601, 1)]);
    let alone = Together::<Memory>::new(None, Some(programs));
    assert_eq!((alone.processors(), alone.programs_of(1)), (2, None), "they are the processors' files then");
}

/// Gathered events happened before they are written, and no mark of a flush comes between them.
#[test]
fn klog_6_gathered_events_are_in_order_of_time_and_missed_ones_are_a_gap() {
    let place = TestDirectory::new("gathered");
    let [kernel, gathered] = [2, 2].map(|count| Arc::new(Memory::new(count, MIN_SIZE_LOG2, 10).unwrap()));
    let both = Together::new(Some(Arc::clone(&kernel)), None).with_gathered(Some(Arc::clone(&gathered)));
    assert_eq!(
        [1, 2, 3].map(|nth| (both.programs_of(nth), both.is_gathered(nth))),
        [(None, false), (Some(0), true), (Some(1), true)]
    );
    let programs = Some(Arc::new(Memory::new(2, MIN_SIZE_LOG2, 10).unwrap()));
    let all = Together::new(Some(Arc::clone(&kernel)), programs).with_gathered(Some(Arc::clone(&gathered)));
    assert_eq!((all.processors(), all.programs_of(3), all.programs_of(5)), (6, Some(1), Some(1)));
    assert_eq!([3, 4, 5].map(|nth| all.is_gathered(nth)), [false, true, true]);
    let options = Options::directory(place.0.join("trace"));
    let recorder = Recorder::start(Arc::new(both), Description::default(), options).unwrap();
    let producer = Producer::new(gathered.buffer(1));
    for stamp in [100, 101] {
        let _ = producer.record(700, &[7], || Ticks::new(stamp));
        recorder.flush().unwrap();
        producer.miss(3);
    }
    let described = recorder.stop().unwrap();
    let account = &described.completeness[3];
    assert_eq!((account.programs_of, account.records, account.lost), (Some(1), 2, 6));
    let trace = Trace::open(place.0.join("trace")).unwrap();
    let mut merged = trace.merge(Filter::default().processors([1]).without_marks());
    let mut found = Vec::new();
    while let Some(item) = merged.next() {
        match item.unwrap() {
            Item::Record(record) => found.push((record.time.get(), record.serial)),
            Item::Lost(gap) => found.push((0, gap.events)),
        }
    }
    assert_eq!(found, [(100, 0), (0, 3), (101, 4), (0, 3)]);
}

/// Forks as if another thread were joining at that moment, and makes the child log.
const FORKS: &str = "\
#include <mete_recorder.h>
#include \"stopwatch.h\"
#include <sys/wait.h>
int main(void)
{
	int status;

	mete_recorder.state = -(int)getpid();
	alarm(20);
	if (fork() == 0) {
		alarm(20);
		mete_log_START(1, 2, 3);
		_exit(mete_recorder.state == METE_RECORDER_JOINED ? 0 : 1);
	}
	wait(&status);
	return status != 0;
}
";

#[test]
fn klog_8_program_that_is_forked_while_a_thread_joins_does_not_wait() {
    let place = TestDirectory::new("forks");
    fs::write(place.0.join("stopwatch.h"), generate::c(&stopwatch())).unwrap();
    let (source, program) = (place.0.join("forks.c"), place.0.join("forks"));
    fs::write(&source, FORKS).unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-Wall", "-Wextra", "-Werror", "-I"]).arg(&place.0).arg("-I").arg(include);
    match compiler.arg(&source).arg("-o").arg(&program).status() {
        Err(error) => return println!("SKIPPED: cc: {error}"),
        Ok(status) => assert!(status.success()),
    }
    let (memory, invitation) = invite(|_| true);
    let status = Command::new(&program).env(VARIABLE, invitation.hand_out().unwrap()).status().unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(drain(&memory).len(), 1);
}
