//! What the tests share: the scheduler as they start it, and groups with processes in them.

#![allow(dead_code, reason = "each test uses a part")]

pub mod cost;
pub mod dice;
pub mod ruler;

use std::fmt::Debug;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::thread::sleep;
use std::time::{Duration, Instant};

use mete_ext::{Ended, ExtError, GroupScheduler};
use mete_kernel::KernelError;
use rustix::process::setpriority_process;

/// A program that computes until it is ended.
pub const HOG: &str = env!("CARGO_BIN_EXE_mete-ext-hog");
pub const SLEEPER: &str = env!("CARGO_BIN_EXE_mete-ext-sleeper");
const SERVER: &str = env!("CARGO_BIN_EXE_mete-ext-server");

/// One scheduler at a time: that of a test of its own, or the one that tests have together.
static ALONE: Mutex<Option<GroupScheduler>> = Mutex::new(None);

/// What a test holds while a scheduler of its own rules.
pub type Alone = MutexGuard<'static, Option<GroupScheduler>>;

fn alone() -> Alone {
    ALONE.lock().unwrap_or_else(|poisoned| {
        ALONE.clear_poison();
        let mut alone = poisoned.into_inner();
        // The test that failed may have left it in any state.
        *alone = None;
        alone
    })
}

/// The scheduler that tests have together, which rules: its programs are checked by the kernel once, which takes an emulated
/// machine longer than most tests.
pub struct Ruling(Alone);

impl Deref for Ruling {
    type Target = GroupScheduler;

    fn deref(&self) -> &GroupScheduler {
        self.0.as_ref().expect("it was started")
    }
}

/// A scheduler that ruled before, as a rule, for tests that change nothing of it. `None` where this test cannot run, with
/// the reason printed.
pub fn ruling(test: &str) -> Option<Ruling> {
    let alone = alone();
    if alone.as_ref().is_some_and(|scheduler| scheduler.status().ended.is_none()) {
        return Some(Ruling(alone));
    }
    drop(alone);
    let (scheduler, mut alone) = start(test)?;
    *alone = Some(scheduler);
    Some(Ruling(alone))
}

/// A scheduler that rules; `None` where this test cannot run, with the reason printed.
pub fn start(test: &str) -> Option<(GroupScheduler, Alone)> {
    start_with(test, GroupScheduler::start)
}

