//! LOG-6: principals are bound to domains at run time, and the tasks that they create inherit.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

mod support;

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

use mete_kernel::{Characteristic, Kernel, KernelError, Principal, event};
use mete_log::DomainId;
use support::{Child, apply, between, die_with_parent, exit, kernel, plan, rows, run, wait_until};

/// The domain of a task that is bound to none.
const NONE: DomainId = DomainId::new(0);
const A: DomainId = DomainId::new(1);
const B: DomainId = DomainId::new(2);
const C: DomainId = DomainId::new(3);

/// `struct clone_args`.
#[repr(C)]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// Forks a process that waits to be killed.
fn clone3(arguments: CloneArguments) -> Result<i32, std::io::Error> {
    let arguments = CloneArguments { exit_signal: libc::SIGCHLD as u64, ..arguments };
    // SAFETY: without a stack and shared memory this is fork; the child only sleeps.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<CloneArguments>()) };
    match pid {
        0 => idle_child(),
        1.. => Ok(pid as i32),
        _ => Err(std::io::Error::last_os_error()),
    }
}

fn idle_child() -> ! {
    die_with_parent();
    // SAFETY: no memory is involved.
    unsafe { libc::pause() };
    exit(0)
}

/// Kills and reaps a child of the calling process.
fn end(pid: i32) {
    // SAFETY: the child is not reaped yet, so the number is still its own.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
        libc::waitpid(pid, std::ptr::null_mut(), 0);
    }
}

/// A child that forks one of its own, twice, and reports its number.
fn parent() -> Child {
    Child::start(|gate| {
        for _ in 0..2 {
            let pid = clone3(CloneArguments::default()).unwrap_or(0);
            gate.tell(pid as u64);
            gate.wait();
            end(pid);
        }
        gate.tell(0);
        gate.wait();
    })
}

/// A child with four threads, whose numbers it reports.
fn threaded(count: u64) -> (Child, Vec<i32>) {
    let mut child = Child::start(move |gate| {
        let (send, receive) = std::sync::mpsc::channel();
        for _ in 0..count {
            let send = send.clone();
            std::thread::spawn(move || {
                // SAFETY: asks for a number.
                send.send(unsafe { libc::gettid() }).unwrap_or_default();
                std::thread::park();
            });
        }
        (0..count).for_each(|_| gate.tell(receive.recv().unwrap_or(0) as u64));
        gate.wait();
    });
    child.release();
    let threads = (0..count).map(|_| child.report() as i32).collect();
    (child, threads)
}

#[test]
fn log_6_children_inherit_the_domain_at_the_time_of_the_fork() {
    let Some(mut kernel) = kernel("log_6_inherit") else { return };
    let mut parent = parent();
    kernel.bind(&Principal::Process(parent.pid), A).unwrap();
    parent.release();
    let first = parent.report() as i32;
    assert_eq!(kernel.domain_of(first), A);
    kernel.bind(&Principal::Process(parent.pid), B).unwrap();
    parent.release();
    let second = parent.report() as i32;
    assert_eq!((kernel.domain_of(first), kernel.domain_of(second)), (A, B));
}

#[test]
fn log_6_a_process_is_bound_with_all_its_threads_and_a_thread_alone() {
    let Some(mut kernel) = kernel("log_6_threads") else { return };
    let (child, threads) = threaded(4);
    kernel.bind(&Principal::Thread(threads[1]), B).unwrap();
    let domains = |kernel: &Kernel| threads.iter().map(|&pid| kernel.domain_of(pid)).collect::<Vec<_>>();
    assert_eq!(domains(&kernel), [NONE, B, NONE, NONE]);
    kernel.bind(&Principal::Process(child.pid), A).unwrap();
    assert_eq!(domains(&kernel), [A; 4]);
    assert_eq!(kernel.domain_of(child.pid), A);
    kernel.unbind(&Principal::Process(child.pid)).unwrap();
    assert_eq!(domains(&kernel), [NONE; 4]);
}

#[test]
fn log_6_a_pid_that_is_used_again_does_not_keep_its_old_domain() {
    let Some(mut kernel) = kernel("log_6_pid_reuse") else { return };
    let pid = clone3(CloneArguments::default()).unwrap();
    kernel.bind(&Principal::Process(pid), A).unwrap();
    end(pid);
    let wanted = [pid];
    let again =
        CloneArguments { set_tid: wanted.as_ptr() as u64, set_tid_size: 1, ..CloneArguments::default() };
    match clone3(again) {
        Ok(same) => {
            assert_eq!((same, kernel.domain_of(same)), (pid, NONE));
            end(same);
        }
        Err(error) => println!("SKIPPED: log_6_pid_reuse: a pid cannot be chosen here: {error}"),
    }
}

