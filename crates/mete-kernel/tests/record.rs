//! Recording by schema: what happens in the kernel is in the buffers, and nothing stays behind.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{env, fs, thread};

use mete_kernel::record::{Areas, Benchmark, Cache, Recording, Settings, source};
use mete_kernel::{DomainTable, KernelError, Principal};
use mete_log::DomainId;
use mete_schema::generate::bpf;
use mete_schema::kernel::Running;
use mete_schema::shipped::by_name;
use mete_schema::{Schema, Source, check};
use mete_trace::{Account, Buffers, ClockSource, Description, Filter, Item, Options, Recorder, Trace, Value};
use rustix::time::ClockId;
use support::{Child, ping_pong, run, wait_until, with_tracing_file_system};
use tempfile::TempDir;

/// The size of the buffer of a processor with which no event is lost.
const AMPLE: u64 = 4 << 20;

/// After a change of a schema, or of what is generated, run this test with METE_BLESS set: it writes the
/// files.
#[test]
fn klog_8_shipped_schemata_are_embedded_as_they_are_generated() {
    let test = "klog_8_shipped_schemata_are_embedded_as_they_are_generated";
    let Some(_kernel) = support::kernel(test) else { return };
    if !is_kernel_of_embedded_programs() {
        return;
    }
    let kernel = Running::new().unwrap();
    with_tracing_file_system(test, || {
        for name in ["scheduler", "locking", "interrupt"] {
            let schema = Schema::read(&[by_name(name).unwrap().source()]).unwrap();
            let checked = check(&schema, Some(&kernel)).unwrap();
            let text = source(&bpf(&schema, &checked, &kernel).unwrap());
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("bpf/schemas/{name}.bpf.c"));
            if env::var_os("METE_BLESS").is_some() {
                fs::write(&path, &text).unwrap();
            }
            let is_same = fs::read_to_string(&path).unwrap() == text;
            assert!(is_same, "{name} is not what is generated for this kernel: METE_BLESS=1 makes it so");
        }
    });
}

/// Whether this is the version of Linux of the embedded programs. In others, points may have other arguments;
/// there, clang compiles the programs at run time.
fn is_kernel_of_embedded_programs() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let own = release.split('.').take(2).collect::<Vec<_>>().join(".");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf/schemas/linux-version.txt");
    if env::var_os("METE_BLESS").is_some() {
        fs::write(&path, format!("{own}\n")).unwrap();
    }
    let theirs = fs::read_to_string(&path).unwrap();
    let is_same = theirs.trim() == own;
    if !is_same {
        println!("SKIPPED: the embedded programs are those for Linux {}, and this is {own}", theirs.trim());
    }
    is_same
}

/// One test at a time: a process that another test forks would hold the links of this one for as long as it
/// lives, and so the programs would stay attached.
static ALONE: Mutex<()> = Mutex::new(());

/// A schema, and its loaded programs.
struct Loaded {
    place: TempDir,
    source: Source,
    schema: Schema,
    recording: Recording,
    /// Released when the links are gone.
    _alone: MutexGuard<'static, ()>,
}

/// Loads these events of a schema, or all if none is named, if programs can be loaded here.
fn load(test: &str, source: Source, events: &[&str], buffer_bytes: u64) -> Option<Loaded> {
    load_bound(test, source, events, buffer_bytes, None)
}

