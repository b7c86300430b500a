//! Parameters of a running recorder, as files and by `mete set` and `mete get` (KLOG-4).

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::common::{
    self, Running, SCHEDULER_PROGRAMS, assert_described, bpf_link_exists, bpf_links, copy_program, events,
    fuse_is_there, is_root, kernel_is_there, mete, objects, printed_by, program, said_by, says, stdout,
    wait_until,
};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_string, fsmount, fsopen, mount_change, move_mount,
};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, setrlimit};
use serde_json::Value;

/// A recorder of the scheduler's events, with its trace and its parameters.
struct Recorder {
    place: tempfile::TempDir,
    process: Running,
}

impl Recorder {
    /// Starts it; `None` if the kernel cannot be recorded here, or parameters cannot be files.
    fn start(options: &[&str]) -> Option<Recorder> {
        Recorder::start_by(options, |_, _| ())
    }

    /// As [`Recorder::start`], with a command that may still be changed, for which there is a directory.
    fn start_by(options: &[&str], change: impl FnOnce(&Path, &mut Command)) -> Option<Recorder> {
        if !can_run() {
            return None;
        }
        let place = tempfile::tempdir().unwrap();
        let mut command = program(&["record", "--schema", "scheduler", "-o"]);
        command.arg(place.path().join("trace")).arg("--parameters").arg(place.path().join("parameters"));
        // SAFETY: one system call between fork and exec.
        unsafe {
            command.pre_exec(|| Ok(setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?))
        };
        change(place.path(), command.args(options).stdout(Stdio::null()));
        let process = Running::start(&mut command);
        let recorder = Recorder { place, process };
        wait_until("its parameters are there", || recorder.file("status").exists());
        Some(recorder)
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

    /// What its tree is called in the mount table.
    fn source(&self) -> String {
        let table = fs::read_to_string("/proc/thread-self/mountinfo").unwrap();
        let begin = format!("mete:{}:", self.process.pid());
        table.split_whitespace().find(|word| word.starts_with(&begin)).unwrap().to_owned()
    }

    fn is_mounted(&self) -> bool {
        let table = fs::read_to_string("/proc/thread-self/mountinfo").unwrap();
        table.contains(&format!(" mete:{}:", self.process.pid()))
    }

    /// Ends it in order. Returns the events of its trace.
    fn end(&mut self) -> Vec<Value> {
        self.stop();
        events(&self.place.path().join("trace"))
    }

    /// Ends it in order. Returns the events of this name in its trace, and the number of all events that the
    /// trace says are missing.
    fn end_with(&mut self, event: &str) -> (Vec<Value>, u64) {
        self.stop();
        let trace = self.place.path().join("trace");
        let objects = objects(&stdout(&["show", trace.to_str().unwrap(), "--event", event, "--json"]));
        let sum = |kind: &str, field: &str| {
            let of_kind = objects.iter().filter(|object| object["kind"] == kind);
            of_kind.map(|object| object[field].as_u64().unwrap()).sum::<u64>()
        };
        let missing = sum("completeness", "lost") + sum("missed_runs", "runs");
        (objects.into_iter().filter(|object| object["kind"] == "event").collect(), missing)
    }

    fn stop(&mut self) {
        self.process.signal(Signal::INT);
        assert!(self.process.wait().code().is_some());
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
    let Some(mut recorder) = Recorder::start(&["--off"]) else { return };
    assert_eq!((recorder.links().len(), recorder.get("enable")), (0, "0".into()));
    recorder.set("enable", "1").unwrap();
    assert_eq!((recorder.links().len(), recorder.get("enable")), (SCHEDULER_PROGRAMS, "1".into()));
    recorder.set("EXEC", "0").unwrap();
    assert_eq!(recorder.links().len(), SCHEDULER_PROGRAMS - 1, "it had a place of its own");
    for event in ["SCHEDIN", "SCHEDOUT", "EXIT"] {
        recorder.set(event, "0").unwrap();
        assert_eq!(recorder.links().len(), SCHEDULER_PROGRAMS - 1, "the place has other events");
    }
    recorder.set("REMOVE_FROM_RUNQ", "0").unwrap();
    assert_eq!(recorder.links().len(), SCHEDULER_PROGRAMS - 2, "it has none any more");
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
    assert_eq!(recorder.links().len(), SCHEDULER_PROGRAMS - 2);
    recorder.end();
}

#[test]
fn klog_4_event_is_switched_off_and_on_beside_others_of_its_place() {
    let Some(mut recorder) = Recorder::start(&[]) else { return };
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

/// A value is in effect when the write returns: not one event is missing, and there is not one too many.
#[test]
fn klog_4_all_that_happens_while_an_event_is_on_is_recorded_and_nothing_else() {
    const ROUNDS: usize = 20;
    let Some(mut recorder) = Recorder::start(&["--off", "--buffer", "1M"]) else { return };
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
    let (events, missing) = recorder.end_with("EXEC");
    let runs =
        |name: &str| named(&events, "EXEC").iter().filter(|event| event["fields"]["name"] == name).count();
    let (on, off) = (runs("mete-is-on"), runs("mete-is-off"));
    // On a busy machine the smaller buffer may be full, and then the trace says so.
    let has_all = on <= 3 * ROUNDS && on as u64 + missing >= 3 * ROUNDS as u64;
    assert!(has_all && off == 0, "{on} while it was on, {off} while it was off, {missing} missing");
}

/// This holds also while a process has a file of the tree open.
#[test]
fn klog_4_no_tree_outlives_its_recorder() {
    if !can_run() {
        return;
    }
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::ABORT, Signal::KILL] {
        let mut recorder = Recorder::start(&[]).unwrap();
        let (links, open) = (recorder.links(), File::open(recorder.file("enable")).unwrap());
        assert!(recorder.is_mounted() && links.len() >= SCHEDULER_PROGRAMS);
        recorder.process.signal(signal);
        recorder.process.wait();
        wait_until("it is unmounted", || !recorder.is_mounted());
        wait_until("its directory is gone", || !recorder.tree().exists());
        wait_until("the kernel has let go", || !links.iter().any(|link| bpf_link_exists(*link)));
        assert!(io::read_to_string(&open).is_err(), "{signal:?}: no recorder answers any more");
        let trace = recorder.place.path().join("trace");
        mete(&["show", trace.to_str().unwrap()]).assert().success();
    }
}

/// Neither the recorder nor a process that asks waits for an answer that does not come.
#[test]
fn klog_4_recorder_ends_in_order_while_many_ask() {
    const ASK: &str = "\
        while cat status SCHEDIN && echo 0 > enable && echo 1 > enable; do : > \"../asked-$0\"; done";
    if !can_run() {
        return;
    }
    for signal in [Signal::INT, Signal::KILL] {
        let mut recorder = Recorder::start(&[]).unwrap();
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

/// The processes that would take a recorder's tree away: those of that name that have its mount's source
/// among their arguments.
fn keepers_of(recorder: u32) -> Vec<Pid> {
    let of_it = |pid: &u32| {
        let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let arguments = read("cmdline");
        let source = format!("mete:{recorder}:");
        read("comm").starts_with(b"mete-keeper")
            && arguments.split(|byte| *byte == 0).any(|word| word.starts_with(source.as_bytes()))
    };
    let names = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name());
    let pids = names.filter_map(|name| name.to_str()?.parse().ok()).filter(of_it);
    pids.map(|pid| Pid::from_raw(pid as i32).unwrap()).collect()
}

fn kill_all(pids: &[Pid]) {
    // A keeper may have ended together with another one, so an error is no failure.
    pids.iter().for_each(|pid| {
        let _ = kill_process(*pid, Signal::KILL);
    });
}

/// The first keeper, the second one, and that one's parent.
const KEEPERS: usize = 3;

#[test]
fn klog_4_a_keeper_that_ends_is_replaced_at_once_and_knows_the_mount() {
    let Some(mut recorder) = Recorder::start(&[]) else { return };
    for _ in 0..2 {
        let before = keepers_of(recorder.process.pid());
        kill_all(&before);
        wait_until("others are there", || {
            let now = keepers_of(recorder.process.pid());
            now.len() == KEEPERS && !now.iter().any(|pid| before.contains(pid))
        });
    }
    assert_eq!(recorder.get("enable"), "1");
    recorder.process.signal(Signal::KILL);
    recorder.process.wait();
    wait_until("it is unmounted", || !recorder.is_mounted());
    wait_until("its directory is gone", || !recorder.tree().exists());
    wait_until("the keepers are gone", || keepers_of(recorder.process.pid()).is_empty());
}

#[test]
fn klog_4_dead_tree_of_a_recorder_and_keepers_killed_together_is_taken_away_by_the_next_command() {
    if !is_root() || !can_run() {
        return;
    }
    have_own_mounts();
    let recorder = killed_with_its_keepers();
    assert!(recorder.is_mounted());
    let mut doctor = mete(&["doctor"]);
    let doctor = doctor.env("METE_RUNTIME_DIR", recorder.place.path()).assert().success();
    says(&doctor, &format!("{} is unmounted now", recorder.tree().display()));
    assert!(!recorder.is_mounted() && !recorder.tree().exists());
}

/// Gives this thread, and the processes that it starts, a table of mounts in which no other test's commands
/// look. Only root may do that.
fn have_own_mounts() {
    // SAFETY: no memory is passed. Files stay open, and the other threads keep their table of mounts.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNS) }, 0, "{}", io::Error::last_os_error());
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE).unwrap();
}

/// A recorder that was stopped, so that it has started no other keepers in place of those that were killed.
/// Its notes are where only this test's commands look: another command of this user would remove the noted
/// directory, and with it what is mounted there, in whichever namespace.
fn killed_with_its_keepers() -> Recorder {
    let notes_beside = |place: &Path, command: &mut Command| {
        command.env("METE_RUNTIME_DIR", place);
    };
    let mut recorder = Recorder::start_by(&[], notes_beside).unwrap();
    // On a busy machine the last one may begin late. It would undo the mount after the others were killed.
    wait_until("its keepers are there", || keepers_of(recorder.process.pid()).len() == KEEPERS);
    recorder.process.signal(Signal::STOP);
    wait_until("it stands still", || common::is_stopped(recorder.process.pid()));
    kill_all(&keepers_of(recorder.process.pid()));
    wait_until("the keepers are gone", || keepers_of(recorder.process.pid()).is_empty());
    recorder.process.signal(Signal::KILL);
    recorder.process.wait();
    recorder
}

/// What another user can do against a recorder of root: make a tree with the name of the recorder's tree, and
/// a directory that becomes a link to another mount between two looks.
struct Forger {
    place: tempfile::TempDir,
    /// The tree ends when this is closed.
    _device: OwnedFd,
    is_over: Arc<AtomicBool>,
    swaps: Option<JoinHandle<u64>>,
}

impl Forger {
    const NOBODY: u32 = 65534;

    /// The kernel lets only root say which user mounts, so root mounts what that user could.
    fn start(source: &str) -> Forger {
        let place = tempfile::tempdir().unwrap();
        for directory in ["swapped/tree", "victims/tree"] {
            fs::create_dir_all(place.path().join(directory)).unwrap();
        }
        symlink(place.path().join("victims"), place.path().join("link")).unwrap();
        let device = OwnedFd::from(File::options().read(true).write(true).open("/dev/fuse").unwrap());
        let context = fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC).unwrap();
        let number = device.as_raw_fd().to_string();
        let user = Forger::NOBODY.to_string();
        let options = [
            ("source", source),
            ("fd", &number),
            ("rootmode", "40700"),
            ("user_id", &user),
            ("group_id", &user),
        ];
        options.iter().for_each(|(name, value)| fsconfig_set_string(&context, *name, *value).unwrap());
        fsconfig_create(&context).unwrap();
        mount_at(&context, &place.path().join("swapped/tree"));
        let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).unwrap();
        fsconfig_create(&context).unwrap();
        mount_at(&context, &place.path().join("victims/tree"));
        let is_over = Arc::new(AtomicBool::new(false));
        let swaps = {
            let (is_over, place) = (is_over.clone(), place.path().to_owned());
            thread::spawn(move || swap_until(&is_over, &place))
        };
        Forger { place, _device: device, is_over, swaps: Some(swaps) }
    }

