//! A disk that fills while results are written: one sentence and a failure, and the results that were found
//! are still printed.

use std::process::Command;

use crate::common::{Ended, fuse_is_there, has_two_processors, kernel_is_there, program, run};

/// It fails and ends with a sentence that names the file.
fn fails(ended: &Ended, expected: &[&str]) {
    let said = &ended.said;
    let sentences: Vec<_> = said.lines().filter(|line| line.contains("cannot")).collect();
    assert!(ended.code == Some(1) && sentences.len() == 1, "{said}");
    assert!(said.lines().last() == Some(sentences[0]) && sentences[0].starts_with("mete: "), "{said}");
    assert!(expected.iter().all(|expected| sentences[0].contains(expected)), "{said}");
}

#[test]
fn a_demo_whose_report_finds_no_room_fails_and_shows_its_tables() {
    if !has_two_processors() {
        return;
    }
    let arguments = ["demo", "--no-kernel", "--rounds", "1", "--stretch", "1s", "--report", "/dev/full"];
    let output = run(program(&arguments));
    fails(&output, &["cannot write the report /dev/full", "No space left"]);
    let printed = output.printed;
    assert!(printed.contains("log rows was read.") && printed.contains("requests/s"), "{printed}");
}

#[test]
fn a_study_whose_folder_finds_no_room_fails_prints_its_results_and_leaves_the_ones_before() {
    const STUDY: &str = "\
        cd \"$1\" && mkdir -p vtrr-micro && echo kept > vtrr-micro/schedules.svg
        \"$0\" study vtrr-micro --out \"$1\"; status=$?; ls -A vtrr-micro >&2; cat vtrr-micro/* >&2; exit $status";
    let Some(Ended { code, printed, said }) = in_a_small_place("4k", STUDY) else { return };
    assert!(code == Some(1) && said.contains("No space left"), "{said}");
    assert!(said.contains("mete: cannot write into /"), "{said}");
    assert!(said.ends_with("schedules.svg\nkept\n"), "what was there stays, and nothing comes to it: {said}");
    assert!(printed.contains("mete study vtrr-micro"));
}

#[test]
fn new_1_trace_of_a_simulation_that_finds_no_room_is_told_once_and_leaves_nothing() {
    const SIMULATE: &str =
        "cd \"$1\" && \"$0\" sim mix --policy vtrr --trace mix.rows; status=$?; ls -A; exit $status";
    let Some(ended) = in_a_small_place("4k", SIMULATE) else { return };
    fails(&ended, &["mete: cannot write the trace mix.rows: No space left"]);
    assert_eq!(ended.printed, "");
}

/// Fills the disk, and has results written into folders that do not exist yet.
const INTO_NEW_FOLDERS: &str = "\
    cd \"$1\" && dd if=/dev/zero of=filled bs=1k 2>/dev/null
    for command in 'study vtrr-micro --out' 'generate man --out' 'generate completions --out' \
        'sim mix --policy vtrr --plot' 'sim mix --policy vtrr --seeds 2 --plot'; do
        \"$0\" $command a/b >/dev/null; echo \"$? $(ls -A)\"
    done";

#[test]
fn folders_that_are_made_for_results_that_find_no_room_are_removed() {
    let Some(Ended { printed, said, .. }) = in_a_small_place("16k", INTO_NEW_FOLDERS) else { return };
    assert_eq!(printed, "1 filled\n".repeat(5), "{said}");
    let told = said.lines().filter(|line| line.starts_with("mete: cannot write into a/b"));
    assert!(told.filter(|line| line.contains("No space left")).count() == 5, "{said}");
}

/// Runs a script with the command and the path of a small file system, which is the script's own and ends
/// with it; `None` if there can be none.
fn in_a_small_place(size: &str, script: &str) -> Option<Ended> {
    const MOUNT: &str = "mount -t tmpfs -o size=$2 none \"$1\" && shift 2 && exec \"$@\"";
    let directory = tempfile::tempdir().unwrap();
    let within = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", MOUNT, "sh"]).arg(directory.path()).arg(size).args(arguments);
        command
    };
    if !within(&["true"]).output().is_ok_and(|tried| tried.status.success()) {
        eprintln!("SKIPPED: this may not mount a small file system");
        return None;
    }
    let path = directory.path().to_str().unwrap();
    let ended = run(within(&["sh", "-c", script, env!("CARGO_BIN_EXE_mete"), path]));
    let mut beside = directory.path().read_dir().unwrap();
    assert!(beside.next().is_none(), "nothing was written beside the small file system");
    Some(ended)
}

/// Records a command that starts this number of processes. Returns what is there of the trace, and what is
/// left of the tree.
const RECORD: &str = "\
    mete=$0; cd \"$1\" && mkdir tree
    \"$mete\" record --schema scheduler -o trace --parameters tree -- \
        sh -c 'for i in $(seq 1000); do /bin/true; done; cat tree/status'
    echo \"status $?\"
    \"$mete\" show trace --json | grep -c '\"kind\":\"event\"'
    grep -c \" $PWD/tree .* mete:\" /proc/self/mountinfo; ls tree";