/// The same, with domains.
fn load_bound(
    test: &str,
    source: Source,
    events: &[&str],
    buffer_bytes: u64,
    domains: Option<Arc<DomainTable>>,
) -> Option<Loaded> {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    support::kernel(test)?;
    let kernel = Running::new().unwrap();
    let schema = Schema::read(std::slice::from_ref(&source)).unwrap();
    let checked = check(&schema, Some(&kernel)).unwrap();
    let text = bpf(&schema, &checked, &kernel).unwrap();
    let is_wanted =
        |event: &usize| events.is_empty() || events.contains(&schema.events[*event].name.as_str());
    let events = (0..schema.events.len()).filter(is_wanted).collect();
    let place = tempfile::tempdir().unwrap();
    let settings = Settings { events, buffer_bytes, low_water_percent: 10, domains };
    let cache = Cache::at(place.path().join("cache"));
    match support::before_others(|| Recording::load(&schema, &checked, &text, &settings, &cache)) {
        Ok(recording) => Some(Loaded { place, source, schema, recording, _alone: alone }),
        Err(error @ (KernelError::NoCompiler { .. } | KernelError::CounterAbsent { .. })) => {
            println!("SKIPPED: {test}: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

impl Loaded {
    fn trace(&self) -> PathBuf {
        self.place.path().join("trace")
    }

    fn recorder(&self) -> Recorder<Areas> {
        let description = Description::of_schema(&self.schema, std::slice::from_ref(&self.source));
        let options = Options { clock: ClockSource::Monotonic, ..Options::directory(self.trace()) };
        Recorder::start(self.recording.buffers(), description, options).unwrap()
    }

    /// Records the trace of this work.
    fn record(&mut self, work: impl FnOnce()) -> Recorded {
        let (recorded, missed) = self.record_what_is_taken(work);
        assert_eq!(missed, 0);
        recorded
    }

    /// The same, where the kernel may leave runs of programs out. How many these were.
    fn record_what_is_taken(&mut self, work: impl FnOnce()) -> (Recorded, u64) {
        let recorder = self.recorder();
        self.recording.attach().unwrap();
        work();
        self.recording.detach();
        let description = recorder.stop().unwrap();
        let missed = self.recording.missed_runs().unwrap();
        (Recorded::read(&self.trace(), description.completeness), missed)
    }
}

fn number(value: Option<Value<'_>>) -> i64 {
    match value.unwrap() {
        Value::Unsigned(number) | Value::Address(number) => number as i64,
        Value::Signed(number) => number,
        Value::Bool(truth) => truth.into(),
        _ => 0,
    }
}

/// An event, with its fields by name.
struct Event {
    name: String,
    processor: u32,
    time: u64,
    fields: BTreeMap<String, i64>,
}

/// A trace in memory, and what is missing in it.
struct Recorded {
    events: Vec<Event>,
    lost: u64,
    accounts: Vec<Account>,
}

impl Recorded {
    fn read(path: &Path, accounts: Vec<Account>) -> Recorded {
        let trace = Trace::open(path).unwrap();
        let layouts = &trace.description().description.events;
        let mut recorded = Recorded { events: Vec::new(), lost: 0, accounts };
        let mut merged = trace.merge(Filter::default().without_marks());
        while let Some(item) = merged.next() {
            match item.unwrap() {
                Item::Lost(gap) => recorded.lost += gap.events,
                Item::Record(record) => {
                    let layout = layouts.iter().find(|layout| layout.id == record.event).unwrap();
                    let fields = layout.values(record.bytes);
                    let fields = fields.map(|(name, value)| (name.to_owned(), number(value))).collect();
                    let (name, processor, time) = (layout.name.clone(), record.processor, record.time.get());
                    recorded.events.push(Event { name, processor, time, fields });
                }
            }
        }
        recorded
    }

    fn of<'a>(&'a self, name: &'a str, pid: i32) -> impl Iterator<Item = &'a Event> {
        self.events.iter().filter(move |event| event.name == name && event.fields["pid"] == i64::from(pid))
    }

    fn count(&self, name: &str, pid: i32) -> u64 {
        self.of(name, pid).count() as u64
    }

    /// How often a process left a processor that another one had got last: kernels pass the tracepoint at
    /// nearly every switch, but not at every one.
    fn arrivals_unseen(&self, pid: i32) -> u64 {
        let mut last = BTreeMap::new();
        let mut unseen = 0;
        for event in self.events.iter().filter(|event| ["SCHEDIN", "SCHEDOUT"].contains(&event.name.as_str()))
        {
            let before = last.insert(event.processor, (event.name.as_str(), event.fields["pid"]));
            let is_departure = event.name == "SCHEDOUT" && event.fields["pid"] == i64::from(pid);
            unseen += u64::from(is_departure && before != Some(("SCHEDIN", pid.into())));
        }
        unseen
    }
}

/// How often a process has left the processor so far: because it waited, and because it was made to.
fn switches(pid: i32) -> [u64; 2] {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let count =
        |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok()).unwrap();
    [count("voluntary_ctxt_switches:"), count("nonvoluntary_ctxt_switches:")]
}

/// The kernel's own account has how often each of them has left the processor.
#[test]
fn klog_8_every_switch_of_a_ping_pong_is_in_the_trace_and_none_is_lost() {
    let test = "klog_8_every_switch_of_a_ping_pong_is_in_the_trace_and_none_is_lost";
    let Some(mut loaded) = load(test, by_name("scheduler").unwrap().source(), &[], AMPLE) else { return };
    let mut children = ping_pong(2000, [0, 0]);
    children.iter().for_each(Child::wait_until_blocked);
    let before = [0, 1].map(|nth: usize| switches(children[nth].pid));
    let recorded = loaded.record(|| {
        run(&mut children);
        children.iter().for_each(Child::wait_until_blocked);
    });
    assert_eq!(recorded.lost, 0);
    assert!(recorded.accounts.iter().all(Account::is_complete), "{:?}", recorded.accounts);
    for (child, before) in children.iter().zip(before) {
        let after = switches(child.pid);
        let [waited, forced] = [0, 1].map(|nth| after[nth] - before[nth]);
        assert!(waited >= 100, "it did not play: {waited}");
        assert_eq!(recorded.count("REMOVE_FROM_RUNQ", child.pid), waited);
        assert_eq!(recorded.count("SCHEDOUT", child.pid), waited + forced);
        // At the beginning and at the end, it is not on the processor.
        let unseen = recorded.arrivals_unseen(child.pid);
        assert_eq!(recorded.count("SCHEDIN", child.pid) + unseen, waited + forced);
        assert!(unseen * 50 <= waited + forced, "{unseen} arrivals are missing");
    }
}

/// The time that is reported at the end of a process includes the stint in which it ends, which is the only
/// one of a short process.
#[test]
fn klog_8_the_end_of_a_process_has_all_the_processor_time_that_it_has_used() {
    let test = "klog_8_the_end_of_a_process_has_all_the_processor_time_that_it_has_used";
    let Some(mut loaded) = load(test, by_name("scheduler").unwrap().source(), &[], AMPLE) else { return };
    let work = |gate: &mut support::Gate| gate.tell(support::clock_ns(ClockId::ProcessCPUTime));
    let mut children: Vec<_> = (0..100).map(|_| Child::start(work)).collect();
    children.iter().for_each(Child::wait_until_blocked);
    let mut used = Vec::new();
    let recorded = loaded.record(|| {
        for child in &mut children {
            child.release();
            let told_ns = child.report();
            used.push((child.pid, told_ns, child.wait_for_usage()));
        }
        // The last one may not have left its processor yet.
        thread::sleep(Duration::from_millis(100));
    });
    assert_eq!(recorded.lost, 0);
    for (pid, told_ns, usage_ns) in used {
        assert_eq!(recorded.count("EXIT", pid), 1, "{pid}");
        let runtime = |name| recorded.of(name, pid).last().unwrap().fields["runtime_ns"];
        let (end_ns, last_ns) = (runtime("EXIT"), runtime("SCHEDOUT"));
        assert_eq!(end_ns, last_ns, "it ends with its last stint");
        // The kernel's account for its parent cuts user and system time to whole microseconds.
        assert!(
            end_ns >= told_ns as i64 && end_ns + 2_000 >= usage_ns as i64,
            "{end_ns} {told_ns} {usage_ns}"
        );
    }
}

/// Waits in all ways that there are: for a time, which can be frozen; for a child by vfork, which only a
/// deadly signal ends; stopped. The first two are long enough for the process to block, also on a slow machine
/// under load: a sleep that is over before its process has left the processor is no wait.
fn wait_in_all_ways(gate: &mut support::Gate) {
    thread::sleep(Duration::from_millis(200));
    let flags = libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: a fork whose parent waits until it has ended; the child makes two system calls.
    unsafe {
        let child = libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0);
        if child == 0 {
            libc::usleep(200_000);
            libc::_exit(0);
        }
        libc::waitpid(child as i32, std::ptr::null_mut(), 0);
    }
    gate.tell(0);
    // SAFETY: no memory is involved; the test has it go on.
    unsafe { libc::raise(libc::SIGSTOP) };
}

#[test]
fn klog_8_states_are_the_bits_that_the_kernel_reports() {
    let test = "klog_8_states_are_the_bits_that_the_kernel_reports";
    let Some(mut loaded) = load(test, by_name("scheduler").unwrap().source(), &[], AMPLE) else { return };
    let mut child = Child::start(wait_in_all_ways);
    child.wait_until_blocked();
    let recorded = loaded.record(|| {
        child.release();
        child.report();
        wait_until("it stops", || child.state() == "T");
        // SAFETY: a child of this process that has not been waited for.
        unsafe { libc::kill(child.pid, libc::SIGCONT) };
        child.wait();
        thread::sleep(Duration::from_millis(100));
    });
    let waits: Vec<_> =
        recorded.of("REMOVE_FROM_RUNQ", child.pid).map(|event| event.fields["state"]).collect();
    let ended = waits.last().is_some_and(|state| [0x10, 0x20].contains(state));
    assert!(waits.contains(&1) && waits.contains(&2) && waits.contains(&4) && ended, "{waits:?}");
    for event in recorded.events.iter().filter(|event| event.fields.contains_key("state")) {
        let state = event.fields["state"];
        let is_departure = event.name == "REMOVE_FROM_RUNQ";
        assert!(state < 0x100 && (state as u32).count_ones() <= 1, "{}: {state:#x}", event.name);
        assert!(!is_departure || state != 0, "a process that blocks has a state to wait in");
        assert!(event.fields.get("is_preempted") != Some(&1) || state == 0, "it could go on: {state:#x}");
    }
}

/// At first, nothing empties the buffers, so that most events find no room.
#[test]
fn klog_6_events_that_find_no_room_are_counted_to_the_last_one() {
    let test = "klog_6_events_that_find_no_room_are_counted_to_the_last_one";
    let Some(mut loaded) = load(test, by_name("scheduler").unwrap().source(), &[], 1 << 16) else { return };
    let mut children = ping_pong(2000, [0, 0]);
    children.iter().for_each(Child::wait_until_blocked);
    loaded.recording.attach().unwrap();
    run(&mut children);
    loaded.recording.detach();
    let buffers = loaded.recording.buffers();
    let occurred: Vec<_> =
        (0..buffers.processors()).map(|nth| u64::from(buffers.buffer(nth).reserved().serial)).collect();
    let description = loaded.recorder().stop().unwrap();
    let recorded = Recorded::read(&loaded.trace(), description.completeness);
    assert!(recorded.lost > 1000, "{}", recorded.lost);
    for (account, occurred) in recorded.accounts.iter().zip(occurred) {
        assert!(account.end_serial >= occurred, "{account:?}");
        assert_eq!(account.records + account.lost, account.end_serial);
    }
    let (checked, errors) = Trace::open(loaded.trace()).unwrap().check();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(checked, recorded.accounts);
    assert_eq!(recorded.lost, recorded.accounts.iter().map(|account| account.lost).sum::<u64>());
}

/// Does this work while timers fire thousands of times a second, on a slow machine hundreds. Hands it the
/// number of times that they have fired.
fn with_timers<T>(work: impl FnOnce(&AtomicU32) -> T) -> T {
    let (_until_the_end, end) = channel::<()>();
    let fired = Arc::new(AtomicU32::new(0));
    let firing = Arc::clone(&fired);
    thread::spawn(move || {
        while end.recv_timeout(Duration::from_micros(50)) == Err(RecvTimeoutError::Timeout) {
            firing.fetch_add(1, Ordering::Relaxed);
        }
    });
    work(&fired)
}

/// Programs are attached and detached one by one, which takes long. If they recorded all that time, there
/// would be beginnings without ends at first, and ends without beginnings at last.
#[test]
fn klog_6_all_kinds_of_events_are_recorded_from_one_moment_on_and_up_to_one() {
    let test = "klog_6_all_kinds_of_events_are_recorded_from_one_moment_on_and_up_to_one";
    let Some(mut loaded) = load(test, by_name("interrupt").unwrap().source(), &[], AMPLE) else { return };
    let recorded = with_timers(|fired| {
        loaded.record(|| {
            let before = fired.load(Ordering::Relaxed);
            wait_until("timers fire", || fired.load(Ordering::Relaxed) - before >= 200);
        })
    });
    assert_eq!(recorded.lost, 0);
    let (mut last, mut pairs) = (BTreeMap::new(), 0);
    for event in &recorded.events {
        let Some((kind, edge @ ("ENTRY" | "EXIT"))) = event.name.rsplit_once('_') else { continue };
        let before = last.insert((event.processor, kind), edge);
        assert_ne!(before, Some(edge), "two of {} on processor {}", event.name, event.processor);
        pairs += u32::from(before == Some("ENTRY"));
    }
    assert!(pairs >= 100, "{pairs}");
}

#[test]
fn klog_6_nothing_is_recorded_before_attaching_and_after_detaching() {
    let test = "klog_6_nothing_is_recorded_before_attaching_and_after_detaching";
    let Some(mut loaded) = load(test, by_name("scheduler").unwrap().source(), &[], AMPLE) else { return };
    let buffers = loaded.recording.buffers();
    let recorded = || -> u64 {
        (0..buffers.processors()).map(|nth| u64::from(buffers.buffer(nth).reserved().serial)).sum()
    };
    let work = || with_timers(|_| thread::sleep(Duration::from_millis(20)));
    work();
    assert_eq!(recorded(), 0);
    for _ in 0..2 {
        let before = recorded();
        loaded.recording.attach().unwrap();
        work();
        loaded.recording.detach();
        let after = recorded();
        assert!(after > before);
        work();
        assert_eq!(recorded(), after);
    }
}

#[test]
fn klog_2_events_that_are_off_are_not_recorded() {
    let test = "klog_2_events_that_are_off_are_not_recorded";
    let Some(mut loaded) = load(test, by_name("scheduler").unwrap().source(), &["SCHEDIN"], AMPLE) else {
        return;
    };
    let mut children = ping_pong(200, [0, 0]);
    children.iter().for_each(Child::wait_until_blocked);
    let recorded = loaded.record(|| {
        run(&mut children);
    });
    assert!(recorded.count("SCHEDIN", children[0].pid) >= 100);
    assert!(recorded.events.iter().all(|event| event.name == "SCHEDIN"));
}

/// Each word of switches has 64 events.
#[test]
fn klog_2_events_of_a_schema_with_more_than_64_are_switched_each_by_itself() {
    let test = "klog_2_events_of_a_schema_with_more_than_64_are_switched_each_by_itself";
    let events: String = (0..66).map(|nth| format!("event E{nth} {{ int pid }}\n")).collect();
    let text = format!(
        "{events}at tp_btf:sched_switch {{ log E0(next.pid) log E63(next.pid) log E64(next.pid) log E65(next.pid) }}"
    );
    let source = Source::new("test", text);
    let Some(mut loaded) = load(test, source, &["E0", "E63", "E64", "E65"], AMPLE) else { return };
    let recorder = loaded.recorder();
    let stretches: [&[usize]; 3] = [&[0, 64], &[63, 65], &[64]];
    let times = stretches.map(|events| {
        loaded.recording.switch(events).unwrap();
        // A program that was running then had read the word before.
        thread::sleep(Duration::from_millis(10));
        let begin = support::clock_ns(ClockId::Monotonic);
        with_timers(|_| thread::sleep(Duration::from_millis(50)));
        begin..support::clock_ns(ClockId::Monotonic)
    });
    loaded.recording.detach();
    let recorded = Recorded::read(&loaded.trace(), recorder.stop().unwrap().completeness);
    for (events, time) in stretches.iter().zip(times) {
        let within = recorded.events.iter().filter(|event| time.contains(&event.time));
        let names: BTreeSet<_> = within.map(|event| event.name.clone()).collect();
        assert_eq!(names, events.iter().map(|nth| format!("E{nth}")).collect());
    }
}

/// A user's own schema, which is compiled here and kept. Its counter exists on every machine.
#[test]
fn klog_8_users_schema_with_a_counter_is_compiled_kept_and_recorded() {
    let test = "klog_8_users_schema_with_a_counter_is_compiled_kept_and_recorded";
    let text = "arch any { counter0 context_switches }\nevent SCHEDIN { int pid  ulonglong switches }\n\
        at tp_btf:sched_switch log SCHEDIN(next.pid, counter0)";
    let Some(mut loaded) = load(test, Source::new("test", text), &[], AMPLE) else { return };
    let mut children = ping_pong(200, [0, 0]);
    children.iter().for_each(Child::wait_until_blocked);
    let recorded = loaded.record(|| {
        run(&mut children);
    });
    let here = recorded.of("SCHEDIN", children[0].pid).filter(|event| event.processor == 0);
    let counts: Vec<_> = here.map(|event| event.fields["switches"]).collect();
    assert!(counts.len() >= 100);
    assert!(counts.windows(2).all(|pair| pair[0] < pair[1]), "the processor's own counter grows: {counts:?}");
    let kept = fs::read_dir(loaded.place.path().join("cache")).unwrap().count();
    assert_eq!(kept, 1, "the object alone");
}

/// The kernel component binds processes, and programs of other objects read its table.
#[test]
fn klog_8_domain_of_the_running_thread_is_recorded_and_chosen_by() {
    let test = "klog_8_domain_of_the_running_thread_is_recorded_and_chosen_by";
    let Some(mut kernel) = support::kernel(test) else { return };
    let text = "event OUT { int pid  u16 domain }\nevent FIVE { int pid }
        at tp_btf:sched_switch {
            if domain >= 5 log OUT(prev.pid, domain)
            if domain == 5 log FIVE(prev.pid)
        }";
    let table = Arc::new(kernel.domain_table().unwrap());
    let loaded = load_bound(test, Source::new("test", text), &[], AMPLE, Some(table));
    let Some(mut loaded) = loaded else { return };
    let mut children = ping_pong(200, [0, 0]);
    children.iter().for_each(Child::wait_until_blocked);
    let [five, six] = [0, 1].map(|nth: usize| children[nth].pid);
    kernel.bind(&Principal::Process(five), DomainId::new(5)).unwrap();
    kernel.bind(&Principal::Process(six), DomainId::new(6)).unwrap();
    let recorded = loaded.record(|| {
        run(&mut children);
        children.iter().for_each(Child::wait_until_blocked);
    });
    let domains = |pid| recorded.of("OUT", pid).map(|event| event.fields["domain"]).collect::<Vec<_>>();
    assert!(domains(five).len() >= 100 && domains(five).iter().all(|domain| *domain == 5));
    assert!(domains(six).len() >= 100 && domains(six).iter().all(|domain| *domain == 6));
    assert_eq!(recorded.count("FIVE", five), recorded.count("OUT", five));
    assert!(recorded.events.iter().all(|event| [five.into(), six.into()].contains(&event.fields["pid"])));
}

/// How often each flush thread of this process has gone to sleep.
fn sleeps() -> Vec<u64> {
    let threads = fs::read_dir("/proc/self/task").unwrap().filter_map(Result::ok);
    let texts = threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok());
    let flush = texts.filter(|text| text.starts_with("Name:\tmete-flush"));
    let count = |text: String| {
        text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")?.trim().parse().ok())
    };
    flush.filter_map(count).collect()
}

/// At a real-time priority, a thread that never sleeps would take its processor from all others.
#[test]
fn klog_5_flush_threads_sleep_between_their_looks() {
    let test = "klog_5_flush_threads_sleep_between_their_looks";
    let Some(loaded) = load(test, by_name("scheduler").unwrap().source(), &[], AMPLE) else { return };
    let recorder = loaded.recorder();
    wait_until("each has slept ten times", || {
        let sleeps = sleeps();
        sleeps.len() == loaded.recording.buffers().processors() && sleeps.iter().all(|sleeps| *sleeps >= 10)
    });
    recorder.stop().unwrap();
}

/// A function that points are put on, and in it a static probe as `<sys/sdt.h>` makes them.
#[cfg(target_arch = "x86_64")]
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn mete_record_test_target(first: i64, second: u32) -> i64 {
    // SAFETY: an instruction that does nothing, and a note in another section.
    unsafe {
        std::arch::asm!(
            "990: nop",
            ".pushsection .note.stapsdt, \"?\", \"note\"",
            ".balign 4",
            ".4byte 992f - 991f, 994f - 993f, 3",
            "991: .asciz \"stapsdt\"",
            "992: .balign 4",
            "993: .8byte 990b, 0, 0",
            ".asciz \"mete\"",
            ".asciz \"target\"",
            ".asciz \"-8@%rdi 4@%esi\"",
            "994: .balign 4",
            ".popsection",
            in("rdi") first,
            in("esi") second,
        );
    }
    std::hint::black_box(first + i64::from(second))
}

/// The events, with their numbers, that a schema logs by points in this program while the target is called
/// twice.
#[cfg(target_arch = "x86_64")]
fn recorded_of_target(test: &str, text: &str) -> Option<Vec<(String, Vec<i64>)>> {
    let program = env::current_exe().unwrap();
    let text = text.replace("PROGRAM", &format!("\"{}\"", program.display()));
    let mut loaded = load(test, Source::new("test", text), &[], AMPLE)?;
    let recorded = loaded.record(|| {
        std::hint::black_box(mete_record_test_target(-5, 2));
        std::hint::black_box(mete_record_test_target(-5, u32::MAX));
    });
    assert_eq!(recorded.lost, 0);
    let own = |event: &Event| (event.name.clone(), event.fields.values().copied().collect());
    Some(recorded.events.iter().map(own).collect())
}

#[cfg(target_arch = "x86_64")]
#[test]
fn klog_8_functions_of_programs_log_their_arguments_and_results() {
    let test = "klog_8_functions_of_programs_log_their_arguments_and_results";
    let text = "event CALL { s64 a  u32 b  int c }\nevent RETURN { s64 a }\nevent INSIDE { s64 a }
        at uprobe:PROGRAM:mete_record_test_target when tgid == TGID log CALL(s64(arg0), u32(arg1), tgid)
        at uretprobe:PROGRAM:mete_record_test_target log RETURN(s64(retval))
        at uprobe:PROGRAM:\"mete_record_test_target+0x0\" when u32(arg1) == 2 log INSIDE(s64(arg0))";
    let own = i64::from(std::process::id());
    let Some(mut events) = recorded_of_target(test, &text.replace("TGID", &own.to_string())) else { return };
    events.sort();
    let expected = [
        ("CALL", vec![-5, 2, own]),
        ("CALL", vec![-5, u32::MAX.into(), own]),
        ("INSIDE", vec![-5]),
        ("RETURN", vec![-3]),
        ("RETURN", vec![i64::from(u32::MAX) - 5]),
    ];
    assert_eq!(events, expected.map(|(name, fields)| (name.to_owned(), fields)));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn klog_8_static_probes_of_programs_log_their_values_with_size_and_sign() {
    let test = "klog_8_static_probes_of_programs_log_their_values_with_size_and_sign";
    let text = "event A { s64 a  u64 b }
        at usdt:PROGRAM:mete:target when arg1 != 2 log A(s64(arg0), arg1)
        at usdt:PROGRAM:mete:target when arg1 == 2 log A(0, arg1)";
    let Some(events) = recorded_of_target(test, text) else { return };
    let fields: Vec<_> = events.into_iter().map(|(_, fields)| fields).collect();
    assert_eq!(fields, [vec![0, 2], vec![-5, u32::MAX.into()]]);
}

/// KLogger §4.4: the code that logs an event runs in place.
#[test]
fn klog_4_cost_of_logging_an_event_is_measured_and_leaves_nothing_in_the_trace() {
    let test = "klog_4_cost_of_logging_an_event_is_measured_and_leaves_nothing_in_the_trace";
    let Some(mut loaded) = load(test, by_name("scheduler").unwrap().source(), &["EXIT"], AMPLE) else {
        return;
    };
    let schema = loaded.schema.clone();
    let kernel = Running::new().unwrap();
    let text = bpf(&schema, &check(&schema, Some(&kernel)).unwrap(), &kernel).unwrap();
    let cache = Cache::at(loaded.place.path().join("cache"));
    let recorded = loaded.record(|| {
        for event in 0..schema.events.len() {
            let benchmark = Benchmark::load(&schema, &text, event, &cache).unwrap();
            // More records than a buffer holds, and a single one.
            for iterations in [1, 100_000] {
                assert!(benchmark.run(iterations).unwrap() > 0, "{}", schema.events[event].name);
            }
        }
    });
    assert!(recorded.events.iter().all(|event| event.name == "EXIT"));
}

/// Whether this machine lacks a capability that such points need; prints it if so.
fn is_missing(test: &str, capability: &str) -> bool {
    let all = mete_kernel::capabilities();
    let finding = &all.iter().find(|it| it.name == capability).unwrap().finding;
    finding.as_ref().inspect_err(|why| println!("SKIPPED: {test}: {capability}: {why}")).is_err()
}

/// Sleeps for a moment. The kernel's `do_nanosleep` gets 0 for "until a time", 1 for "for a time".
fn sleep_a_moment(is_for_a_time: bool) {
    let flags = if is_for_a_time { 0 } else { libc::TIMER_ABSTIME };
    let time = libc::timespec { tv_sec: 0, tv_nsec: 1000 };
    // SAFETY: the call reads one time, and writes none.
    let error =
        unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, flags, &raw const time, std::ptr::null_mut()) };
    assert_eq!(error, 0);
}

