//! `mete show` and `mete convert` on a trace that is recorded here (KLOG-7, NEW-2, NEW-6).

#![allow(clippy::unwrap_used, reason = "a test may end so")]

mod common;

use std::path::Path;
use std::sync::Arc;

use common::mete;
use mete_trace::{
    Buffers, ClockSource, Description, EventLayout, FieldKind, FieldLayout, Memory, Options, Producer,
    Recorder,
};

/// Three events on each of two processors, of threads that no kernel has, so that they have no names, and one on
/// processor 1 that found no room.
fn record(directory: &Path) {
    let pid =
        FieldLayout { name: "pid".into(), kind: FieldKind::Signed, offset: 16, bytes: 4, doc: String::new() };
    let event = EventLayout { id: 3, name: "SCHEDIN".into(), doc: String::new(), fields: vec![pid] };
    let description = Description { schema: String::new(), events: vec![event] };
    let memory = Arc::new(Memory::new(2, 16, 10).unwrap());
    let mut options = Options::directory(directory);
    options.clock = ClockSource::Monotonic;
    let recorder = Recorder::start(Arc::clone(&memory), description, options).unwrap();
    for (number, second) in [(5_000_001, 10), (5_000_002, 20), (5_000_003, 30)] {
        for processor in 0..2 {
            let producer = Producer::new(memory.buffer(processor));
            let _ = producer.record(3, &[number], || second * 1_000_000_000);
        }
    }
    let too_large = [0; 1000];
    let _ = Producer::new(memory.buffer(1)).record(3, &too_large, || 0);
    recorder.stop().unwrap();
}

fn stdout(arguments: &[&str]) -> String {
    String::from_utf8(mete(arguments).assert().success().get_output().stdout.clone()).unwrap()
}

#[test]
fn klog_7_show_prints_all_processors_in_one_order_and_what_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    record(&path);
    let path = path.to_str().unwrap();
    let text = stdout(&["show", path, "--event", "SCHEDIN"]);
    let events: Vec<_> = text.lines().filter(|line| line.contains("SCHEDIN")).collect();
    assert_eq!(events[0], "10.000000000  [0]  #0  SCHEDIN  pid=5000001");
    assert_eq!(events[3], "20.000000000  [1]  #1  SCHEDIN  pid=5000002");
    assert_eq!(events.len(), 6);
    assert!(text.contains("-- processor 1: 1 events lost, from #3 on"), "{text}");
    let chosen = stdout(&["show", path, "--processor", "1", "--from", "20", "--until", "20.5"]);
    assert!(chosen.starts_with("20.000000000  [1]  #1  SCHEDIN  pid=5000002\n"), "{chosen}");
    assert!(!chosen.contains("pid=5000003") && !chosen.contains("[0]"), "{chosen}");
    let of_process = stdout(&["show", path, "--process", "5000002,7"]);
    assert_eq!(of_process.matches("SCHEDIN").count(), 2, "{of_process}");
    assert!(of_process.contains("pid=5000002") && of_process.contains("1 events lost"), "{of_process}");
    let of_domain = mete(&["show", path, "--domain", "3"]).assert().failure();
    let said = String::from_utf8_lossy(&of_domain.get_output().stderr).into_owned();
    assert!(
        said.contains("no field of this trace says of which domain it tells") && said.contains("SCHEDIN.pid"),
        "{said}"
    );
    let unknown = mete(&["show", path, "--event", "SCHEDOUT"]).assert().failure();
    let said = String::from_utf8_lossy(&unknown.get_output().stderr).into_owned();
    assert!(said.contains("no event \"SCHEDOUT\"; it has SCHEDIN"), "{said}");
}

