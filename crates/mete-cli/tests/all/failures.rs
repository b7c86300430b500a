//! What must not happen: each failure is one clear sentence and a status other than 0.

use std::fs::File;
use std::io::Write;
use std::process::{Output, Stdio};

use crate::common::{self, Running, mete, program};

/// Runs it, and answers with its status and what it says.
fn failure(arguments: &[&str]) -> (i32, String) {
    let assert = mete(arguments).assert().failure();
    let output = assert.get_output();
    assert!(output.stdout.is_empty(), "{arguments:?} prints results");
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(!said.contains("panicked"), "{said}");
    (output.status.code().unwrap(), said)
}

/// The failure is a sentence of the command's own, and the last thing said.
fn sentence(arguments: &[&str], expected: &str) {
    let (status, said) = failure(arguments);
    let last = said.lines().last().unwrap();
    assert!(status == 1 && last.starts_with("mete: ") && last.contains(expected), "{arguments:?}: {said}");
}

/// The mistake can be told from the command line alone, and has the status of a mistyped one.
fn mistake(arguments: &[&str], expected: &str) {
    let (status, said) = failure(arguments);
    assert!(status == 2 && said.contains(expected), "{arguments:?}: {said}");
}

#[test]
fn a_mistyped_domain_is_answered_with_what_is_expected() {
    for (domain, expected) in
        [("web", "NAME=SELECTOR"), ("web=nginx", "comm:NAME"), ("web=pid:x", "process number")]
    {
        mistake(&["log", "--for", "1s", "--domain", domain], expected);
    }
}

#[test]
fn a_selector_that_matches_nothing_is_named() {
    sentence(&["log", "--for", "1s", "--domain", "x=comm:no-such-name"], "comm:no-such-name; start it first");
    let none = ["--driver", "x=comm:no-such-name", "--client", "y=comm:no-such"];
    sentence(&[&["schedule", "--for", "1s"], &none[..]].concat(), "comm:no-such-name or comm:no-such;");
    // No process ever has a number beyond 2^22.
    let never = ["--domain", "x=pid:1", "--domain", "y=pid:4194305"];
    sentence(&[&["log", "--for", "1s"], &never[..]].concat(), "\"y\" is empty and stays so");
}

#[test]
fn a_domain_name_twice_is_refused() {
    mistake(&["log", "--for", "1s", "--domain", "x=pid:1", "--domain", "x=user:root"], "given twice");
    mistake(&["schedule", "--for", "1s", "--driver", "x=pid:1", "--client", "x=user:root"], "given twice");
    mistake(&["log", "--for", "1s", "--domain", "other=pid:1"], "is taken");
    let record = ["record", "--schema", "no-such", "-o", "/nowhere/trace"];
    mistake(&[&record[..], &["--domain", "x=pid:1", "--domain", "x=pid:2"]].concat(), "given twice");
}

#[test]
fn options_that_do_not_go_together_are_a_mistake_of_the_command_line_in_every_subcommand() {
    let schedule = ["schedule", "--driver", "a=pid:1", "--client", "b=pid:2"];
    for (arguments, expected) in [
        ([&schedule[..], &["--period", "10ms", "--interval", "20ms"]].concat(), "--interval 20ms"),
        (["show", "no-such", "--from", "2", "--until", "1"].to_vec(), "--from is later than --until"),
        (["convert", "no-such", "--to", "csv", "--from", "2", "--until", "1"].to_vec(), "--from is later"),
        (["convert", "no-such", "--to", "ctf"].to_vec(), "CTF is a directory of several files"),
        (["convert", "no-such", "--to", "ctf1", "-o", "-"].to_vec(), "CTF is a directory of several files"),
        (["record", "--schema", "x", "-o", "x", "--buffer", "3"].to_vec(), "a power of two from 64 KiB"),
        (["sim", "mix", "--set", "host.processors"].to_vec(), "it takes key=value"),
        (["sim", "mix", "--csv", "x"].to_vec(), "it takes --seeds, --vary or --plot beside it"),
        (["sim", "mix", "--trace", "x", "--policy", "rr,vtrr"].to_vec(), "--trace takes a single policy"),
        (["study", "vtrr-micro", "--trace", "no-such"].to_vec(), "cannot be evaluated from a trace"),
    ] {
        mistake(&arguments, expected);
    }
    // What the command line alone does not tell is a failure.
    sentence(&["show", "no-such"], "this is no trace");
    sentence(&["convert", "no-such", "--to", "ctf", "-o", "/nowhere/ctf"], "this is no trace");
    sentence(&["study", "quanta", "--trace", "no-such"], "no-such");
}

