//! `mete show` and `mete convert` on a trace that is recorded here (KLOG-7, NEW-2, NEW-6).

use std::path::Path;
use std::sync::Arc;

use crate::common::{self, fails, failure, mete, on_a_terminal, printed_by, said_by, stdout};
use mete_trace::{
    Buffers, ClockSource, Description, EventLayout, FieldKind, FieldLayout, Memory, Options, Producer,
    Recorder, Ticks,
};

/// Three events on each of two processors, of threads that no kernel has, so that they have no names, and one
/// on processor 1 that found no room.
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
            let _ = producer.record(3, &[number], || Ticks::new(second * 1_000_000_000));
        }
    }
    let too_large = [0; 1000];
    let _ = Producer::new(memory.buffer(1)).record(3, &too_large, Ticks::default);
    recorder.stop().unwrap();
}

/// A directory with a trace in it.
fn traced(record: fn(&Path)) -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    record(&path);
    (directory, path)
}

#[test]
fn klog_7_show_prints_all_processors_in_one_order_and_what_is_missing() {
    let (_directory, path) = traced(record);
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
    let said = failure(&["show", path, "--domain", "3"]);
    assert!(
        said.contains("no field of this trace says which domain an event is about")
            && said.contains("SCHEDIN.pid"),
        "{said}"
    );
    fails(
        &["show", path, "--event", "SCHEDOUT"],
        "no event \"SCHEDOUT\": it has SCHEDIN; did you mean SCHEDIN?",
    );
    fails(
        &["show", path, "--event", "schedin"],
        "no event \"schedin\": it has SCHEDIN; did you mean SCHEDIN?",
    );
}

#[test]
fn new_6_convert_writes_files_and_says_what_is_missing() {
    let (directory, path) = traced(record);
    let convert = |form: &str, out: &Path| {
        mete(&["convert", path.to_str().unwrap(), "--to", form, "-o", out.to_str().unwrap()]).assert()
    };
    for form in ["perl", "json", "csv", "text", "perfetto", "parquet", "arrow", "ctf", "ctf1"] {
        let out = directory.path().join(form);
        let said = said_by(&convert(form, &out).success());
        assert!(said.contains("mete: processor 1:") && said.contains("1 events lost"), "{form}: {said}");
        let told = if form.starts_with("ctf") { out.join("metadata") } else { out };
        let bytes = std::fs::read(told).unwrap();
        assert!(String::from_utf8_lossy(&bytes).contains("SCHEDIN"), "{form}");
    }
    // The command writes into no folder that is there already. A file is replaced as a whole.
    let said = said_by(&convert("ctf", &directory.path().join("ctf")).failure());
    assert!(said.contains("ctf") && said.contains("it exists already"), "{said}");
    convert("csv", &directory.path().join("text")).success();
    let left: Vec<_> =
        std::fs::read_dir(directory.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left.len(), 10, "the trace and nine results: {left:?}");
    let nowhere = mete(&["convert", path.to_str().unwrap(), "--to", "ctf"]).assert().failure();
    assert!(said_by(&nowhere).contains("give its place with -o"));
}

#[test]
fn new_2_what_is_no_trace_is_said_in_one_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let assert = mete(&["show", directory.path().to_str().unwrap()]).assert().failure();
    let said = said_by(&assert);
    assert!(
        said.starts_with("mete: this is no trace: cannot read ") && said.contains("description.json"),
        "{said}"
    );
    let file = directory.path().join("run.trace");
    let file = file.to_str().unwrap();
    mete(&["sim", "shares-3-2-1", "--trace", file]).assert().success();
    let assert = mete(&["show", file]).assert().code(1);
    let said = said_by(&assert);
    assert!(said.contains("mete replay reads") && said.lines().count() == 1, "{said}");
}

#[test]
fn klog_7_a_choice_that_nothing_can_be_in_is_refused() {
    let (_directory, path) = traced(record);
    let path = path.to_str().unwrap();
    fails(&["show", path, "--from", "5", "--until", "2"], "--from is later than --until");
    fails(&["show", path, "--processor", "1,99"], "the trace has no processor 99; it has 0, 1");
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
    let (_directory, path) = traced(record_damaged);
    let assert = mete(&["show", path.to_str().unwrap()]).assert().code(3);
    let output = assert.get_output();
    let (text, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("[1]  #2  SCHEDIN  pid=5000003") && text.contains("-- processor 1: "), "{text}");
    assert!(said.starts_with("mete: ") && said.contains("processor-0.trace, block 0"), "{said}");
}