    /// How often the directory was swapped for the link.
    fn stop(&mut self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        self.swaps.take().map_or(0, |swaps| swaps.join().unwrap())
    }

    /// The number of mounts that are there, of two.
    fn mounts(&self) -> usize {
        let table = fs::read_to_string("/proc/thread-self/mountinfo").unwrap();
        table.matches(&format!(" {}/", self.place.path().display())).count()
    }
}

impl Drop for Forger {
    fn drop(&mut self) {
        self.stop();
        for directory in ["swapped/tree", "link/tree", "victims/tree"] {
            let _ = rustix::mount::unmount(self.place.path().join(directory), UnmountFlags::DETACH);
        }
    }
}

fn mount_at(context: &OwnedFd, path: &Path) {
    let root = fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty()).unwrap();
    move_mount(&root, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH).unwrap();
}

fn swap_until(is_over: &AtomicBool, place: &Path) -> u64 {
    let mut swaps = 0;
    while !is_over.load(Ordering::Relaxed) {
        renameat_with(CWD, place.join("swapped"), CWD, place.join("link"), RenameFlags::EXCHANGE).unwrap();
        swaps += 1;
    }
    swaps
}

#[test]
fn klog_4_mounts_of_others_are_left_alone_however_they_are_called() {
    if !is_root() || !can_run() {
        return;
    }
    have_own_mounts();
    for signal in [Signal::INT, Signal::KILL, Signal::STOP] {
        let mut recorder = Recorder::start(&[]).unwrap();
        let mut forger = Forger::start(&recorder.source());
        let get = mete(&["get", "--recorder", &recorder.process.pid().to_string(), "enable"]);
        assert_eq!(String::from_utf8_lossy(&{ get }.assert().success().get_output().stdout), "enable=1\n");
        recorder.process.signal(signal);
        if signal == Signal::STOP {
            // With its keepers, so that the next one finds both trees of a process that has ended.
            kill_all(&keepers_of(recorder.process.pid()));
            wait_until("the keepers are gone", || keepers_of(recorder.process.pid()).is_empty());
            recorder.process.signal(Signal::KILL);
        }
        recorder.process.wait();
        let tree = recorder.tree();
        wait_until("it is unmounted", || {
            mete(&["doctor"]).assert().success();
            !is_mount(&tree)
        });
        let swaps = forger.stop();
        assert_eq!(forger.mounts(), 2, "{signal:?}: the forged one and the victim, after {swaps} swaps");
        mete(&["doctor"]).assert().success();
        assert_eq!(forger.mounts(), 2, "{signal:?}: nor where the path leads to the forged one");
        mete(&["get", "--recorder", &recorder.process.pid().to_string()]).assert().code(1);
    }
}

