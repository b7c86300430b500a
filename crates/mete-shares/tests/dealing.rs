//! Shares are dealt out by what the kernel offers, and everything is as before in the end.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

const SUBJECT: &str = env!("CARGO_BIN_EXE_mete-shares-subject");
const ROOT: &str = "/sys/fs/cgroup";

/// One dealer at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// A control group with processes that compute.
struct Group {
    path: PathBuf,
    hogs: Vec<Child>,
}

impl Group {
    /// `None` where this user may make none, with the reason printed.
    fn new(name: &str) -> Option<Group> {
        let root = Path::new(ROOT);
        if root.join("cgroup.controllers").exists() {
            let _ = fs::write(root.join("cgroup.subtree_control"), "+cpu");
        }
        let roots = [root.join("cpu"), root.join("cpu,cpuacct"), root.to_owned()];
        let root = roots.into_iter().find(|root| root.join("cgroup.procs").exists()).unwrap_or_default();
        let path = root.join(format!("mete-shares-{name}-{}", std::process::id()));
        if let Err(error) = fs::create_dir(&path) {
            println!("SKIPPED: no control group can be made: {}: {error}", path.display());
            return None;
        }
        Some(Group { path, hogs: Vec::new() })
    }

    /// Has processes compute on the first processor, for some minutes at most.
    fn hogs(mut self, number: usize) -> Group {
        let procs = self.path.join("cgroup.procs");
        for _ in 0..number {
            let script = "echo $$ >$1 && exec taskset -c 0 timeout 300 \"$2\" hog";
            let mut command = Command::new("sh");
            self.hogs.push(command.args(["-c", script, "sh"]).arg(&procs).arg(SUBJECT).spawn().unwrap());
        }
        let processes = || fs::read_to_string(&procs).unwrap().lines().count();
        let begin = Instant::now();
        // `timeout` and what it has started.
        while processes() < 2 * number {
            assert!(begin.elapsed() < Duration::from_secs(120), "the hogs do not start");
            sleep(Duration::from_millis(20));
        }
        self
    }

    fn weight(&self) -> u64 {
        let read = |name: &str| fs::read_to_string(self.path.join(name)).ok()?.trim().parse::<u64>().ok();
        read("cpu.weight").or_else(|| Some(read("cpu.shares")? * 100 / 1024)).unwrap()
    }

    fn with(&self, share: u32) -> String {
        domain(&self.path, share)
    }

    /// Another group of the same path, with nothing in it.
    fn made_again(mut self) -> Group {
        self.remove();
        fs::create_dir(&self.path).unwrap();
        self
    }