#[test]
fn klog_6_recording_onto_a_full_disk_says_so_and_leaves_a_trace_that_can_be_read() {
    if !kernel_is_there() || !fuse_is_there() {
        return;
    }
    let Some(Ended { printed, said, .. }) = in_a_small_place("256k", RECORD) else { return };
    let (before, behind) = printed.split_once("status 1\n").unwrap_or_else(|| panic!("{printed}{said}"));
    assert!(before.contains("not written: No space left on device"), "{before}");
    let has_summary =
        before.contains(" records in ") && before.contains(" of which could not be written. See");
    assert!(has_summary, "{before}");
    assert!(said.contains("the trace cannot be written at the moment: No space left on device"), "{said}");
    assert!(said.contains("No space left") && said.contains("trace"), "{said}");
    let [shown, trees] = behind.lines().collect::<Vec<_>>()[..] else { panic!("{behind}") };
    // Whose they are is by chance: all that this machine does is recorded until there is no room.
    let counted = before.lines().find_map(|line| line.split_once(" records in ")).unwrap().0;
    assert!(shown == counted && shown != "0", "what found room can be read: {shown} of {counted}");
    assert_eq!(trees, "0", "the parameters are gone");
}

/// Has a command fill the disk while it is recorded, and records another one when it is full.
const FILL: &str = "\
    mete=$0; cd \"$1\"
    \"$mete\" record --schema stopwatch -o trace -- dd if=/dev/zero of=filled bs=1k; echo \"status $?\"
    \"$mete\" show trace >/dev/null; echo \"shown $?\"
    \"$mete\" record --schema stopwatch -o another -- touch ran; echo \"status $?\"; ls";

#[test]
fn klog_6_disk_that_is_full_at_the_end_hides_no_summary_and_one_that_is_full_at_first_gets_no_trace() {
    let Some(Ended { printed, said, .. }) = in_a_small_place("512k", FILL) else { return };
    let lines: Vec<_> = printed.lines().collect();
    assert!(
        lines[0].contains(" records in ") && lines[0].contains("See: mete show trace"),
        "{printed}{said}"
    );
    assert_eq!(lines[1..], ["status 1", "shown 0", "status 1", "filled", "trace"], "{printed}{said}");
    for trace in ["trace", "another"] {
        let why = format!("mete: cannot write {trace}/description.json: No space left on device");
        assert!(said.contains(&why), "{said}");
    }
}

/// Asks a flight recorder on a full disk for a dump, and again when there is room.
const DUMP: &str = "\
    mete=$0; cd \"$1\" && mkdir tree && dd if=/dev/zero of=filled bs=1k 2>/dev/null
    \"$mete\" record --schema scheduler -o trace --keep 128K --parameters tree -- sh -c '
        echo 1 > tree/dump; echo \"refused $?\"; cat tree/status; ls; rm filled; echo 1 > tree/dump; ls trace; rm -r trace'
    echo \"status $?\"";

#[test]
fn klog_6_flight_recorder_on_a_full_disk_says_so_and_goes_on() {
    if !kernel_is_there() || !fuse_is_there() {
        return;
    }
    let Some(Ended { printed, said, .. }) = in_a_small_place("512k", DUMP) else { return };
    let (before, behind) =
        printed.split_once("\nfilled\ntree\n").unwrap_or_else(|| panic!("{printed}{said}"));
    assert!(!before.contains("refused 0"), "{before}");
    let why = before.lines().find(|line| line.starts_with("refused: dump=1: cannot write"));
    assert!(why.is_some_and(|why| why.contains("No space left on device")), "{before}");
    assert!(behind.starts_with("description.json\n") && behind.contains("status 0"), "{behind}{said}");
}

/// Has a flight recorder find room for one dump, and none for what it keeps at the end.
const LAST_DUMP: &str = "\
    mete=$0; cd \"$1\" && mkdir tree
    \"$mete\" record --schema scheduler -o trace --keep 128K --parameters tree --json -- sh -c '
        echo 1 > tree/dump; dd if=/dev/zero of=filled bs=1k 2>/dev/null; for i in $(seq 100); do /bin/true; done'
    echo \"status $?\"; ls";

#[test]
fn klog_6_flight_recorder_whose_last_dump_finds_no_room_says_what_it_had() {
    if !kernel_is_there() || !fuse_is_there() {
        return;
    }
    let Some(Ended { printed, said, .. }) = in_a_small_place("512k", LAST_DUMP) else { return };
    let (summary, behind) =
        printed.split_once("status 1\nfilled\n").unwrap_or_else(|| panic!("{printed}{said}"));
    assert_eq!(behind, "trace\ntree\n", "the first dump, and nothing of the last");
    let summary: serde_json::Value = serde_json::from_str(summary).unwrap();
    assert_eq!((&summary["trace"], &summary["dumps"]), (&"trace.2".into(), &["trace"][..].into()));
    let [records, lost, unwritten] =
        ["records", "lost", "unwritten"].map(|name| summary[name].as_u64().unwrap());
    assert!(records == 0 && lost >= unwritten && unwritten >= 100, "{summary}");
    assert!(said.contains("No space left on device"), "{said}");
}