fn is_mount(path: &Path) -> bool {
    let table = fs::read_to_string("/proc/thread-self/mountinfo").unwrap();
    table.contains(&format!(" {} ", path.display()))
}

#[test]
fn klog_4_parameters_never_hide_the_sockets_of_programs() {
    if !can_run() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir(path("run")).unwrap();
    symlink(path("run"), path("link")).unwrap();
    for at in ["run/sockets", "run", "link/sockets", "run/sockets/.", "link/../run/sockets"] {
        let options = ["record", "--schema", "scheduler", "-o", &path("trace"), "--parameters", &path(at)];
        let mut refused = mete(&[&options[..], &["--", "true"]].concat());
        let said = said_by(&refused.env("METE_RUNTIME_DIR", path("run/sockets")).assert().code(1));
        // Before it, the command may say that it has cleared up after a recorder that another test has
        // killed.
        assert!(said.contains("mete: programs with probes have their sockets in "), "{at}: {said}");
        assert!(!Path::new(&path("trace")).exists(), "{at}: nothing is recorded");
    }
    let beside = path("run/mete-parameters");
    let options = ["record", "--schema", "scheduler", "-o", &path("trace"), "--parameters", &beside];
    let command = ["--", "ls", &beside];
    let mut recorded = mete(&[&options[..], &command[..]].concat());
    recorded.env("METE_RUNTIME_DIR", path("run/sockets")).assert().success();
}