    fn remove(&mut self) {
        let text = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        for process in text.lines() {
            let _ = Command::new("kill").args(["-KILL", process]).stderr(Stdio::null()).status();
        }
        self.hogs.drain(..).for_each(|mut hog| drop(hog.wait()));
        let begin = Instant::now();
        while fs::remove_dir(&self.path).is_err() && begin.elapsed() < Duration::from_secs(60) {
            sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.remove();
    }
}

fn domain(group: &Path, share: u32) -> String {
    let name = group.file_name().unwrap_or_default().to_string_lossy();
    format!("{name}=cgroup:{},share={share}", group.display())
}

/// A dealer in a process of its own.
struct Dealing {
    process: Child,
    output: BufReader<ChildStdout>,
    /// Its journals lie in a place of its own, so that it does not see another dispatcher of this user.
    _place: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Dealing {
    /// And what it says first.
    fn start(by: &str, groups: &[String]) -> (Dealing, String) {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let place = tempfile::tempdir().unwrap();
        let mut command = Command::new(SUBJECT);
        command.env("METE_RUNTIME_DIR", place.path());
        let command = command.arg(by).args(groups).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut dealing = Dealing { process, output, _place: place, _alone: alone };
        let said = dealing.hear();
        (dealing, said)
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// What acts, whether it rules, and for each group what was wanted and given.
    fn ask(&mut self) -> Vec<String> {
        self.say("how")
    }

    fn say(&mut self, line: &str) -> Vec<String> {
        writeln!(self.process.stdin.as_mut().unwrap(), "{line}").unwrap();
        self.hear().split(' ').map(str::to_owned).collect()
    }

    fn end(mut self) -> String {
        drop(self.process.stdin.take());
        let last = self.hear();
        assert!(self.process.wait().unwrap().success());
        last
    }
}

impl Drop for Dealing {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

fn has_sched_ext() -> bool {
    Path::new("/sys/kernel/sched_ext").exists()
}

/// Whether this is the virtual machine of the tests, whose time goes by instructions.
fn time_is_counted() -> bool {
    std::env::var_os("METE_VM_TESTS").is_some()
}

/// Two groups that compete with 1 and 3 hogs get two parts and one part, and when shares are set, others;
/// wherever the kernel accounts for groups and time does not depend on what else the machine does.
fn gives_two_to_one(by: &str, expected: &str) {
    let (Some(few), Some(many)) = (Group::new("few"), Group::new("many")) else { return };
    let (few, many) = (few.hogs(1), many.hogs(3));
    let (mut dealing, said) = Dealing::start(by, &[few.with(2), many.with(1)]);
    assert!(!said.starts_with("refused"), "{said}");
    let first = |group: &Group| group.with(1).split('=').next().unwrap().to_owned();
    for (share, wanted) in [(None, ["66.67", "33.33"]), (Some("0.5"), ["33.33", "66.67"])] {
        dealing.say(&share.map_or("how".into(), |share| format!("{}={share}", first(&few))));
        sleep(Duration::from_secs(3));
        let answer = dealing.ask();
        assert_eq!(answer[..2], [expected, "rules"]);
        let percents = |nth: usize| answer[nth + 2].split_once(':').unwrap();
        assert_eq!([percents(0).0, percents(1).0], wanted);
        let wanted: f64 = wanted[0].parse().unwrap();
        match percents(0).1.parse::<f64>() {
            Ok(given) if time_is_counted() => assert!((given - wanted).abs() < 2.0, "{answer:?}"),
            Ok(given) => assert!(given > 0.0 && given < 100.0, "{answer:?}"),
            Err(_) => println!("the kernel accounts for no group here"),
        }
    }
    drop(dealing);
    assert_eq!([few.weight(), many.weight()], [100, 100]);
}

/// What the first group is given of each hundred, counted from where a share is set anew; `None` if the kernel does not say. Where time is
/// counted, it has to be right in one of some stretches: while that machine waits for its host, its time leaps, and what
/// runs just then has had it. A share that is wrong is wrong in each.
fn given_from_now(dealing: &mut Dealing, anew: &str, wanted: f64) -> Option<f64> {
    let mut told = Vec::new();
    for _ in 0..4 {
        dealing.say(anew);
        sleep(Duration::from_secs(3));
        let answer = dealing.ask();
        let (said, given) = answer[2].split_once(':').unwrap();
        assert_eq!(said, format!("{wanted:.2}"));
        let given: f64 = given.parse().ok()?;
        if !time_is_counted() || (given - wanted).abs() < 2.0 {
            println!("{told:?}, {answer:?}");
            return Some(given);
        }
        told.push(answer);
    }
    panic!("{told:?}, and not {wanted}");
}

/// A group that was removed and made again, as that of a service that is started anew, has its share again.
fn deals_again(by: &str) {
    let (Some(web), Some(rest)) = (Group::new("web"), Group::new("rest")) else { return };
    let (web, rest) = (web.hogs(1), rest.hogs(1));
    let (mut dealing, said) = Dealing::start(by, &[web.with(3), rest.with(1)]);
    assert!(!said.starts_with("refused"), "{said}");
    let web = web.made_again().hogs(1);
    sleep(Duration::from_millis(500));
    // It looks now.
    dealing.ask();
    let other = rest.with(1);
    let anew = format!("{}=1", other.split('=').next().unwrap());
    let given = given_from_now(&mut dealing, &anew, 75.0);
    if by == "cgroup" {
        assert_eq!(web.weight(), 300);
    }
    match given {
        Some(given) => assert!(given > 0.0 && given < 100.0, "{given}"),
        None => println!("the kernel accounts for no group here"),
    }
    drop(dealing);
    assert_eq!([web.weight(), rest.weight()], [100, 100]);
}

#[test]
fn vtrr_7_a_group_that_is_made_again_has_its_share_by_weights() {
    deals_again("cgroup");
}

#[test]
fn vtrr_7_a_group_that_is_made_again_has_its_share_by_sched_ext() {
    if !has_sched_ext() {
        println!("SKIPPED: vtrr_7_a_group_that_is_made_again_has_its_share_by_sched_ext: no sched_ext");
        return;
    }
    ["sched_ext", "sched_ext:stride"].into_iter().for_each(deals_again);
}

#[test]
fn vtrr_7_weights_give_groups_their_shares() {
    gives_two_to_one("cgroup", "cgroup");
}

#[test]
fn vtrr_7_the_scheduler_inside_the_kernel_gives_groups_their_shares() {
    if !has_sched_ext() {
        println!("SKIPPED: vtrr_7_the_scheduler_inside_the_kernel_gives_groups_their_shares: no sched_ext");
        return;
    }
    gives_two_to_one("sched_ext", "sched_ext");
}

#[test]
fn new_1_a_policy_outside_the_kernel_gives_groups_their_shares() {
    if !has_sched_ext() {
        println!("SKIPPED: new_1_a_policy_outside_the_kernel_gives_groups_their_shares: no sched_ext");
        return;
    }
    gives_two_to_one("sched_ext:distributed-vtrr-kernel", "sched_ext");
    // Without a means that is named, it is taken for control groups.
    let Some(group) = Group::new("outside") else { return };
    let (mut dealing, said) = Dealing::start("auto:eevdf", &[group.with(3)]);
    assert!(said.contains("eevdf schedules all ordinary tasks from outside the kernel"), "{said}");
    assert_eq!(dealing.ask()[..2], ["sched_ext", "rules"]);
    assert_eq!(dealing.say("policy stride"), ["stride"]);
    let refused = dealing.say("policy ablative").join(" ");
    assert!(
        refused.starts_with("refused") && refused.contains("there are") && refused.contains("stride"),
        "{refused}"
    );
    assert_eq!(dealing.ask()[..2], ["sched_ext", "rules"]);
    assert_eq!(dealing.end(), "None", "nothing is to be put back");
    let (mut dealing, _) = Dealing::start("sched_ext", &[group.with(3)]);
    let refused = dealing.say("policy stride").join(" ");
    assert!(refused.contains("cannot be replaced"), "{refused}");
    assert_eq!(dealing.end(), "None");
    let (_, said) = Dealing::start("cgroup:eevdf", &[group.with(3)]);
    assert!(said.starts_with("refused") && said.contains("cannot have eevdf decide"), "{said}");
}

/// A task that waits behind one in real time on the second processor, until both end after this number of seconds.
fn starve(seconds: u32) -> [Child; 2] {
    let start = |class: &str| {
        let script = format!("exec timeout {seconds} taskset -c 1 {class} '{SUBJECT}' hog");
        Command::new("sh").args(["-c", &script]).spawn().unwrap()
    };
    // The other one is on its processor before.
    let ordinary = start("");
    sleep(Duration::from_secs(2));
    [ordinary, start("chrt -f 1")]
}

/// Asks until the answer is so.
fn ask_until(dealing: &mut Dealing, question: &str, is_so: impl Fn(&str) -> bool) -> String {
    let begin = Instant::now();
    loop {
        let answer = dealing.say(question).join(" ");
        if is_so(&answer) {
            return answer;
        }
        assert!(begin.elapsed() < Duration::from_secs(120), "{answer}");
        sleep(Duration::from_millis(50));
    }
}

#[test]
fn new_1_a_scheduler_that_the_kernel_has_ended_is_started_again() {
    let name = "new_1_a_scheduler_that_the_kernel_has_ended_is_started_again";
    if !has_sched_ext() {
        println!("SKIPPED: {name}: no sched_ext");
        return;
    }
    let (Some(few), Some(many)) = (Group::new("few"), Group::new("many")) else { return };
    let (few, many) = (few.hogs(1), many.hogs(3));
    for (by, is_outside) in [("sched_ext", false), ("sched_ext:group-vtrr", true)] {
        let (mut dealing, _) = Dealing::start(by, &[few.with(2), many.with(1)]);
        let mut starving = starve(60);
        // The kernel ends a scheduler under which a task has waited for thirty seconds, and looks each fifteen.
        let failed = ask_until(&mut dealing, "failed", |answer| answer.len() > 2);
        println!("{failed}");
        assert!(failed.contains("runnable task stall: the task "), "{failed}");
        assert!(failed.contains(" in the queue of control group /"), "{failed}");
        let waited = failed.split_once(" has waited for ").unwrap().1.split(' ').next().unwrap();
        assert!((30.0..48.0).contains(&waited.parse::<f64>().unwrap()), "{failed}");
        // Meanwhile the kernel's own scheduler deals, by weights.
        assert_eq!([few.weight(), many.weight()], [200, 100]);
        assert_eq!(dealing.say("policy"), ["kernel"]);
        // The next try is with another policy, where one can be set.
        let set = dealing.say("policy distributed-vtrr-kernel").join(" ");
        assert!(if is_outside { set == "kernel" } else { set.contains("cannot be replaced") }, "{set}");
        starving.iter_mut().for_each(|task| drop(task.wait()));
        let again = ask_until(&mut dealing, "failed", |answer| !answer.starts_with('0'));
        assert!(again.contains("runnable task stall"), "{again}");
        assert_eq!(dealing.ask()[..2], ["sched_ext", "rules"]);
        assert_eq!(
            dealing.say("policy"),
            [if is_outside { "distributed-vtrr-kernel" } else { "distributed-vtrr" }]
        );
        // Its shares are not the groups' weights, which are as before.
        assert_eq!([few.weight(), many.weight()], [100, 100]);
        let (begin, wanted) = (Instant::now(), 66.67);
        loop {
            sleep(Duration::from_secs(3));
            let answer = dealing.ask();
            let given: f64 = answer[2].split_once(':').unwrap().1.parse().unwrap();
            if (given - wanted).abs() < 2.0 {
                break;
            }
            assert!(begin.elapsed() < Duration::from_secs(30), "{answer:?}");
        }
    }
}

/// What has to be for the dispatcher.
fn may_dispatch() -> bool {
    let is_root = fs::read_to_string("/proc/self/status").is_ok_and(|text| text.contains("\nUid:\t0\t"));
    is_root && Path::new("/sys/kernel/btf/vmlinux").exists()
}

#[test]
fn vtrr_7_processes_that_are_no_control_group_are_dispatched() {
    if !may_dispatch() {
        println!("SKIPPED: the dispatcher needs root and the kernel's type information");
        return;
    }
    let mut hogs = ["a", "b"].map(|_| Command::new("timeout").args(["300", SUBJECT, "hog"]).spawn().unwrap());
    let domains: Vec<_> = hogs.iter().map(|hog| format!("d{0}=pid:{0},share=2", hog.id())).collect();
    let (mut dealing, said) = Dealing::start("auto", &domains);
    assert!(said.contains("dispatches"), "{said}");
    assert_eq!(dealing.ask()[..2], ["dispatcher", "rules"]);
    assert!(dealing.end().contains("failed: 0"));
    for hog in &mut hogs {
        // `timeout` ends its child when it is asked to end itself.
        let _ = Command::new("kill").arg(hog.id().to_string()).status();
        let _ = hog.wait();
    }
}

#[test]
fn vtrr_7_the_best_means_is_taken_and_said() {
    let Some(group) = Group::new("auto") else { return };
    let (mut dealing, said) = Dealing::start("auto", &[group.with(3)]);
    let by = dealing.ask().swap_remove(0);
    if has_sched_ext() {
        assert!(by == "sched_ext" && said.contains("by sched_ext"), "{said}");
        assert_eq!(dealing.end(), "None", "nothing is to be put back");
    } else {
        assert!(by == "cgroup" && said.contains("no sched_ext") && said.contains("by weights"), "{said}");
        assert_eq!(group.weight(), 300);
        assert!(dealing.end().contains("restored: 1"));
    }
    assert_eq!(group.weight(), 100);
}

#[test]
fn vtrr_7_nothing_else_deals_where_sched_ext_rules() {
    if !has_sched_ext() {
        println!("SKIPPED: this kernel has no sched_ext");
        return;
    }
    let Some(group) = Group::new("ruled") else { return };
    let (dealing, _) = Dealing::start("sched_ext", &[group.with(3)]);
    for by in ["cgroup", "dispatcher", "sched_ext"] {
        let place = tempfile::tempdir().unwrap();
        let mut second = Command::new(SUBJECT);
        second.env("METE_RUNTIME_DIR", place.path()).stdin(Stdio::null());
        let said = second.arg(by).arg(group.with(9)).output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        assert!(said.starts_with("refused") && said.contains("by sched_ext already"), "{by}: {said}");
        assert_eq!(group.weight(), 100);
    }
    dealing.end();
}

#[test]
fn vtrr_7_a_group_has_one_share() {
    let Some(group) = Group::new("twice") else { return };
    let again = group.with(2).replacen("=cgroup", "-again=cgroup", 1);
    for by in ["cgroup", "auto"] {
        let (_, said) = Dealing::start(by, &[group.with(3), again.clone()]);
        assert!(said.contains("are the same control group"), "{said}");
        assert_eq!(group.weight(), 100);
    }
}

#[test]
fn vtrr_7_where_one_group_can_have_no_share_none_has() {
    let Some(group) = Group::new("one") else { return };
    for by in ["cgroup", "auto"] {
        let root = group.path.parent().unwrap();
        let (dealing, said) = Dealing::start(by, &[group.with(3), domain(root, 2)]);
        assert!(said.starts_with("refused") && said.contains(root.to_str().unwrap()), "{said}");
        drop(dealing);
        assert_eq!(group.weight(), 100);
    }
}
