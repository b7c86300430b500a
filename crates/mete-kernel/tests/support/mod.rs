//! What the tests share: real processes as workloads, and the log as lists of rows.

#![allow(dead_code, reason = "each test file uses a part")]
#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use std::{fs, ptr};

use mete_kernel::{Kernel, KernelError};
use mete_log::reader::Cursor;
use mete_log::{DomainId, Entries, EventId, FileId, FileSpec, Plan, Row, Shape, Stamp};
use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// The longest time for which anything waits. A workload that waits longer is killed.
const PATIENCE: Duration = Duration::from_secs(300);

/// The loaded component. If this test cannot run here, prints the reason.
pub fn kernel(test: &str) -> Option<Kernel> {
    match before_others(Kernel::load) {
        Ok(kernel) => Some(kernel),
        Err(
            error @ (KernelError::Privilege { .. }
            | KernelError::NoTypeInformation
            | KernelError::PidNamespace),
        ) => {
            println!("SKIPPED: {test}: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Does this work with a higher priority than other processes, if this user may. The kernel's verifier takes
/// seconds of processor time, which would be minutes beside other load.
pub fn before_others<T>(work: impl FnOnce() -> T) -> T {
    const WEIGHTIER: i32 = -10;
    let thread = Some(gettid());
    let before = getpriority_process(thread).unwrap();
    let is_first = setpriority_process(thread, WEIGHTIER).is_ok();
    let done = work();
    if is_first {
        setpriority_process(thread, before).unwrap();
    }
    done
}

/// A plan with one file for each of these events, all entries, and the files in the same order.
pub fn plan(events: &[EventId]) -> (Plan, Vec<FileId>) {
    let mut plan = Plan::new(Shape::KERNEL);
    // All that the area has room for, at 32 bytes a row.
    let rows = 1 << (15 - events.len().next_power_of_two().ilog2());
    let spec = FileSpec { entries: Entries::ALL, stamp: Stamp::Hardware, add: false, rows };
    let files = events
        .iter()
        .map(|&event| {
            let file = plan.file(spec).unwrap();
            // Domain 0 has all other processes of the machine, which would only fill the files.
            let is_of_none = event == mete_kernel::event::RUN_QUEUE;
            DomainId::all_below(Shape::KERNEL.domains())
                .filter(|&domain| (domain == DomainId::default()) == is_of_none)
                .for_each(|domain| plan.route(event, domain, file).unwrap());
            file
        })
        .collect();
    (plan, files)
}

pub fn apply(plan: &Plan, kernel: &Kernel) {
    kernel.areas().for_each(|area| plan.apply(area));
}

/// Every row of a file, of all processors, in the order of their time stamps. Panics if one was lost.
pub fn rows(kernel: &Kernel, plan: &Plan, file: FileId) -> Vec<Row> {
    let mut rows = Vec::new();
    for area in kernel.areas() {
        let (mut cursor, mut first) = (Cursor::from_oldest(area, file, plan.control(file)), None);
        let poll = cursor.poll_rows(area, |piece| {
            first.get_or_insert(piece.first());
            rows.extend(piece.iter());
        });
        let overwritten = poll.unwrap().overwritten + first.unwrap_or(0);
        assert_eq!(overwritten, 0, "rows were overwritten: the file is too small for this test");
    }
    rows.sort_by_key(|row| row.stamp);
    rows
}

/// The rows of a file on one processor from now on. The returned function returns them.
pub fn follow(
    kernel: &Kernel,
    plan: &Plan,
    file: FileId,
    processor: usize,
) -> impl FnOnce(&Kernel) -> Vec<Row> + use<> {
    let mut cursor = Cursor::new(kernel.area(processor), file, plan.control(file));
    move |kernel| {
        let mut rows = Vec::new();
        let poll = cursor.poll_rows(kernel.area(processor), |piece| rows.extend(piece.iter())).unwrap();
        assert_eq!(poll.overwritten, 0, "rows were overwritten: the file is too small for this test");
        rows
    }
}

/// The number of rows in a file.
pub fn count(kernel: &Kernel, file: FileId) -> u64 {
    kernel.areas().map(|area| mete_log::ring::written(&area.register(file).index)).sum()
}

pub fn of_domain(rows: &[Row], domain: DomainId) -> Vec<Row> {
    rows.iter().filter(|row| row.domain == Some(domain)).copied().collect()
}

pub fn between(rows: &[Row], domain: DomainId, correspondent: DomainId) -> usize {
    of_domain(rows, domain).iter().filter(|row| row.correspondent == Some(correspondent)).count()
}

pub fn sum(rows: &[Row]) -> u64 {
    rows.iter().filter_map(|row| row.counter).sum()
}

/// Waits until a condition holds, for a bounded time.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "still waiting: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The child's side of the two pipes between a workload and its test.
pub struct Gate {
    go: fs::File,
    told: fs::File,
}

impl Gate {
    /// Blocks until the test calls [`Child::release`].
    pub fn wait(&mut self) {
        let mut byte = [0];
        if self.go.read_exact(&mut byte).is_err() {
            exit(1);
        }
    }

    /// Hands a number to [`Child::report`].
    pub fn tell(&mut self, number: u64) {
        if self.told.write_all(&number.to_ne_bytes()).is_err() {
            exit(1);
        }
    }
}

/// A forked process with one piece of work. It is killed and reaped when this is dropped, if not before.
pub struct Child {
    pub pid: i32,
    go: fs::File,
    told: fs::File,
    is_reaped: bool,
}

impl Child {
    /// Forks a process that waits at its gate, then works, then ends.
    pub fn start(work: impl FnOnce(&mut Gate)) -> Child {
        let ((go_read, go_write), (told_read, told_write)) = (pipe(), pipe());
        // SAFETY: the child uses what was made before the fork, and ends without returning.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0, "fork failed");
        if pid == 0 {
            drop((go_write, told_read));
            die_with_parent();
            let mut gate = Gate { go: go_read, told: told_write };
            gate.wait();
            work(&mut gate);
            exit(0);
        }
        Child { pid, go: go_write, told: told_read, is_reaped: false }
    }

    pub fn release(&mut self) {
        self.go.write_all(&[1]).unwrap();
    }

    pub fn report(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.told.read_exact(&mut bytes).expect("the workload ended before it reported");
        u64::from_ne_bytes(bytes)
    }

    /// Blocks until the child has ended, and has left its processor.
    pub fn wait(&mut self) {
        // SAFETY: waits for a child of this process that nothing else waits for.
        unsafe { libc::waitpid(self.pid, ptr::null_mut(), 0) };
        self.is_reaped = true;
        be_everywhere();
    }

    /// The same. Returns the processor time that the child has used, as the kernel accounts it to its parent,
    /// in nanoseconds.
    pub fn wait_for_usage(&mut self) -> u64 {
        // SAFETY: waits for a child of this process that nothing else waits for; a zeroed rusage is one, and
        // it is written whole.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            assert_eq!(libc::wait4(self.pid, ptr::null_mut(), 0, &raw mut usage), self.pid);
            usage
        };
        self.is_reaped = true;
        be_everywhere();
        let ns = |time: libc::timeval| (time.tv_sec * 1_000_000 + time.tv_usec) as u64 * 1000;
        ns(usage.ru_utime) + ns(usage.ru_stime)
    }

    /// The letter of its state.
    pub fn state(&self) -> String {
        stat(self.pid).swap_remove(0)
    }

    pub fn kill(&mut self) {
        if !self.is_reaped {
            // SAFETY: not reaped yet, so the pid is still this child's.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
            self.wait();
        }
    }

    /// Waits until the child sleeps in a system call. The kernel has accounted then for all that it did so
    /// far.
    pub fn wait_until_blocked(&self) {
        wait_until("the workload blocks", || stat(self.pid)[0] == "S");
    }

    /// The number of minor faults so far, by the kernel's own account.
    pub fn minor_faults(&self) -> u64 {
        stat(self.pid)[7].parse().unwrap()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Lets all children through their gates, and returns what they report.
pub fn run(children: &mut [Child]) -> Vec<u64> {
    children.iter_mut().for_each(Child::release);
    children.iter_mut().map(Child::report).collect()
}

/// `/proc/PID/stat` from the state on.
fn stat(pid: i32) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, rest) = text.rsplit_once(") ").unwrap();
    rest.split(' ').map(str::to_owned).collect()
}

pub fn pipe() -> (fs::File, fs::File) {
    let (read, write) = std::io::pipe().unwrap();
    (OwnedFd::from(read).into(), OwnedFd::from(write).into())
}

/// Has this forked process end with the thread that forked it, and after [`PATIENCE`] in any case.
pub fn die_with_parent() {
    // SAFETY: no memory is involved.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::alarm(PATIENCE.as_secs() as u32);
    }
}

/// Ends a forked child without what the test harness does at its end.
pub fn exit(code: i32) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(code) }
}