#[test]
fn klog_4_place_of_a_running_recorders_tree_is_refused() {
    let Some(mut recorder) = Recorder::start(&[]) else { return };
    let path = |name: &str| recorder.place.path().join(name).to_str().unwrap().to_owned();
    let options =
        ["record", "--schema", "scheduler", "-o", &path("second"), "--parameters", &path("parameters")];
    let said = said_by(&mete(&[&options[..], &["--", "true"]].concat()).assert().code(1));
    let expected = format!("mete: the parameters of process {} are at ", recorder.process.pid());
    assert!(said.starts_with(&expected), "{said}");
    assert_eq!(recorder.get("enable"), "1");
    recorder.end();
}

/// Whether ordinary users may mount. Says so if they may not.
fn others_may_mount() -> bool {
    let has_helper = Command::new("fusermount3").arg("-V").output().is_ok();
    let is_open = fs::metadata("/dev/fuse").is_ok_and(|found| found.permissions().mode() & 0o006 == 0o006);
    if !has_helper {
        eprintln!(
            "SKIPPED: there is no fusermount3 for the ordinary user; scripts/setup.sh mounts installs it"
        );
    } else if !is_open {
        eprintln!("SKIPPED: /dev/fuse is not open to ordinary users here");
    }
    has_helper && is_open
}

