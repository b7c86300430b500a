//! `mete record` on the running kernel (KLOG-1, KLOG-5, KLOG-6, KLOG-7).

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use crate::common::{
    self, Running, assert_described, bpf_link_exists, bpf_links, events, is_root, kernel_is_there, mete,
    objects, on_a_terminal, printed_by, program, said_by, says, wait_until,
};
use rustix::process::Signal;
use serde_json::Value;

/// A place for a trace, and for what is compiled.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    /// The same for a trace of the kernel; `None` if the kernel cannot be recorded here.
    fn for_kernel() -> Option<Place> {
        kernel_is_there().then(Place::new)
    }

    fn trace(&self) -> PathBuf {
        self.0.path().join("trace")
    }

    fn text(&self) -> String {
        self.trace().to_str().unwrap().to_owned()
    }
}

fn description(trace: &Path) -> Value {
    serde_json::from_slice(&fs::read(trace.join("description.json")).unwrap()).unwrap()
}

#[test]
fn klog_5_record_of_a_command_has_its_life_and_its_exit_status() {
    let Some(place) = Place::for_kernel() else { return };
    let command = ["record", "--schema", "scheduler", "-o", &place.text(), "--json", "--", "sh", "-c"];
    let recorded = mete(&[&command[..], &["echo $$ >&2; /bin/true; exit 3"]].concat()).assert().code(3);
    let summaries = objects(&printed_by(&recorded));
    assert_described(&summaries);
    assert_eq!((summaries.len(), &summaries[0]["lost"]), (1, &Value::from(0)));
    let pid: i64 = said_by(&recorded).trim().parse().unwrap();
    let events = events(&place.trace());
    let count = |name: &str, field: &str| {
        events.iter().filter(|event| event["event"] == name && event["fields"][field] == pid).count()
    };
    assert_eq!(count("FORK", "child"), 1);
    let made = events.iter().filter(|event| event["fields"]["parent"] == pid);
    // Before it became the command, it may have had another thread.
    assert_eq!(made.filter(|event| event["fields"]["child_tgid"] != pid).count(), 1);
    assert_eq!(count("EXEC", "pid"), 1);
    assert_eq!(count("EXIT", "pid"), 1);
    assert!(count("SCHEDIN", "pid") >= 1);
    assert_eq!(description(&place.trace())["finished"], true);
}

/// The kernel accounts for processor time, too; its count leaves out what interrupts take.
#[test]
fn klog_8_a_recording_is_replayed_with_names_and_all_the_work_of_a_process() {
    let Some(place) = Place::for_kernel() else { return };
    let work = "echo $$ >&2; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let options = ["record", "--schema", "scheduler", "-o", &place.text(), "--", "sh", "-c", work];
    let pid: i64 = said_by(&mete(&options).assert().success()).lines().next().unwrap().parse().unwrap();
    let replayed = mete(&["replay", &place.text(), "--policy", "rr", "--json"]).assert().success();
    let replayed = objects(&printed_by(&replayed));
    assert_described(&replayed);
    let threads: Vec<_> = replayed.iter().filter(|object| object["pid"] == pid).collect();
    assert_eq!(threads.len(), 2, "as recorded, and under rr");
    let events = events(&place.trace());
    let exit = events.iter().find(|event| event["event"] == "EXIT" && event["fields"]["pid"] == pid).unwrap();
    let accounted_ns = exit["fields"]["runtime_ns"].as_u64().unwrap();
    // Some switches are never reported. The time between them belongs to no thread, and is reported as
    // uncertain.
    let uncertain_ns = replayed.iter().find_map(|object| object["uncertain_ns"].as_u64()).unwrap();
    for thread in threads {
        let (name, ran_ns) = (&thread["thread"], thread["ran_ns"].as_u64().unwrap());
        assert!(name == "sh", "{thread}");
        assert!(
            ran_ns + uncertain_ns >= accounted_ns / 20 * 19,
            "{thread}, accounted {accounted_ns}, uncertain {uncertain_ns}"
        );
    }
}

