//! The cast of the demo: drivers, clients, hogs, crowds and an asker, which are real processes, and the board
//! on which they count.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use mete_base::folder::{self, FolderEntry, PathTrust};
use mete_base::processors;
use mete_command::lab::{MOST_CLIENTS, program_beside};
use mete_log::clock::monotonic_ns;
use rustix::fs::FileType;

use crate::board::{Board, Counts, PLACES};
use crate::latencies::Latencies;

/// The number of drivers, each on a processor of its own. Two are enough for clients to be on the wrong one.
pub const DRIVERS: usize = 2;
/// The first client's place on the board; the places of the drivers come before it.
const FIRST_CLIENT: usize = 8;
/// The board has room for all clients.
const _: () = assert!(FIRST_CLIENT + MOST_CLIENTS <= PLACES);
/// The most hogs if no number is given.
const MOST_HOGS: usize = 16;

/// A process of the cast. When it is dropped, the process is ended.
pub struct CastProcess {
    name: String,
    child: Child,
}

impl CastProcess {
    /// Its name in tables and as a domain.
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
        // The process has not been waited for, so no other process can have its number.
        // SAFETY: the call writes only to `clock`, which belongs to this function.
        let error = unsafe { libc::clock_getcpuclockid(self.pid() as i32, &raw mut clock) };
        let failed = || format!("cannot read the processor time of {}, process {}", self.name, self.pid());
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error)).with_context(failed);
        }
        // SAFETY: the call writes only to `time`, which belongs to this function.
        if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
            return Err(io::Error::last_os_error()).with_context(failed);
        }
        Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }
}