/// It is mounted by fusermount3. A schema without points needs no root.
#[test]
fn klog_4_ordinary_user_has_parameters_too() {
    const NOBODY: u32 = 65534;
    if !fuse_is_there() || !is_root() || !others_may_mount() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // The other user may not enter the directory in which the program was built.
    let program = place.path().join("mete");
    copy_program(env!("CARGO_BIN_EXE_mete"), &program);
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
    mete(&[&options[..], &["--", "/nowhere/program"]].concat()).assert().code(127);
    assert!(!Path::new(&tree).exists() && !Path::new(&trace).exists());
    fs::create_dir(&tree).unwrap();
    fs::write(path("parameters/file"), "").unwrap();
    says(
        &mete(&[&options[..], &["--", "true"]].concat()).assert().code(1),
        "parameters is not empty, and what is in it would be hidden",
    );
    assert!(!Path::new(&trace).exists());
}

#[test]
fn klog_4_refusal_is_an_error_of_the_writer_and_a_sentence() {
    let Some(mut recorder) = Recorder::start(&[]) else { return };
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
fn klog_4_only_the_recorders_user_may_look() {
    let Some(mut recorder) = Recorder::start(&[]) else { return };
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(recorder.tree()), 0o700);
    let modes = ["enable", "SCHEDIN", "status", "dump"].map(|name| mode(recorder.file(name)));
    assert_eq!(modes, [0o600, 0o600, 0o400, 0o200]);
    // The directory above belongs to the user, too.
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
    let Some(mut recorder) = Recorder::start(&["--events", "SCHEDIN,FORK", "--low-water", "20"]) else {
        return;
    };
    let which = recorder.place.path().join("trace").to_str().unwrap().to_owned();
    let get = |names: &[&str]| {
        let got = mete(&[&["get", "--recorder", &which], names].concat()).assert().success();
        printed_by(&got)
    };
    let set = |assignments: &[&str]| mete(&[&["set", "--recorder", &which], assignments].concat()).assert();
    let off =
        "TRY_TO_WAKEUP=0\nADD_TO_RUNQ=0\nREMOVE_FROM_RUNQ=0\nSCHEDOUT=0\nSCHEDIN=1\nFORK=1\nEXEC=0\nEXIT=0\n";
    assert_eq!(get(&[]), format!("enable=1\nbuffer_size=4\nlowwater=20\nbenchmark_iterations=1000\n{off}"));
    set(&["SCHEDIN=0", "EXIT=1", "lowwater=33"]).success();
    assert_eq!(get(&["SCHEDIN", "EXIT", "lowwater"]), "SCHEDIN=0\nEXIT=1\nlowwater=33\n");
    assert!(get(&["status"]).contains("events: FORK EXIT\n"));
    let said = |assert: assert_cmd::assert::Assert| said_by(&assert);
    let refused = said(set(&["lowwater=0", "enable=0"]).code(1));
    assert_eq!(refused, "mete: cannot set lowwater=0: it takes a percentage from 1 to 99\n");
    assert_eq!(recorder.get("enable"), "1", "nothing is set behind a refusal");
    let unknown = said(set(&["SCHEDN=0"]).code(1));
    assert!(unknown.contains("there is no parameter \"SCHEDN\"; did you mean `SCHEDIN`?"), "{unknown}");
    let several = said(mete(&["get", "-r", &which, "benchmarks"]).assert().code(1));
    assert!(several.starts_with("mete: benchmarks has several parameters: benchmarks/"), "{several}");
    assert!(several.contains(", benchmarks/"), "{several}");
    said(set(&["enable"]).code(2));
    let json =
        mete(&["get", "--json", "-r", &recorder.process.pid().to_string(), "enable"]).assert().success();
    let object: Value = serde_json::from_slice(&json.get_output().stdout).unwrap();
    assert_described(std::slice::from_ref(&object));
    assert_eq!(object, serde_json::json!({"kind": "parameter", "name": "enable", "value": "1"}));
    let other = said(mete(&["get", "--recorder", "/nowhere"]).assert().code(1));
    assert!(other.contains("none is called /nowhere"), "{other}");
    recorder.end();
}