/// The fields of the events that a point in the kernel logs while the test's thread sleeps for a time, and
/// until a time.
fn recorded_of_sleeps(test: &str, kind: &str, capability: &str) -> Option<Vec<Vec<i64>>> {
    if is_missing(test, capability) {
        return None;
    }
    let own = rustix::thread::gettid().as_raw_nonzero();
    let value = if kind == "fexit" { "retval + int(mode)" } else { "int(mode)" };
    let text =
        format!("event SLEEP {{ int mode }}\nat {kind}:do_nanosleep when pid == {own} log SLEEP({value})");
    // The recorder's threads sleep, too. Where one of them interrupts another thread inside the program, the kernel leaves
    // its run out and counts it: then all is done again.
    for _ in 0..5 {
        let mut loaded = load(test, Source::new("test", text.clone()), &[], AMPLE)?;
        let work = || [true, false].into_iter().for_each(sleep_a_moment);
        let (recorded, missed) = loaded.record_what_is_taken(work);
        assert_eq!(recorded.lost, 0);
        if missed == 0 {
            let fields = |event: &Event| event.fields.values().copied().collect();
            return Some(recorded.events.iter().map(fields).collect());
        }
    }
    panic!("in each of five tries the kernel left a run out");
}

#[test]
fn klog_8_functions_of_the_kernel_log_their_arguments_and_results() {
    let test = "klog_8_functions_of_the_kernel_log_their_arguments_and_results";
    for (kind, capability) in [("fentry", "fentry"), ("fexit", "fentry"), ("kprobe", "kprobes")] {
        let Some(fields) = recorded_of_sleeps(test, kind, capability) else { continue };
        assert_eq!(fields, [[1], [0]], "{kind}");
    }
}

