//! Parameters of a running recorder, as files and by `mete set` and `mete get` (KLOG-4).

#![allow(clippy::unwrap_used, reason = "a test may end so")]

mod common;

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{
    Running, assert_described, bpf_link_exists, bpf_links, events, fuse_is_there, is_root, kernel_is_there,
    mete, program, wait_until,
};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, setrlimit};
use serde_json::Value;

/// A recorder of the scheduler's events, with its trace and its parameters.
struct Recorder {
    place: tempfile::TempDir,
    process: Running,
}

impl Recorder {
    fn start(options: &[&str]) -> Recorder {
        let place = tempfile::tempdir().unwrap();
        let mut command = program(&["record", "--schema", "scheduler", "-o"]);
        command.arg(place.path().join("trace")).arg("--parameters").arg(place.path().join("parameters"));
        // SAFETY: one system call between fork and exec.
        unsafe {
            command.pre_exec(|| Ok(setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?))
        };
        let process = Running::start(command.args(options).stdout(Stdio::null()));
        let recorder = Recorder { place, process };
        wait_until("its parameters are there", || recorder.file("status").exists());
        recorder
    }

    fn tree(&self) -> PathBuf {
        self.place.path().join("parameters")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.tree().join(name)
    }

    fn set(&self, name: &str, value: &str) -> io::Result<()> {
        fs::write(self.file(name), value)
    }

    fn get(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap().trim_end().to_owned()
    }

    fn links(&self) -> Vec<u32> {
        bpf_links(self.process.pid())
    }

    fn is_mounted(&self) -> bool {
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
        table.contains(&format!(" mete:{} ", self.process.pid()))
    }

    /// Ends it in order; the events of its trace.
    fn end(&mut self) -> Vec<Value> {
        self.process.signal(Signal::INT);
        assert!(self.process.wait().code().is_some());
        events(&self.place.path().join("trace"))
    }
}

fn named<'a>(events: &'a [Value], name: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["event"] == name).collect()
}

fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn can_run() -> bool {
    fuse_is_there() && kernel_is_there()
}

/// A program with three phases, each of which runs a program of its own name.
const PHASES: &str = "\
    cd \"$1\" && for phase in before during after; do ln -s /bin/true $phase; done
    ./before; echo 1 > parameters/enable; ./during; echo 0 > parameters/enable; ./after";

/// KLogger §4.3: a running program turns on logging when a certain phase is reached.
/// A trace's files of blocks.
fn files(trace: &Path) -> usize {
    let names = fs::read_dir(trace).unwrap().map(|file| file.unwrap().path());
    names.filter(|name| name.extension().is_some_and(|extension| extension == "trace")).count()
}