#[test]
fn new_6_convert_writes_files_and_says_what_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    record(&path);
    let convert = |form: &str, out: &Path| {
        mete(&["convert", path.to_str().unwrap(), "--to", form, "-o", out.to_str().unwrap()]).assert()
    };
    for form in ["perl", "json", "csv", "text", "perfetto", "parquet", "arrow", "ctf", "ctf1"] {
        let out = directory.path().join(form);
        let said = String::from_utf8_lossy(&convert(form, &out).success().get_output().stderr).into_owned();
        assert!(said.contains("mete: processor 1:") && said.contains("1 events lost"), "{form}: {said}");
        let told = if form.starts_with("ctf") { out.join("metadata") } else { out };
        let bytes = std::fs::read(told).unwrap();
        assert!(String::from_utf8_lossy(&bytes).contains("SCHEDIN"), "{form}");
    }
    // A folder that is there is nobody's to write into; a file is replaced, whole.
    let said = convert("ctf", &directory.path().join("ctf")).failure();
    let said = String::from_utf8_lossy(&said.get_output().stderr).into_owned();
    assert!(said.contains("ctf") && said.contains("it is there already"), "{said}");
    convert("csv", &directory.path().join("text")).success();
    let left: Vec<_> =
        std::fs::read_dir(directory.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left.len(), 10, "the trace and nine results: {left:?}");
    let nowhere = mete(&["convert", path.to_str().unwrap(), "--to", "ctf"]).assert().failure();
    assert!(String::from_utf8_lossy(&nowhere.get_output().stderr).contains("say with -o where"));
}

#[test]
fn new_2_what_is_no_trace_is_said_in_one_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let assert = mete(&["show", directory.path().to_str().unwrap()]).assert().failure();
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(
        said.starts_with("mete: this is no trace: cannot read ") && said.contains("description.json"),
        "{said}"
    );
}

/// What is said of a command that is refused.
fn refusal(arguments: &[&str]) -> String {
    let assert = mete(arguments).assert().failure().stdout("");
    String::from_utf8_lossy(&assert.get_output().stderr).into_owned()
}

#[test]
fn klog_7_a_choice_that_nothing_can_be_in_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    record(&path);
    let path = path.to_str().unwrap();
    let said = refusal(&["show", path, "--from", "5", "--until", "2"]);
    assert!(said.contains("--from is later than --until"), "{said}");
    let said = refusal(&["show", path, "--processor", "1,99"]);
    assert!(said.contains("the trace has no processor 99; it has 0, 1"), "{said}");
    assert!(stdout(&["show", path, "--from", "20", "--until", "20"]).contains("pid=5000002"));
}

/// A trace of which a part cannot be read.
fn record_damaged(path: &Path) {
    record(path);
    let file = path.join("processor-0.trace");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&file, bytes).unwrap();
}

#[test]
fn new_2_show_ends_with_3_if_a_part_cannot_be_read_and_shows_the_rest() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    record_damaged(&path);
    let assert = mete(&["show", path.to_str().unwrap()]).assert().code(3);
    let output = assert.get_output();
    let (text, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("[1]  #2  SCHEDIN  pid=5000003") && text.contains("-- processor 1: "), "{text}");
    assert!(said.starts_with("mete: ") && said.contains("processor-0.trace, block 0"), "{said}");
}

#[test]
fn new_2_convert_ends_with_3_if_a_part_cannot_be_read_and_converts_the_rest() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    record_damaged(&path);
    for form in ["perl", "json", "csv", "text", "perfetto", "parquet", "arrow", "ctf", "ctf1"] {
        let out = directory.path().join(form);
        let arguments = ["convert", path.to_str().unwrap(), "--to", form, "-o", out.to_str().unwrap()];
        let assert = mete(&arguments).assert().code(3);
        let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(said.contains("processor-0.trace, block 0"), "{form}: {said}");
        assert!(out.exists(), "{form}");
    }
    let text = std::fs::read_to_string(directory.path().join("text")).unwrap();
    assert!(text.contains("[1]  #2  SCHEDIN  pid=5000003"), "{text}");
    let printed = mete(&["convert", path.to_str().unwrap(), "--to", "text"]).assert().code(3);
    assert_eq!(String::from_utf8_lossy(&printed.get_output().stdout), text);
}

