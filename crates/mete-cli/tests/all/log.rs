//! `mete log` on real processes.

use std::process::{Command, Stdio};

use crate::common::{self, Group, Running, kernel_is_there, mete, objects, printed_by, program};
use predicates::prelude::*;
use rustix::process::Signal;
use serde_json::Value;

/// What is printed, with or without losses on a busy machine.
fn stdout(arguments: &[&str]) -> String {
    let assert = mete(arguments).assert().code(predicates::ord::eq(0).or(predicates::ord::eq(3)));
    printed_by(&assert)
}

/// The objects of a run; `None` where the kernel cannot be logged.
fn log(arguments: &[&str]) -> Option<Vec<Value>> {
    kernel_is_there().then(|| objects(&stdout(&[&["log", "--json"], arguments].concat())))
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

#[test]
fn log_13_a_command_is_a_domain_of_its_own_and_its_children_with_it() {
    // A grandchild does the work; the domain has the command's name.
    let script = "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'";
    let Some(objects) = log(&["--", "sh", "-c", script]) else { return };
    let domains = of_kind(&objects, "domain");
    let command = domains.iter().find(|domain| domain["domain"] == "sh").expect("a domain for the command");
    assert!(command["service_ns"].as_u64().unwrap() > 1_000_000, "{command}");
    assert!(command["counters"]["page-faults"].as_u64().unwrap() > 0, "{command}");
    assert!(domains.iter().any(|domain| domain["domain"] == "other"));
}

#[test]
fn log_6_processes_that_live_for_a_moment_are_in_their_domain() {
    if !kernel_is_there() {
        return;
    }
    const RUNS: u64 = 200;
    let link = std::env::temp_dir().join(format!("mete-log-{}", std::process::id()));
    std::os::unix::fs::symlink("/bin/true", &link).unwrap();
    let mut name = link.file_name().unwrap().to_str().unwrap().to_owned();
    name.truncate(15);
    let script = format!("i=0; while [ $i -lt {RUNS} ]; do {}; i=$((i+1)); done", link.display());
    let program = std::fs::canonicalize("/bin/true").unwrap();
    let choices = [
        vec!["--domain".to_owned(), format!("x=comm:{name}")],
        vec!["--domain".to_owned(), format!("x=exe:{}", program.display())],
        vec!["--domain".to_owned(), format!("x=exe:{}*", program.display())],
        vec!["--by".to_owned(), "program".to_owned()],
    ];
    for choice in choices {
        let mut arguments = vec!["log", "--json", "--event", "service,counters=page-faults"];
        arguments.extend(choice.iter().map(String::as_str));
        arguments.extend(["--", "sh", "-c", &script]);
        let objects = objects(&stdout(&arguments));
        let domains = of_kind(&objects, "domain");
        let is_asked_for = |object: &&&Value| object["domain"] == "x" || object["domain"] == name.as_str();
        let domain = domains.iter().find(is_asked_for).unwrap_or_else(|| panic!("{choice:?}: {domains:?}"));
        // A program takes some dozens when it is loaded. A domain that was bound by chance would have those
        // of a few runs.
        let faults = domain["counters"]["page-faults"].as_u64().unwrap();
        assert!(faults >= RUNS * 20, "{choice:?}: {faults}");
    }
    std::fs::remove_file(link).unwrap();
}

#[test]
fn log_13_wake_ups_are_shown_with_both_ends() {
    if !kernel_is_there() {
        return;
    }
    let (one, two) = common::ping_pong();
    let domains = [format!("one=pid:{}", one.pid()), format!("two=pid:{}", two.pid())];
    let mut command = program(&["log", "--event", "ipc", "--domain", &domains[0], "--domain", &domains[1]]);
    let is_between = |object: &Value| object["sender"] == "one" && object["receiver"] == "two";
    let is_sent = |object: &Value| is_between(object) && object["sent"].as_u64() > Some(0);
    let is_received = |object: &Value| is_between(object) && object["received"].as_u64() > Some(0);
    let objects = log_until_printed(&mut command, &[&is_sent, &is_received]);
    let of = |scope: &str, name: &str| {
        let of = objects.iter().filter(|object| object["scope"] == scope && is_between(object));
        of.filter_map(|object| object[name].as_u64()).sum::<u64>()
    };
    for name in ["sent", "received"] {
        assert!(of("whole", name) > 0, "{objects:?}");
        assert_eq!(of("whole", name), of("interval", name), "{name}: {objects:?}");
    }
}

/// Bytes that a process holds, by a walk over its pages.
fn resident(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Rss:")).unwrap();
    line.trim_end_matches("kB").trim().parse::<u64>().unwrap() << 10
}

#[test]
fn log_13_a_process_that_does_nothing_has_its_memory() {
    if !kernel_is_there() {
        return;
    }
    let sleeper = Running::idle();
    let spec = format!("sleeper=pid:{}", sleeper.pid());
    // Once it no longer grows, it has begun to wait.
    let mut before = 0;
    common::wait_until("the process sleeps", || {
        let now = resident(sleeper.pid());
        std::mem::replace(&mut before, now) == now
    });
    let objects =
        objects(&stdout(&["log", "--json", "--for", "300ms", "--event", "memory", "--domain", &spec]));
    let domains = of_kind(&objects, "domain");
    let memory =
        |name| domains.iter().find(|domain| domain["domain"] == name).unwrap()["memory_bytes"].as_u64();
    let (logged, truth) = (memory("sleeper").unwrap(), resident(sleeper.pid()));
    assert!(logged.abs_diff(truth) * 50 <= truth, "{logged} of {truth} bytes");
    assert!(memory("other").unwrap() > logged, "everything else holds more than one that sleeps");
}

#[test]
fn log_13_what_is_not_logged_is_null_and_no_zero() {
    let Some(objects) = log(&["--for", "100ms", "--event", "service"]) else { return };
    assert!(of_kind(&objects, "domain").iter().all(|domain| domain["memory_bytes"].is_null()), "{objects:?}");
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
        let text = printed_by(&assert);
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
        common::copy_program("/bin/sh", directory.path().join(name));
        Busy { directory, name }
    }

    fn start(&self) -> Running {
        let mut command = Command::new(self.directory.path().join(self.name));
        Running::start(command.args(["-c", "while :; do :; done"]))
    }
}