/// KLogger §4.4: what logging an event costs is in a file, and is measured when it is read.
#[test]
fn klog_4_cost_of_an_event_is_measured_when_its_file_is_read() {
    let Some(mut recorder) = Recorder::start(&["--off"]) else { return };
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

/// KLogger §4.3: another number in the file gives each processor another buffer, and what is recorded goes
/// on.
#[test]
fn klog_4_buffers_get_another_size_while_recording() {
    let Some(mut recorder) = Recorder::start(&["--buffer", "64K"]) else { return };
    assert_eq!(recorder.get("buffer_size"), "64K");
    let run = || assert!(Command::new("true").status().unwrap().success());
    for (value, shown) in [("2", "2"), ("512K", "512K"), ("8M", "8")] {
        run();
        recorder.set("buffer_size", value).unwrap();
        assert_eq!((recorder.get("buffer_size"), recorder.links().len()), (shown.into(), SCHEDULER_PROGRAMS));
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
    let (execs, missing) = recorder.end_with("EXEC");
    let runs = execs.iter().filter(|event| event["fields"]["name"] == "true").count() as u64;
    // On a busy machine a program may miss its run, or 64 KiB fill too fast; what is missing is counted then.
    assert!(runs + missing >= 4, "before, between and after: {runs} are there, {missing} are missing");
    let events = events(&recorder.place.path().join("trace"));
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
    let Some(mut recorder) = Recorder::start(&["--low-water", "40"]) else { return };
    assert_eq!(recorder.get("lowwater"), "40");
    recorder.set("lowwater", "75").unwrap();
    recorder.set("buffer_size", "1").unwrap();
    assert_eq!(recorder.get("lowwater"), "75", "other buffers have it, too");
    recorder.end();
    let description = fs::read(recorder.place.path().join("trace/description.json")).unwrap();
    let description: Value = serde_json::from_slice(&description).unwrap();
    assert_eq!(description["circumstances"]["low_water_percent"], 40, "as it began");
}