#[test]
fn log_6_what_cannot_be_bound_is_refused_with_the_reason() {
    let Some(mut kernel) = kernel("log_6_refusals") else { return };
    let task = |error| matches!(error, Err(KernelError::Task { .. }));
    assert!(task(kernel.bind(&Principal::Process(-1), A)));
    assert!(task(kernel.bind(&Principal::Thread(0), A)));
    let mut gone = Child::start(|_| {});
    gone.kill();
    assert!(task(kernel.bind(&Principal::Process(gone.pid), A)));
    assert!(matches!(
        kernel.bind(&Principal::Idle, DomainId::new(256)),
        Err(KernelError::NoSuchDomain { domain, max }) if (domain.get(), max.get()) == (256, 255)
    ));
    let cgroup = |path: &str| Principal::Cgroup(path.into());
    for path in ["/sys/fs/cgroup/no-such-group", "/tmp", "/dev/null"] {
        let error = kernel.bind(&cgroup(path), A).unwrap_err();
        assert!(error.to_string().contains(path), "{error}");
    }
}

/// The number of ticks that found a processor idle, over all processors.
fn idle_ticks() -> u64 {
    let text = fs::read_to_string("/proc/stat").unwrap();
    text.split_whitespace().nth(4).unwrap().parse().unwrap()
}

#[test]
fn log_6_idle_time_may_have_a_domain() {
    let Some(mut kernel) = kernel("log_6_idle") else { return };
    let (plan, files) = plan(&[event::SERVICE_TIME]);
    apply(&plan, &kernel);
    kernel.bind(&Principal::Idle, A).unwrap();
    assert_eq!(kernel.domain_of(0), A);
    let begin = Instant::now();
    let mut pair = support::ping_pong(100, [0, 0]);
    kernel.bind(&Principal::Process(pair[0].pid), B).unwrap();
    kernel.enable(&Characteristic::ServiceTime).unwrap();
    run(&mut pair);
    let before = idle_ticks();
    let has_row = || between(&rows(&kernel, &plan, files[0]), A, NONE) > 0;
    wait_until("a processor idles, or not at all", || has_row() || begin.elapsed().as_secs() >= 5);
    if !has_row() && idle_ticks() == before {
        println!("SKIPPED: log_6_idle: no processor idled meanwhile");
        return;
    }
    assert!(has_row());
}

/// A cgroup of this test, which is removed when this is dropped. Its processes must have ended by then.
struct TestGroup(PathBuf);

impl TestGroup {
    fn make(path: PathBuf) -> Option<TestGroup> {
        match fs::create_dir(&path) {
            Ok(()) => Some(TestGroup(path)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Some(TestGroup(path)),
            Err(_) => None,
        }
    }

    /// A cgroup in a hierarchy of this version, if one is mounted.
    fn in_hierarchy(kind: &str, name: &str) -> Option<TestGroup> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let points = mounts.lines().filter(|line| line.contains(&format!(" - {kind} ")));
        let paths = points.filter_map(|line| line.split(' ').nth(4));
        // Children of a cpuset have no processors until they are configured, and so accept no tasks.
        let group = |at: &str| Path::new(at).join(format!("mete-{name}-{}", std::process::id()));
        paths.filter(|at| !at.contains("cpuset")).find_map(|at| TestGroup::make(group(at)))
    }

    fn child(&self, name: &str) -> TestGroup {
        TestGroup::make(self.0.join(name)).unwrap()
    }

    fn principal(&self) -> Principal {
        Principal::Cgroup(self.0.clone())
    }

    fn take(&self, pid: i32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }

    /// Puts a process into the group above.
    fn give_back(&self, pid: i32) {
        fs::write(self.0.parent().unwrap().join("cgroup.procs"), pid.to_string()).unwrap();
    }
}

impl Drop for TestGroup {
    fn drop(&mut self) {
        // A process that was killed leaves its group a moment later.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        println!("cannot remove {}", self.0.display());
    }
}

