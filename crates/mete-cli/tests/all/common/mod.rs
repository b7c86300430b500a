//! What the tests share: the command, and processes that end with the test.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Longer than anything takes beside dozens of busy processes, so that only what hangs reaches it.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// The places in the kernel at which the shipped `scheduler` schema has a program.
pub const SCHEDULER_PROGRAMS: usize = 6;

/// The command.
pub fn mete(arguments: &[&str]) -> assert_cmd::Command {
    let mut command = assert_cmd::Command::from_std(program(arguments));
    command.timeout(PATIENCE);
    command
}

/// The same, to be started and looked after by the test.
pub fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mete"));
    command.args(arguments);
    // Tests may be run by sudo; commands are to run as the tests do.
    command.env_remove("SUDO_UID").env_remove("SUDO_GID");
    command
}

/// A program that lies beside the command, as after `cargo build --workspace`.
pub fn beside(name: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_mete")).with_file_name(name);
    assert!(program.exists(), "{} is missing: cargo build --workspace", program.display());
    program
}

/// What a command that has ended printed.
pub fn printed_by(ended: &assert_cmd::assert::Assert) -> String {
    String::from_utf8(ended.get_output().stdout.clone()).unwrap()
}

/// What a command that has ended said on stderr.
pub fn said_by(ended: &assert_cmd::assert::Assert) -> String {
    String::from_utf8_lossy(&ended.get_output().stderr).into_owned()
}

/// What the command prints, which succeeds.
pub fn stdout(arguments: &[&str]) -> String {
    printed_by(&mete(arguments).assert().success())
}

/// What the command says, which fails and prints no results.
pub fn failure(arguments: &[&str]) -> String {
    said_by(&mete(arguments).assert().failure().stdout(""))
}

/// Checks that the command fails without results, and says this.
pub fn fails(arguments: &[&str], expected: &str) {
    let said = failure(arguments);
    assert!(said.contains(expected), "{arguments:?}: {said}");
}

/// Checks that a command that has ended said this.
pub fn says(ended: &assert_cmd::assert::Assert, expected: &str) {
    let said = said_by(ended);
    assert!(said.contains(expected), "{said}");
}

/// The objects that `--json` prints, one in each line.
pub fn objects(printed: &str) -> Vec<Value> {
    let object = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    printed.lines().map(object).collect()
}

/// What a command printed and said, and how it ended.
pub struct Ended {
    pub code: Option<i32>,
    pub printed: String,
    pub said: String,
}

/// Runs a command to its end, which must come in time and without a panic.
pub fn run(command: Command) -> Ended {
    let output = assert_cmd::Command::from_std(command).timeout(PATIENCE).output().unwrap();
    let [printed, said] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(!said.contains("panicked"), "{said}");
    Ended { code: output.status.code(), printed, said }
}

/// A command of a shell on a terminal, whose output goes to stdout; `None` where there is no script(1).
pub fn on_a_terminal(command: &str) -> Option<assert_cmd::Command> {
    if Command::new("script").arg("--version").output().is_err() {
        println!("SKIPPED: there is no script(1) here");
        return None;
    }
    let mut script = assert_cmd::Command::new("script");
    script.args(["--quiet", "--return", "--command", command, "/dev/null"]).timeout(PATIENCE);
    Some(script)
}

/// Whether a process has a handler for a signal.
pub fn catches(pid: u32, signal: libc::c_int) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
    u64::from_str_radix(caught.trim(), 16).is_ok_and(|signals| signals & (1 << (signal - 1)) != 0)
}

/// Whether a process listens to Ctrl-C, which the command does before its work.
pub fn listens(pid: u32) -> bool {
    catches(pid, libc::SIGINT)
}

/// Whether this may run on two processors. Says so if it may not.
pub fn has_two_processors() -> bool {
    or_skipped(mask(std::process::id()).len() >= 2, "this needs two processors")
}

/// Whether the kernel can be logged. Says so if this user or this kernel cannot do it; any other reason is a
/// failure. Asked once: the kernel's verifier takes seconds of processor time, and minutes beside other load.
pub fn kernel_is_there() -> bool {
    use mete_kernel::KernelError::{NoTypeInformation, PidNamespace, Privilege};
    static WHY_NOT: OnceLock<Option<String>> = OnceLock::new();
    let why_not = WHY_NOT.get_or_init(|| match mete_kernel::Kernel::load() {
        Ok(_) => None,
        Err(error @ (Privilege { .. } | NoTypeInformation | PidNamespace)) => Some(error.to_string()),
        Err(error) => panic!("{error}"),
    });
    why_not.iter().for_each(|reason| eprintln!("SKIPPED: {reason}"));
    why_not.is_none()
}

/// Whether this is root. Says so if it is not.
pub fn is_root() -> bool {
    or_skipped(rustix::process::geteuid().is_root(), "this needs root")
}

