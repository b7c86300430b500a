//! Real processes, which need no rights for this: where the tests have root's, they give them up.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

const SUBJECT: &str = env!("CARGO_BIN_EXE_mete-pausing-subject");
/// Nobody.
const USER: u32 = 65_534;
/// For whatever takes a moment on an idle machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// One dispatcher of a user at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// A place that any user may use, and the program in it: not every user may go to where it was built.
struct Place {
    directory: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Place {
    fn new() -> Place {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = tempfile::tempdir_in("/tmp").unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
        fs::copy(SUBJECT, directory.path().join("subject")).unwrap();
        Place { directory, _alone: alone }
    }

    fn runtime(&self) -> PathBuf {
        self.directory.path().join("runtime")
    }

    /// The program, by an ordinary user, and no job of a shell: in a session of its own.
    fn subject(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("setsid");
        if is_root() {
            let user = USER.to_string();
            command.args(["setpriv", "--reuid", &user, "--regid", &user, "--clear-groups"]);
        }
        command.arg(self.directory.path().join("subject"));
        command.args(arguments).env("METE_RUNTIME_DIR", self.runtime());
        command
    }

    /// Processes that compute on one processor.
    fn hogs<const N: usize>(&self) -> [Hog; N] {
        let hogs = [(); N].map(|()| Hog(self.subject(&["hog"]).spawn().unwrap()));
        hogs.iter().for_each(|hog| {
            wait_until("it runs its program", || name(hog.pid()) == "subject");
            let processor = first_processor();
            let pid = hog.pid().to_string();
            let bound =
                Command::new("taskset").args(["-pc", &processor, &pid]).stdout(Stdio::null()).status();
            assert!(bound.unwrap().success());
        });
        hogs
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn name(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

fn first_processor() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    list.trim().split([',', '-']).next().unwrap().to_owned()
}

fn state(pid: u32) -> char {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    text.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap_or('X')
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "{what}");
        sleep(Duration::from_millis(5));
    }
}

fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
}

struct Hog(Child);