/// Everything that holds for cgroups of both versions.
fn cgroups(kind: &str, test: &str) {
    let Some(mut kernel) = kernel(test) else { return };
    let Some(group) = TestGroup::in_hierarchy(kind, "bound") else {
        println!("SKIPPED: {test}: no writable {kind} hierarchy is mounted");
        return;
    };
    let inner = group.child("inner");
    let (process, threads) = threaded(3);
    let mut forker = parent();
    inner.take(process.pid);
    kernel.bind(&group.principal(), A).unwrap();
    assert_eq!(kernel.attached(), ["inherit", "follow", "follow_all"]);
    let domains = |kernel: &Kernel| threads.iter().map(|&pid| kernel.domain_of(pid)).collect::<Vec<_>>();
    assert_eq!(domains(&kernel), [A; 3], "a process below is bound");

    assert_eq!(kernel.domain_of(forker.pid), NONE);
    group.take(forker.pid);
    assert_eq!(kernel.domain_of(forker.pid), A, "a process that is moved in is followed");
    forker.release();
    let first = forker.report() as i32;
    assert_eq!(kernel.domain_of(first), A, "and its children inherit");

    let later = group.child("later");
    group.give_back(process.pid);
    assert_eq!(domains(&kernel), [NONE; 3], "a process that leaves is followed, with all threads");
    later.take(process.pid);
    assert_eq!(domains(&kernel), [A; 3], "also into a group that was made later");

    kernel.bind(&later.principal(), B).unwrap();
    assert_eq!(domains(&kernel), [B; 3], "the nearest binding counts");
    kernel.unbind(&later.principal()).unwrap();
    assert_eq!(domains(&kernel), [A; 3], "and when it ends, the next one");

    kernel.bind(&Principal::Process(forker.pid), B).unwrap();
    group.give_back(forker.pid);
    assert_eq!(kernel.domain_of(forker.pid), B, "a task's own binding takes precedence over its group's");
    group.take(forker.pid);
    assert_eq!(kernel.domain_of(forker.pid), B);

    kernel.unbind(&group.principal()).unwrap();
    assert_eq!(domains(&kernel), [NONE; 3]);
    group.give_back(process.pid);
    inner.take(process.pid);
    assert_eq!(domains(&kernel), [NONE; 3], "no program follows tasks any more");
    forker.release();
    forker.report();
    forker.release();
    forker.report();
    drop((forker, process));
    drop((inner, later));
}

#[test]
fn log_6_tasks_of_a_version_1_cgroup_are_bound_and_followed() {
    cgroups("cgroup", "log_6_cgroup_1");
}

#[test]
fn log_6_tasks_of_a_version_2_cgroup_are_bound_and_followed() {
    cgroups("cgroup2", "log_6_cgroup_2");
}

#[test]
fn log_6_a_task_that_is_started_in_a_cgroup_has_its_domain() {
    const CLONE_INTO_CGROUP: u64 = 1 << 33;
    let Some(mut kernel) = kernel("log_6_clone_into_cgroup") else { return };
    let Some(group) = TestGroup::in_hierarchy("cgroup2", "into") else {
        println!("SKIPPED: log_6_clone_into_cgroup: no writable version 2 hierarchy is mounted");
        return;
    };
    kernel.bind(&group.principal(), A).unwrap();
    let directory = File::open(&group.0).unwrap();
    let cgroup = directory.as_raw_fd() as u64;
    let pid =
        clone3(CloneArguments { flags: CLONE_INTO_CGROUP, cgroup, ..CloneArguments::default() }).unwrap();
    let domain = kernel.domain_of(pid);
    end(pid);
    assert_eq!(domain, A);
}

#[test]
fn log_6_cgroups_of_two_hierarchies_are_bound_at_once_and_not_mixed() {
    let Some(mut kernel) = kernel("log_6_two_hierarchies") else { return };
    let groups = ["cgroup", "cgroup2"].map(|kind| TestGroup::in_hierarchy(kind, "mixed"));
    let [Some(first), Some(second)] = groups else {
        println!("SKIPPED: log_6_two_hierarchies: not both versions of cgroups are mounted");
        return;
    };
    let child = parent();
    kernel.bind(&second.principal(), B).unwrap();
    kernel.bind(&first.principal(), A).unwrap();
    second.take(child.pid);
    assert_eq!(kernel.domain_of(child.pid), B);
    first.take(child.pid);
    assert_eq!(kernel.domain_of(child.pid), A, "the domain with the lower number counts");
    second.give_back(child.pid);
    assert_eq!(kernel.domain_of(child.pid), A, "leaving the other group changes nothing");
    second.take(child.pid);
    assert_eq!(kernel.domain_of(child.pid), A);
    first.give_back(child.pid);
    assert_eq!(
        kernel.domain_of(child.pid),
        B,
        "a process that leaves the group that counts is still in the other one"
    );
    first.take(child.pid);
    kernel.unbind(&first.principal()).unwrap();
    assert_eq!(kernel.domain_of(child.pid), B, "to end a binding does not end that of the other group");
    kernel.bind(&first.principal(), A).unwrap();
    assert_eq!(kernel.domain_of(child.pid), A);
    kernel.bind(&Principal::Process(child.pid), C).unwrap();
    assert_eq!(kernel.domain_of(child.pid), C);
    kernel.unbind(&Principal::Process(child.pid)).unwrap();
    assert_eq!(kernel.domain_of(child.pid), A, "without a binding of its own, that of its groups counts");
    first.give_back(child.pid);
    second.give_back(child.pid);
    assert_eq!(kernel.domain_of(child.pid), NONE);
    drop(child);
    kernel.unbind(&first.principal()).unwrap();
    kernel.unbind(&second.principal()).unwrap();
}