#[test]
fn klog_5_interrupted_recording_is_complete() {
    let Some(place) = Place::for_kernel() else { return };
    let mut recorder =
        Running::start(&mut program(&["record", "--schema", "scheduler", "-o", &place.text()]));
    wait_until("it records", || place.trace().join("description.json").exists());
    recorder.signal(Signal::INT);
    assert_eq!(recorder.wait().code(), Some(0), "it has no other end");
    let description = description(&place.trace());
    assert_eq!(description["finished"], true);
    let accounts = description["completeness"].as_array().unwrap();
    assert!(accounts.iter().all(|account| account["lost"] == 0 && account["ended"] == true), "{accounts:?}");
    let second = place.0.path().join("second");
    let options = ["record", "--schema", "scheduler", "--for", "60s", "-o"];
    let mut stopped = Running::start(program(&options).arg(&second));
    wait_until("it records", || second.join("description.json").exists());
    stopped.signal(Signal::INT);
    assert_eq!(stopped.wait().code(), Some(130), "its time was not over");
}

#[test]
fn klog_6_killed_recorder_leaves_nothing_attached_and_a_trace_that_can_be_read() {
    let Some(place) = Place::for_kernel() else { return };
    let mut recorder =
        Running::start(&mut program(&["record", "--schema", "scheduler", "-o", &place.text()]));
    let has_block = |processor: u32| {
        let file = fs::metadata(place.trace().join(format!("processor-{processor}.trace")));
        file.is_ok_and(|file| file.len() >= 1024)
    };
    wait_until("blocks are written", || has_block(0));
    let links = bpf_links(recorder.pid());
    assert!(links.len() >= common::SCHEDULER_PROGRAMS, "{links:?}");
    recorder.signal(Signal::KILL);
    recorder.wait();
    wait_until("the kernel has let go", || !links.iter().any(|link| bpf_link_exists(*link)));
    assert_eq!(description(&place.trace())["finished"], false);
    assert!(!events(&place.trace()).is_empty());
}

#[test]
fn klog_5_command_that_cannot_be_run_leaves_room_for_the_next_one() {
    let Some(place) = Place::for_kernel() else { return };
    let options = ["record", "--schema", "scheduler", "-o", &place.text(), "--"];
    let refused = mete(&[&options[..], &["/nowhere/program"]].concat()).assert().code(127);
    says(&refused, "cannot run /nowhere/program");
    mete(&[&options[..], &["true"]].concat()).assert().success();
}

#[test]
fn klog_2_event_that_is_not_there_is_told_with_the_nearest() {
    let Some(place) = Place::for_kernel() else { return };
    let options = ["record", "--schema", "scheduler", "--events", "SCHEDN", "-o", &place.text()];
    let refused = mete(&options).assert().code(1);
    says(&refused, "no event \"SCHEDN\"; did you mean `SCHEDIN`?");
    let options = ["record", "--schema", "scheduler", "--events", "schedin", "-o", &place.text()];
    let refused = mete(&options).assert().code(1);
    says(&refused, "no event \"schedin\"; did you mean `SCHEDIN`?");
    assert!(!place.trace().exists());
    let refused = mete(&["record", "--schema", "stopwatch", "-o", &place.text()]).assert().code(1);
    says(&refused, "the kernel logs none of these events: START, STOP");
    assert!(!place.trace().exists());
}

/// A mistake in the schema is reported before missing rights of the user.
#[test]
fn klog_2_schema_that_the_kernel_records_nothing_of_is_told_so_to_every_user() {
    const NOBODY: u32 = 65534;
    if !is_root() {
        return;
    }
    let place = Place::new();
    // The other user may not enter the directory in which the program was built.
    fs::set_permissions(place.0.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let program = place.0.path().join("mete");
    fs::copy(env!("CARGO_BIN_EXE_mete"), &program).unwrap();
    let expected = [
        ("stopwatch", "mete: the kernel logs none of these events: START, STOP; a program logs them"),
        ("/dev/null", "mete: the schema has no events: there is nothing to record\n"),
    ];
    for (schema, expected) in expected {
        for user in [0, NOBODY] {
            let mut command = Command::new(&program);
            command.args(["record", "--schema", schema, "-o", "trace"]).current_dir(place.0.path());
            let output = command.uid(user).gid(user).stdin(Stdio::null()).output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.code() == Some(1) && said.starts_with(expected), "{user}: {said}");
            assert!(!place.trace().exists());
        }
    }
}

