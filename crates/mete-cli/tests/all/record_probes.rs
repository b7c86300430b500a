//! `mete record` at the probe points of programs. The programs are this one, started again.

use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};

use crate::common::{self, Running, events, fuse_is_there, kernel_is_there, mete, wait_until};
use mete_probe::{DomainId, NO_DOMAIN, event, probe, sample};
use mete_trace::{FieldLayout, Filter, Item, Trace, Value};
use rustix::process::Signal;

event! {
    static NUMBER: access "number";
    static LEVEL: sample "water level";
}

const ROLE: &str = "METE_TEST_ROLE";

/// The programs that are recorded: a role, or orders on standard input, each of which is answered by a line.
#[test]
#[ignore = "the program that the tests below record"]
fn program() {
    match std::env::var(ROLE).as_deref() {
        Ok("orders") => std::io::stdin().lines().for_each(|line| obey(&line.unwrap())),
        Ok(rows) => {
            wait_until("the probe is on", || NUMBER.is_enabled());
            log(0, rows.parse().unwrap());
        }
        Err(_) => println!("SKIPPED: no test has started this"),
    }
}

fn obey(line: &str) {
    match line.split(' ').collect::<Vec<_>>()[..] {
        ["on"] => wait_until("the probe is on", || NUMBER.is_enabled()),
        ["both", "on"] => wait_until("the probes are on", || NUMBER.is_enabled() && LEVEL.is_enabled()),
        ["off"] => wait_until("the probe is off", || !NUMBER.is_enabled() && !LEVEL.is_enabled()),
        ["log", from, to] => log(from.parse().unwrap(), to.parse().unwrap()),
        ["serve", client, value] => {
            let client = mete_probe::domain_of_process(client.parse().unwrap());
            probe!(NUMBER, client.unwrap_or(NO_DOMAIN), value.parse().unwrap());
        }
        ["claim", domain, correspondent, value] => {
            mete_probe::set_domain(DomainId::new(domain.parse().unwrap()));
            probe!(NUMBER, DomainId::new(correspondent.parse().unwrap()), value.parse().unwrap());
        }
        ["become", user] => {
            // SAFETY: no memory is passed; glibc changes the user of all threads.
            assert_eq!(unsafe { libc::setuid(user.parse().unwrap()) }, 0);
        }
        ["level", value] => sample!(LEVEL, value.parse().unwrap()),
        ["spoil"] => spoil(),
        _ => panic!("what is {line:?}?"),
    }
    println!("\n>{line}");
}

fn log(from: u64, to: u64) {
    (from..to).for_each(|number| probe!(NUMBER, correspondent(number), number));
}

fn correspondent(number: u64) -> DomainId {
    if number.is_multiple_of(7) { NO_DOMAIN } else { DomainId::new((number % 100) as u16) }
}

/// Writes noise over all memory that it shares with the recorder.
fn spoil() {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let memory = fs::OpenOptions::new().write(true).open("/proc/self/mem").unwrap();
    let mut random = 88_172_645_463_325_252_u64;
    let mut noise = vec![0; 4096];
    for line in maps.lines().filter(|line| line.contains("mete-log") && line.contains("rw-s")) {
        let (from, to) = line.split(' ').next().unwrap().split_once('-').unwrap();
        let [from, to] = [from, to].map(|address| u64::from_str_radix(address, 16).unwrap());
        for page in (from..to).step_by(4096) {
            for eight in noise.as_chunks_mut::<8>().0 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                *eight = random.to_le_bytes();
            }
            memory.write_all_at(&noise, page).unwrap();
        }
    }
}