/// Says that a test is skipped, unless it can run.
fn or_skipped(can_run: bool, why_not: &str) -> bool {
    if !can_run {
        eprintln!("SKIPPED: {why_not}");
    }
    can_run
}

fn take_usual_signals() -> std::io::Result<()> {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the usual action runs no code of this program.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    Ok(())
}

/// Copies a program, in another process: one that another test forks inherits every file that is open here for writing until it
/// executes its own program, and a program that is open for writing cannot be started ("Text file busy").
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let status = Command::new("cp").arg(from.as_ref()).arg(to.as_ref()).status();
    assert!(status.unwrap().success(), "{:?} is copied", from.as_ref());
}

/// Writes a program, likewise.
pub fn write_program(path: impl AsRef<Path>, text: &str) {
    let script = "printf %s \"$1\" >\"$0\" && chmod 755 \"$0\"";
    let status = Command::new("sh").args(["-c", script]).arg(path.as_ref()).arg(text).status();
    assert!(status.unwrap().success(), "{:?} is written", path.as_ref());
}

/// A process that ends with the test.
pub struct Running(pub Child);

impl Running {
    /// Starts it with the usual effects of signals, also if the tests run under `nohup` or in the background:
    /// the command leaves a signal ignored that was ignored before.
    pub fn start(command: &mut Command) -> Running {
        // SAFETY: between fork and exec, the closure makes system calls and nothing else.
        unsafe { command.pre_exec(take_usual_signals) };
        Running::start_as_here(command)
    }

    /// Starts it with the effects of signals that this process has.
    pub fn start_as_here(command: &mut Command) -> Running {
        Running(command.spawn().unwrap())
    }

    /// A process that does nothing until it is ended.
    pub fn idle() -> Running {
        Running::start(Command::new("sleep").arg("600").stdout(Stdio::null()))
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.pid() as i32).unwrap(), signal).unwrap();
    }

    /// Its lines on stdout, as they come.
    pub fn lines(&mut self) -> std::io::Lines<BufReader<ChildStdout>> {
        BufReader::new(self.0.stdout.take().unwrap()).lines()
    }

    pub fn wait(&mut self) -> ExitStatus {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(begin.elapsed() < PATIENCE, "process {} does not end", self.pid());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether a stopped process's threads all stand still: one that is on a processor goes on until it is
/// interrupted.
pub fn is_stopped(pid: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks.flatten().all(|task| {
        let stat = std::fs::read(task.path().join("stat")).unwrap_or_default();
        let name_end = stat.iter().rposition(|&byte| byte == b')');
        name_end.and_then(|at| stat.get(at + 2)) == Some(&b'T')
    })
}

/// Asks until the answer is yes.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Two processes that wait for each other all the time, each in a session of its own like the demo's parts.
pub fn ping_pong() -> (Running, Running) {
    let ((from_one, to_two), (from_two, to_one)) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
    let shell = |script: &str| {
        let mut command = Command::new("setsid");
        command.args(["sh", "-c", script]);
        command
    };
    let two = Running::start(shell("while read x; do echo x; done").stdin(from_one).stdout(to_one));
    let one = Running::start(shell("echo x; while read x; do echo x; done").stdin(from_two).stdout(to_two));
    (one, two)
}

/// The demo's driver and client, talking; they are found in a directory of their own.
pub struct Pair {
    pub driver: Running,
    pub client: Running,
    pub directory: tempfile::TempDir,
}

impl Pair {
    pub fn start() -> Pair {
        let directory = tempfile::tempdir().unwrap();
        // Not close-on-exec: both inherit it.
        let board = rustix::fs::memfd_create("board", rustix::fs::MemfdFlags::empty()).unwrap();
        // More than any board takes. Pages that are never written take no memory.
        rustix::fs::ftruncate(&board, 1 << 20).unwrap();
        let socket = directory.path().join("driver");
        let part = |part: &[&str]| {
            let mut command = Command::new(beside("mete-demo-part"));
            command.arg("--board").arg(board.as_raw_fd().to_string()).args(part).arg("--socket").arg(&socket);
            command.stdin(Stdio::piped()).env("METE_RUNTIME_DIR", directory.path());
            Running::start(&mut command)
        };
        let driver = part(&["driver", "--processor", "0", "--place", "0"]);
        let client = part(&["client", "--place", "1"]);
        drop(board);
        let published = directory.path().join(format!("{}.sock", driver.pid()));
        wait_until("the driver can be found", || published.exists());
        Pair { driver, client, directory }
    }

    /// Options for a domain of each.
    pub fn domains(&self, driver: &str, client: &str) -> [String; 4] {
        let option = || "--domain".to_owned();
        let domain = |name: &str, of: &Running| format!("{name}=pid:{}", of.pid());
        [option(), domain(driver, &self.driver), option(), domain(client, &self.client)]
    }
}

/// Identifiers of the eBPF links that a process holds.
pub fn bpf_links(pid: u32) -> Vec<u32> {
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).unwrap();
    let texts = descriptors.filter_map(|entry| std::fs::read_to_string(entry.unwrap().path()).ok());
    let links = texts
        .filter_map(|text| text.lines().find_map(|line| line.strip_prefix("link_id:"))?.trim().parse().ok());
    links.collect()
}