/// The mutex that the kernel takes before it interrupts all processors: a variable of its own.
const STATIC_LOCK: &str = "membarrier_ipi_mutex";

/// Whether the kernel says where that is; prints it if not.
fn names_of_locks_are_there(test: &str) -> bool {
    let symbols = fs::read_to_string("/proc/kallsyms").unwrap();
    let is_there = symbols.lines().any(|line| line.split(' ').nth(2) == Some(STATIC_LOCK));
    if !is_there {
        println!(
            "SKIPPED: {test}: /proc/kallsyms has no {STATIC_LOCK} (CONFIG_KALLSYMS_ALL is off, or Linux is older than 6.9)"
        );
    }
    is_there
}

/// Has two threads of this process, each on a processor of its own, take that lock this number of times.
fn contend_for_static_lock(times: u32) {
    let membarrier = |command: u32| {
        // SAFETY: no memory of this process is read or written.
        assert_eq!(unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }, 0);
    };
    const REGISTER: u32 = 1 << 4;
    const PRIVATE_EXPEDITED: u32 = 1 << 3;
    membarrier(REGISTER);
    let arrived = AtomicU32::new(0);
    let work = &|processor| {
        support::pin(processor);
        arrived.fetch_add(1, Ordering::SeqCst);
        // It runs on its processor: only then does the call of the other one interrupt it.
        while arrived.load(Ordering::SeqCst) < 2 {
            std::hint::spin_loop();
        }
        (0..times).for_each(|_| membarrier(PRIVATE_EXPEDITED));
    };
    thread::scope(|scope| {
        for processor in [0, 1] {
            scope.spawn(move || work(processor));
        }
    });
}