/// A directory for programs to be found in, and for traces.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn schema(&self, text: &str) -> String {
        let path = self.path("schema.mete");
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn program(&self) -> Program {
        self.program_by(self.own("orders"))
    }

    /// A program of another user, to be found where users' programs are found.
    fn program_of(&self, user: u32) -> Program {
        let copy = self.path("program");
        fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
        std::os::unix::fs::chown(self.0.path(), Some(user), Some(user)).unwrap();
        let mut command = self.own_from(&copy, "orders");
        command.env_remove("METE_RUNTIME_DIR").env_remove("XDG_RUNTIME_DIR");
        command.uid(user).gid(user).current_dir("/");
        self.program_by(command)
    }

    fn program_by(&self, mut command: Command) -> Program {
        let mut running = Running::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let lines = running.lines();
        Program { running, lines }
    }

    /// This program, in a role.
    fn own(&self, role: &str) -> Command {
        self.own_from(&std::env::current_exe().unwrap(), role)
    }

    fn own_from(&self, program: &Path, role: &str) -> Command {
        let mut command = Command::new(program);
        command.args(["--ignored", "--exact", "record_probes::program", "--nocapture"]);
        command.env(ROLE, role).env("METE_RUNTIME_DIR", self.0.path());
        command
    }

    fn recorder(&self, schema: &str, trace: &str, more: &[&str]) -> Recorder {
        self.recorder_by(schema, trace, more, |command| command.env("METE_RUNTIME_DIR", self.0.path()))
    }

    /// A recorder that looks for programs wherever it may.
    fn recorder_of_all(&self, schema: &str, trace: &str, more: &[&str]) -> Recorder {
        self.recorder_by(schema, trace, more, |command| command.env_remove("METE_RUNTIME_DIR"))
    }

    fn recorder_by(
        &self,
        schema: &str,
        trace: &str,
        more: &[&str],
        place: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Recorder {
        let output = self.path(trace);
        let mut command = common::program(&["record", "--schema", schema, "-o", output.to_str().unwrap()]);
        place(&mut command).args(more).stdin(Stdio::null());
        command.env("XDG_CACHE_HOME", self.0.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = Running::start(&mut command);
        let said = BufReader::new(running.0.stderr.take().unwrap()).lines();
        Recorder { running, said, trace: output }
    }
}

/// A program that follows orders.
struct Program {
    running: Running,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn tell(&mut self, order: &str) {
        writeln!(self.running.0.stdin.as_mut().unwrap(), "{order}").unwrap();
        let answer = format!(">{order}");
        self.lines.find(|line| line.as_ref().unwrap() == &answer).unwrap().unwrap();
    }
}

struct Recorder {
    running: Running,
    said: Lines<BufReader<std::process::ChildStderr>>,
    trace: PathBuf,
}

impl Recorder {
    /// Waits until the recorder says a line with this text.
    fn says(&mut self, text: &str) {
        let found = self.said.by_ref().find(|line| line.as_ref().unwrap().contains(text));
        found.unwrap_or_else(|| panic!("it did not say {text:?}")).unwrap();
    }

    /// Waits until this number of events can be read from the trace, which still grows.
    fn has_recorded(&self, events: usize) {
        wait_until("the events are in the trace", || count_readable(&self.trace) >= events);
    }

    /// Stops the recorder and waits until each of its threads stands still.
    fn stop(&self) {
        self.running.signal(Signal::STOP);
        wait_until("the recorder stands still", || common::is_stopped(self.running.pid()));
    }

    /// Ends it with Ctrl-C.
    fn end(&mut self) -> Vec<Found> {
        self.running.signal(Signal::INT);
        assert!(self.running.wait().success());
        found(&self.trace)
    }
}

/// The items of a trace, in its order.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Event { name: String, fields: Vec<u64>, time: u64, processor: u32 },
    Lost(u64),
}

impl Found {
    fn event(&self) -> Option<(&str, &[u64])> {
        match self {
            Found::Event { name, fields, .. } => Some((name, fields)),
            Found::Lost(_) => None,
        }
    }
}

fn found(trace: &Path) -> Vec<Found> {
    let trace = Trace::open(trace).unwrap();
    let (accounts, problems) = trace.check();
    assert!(problems.is_empty(), "{problems:?}");
    assert!(!accounts.is_empty());
    let events = trace.description().description.events.clone();
    let (mut found, mut merged) = (Vec::new(), trace.merge(Filter::default().without_marks()));
    while let Some(item) = merged.next() {
        found.push(match item.unwrap() {
            Item::Lost(gap) => Found::Lost(gap.events),
            Item::Record(record) => {
                let event = events.iter().find(|event| event.id == record.event).unwrap();
                let number = |field: &FieldLayout| match field.value(record.bytes) {
                    Some(Value::Unsigned(number)) => number,
                    Some(Value::Signed(number)) => number.cast_unsigned(),
                    other => panic!("{other:?}"),
                };
                let fields = event.fields.iter().map(number).collect();
                let (name, time, processor) = (event.name.clone(), record.time.get(), record.processor);
                Found::Event { name, fields, time, processor }
            }
        });
    }
    found
}