/// Reads the printed lines as fast as they come, until the one that the test waits for.
fn read_until(
    what: &str,
    lines: &mut impl Iterator<Item = std::io::Result<String>>,
    mut is_it: impl FnMut(&Value) -> bool,
) {
    let begin = std::time::Instant::now();
    while !is_it(&serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()) {
        assert!(begin.elapsed() < common::PATIENCE, "waited in vain until {what}");
    }
}

/// A command of a few milliseconds, which prints how long the kernel says that it has run, at its beginning
/// and at its end.
const RUNS_FOR_A_MOMENT: &str = "read first rest < /proc/$$/schedstat; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; \
                                 read last rest < /proc/$$/schedstat; echo $((last - first))";

#[test]
fn log_13_all_that_a_command_ran_is_in_the_log_and_it_is_in_no_domain_any_more_when_it_has_ended() {
    if !kernel_is_there() {
        return;
    }
    for _ in 0..10 {
        let mut command = mete(&["log", "--json", "--event", "service", "--", "sh", "-c", RUNS_FOR_A_MOMENT]);
        let output = command.output().unwrap();
        // With --json, what the command prints goes to stderr.
        let said = String::from_utf8_lossy(&output.stderr);
        let told_ns: u64 = said.lines().find_map(|line| line.parse().ok()).unwrap();
        let objects = objects(std::str::from_utf8(&output.stdout).unwrap());
        let domains = of_kind(&objects, "domain");
        let command = domains.iter().find(|domain| domain["domain"] == "sh").unwrap();
        assert!(command["service_ns"].as_u64() >= Some(told_ns), "{told_ns} ns by the kernel: {command}");
        assert_eq!(command["processes"], 0, "{command}");
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
        // The kernel has bound it at its first moment. The search that counts processes comes a little later.
        read_until("it is counted and runs", &mut lines, |object| {
            object["domain"] == "later" && object["service_ns"].as_u64() > Some(0) && object["processes"] == 1
        });
        drop(service);
        read_until("the domain is empty again", &mut lines, |object| {
            object["domain"] == "later" && object["service_ns"] == 0
        });
    }
    running.signal(Signal::INT);
    lines.for_each(drop);
    assert_eq!(running.wait().code(), Some(130));
    let said = std::fs::read_to_string(said.path()).unwrap();
    assert!(said.contains("\"later\" is empty so far") && said.contains("comm:mete-later-test"), "{said}");
}