/// KLogger §8: KLogger logs the name of a lock where it first meets it. Here, the name comes from the
/// kernel's symbols.
#[test]
fn klog_8_contended_locks_that_are_variables_of_the_kernel_have_their_names_in_the_trace() {
    let test = "klog_8_contended_locks_that_are_variables_of_the_kernel_have_their_names_in_the_trace";
    if !names_of_locks_are_there(test) {
        return;
    }
    with_tracing_file_system(test, || {
        let events = ["SPIN", "READ", "WRITE", "ACQUIRED"];
        let loaded = load(test, by_name("locking").unwrap().source(), &events, AMPLE);
        let Some(mut loaded) = loaded else { return };
        let recorded = loaded.record(|| contend_for_static_lock(2000));
        let trace = Trace::open(loaded.trace()).unwrap();
        let named = &trace.description().machine.symbols;
        let lock = named.iter().find(|symbol| symbol.name == STATIC_LOCK).unwrap();
        let of_lock = |name: &str| {
            let events = recorded.events.iter().filter(|event| event.name == name);
            events.filter(|event| event.fields["lock"] == lock.address as i64).count()
        };
        let [waits, ends] = [of_lock("SPIN") + of_lock("WRITE"), of_lock("ACQUIRED")];
        assert!(waits > 0 && ends > 0, "{waits} waits, {ends} ends");
    });
}