/// The same for any scheduler.
pub fn start_with<S>(test: &str, start: impl FnOnce() -> Result<S, ExtError>) -> Option<(S, Alone)> {
    let mut alone = alone();
    *alone = None;
    // Not as a new file, where another file system is mounted there.
    let control = OpenOptions::new().write(true).open("/sys/fs/cgroup/cgroup.subtree_control");
    if let Err(reason) = control.and_then(|mut control| control.write_all(b"+cpu")) {
        println!("SKIPPED: {test}: no cgroup v2 with the controller of processors: {reason}");
        return None;
    }
    match start() {
        Ok(scheduler) => Some((scheduler, alone)),
        // Where there is sched_ext, a refusal is a fault, but for that of a user who is not root.
        Err(error @ (ExtError::Absent | ExtError::Load(KernelError::Privilege { .. }))) => {
            println!("SKIPPED: {test}: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Groups have the weights from before the scheduler began, as well as those from after it: the kernel does not tell it of the
/// former as it does of the latter.
pub fn assert_weights_from_before<S>(
    test: &str,
    begin: impl FnOnce() -> Result<S, ExtError>,
    ended: impl Fn(&S) -> Option<Ended>,
) {
    // Before groups are made for it.
    if !Path::new("/sys/kernel/sched_ext").exists() {
        println!("SKIPPED: {test}: no sched_ext");
        return;
    }
    let mut before = None;
    let start = || {
        before = Some([300, 100].map(|weight| Group::top(&format!("mete-before-{weight}"), weight)));
        begin()
    };
    let Some((scheduler, _alone)) = start_with(test, start) else { return };
    let [heavy, light] = before.unwrap().map(|group| group.hogs(1, Some(0)));
    assert_shares(&[&heavy, &light], &[750, 250], 10, || ended(&scheduler));
    let after = Group::top("mete-after", 100).hogs(1, Some(0));
    assert_shares(&[&heavy, &light, &after], &[600, 200, 200], 10, || ended(&scheduler));
    assert_eq!(ended(&scheduler), None);
}

/// Reads several accounts in so little time that they tell of the same stretch: the test, too, may wait for a
/// processor.
pub fn at_once<T>(read: impl Fn() -> T) -> T {
    const LITTLE: Duration = Duration::from_millis(100);
    for _ in 0..100 {
        let begin = Instant::now();
        let found = read();
        if begin.elapsed() < LITTLE {
            return found;
        }
    }
    panic!("in 100 tries, reading always took {LITTLE:?}");
}

/// Has this thread wait less where many others compute, so that it reads several accounts at once.
pub fn go_ahead() {
    setpriority_process(None, -20).unwrap();
}

/// Asserts what each group uses, as thousandths of what all use together, to that many thousandths.
///
/// Where one of the emulated processors stands still for long, a task runs on for as long, and the shares of
/// such a stretch of time are no fault of the policy's. So one of some stretches has to be right; a policy that
/// is wrong is wrong in each.
pub fn assert_shares<S: Debug>(
    groups: &[&Group],
    expected: &[u64],
    thousandths: u64,
    status: impl Fn() -> S,
) {
    groups.iter().for_each(|group| wait_for_hogs(group));
    let mut told = Vec::new();
    for _ in 0..4 {
        let found = shares(groups);
        if within(thousandths, &found, expected) {
            println!("{found:?}, {:?}", status());
            return;
        }
        told.push(found);
    }
    panic!("{told:?} and not {expected:?}, {:?}", status());
}

/// The shares over enough time that a few quanta do not matter.
fn shares(groups: &[&Group]) -> Vec<u64> {
    let read = || groups.iter().map(|group| group.used()).collect::<Vec<_>>();
    let before = at_once(read);
    sleep(Duration::from_secs(5));
    let used: Vec<u64> =
        at_once(read).into_iter().zip(before).map(|(after, before)| after - before).collect();
    let all: u64 = used.iter().sum();
    used.iter().map(|used| used * 1000 / all.max(1)).collect()
}

/// Whether shares are as expected, to that many thousandths.
pub fn within(thousandths: u64, found: &[u64], expected: &[u64]) -> bool {
    found.len() == expected.len()
        && found.iter().zip(expected).all(|(found, expected)| found.abs_diff(*expected) <= thousandths)
}

/// How late a task of a group runs that sleeps and computes in turn on the first processor: in the middle,
/// and what a hundredth of its waits exceed, in microseconds.
pub fn lateness_in(group: &Group, rounds: u32) -> (u64, u64) {
    lateness_of(sleeper_in(group, &rounds.to_string()))
}

/// Starts such a task, with these arguments.
pub fn sleeper_in(group: &Group, arguments: &str) -> Child {
    start_in(group, &format!("{SLEEPER} {arguments}"))
}

/// How long requests wait that find a server of a group asleep, or take that read from a device, beside a hog of its own and three
/// other groups with a hog each, on the first processor: in the middle, what a twentieth of the waits exceed, in microseconds, and how
/// many they were.
pub fn waits_of_requests(device: &str) -> [u64; 3] {
    let own = Group::top("mete-server", 100).hogs(1, Some(0));
    let others: Vec<_> =
        (0..3).map(|nth| Group::top(&format!("mete-hog-{nth}"), 100).hogs(1, Some(0))).collect();
    [&own].into_iter().chain(&others).for_each(wait_for_hogs);
    let server = start_in(&own, &format!("{SERVER} 20 {device}"));
    let said = String::from_utf8(server.wait_with_output().unwrap().stdout).unwrap();
    let numbers: Vec<_> = said.split_whitespace().map(|number| number.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

/// Starts a program of a group on the first processor.
fn start_in(group: &Group, program: &str) -> Child {
    let script = format!("echo $$ >{}/cgroup.procs && exec taskset -c 0 {program}", group.path.display());
    Command::new("sh").arg("-c").arg(script).stdout(Stdio::piped()).spawn().unwrap()
}

/// What it says at its end.
pub fn lateness_of(sleeper: Child) -> (u64, u64) {
    let text = String::from_utf8(sleeper.wait_with_output().unwrap().stdout).unwrap();
    let mut numbers = text.split_whitespace().map(|number| number.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

/// A cgroup of this test, and the processes that it has put into it.
pub struct Group {
    pub path: PathBuf,
    pub members: Vec<Child>,
}

impl Group {
    pub fn new(parent: &Path, name: &str, weight: u32) -> Group {
        let path = parent.join(name);
        fs::create_dir(&path).unwrap();
        let group = Group { path, members: Vec::new() };
        group.set_weight(weight);
        group
    }

    pub fn top(name: &str, weight: u32) -> Group {
        Group::new(Path::new("/sys/fs/cgroup"), name, weight)
    }

    pub fn set_weight(&self, weight: u32) {
        fs::write(self.path.join("cpu.weight"), weight.to_string()).unwrap();
    }

    /// Starts processes that compute, on one processor if it is named; they end by themselves after some
    /// minutes.
    pub fn hogs(mut self, number: u32, processor: Option<u32>) -> Group {
        self.add_hogs(number, processor);
        self
    }

    pub fn add_hogs(&mut self, number: u32, processor: Option<u32>) {
        let pinned = processor.map_or_else(String::new, |processor| format!("taskset -c {processor} "));
        for _ in 0..number {
            let procs = self.path.join("cgroup.procs");
            let script = format!("echo $$ >{} && exec {pinned}timeout 600 '{HOG}'", procs.display());
            self.members.push(Command::new("sh").arg("-c").arg(script).spawn().unwrap());
        }
    }

    /// Processor time that its members have used, in microseconds.
    pub fn used(&self) -> u64 {
        let text = fs::read_to_string(self.path.join("cpu.stat")).unwrap();
        text.lines().find_map(|line| line.strip_prefix("usage_usec ")).unwrap().parse().unwrap()
    }

    /// Ends all processes in it.
    pub fn kill(&self) {
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
    }

    pub fn processes(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.path.join("cgroup.procs")).unwrap();
        text.lines().map(|line| line.parse().unwrap()).collect()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        self.members.iter_mut().for_each(|member| drop(member.wait()));
        // Those that members had started are waited for by the first process.
        let begin = Instant::now();
        while fs::remove_dir(&self.path).is_err() && begin.elapsed() < Duration::from_secs(60) {
            sleep(Duration::from_millis(100));
        }
    }
}

/// Whether a process is a hog, and not what has become one or is to start it.
pub fn computes(process: u32) -> bool {
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    line == [HOG.as_bytes(), b"\0"].concat()
}

/// Waits until each hog of a group computes: it has come to its last program, and to the processor that it is
/// pinned to.
pub fn wait_for_hogs(group: &Group) {
    let begin = Instant::now();
    while group.processes().into_iter().filter(|process| computes(*process)).count() < group.members.len() {
        assert!(begin.elapsed() < Duration::from_secs(300), "the hogs do not start");
        sleep(Duration::from_millis(100));
    }
}