/// Runs on each processor once. A process that has ended can be reaped a moment before it leaves its
/// processor for the last time. Once this thread runs there, it has left.
fn be_everywhere() {
    let own = sched_getaffinity(None).unwrap();
    (0..CpuSet::MAX_CPU).filter(|&processor| own.is_set(processor)).for_each(pin);
    sched_setaffinity(None, &own).unwrap();
}

/// Keeps this thread on one processor.
pub fn pin(processor: usize) {
    let mut set = CpuSet::new();
    set.set(processor);
    let _ = sched_setaffinity(None, &set);
}

pub fn clock_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Computes until this thread has run for this time.
pub fn spin(cpu_ns: u64) {
    let end = clock_ns(ClockId::ThreadCPUTime) + cpu_ns;
    while clock_ns(ClockId::ThreadCPUTime) < end {}
}

/// How often the calling thread has given up the processor because it waited.
pub fn voluntary_switches() -> u64 {
    // SAFETY: a zeroed rusage is one, and it is written whole.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage.ru_nvcsw as u64
    }
}

/// Maps this many bytes and writes to each page.
pub fn touch(bytes: usize) -> *mut u8 {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a fresh mapping, written within its bounds; small pages, so that faults are countable.
    unsafe {
        let base = libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0);
        assert_ne!(base, libc::MAP_FAILED);
        libc::madvise(base, bytes, libc::MADV_NOHUGEPAGE);
        (0..bytes).step_by(4096).for_each(|at| base.cast::<u8>().add(at).write_volatile(1));
        base.cast()
    }
}