#[test]
fn a_study_that_cannot_have_its_folder_fails_before_the_work() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let below = file.path().join("below");
    let places = [
        (file.path().to_str().unwrap(), "it is a file, not a folder"),
        ("/dev/full", "it is a file, not a folder"),
        (below.to_str().unwrap(), "cannot make"),
        ("/proc", "cannot write into"),
    ];
    for (place, why) in places {
        let output = run(program(&["study", "log-cost", "--out", place]));
        fails(&output, &[why, place]);
        assert_eq!(output.printed, "", "nothing was measured");
    }
}

/// Records more than a file may hold, and a command that writes more than its own may.
const LIMIT: &str = "\
    mete=$0; cd \"$1\" && ulimit -f 200
    \"$mete\" record --schema scheduler -o trace -- sh -c 'for i in $(seq 1000); do /bin/true; done'; echo \"status $?\"
    \"$mete\" show trace --json >shown; echo \"shown $?\"
    \"$mete\" show trace --json | grep -c '\"event\":\"FORK\"'";

#[test]
fn klog_6_limit_of_a_files_size_is_like_a_full_disk() {
    if !kernel_is_there() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", LIMIT, env!("CARGO_BIN_EXE_mete")]).arg(directory.path());
    let Ended { printed, said, .. } = run(command);
    let lines: Vec<_> = printed.lines().collect();
    assert!(lines[0].contains(" of which could not be written. See"), "{printed}{said}");
    assert_eq!(lines[1..3], ["status 1", "shown 1"], "{printed}{said}");
    assert!((1..1000).contains(&lines[3].parse::<u32>().unwrap()), "{printed}{said}");
    assert!(said.contains("the trace cannot be written at the moment: File too large"), "{said}");
    assert!(
        said.contains("cannot write the results: the file is as large as this user's files may be"),
        "{said}"
    );
    // The same for each form into which the trace is converted.
    let mut command = Command::new("sh");
    let script = "cd \"$1\" && ulimit -f 0 && for form in perfetto parquet arrow ctf perl json csv text; do \
                  \"$0\" convert trace --to $form -o made-of-it.$form; done";
    command.args(["-c", script, env!("CARGO_BIN_EXE_mete")]).arg(directory.path());
    let said = run(command).said;
    for form in ["perfetto", "parquet", "arrow", "ctf", "perl", "json", "csv", "text"] {
        let name = format!("made-of-it.{form}");
        assert!(said.lines().any(|line| line.contains(&name)), "{form}: {said}");
        assert!(!directory.path().join(&name).exists(), "{form}");
    }
    // The command fails as it would without being recorded.
    let mut command = Command::new("sh");
    let script = "cd \"$1\" && ulimit -f 60000 && \
                  \"$0\" record --schema stopwatch --buffer 64K -o of-dd -- dd if=/dev/zero of=filled bs=64k";
    command.args(["-c", script, env!("CARGO_BIN_EXE_mete")]).arg(directory.path());
    let Ended { code, said, .. } = run(command);
    assert_eq!(code, Some(128 + 25), "{said}");
}

/// Processes that compute on one processor, each in a session of its own. They end by themselves.
const HOGS: &str = "\
    for nth in 1 2 3 4; do setsid taskset -c 0 timeout 100 sh -c 'echo $$ >\"$0\"; while :; do :; done' \"$1/hog$nth\" & done
    while ! [ -s \"$1/hog4\" ] || ! [ -s \"$1/hog3\" ] || ! [ -s \"$1/hog2\" ] || ! [ -s \"$1/hog1\" ]; do sleep 0.1; done
    hogs=$(cat \"$1/hog\"*); set -- $hogs
    ulimit -f 1
    \"$0\" schedule --policy vtrr --by pauses --for 90s --domain a=pid:$1 --domain b=pid:$2 --domain c=pid:$3 --domain d=pid:$4
    echo \"status $?\"
    for hog; do cut -d ' ' -f 3 /proc/$hog/stat; done
    kill $hogs";

#[test]
fn vtrr_7_pauses_that_cannot_be_noted_any_more_end_and_say_what_was_put_back() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", HOGS, env!("CARGO_BIN_EXE_mete")]).arg(directory.path());
    let Ended { printed, said, .. } = run(command);
    let back = printed.lines().find(|line| line.starts_with("pauses of processes: ")).unwrap_or_default();
    // It was in the midst of it: some were paused.
    assert!(back.ends_with("put back"), "{printed}{said}");
    assert!(printed.ends_with("status 1\nR\nR\nR\nR\n"), "{printed}{said}");
    assert!(said.contains("cannot note what is to be put back: File too large"), "{said}");
}