/// The first field of each event.
fn numbers(found: &[Found]) -> Vec<u64> {
    found.iter().filter_map(Found::event).map(|(_, fields)| fields[0]).collect()
}

/// Events that can be read from a trace that is being recorded. Its last block may still be on its way.
fn count_readable(trace: &Path) -> usize {
    let Ok(trace) = Trace::open(trace) else { return 0 };
    let mut merged = trace.merge(Filter::default().without_marks());
    let (mut events, mut next) = (0, merged.next());
    while let Some(item) = next {
        events += usize::from(matches!(item, Ok(Item::Record(_))));
        next = merged.next();
    }
    events
}

const NUMBERS: &str = "event NUMBER { u64 value  u16 other  int process  u32 cpu  u64 time }\n\
                       at probe:number log NUMBER(value, correspondent, tgid, cpu, here.time)\n";

#[test]
fn klog_8_every_event_at_a_probe_point_is_recorded_in_order_with_all_that_its_row_says() {
    let place = Place::new();
    let mut program = place.program();
    let mut recorder = place.recorder(&place.schema(NUMBERS), "trace", &[]);
    program.tell("on");
    program.tell("log 0 20000");
    let found = recorder.end();
    program.tell("off");
    let process = u64::from(program.running.pid());
    let mut before = 0;
    assert_eq!(found.len(), 20000);
    for (number, found) in (0..).zip(found) {
        let Found::Event { fields, time, processor, .. } = found else { panic!("{found:?} at {number}") };
        let expected = [number, correspondent(number).get().into(), process, processor.into(), time];
        assert_eq!(fields, expected);
        assert!(time >= before, "{number} is in its place");
        before = time;
    }
}

#[test]
fn klog_8_conditions_at_probe_points_choose_what_is_recorded_of_each_row() {
    let place = Place::new();
    let mut program = place.program();
    let schema = place.schema(
        "event EVEN { u64 half }\n\
         event BIG { u32 low }\n\
         event ALONE { u16 other }\n\
         event LEVEL { u64 value }\n\
         at probe:number when value < 1000 {\n\
             if !(value & 1) log EVEN(value / 2)\n\
             if value >= 990 log BIG(u32(value))\n\
         }\n\
         at probe:number when correspondent == 0xffff log ALONE(correspondent)\n\
         at probe:\"water level\" log LEVEL(value)\n",
    );
    let mut recorder = place.recorder(&schema, "trace", &[]);
    program.tell("both on");
    program.tell("log 0 2000");
    program.tell("level 18446744073709551615");
    let found = recorder.end();
    let found: Vec<_> = found.iter().map(|found| found.event().unwrap()).collect();
    let mut expected = Vec::new();
    for number in 0..2000 {
        expected.extend((number < 1000 && number % 2 == 0).then_some(("EVEN", number / 2)));
        expected.extend((990..1000).contains(&number).then_some(("BIG", number)));
        expected.extend((number % 7 == 0).then_some(("ALONE", 65535)));
    }
    expected.push(("LEVEL", u64::MAX));
    let expected: Vec<_> =
        expected.iter().map(|(name, value)| (*name, std::slice::from_ref(value))).collect();
    let first = (0..expected.len()).find(|nth| found.get(*nth) != expected.get(*nth));
    let around = first.map(|nth| (nth, found.get(nth.saturating_sub(2)..nth + 3)));
    assert_eq!((around, found.len()), (None, expected.len()));
}

