//! The command in containers, on one processor, and where the kernel refuses. It says what is missing in one
//! clear sentence, and does the rest.

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::common::{Ended, Pair, has_two_processors, is_root, kernel_is_there, mask, objects, program, run};
use serde_json::Value;

/// It fails with one sentence and prints no results. Messages of the eBPF loader may stand below the
/// sentence.
fn sentence(ended: &Ended, expected: &[&str]) {
    let said = &ended.said;
    let (sentence, details) = said.split_once('\n').unwrap();
    assert!(ended.code == Some(1) && ended.printed.is_empty(), "{said}");
    assert!(sentence.starts_with("mete: "), "{said}");
    assert!(expected.iter().all(|expected| sentence.contains(expected)), "{said}");
    assert!(details.lines().all(|line| line.starts_with("libbpf: ")), "{said}");
}

/// The command under another one, which ends with a list of arguments to run.
fn under(wrapper: &[&str], arguments: &[&str]) -> Command {
    let mut command = Command::new(wrapper[0]);
    command.args(&wrapper[1..]).arg(env!("CARGO_BIN_EXE_mete")).args(arguments);
    command
}

/// Whether the other command works here. Says so if it does not.
fn is_allowed(wrapper: &[&str]) -> bool {
    let tried = Command::new(wrapper[0]).args(&wrapper[1..]).arg("true").output();
    let is_allowed = tried.is_ok_and(|output| output.status.success());
    if !is_allowed {
        eprintln!("SKIPPED: {wrapper:?} is not allowed here");
    }
    is_allowed
}

/// A pid namespace of its own, as in a privileged container.
const CONTAINER: [&str; 5] = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];

#[test]
fn in_a_pid_namespace_it_is_said_why_the_kernel_is_not_logged() {
    if kernel_is_there() && is_allowed(&CONTAINER) {
        let directory = tempfile::tempdir().unwrap();
        let mut command = under(&CONTAINER, &["log", "--for", "1s"]);
        command.env("METE_RUNTIME_DIR", directory.path());
        sentence(&run(command), &["pid namespace", "--pid=host"]);
    }
}

#[test]
fn in_a_pid_namespace_the_doctor_says_what_is_missing() {
    if is_allowed(&CONTAINER) {
        let found = objects(&run(under(&CONTAINER, &["doctor", "--json"])).printed);
        for name in ["first pid namespace", "dispatcher"] {
            let found = found.iter().find(|found| found["name"] == name).unwrap();
            assert!(found["present"] == false, "{found}");
            assert!(found["remedy"].as_str().unwrap().contains("--pid=host"), "{found}");
        }
    }
}

/// The stretches of a demo that goes on without the kernel and says that once.
fn demo_without_the_kernel(mut command: Command, why: &str) {
    let directory = tempfile::tempdir().unwrap();
    command.args(["demo", "--rounds", "1", "--stretch", "1s", "--json", "--report"]);
    command.arg(directory.path().join("demo.html"));
    let Ended { code, printed, said } = run(command);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said.lines().filter(|line| line.contains(why)).count(), 1, "{said}");
    let stretches = objects(&printed);
    assert_eq!(stretches.len(), 3, "{stretches:?}");
    assert!(stretches[1..].iter().all(|stretch| stretch["rows"].as_u64() > Some(0)), "{stretches:?}");
}

#[test]
fn in_a_pid_namespace_the_demo_goes_on_with_the_drivers_logs() {
    if has_two_processors() && kernel_is_there() && is_allowed(&CONTAINER) {
        demo_without_the_kernel(under(&CONTAINER, &[]), "pid namespace");
    }
}

#[test]
fn on_one_processor_the_demo_says_that_it_needs_two() {
    let processor = mask(std::process::id())[0].to_string();
    let wrapper = ["taskset", "--cpu-list", &processor];
    if is_allowed(&wrapper) {
        sentence(&run(under(&wrapper, &["demo"])), &["needs 2 processors", "may use 1"]);
    }
}

/// Root of a container that is not privileged.
#[test]
fn root_without_capabilities_is_told_which_are_missing() {
    const WRAPPER: [&str; 3] = ["setpriv", "--bounding-set", "-sys_admin,-bpf,-perfmon"];
    if is_root() && is_allowed(&WRAPPER) {
        let directory = tempfile::tempdir().unwrap();
        let mut command = under(&WRAPPER, &["log", "--for", "1s"]);
        command.env("METE_RUNTIME_DIR", directory.path());
        sentence(&run(command), &["CAP_PERFMON and CAP_BPF"]);
    }
}

/// A file system of its own, with nothing where the kernel describes its types.
#[test]
fn without_type_information_the_kernel_option_is_named() {
    const HIDE: &str = "mount -t tmpfs none /sys/kernel/btf && exec \"$@\"";
    const WRAPPER: [&str; 6] = ["unshare", "--mount", "sh", "-c", HIDE, "sh"];
    if kernel_is_there() && is_allowed(&WRAPPER) {
        let directory = tempfile::tempdir().unwrap();
        let mut command = under(&WRAPPER, &["log", "--for", "1s"]);
        command.env("METE_RUNTIME_DIR", directory.path());
        sentence(&run(command), &["/sys/kernel/btf/vmlinux", "CONFIG_DEBUG_INFO_BTF=y"]);
    }
}