#[test]
fn klog_4_a_parameter_is_set_to_something() {
    mistake(&["set", "shares/web="], "a name, =, and a value");
    mistake(&["set", "=3"], "a name, =, and a value");
}

#[test]
fn vtrr_7_shares_go_to_control_groups_and_from_the_policy_that_deals_them_out() {
    let vtrr = ["schedule", "--policy", "vtrr"];
    for (arguments, expected) in [
        (
            [&vtrr[..], &["--by", "cgroup", "--domain", "web=pid:1,share=3"]].concat(),
            "web=cgroup:/PATH,share=NUMBER",
        ),
        (
            [&vtrr[..], &["--by", "sched_ext", "--domain", "web=pid:1,share=3"]].concat(),
            "web=cgroup:/PATH,share=NUMBER",
        ),
        ([&vtrr[..], &["--by", "dispatcher"]].concat(), "without a domain"),
        (
            vec!["schedule", "--policy", "eevdf", "--by", "cgroup", "--domain", "a=pid:1"],
            "weights of control groups cannot have eevdf decide",
        ),
        (vec!["schedule", "--policy", "eevfd", "--domain", "a=pid:1"], "did you mean eevdf?"),
        (
            vec!["schedule", "--policy", "eevdf", "--driver", "a=pid:1"],
            "only --policy affinity knows drivers",
        ),
        ([&vtrr[..], &["--driver", "x=pid:1"]].concat(), "only --policy affinity knows drivers"),
        ([&vtrr[..], &["--domain", "web=pid:1,share=3", "--dry-run"]].concat(), "are the affinity policy's"),
        ([&vtrr[..], &["--domain", "web=pid:1", "--margin", "7"]].concat(), "are the affinity policy's"),
        ([&vtrr[..], &["--domain", "web=pid:1,share=0"]].concat(), "\"0\" is no share"),
        ([&vtrr[..], &["--domain", "web=pid:1,share=101"]].concat(), "from 0.01 to 100"),
        ([&vtrr[..], &["--domain", "web=pid:1,share=nan"]].concat(), "is no share"),
        ([&vtrr[..], &["--domain", "web=cgroup:/no/such/group,share=1"]].concat(), "no control group"),
        (vec!["schedule", "--domain", "a=pid:1,share=2", "--domain", "b=pid:2"], "--policy vtrr"),
        (vec!["schedule", "--driver", "a=pid:1", "--client", "b=pid:2", "--by", "cgroup"], "--policy vtrr"),
        ([&vtrr[..], &["--by", "cgroup"]].concat(), "--domain NAME=SELECTOR"),
        ([&vtrr[..], &["--by", "cgroups"]].concat(), "cgroup"),
    ] {
        mistake(&arguments, expected);
    }
    // On a kernel that can, it would rule; there the tests of mete-ext are.
    if !std::path::Path::new("/sys/kernel/sched_ext").exists() {
        sentence(&[&vtrr[..], &["--for", "1s"]].concat(), "no sched_ext");
        sentence(&["schedule", "--policy", "eevdf", "--for", "1s"], "give --domain NAME=SELECTOR");
        sentence(&[&vtrr[..], &["--by", "ext", "--for", "1s"]].concat(), "no sched_ext");
    }
}

#[test]
fn a_time_without_a_unit_is_refused() {
    for arguments in [
        ["log", "--for", "10"],
        ["log", "--every", "fast"],
        ["log", "--for", "-5s"],
        ["sim", "--for", "-1"],
        ["schedule", "--interval", "0s"],
    ] {
        let (status, said) = failure(&arguments);
        assert!(status == 2 && said.contains("length of time") && !said.contains("unexpected"), "{said}");
    }
}

#[test]
fn log_13_a_counter_that_is_not_known_is_refused() {
    let (status, said) = failure(&["log", "--event", "service,counters=page-fault"]);
    assert!(status == 2 && said.contains("page-fault") && said.contains("perf list"), "{said}");
}