impl Drop for CastProcess {
    fn drop(&mut self) {
        // It was started here and has not been waited for, so no other process can have its number.
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

/// The processes and files that last for the whole demo. Clients start and end with each stretch.
pub struct DemoStage {
    program: PathBuf,
    board: Board,
    board_file: OwnedFd,
    drivers: Vec<CastProcess>,
    hogs: Vec<CastProcess>,
    /// The last one to be dropped: living processes might put files into it while it is removed.
    folder: Folder,
}

impl DemoStage {
    /// A stage without processes.
    pub fn empty() -> Result<DemoStage> {
        let program = part_program()?;
        let folder = Folder::create()?;
        let (board, board_file) =
            Board::create().context("cannot make the memory in which the demo counts")?;
        Ok(DemoStage { program, board, board_file, drivers: Vec::new(), hogs: Vec::new(), folder })
    }

    /// Starts two drivers, on the first two of `processors`, and the hogs.
    pub fn open(processors: &[usize], hogs: usize) -> Result<DemoStage> {
        let mut stage = DemoStage::empty()?;
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
    pub fn drivers(&self) -> &[CastProcess] {
        &self.drivers
    }

    /// The directory in which the processes publish their logs. It belongs to the demo, so that the demo
    /// reads no other program's log.
    pub fn directory(&self) -> PathBuf {
        self.folder.components()
    }

    /// The hogs.
    pub fn hogs(&self) -> &[CastProcess] {
        &self.hogs
    }

    /// Starts clients. Client n favours driver n modulo the number of drivers.
    pub fn start_clients(&self, clients: usize) -> Result<Vec<CastProcess>> {
        (0..clients).map(|number| self.start_client(number)).collect()
    }

    /// What the first `clients` clients have counted, together.
    pub fn tally(&self, clients: usize) -> Tally {
        // Relaxed: each counter is exact by itself, and one request more or less between two of them does not
        // matter.
        let counts = (0..clients).map(|number| self.board.counts(FIRST_CLIENT + number));
        let tally = |counts: &Counts| Tally {
            requests: counts.requests.load(Ordering::Relaxed),
            crossings: counts.crossings.load(Ordering::Relaxed),
            latencies: counts.latencies(),
        };
        counts.map(tally).fold(Tally::default(), |sum, tally| sum + tally)
    }

    /// The processor time that drivers and clients have used.
    pub fn used(&self, clients: &[CastProcess]) -> Result<Duration> {
        self.drivers.iter().chain(clients).map(CastProcess::used).sum()
    }

    fn start_driver(&self, number: usize, processor: usize) -> Result<CastProcess> {
        self.start(&format!("driver{number}"), |command| {
            command.args(["driver", "--socket"]).arg(self.socket(number));
            command.args(["--processor", &processor.to_string(), "--place", &number.to_string()])
        })
    }

    fn start_client(&self, number: usize) -> Result<CastProcess> {
        let favourite = number % self.drivers.len();
        self.start(&format!("client{number}"), |command| {
            // The favourite stands first: nine in ten requests go to the first socket.
            command.arg("client");
            for step in 0..self.drivers.len() {
                command.arg("--socket").arg(self.socket((favourite + step) % self.drivers.len()));
            }
            command.args(["--place", &(FIRST_CLIENT + number).to_string()])
        })
    }

    /// Starts threads that compute on a processor, with a server among them if there is to be one.
    pub fn start_crowd(
        &self,
        name: &str,
        threads: usize,
        processor: usize,
        answers: bool,
    ) -> Result<CastProcess> {
        self.start(name, |command| {
            let (threads, processor) = (threads.to_string(), processor.to_string());
            command.args(["crowd", "--threads", &threads, "--processor", &processor]);
            if answers {
                command.arg("--socket").arg(self.server());
            }
            command
        })
    }

    /// Starts the process that asks the server in a crowd. What it counts is the first client's tally.
    pub fn start_asker(&self) -> Result<CastProcess> {
        self.start("asker", |command| {
            command.arg("asker").arg("--socket").arg(self.server());
            command.args(["--place", &FIRST_CLIENT.to_string()])
        })
    }

    fn server(&self) -> PathBuf {
        self.folder.path.join("server.sock")
    }

    fn start(&self, name: &str, arguments: impl FnOnce(&mut Command) -> &mut Command) -> Result<CastProcess> {
        let mut command = Command::new(&self.program);
        // Nothing is ever written into the pipe. Its end tells the process that the demo has ended, even if
        // it was killed.
        command.args(["--board", &self.board_file.as_raw_fd().to_string()]).stdin(Stdio::piped());
        command.env("METE_RUNTIME_DIR", self.folder.components());
        arguments(&mut command);
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {} of the demo", self.program.display()))?;
        Ok(CastProcess { name: name.to_owned(), child })
    }

    fn socket(&self, driver: usize) -> PathBuf {
        self.folder.path.join(format!("driver{driver}.sock"))
    }
}

/// The processors that this program may use.
///
/// # Errors
///
/// If they are not known, or there is only one.
pub fn own_processors() -> Result<Vec<usize>> {
    let processors = processors::allowed().context("cannot find out which processors may be used")?;
    if processors.len() < DRIVERS {
        bail!(
            "the demo needs {DRIVERS} processors, one for each driver, and may use {}: with one processor, clients \
             cannot be moved",
            processors.len()
        );
    }
    Ok(processors)
}

/// One hog fewer than there are processors, so that the drivers find some time to run at all.
pub fn usual_hogs(processors: &[usize]) -> usize {
    (processors.len() - 1).min(MOST_HOGS)
}

/// The program `mete-demo-part`, which lies beside this one.
fn part_program() -> Result<PathBuf> {
    program_beside("mete-demo-part")
}

/// A folder for the sockets. Only this user can enter it, and it is removed at the end. Its lock tells other
/// demos that it is in use. A process id could not tell that, because another demo may run in another pid
/// namespace.
struct Folder {
    path: PathBuf,
    /// Two descriptors of the folder, which have the lock together. Removing the folder takes as many, and
    /// gets these, because no more may be left: that no more files may be open can be the reason for the end.
    locked: Vec<OwnedFd>,
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
        let locked = lock(&path).and_then(|lock| Ok(vec![lock.try_clone()?, lock])).with_context(failed);
        // Otherwise it would stay until a later demo finds it.
        let locked = locked.inspect_err(|_| drop(std::fs::remove_dir(&path)))?;
        let folder = Folder { path: path.clone(), locked };
        builder.create(folder.components()).with_context(failed)?;
        Ok(folder)
    }

    fn components(&self) -> PathBuf {
        self.path.join("components")
    }
}

/// Locks a folder that no demo uses.
fn lock(path: &Path) -> std::io::Result<OwnedFd> {
    let folder = std::fs::File::open(path)?;
    rustix::fs::flock(&folder, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
    Ok(folder.into())
}

/// Removes the folders of demos that were killed. Folders of other users with such a name are not touched.
fn remove_left_over() {
    let Ok(place) = folder::Folder::find(&std::env::temp_dir(), PathTrust::Links) else { return };
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

/// Whether a folder is older than a minute: the demo that has made a younger one may not have locked it yet.
fn is_old(entry: &FolderEntry) -> bool {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    i64::try_from(since).is_ok_and(|now| now - entry.stat().st_mtime > 60)
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.locked.clear();
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