#[test]
fn klog_4_program_switches_recording_on_for_one_of_its_phases() {
    if !can_run() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (trace, tree) = (path("trace"), path("parameters"));
    let options = ["record", "--schema", "scheduler", "-o", &trace, "--parameters", &tree, "--off", "--"];
    mete(&[&options[..], &["sh", "-ec", PHASES, "sh", &path("")]].concat()).assert().success();
    let events = events(Path::new(&trace));
    let runs: Vec<_> =
        named(&events, "EXEC").into_iter().map(|event| event["fields"]["name"].clone()).collect();
    assert!(runs.contains(&"during".into()), "{runs:?}");
    assert!(!runs.contains(&"before".into()) && !runs.contains(&"after".into()), "{runs:?}");
    let marks = |name: &str| {
        let of = |mark: &&&Value| mark["fields"]["event"] == "EXEC";
        named(&events, name)
            .iter()
            .filter(of)
            .map(|mark| mark["time_ns"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    let processors = files(Path::new(&trace));
    let (off, on) = (marks("SWITCHED_OFF"), marks("SWITCHED_ON"));
    assert_eq!((off.len(), on.len()), (2 * processors, processors), "at first, then on, then off");
    let during =
        named(&events, "EXEC").into_iter().find(|event| event["fields"]["name"] == "during").unwrap();
    let time = during["time_ns"].as_u64().unwrap();
    let (first, second) = off.split_at(processors);
    assert!(first.iter().all(|off| on.iter().all(|on| off < on)) && on.iter().all(|on| *on < time));
    assert!(second.iter().all(|off| time < *off));
}

#[test]
fn klog_4_event_that_is_off_has_no_program_attached() {
    if !can_run() {
        return;
    }
    let mut recorder = Recorder::start(&["--off"]);
    assert_eq!((recorder.links().len(), recorder.get("enable")), (0, "0".into()));
    recorder.set("enable", "1").unwrap();
    assert_eq!((recorder.links().len(), recorder.get("enable")), (7, "1".into()));
    recorder.set("EXEC", "0").unwrap();
    assert_eq!(recorder.links().len(), 6, "it had a place of its own");
    for event in ["SCHEDIN", "SCHEDOUT"] {
        recorder.set(event, "0").unwrap();
        assert_eq!(recorder.links().len(), 6, "the place has other events");
    }
    recorder.set("REMOVE_FROM_RUNQ", "0").unwrap();
    assert_eq!(recorder.links().len(), 5, "it has none any more");
    let mut open = File::options().write(true).open(recorder.file("enable")).unwrap();
    for value in ["0", "1\n", " 0 "] {
        open.write_all(value.as_bytes()).unwrap();
        assert_eq!(recorder.get("enable"), value.trim(), "one after the other");
    }
    assert_eq!(
        (recorder.links().len(), recorder.get("SCHEDIN"), recorder.get("FORK")),
        (0, "0".into(), "1".into())
    );
    recorder.set("enable", "1").unwrap();
    assert_eq!(recorder.links().len(), 5);
    recorder.end();
}

#[test]
fn klog_4_event_is_switched_off_and_on_beside_others_of_its_place() {
    if !can_run() {
        return;
    }
    let mut recorder = Recorder::start(&[]);
    let work = || std::thread::sleep(std::time::Duration::from_millis(50));
    recorder.set("SCHEDOUT", "0").unwrap();
    let off = monotonic_ns();
    work();
    let on = monotonic_ns();
    recorder.set("SCHEDOUT", "1").unwrap();
    let again = monotonic_ns();
    work();
    let end = monotonic_ns();
    let events = recorder.end();
    let count = |name: &str, from: u64, until: u64| {
        let is_within = |event: &&&Value| (from..until).contains(&event["time_ns"].as_u64().unwrap());
        named(&events, name).iter().filter(is_within).count()
    };
    assert_eq!(count("SCHEDOUT", off, on), 0);
    assert!(count("SCHEDIN", off, on) > 0 && count("SCHEDOUT", again, end) > 0);
    let description = fs::read(recorder.place.path().join("trace/description.json")).unwrap();
    let switches = &serde_json::from_slice::<Value>(&description).unwrap()["circumstances"]["switches"];
    let list: Vec<_> =
        switches["list"].as_array().unwrap().iter().map(|it| (&it["event"], &it["on"])).collect();
    assert_eq!(list, [(&"SCHEDOUT".into(), &false.into()), (&"SCHEDOUT".into(), &true.into())]);
    assert_eq!(switches["off_at_first"], Value::Array(Vec::new()));
}

/// A value is in effect when the write returns: neither an event too few nor one too many.
#[test]
fn klog_4_all_that_happens_while_an_event_is_on_is_recorded_and_nothing_else() {
    const ROUNDS: usize = 20;
    if !can_run() {
        return;
    }
    let mut recorder = Recorder::start(&["--off", "--buffer", "1M"]);
    let program = |name: &str| {
        let path = recorder.place.path().join(name);
        symlink("/bin/true", &path).unwrap();
        move || assert!(Command::new(&path).status().unwrap().success())
    };
    let (on, off) = (program("mete-is-on"), program("mete-is-off"));
    for round in 0..ROUNDS {
        off();
        recorder.set("enable", "1").unwrap();
        on();
        recorder.set("EXEC", "0").unwrap();
        off();
        recorder.set("EXEC", "1").unwrap();
        on();
        recorder.set("buffer_size", ["128K", "1"][round % 2]).unwrap();
        on();
        recorder.set("enable", "0").unwrap();
    }
    let events = recorder.end();
    let runs =
        |name: &str| named(&events, "EXEC").iter().filter(|event| event["fields"]["name"] == name).count();
    assert_eq!((runs("mete-is-on"), runs("mete-is-off")), (3 * ROUNDS, 0));
}

/// Also while somebody has a file of it open.
#[test]
fn klog_4_no_tree_outlives_its_recorder() {
    if !can_run() {
        return;
    }
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::ABORT, Signal::KILL] {
        let mut recorder = Recorder::start(&[]);
        let (links, open) = (recorder.links(), File::open(recorder.file("enable")).unwrap());
        assert!(recorder.is_mounted() && links.len() >= 7);
        recorder.process.signal(signal);
        recorder.process.wait();
        wait_until("it is unmounted", || !recorder.is_mounted());
        wait_until("its directory is gone", || !recorder.tree().exists());
        wait_until("the kernel has let go", || !links.iter().any(|link| bpf_link_exists(*link)));
        assert!(io::read_to_string(&open).is_err(), "{signal:?}: nobody answers any more");
        let trace = recorder.place.path().join("trace");
        mete(&["show", trace.to_str().unwrap()]).assert().success();
    }
}

/// Nobody waits for an answer that does not come: neither the recorder nor who asks.
#[test]
fn klog_4_recorder_ends_in_order_while_many_ask() {
    const ASK: &str = "\
        while cat status SCHEDIN && echo 0 > enable && echo 1 > enable; do : > \"../asked-$0\"; done";
    if !can_run() {
        return;
    }
    for signal in [Signal::INT, Signal::KILL] {
        let mut recorder = Recorder::start(&[]);
        let ask = |nth: &str| {
            let mut shell = Command::new("sh");
            shell
                .args(["-c", ASK, nth])
                .current_dir(recorder.tree())
                .stderr(Stdio::null())
                .stdout(Stdio::null());
            Running::start(&mut shell)
        };
        let mut askers = ["1", "2", "3"].map(ask);
        for nth in 1..=3 {
            wait_until("it is answered", || recorder.place.path().join(format!("asked-{nth}")).exists());
        }
        recorder.process.signal(signal);
        assert_eq!(recorder.process.wait().success(), signal == Signal::INT);
        for asker in &mut askers {
            asker.wait();
        }
        wait_until("it is unmounted", || !recorder.is_mounted());
        let trace = recorder.place.path().join("trace");
        mete(&["show", trace.to_str().unwrap()]).assert().success();
    }
}

/// The process that would take a recorder's tree away.
fn keeper_of(recorder: u32) -> Pid {
    let children = fs::read_to_string(format!("/proc/{recorder}/task/{recorder}/children")).unwrap();
    let mut pids = children.split_whitespace().map(|pid| pid.parse().unwrap());
    let is_keeper = |pid: &i32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap() == "mete-keeper\n";
    Pid::from_raw(pids.find(is_keeper).unwrap()).unwrap()
}

#[test]
fn klog_4_dead_tree_of_a_recorder_and_keeper_killed_together_is_taken_away_by_the_next() {
    if !can_run() {
        return;
    }
    let mut recorder = Recorder::start(&[]);
    kill_process(keeper_of(recorder.process.pid()), Signal::KILL).unwrap();
    assert_eq!(recorder.get("enable"), "1", "it goes on without its keeper");
    recorder.process.signal(Signal::KILL);
    recorder.process.wait();
    assert!(recorder.is_mounted());
    let path = |name: &str| recorder.place.path().join(name).to_str().unwrap().to_owned();
    let (trace, tree) = (path("second"), path("parameters"));
    let options = ["record", "--schema", "scheduler", "-o", &trace, "--parameters", &tree, "--", "cat"];
    let next = mete(&[&options[..], &[&path("parameters/enable")]].concat()).assert().success();
    assert!(String::from_utf8_lossy(&next.get_output().stdout).starts_with("1\n"));
    assert!(!recorder.is_mounted());
}

#[test]
fn klog_4_place_of_a_running_recorders_tree_is_refused() {
    if !can_run() {
        return;
    }
    let mut recorder = Recorder::start(&[]);
    let path = |name: &str| recorder.place.path().join(name).to_str().unwrap().to_owned();
    let options =
        ["record", "--schema", "scheduler", "-o", &path("second"), "--parameters", &path("parameters")];
    let refused = mete(&[&options[..], &["--", "true"]].concat()).assert().code(1);
    let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    let expected = format!("mete: the parameters of process {} are at ", recorder.process.pid());
    assert!(said.starts_with(&expected), "{said}");
    assert_eq!(recorder.get("enable"), "1");
    recorder.end();
}

/// By fusermount3; a schema without points needs no root.
#[test]
fn klog_4_ordinary_user_has_parameters_too() {
    const NOBODY: u32 = 65534;
    let has_helper = Command::new("fusermount3").arg("-V").output().is_ok();
    if !fuse_is_there() || !is_root() || !has_helper {
        return eprintln!(
            "SKIPPED: this needs root, /dev/fuse, and fusermount3 for the ordinary user; scripts/setup.sh mounts installs it"
        );
    }
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // Where it was built, the user may not look.
    let program = place.path().join("mete");
    fs::copy(env!("CARGO_BIN_EXE_mete"), &program).unwrap();
    for signal in [None, Some(Signal::KILL)] {
        let mut command = Command::new(&program);
        let options = [
            "record",
            "--schema",
            "stopwatch",
            "-o",
            "trace",
            "--parameters",
            "parameters",
            "--",
            "sh",
            "-c",
        ];
        let work = "cat parameters/enable parameters/START && echo 0 > parameters/enable && cat parameters/enable; read x";
        command.args(options).arg(work).current_dir(place.path()).uid(NOBODY).gid(NOBODY);
        let mut recorder =
            Running::start(command.env("HOME", place.path()).stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut lines = recorder.lines().map(Result::unwrap);
        assert_eq!([lines.next(), lines.next(), lines.next()].map(Option::unwrap), ["1", "1", "0"]);
        match signal {
            Some(signal) => recorder.signal(signal),
            None => drop(recorder.0.stdin.take()),
        }
        recorder.wait();
        let tree = place.path().join("parameters");
        wait_until("its tree is gone", || !tree.try_exists().unwrap_or(true));
        drop(lines);
        fs::remove_dir_all(place.path().join("trace")).unwrap();
    }
}

#[test]
fn klog_4_tree_of_a_recorder_that_cannot_start_is_gone() {
    if !can_run() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (trace, tree) = (path("trace"), path("parameters"));
    let options = ["record", "--schema", "scheduler", "-o", &trace, "--parameters", &tree];
    mete(&[&options[..], &["--", "/nowhere/program"]].concat()).assert().code(1);
    assert!(!Path::new(&tree).exists() && !Path::new(&trace).exists());
    fs::create_dir(&tree).unwrap();
    fs::write(path("parameters/file"), "").unwrap();
    let refused = mete(&[&options[..], &["--", "true"]].concat()).assert().code(1);
    let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(said.contains("parameters is not empty, and what is in it would be hidden"), "{said}");
    assert!(!Path::new(&trace).exists());
}

#[test]
fn klog_4_refusal_is_an_error_of_the_writer_and_a_sentence() {
    if !can_run() {
        return;
    }
    let mut recorder = Recorder::start(&[]);
    let error = |name: &str, value: &str| recorder.set(name, value).unwrap_err().raw_os_error();
    for (name, value, why) in [
        ("enable", "2", "it takes 0 or 1"),
        ("SCHEDIN", "on", "it takes 0 or 1"),
        ("lowwater", "100", "it takes a percentage from 1 to 99"),
        ("dump", "1", "everything is in the trace already; only mete record --keep has something to dump"),
    ] {
        assert_eq!(error(name, value), Some(libc::EINVAL), "{name}");
        let expected = format!("refused: {name}={value}: {why}");
        assert!(recorder.get("status").lines().any(|line| line == expected), "{}", recorder.get("status"));
    }
    assert_eq!(error("status", "1"), Some(libc::EACCES));
    assert_eq!(error("nothing", "1"), Some(libc::ENOENT));
    assert_eq!(fs::read(recorder.file("dump")).unwrap_err().raw_os_error(), Some(libc::EACCES));
    assert_eq!((recorder.get("enable"), recorder.get("lowwater")), ("1".into(), "10".into()));
    recorder.end();
}

#[test]
fn klog_4_nobody_but_the_recorders_user_may_look() {
    if !can_run() {
        return;
    }
    let mut recorder = Recorder::start(&[]);
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(recorder.tree()), 0o700);
    let modes = ["enable", "SCHEDIN", "status", "dump"].map(|name| mode(recorder.file(name)));
    assert_eq!(modes, [0o600, 0o600, 0o400, 0o200]);
    // The directory above is the user's own, too.
    fs::set_permissions(recorder.place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let read = |uid: u32| {
        let mut command = Command::new("cat");
        command.arg(recorder.file("enable")).uid(uid).stderr(Stdio::null()).output().unwrap().status.success()
    };
    assert!(read(0) && !read(65534));
    recorder.end();
}

#[test]
fn klog_4_parameters_are_set_and_got_by_commands() {
    if !can_run() {
        return;
    }
    let mut recorder = Recorder::start(&["--events", "SCHEDIN,FORK", "--low-water", "20"]);
    let which = recorder.place.path().join("trace").to_str().unwrap().to_owned();
    let get = |names: &[&str]| {
        let got = mete(&[&["get", "--recorder", &which], names].concat()).assert().success();
        String::from_utf8_lossy(&got.get_output().stdout).into_owned()
    };
    let set = |assignments: &[&str]| mete(&[&["set", "--recorder", &which], assignments].concat()).assert();
    let off =
        "TRY_TO_WAKEUP=0\nADD_TO_RUNQ=0\nREMOVE_FROM_RUNQ=0\nSCHEDOUT=0\nSCHEDIN=1\nFORK=1\nEXEC=0\nEXIT=0\n";
    assert_eq!(get(&[]), format!("enable=1\nbuffer_size=4\nlowwater=20\nbenchmark_iterations=1000\n{off}"));
    set(&["SCHEDIN=0", "EXIT=1", "lowwater=33"]).success();
    assert_eq!(get(&["SCHEDIN", "EXIT", "lowwater"]), "SCHEDIN=0\nEXIT=1\nlowwater=33\n");
    assert!(get(&["status"]).contains("events: FORK EXIT\n"));
    let said = |assert: assert_cmd::assert::Assert| {
        String::from_utf8_lossy(&assert.get_output().stderr).into_owned()
    };
    let refused = said(set(&["lowwater=0", "enable=0"]).code(1));
    assert_eq!(refused, "mete: cannot set lowwater=0: it takes a percentage from 1 to 99\n");
    assert_eq!(recorder.get("enable"), "1", "nothing is set behind a refusal");
    let unknown = said(set(&["SCHEDN=0"]).code(1));
    assert!(unknown.contains("there is no parameter \"SCHEDN\"; did you mean `SCHEDIN`?"), "{unknown}");
    said(set(&["enable"]).code(2));
    let json =
        mete(&["get", "--json", "-r", &recorder.process.pid().to_string(), "enable"]).assert().success();
    let object: Value = serde_json::from_slice(&json.get_output().stdout).unwrap();
    assert_described(std::slice::from_ref(&object));
    assert_eq!(object, serde_json::json!({"kind": "parameter", "name": "enable", "value": "1"}));
    let other = said(mete(&["get", "--recorder", "/nowhere"]).assert().code(1));
    assert!(other.contains("no recorder is called /nowhere"), "{other}");
    recorder.end();
}

/// KLogger §4.4: what logging an event costs is in a file, and is measured when it is read.
#[test]
fn klog_4_cost_of_an_event_is_measured_when_its_file_is_read() {
    if !can_run() {
        return;
    }
    let mut recorder = Recorder::start(&["--off"]);
    let events = fs::read_dir(recorder.file("benchmarks")).unwrap();
    let names: Vec<_> = events.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names.len(), 8);
    assert_eq!(recorder.get("benchmark_iterations"), "1000");
    recorder.set("benchmark_iterations", "100000").unwrap();
    for name in names {
        let cost_ns: u64 = recorder.get(&format!("benchmarks/{name}")).parse().unwrap();
        assert!(cost_ns > 0, "{name}");
    }
    assert_eq!(recorder.set("benchmark_iterations", "0").unwrap_err().raw_os_error(), Some(libc::EINVAL));
    assert_eq!(recorder.set("benchmarks/EXIT", "1").unwrap_err().raw_os_error(), Some(libc::EACCES));
    let events = recorder.end();
    assert!(events.iter().all(|event| event["event"] == "SWITCHED_OFF"), "nothing of it is in the trace");
}

/// KLogger §4.3: another number in the file gives each processor another buffer, and what is recorded goes on.
#[test]
fn klog_4_buffers_get_another_size_while_recording() {
    if !can_run() {
        return;
    }
    let mut recorder = Recorder::start(&["--buffer", "64K"]);
    assert_eq!(recorder.get("buffer_size"), "64K");
    let run = || assert!(Command::new("true").status().unwrap().success());
    for (value, shown) in [("2", "2"), ("512K", "512K"), ("8M", "8")] {
        run();
        recorder.set("buffer_size", value).unwrap();
        assert_eq!((recorder.get("buffer_size"), recorder.links().len()), (shown.into(), 7));
    }
    run();
    for value in ["3", "0", "1K", "1G", "much"] {
        assert_eq!(
            recorder.set("buffer_size", value).unwrap_err().raw_os_error(),
            Some(libc::EINVAL),
            "{value}"
        );
    }
    assert_eq!(recorder.get("enable"), "1");
    let events = recorder.end();
    let runs = named(&events, "EXEC").into_iter().filter(|event| event["fields"]["name"] == "true").count();
    assert!(runs >= 4, "before, between and after: {runs}");
    let processors = files(&recorder.place.path().join("trace"));
    let marks = ["SWITCHED_OFF", "SWITCHED_ON"].map(|name| named(&events, name).len());
    assert_eq!(marks, [3 * 8 * processors; 2], "all is off meanwhile");
}

#[test]
fn klog_4_where_there_is_no_fuse_one_sentence_says_so() {
    if !kernel_is_there() {
        return;
    }
    // The devices are this process's own and end with it.
    const WITHOUT: &str =
        "mount -t tmpfs none /dev && mknod /dev/null c 1 3 && mknod /dev/urandom c 1 9 && exec \"$@\"";
    let without = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", WITHOUT, "sh"]).args(arguments).output().unwrap()
    };
    if !without(&["true"]).status.success() {
        return eprintln!("SKIPPED: this may not have devices of its own");
    }
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (trace, tree) = (path("trace"), path("parameters"));
    let mete = env!("CARGO_BIN_EXE_mete");
    let output = without(&[mete, "record", "--schema", "scheduler", "-o", &trace, "--parameters", &tree]);
    let said = String::from_utf8(output.stderr).unwrap();
    let expected = "mete: there is no /dev/fuse here, so parameters cannot be files: modprobe fuse, or pass /dev/fuse into the container\n";
    assert_eq!((output.status.code(), said.as_str()), (Some(1), expected));
    assert!(place.path().read_dir().unwrap().next().is_none(), "neither trace nor directory is left");
}

#[test]
fn klog_4_low_water_mark_is_set_at_first_and_later_and_outlasts_the_buffers() {
    if !can_run() {
        return;
    }
    let mut recorder = Recorder::start(&["--low-water", "40"]);
    assert_eq!(recorder.get("lowwater"), "40");
    recorder.set("lowwater", "75").unwrap();
    recorder.set("buffer_size", "1").unwrap();
    assert_eq!(recorder.get("lowwater"), "75", "other buffers have it, too");
    recorder.end();
    let description = fs::read(recorder.place.path().join("trace/description.json")).unwrap();
    let description: Value = serde_json::from_slice(&description).unwrap();
    assert_eq!(description["circumstances"]["low_water_percent"], 40, "as it began");
}