#[test]
fn schedule_without_anybody_says_who_is_missing() {
    for who in [&[][..], &["--driver", "a=pid:1"], &["--client", "a=pid:1"], &["--domain", "a=pid:1"]] {
        let (status, said) = failure(&[&["schedule"], who].concat());
        assert!(status == 2 && said.contains("--driver") && said.contains("--client"), "{said}");
        assert!(said.contains("Usage: mete schedule "), "{said}");
    }
}

#[test]
fn numbers_that_make_no_sense_are_refused_with_those_that_do() {
    let who = ["schedule", "--driver", "a=pid:1", "--client", "b=pid:2"];
    for (arguments, expected) in [
        (["log", "--event", "run-queue=0"].to_vec(), "1 to 10000"),
        (["log", "--event", "run-queue=100000000"].to_vec(), "1 to 10000"),
        ([&who[..], &["--cap", "0"]].concat(), "1 or more"),
        ([&who[..], &["--margin", "-1"]].concat(), "0 or more"),
        (["sim", "mix", "--seed", "-1"].to_vec(), "0 or more"),
        (["sim", "mix", "--seeds", "-1"].to_vec(), "1 or more"),
        (["show", "x", "--process", "abc"].to_vec(), "'abc' for '--process <PID>': it takes a whole number"),
        (
            ["demo", "--rounds", "0"].to_vec(),
            "'0' for '--rounds <ROUNDS>': it takes a whole number from 1 to 100",
        ),
        (["demo", "--rounds", "some"].to_vec(), "it takes a whole number from 1 to 100"),
        (["replay", "x", "--processors", "0"].to_vec(), "it takes a whole number from 1 to 65535"),
        (["replay", "x", "--processors", "all"].to_vec(), "it takes a whole number from 1 to 65535"),
        (["sim", "mix", "--policy", "vtrr,,rr"].to_vec(), "belongs, as between two commas: there are vtrr, "),
        (
            ["replay", "x", "--policy", "vtrr,,rr"].to_vec(),
            "belongs, as between two commas: there are vtrr, ",
        ),
        (["demo", "--clients", "-1"].to_vec(), "1 to 56 clients"),
        (["demo", "--clients", "0"].to_vec(), "1 to 56 clients"),
        (["sim", "mix", "--policy", "vttr"].to_vec(), "did you mean vtrr?"),
        (["replay", "x", "--policy", "eevdf,vttr"].to_vec(), "did you mean vtrr?"),
        (["demo", "--hogs", "x"].to_vec(), "hogs, 8 for each processor"),
        (["demo", "--hogs", "100000"].to_vec(), "hogs, 8 for each processor"),
        (["replay", "x", "--threads", "-1"].to_vec(), "0 or more"),
        ([&who[..], &["--confirm", "0"]].concat(), "1 or more"),
        ([&who[..], &["--period", "10ms", "--interval", "20ms"]].concat(), "--interval 20ms"),
    ] {
        mistake(&arguments, expected);
    }
}

#[test]
fn the_kernel_s_events_and_no_kernel_do_not_go_together() {
    let (status, said) = failure(&["log", "--components", "--event", "ipc"]);
    assert!(status == 2 && said.contains("--components") && said.contains("--event"), "{said}");
}

#[test]
fn an_unknown_measurement_is_answered_with_the_known_ones() {
    mistake(&["bench", "--only", "nonsense"], "there are user, ");
}

#[test]
fn a_closed_pipe_ends_without_a_word_as_sigpipe_would() {
    for arguments in [&["doctor"][..], &["doctor", "--json"], &["--help"], &["sim", "--list"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = program(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.as_str()), (Some(128 + libc::SIGPIPE), ""), "{arguments:?}");
    }
}

#[test]
fn slips_are_answered_with_what_was_meant() {
    for (arguments, meant) in [(&["lgo"][..], "'log'"), (&["log", "--fro", "5s"], "'--for'")] {
        let (status, said) = failure(arguments);
        assert!(status == 2 && said.contains("similar") && said.contains(meant), "{arguments:?}: {said}");
    }
}