#[test]
fn log_6_a_container_is_logged_though_another_domain_is_empty() {
    let Some(group) = Group::make("log").filter(|_| kernel_is_there()) else { return };
    let busy = Busy::new("mete-box-test").start();
    group.take(busy.pid());
    // The README names a container by the path that /proc/PID/cgroup shows.
    let container = format!("box=cgroup:/{}", group.0.file_name().unwrap().display());
    let said = tempfile::NamedTempFile::new().unwrap();
    let mut command = program(&["log", "--domain", &container, "--domain", "db=comm:no-such-name"]);
    command.stderr(said.reopen().unwrap());
    let is_counted = |object: &Value| has_run(object, "box") && object["processes"] == 1;
    let objects = log_until_printed(&mut command, &[&is_counted]);
    assert!(objects.iter().any(|object| object["scope"] == "whole" && is_counted(object)), "{objects:?}");
    let said = std::fs::read_to_string(said.path()).unwrap();
    assert!(said.contains("\"db\" is empty so far"), "{said}");
}

/// Whether this is a domain whose name ends with `domain`, and it has used processor time.
fn has_run(object: &Value, domain: &str) -> bool {
    let name = object["domain"].as_str().unwrap_or_default();
    object["kind"] == "domain" && name.ends_with(domain) && object["service_ns"].as_u64() > Some(0)
}

#[test]
fn log_6_each_control_group_has_a_domain_of_its_own_if_that_is_asked_for() {
    let Some(group) = Group::make("by").filter(|_| kernel_is_there()) else { return };
    let busy = Busy::new("mete-group-test").start();
    group.take(busy.pid());
    let name = group.0.file_name().unwrap().to_str().unwrap().to_owned();
    let mut command = program(&["log", "--event", "service", "--by", "cgroup"]);
    let is_counted = |object: &Value| has_run(object, &name) && object["processes"] == 1;
    let objects = log_until_printed(&mut command, &[&is_counted]);
    let of_it = objects.iter().filter(|object| object["scope"] == "whole" && has_run(object, &name));
    assert_eq!(of_it.map(is_counted).collect::<Vec<_>>(), [true], "{objects:?}");
}

#[test]
fn log_6_a_pattern_of_control_groups_takes_those_that_are_made_later_too() {
    let Some(first) = Group::make("many-1").filter(|_| kernel_is_there()) else { return };
    let busy = [Busy::new("mete-many-1-test").start(), Busy::new("mete-many-2-test").start()];
    first.take(busy[0].pid());
    let domain = format!("many=cgroup:/mete-many-*-{}", std::process::id());
    let arguments = ["log", "--json", "--event", "service", "--for", "10m", "--every", "100ms"];
    let mut command = program(&[&arguments[..], &["--domain", &domain]].concat());
    let mut running = Running::start(command.stdout(Stdio::piped()));
    let mut lines = running.lines();
    let mut read = |what: &str, processes: u64| {
        read_until(what, &mut lines, |object| has_run(object, "many") && object["processes"] == processes);
    };
    read("the first one is counted", 1);
    let Some(second) = Group::make("many-2") else { return };
    second.take(busy[1].pid());
    read("the second one is counted as well", 2);
    running.signal(Signal::INT);
    lines.for_each(drop);
    assert_eq!(running.wait().code(), Some(130));
    // A group can be removed only when no process is in it.
    drop(busy);
}