#[test]
fn klog_5_trace_does_not_take_the_place_of_a_file() {
    let place = Place::new();
    fs::write(place.trace(), "kept").unwrap();
    for options in [&[][..], &["--keep", "1M"]] {
        let record = ["record", "--schema", "stopwatch", "-o", &place.text()];
        let refused = mete(&[&record[..], options, &["--", "true"]].concat()).assert().code(1);
        let expected = format!("mete: {} is a file; a trace needs a directory of its own\n", place.text());
        assert_eq!(said_by(&refused), expected);
        assert_eq!(fs::read_to_string(place.trace()).unwrap(), "kept");
    }
}

#[test]
fn klog_5_command_that_cannot_run_leaves_no_directory_that_was_made_for_its_trace() {
    let place = Place::new();
    let below = place.0.path().join("above/trace");
    let record = ["record", "--schema", "stopwatch", "-o", below.to_str().unwrap(), "--", "/no/such/program"];
    let refused = mete(&record).assert().code(127);
    says(&refused, "/no/such/program");
    assert!(fs::read_dir(place.0.path()).unwrap().next().is_none());
}

/// A recording without the kernel: what a program of this project logs at its probes.
fn recorded_again(place: &Place, options: &[&str], command: &str) -> assert_cmd::assert::Assert {
    let record = ["record", "--schema", "stopwatch", "-o", &place.text()];
    mete(&[&record[..], options, &["--", command]].concat()).assert()
}

#[test]
fn klog_5_recipe_runs_again_with_force_which_replaces_a_trace_and_nothing_else() {
    let place = Place::new();
    recorded_again(&place, &[], "true").success();
    let recording = || description(&place.trace())["recording"].clone();
    let first = recording();
    let refused = recorded_again(&place, &[], "true").code(1);
    let expected = format!(
        "mete: there is a trace in {} already: name another directory, or replace it by --force\n",
        place.text()
    );
    assert_eq!((said_by(&refused), recording()), (expected, first.clone()));
    // A command that never ran has recorded nothing that could take the place of the trace.
    recorded_again(&place, &["--force"], "/no/such/program").code(127);
    assert_eq!(recording(), first);
    for options in [&["--force"][..], &["--force", "--keep", "1M"]] {
        let before = recording();
        recorded_again(&place, options, "true").success();
        assert_ne!(recording(), before);
        assert_eq!(
            fs::read_dir(place.trace())
                .unwrap()
                .filter(|entry| { entry.as_ref().unwrap().file_name().to_string_lossy().contains("former.") })
                .count(),
            0
        );
    }
    fs::write(place.trace().join("notes"), "mine").unwrap();
    let refused = recorded_again(&place, &["--force"], "true").code(1);
    let expected = format!("mete: {} is not replaced: notes in it is no part of a trace\n", place.text());
    assert_eq!(said_by(&refused), expected);
    assert_eq!(fs::read_to_string(place.trace().join("notes")).unwrap(), "mine");
}

const PAPERS: &str = "\
arch PentiumIV { counter0 l2_cache_misses }
arch any { counter0 context_switches }
event SCHEDIN {
    int pid
    ulonglong L2_cache_misses
}
at tp_btf:sched_switch log SCHEDIN(next.pid, counter0)
";

/// KLogger §4, but for the counter: what the kernel counts itself is on every machine.
#[test]
fn klog_1_papers_example_is_recorded_and_the_real_perl_reads_it() {
    let Some(place) = Place::for_kernel() else { return };
    let schema = place.0.path().join("papers.mete");
    fs::write(&schema, PAPERS).unwrap();
    let record = |name: &str, compiler: Option<&str>| {
        let trace = place.0.path().join(name);
        let mut record =
            mete(&["record", "--schema", schema.to_str().unwrap(), "-o", trace.to_str().unwrap()]);
        record.args(["--", "sleep", "0.01"]).env("XDG_CACHE_HOME", place.0.path());
        compiler.map(|compiler| record.env("CLANG", compiler));
        record.assert()
    };
    let refused = record("none", Some("/nowhere/clang")).code(1);
    says(&refused, "/nowhere/clang cannot be run");
    let recorded = record("trace", None);
    if said_by(&recorded).contains("install clang") {
        return println!("SKIPPED: the paper's example: {}", said_by(&recorded));
    }
    recorded.success();
    let text = mete(&["convert", &place.text(), "--to", "perl", "--event", "SCHEDIN"]).assert().success();
    let file = place.0.path().join("trace.pl");
    fs::write(&file, &text.get_output().stdout).unwrap();
    let expected = events(&place.trace());
    assert!(expected.len() >= 2);
    match perl(&file) {
        Ok(lines) => {
            let line = |event: &Value| {
                let (header, fields) = (&event["serial"], &event["fields"]);
                format!("SCHEDIN {header} {} {}", fields["pid"], fields["L2_cache_misses"])
            };
            assert_eq!(lines, expected.iter().map(line).collect::<Vec<_>>());
        }
        Err(error) => println!("SKIPPED: the paper's example: no perl here ({error})"),
    }
}