#[test]
fn new_2_file_of_a_finished_trace_that_was_cut_where_a_block_ends_is_damaged_and_its_loss_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    record(&path);
    let whole = stdout(&["show", path.to_str().unwrap()]).matches("  [0]  ").count();
    std::fs::write(path.join("processor-0.trace"), "").unwrap();
    let assert = mete(&["show", path.to_str().unwrap()]).assert().code(3);
    let output = assert.get_output();
    let (text, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(text.contains(&format!("-- processor 0: {whole} events cannot be read, from #0 on")), "{text}");
    assert!(text.contains(&format!("-- processor 0: 0 records, {whole} events lost")), "{text}");
    assert!(
        text.contains("[1]  #2  SCHEDIN") && said.contains("processor-0.trace: the file was cut"),
        "{said}"
    );
    let json = mete(&["convert", path.to_str().unwrap(), "--to", "json"]).assert().code(3);
    let lines = String::from_utf8_lossy(&json.get_output().stdout).into_owned();
    assert!(lines.contains("\"kind\":\"unreadable\"") && lines.contains("the file was cut"), "{lines}");
}

#[test]
fn new_6_convert_does_not_write_over_the_trace_that_it_reads() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    record(&path);
    let (file, link) = (path.join("processor-0.trace"), directory.path().join("link"));
    std::os::unix::fs::symlink(path.join("description.json"), &link).unwrap();
    let before = [&file, &link].map(|file| std::fs::read(file).unwrap());
    for output in [&file, &link] {
        let said =
            refusal(&["convert", path.to_str().unwrap(), "--to", "csv", "-o", output.to_str().unwrap()]);
        assert!(said.contains("is a part of the trace itself; choose another name"), "{said}");
    }
    assert_eq!([&file, &link].map(|file| std::fs::read(file).unwrap()), before);
}

/// Three events, each of another domain.
fn record_domains(directory: &Path) {
    let (name, kind) = ("domain".to_owned(), FieldKind::Unsigned);
    let domain = FieldLayout { name, kind, offset: 16, bytes: 2, doc: String::new() };
    let event = EventLayout { id: 3, name: "WORK".into(), doc: String::new(), fields: vec![domain] };
    let description = Description { schema: String::new(), events: vec![event] };
    let memory = Arc::new(Memory::new(1, 16, 10).unwrap());
    let domains = ["other", "idle", "db"].map(str::to_owned).into();
    let options = Options { domains, clock: ClockSource::Monotonic, ..Options::directory(directory) };
    let recorder = Recorder::start(Arc::clone(&memory), description, options).unwrap();
    for domain in 0..3 {
        let _ = Producer::new(memory.buffer(0)).record(3, &[domain], || domain);
    }
    recorder.stop().unwrap();
}

#[test]
fn log_6_events_are_chosen_by_the_names_and_the_numbers_of_their_domains() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    record_domains(&path);
    let path = path.to_str().unwrap();
    for (chosen, numbers) in [("db", vec![2]), ("2", vec![2]), ("other,1", vec![0, 1]), ("7", vec![])] {
        let text = stdout(&["show", path, "--domain", chosen]);
        let events = text.lines().filter_map(|line| line.split_once("domain=")?.1.parse::<u64>().ok());
        assert_eq!(events.collect::<Vec<_>>(), numbers, "{chosen}: {text}");
    }
    let said = refusal(&["show", path, "--domain", "web"]);
    assert!(said.contains("the trace has no domain \"web\"; it has other, idle, db"), "{said}");
    let without = directory.path().join("without");
    record(&without);
    let said = refusal(&["show", without.to_str().unwrap(), "--domain", "db"]);
    assert!(said.contains("the trace has no names of domains"), "{said}");
}