#[test]
fn klog_6_rows_that_are_overwritten_before_they_are_read_are_a_gap_of_as_many_events() {
    let place = Place::new();
    let mut program = place.program();
    let mut recorder = place.recorder(&place.schema(NUMBERS), "trace", &[]);
    program.tell("on");
    program.tell("log 0 1000");
    recorder.has_recorded(1000);
    recorder.stop();
    program.tell("log 1000 300000");
    recorder.running.signal(Signal::CONT);
    program.tell("log 300000 300010");
    let found = recorder.end();
    let lost: u64 = found.iter().map(|found| if let Found::Lost(events) = found { *events } else { 0 }).sum();
    let numbers = numbers(&found);
    assert_eq!(numbers.len() as u64 + lost, 300_010);
    // One file of 32768 rows on each processor that the program was on.
    let most = 32_768 * mete_probe::attach::configured_processors() as u64 + 1010;
    assert!(lost >= 300_010 - most, "{lost} of at least {}", 300_010 - most);
    assert!(numbers.is_sorted_by(|one, next| one < next));
    assert_eq!(
        (&numbers[..1000], &numbers[numbers.len() - 10..]),
        (&(0..1000).collect::<Vec<_>>()[..], &(300_000..300_010).collect::<Vec<_>>()[..])
    );
}

#[test]
fn klog_4_probes_are_off_after_the_recorder_however_it_ends_and_the_next_one_takes_them() {
    let place = Place::new();
    let mut program = place.program();
    let schema = place.schema(NUMBERS);
    let mut killed = place.recorder(&schema, "killed", &[]);
    program.tell("on");
    program.tell("log 0 1000");
    killed.has_recorded(1000);
    killed.running.signal(Signal::KILL);
    killed.running.wait();
    program.tell("off");
    let numbers = numbers(&found(&killed.trace));
    assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
    let mut recorder = place.recorder(&schema, "trace", &[]);
    program.tell("on");
    program.tell("log 1000 1010");
    assert_eq!(recorder.end().len(), 10);
    program.tell("off");
}

#[test]
fn klog_8_program_that_starts_later_is_recorded_and_what_is_absent_is_said() {
    let place = Place::new();
    let schema = place.schema(&format!("{NUMBERS}event LEVEL {{ u64 x }}\nat probe:depth log LEVEL(value)"));
    let mut recorder = place.recorder(&schema, "trace", &[]);
    recorder.says(
        "no program that runs now has the probe \"number\", \"depth\"; one that starts later is recorded",
    );
    let mut programs = [place.program(), place.program()];
    for program in &mut programs {
        program.tell("on");
    }
    for round in 0..50 {
        for (nth, program) in programs.iter_mut().enumerate() {
            let from = round * 20 + nth * 10;
            program.tell(&format!("log {from} {}", from + 10));
        }
    }
    let processes = programs.each_ref().map(|program| u64::from(program.running.pid()));
    drop(programs);
    let found = recorder.end();
    recorder.says("no program that was found had the probe \"depth\"");
    let found: Vec<_> = found.iter().map(|found| found.event().unwrap().1[..3].to_vec()).collect();
    let expected = (0..1000_u64).map(|number| {
        let process = processes[(number / 10 % 2) as usize];
        vec![number, correspondent(number).get().into(), process]
    });
    assert_eq!(found, expected.collect::<Vec<_>>(), "one after the other, as they were told");
}

#[test]
fn klog_8_commands_probes_are_recorded_as_soon_as_they_are_on() {
    let place = Place::new();
    let schema = place.schema(NUMBERS);
    let output = place.path("trace");
    let mut record = mete(&["record", "--schema", &schema, "--json", "-o", output.to_str().unwrap(), "--"]);
    record.arg(std::env::current_exe().unwrap());
    record.args(["--ignored", "--exact", "record_probes::program"]).env(ROLE, "5000");
    let recorded = record.env("METE_RUNTIME_DIR", place.0.path()).assert().success();
    let summary: serde_json::Value = serde_json::from_slice(&recorded.get_output().stdout).unwrap();
    assert_eq!((&summary["lost"], &summary["records"]), (&0.into(), &5000.into()));
    let found = found(&output);
    let numbers = numbers(&found);
    assert_eq!(numbers, (0..5000).collect::<Vec<_>>());
}

