//! `mete schema`: what it says, prints and writes.

use std::fs;
use std::path::Path;

use crate::common::{self, Running, assert_described, mete, objects, program, said_by, stdout, wait_until};
use serde_json::Value;

const SHIPPED: [&str; 4] = ["stopwatch", "locking", "scheduler", "interrupt"];

/// What is printed and what is said of a failure.
fn failure(arguments: &[&str]) -> (String, String) {
    let assert = mete(arguments).assert().failure();
    let output = assert.get_output();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

/// A directory with a file of this name and text, and the file's path.
fn file(name: &str, text: impl AsRef<[u8]>) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name).to_str().unwrap().to_owned();
    fs::write(&path, text).unwrap();
    (directory, path)
}

/// A file with a mistake in its second line.
fn wrong() -> (tempfile::TempDir, String) {
    file("wrong.mete", "event SCHEDIN {\n    itn pid\n}\n")
}

#[test]
fn klog_8_shipped_schemata_are_known_by_name() {
    for name in SHIPPED {
        assert!(
            stdout(&["schema", "check", name, "--no-btf"]).starts_with("The schema is correct"),
            "{name}"
        );
    }
}

#[test]
fn a_schema_that_is_wrong_is_shown_with_the_place_and_what_was_meant() {
    let (_directory, path) = wrong();
    let (printed, said) = failure(&["schema", "check", &path]);
    assert!(printed.is_empty(), "{printed}");
    for part in ["there is no type `itn`", "wrong.mete:2:5", "did you mean `int`?", "has a problem"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn problems_are_objects_for_scripts_and_all_objects_are_described() {
    let (_directory, path) = wrong();
    let (printed, said) = failure(&["schema", "check", &path, "--json"]);
    let problems = objects(&printed);
    assert_described(&problems);
    assert_eq!(problems[0]["place"]["line"], 2);
    assert_eq!(problems[0]["place"]["column"], 5);
    assert_eq!(said.lines().count(), 1, "{said}");
    for name in SHIPPED {
        assert_described(&objects(&stdout(&["schema", "check", name, "--json", "--no-btf"])));
        assert_described(&objects(&stdout(&["schema", "explain", name, "--json", "--no-btf"])));
    }
}

#[test]
fn klog_1_a_schema_may_be_several_files_and_standard_input() {
    let (_directory, events) = file("events", "event SCHEDIN { int pid ulonglong L2_cache_misses }");
    let text =
        "arch any { counter0 l2_cache_misses }\nat tp_btf:sched_switch log SCHEDIN(next.pid, counter0)";
    let mut command = mete(&["schema", "check", &events, "-", "--no-btf"]);
    command.write_stdin(text).assert().success();
}

#[test]
fn klog_1_explain_tells_each_byte_of_a_record() {
    let text = stdout(&["schema", "explain", "scheduler", "--no-btf"]);
    for part in [
        "event SCHEDIN (number 20)",
        "A process has got the processor.",
        "serial",
        "logged by tp_btf:sched_switch",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn format_prints_checks_and_writes_the_canonical_form() {
    let (directory, path) = file("a.mete", "event   A{int pid;}");
    let name = path.as_str();
    let canonical = "event A {\n    int pid\n}\n";
    assert_eq!(stdout(&["schema", "format", name]), canonical);
    let (printed, said) = failure(&["schema", "format", "--check", name]);
    assert_eq!(printed.trim_end(), name);
    assert!(said.contains("--write"), "{said}");
    assert_eq!(stdout(&["schema", "format", "--write", name]), "");
    assert_eq!(fs::read_to_string(&path).unwrap(), canonical);
    assert_eq!(stdout(&["schema", "format", "--check", name]), "");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn klog_2_generate_prints_what_the_library_makes() {
    let header = stdout(&["schema", "generate", "c", "stopwatch"]);
    assert!(
        header.contains("mete_log_START(mete_u32 v_watch, mete_s32 v_pid, mete_u64 v_value)"),
        "{header}"
    );
    let module = stdout(&["schema", "generate", "rust", "stopwatch"]);
    assert!(module.contains("pub struct START {"), "{module}");
}

#[test]
fn what_is_no_schema_is_said_in_a_sentence() {
    let (_directory, bytes) = file("bytes", [0xff, 0xfe]);
    let bytes = bytes.as_str();
    for (arguments, part) in [
        (vec!["schema", "check", "no-such-file"], "stopwatch, locking, scheduler, interrupt"),
        (vec!["schema", "check", "shceduler"], "; did you mean scheduler?)"),
        (vec!["schema", "check", bytes], "no text in UTF-8"),
        (vec!["schema", "check", "/"], "cannot read /"),
        (vec!["schema", "check", "scheduler", "--btf", bytes], "no type information of a kernel"),
        (vec!["schema", "format", "--write", "scheduler", "/dev/null/x"], "cannot read the schema"),
    ] {
        let (printed, said) = failure(&arguments);
        assert!(printed.is_empty() && said.contains(part), "{arguments:?}: {said}");
    }
}

#[test]
fn klog_1_a_schema_may_come_through_a_pipe_and_waiting_for_one_ends_with_ctrl_c() {
    let text = "event A { int pid }";
    mete(&["schema", "check", "/dev/stdin", "--no-btf"]).write_stdin(text).assert().success();
    let directory = tempfile::tempdir().unwrap();
    let path = pipe(directory.path());
    let mut command = program(&["schema", "check", path.to_str().unwrap(), "--no-btf"]);
    let mut running = Running::start(&mut command);
    wait_until("it waits for a writer", || {
        let status = fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap_or_default();
        status.starts_with("Name:\tmete\n") && status.contains("State:\tS")
    });
    running.signal(rustix::process::Signal::INT);
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&running.wait()), Some(libc::SIGINT));
}

/// A pipe without a writer.
fn pipe(directory: &Path) -> std::path::PathBuf {
    let path = directory.join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    path
}

#[test]
fn klog_8_no_file_that_is_named_makes_the_check_wait_or_read_without_end() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = pipe(directory.path());
    let schema = directory.path().join("schema.mete");
    let [schema, pipe] = [&schema, &pipe].map(|path| path.to_str().unwrap());
    let said = |more: &[&str]| {
        let mut command = mete(&[&["schema", "check", schema], more].concat());
        let output = command.timeout(common::PATIENCE).assert().failure();
        said_by(&output)
    };
    let files = [pipe, "/dev/zero", "/dev/urandom", "/dev/stdin"];
    if Path::new("/sys/kernel/btf/vmlinux").exists() {
        for file in files {
            fs::write(schema, format!("event A {{ int x }}\nat uprobe:{file:?}:f log A(pid)\n")).unwrap();
            let text = said(&[]);
            assert!(text.contains(&format!("cannot read {file}: it is no regular file")), "{text}");
        }
    } else {
        println!("SKIPPED: this kernel does not describe its types");
    }
    fs::write(schema, "event A { int x }\n").unwrap();
    for file in files {
        let text = said(&["--btf", file]);
        assert!(text.contains(&format!("in {file}: it is no regular file")), "{text}");
    }
    // A schema itself may come through a pipe, of any length up to its limit.
    fs::remove_file(schema).unwrap();
    std::os::unix::fs::symlink("/dev/zero", schema).unwrap();
    assert!(said(&["--no-btf"]).contains("1048576"), "{}", said(&["--no-btf"]));
}

/// Reads a schema of this text, perhaps as another user; what is printed.
fn checked(text: &str, is_other_user: bool) -> String {
    let (directory, path) = file("points.mete", text);
    fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = program(&["schema", "check", &path]);
    if is_other_user {
        const NOBODY: u32 = 65534;
        std::os::unix::process::CommandExt::uid(&mut command, NOBODY);
    }
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[test]
fn klog_8_the_check_says_what_it_has_compared_and_what_this_kernel_takes_no_programs_at() {
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        println!("SKIPPED: this kernel does not describe its types");
        return;
    }
    const COMPARED: &str = "with names and types as the running kernel has them";
    let text = checked("event A { int x }\nat tp_btf:sched_switch log A(pid)\n", false);
    assert!(text.contains(&format!("1 point {COMPARED}.")), "{text}");
    let text = checked("event A { int x }\nat probe:p log A(1)\nat tp_btf:sched_switch log A(pid)\n", false);
    assert!(text.contains(&format!("2 points, 1 of them {COMPARED}, 1 not checked.")), "{text}");
    assert!(!text.contains("cannot be recorded"), "{text}");
    let text = checked("event A { int x }\nat probe:p log A(1)\nat kprobe:vfs_read log A(pid)\n", false);
    let has_breakpoints = Path::new("/sys/bus/event_source/devices/kprobe/type").exists();
    assert_eq!(text.contains("It cannot be recorded here: kprobe:vfs_read: "), !has_breakpoints, "{text}");
}

#[test]
fn klog_8_points_that_were_checked_and_that_were_not_add_up() {
    let test = "klog_8_points_that_were_checked_and_that_were_not_add_up";
    if !Path::new("/sys/kernel/btf/vmlinux").exists() || !rustix::process::geteuid().is_root() {
        println!("SKIPPED: {test}: needs root and a kernel that describes its types");
        return;
    }
    let point = |place: &str| format!("at {place} log A(pid)\n");
    let unknown = point("tracepoint:syscalls:sys_enter_futex");
    let text = checked(&format!("event A {{ int x }}\n{unknown}{}", point("tp_btf:sched_switch")), true);
    assert!(text.contains(", 1 not checked."), "{text}");
    assert_eq!(text.matches("was not checked: ").count(), 1, "{text}");
    assert!(checked(&format!("event A {{ int x }}\n{unknown}"), true).contains("1 point not checked."));
}

#[test]
fn klog_8_probes_that_programs_cannot_tell_apart_are_refused() {
    assert_eq!(mete_schema::limits::MAX_PROBE_LETTERS, mete_probe::wire::NAME_BYTES);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("probes.mete");
    let path = path.to_str().unwrap();
    let write = |letters| {
        fs::write(path, format!("event A {{ u64 x }}\nat probe:\"{}\" log A(value)", "p".repeat(letters)))
    };
    write(64).unwrap();
    stdout(&["schema", "check", path, "--no-btf"]);
    write(65).unwrap();
    let (_, said) = failure(&["schema", "check", path, "--no-btf"]);
    assert!(
        said.contains("the name of a probe has 65 letters") && said.contains("first 64 letters"),
        "{said}"
    );
}

#[test]
fn klog_3_counters_that_this_machine_does_not_have_are_told_by_the_check() {
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        println!("SKIPPED: this kernel does not describe its types");
        return;
    }
    let schema = "arch PentiumIV { counter0 cycles }\nevent COUNTED { int pid  u64 cycles }\n\
                  at tp_btf:sched_switch log COUNTED(next.pid, counter0)\n";
    let (_directory, path) = file("counted.mete", schema);
    let said = |more: &[&str]| {
        let arguments = [&["schema", "check", &path], more].concat();
        stdout(&arguments)
    };
    assert!(said(&[]).contains("It cannot be recorded here: "), "{}", said(&[]));
    let summary: Value = serde_json::from_str(&said(&["--json"])).unwrap();
    assert_eq!(summary["absent"].as_array().map(Vec::len), Some(1));
    assert!(!said(&["--no-btf"]).contains("cannot be recorded"));
}
