//! The flight recorder keeps the newest events, and writes them on request or when something happens (KLOG-5,
//! KLOG-6).

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{
    PATIENCE, Running, SCHEDULER_PROGRAMS, assert_described, bpf_links, events, fuse_is_there,
    kernel_is_there, mete, printed_by, program, said_by, says, wait_until,
};
use rustix::process::Signal;
use serde_json::Value;

const KEPT_BYTES: u64 = 256 << 10;

/// A flight recorder of the scheduler's events.
struct Flight {
    place: tempfile::TempDir,
    process: Running,
}

impl Flight {
    /// Starts it; `None` if the kernel cannot be recorded here.
    fn start(options: &[&str]) -> Option<Flight> {
        if !kernel_is_there() {
            return None;
        }
        let place = tempfile::tempdir().unwrap();
        let keep = KEPT_BYTES.to_string();
        let mut command = program(&["record", "--schema", "scheduler", "--keep", &keep, "--json", "-o"]);
        command.arg(place.path().join("trace")).args(options).current_dir(place.path());
        let process = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::null()));
        wait_until("it records", || bpf_links(process.pid()).len() >= SCHEDULER_PROGRAMS);
        Some(Flight { place, process })
    }

    fn trace(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Ends it. Returns what it prints.
    fn end(&mut self) -> Value {
        self.process.signal(Signal::INT);
        let lines: Vec<_> = self.process.lines().map(Result::unwrap).collect();
        self.process.wait();
        let [line] = &lines[..] else { panic!("{lines:?}") };
        serde_json::from_str(line).unwrap()
    }
}

fn is_whole(trace: &Path) {
    let described = fs::read(trace.join("description.json")).unwrap();
    let description: Value = serde_json::from_slice(&described).unwrap();
    assert_eq!(description["circumstances"]["flight_bytes"], KEPT_BYTES);
    assert!(!events(trace).is_empty());
    let blocks = fs::read_dir(trace)
        .unwrap()
        .map(|file| file.unwrap())
        .filter(|file| file.path().extension().is_some_and(|extension| extension == "trace"));
    let bytes: u64 = blocks.map(|file| file.metadata().unwrap().len()).sum();
    assert!(bytes <= KEPT_BYTES, "{bytes}");
}

#[test]
fn klog_6_flight_recorder_writes_what_it_keeps_when_asked_by_a_signal_and_at_the_end() {
    let Some(mut flight) = Flight::start(&[]) else { return };
    for name in ["trace", "trace.2"] {
        assert!(!flight.trace(name).exists(), "nothing is written before");
        flight.process.signal(Signal::USR1);
        wait_until("it is written", || flight.trace(name).join("description.json").exists());
    }
    let summary = flight.end();
    assert_described(std::slice::from_ref(&summary));
    let traces = ["trace", "trace.2", "trace.3"].map(|name| flight.trace(name));
    assert_eq!(summary["dumps"], serde_json::to_value(&traces).unwrap());
    traces.iter().for_each(|trace| is_whole(trace));
    assert_eq!(summary["records"].as_u64().unwrap(), records(&traces[2]));
}

/// The number of records in a trace, the recorder's own marks included.
fn records(trace: &Path) -> u64 {
    let shown = mete(&["show", trace.to_str().unwrap(), "--json"]).assert().success();
    printed_by(&shown).matches("\"kind\":\"event\"").count() as u64
}

/// A recorder that writes everything as it comes has nothing to dump. The request does no harm there.
#[test]
fn klog_6_request_to_dump_ends_no_recorder_that_keeps_nothing() {
    let place = tempfile::tempdir().unwrap();
    let (trace, said) = (place.path().join("trace"), place.path().join("said"));
    let mut command = program(&["record", "--schema", "stopwatch", "-o", trace.to_str().unwrap()]);
    command.args(["--", "sh", "-c", "kill -USR1 $PPID; read line; exit 3"]).stdin(Stdio::piped());
    let mut process = Running::start(command.stdout(Stdio::null()).stderr(fs::File::create(&said).unwrap()));
    wait_until("it answers", || fs::read_to_string(&said).unwrap().ends_with('\n'));
    drop(process.0.stdin.take());
    assert_eq!(process.wait().code(), Some(3), "the command's");
    let said = fs::read_to_string(&said).unwrap();
    assert!(said.starts_with("mete: SIGUSR1: there is nothing to dump"), "{said}");
    mete(&["show", trace.to_str().unwrap()]).assert().success();
}

#[test]
fn klog_4_flight_recorder_writes_what_it_keeps_when_asked_by_its_file() {
    if !fuse_is_there() {
        return;
    }
    let Some(mut flight) = Flight::start(&["--parameters", "parameters"]) else { return };
    wait_until("its parameters are there", || flight.trace("parameters/dump").exists());
    fs::write(flight.trace("parameters/dump"), "1").unwrap();
    is_whole(&flight.trace("trace"));
    let status = fs::read_to_string(flight.trace("parameters/status")).unwrap();
    assert!(status.contains("\nkept: "), "{status}");
    assert_eq!(flight.end()["dumps"].as_array().unwrap().len(), 2);
}