impl Hog {
    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn with(&self, name: &str, share: &str) -> String {
        format!("{name}=pid:{},share={share}", self.pid())
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Dispatching {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Dispatching {
    fn start(mut command: Command) -> (Dispatching, String) {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut dispatching = Dispatching { process, input, output };
        let said = dispatching.line();
        (dispatching, said)
    }

    fn of(place: &Place, policy: &str, domains: &[String]) -> Dispatching {
        let domains: Vec<_> = domains.iter().map(String::as_str).collect();
        let (dispatching, said) =
            Dispatching::start(place.subject(&[&["dispatch", policy], &domains[..]].concat()));
        assert_eq!(said, "dispatching");
        dispatching
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn ask(&mut self, line: &str) -> String {
        writeln!(self.input.as_ref().unwrap(), "{line}").unwrap();
        self.line()
    }

    /// What each domain has used, in microseconds.
    fn used(&mut self) -> Vec<u64> {
        let said = self.ask("");
        said.split(' ').next().unwrap().split(',').map(|used| used.parse().unwrap()).collect()
    }

    /// What each is given from now on, in permille, when all have used that much together.
    fn given(&mut self, enough: Duration) -> Vec<u64> {
        let (before, begin) = (self.used(), Instant::now());
        loop {
            let used: Vec<_> = self.used().iter().zip(&before).map(|(used, before)| used - before).collect();
            let all: u64 = used.iter().sum();
            if u128::from(all) >= enough.as_micros() {
                return used.iter().map(|used| used * 1000 / all).collect();
            }
            assert!(begin.elapsed() < PATIENCE, "{used:?}");
            sleep(Duration::from_millis(20));
        }
    }

    /// Ends its input. Returns what it says then.
    fn finish(mut self) -> String {
        self.input = None;
        let said = self.line();
        assert!(self.process.wait().unwrap().success());
        said
    }
}

impl Drop for Dispatching {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// In a second or two: the paper's bound, 5 % of each share, and a quantum.
fn assert_near(given: &[u64], due: &[u64], about: &str) {
    for (given, due) in given.iter().zip(due) {
        assert!(given.abs_diff(*due) <= due / 20 + 20, "{about}: {given}, and {due} are due");
    }
}

#[test]
fn vtrr_6_processes_have_their_shares_without_any_rights() {
    for policy in ["distributed-vtrr", "stride", "wrr"] {
        let place = Place::new();
        let [a, b, c] = place.hogs();
        let domains = [a.with("a", "3"), b.with("b", "2"), c.with("c", "1")];
        let mut dispatching = Dispatching::of(&place, policy, &domains);
        let given = dispatching.given(Duration::from_secs(2));
        assert_near(&given, &[500, 333, 167], policy);
        // From one moment to the next.
        dispatching.ask("2 300");
        assert_near(&dispatching.given(Duration::from_secs(2)), &[375, 250, 375], policy);
        let said = dispatching.finish();
        assert!(said.contains("failed: 0, left: 0"), "{said}");
        assert!([&a, &b, &c].iter().all(|hog| state(hog.pid()) != 'T'), "all go on");
    }
}

#[test]
fn vtrr_7_a_share_does_not_grow_with_the_number_of_processes() {
    let place = Place::new();
    let hogs: [Hog; 5] = place.hogs();
    let selectors: Vec<_> = hogs[1..].iter().map(|hog| format!("pid:{}", hog.pid())).collect();
    let domains = [hogs[0].with("one", "1"), format!("four={},share=1", selectors.join(","))];
    let mut dispatching = Dispatching::of(&place, "distributed-vtrr", &domains);
    assert_near(&dispatching.given(Duration::from_secs(2)), &[500, 500], "one and four");
}

#[test]
fn log_16_after_kill_9_all_go_on_but_those_that_their_user_has_stopped() {
    let place = Place::new();
    let hogs: [Hog; 4] = place.hogs();
    signal(hogs[3].pid(), "-STOP");
    wait_until("it is stopped", || state(hogs[3].pid()) == 'T');
    let domains: Vec<_> =
        hogs.iter().zip(["a", "b", "c", "d"]).map(|(hog, name)| hog.with(name, "1")).collect();
    for _ in 0..10 {
        let mut dispatching = Dispatching::of(&place, "distributed-vtrr", &domains);
        wait_until("some wait", || hogs.iter().filter(|hog| state(hog.pid()) == 'T').count() == 3);
        assert_eq!(dispatching.used()[3], 0);
        dispatching.process.kill().unwrap();
        dispatching.process.wait().unwrap();
        // For longer than a quantum.
        wait_until("the others go on", || {
            let go_on = || hogs[..3].iter().all(|hog| state(hog.pid()) != 'T');
            go_on()
                && (0..20).all(|_| {
                    sleep(Duration::from_millis(2));
                    go_on()
                })
        });
        assert_eq!(state(hogs[3].pid()), 'T', "its user has stopped it");
        wait_until("nothing is left", || fs::read_dir(place.runtime()).unwrap().next().is_none());
    }
}

/// The processes that put back what a process has changed: two, and the one in between that has started the second one.
fn watchers(of: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let numbers: Vec<u32> = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let parent = |pid: u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        text.rsplit(") ").next()?.split(' ').nth(1)?.parse::<u32>().ok()
    };
    let is_below = |pid: u32| std::iter::successors(Some(pid), |pid| parent(*pid)).any(|pid| pid == of);
    let own = numbers.into_iter().filter(|pid| is_below(*pid));
    own.filter(|pid| name(*pid).starts_with("mete-restore")).collect()
}

#[test]
fn log_16_if_all_three_are_killed_the_next_start_has_all_go_on_but_those_that_their_user_has_stopped() {
    let place = Place::new();
    let [a, b, stopped] = place.hogs();
    let domains = [a.with("a", "1"), b.with("b", "1"), stopped.with("c", "1")];
    let mut dispatching = Dispatching::of(&place, "distributed-vtrr", &domains);
    dispatching.used();
    let all = watchers(dispatching.process.id());
    assert_eq!(all.len(), 3, "{all:?}");
    // Stopped, they do nothing while the others are stopped and killed: who watches a dispatcher that
    // is stopped has all go on. A signal has arrived when its process is seen stopped.
    let stop = |pid: u32| {
        signal(pid, "-STOP");
        wait_until("it is stopped", || state(pid) == 'T');
    };
    all.iter().for_each(|pid| stop(*pid));
    wait_until("some wait", || [&a, &b, &stopped].iter().any(|hog| state(hog.pid()) == 'T'));
    stop(dispatching.process.id());
    let waits = || [&a, &b, &stopped].map(|hog| state(hog.pid()) == 'T');
    // A process that computes takes a signal only at the next tick.
    let has_all = |hog: &Hog| {
        let status = fs::read_to_string(format!("/proc/{}/status", hog.pid())).unwrap();
        status.lines().any(|line| line.starts_with("ShdPnd:") && line.ends_with("\t0000000000000000"))
    };
    wait_until("signals have arrived", || [&a, &b, &stopped].into_iter().all(has_all));
    let are_paused = waits();
    all.iter().for_each(|pid| signal(*pid, "-KILL"));
    dispatching.process.kill().unwrap();
    dispatching.process.wait().unwrap();
    wait_until("the watchers have ended", || all.iter().all(|pid| matches!(state(*pid), 'X' | 'Z')));
    assert_eq!(waits(), are_paused, "nobody is left who would have them go on");
    let expected = are_paused.iter().filter(|is_paused| **is_paused).count();
    assert!(expected > 0);
    let own = Hog(place.subject(&["wait"]).stdin(Stdio::piped()).spawn().unwrap());
    signal(own.pid(), "-STOP");
    let output = place.subject(&["recover"]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    // One that was just about to be paused, or has just gone on, is noted, too.
    let restored = [expected, expected + 1].map(|number| format!("restored: {number},"));
    assert!(restored.iter().any(|restored| said.contains(restored)), "{said}");
    assert_eq!(waits(), [false; 3]);
    assert_eq!(state(own.pid()), 'T', "it was never noted");
}

#[test]
fn log_16_while_the_dispatcher_is_stopped_all_go_on() {
    let place = Place::new();
    let [a, b] = place.hogs();
    let mut dispatching = Dispatching::of(&place, "distributed-vtrr", &[a.with("a", "3"), b.with("b", "1")]);
    dispatching.given(Duration::from_millis(200));
    signal(dispatching.process.id(), "-STOP");
    wait_until("both go on", || {
        (0..20).all(|_| {
            sleep(Duration::from_millis(5));
            [&a, &b].iter().all(|hog| state(hog.pid()) != 'T')
        })
    });
    signal(dispatching.process.id(), "-CONT");
    dispatching.given(Duration::from_millis(500));
    assert_near(&dispatching.given(Duration::from_secs(1)), &[750, 250], "afterwards");
}

#[test]
fn vtrr_6_who_sleeps_is_not_paused_and_who_may_not_be_is_left_out() {
    let place = Place::new();
    let [hog, other] = place.hogs();
    let mut sleeper = place.subject(&["wait"]);
    let sleeper = Hog(sleeper.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap());
    wait_until("it sleeps", || name(sleeper.pid()) == "subject" && state(sleeper.pid()) == 'S');
    let mut domains = vec![hog.with("a", "1"), other.with("b", "1"), sleeper.with("c", "1")];
    if is_root() {
        domains.push(format!("d=pid:{}", std::process::id()));
    }
    let mut dispatching = Dispatching::of(&place, "stride", &domains);
    let begin = Instant::now();
    while dispatching.used().iter().sum::<u64>() < 500_000 {
        assert_ne!(state(sleeper.pid()), 'T');
        assert!(begin.elapsed() < PATIENCE);
        sleep(Duration::from_millis(3));
    }
    let said = dispatching.ask("");
    let left_out = said.rsplit(' ').next().unwrap();
    assert_eq!(left_out, if is_root() { "1" } else { "0" }, "{said}");
}

/// If what ties a group to its shell ends while one of the group is stopped, the kernel ends them all.
#[test]
fn log_16_jobs_of_a_shell_are_left_alone_and_live_on_when_it_has_gone() {
    let place = Place::new();
    // A shell with job control, and a job that starts two and then ends, as a wrapper does.
    let script = r#"exec 3<&0; set -m
        sh -c '"$0" hog & "$0" hog & read line' "$0" <&3 & echo $!; wait; sleep 200"#;
    let mut shell = Command::new("setsid");
    if is_root() {
        let user = USER.to_string();
        shell.args(["setpriv", "--reuid", &user, "--regid", &user, "--clear-groups"]);
    }
    shell.args(["bash", "-c", script]).arg(place.directory.path().join("subject"));
    let mut shell = Hog(shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(shell.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let group: u32 = line.trim().parse().unwrap();
    let jobs = || -> Vec<u32> {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let of_group = |pid: &u32| {
            let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            text.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(2)?.parse().ok()) == Some(group)
        };
        numbers.filter(|pid| of_group(pid) && name(*pid) == "subject").collect()
    };
    wait_until("both are there", || jobs().len() == 2);
    let both = jobs();
    let domains = [format!("a=pid:{}", both[0]), format!("b=pid:{}", both[1])];
    let mut dispatching = Dispatching::of(&place, "distributed-vtrr", &domains);
    let said = dispatching.ask("");
    assert!(said.ends_with(" 2"), "left out: {said}");
    // Now the one ends that ties the two to the shell.
    writeln!(shell.0.stdin.as_ref().unwrap(), "end").unwrap();
    wait_until("they are ruled", || dispatching.used().iter().all(|used| *used > 100_000));
    dispatching.finish();
    assert_eq!(jobs(), both, "both live");
    both.iter().for_each(|pid| signal(*pid, "-KILL"));
}

#[test]
fn log_16_processes_of_others_are_refused_with_their_user() {
    if !is_root() {
        return println!("SKIPPED: without root there may be no process of another user");
    }
    let place = Place::new();
    let domain = format!("a=pid:{}", std::process::id());
    let (dispatching, said) = Dispatching::start(place.subject(&["dispatch", "vtrr", &domain]));
    let expected = format!(
        "refused: process {} of the domain \"a\" may not be paused: it belongs to root",
        std::process::id()
    );
    assert!(said.starts_with(&expected), "{said}");
    drop(dispatching);
    assert!(!Path::new(&place.runtime()).exists() || fs::read_dir(place.runtime()).unwrap().next().is_none());
}