/// What an analysis program gets, as the paper has it: an array of hashes.
fn perl(file: &Path) -> io::Result<Vec<String>> {
    let program = r#"
        my @events = do $ARGV[0];
        die "$@$!" if $@ || !@events;
        print "$_->{header}{type} $_->{header}{serial} $_->{pid} $_->{L2_cache_misses}\n" for @events;
    "#;
    let output = Command::new("perl").args(["-we", program]).arg(file).output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

/// The example in C, with the encoders of the stopwatch schema; `None` where there is no compiler.
fn stopwatch_program(place: &Place) -> Option<PathBuf> {
    let header = mete(&["schema", "generate", "c", "stopwatch"]).assert().success();
    fs::write(place.0.path().join("stopwatch.h"), &header.get_output().stdout).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = place.0.path().join("stopwatch");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-I"]).arg(place.0.path()).arg("-I").arg(root.join("crates/mete-trace/include"));
    match compiler.arg(root.join("examples/c/stopwatch.c")).arg("-o").arg(&program).status() {
        Ok(status) => {
            assert!(status.success());
            Some(program)
        }
        Err(error) => {
            println!("SKIPPED: events of a C program: no C compiler ({error})");
            None
        }
    }
}

/// How often each event is in a trace.
fn counts(trace: &Path) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for event in events(trace) {
        *counts.entry(event["event"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    counts
}

/// Paper §7. The kernel has no part in it, so there is no need to be root.
#[test]
fn klog_8_stopwatch_of_a_program_is_recorded_by_its_own_encoders() {
    let place = Place::new();
    let Some(program) = stopwatch_program(&place) else { return };
    let record = |name: &str, more: &[&str]| {
        let trace = place.0.path().join(name);
        let start = ["record", "--schema", "stopwatch", "--json", "-o", trace.to_str().unwrap()];
        let command = ["--", program.to_str().unwrap(), "40"];
        // A file that is called as the schema is not taken for it.
        let recorded =
            mete(&[&start, more, &command].concat()).current_dir(place.0.path()).assert().success();
        let summaries = objects(&printed_by(&recorded));
        assert_described(&summaries);
        assert_eq!(summaries[0]["lost"], 0);
        trace
    };
    let both = record("both", &[]);
    assert_eq!(counts(&both), BTreeMap::from([("START".to_owned(), 40), ("STOP".to_owned(), 40)]));
    let rounds = events(&both);
    let rounds =
        rounds.iter().filter(|event| event["event"] == "START").map(|event| &event["fields"]["value"]);
    assert_eq!(rounds.cloned().collect::<Vec<_>>(), (0..40).map(Value::from).collect::<Vec<_>>());
    let one = record("one", &["--events", "STOP"]);
    assert_eq!(counts(&one), BTreeMap::from([("STOP".to_owned(), 40)]));
}

/// Both kinds are in one trace. Each has serial numbers of its own on each processor.
#[test]
fn klog_8_events_of_a_program_and_of_functions_in_it_are_recorded_together() {
    let Some(place) = Place::for_kernel() else { return };
    let Some(program) = stopwatch_program(&place) else { return };
    let points = place.0.path().join("points.mete");
    let text = format!("event MAIN {{ int pid }}\nat uprobe:{program:?}:main log MAIN(pid)");
    fs::write(&points, text).unwrap();
    let options = ["record", "--schema", "stopwatch", points.to_str().unwrap(), "-o", &place.text(), "--"];
    let command = [program.to_str().unwrap(), "40"];
    let recorded = mete(&[&options[..], &command].concat()).env("XDG_CACHE_HOME", place.0.path()).assert();
    if said_by(&recorded).contains("install clang") {
        return println!("SKIPPED: events of a program together with points in it: {}", said_by(&recorded));
    }
    recorded.success();
    let found = counts(&place.trace());
    let expected = [("MAIN", 1), ("START", 40), ("STOP", 40)];
    assert_eq!(found, expected.map(|(name, count)| (name.to_owned(), count)).into());
    let events = events(&place.trace());
    assert_eq!(events[0]["event"], "MAIN", "merged by time");
    let pid = &events[0]["fields"]["pid"];
    assert!(events.iter().all(|event| &event["fields"]["pid"] == pid));
}

const BY_DOMAIN: &str = "\
event EXEC { int pid  u16 domain }
at tp_btf:sched_process_exec when domain != 0 log EXEC(p.pid, domain)
";

#[test]
fn klog_8_domains_of_a_recording_have_names_and_their_processes_events() {
    let Some(place) = Place::for_kernel() else { return };
    let schema = place.0.path().join("by-domain.mete");
    fs::write(&schema, BY_DOMAIN).unwrap();
    let schema = ["record", "--schema", schema.to_str().unwrap(), "-o", &place.text()];
    let own = format!("mine=pid:{}", std::process::id());
    let domains = ["--domain", "later=comm:no-such-program", "--domain", &own];
    let command = ["--", "sh", "-c", "echo $$ >&2; exec /bin/true"];
    let recorded =
        mete(&[&schema[..], &domains, &command].concat()).env("XDG_CACHE_HOME", place.0.path()).assert();
    if said_by(&recorded).contains("install clang") {
        return println!("SKIPPED: domains of a recording: {}", said_by(&recorded));
    }
    let said = said_by(&recorded.success());
    assert!(said.contains("\"later\" is empty so far"), "{said}");
    let pid: i64 = said.lines().find_map(|line| line.parse().ok()).unwrap();
    let events = events(&place.trace());
    let of_command: Vec<_> = events.iter().filter(|event| event["fields"]["pid"] == pid).collect();
    assert!(of_command.len() >= 2, "sh and true");
    assert!(of_command.iter().all(|event| event["fields"]["domain"] == 3), "it inherits: {of_command:?}");
    let names = description(&place.trace())["circumstances"]["domains"].clone();
    assert_eq!(names, serde_json::json!(["other", "idle", "later", "mine"]));
    let alone = ["--domain", "gone=pid:2147483647"];
    let refused = mete(&[&schema[..], &alone].concat()).assert().code(1);
    assert!(said_by(&refused).contains("there is no process for pid:2147483647"));
}

/// Writes over the buffers that it has inherited.
const SCRIBBLE: &str = "tr '\\0' '\\356' </dev/zero | dd of=/proc/self/fd/${METE_RECORDER#*,} bs=4096 count=2 iflag=fullblock conv=notrunc 2>/dev/null";

#[test]
fn klog_6_buffer_that_its_program_garbled_is_told_at_the_end_and_by_the_trace() {
    let place = Place::new();
    let record =
        ["record", "--schema", "stopwatch", "-o", &place.text(), "--json", "--", "sh", "-c", SCRIBBLE];
    let recorded = mete(&record).assert().success();
    let said = said_by(&recorded);
    const WHAT: &str = "a program garbled a buffer, and its contents are lost; how many events were in it";
    assert!(said.contains(WHAT), "{said}");
    let summary: Value = serde_json::from_slice(&recorded.get_output().stdout).unwrap();
    assert_described(std::slice::from_ref(&summary));
    assert!(summary["garbled"][0].as_str().unwrap().contains("recording buffer"), "{summary}");
    for arguments in [&["show", &place.text()][..], &["convert", &place.text(), "--to", "csv"]] {
        says(&mete(arguments).assert(), WHAT);
    }
}

#[test]
fn klog_5_beside_a_command_on_a_terminal_a_line_says_how_it_goes() {
    if !kernel_is_there() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let trace = place.path().join("trace");
    let mete = env!("CARGO_BIN_EXE_mete");
    let command = format!("{mete} record --schema scheduler -o {} -- sleep 6", trace.display());
    let Some(mut script) = on_a_terminal(&command) else { return };
    let said = printed_by(&script.assert());
    let line = said.lines().find(|line| line.starts_with("mete: recording: ")).expect(&said);
    let parts: Vec<_> = line.trim_end().split(", ").collect();
    assert!(parts.len() == 4 && parts[1].ends_with(" records") && parts[2].ends_with(" lost"), "{line}");
    assert_ne!(parts[1], "0 records", "the machine is not that quiet");
}