/// The same; the memory is gone afterwards.
pub fn touch_and_free(bytes: usize) {
    // SAFETY: nothing else knows the mapping.
    unsafe { libc::munmap(touch(bytes).cast(), bytes) };
}

/// Has a task that is woken not take the processor from the task that wakes it, so that the latter comes to
/// block.
fn do_not_preempt() {
    let priority = libc::sched_param { sched_priority: 0 };
    // SAFETY: reads one parameter block.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const priority) };
}

/// Two children that wake each other `rounds` times by event counters. Each then reports how often it
/// blocked: on one processor, in nearly every round. They do not use pipes, because pipes have locks: if a
/// player lost the processor while it held one, the other one would wait once more.
pub fn ping_pong(rounds: u64, processors: [usize; 2]) -> [Child; 2] {
    let (of_a, of_b) = (event_counter(), event_counter());
    let again = |counter: &fs::File| counter.try_clone().unwrap();
    let first = start_player(rounds, processors[0], true, again(&of_a), again(&of_b));
    [first, start_player(rounds, processors[1], false, of_b, of_a)]
}

fn event_counter() -> fs::File {
    rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap().into()
}

/// The same as [`ping_pong`], over TCP and the loopback device.
pub fn ping_pong_over_tcp(rounds: u64, processors: [usize; 2]) -> [Child; 2] {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let a = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (b, _) = listener.accept().unwrap();
    let [a_again, b_again] = [&a, &b].map(|stream| {
        stream.set_nodelay(true).unwrap();
        stream.try_clone().unwrap()
    });
    let first = start_player(rounds, processors[0], true, a, a_again);
    [first, start_player(rounds, processors[1], false, b, b_again)]
}

fn start_player(
    rounds: u64,
    processor: usize,
    begins: bool,
    mut input: impl Read,
    mut output: impl Write,
) -> Child {
    Child::start(move |gate| {
        pin(processor);
        do_not_preempt();
        // Eight bytes, as an event counter takes them.
        let (token, mut received) = (1_u64.to_ne_bytes(), [0; 8]);
        let before = voluntary_switches();
        for _ in 0..rounds {
            if begins {
                output.write_all(&token).unwrap();
            }
            input.read_exact(&mut received).unwrap();
            if !begins {
                output.write_all(&token).unwrap();
            }
        }
        gate.tell(voluntary_switches() - before);
        gate.wait();
    })
}

/// Does this work in a thread for which the tracing file system is mounted, until it ends.
pub fn with_tracing_file_system(test: &str, work: impl FnOnce() + Send) {
    use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
    use rustix::thread::{UnshareFlags, unshare_unsafe};
    let place = "/sys/kernel/tracing";
    let mount = || -> rustix::io::Result<()> {
        // SAFETY: no memory is involved; a mount namespace of its own takes nothing from other threads.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        mount("tracefs", place, "tracefs", MountFlags::empty(), c"")
    };
    let run = || match mount() {
        // It may be there already.
        Ok(()) | Err(rustix::io::Errno::BUSY) => work(),
        Err(error) => println!("SKIPPED: {test}: cannot mount the tracing file system: {error}"),
    };
    std::thread::scope(|scope| scope.spawn(run).join()).unwrap();
}