#[test]
fn a_command_that_cannot_be_run_has_the_status_that_shells_give_it() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: a_command_that_cannot_be_run_has_the_status_that_shells_give_it: not root");
        return;
    }
    for (command, expected) in [("/no/such/program", 127), ("/etc/passwd", 126)] {
        let (status, said) = failure(&["log", "--", command]);
        assert_eq!(status, expected, "{said}");
        assert!(said.contains(&format!("cannot run {command}")), "{said}");
    }
}

#[test]
fn a_full_disk_is_one_sentence_and_a_failure() {
    for arguments in [&["doctor"][..], &["doctor", "--json"], &["--help"], &["log", "--for", "100ms"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = program(arguments).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let last = said.lines().last().unwrap();
        assert!(last.contains("disk is full") || last.contains("nothing to log"), "{arguments:?}: {said}");
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
    }
}

#[test]
fn files_that_cannot_be_written_are_named() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"no directory").unwrap();
    let path = file.path().to_str().unwrap();
    sentence(&["generate", "man", "--out", path], path);
}

#[test]
fn new_6_name_of_a_file_steers_no_terminal() {
    let place = tempfile::tempdir().unwrap();
    let trace = place.path().join("t\u{1b}[31m");
    std::fs::create_dir(&trace).unwrap();
    let trace = trace.to_str().unwrap();
    std::fs::write(format!("{trace}/description.json"), "{}").unwrap();
    for arguments in [["show", trace], ["replay", trace]] {
        let (_, said) = failure(&arguments);
        assert!(said.contains("t?[31m") && !said.contains('\u{1b}'), "{said:?}");
    }
}

/// Runs it as a user without any right, where there is no program with probes. That user cannot enter root's
/// own directories.
fn as_nobody(arguments: &[&str]) -> Output {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65534;
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("mete");
    common::copy_program(env!("CARGO_BIN_EXE_mete"), &copy);
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = std::process::Command::new(copy);
    command.args(arguments).current_dir("/").env("METE_RUNTIME_DIR", directory.path());
    if rustix::process::geteuid().is_root() {
        // The command uses a run-time directory only if it belongs to the command's own user.
        std::os::unix::fs::chown(directory.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
    command.output().unwrap()
}

#[test]
fn without_root_it_is_said_why_the_kernel_is_not_logged() {
    let own = format!("y=pid:{}", std::process::id());
    for arguments in [
        &["log", "--for", "100ms", "--domain", "x=pid:1"][..],
        &["schedule", "--for", "100ms", "--driver", "x=pid:1", "--client", &own],
    ] {
        let output = as_nobody(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        if output.status.success() {
            eprintln!("SKIPPED: this user may load eBPF programs without being root");
            return;
        }
        assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{arguments:?}: {said}");
        assert!(said.contains("CAP_BPF") && said.contains("root"), "{arguments:?}: {said}");
    }
}

/// Otherwise a user would learn of a mistyped domain only at the second try, as root.
#[test]
fn without_root_it_is_said_first_what_would_be_wrong_for_root_too() {
    for (domain, wrong) in [
        ("gone=pid:2147483647", "there is no process for pid:2147483647"),
        ("none=comm:no-such-program", "nothing that runs now matches comm:no-such-program"),
    ] {
        for arguments in [&["log"][..], &["record", "--schema", "scheduler", "-o", "/nowhere/trace"]] {
            let output = as_nobody(&[arguments, &["--for", "100ms", "--domain", domain]].concat());
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{arguments:?}: {said}");
            assert!(said.contains(wrong), "{arguments:?}: {said}");
        }
    }
}

#[test]
fn a_process_of_its_own_that_ends_is_no_failure() {
    if !common::kernel_is_there() {
        return;
    }
    let mut short = Running::idle();
    let domain = format!("short=pid:{}", short.pid());
    let arguments = ["log", "--json", "--for", "600ms", "--every", "100ms", "--domain", &domain];
    let mut log = Running::start(program(&arguments).stdout(Stdio::piped()));
    let mut lines = log.lines();
    // By now it has found all processes that it needs at its start.
    lines.next().unwrap().unwrap();
    short.signal(rustix::process::Signal::KILL);
    short.wait();
    assert!(lines.all(|line| line.is_ok()));
    assert!(log.wait().success());
}