#[test]
fn klog_8_program_that_another_one_reads_is_refused_in_words_and_taken_when_it_is_free() {
    let place = Place::new();
    let mut program = place.program();
    let schema = place.schema(NUMBERS);
    let mut first = place.recorder(&schema, "first", &[]);
    program.tell("on");
    let mut second = place.recorder(&schema, "second", &[]);
    second.says(&format!("is already read by mete ({})", first.running.pid()));
    let mut log = common::program(&["log", "--components", "--for", "100ms"]);
    let log = log.env("METE_RUNTIME_DIR", place.0.path()).output().unwrap();
    let said = String::from_utf8_lossy(&log.stderr).into_owned();
    let reader =
        format!("is already read by mete ({}), which has to end first; see mete doctor", first.running.pid());
    assert!(said.contains("nothing to log: component ") && said.contains(&reader), "{said}");
    assert!(!said.contains("no program with probes runs"), "it does run: {said}");
    program.tell("log 0 10");
    assert_eq!(first.end().len(), 10);
    program.tell("on");
    program.tell("log 10 20");
    let numbers = numbers(&second.end());
    assert_eq!(numbers, (10..20).collect::<Vec<_>>());
}

/// The log stands still while a program logs more rows than there is room for. Its time is long, because it
/// must not be over before that.
#[test]
fn log_13_that_rows_were_lost_is_the_exit_status_unless_a_command_has_its_own() {
    let place = Place::new();
    for (end, status) in [(&["--for", "20s"][..], 3), (&["--", "sh", "-c", "read line; exit 7"], 7)] {
        let mut program = place.program();
        let mut command = common::program(&[&["log", "--components", "--json"], end].concat());
        command.env("METE_RUNTIME_DIR", place.0.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut log = Running::start(&mut command);
        let lines = log.lines();
        program.tell("on");
        log.signal(Signal::STOP);
        wait_until("the log stands still", || common::is_stopped(log.pid()));
        program.tell("log 0 200000");
        log.signal(Signal::CONT);
        drop(log.0.stdin.take());
        let objects = lines.map(|line| serde_json::from_str::<serde_json::Value>(&line.unwrap()).unwrap());
        let statement = objects.filter(|object| object["kind"] == "completeness").last().unwrap();
        let files = statement["files"].as_array().unwrap();
        let overwritten: u64 = files.iter().map(|file| file["overwritten"].as_u64().unwrap()).sum();
        assert!(statement["complete"] == false && overwritten > 0, "{statement}");
        assert_eq!(log.wait().code(), Some(status));
    }
}

#[test]
fn klog_6_program_that_spoils_its_log_harms_neither_the_recorder_nor_others_events() {
    let place = Place::new();
    let (mut honest, mut hostile) = (place.program(), place.program());
    let mut recorder = place.recorder(&place.schema(NUMBERS), "trace", &[]);
    honest.tell("on");
    hostile.tell("on");
    for round in 0..20 {
        honest.tell(&format!("log {} {}", round * 100, round * 100 + 100));
        hostile.tell("spoil");
        hostile.tell("log 0 100");
    }
    recorder.says("has written into its log what no probe writes");
    let process = u64::from(honest.running.pid());
    let found = recorder.end();
    let of_honest = found.iter().filter_map(Found::event).filter(|(_, fields)| fields[2] == process);
    let numbers: Vec<_> = of_honest.map(|(_, fields)| fields[0]).collect();
    assert!(numbers.iter().copied().eq(0..2000), "{} of 2000", numbers.len());
    let times = found.iter().filter_map(|found| match found {
        Found::Event { time, .. } => Some(time),
        Found::Lost(_) => None,
    });
    assert!(times.is_sorted(), "in order of time all the same");
}

#[test]
fn klog_8_probe_points_and_points_of_the_kernel_are_one_trace() {
    if !kernel_is_there() {
        return;
    }
    let place = Place::new();
    let schema = place.schema(&format!(
        "{NUMBERS}event STARTED {{ u64 pid }}\n\
         at tp_btf:sched_process_exec log STARTED(u64(p.pid))\n\
         event ENDED {{ u64 pid }}\n\
         at tp_btf:sched_process_exit when p.pid == p.tgid log ENDED(u64(p.pid))"
    ));
    let mut recorder = place.recorder(&schema, "trace", &[]);
    let mut said = Vec::new();
    while !said.iter().any(|line: &String| line.contains("no program that runs now")) {
        let Some(line) = recorder.said.next() else { break };
        said.push(line.unwrap());
    }
    if said.iter().any(|line| line.contains("install clang")) {
        return println!("SKIPPED: probe points together with the kernel's: {said:?}");
    }
    let mut program = place.program();
    program.tell("on");
    program.tell("log 0 100");
    let process = u64::from(program.running.pid());
    program.running.0.stdin.take();
    program.running.wait();
    let found = recorder.end();
    let of_program = found.iter().filter_map(Found::event).filter(|(name, fields)| match *name {
        "NUMBER" => fields[2] == process,
        _ => fields[0] == process,
    });
    let names: Vec<_> = of_program.map(|(name, _)| name).collect();
    let expected: Vec<_> = ["STARTED"].into_iter().chain(vec!["NUMBER"; 100]).chain(["ENDED"]).collect();
    assert_eq!(names, expected);
}

#[test]
fn klog_8_domains_of_a_recording_are_those_of_programs_rows_and_of_their_correspondents() {
    let place = Place::new();
    let (mut server, client) = (place.program(), place.program());
    let schema = place.schema(
        "event SERVED { u16 domain  u16 client  u64 value }\n\
         at probe:number when domain != 0 log SERVED(domain, correspondent, value)",
    );
    let domains = [("server", server.running.pid()), ("client", client.running.pid())];
    let [one, other] = domains.map(|(name, pid)| format!("{name}=pid:{pid}"));
    let mut recorder = place.recorder(&schema, "trace", &["--domain", &one, "--domain", &other]);
    server.tell("on");
    server.tell(&format!("serve {} 7", client.running.pid()));
    server.tell("serve 1 8");
    let found = recorder.end();
    let fields: Vec<_> = found.iter().map(|found| found.event().unwrap().1).collect();
    assert_eq!(fields, [[2, 3, 7], [2, NO_DOMAIN.get().into(), 8]]);
    let names = Trace::open(&recorder.trace).unwrap().description().circumstances.domains.clone();
    assert_eq!(names, ["other", "idle", "server", "client"]);
}

#[test]
fn log_6_rows_of_another_user_s_program_are_recorded_in_no_domain_that_it_may_not_speak_for() {
    const TEST: &str =
        "log_6_rows_of_another_user_s_program_are_recorded_in_no_domain_that_it_may_not_speak_for";
    const OTHER_USER: u32 = 64_011;
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED: {TEST}: not root");
    }
    let (place, theirs) = (Place::new(), Place::new());
    let victim = place.program();
    let mut forger = theirs.program_of(OTHER_USER);
    let schema = place.schema(
        "event SERVED { u16 domain  u16 client  u64 value }\n\
         at probe:number log SERVED(domain, correspondent, value)",
    );
    let domains = [("forger", forger.running.pid()), ("victim", victim.running.pid())];
    let [one, other] = domains.map(|(name, pid)| format!("{name}=pid:{pid}"));
    let mut recorder = place.recorder_of_all(&schema, "trace", &["--domain", &one, "--domain", &other]);
    forger.tell("on");
    forger.tell("serve 1 7");
    forger.tell("claim 3 2 8");
    forger.tell("claim 2 3 9");
    forger.tell("claim 2 2 10");
    recorder.says("may not speak for");
    let found = recorder.end();
    let fields: Vec<_> = found.iter().map(|found| found.event().unwrap().1).collect();
    let no_domain = u64::from(NO_DOMAIN.get());
    // It removes its socket, and with that the directory.
    forger.running.0.stdin.take();
    forger.running.wait();
    let _ = fs::remove_dir(format!("/tmp/mete-{OTHER_USER}"));
    assert_eq!(fields, [[2, no_domain, 7], [0, no_domain, 8], [0, no_domain, 9], [2, 2, 10]]);
}

