//! The cast: drivers, clients and hogs as real processes, and the board on which they count.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use mete_log::clock::monotonic_ns;
use mete_schema::folder::{self, Entry, Trust};
use rustix::fs::FileType;

use super::board::{Board, Counts, PLACES};
use super::latencies::Latencies;

/// The processors that get a driver each. Two are enough to show what is to be seen.
pub const DRIVERS: usize = 2;
/// The first client's place on the board; the drivers' come before.
const FIRST_CLIENT: usize = 8;
/// The most clients that the board has room for.
pub const MOST_CLIENTS: usize = PLACES - FIRST_CLIENT;

/// A process of the cast, ended when it is dropped.
pub struct Part {
    name: String,
    child: Child,
}

impl Part {
    /// What it is called, in tables and as a domain.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The processor time that it has used.
    pub fn used(&self) -> Result<Duration> {
        let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
        // SAFETY: writes to one place, which is this function's own; the process is not waited for yet.
        let error = unsafe { libc::clock_getcpuclockid(self.pid() as i32, &raw mut clock) };
        let failed = || format!("cannot read the processor time of {}, process {}", self.name, self.pid());
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error)).with_context(failed);
        }
        // SAFETY: as above.
        if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
            return Err(io::Error::last_os_error()).with_context(failed);
        }
        Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // Ours, started here and not yet waited for, so the pid is still its own.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Requests and crossings since the clients began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests answered.
    pub requests: u64,
    /// Requests whose two ends ran on different processors.
    pub crossings: u64,
    /// How long they took.
    pub latencies: Latencies,
}

impl std::ops::Add for Tally {
    type Output = Tally;

    fn add(self, other: Tally) -> Tally {
        Tally {
            requests: self.requests + other.requests,
            crossings: self.crossings + other.crossings,
            latencies: self.latencies.with(&other.latencies, |one, other| one + other),
        }
    }
}

impl std::ops::Sub for Tally {
    type Output = Tally;

    fn sub(self, before: Tally) -> Tally {
        Tally {
            requests: self.requests - before.requests,
            crossings: self.crossings - before.crossings,
            latencies: self.latencies.with(&before.latencies, |now, before| now - before),
        }
    }
}

/// The stage: what lasts for the whole demo. Clients come and go with each stretch.
pub struct Stage {
    program: PathBuf,
    folder: Folder,
    board: Board,
    board_file: OwnedFd,
    drivers: Vec<Part>,
    hogs: Vec<Part>,
}

impl Stage {
    /// Starts two drivers, on the first two of `processors`, and the hogs.
    pub fn open(processors: &[usize], hogs: usize) -> Result<Stage> {
        let program = part_program()?;
        let folder = Folder::create()?;
        let (board, board_file) =
            Board::create().context("cannot make the memory in which the demo counts")?;
        let mut stage = Stage { program, folder, board, board_file, drivers: Vec::new(), hogs: Vec::new() };
        for (number, &processor) in processors.iter().take(DRIVERS).enumerate() {
            let driver = stage.start_driver(number, processor)?;
            stage.drivers.push(driver);
        }
        for number in 0..hogs {
            let hog = stage.start(&format!("hog{number}"), |command| command.arg("hog"))?;
            stage.hogs.push(hog);
        }
        Ok(stage)
    }

    /// The drivers, in the order of their processors.
    pub fn drivers(&self) -> &[Part] {
        &self.drivers
    }

    /// Where the parts publish themselves: a folder of the demo's own, so that it reads no other
    /// program's log.
    pub fn directory(&self) -> PathBuf {
        self.folder.components()
    }

    /// The hogs.
    pub fn hogs(&self) -> &[Part] {
        &self.hogs
    }

    /// Starts clients; each favours a driver, in turn.
    pub fn start_clients(&self, clients: usize) -> Result<Vec<Part>> {
        (0..clients).map(|number| self.start_client(number)).collect()
    }

