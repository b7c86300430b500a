//! `mete log` on real processes.

#![allow(clippy::unwrap_used, reason = "a test may end so")]

mod common;

use std::process::Stdio;

use common::{Running, kernel_is_there, mete, program};
use rustix::process::Signal;
use serde_json::Value;

fn objects(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

fn stdout(arguments: &[&str]) -> String {
    let assert = mete(arguments).assert().success();
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

#[test]
fn log_13_a_command_is_a_domain_of_its_own_and_its_children_with_it() {
    if !kernel_is_there() {
        return;
    }
    // The work is a grandchild's; the name is the command's.
    let script = "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'";
    let objects = objects(&stdout(&["log", "--json", "--", "sh", "-c", script]));
    let domains = of_kind(&objects, "domain");
    let command = domains.iter().find(|domain| domain["domain"] == "sh").expect("a domain for the command");
    assert!(command["service_ns"].as_u64().unwrap() > 1_000_000, "{command}");
    assert!(command["counters"]["page-faults"].as_u64().unwrap() > 0, "{command}");
    assert!(domains.iter().any(|domain| domain["domain"] == "other"));
}

#[test]
fn log_13_wake_ups_are_shown_with_both_ends() {
    if !kernel_is_there() {
        return;
    }
    let (one, two) = common::ping_pong();
    let domains = [format!("one=pid:{}", one.pid()), format!("two=pid:{}", two.pid())];
    let objects = objects(&stdout(&[
        "log",
        "--json",
        "--for",
        "500ms",
        "--event",
        "ipc",
        "--domain",
        &domains[0],
        "--domain",
        &domains[1],
    ]));
    let is_between = |object: &&&Value| object["sender"] == "one" && object["receiver"] == "two";
    let sent = of_kind(&objects, "sent");
    let received = of_kind(&objects, "received");
    let (sent, received) = (sent.iter().find(is_between).unwrap(), received.iter().find(is_between).unwrap());
    assert!(
        sent["sent"].as_u64().unwrap() > 10 && received["received"].as_u64().unwrap() > 10,
        "{objects:?}"
    );
}

#[test]
fn completeness_is_always_stated() {
    if !kernel_is_there() {
        return;
    }
    let text = stdout(&["log", "--for", "300ms"]);
    assert!(text.contains("\ncomplete: all ") || text.contains("\nincomplete: "), "{text}");
    let objects = objects(&stdout(&["log", "--json", "--for", "600ms", "--every", "200ms"]));
    let statements = of_kind(&objects, "completeness");
    let (whole, parts): (Vec<_>, Vec<_>) =
        statements.into_iter().partition(|object| object["scope"] == "whole");
    assert!(whole.len() == 1 && !parts.is_empty(), "{objects:?}");
    for statement in whole.into_iter().chain(parts) {
        assert!(statement["complete"].is_boolean() && statement["files"].is_array(), "{statement}");
        let missed = &statement["missed"];
        assert!(["runs", "spaces", "switches"].iter().all(|what| missed[what].is_u64()), "{statement}");
    }
}

#[test]
fn tables_fit_80_and_120_columns() {
    if !kernel_is_there() {
        return;
    }
    let events = "service,ipc,memory,run-queue,cs,faults,page-faults,cpu-clock";
    for columns in [80, 120] {
        let mut command = mete(&["log", "--for", "300ms", "--event", events]);
        let assert = command.env("COLUMNS", columns.to_string()).assert().success();
        let text = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
        assert!(text.lines().all(|line| line.chars().count() <= columns), "{text}");
    }
}

/// A program of a name of its own that computes until it is ended.
struct Busy {
    directory: tempfile::TempDir,
    name: &'static str,
}

impl Busy {
    fn new(name: &'static str) -> Busy {
        let directory = tempfile::tempdir().unwrap();
        std::fs::copy("/bin/sh", directory.path().join(name)).unwrap();
        Busy { directory, name }
    }

    fn start(&self) -> Running {
        let mut command = std::process::Command::new(self.directory.path().join(self.name));
        Running::start(command.args(["-c", "while :; do :; done"]))
    }
}

/// Reads intervals until one of the domain shows processor time.
fn wait_for(domain: &str, lines: &mut impl Iterator<Item = std::io::Result<String>>) -> Value {
    let begin = std::time::Instant::now();
    loop {
        assert!(begin.elapsed() < common::PATIENCE, "{domain} shows no processor time");
        let object: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        if object["domain"] == domain && object["service_ns"].as_u64() > Some(0) {
            return object;
        }
    }
}

#[test]
fn log_6_a_domain_that_is_empty_at_first_gets_each_process_that_starts_later_and_matches() {
    if !kernel_is_there() {
        return;
    }
    let (idle, busy) = (Running::idle(), Busy::new("mete-later-test"));
    let here = format!("here=pid:{}", idle.pid());
    let arguments = ["log", "--json", "--for", "10m", "--every", "100ms", "--domain", &here];
    let arguments = [&arguments[..], &["--domain", "later=comm:mete-later-test"]].concat();
    let said = tempfile::NamedTempFile::new().unwrap();
    let mut command = program(&arguments);
    command.stdout(Stdio::piped()).stderr(said.reopen().unwrap());
    let mut running = Running::start(&mut command);
    let mut lines = running.lines();
    lines.next().unwrap().unwrap();
    // A service that starts, ends and is started again.
    for _ in 0..2 {
        let service = busy.start();
        let domain = wait_for("later", &mut lines);
        assert_eq!(domain["processes"], 1, "{domain}");
        drop(service);
        common::wait_until("the domain is empty again", || {
            let object: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            object["domain"] == "later" && object["service_ns"] == 0
        });
    }
    running.signal(Signal::INT);
    lines.for_each(drop);
    assert_eq!(running.wait().code(), Some(130));
    let said = std::fs::read_to_string(said.path()).unwrap();
    assert!(said.contains("\"later\" is empty so far") && said.contains("comm:mete-later-test"), "{said}");
}

/// A control group that goes with the test, or a word about why there is none.
struct Group(std::path::PathBuf);

impl Group {
    fn make() -> Option<Group> {
        let mounts = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"];
        let of = |mount| std::path::Path::new(mount).join(format!("mete-log-{}", std::process::id()));
        let is_group = |path: &std::path::PathBuf| path.with_file_name("cgroup.procs").exists();
        let made =
            mounts.map(of).into_iter().find(|path| is_group(path) && std::fs::create_dir(path).is_ok());
        if made.is_none() {
            println!("SKIPPED: no control group can be made here; run as root");
        }
        made.map(Group)
    }

    fn take(&self, pid: u32) {
        std::fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        common::wait_until("the group is empty", || std::fs::remove_dir(&self.0).is_ok());
    }
}

#[test]
fn log_6_a_container_is_logged_though_another_domain_is_empty() {
    let Some(group) = Group::make().filter(|_| kernel_is_there()) else { return };
    let busy = Busy::new("mete-box-test").start();
    group.take(busy.pid());
    // As /proc/PID/cgroup shows it, which is how the README names a container.
    let container = format!("box=cgroup:/{}", group.0.file_name().unwrap().display());
    let arguments = ["log", "--json", "--for", "500ms", "--domain", &container];
    let assert = mete(&[&arguments[..], &["--domain", "db=comm:no-such-name"]].concat()).assert().success();
    let output = assert.get_output();
    let (objects, said) =
        (objects(&String::from_utf8_lossy(&output.stdout)), String::from_utf8_lossy(&output.stderr));
    let domains = of_kind(&objects, "domain");
    let container = domains.iter().find(|domain| domain["domain"] == "box").unwrap();
    assert!(container["service_ns"].as_u64() > Some(0) && container["processes"] == 1, "{container}");
    assert!(said.contains("\"db\" is empty so far"), "{said}");
}

#[test]
fn log_13_a_program_that_starts_later_is_named_though_it_is_in_no_domain() {
    if !kernel_is_there() {
        return;
    }
    let (idle, busy) = (Running::idle(), Busy::new("mete-busy-test"));
    let here = format!("here=pid:{}", idle.pid());
    let mut running = Running::start(
        program(&["log", "--json", "--for", "10m", "--every", "100ms", "--domain", &here])
            .stdout(Stdio::piped()),
    );
    let mut lines = running.lines();
    lines.next().unwrap().unwrap();
    let busy = busy.start();
    common::wait_until("it has run for half a second", || {
        lines.next().unwrap().unwrap();
        mete_sched::domains::process::Process::read(busy.pid()).unwrap().ran >= 50
    });
    running.signal(Signal::INT);
    let rest: Vec<_> = lines.map_while(Result::ok).collect();
    assert_eq!(running.wait().code(), Some(130));
    let objects = objects(&rest.join("\n"));
    let within = of_kind(&objects, "within_other");
    let found = within.iter().find(|program| program["program"] == "mete-busy-test");
    assert!(found.is_some_and(|program| program["ran_ns"].as_u64() >= Some(300_000_000)), "{within:?}");
}

#[test]
fn the_status_of_the_command_is_passed_on() {
    mete(&["log", "--for", "30s", "--", "sh", "-c", "exit 7"]).assert().code(if kernel_is_there() {
        7
    } else {
        1
    });
    if kernel_is_there() {
        mete(&["log", "--", "true"]).assert().success();
        mete(&["log", "--", "sh", "-c", "kill -TERM $$"]).assert().code(128 + 15);
    }
}

#[test]
fn a_command_that_is_cut_short_as_asked_is_no_failure() {
    if kernel_is_there() {
        mete(&["log", "--for", "200ms", "--", "sleep", "600"]).assert().success();
    }
}

#[test]
fn with_json_only_objects_go_to_stdout() {
    if !kernel_is_there() {
        return;
    }
    let assert = mete(&["log", "--json", "--", "echo", "from the command"]).assert().success();
    let output = assert.get_output();
    assert!(!objects(&String::from_utf8_lossy(&output.stdout)).is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("from the command"));
}

#[test]
fn ctrl_c_ends_with_the_results_so_far() {
    if !kernel_is_there() {
        return;
    }
    let (mut running, mut lines) = long_run();
    running.signal(Signal::INT);
    let rest: Vec<_> = lines.by_ref().map_while(Result::ok).collect();
    assert_eq!(running.wait().code(), Some(130));
    assert!(objects(&rest.join("\n")).iter().any(|object| object["scope"] == "whole"), "{rest:?}");
}

/// A run that would take ten minutes, when it has printed its first line.
fn long_run() -> (Running, impl Iterator<Item = std::io::Result<String>>) {
    let arguments = ["log", "--json", "--for", "10m", "--every", "100ms"];
    let mut running = Running::start(program(&arguments).stdout(Stdio::piped()));
    let mut lines = running.lines();
    lines.next().unwrap().unwrap();
    (running, lines)
}

#[test]
fn nothing_stays_attached_after_ctrl_c_or_kill_9() {
    if !kernel_is_there() {
        return;
    }
    for signal in [Signal::INT, Signal::KILL] {
        let (mut running, _lines) = long_run();
        let links = common::bpf_links(running.pid());
        assert!(!links.is_empty(), "a run holds its links");
        running.signal(signal);
        running.wait();
        common::wait_until("the kernel has let go of all links", || {
            !links.iter().any(|&link| common::bpf_link_exists(link))
        });
    }
}

#[test]
fn a_pipe_that_closes_while_logging_ends_the_run() {
    if !kernel_is_there() {
        return;
    }
    let (mut running, lines) = long_run();
    drop(lines);
    assert_eq!(running.wait().code(), Some(1));
}

#[test]
fn log_1_events_of_programs_with_probes_are_logged_without_the_kernel() {
    let pair = common::Pair::start();
    let domains = [format!("server=pid:{}", pair.driver.pid()), format!("user=pid:{}", pair.client.pid())];
    let assert = mete(&[
        "log",
        "--json",
        "--components",
        "--for",
        "1500ms",
        "--domain",
        &domains[0],
        "--domain",
        &domains[1],
    ])
    .env("METE_RUNTIME_DIR", pair.directory.path())
    .assert()
    .success();
    let objects = objects(&String::from_utf8_lossy(&assert.get_output().stdout));
    let requests: Vec<_> =
        of_kind(&objects, "event").into_iter().filter(|event| event["event"] == "request").collect();
    assert!(requests.len() == 1 && requests[0]["domain"] == "server", "{objects:?}");
    let dealings = of_kind(&objects, "transactions");
    assert!(
        dealings.iter().any(|dealing| dealing["client"] == "user" && dealing["driver"] == "server"),
        "{objects:?}"
    );
}

#[test]
fn what_json_prints_is_described() {
    let pair = common::Pair::start();
    let mut arguments = vec!["log", "--json", "--for", "500ms", "--every", "200ms"];
    if !kernel_is_there() {
        arguments.push("--components");
    }
    let domains = [format!("server=pid:{}", pair.driver.pid()), format!("user=pid:{}", pair.client.pid())];
    arguments.extend(domains.iter().flat_map(|domain| ["--domain", domain]));
    let assert = mete(&arguments).env("METE_RUNTIME_DIR", pair.directory.path()).assert().success();
    let objects = objects(&String::from_utf8_lossy(&assert.get_output().stdout));
    assert!(
        ["domain", "event", "transactions", "completeness"]
            .iter()
            .all(|kind| !of_kind(&objects, kind).is_empty()),
        "{objects:?}"
    );
    common::assert_described(&objects);
}

#[test]
fn without_anything_to_log_it_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let output =
        program(&["log", "--components"]).env("METE_RUNTIME_DIR", directory.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("no program with probes"), "{said}");
}