/// Whether the modules are there that a root file system by 9p needs, one after the other; prints which are
/// missing.
fn modules_are_there(test: &str) -> bool {
    let own = |module: &&str| Path::new("/sys/kernel/btf").join(module).exists();
    let missing: Vec<_> = ["netfs", "9pnet", "overlay"].into_iter().filter(|module| !own(module)).collect();
    if !missing.is_empty() {
        println!(
            "SKIPPED: {test}: no module {} with type information; scripts/vm/test.sh --modules has a kernel with them",
            missing.join(" and ")
        );
    }
    missing.is_empty()
}

/// A function of one module with a structure of another one, a tracepoint, and a function without types: to
/// open a file passes all of them.
#[test]
fn klog_8_functions_tracepoints_and_structures_of_modules_are_recorded() {
    let test = "klog_8_functions_tracepoints_and_structures_of_modules_are_recorded";
    if !modules_are_there(test) {
        return;
    }
    let own = rustix::thread::gettid().as_raw_nonzero();
    let text = format!(
        "event OPEN {{ u32 fid  int mode }}\nevent REQUEST {{ u32 id  int origin }}\nevent ABOVE {{ int pid }}
        at fentry:p9_client_open when pid == {own} log OPEN(fid.fid, mode)
        at tp_btf:netfs_rreq when pid == {own} log REQUEST(rreq.debug_id, int(rreq.origin))
        at kprobe:ovl_open when pid == {own} log ABOVE(pid)"
    );
    let Some(mut loaded) = load(test, Source::new("test", text), &[], AMPLE) else { return };
    // Nothing else reads this file, so it is not in memory yet, and comes from the file system below.
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../LICENSE-GPL-2.0");
    let recorded = loaded.record(|| drop(fs::read(&file).unwrap()));
    assert_eq!(recorded.lost, 0);
    let numbers = |name: &str, field: &str| -> Vec<i64> {
        let events = recorded.events.iter().filter(|event| event.name == name);
        events.map(|event| event.fields[field]).collect()
    };
    assert_eq!(numbers("ABOVE", "pid"), [i64::from(own.get())]);
    assert_eq!(numbers("OPEN", "fid").len(), 1, "the file below");
    let requests = numbers("REQUEST", "id");
    assert!(requests.len() >= 2 && requests.iter().all(|id| *id > 0), "{requests:?}");
}