    /// What the first `clients` clients have counted, together.
    pub fn tally(&self, clients: usize) -> Tally {
        let counts = (0..clients).map(|number| self.board.counts(FIRST_CLIENT + number));
        let tally = |counts: &Counts| Tally {
            requests: counts.requests.load(Ordering::Relaxed),
            crossings: counts.crossings.load(Ordering::Relaxed),
            latencies: counts.latencies(),
        };
        counts.map(tally).fold(Tally::default(), |sum, tally| sum + tally)
    }

    /// The processor time that drivers and clients have used.
    pub fn used(&self, clients: &[Part]) -> Result<Duration> {
        self.drivers.iter().chain(clients).map(Part::used).sum()
    }

    fn start_driver(&self, number: usize, processor: usize) -> Result<Part> {
        self.start(&format!("driver{number}"), |command| {
            command.args(["driver", "--socket"]).arg(self.socket(number));
            command.args(["--processor", &processor.to_string(), "--place", &number.to_string()])
        })
    }

    fn start_client(&self, number: usize) -> Result<Part> {
        let favourite = number % self.drivers.len();
        self.start(&format!("client{number}"), |command| {
            command.arg("client");
            for step in 0..self.drivers.len() {
                command.arg("--socket").arg(self.socket((favourite + step) % self.drivers.len()));
            }
            command.args(["--place", &(FIRST_CLIENT + number).to_string()])
        })
    }

    fn start(&self, name: &str, arguments: impl FnOnce(&mut Command) -> &mut Command) -> Result<Part> {
        let mut command = Command::new(&self.program);
        command.args(["--board", &self.board_file.as_raw_fd().to_string()]).stdin(Stdio::piped());
        command.env("METE_RUNTIME_DIR", self.folder.components());
        arguments(&mut command);
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {} of the demo", self.program.display()))?;
        Ok(Part { name: name.to_owned(), child })
    }

    fn socket(&self, driver: usize) -> PathBuf {
        self.folder.path.join(format!("driver{driver}.sock"))
    }
}

/// The program of the parts lies beside this one.
fn part_program() -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find out where this program lies")?;
    let program = own.with_file_name("mete-demo-part");
    if !program.exists() {
        bail!("{} is missing: build it with `make demo`, it comes with mete", program.display());
    }
    Ok(program)
}

/// A folder for the sockets that only this user can enter, removed at the end. Its lock tells other
/// demos that it is in use; a process number would not, because theirs may be another pid namespace.
struct Folder {
    path: PathBuf,
    _lock: OwnedFd,
}

/// How the folders' names begin.
const FOLDER: &str = "mete-demo-";

impl Folder {
    fn create() -> Result<Folder> {
        remove_left_over();
        let path = std::env::temp_dir().join(format!("{FOLDER}{}-{}", std::process::id(), monotonic_ns()));
        let failed = || format!("cannot make the folder {} for the demo's sockets", path.display());
        let mut builder = std::fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path).with_context(failed)?;
        let lock = lock(&path).with_context(failed)?;
        let folder = Folder { path: path.clone(), _lock: lock };
        builder.create(folder.components()).with_context(failed)?;
        Ok(folder)
    }

    fn components(&self) -> PathBuf {
        self.path.join("components")
    }
}

/// Takes a folder that nobody uses.
fn lock(path: &Path) -> std::io::Result<OwnedFd> {
    let folder = std::fs::File::open(path)?;
    rustix::fs::flock(&folder, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
    Ok(folder.into())
}

/// A demo that was killed could not remove its folder. What other users have put there under such a name is not touched.
fn remove_left_over() {
    let Ok(place) = folder::Folder::find(&std::env::temp_dir(), Trust::Links) else { return };
    let names = place.names().unwrap_or_default().into_iter();
    for name in names.filter(|name| name.to_string_lossy().starts_with(FOLDER)) {
        let entry = place.entry(&name).ok().flatten();
        let is_left = entry.is_some_and(|it| it.kind() == FileType::Directory && it.is_own() && is_old(&it));
        let path = place.path().join(&name);
        if is_left && let Ok(_lock) = lock(&path) {
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

/// Younger ones may be about to be locked.
fn is_old(entry: &Entry) -> bool {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    i64::try_from(since).is_ok_and(|now| now - entry.stat().st_mtime > 60)
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