/// Whether the kernel still knows a link.
pub fn bpf_link_exists(link: u32) -> bool {
    const LINK_GET_FD_BY_ID: libc::c_int = 30;
    let attributes = [link, 0, 0, 0];
    // SAFETY: the command reads this number of bytes of the attributes and writes nothing.
    let descriptor = unsafe {
        libc::syscall(libc::SYS_bpf, LINK_GET_FD_BY_ID, &raw const attributes, size_of_val(&attributes))
    };
    if descriptor >= 0 {
        // SAFETY: the kernel has just made this descriptor, and nothing else has it.
        drop(unsafe { OwnedFd::from_raw_fd(descriptor as i32) });
    }
    descriptor >= 0
}

/// The processors that a process's first thread may use.
pub fn mask(pid: u32) -> Vec<usize> {
    let set = rustix::thread::sched_getaffinity(Pid::from_raw(pid as i32)).unwrap();
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|&processor| set.is_set(processor)).collect()
}

/// Lets a process's first thread use these processors.
pub fn set_mask(pid: u32, processors: &[usize]) {
    let mut set = rustix::thread::CpuSet::new();
    processors.iter().for_each(|&processor| set.set(processor));
    rustix::thread::sched_setaffinity(Pid::from_raw(pid as i32), &set).unwrap();
}

/// Each kind and each field stands in the description of what `--json` prints.
pub fn assert_described(objects: &[Value]) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md");
    let description = std::fs::read_to_string(path).unwrap();
    let is_described = |word: &str| description.contains(&format!("`{word}`"));
    for object in objects {
        let kind = object["kind"].as_str().unwrap();
        assert!(is_described(kind), "{kind} is not described");
        let missing = fields(object).into_iter().find(|field| !is_described(field));
        assert_eq!(missing, None, "of {kind}");
    }
}

/// Fields of an object and of those in it; a counter's name is a value.
fn fields(value: &Value) -> Vec<String> {
    match value {
        Value::Object(object) => object
            .iter()
            .flat_map(|(name, value)| {
                let below = if name == "counters" { Vec::new() } else { fields(value) };
                [vec![name.clone()], below].concat()
            })
            .collect(),
        Value::Array(values) => values.iter().flat_map(fields).collect(),
        _ => Vec::new(),
    }
}

/// Whether a program's parameters can be files here. Says so if they cannot.
pub fn fuse_is_there() -> bool {
    or_skipped(Path::new("/dev/fuse").exists(), "there is no /dev/fuse")
}

/// The events of a trace, as `mete show --json` has them.
pub fn events(trace: &std::path::Path) -> Vec<Value> {
    let shown = objects(&stdout(&["show", trace.to_str().unwrap(), "--json", "--without-marks"]));
    shown.into_iter().filter(|object| object["kind"] == "event").collect()
}

/// A control group of a test, which goes with the test.
pub struct Group(pub PathBuf);

impl Group {
    /// `None` where none can be made, with the reason printed.
    pub fn make(name: &str) -> Option<Group> {
        Group::make_in(&["/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"], name)
    }

    /// One that can have a weight.
    pub fn with_weight(name: &str) -> Option<Group> {
        // Where another file system is mounted there, nothing is to be written into it.
        if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
            let _ = fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+cpu");
        }
        Group::make_in(&["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"], name)
    }

    fn make_in(mounts: &[&str], name: &str) -> Option<Group> {
        let of = |mount: &&str| Path::new(mount).join(format!("mete-{name}-{}", std::process::id()));
        let is_group = |path: &PathBuf| path.with_file_name("cgroup.procs").exists();
        let made = mounts.iter().map(of).find(|path| is_group(path) && fs::create_dir(path).is_ok());
        if made.is_none() {
            println!("SKIPPED: no control group can be made here; run as root");
        }
        made.map(Group)
    }

    /// In the unit of `cpu.weight`.
    pub fn weight(&self) -> u64 {
        let read = |name: &str| fs::read_to_string(self.0.join(name)).ok()?.trim().parse::<u64>().ok();
        read("cpu.weight").or_else(|| Some(read("cpu.shares")? * 100 / 1024)).unwrap()
    }

    pub fn take(&self, pid: u32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        wait_until("the group is empty", || fs::remove_dir(&self.0).is_ok() || !self.0.exists());
    }
}
