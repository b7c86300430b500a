//! What the tests share: processes that are dispatched, and a dispatcher in a process of its own.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use mete_sched::actuator::Class;
use mete_sched::domains::process::{self, Process};

pub const SUBJECT: &str = env!("CARGO_BIN_EXE_mete-dispatch-subject");
/// Long enough for a busy machine.
const LAST: Duration = Duration::from_secs(120);

/// One dispatcher at a time: each gives the rest of the machine a share.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a dispatcher can be here; if not, the reason is printed.
pub fn can_dispatch() -> bool {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: the dispatcher needs root");
        return false;
    }
    let has_types = Path::new("/sys/kernel/btf/vmlinux").exists();
    if !has_types {
        println!("SKIPPED: the dispatcher needs the kernel's type information");
    }
    has_types
}

/// Waits until something is so.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < LAST, "in vain: {what}");
        sleep(Duration::from_millis(5));
    }
}

/// Sends a signal to processes of the tests.
pub fn signal(pids: &[u32], signal: i32) {
    for pid in pids {
        // SAFETY: no memory is passed.
        unsafe { libc::kill(pid.cast_signed(), signal) };
    }
}

/// A process that speaks line by line, and ends with its input.
struct Talking {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Talking {
    fn start(command: &mut Command) -> Talking {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Talking { process, output }
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn ask(&mut self) -> String {
        self.say("")
    }

    fn say(&mut self, line: &str) -> String {
        writeln!(self.process.stdin.as_mut().unwrap(), "{line}").unwrap();
        self.hear()
    }
}

impl Drop for Talking {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// The first processor of this process.
fn first_processor() -> String {
    let mask = mete_sched::actuator::Mask::of_thread(std::process::id()).unwrap();
    mask.processors().next().unwrap().to_string()
}

/// A process that is dispatched.
pub struct Part(Talking);

impl Part {
    /// A part that runs on the first processor of this process.
    pub fn on_one_processor(arguments: &[&str]) -> Part {
        let mut command = Command::new("taskset");
        Part::start(command.args(["-c", &first_processor(), SUBJECT]).args(arguments))
    }

    /// The same in a session of its own, which the kernel may give a share of its own.
    pub fn in_a_session(arguments: &[&str]) -> Part {
        let mut command = Command::new("setsid");
        Part::start(command.args(["taskset", "-c", &first_processor(), SUBJECT]).args(arguments))
    }

    /// The same with an option of `chrt` for its class.
    pub fn of_class(class: &[&str], arguments: &[&str]) -> Part {
        let mut command = Command::new("chrt");
        Part::start(command.args(class).args(["taskset", "-c", &first_processor(), SUBJECT]).args(arguments))
    }

    /// One that may run on every processor of this process.
    pub fn anywhere(arguments: &[&str]) -> Part {
        Part::start(Command::new(SUBJECT).args(arguments))
    }

    /// Binds all of its threads, as another program might.
    pub fn bind_to_one_processor(&self) {
        let mut command = Command::new("taskset");
        command.args(["-a", "-c", "-p", &first_processor(), &self.pid().to_string()]);
        assert!(command.stdout(Stdio::null()).status().unwrap().success());
    }

    fn start(command: &mut Command) -> Part {
        let mut talking = Talking::start(command);
        assert_eq!(talking.hear(), "here");
        Part(talking)
    }

    pub fn pid(&self) -> u32 {
        self.0.process.id()
    }

    pub fn threads(&self) -> Vec<u32> {
        process::threads(self.pid())
    }

    /// The processor time of all its threads.
    pub fn ran(&self) -> Duration {
        let of_thread = |thread| {
            let text = fs::read_to_string(format!("/proc/{}/task/{thread}/schedstat", self.pid()))
                .unwrap_or_default();
            text.split(' ').next().and_then(|ran| ran.parse().ok()).unwrap_or(0)
        };
        Duration::from_nanos(self.threads().into_iter().map(of_thread).sum())
    }