#[test]
fn log_6_a_program_that_gives_up_root_is_let_go_and_recorded_anew_as_who_it_is_by_then() {
    const TEST: &str = "log_6_a_program_that_gives_up_root_is_let_go_and_recorded_anew_as_who_it_is_by_then";
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED: {TEST}: not root");
    }
    let place = Place::new();
    let mut program = place.program();
    let schema =
        place.schema("event SERVED { u16 domain  u64 value }\nat probe:number log SERVED(domain, value)");
    let domain = format!("dropper=pid:{}", program.running.pid());
    let mut recorder = place.recorder(&schema, "trace", &["--domain", &domain]);
    program.tell("on");
    program.tell("serve 1 1");
    program.tell("become 64012");
    program.tell("off");
    program.tell("on");
    program.tell("serve 1 2");
    program.tell("claim 3 3 3");
    recorder.says("is taken anew");
    let found = recorder.end();
    let fields: Vec<_> = found.iter().map(|found| found.event().unwrap().1).collect();
    assert_eq!(fields, [[2, 1], [2, 2], [0, 3]]);
}

#[test]
fn klog_4_event_of_a_probe_point_that_is_switched_has_its_marks_in_their_places() {
    if !fuse_is_there() {
        return;
    }
    let place = Place::new();
    let mut program = place.program();
    let schema = place
        .schema(&format!("{NUMBERS}event LEVEL {{ u64 value }}\nat probe:\"water level\" log LEVEL(value)"));
    let parameters = place.path("parameters");
    let mut recorder = place.recorder(&schema, "trace", &["--parameters", parameters.to_str().unwrap()]);
    wait_until("its parameters are there", || parameters.join("status").exists());
    program.tell("both on");
    program.tell("log 0 100");
    fs::write(parameters.join("NUMBER"), "0").unwrap();
    program.tell("log 100 200");
    program.tell("level 5");
    fs::write(parameters.join("NUMBER"), "1").unwrap();
    program.tell("log 200 300");
    recorder.running.signal(Signal::INT);
    assert!(recorder.running.wait().success());
    let events = events(&recorder.trace);
    let names: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    let runs: Vec<_> = names.chunk_by(|one, next| one == next).map(|run| (run[0], run.len())).collect();
    let processors = mete_probe::attach::configured_processors();
    let expected = [
        ("NUMBER", 100),
        ("SWITCHED_OFF", processors),
        ("LEVEL", 1),
        ("SWITCHED_ON", processors),
        ("NUMBER", 100),
    ];
    assert_eq!(runs, expected);
}