#[test]
fn log_6_each_user_has_a_domain_of_its_own_if_that_is_asked_for() {
    use std::os::unix::process::CommandExt;
    if !common::is_root() || !kernel_is_there() {
        return;
    }
    /// The number of a user that does not exist.
    const USER: u32 = 64_003;
    let mut busy = Command::new("sh");
    let _busy = Running::start(busy.args(["-c", "while :; do :; done"]).current_dir("/").uid(USER).gid(USER));
    let mut command = program(&["log", "--event", "service", "--by", "user"]);
    let name = USER.to_string();
    let is_its = |object: &Value| {
        object["domain"] == name.as_str() && has_run(object, &name) && object["processes"] == 1
    };
    let objects = log_until_printed(&mut command, &[&is_its, &|object| has_run(object, "root")]);
    assert!(objects.iter().any(|object| object["scope"] == "whole" && is_its(object)), "{objects:?}");
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
    read_until("it has run for half a second", &mut lines, |_| {
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
    let Some((mut running, mut lines)) = long_run() else { return };
    running.signal(Signal::INT);
    let rest: Vec<_> = lines.by_ref().map_while(Result::ok).collect();
    assert_eq!(running.wait().code(), Some(130));
    assert!(objects(&rest.join("\n")).iter().any(|object| object["scope"] == "whole"), "{rest:?}");
}

/// A run that would take ten minutes, when it has printed its first line; `None` where the kernel cannot be
/// logged.
fn long_run() -> Option<(Running, impl Iterator<Item = std::io::Result<String>>)> {
    if !kernel_is_there() {
        return None;
    }
    let arguments = ["log", "--json", "--for", "10m", "--every", "100ms"];
    let mut running = Running::start(program(&arguments).stdout(Stdio::piped()));
    let mut lines = running.lines();
    lines.next().unwrap().unwrap();
    Some((running, lines))
}

#[test]
fn nothing_stays_attached_after_ctrl_c_or_kill_9() {
    for signal in [Signal::INT, Signal::KILL] {
        let Some((mut running, _lines)) = long_run() else { return };
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
    let Some((mut running, lines)) = long_run() else { return };
    drop(lines);
    assert_eq!(running.wait().code(), Some(141), "as SIGPIPE would");
}

/// What `mete log` prints in short intervals, and then of the whole. It is ended once it has printed all that
/// is wanted, because the machine decides how soon a process has a turn.
fn log_until_printed(command: &mut Command, wanted: &[&dyn Fn(&Value) -> bool]) -> Vec<Value> {
    command.args(["--json", "--for", "10m", "--every", "100ms"]);
    let mut running = Running::start(command.stdout(Stdio::piped()));
    let mut lines = running.lines();
    let mut printed = Vec::new();
    read_until("all of it is printed", &mut lines, |object| {
        printed.push(object.clone());
        wanted.iter().all(|is_wanted| printed.iter().any(is_wanted))
    });
    running.signal(Signal::INT);
    printed.extend(lines.flat_map(|line| objects(&line.unwrap())));
    assert_eq!(running.wait().code(), Some(130));
    printed
}

fn log_of(pair: &common::Pair, options: &[&str]) -> Command {
    let mut command = program(&["log"]);
    command.args(options).args(pair.domains("server", "user"));
    command.env("METE_RUNTIME_DIR", pair.directory.path());
    command
}

fn is_of_user_and_server(dealing: &Value) -> bool {
    dealing["kind"] == "transactions" && dealing["client"] == "user" && dealing["driver"] == "server"
}

#[test]
fn log_1_events_of_programs_with_probes_are_logged_without_the_kernel() {
    let pair = common::Pair::start();
    let is_request = |event: &Value| event["event"] == "request";
    let objects =
        log_until_printed(&mut log_of(&pair, &["--components"]), &[&is_request, &is_of_user_and_server]);
    let requests: Vec<_> =
        objects.iter().filter(|object| object["scope"] == "whole" && is_request(object)).collect();
    assert!(requests.len() == 1 && requests[0]["domain"] == "server", "from the first one on: {objects:?}");
    assert!(objects.iter().any(|object| object["scope"] == "whole" && is_of_user_and_server(object)));
}

#[test]
fn what_json_prints_is_described() {
    let pair = common::Pair::start();
    let kinds = ["domain", "event", "transactions", "completeness"];
    let kinds = kinds.map(|kind| move |object: &Value| object["kind"] == kind);
    let wanted = kinds.each_ref().map(|is_wanted| is_wanted as &dyn Fn(&Value) -> bool);
    let options = if kernel_is_there() { &[][..] } else { &["--components"] };
    common::assert_described(&log_until_printed(&mut log_of(&pair, options), &wanted));
}

/// The parts follow one another without a gap. The last one is shorter, and ends with the whole.
#[test]
fn log_13_the_parts_of_a_log_are_all_of_it() {
    let Some(objects) = log(&["--for", "700ms", "--every", "300ms"]) else { return };
    let rows = |object: &Value| {
        let files = object["files"].as_array().unwrap();
        files.iter().map(|file| file["rows"].as_u64().unwrap()).sum::<u64>()
    };
    let statements = of_kind(&objects, "completeness");
    let (whole, parts) = statements.split_last().unwrap();
    assert!(whole["scope"] == "whole" && parts.len() >= 2, "{statements:?}");
    let ends: Vec<_> = parts.iter().map(|part| part["to_s"].as_f64().unwrap()).collect();
    let begins: Vec<_> = parts.iter().map(|part| part["from_s"].as_f64().unwrap()).collect();
    assert_eq!((begins[0], &begins[1..]), (0.0, &ends[..ends.len() - 1]));
    assert_eq!(ends.last().copied(), whole["to_s"].as_f64());
    assert_eq!(parts.iter().copied().map(rows).sum::<u64>(), rows(whole));
}

/// Without a context switch, only the tick tells. Here it comes once a second, and the command ends long
/// before.
#[test]
fn log_13_the_end_waits_for_the_tick_that_is_in_force() {
    let arguments = ["--event", "service,run-queue=1", "--", "true"];
    let Some(objects) = log(&arguments) else { return };
    let statement = of_kind(&objects, "completeness")[0];
    let files = statement["files"].as_array().unwrap().iter();
    // There is a file for each processor.
    let ticks: Vec<_> = files.filter(|file| file["file"] == "run queue").map(|file| &file["rows"]).collect();
    assert!(!ticks.is_empty() && ticks.iter().all(|rows| rows.as_u64() >= Some(1)), "{statement}");
}

/// A task that runs from before the logging until after it, and never leaves its processor, is charged for
/// the time in between.
#[test]
fn log_13_service_time_alone_is_what_has_passed_on_all_processors() {
    let busy = Busy::new("mete-busy");
    let _running = [busy.start(), busy.start()];
    let Some(objects) = log(&["--event", "service", "--", "sleep", "1"]) else { return };
    let whole: Vec<_> = objects.iter().filter(|object| object["scope"] == "whole").collect();
    let of_domains = whole.iter().filter(|object| object["kind"] == "domain");
    let used: u64 = of_domains.map(|domain| domain["service_ns"].as_u64().unwrap()).sum();
    let statement = whole.iter().find(|object| object["kind"] == "completeness").unwrap();
    let passed = statement["to_s"].as_f64().unwrap() - statement["from_s"].as_f64().unwrap();
    let processors = whole.iter().filter(|object| object["kind"] == "processor").count();
    let part = used as f64 / 1e9 / (passed * processors as f64);
    assert!((0.9..=1.1).contains(&part), "{part}: {objects:?}");
}

#[test]
fn without_anything_to_log_it_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let output =
        program(&["log", "--components"]).env("METE_RUNTIME_DIR", directory.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("no program with probes"), "{said}");
}