    /// The processor time that it has used, with that of the processes that it has started and that have
    /// ended.
    pub fn ran_with_children(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        let behind_name = stat.rsplit(')').next().unwrap();
        // User and system time in ticks of 10 ms, its own and its children's.
        let ticks =
            behind_name.split_whitespace().skip(11).take(4).map(|ticks| ticks.parse::<u64>().unwrap());
        Duration::from_millis(10 * ticks.sum::<u64>())
    }

    /// The classes of its threads.
    pub fn classes(&self) -> Vec<Class> {
        self.threads().into_iter().filter_map(|thread| Class::of_thread(thread).ok()).collect()
    }

    /// The same, and those of the processes that it started.
    pub fn classes_with_children(&self) -> Vec<Class> {
        let children = process::processes().into_iter().filter_map(Process::read);
        let children = children.filter(|process| process.parent == self.pid());
        let theirs = children.filter_map(|child| Class::of_thread(child.pid).ok());
        self.classes().into_iter().chain(theirs).collect()
    }
}

/// A dispatcher in a process of its own.
pub struct Dispatching {
    talking: Talking,
    /// Its journals lie in a place of its own, so that it does not see another dispatcher of this user.
    _place: Option<tempfile::TempDir>,
}

impl Dispatching {
    pub fn start(policy: &str, rest: u32, domains: &[String]) -> Dispatching {
        let place = tempfile::tempdir().unwrap();
        let mut dispatching = Dispatching::start_in(place.path(), policy, rest, domains);
        dispatching._place = Some(place);
        dispatching
    }

    /// With its journals in this place.
    pub fn start_in(place: &Path, policy: &str, rest: u32, domains: &[String]) -> Dispatching {
        let mut command = Command::new(SUBJECT);
        command.env("METE_RUNTIME_DIR", place);
        let mut talking = Talking::start(command.args(["dispatch", policy, &rest.to_string()]).args(domains));
        assert_eq!(talking.hear(), "dispatching");
        Dispatching { talking, _place: None }
    }

    /// What the domains have used, in microseconds, in a stretch in which they used this much together.
    pub fn used_after(&mut self, together: Duration) -> Vec<f64> {
        let before = self.used();
        let begin = Instant::now();
        loop {
            let used: Vec<f64> = self.used().iter().zip(&before).map(|(now, before)| now - before).collect();
            if used.iter().sum::<f64>() >= together.as_micros() as f64 {
                return used;
            }
            assert!(begin.elapsed() < LAST, "the clients have no processor: {used:?}");
            sleep(Duration::from_millis(20));
        }
    }

    /// What the domains have used since it began, in microseconds.
    pub fn used(&mut self) -> Vec<f64> {
        let answer = self.talking.ask();
        answer.split(' ').map_while(|number| number.parse().ok()).collect()
    }

    /// Gives the domain at this place another weight.
    pub fn set_weight(&mut self, nth: usize, weight: u32) {
        self.talking.say(&format!("{nth} {weight}"));
    }

    /// One of its counts.
    pub fn counted(&mut self, what: &str) -> u64 {
        let answer = self.talking.ask();
        let (_, rest) = answer.split_once(&format!("{what}: ")).unwrap();
        rest.split(',').next().unwrap().parse().unwrap()
    }

    pub fn pid(&self) -> u32 {
        self.talking.process.id()
    }

    /// The processes that put back what it changed.
    pub fn watchers(&self) -> Vec<u32> {
        let mark = format!("/{}-", self.talking.process.id());
        let is_watcher = |pid: &u32| {
            let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            arguments.windows(mark.len()).any(|part| part == mark.as_bytes())
        };
        process::processes().into_iter().filter(is_watcher).collect()
    }

    pub fn kill(mut self) {
        self.talking.process.kill().unwrap();
    }

    /// Ends it, and says what it put back.
    pub fn end(mut self) -> String {
        drop(self.talking.process.stdin.take());
        self.talking.hear()
    }
}