#[test]
fn new_2_convert_ends_with_3_if_a_part_cannot_be_read_and_converts_the_rest() {
    let (directory, path) = traced(record_damaged);
    for form in ["perl", "json", "csv", "text", "perfetto", "parquet", "arrow", "ctf", "ctf1"] {
        let out = directory.path().join(form);
        let arguments = ["convert", path.to_str().unwrap(), "--to", form, "-o", out.to_str().unwrap()];
        let assert = mete(&arguments).assert().code(3);
        let said = said_by(&assert);
        assert!(said.contains("processor-0.trace, block 0"), "{form}: {said}");
        assert!(out.exists(), "{form}");
    }
    let text = std::fs::read_to_string(directory.path().join("text")).unwrap();
    assert!(text.contains("[1]  #2  SCHEDIN  pid=5000003"), "{text}");
    let printed = mete(&["convert", path.to_str().unwrap(), "--to", "text"]).assert().code(3);
    assert_eq!(printed_by(&printed), text);
}

#[test]
fn new_2_file_of_a_finished_trace_that_was_cut_where_a_block_ends_is_damaged_and_its_loss_is_told() {
    let (_directory, path) = traced(record);
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
    let lines = printed_by(&mete(&["convert", path.to_str().unwrap(), "--to", "json"]).assert().code(3));
    assert!(lines.contains("\"kind\":\"unreadable\"") && lines.contains("the file was cut"), "{lines}");
}

#[test]
fn new_6_convert_does_not_write_over_the_trace_that_it_reads() {
    let (directory, path) = traced(record);
    let (file, link) = (path.join("processor-0.trace"), directory.path().join("link"));
    std::os::unix::fs::symlink(path.join("description.json"), &link).unwrap();
    let before = [&file, &link].map(|file| std::fs::read(file).unwrap());
    for output in [&file, &link] {
        let said =
            failure(&["convert", path.to_str().unwrap(), "--to", "csv", "-o", output.to_str().unwrap()]);
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
        let _ = Producer::new(memory.buffer(0)).record(3, &[domain], || Ticks::new(domain));
    }
    recorder.stop().unwrap();
}

#[test]
fn log_6_events_are_chosen_by_the_names_and_the_numbers_of_their_domains() {
    let (directory, path) = traced(record_domains);
    let path = path.to_str().unwrap();
    for (chosen, numbers) in [("db", vec![2]), ("2", vec![2]), ("other,1", vec![0, 1]), ("7", vec![])] {
        let text = stdout(&["show", path, "--domain", chosen]);
        let events = text.lines().filter_map(|line| line.split_once("domain=")?.1.parse::<u64>().ok());
        assert_eq!(events.collect::<Vec<_>>(), numbers, "{chosen}: {text}");
    }
    fails(&["show", path, "--domain", "web"], "the trace has no domain \"web\"; it has other, idle, db");
    let without = directory.path().join("without");
    record(&without);
    fails(&["show", without.to_str().unwrap(), "--domain", "db"], "the trace has no names of domains");
}

/// A file that is larger than any disk. Most of it is a hole, which takes no room.
#[test]
fn new_2_a_trace_with_a_terabyte_of_nothing_is_read_at_once_and_told_in_a_line() {
    let (directory, path) = traced(record);
    let shown = stdout(&["show", path.to_str().unwrap()]);
    let files = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let file = files.filter(|path| path.extension().is_some_and(|it| it == "trace")).max().unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(file).unwrap();
    let before = file.metadata().unwrap().len();
    for bytes in [1 << 40, before + (1 << 30)] {
        file.set_len(bytes).unwrap();
        let output = mete(&["show", path.to_str().unwrap()]).assert().code(3).get_output().clone();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let told = said.lines().filter(|line| line.contains("nothing was written here")).count();
        assert!(told == 1 && said.lines().count() <= 3 && said.contains("blocks 1 to "), "{said}");
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let rest: Vec<_> = told.lines().filter(|line| !line.contains("nothing was written here")).collect();
        assert_eq!(rest, shown.lines().collect::<Vec<_>>());
        for form in ["csv", "ctf", "parquet"] {
            let out = directory.path().join(format!("{form}-{bytes}"));
            let convert = ["convert", path.to_str().unwrap(), "--to", form, "-o", out.to_str().unwrap()];
            mete(&convert).assert().code(3);
        }
    }
}

#[test]
fn new_2_a_recorder_that_was_killed_at_its_first_breath_is_told_of_and_its_directory_can_be_used() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("description.json.new"), "{ \"format\": \"mete tr").unwrap();
    for command in ["show", "replay"] {
        fails(&[command, path.to_str().unwrap()], "the recorder was killed before it recorded anything");
    }
    let record = ["record", "--schema", "stopwatch", "-o", path.to_str().unwrap(), "--", "true"];
    mete(&record).assert().success();
    assert!(!path.join("description.json.new").exists());
    mete(&["show", path.to_str().unwrap()]).assert().success();
    std::fs::remove_file(path.join("description.json")).unwrap();
    std::fs::remove_file(path.join("description.before.json")).unwrap();
    fails(&["show", path.to_str().unwrap()], "without it the blocks that are there cannot be read");
}