/// Has bpf(2) refused from now on, as filters of containers do.
fn refuse_bpf() -> std::io::Result<()> {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let unless_equal = |k, jf| libc::sock_filter { jf, ..statement(libc::BPF_JMP | libc::BPF_JEQ, k) };
    let mut filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        unless_equal(libc::SYS_bpf as u32, 1),
        statement(libc::BPF_RET, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        statement(libc::BPF_RET, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the kernel copies the filter, which lives until the call returns; both calls change
    // the calling process alone.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) != 0
    };
    if refused { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

fn without_bpf(mut command: Command) -> Command {
    // SAFETY: between fork and exec two system calls are made and nothing is allocated.
    unsafe { command.pre_exec(refuse_bpf) };
    command
}

#[test]
fn where_ebpf_is_refused_it_is_said() {
    if kernel_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let mut command = without_bpf(program(&["log", "--for", "1s"]));
        command.env("METE_RUNTIME_DIR", directory.path());
        let expected =
            ["refused the eBPF programs", "not permitted", "mete doctor", "no program with probes"];
        sentence(&run(command), &expected);
    }
}

#[test]
fn where_ebpf_is_refused_programs_with_probes_are_logged() {
    if !kernel_is_there() {
        return;
    }
    let requests = |object: &&Value| object["event"] == "request" && object["domain"] == "driver";
    let pair = Pair::start();
    let (driver, client) =
        (format!("driver=pid:{}", pair.driver.pid()), format!("client=pid:{}", pair.client.pid()));
    let arguments = ["log", "--json", "--for", "4s", "--domain", &driver, "--domain", &client];
    let mut command = without_bpf(program(&arguments));
    command.env("METE_RUNTIME_DIR", pair.directory.path());
    let Ended { code, printed, said } = run(command);
    assert!(said.contains("the kernel is not logged: "), "{said}");
    // The kernel was asked for. So the last sentence and the exit status say that it is missing.
    let last = said.lines().last().unwrap_or_default();
    assert!(last.contains("lack something that was asked for: the kernel is not logged: "), "{said}");
    // Beside other load the two may be faster than they are read. That rows were lost counts for more.
    assert_eq!(code, Some(if said.contains(" were lost") { 3 } else { 1 }), "{said}");
    let all = objects(&printed);
    let statement = all.iter().find(|object| object["kind"] == "completeness").unwrap();
    assert!(statement["complete"] == false && statement["not_logged"][0].is_string(), "{statement}");
    assert!(all.iter().filter(requests).count() > 0, "{said}");
}

/// A process that may open no more files loads no eBPF programs and finds no program with probes. It still
/// runs its command.
#[test]
fn log_13_nothing_is_complete_of_which_nothing_was_read() {
    if !kernel_is_there() {
        return;
    }
    for open_files in [10, 14] {
        let directory = tempfile::tempdir().unwrap();
        let mut command = program(&["log", "--", "true"]);
        command.env("METE_RUNTIME_DIR", directory.path());
        let limit = libc::rlimit { rlim_cur: open_files, rlim_max: open_files };
        // SAFETY: between fork and exec one system call is made, which reads the limit.
        unsafe {
            command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            })
        };
        let Ended { code, printed, said } = run(command);
        assert_eq!(code, Some(1), "{said}");
        assert!(!printed.contains("complete: all"), "{printed}");
        assert!(said.lines().any(|line| line.contains("the kernel is not logged")), "{said}");
    }
}

/// The number of a user without rights. The files of this user are removed after each test.
const NOBODY: u32 = 64999;

/// The command of a user without rights and without a run-time directory.
fn of_nobody(arguments: &[&str]) -> Option<Command> {
    if !is_root() {
        return None;
    }
    let mut command = program(arguments);
    command
        .uid(NOBODY)
        .gid(NOBODY)
        .current_dir("/")
        .env_remove("XDG_RUNTIME_DIR")
        .env_remove("METE_RUNTIME_DIR");
    let may_run = program(&["--version"]).uid(NOBODY).gid(NOBODY).current_dir("/").output();
    if !may_run.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: another user may not run the program where it lies");
        return None;
    }
    Some(command)
}

#[test]
fn without_root_no_empty_directory_is_left_and_one_that_is_used_stays() {
    let directory = std::path::PathBuf::from(format!("/tmp/mete-{NOBODY}"));
    let Some(command) = of_nobody(&["sim", "mix"]) else { return };
    assert!(run(command).code == Some(0));
    assert!(!directory.exists(), "left by what logs nothing");
    let Some(command) = of_nobody(&["log", "--components", "--for", "200ms"]) else { return };
    let said = run(command).said;
    assert!(said.contains("no program with probes"), "{said}");
    assert!(!directory.exists(), "left by what looks for programs with probes");
    // A program that watches the directory, or is about to publish itself there, holds it like this.
    std::fs::create_dir(&directory).unwrap();
    std::os::unix::fs::chown(&directory, Some(NOBODY), Some(NOBODY)).unwrap();
    let held = std::fs::File::open(&directory).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockShared).unwrap();
    let Some(command) = of_nobody(&["sim", "mix"]) else { return };
    assert!(run(command).code == Some(0));
    assert!(directory.exists(), "another program uses it");
    drop(held);
    let Some(command) = of_nobody(&["sim", "mix"]) else { return };
    assert!(run(command).code == Some(0));
    assert!(!directory.exists(), "the next command clears up after one that was killed");
}