/// A process that runs another program when it is told to.
struct Sleeper(Running);

impl Sleeper {
    fn start() -> Sleeper {
        Sleeper(Running::start(Command::new("sh").args(["-c", "read line; exec true"]).stdin(Stdio::piped())))
    }

    /// An event of its next program, and of no other process's.
    fn schema(&self) -> String {
        let pid = self.0.pid();
        format!(
            "event AWAITED {{ int pid }}\nat tp_btf:sched_process_exec when p.pid == {pid} log AWAITED(p.pid)\n"
        )
    }

    fn wake(&mut self) {
        self.0.0.stdin.take().unwrap().write_all(b"\n").unwrap();
        self.0.wait();
    }
}

fn awaiting(schema: &Path, trace: &Path, options: &[&str]) -> Command {
    let mut command = program(&["record", "--keep", "1M", "--dump-on", "AWAITED", "--schema", "scheduler"]);
    command.arg(schema).arg("-o").arg(trace).args(options).env("XDG_CACHE_HOME", schema.parent().unwrap());
    command
}

/// Whether programs of own schemata can be compiled here. Says so if they cannot.
fn compiler_is_there() -> bool {
    let place = tempfile::tempdir().unwrap();
    let schema = place.path().join("awaited.mete");
    fs::write(&schema, Sleeper::start().schema()).unwrap();
    let tried = awaiting(&schema, &place.path().join("trace"), &["--for", "1ms"]).output().unwrap();
    let said = String::from_utf8_lossy(&tried.stderr).into_owned();
    if said.contains("install clang") {
        eprintln!("SKIPPED: {said}");
        return false;
    }
    assert!(tried.status.success(), "{said}");
    true
}

#[test]
fn klog_6_flight_recorder_waits_for_an_event_and_ends_with_what_led_to_it() {
    if !kernel_is_there() || !compiler_is_there() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let (schema, trace) = (place.path().join("awaited.mete"), place.path().join("trace"));
    let mut sleeper = Sleeper::start();
    fs::write(&schema, sleeper.schema()).unwrap();
    let mut process = Running::start(awaiting(&schema, &trace, &[]).stdout(Stdio::null()));
    wait_until("it records", || bpf_links(process.pid()).len() >= SCHEDULER_PROGRAMS);
    assert!(process.0.try_wait().unwrap().is_none() && !trace.exists(), "nothing has happened");
    sleeper.wake();
    assert_eq!(process.wait().code(), Some(0));
    let events = events(&trace);
    let awaited = events.iter().position(|event| event["event"] == "AWAITED").unwrap();
    assert_eq!(events[awaited]["fields"]["pid"], sleeper.0.pid());
    assert!(events[..awaited].iter().any(|event| event["event"] == "SCHEDIN"), "what led to it");
}

#[test]
fn klog_6_flight_recorder_that_has_waited_in_vain_says_so() {
    if !kernel_is_there() || !compiler_is_there() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let (schema, trace) = (place.path().join("awaited.mete"), place.path().join("trace"));
    let sleeper = Sleeper::start();
    fs::write(&schema, sleeper.schema()).unwrap();
    let mut process =
        Running::start(awaiting(&schema, &trace, &[]).stdout(Stdio::null()).stderr(Stdio::null()));
    wait_until("it records", || bpf_links(process.pid()).len() >= SCHEDULER_PROGRAMS);
    process.signal(Signal::INT);
    assert_eq!(process.wait().code(), Some(130));
    assert!(!events(&trace).is_empty(), "what was kept is there all the same");
}

#[test]
fn klog_6_flight_recorders_trace_goes_where_there_is_nothing() {
    if !kernel_is_there() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("file"), "").unwrap();
    let path = place.path().to_str().unwrap();
    let refused =
        mete(&["record", "--schema", "scheduler", "--keep", "1M", "-o", path, "--for", "1s"]).assert();
    says(&refused.code(1), "is not empty; a trace needs a directory of its own");
    for options in [&["--dump-on", "EXIT"][..], &["--off"], &["--keep", "0"], &["--low-water", "0"]] {
        let options = [&["record", "--schema", "scheduler", "-o", "x"], options].concat();
        mete(&options).timeout(PATIENCE).assert().code(2);
    }
}

#[test]
fn klog_6_flight_recorder_keeps_what_can_be_kept_and_says_what_cannot() {
    let place = tempfile::tempdir().unwrap();
    let trace = place.path().join("trace");
    let record = |keep: &str| {
        let options = ["record", "--schema", "stopwatch", "-o", trace.to_str().unwrap(), "--keep", keep];
        mete(&[&options[..], &["--", "true"]].concat()).assert()
    };
    let said = said_by(&record("99999G").code(1));
    assert!(said.contains("--keep takes up to 97 TiB of memory") && said.lines().count() == 1, "{said}");
    assert!(!trace.exists());
    let kept = record("1K").success();
    says(&kept, " are kept instead of 1024 B: less than a block of each buffer cannot be");
}