/// Programs that the kernel left out have no serial numbers.
#[test]
fn new_2_what_the_kernel_left_out_is_told_in_its_place_and_counts_in_its_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    let memory = Arc::new(Memory::new(2, 16, 10).unwrap());
    let mut options = Options::directory(&path);
    options.clock = ClockSource::Monotonic;
    let description = Description::default().with_missed_runs();
    let mut recorder = Recorder::start(memory, description, options).unwrap();
    for runs in [0, 3, 10] {
        std::thread::sleep(std::time::Duration::from_millis(2));
        recorder.look_for_missed_runs(|| Ok::<_, ()>(runs)).unwrap();
    }
    let missed = recorder.stop().unwrap().circumstances.missed;
    let path = path.to_str().unwrap();
    // The trace's clock is the monotonic one.
    let seconds = |time: Ticks| format!("{}.{:09}", time.get() / 1_000_000_000, time.get() % 1_000_000_000);

    let output = mete(&["show", path, "--without-marks"]).assert().success().get_output().clone();
    let (shown, said) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    let marks: Vec<_> = shown.lines().filter(|line| line.contains("  MISSED_RUNS  ")).collect();
    let fields: Vec<_> = marks.iter().map(|line| line.split_once("MISSED_RUNS  ").unwrap().1).collect();
    let of = |nth: usize| format!("since={} runs={}", missed[nth].since, missed[nth].runs);
    assert_eq!(fields, [of(0), of(1)], "{shown}");
    for missed in &missed {
        let (since, until) = (seconds(missed.since), seconds(missed.until));
        let told = format!(
            "-- {} runs of programs were left out by the kernel, without a gap, between {since} and {until}",
            missed.runs
        );
        assert!(shown.lines().any(|line| line == told), "{told}: {shown}");
        assert!(
            said.starts_with("mete: 10 times") && said.contains(&format!("between {since} and {until} s")),
            "{said}"
        );
    }
    // The first stretch alone.
    let until = ["--until", &seconds(missed[0].since)];
    let output =
        mete(&[&["show", path, "--json"][..], &until].concat()).assert().success().get_output().clone();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("mete: 3 times") && said.lines().count() == 1, "{said}");
    let objects = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let objects: Vec<serde_json::Value> = objects.map(|line| serde_json::from_slice(line).unwrap()).collect();
    common::assert_described(&objects);
    let of_kind: Vec<_> = objects.iter().filter(|object| object["kind"] == "missed_runs").collect();
    assert!(
        of_kind.len() == 1 && of_kind[0]["runs"] == 3 && of_kind[0]["missed"][0]["runs"] == 3,
        "{of_kind:?}"
    );
    // A trace of an earlier version does not tell when it was.
    let file = directory.path().join("trace/description.json");
    let mut text: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    text["circumstances"].as_object_mut().unwrap().remove("missed");
    std::fs::write(&file, text.to_string()).unwrap();
    let shown = stdout(&[&["show", path][..], &until].concat());
    assert!(shown.contains("-- 10 runs of programs were left out by the kernel, without a gap\n"), "{shown}");
    for form in ["perfetto", "parquet", "arrow", "ctf", "ctf1", "csv", "perl"] {
        let out = directory.path().join(form);
        mete(&["convert", path, "--to", form, "-o", out.to_str().unwrap()]).assert().success();
        let bytes = std::fs::read(if out.is_dir() { out.join("metadata") } else { out }).unwrap();
        assert!(String::from_utf8_lossy(&bytes).contains("MISSED_RUNS"), "{form}");
    }
}

#[test]
fn new_6_a_binary_form_is_not_written_to_a_terminal() {
    let (_directory, path) = traced(record);
    for form in ["parquet", "arrow", "perfetto"] {
        let command = format!("'{}' convert '{}' --to {form}", env!("CARGO_BIN_EXE_mete"), path.display());
        let Some(mut script) = on_a_terminal(&command) else { return };
        let said = printed_by(&script.assert().code(1));
        assert!(said.contains("standard output is a terminal; give a file with -o"), "{said}");
        assert!(!said.contains("PAR1") && !said.contains("ARROW1"), "{said}");
        let piped = mete(&["convert", path.to_str().unwrap(), "--to", form]).assert().success();
        assert!(!piped.get_output().stdout.is_empty());
    }
}