#[test]
fn klog_4_flight_recorder_ends_at_an_event_of_a_probe_point() {
    let place = Place::new();
    let mut program = place.program();
    let schema = place.schema(&format!(
        "{NUMBERS}event SLOW {{ u64 x }}\nat probe:number when value == 900 log SLOW(value)"
    ));
    let mut recorder = place.recorder(&schema, "trace", &["--keep", "1M", "--dump-on", "SLOW"]);
    program.tell("on");
    program.tell("log 0 100");
    recorder.running.signal(Signal::USR1);
    recorder.says("what was kept is in");
    let numbers = numbers(&found(&recorder.trace));
    assert!(numbers.into_iter().eq(0..100), "all that had happened");
    program.tell("log 100 1000");
    assert!(recorder.running.wait().success());
    program.tell("off");
    let found = found(&place.path("trace.2"));
    let names: Vec<_> = found.iter().map(|found| found.event().unwrap().0).collect();
    let at = names.iter().position(|name| *name == "SLOW").unwrap();
    assert_eq!(found[at - 1].event().unwrap().1[0], 900);
    assert_eq!(at, 901);
}

#[test]
fn klog_1_example_of_probe_points_is_right() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/requests.mete");
    mete(&["schema", "check", "--no-btf", path]).assert().success();
    let formatted = mete(&["schema", "format", path]).assert().success();
    assert_eq!(fs::read(path).unwrap(), formatted.get_output().stdout, "it is in the canonical form");
}
