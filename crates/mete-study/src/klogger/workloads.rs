//! Real programs that are watched while they run. They are of the paper's kinds (§9.1), as far as they are
//! installed.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fs, io};

use mete_bench::child::check_installed;
use mete_bench::load::Load;
use mete_measure::Reason;

/// A kind of program to watch.
pub struct Workload {
    /// The name of the workload in tables.
    pub name: &'static str,
    /// What the workload does.
    pub about: &'static str,
    /// Starts the workload in a directory of its own.
    pub start: fn(&Path) -> Result<Started, Reason>,
}

/// A workload that runs.
pub struct Started {
    // Fields are dropped in this order: the client ends before the server.
    pub load: Load,
    _server: Option<FileServer>,
}

impl From<Load> for Started {
    fn from(load: Load) -> Started {
        Started { load, _server: None }
    }
}

/// The name of the kind that only computes.
pub const COMPUTATION: &str = "computation";
/// The name of the kind that compiles.
pub const MAKE: &str = "make";

/// One workload of each of the paper's kinds.
pub const WORKLOADS: [Workload; 6] = [
    Workload { name: "ffmpeg", about: "decodes an MPEG2 clip at the rate of its frames", start: play },
    Workload {
        name: "curl",
        about: "fetches 30 MB from a server on this machine that sends 100 Mbit/s",
        start: fetch,
    },
    Workload { name: "cp", about: "copies a file of 100 MB, from memory as a rule", start: copy },
    Workload { name: "find", about: "searches /usr for a pattern of names", start: search },
    Workload {
        name: MAKE,
        about: "compiles C, one job at a time, by make and cc",
        start: |at| compile(at, 1),
    },
    Workload { name: COMPUTATION, about: "adds integers for ever, in awk", start: compute },
];

/// A file of the paper's size.
const COPIED_BYTES: u64 = 100_000_000;
/// The number of files to compile: more than can be compiled in the time.
const UNITS: usize = 400;

fn play(at: &Path) -> Result<Started, Reason> {
    make_clip(at, "640x480", 5)?;
    let play = "ffmpeg -nostdin -loglevel error -re -i clip.mpg -f null -";
    Ok(Load::start(&play.split(' ').collect::<Vec<_>>(), at)?.into())
}

/// Makes `clip.mpg` in this directory, at 25 frames a second.
pub fn make_clip(at: &Path, size: &str, seconds: u32) -> Result<(), Reason> {
    check_installed("ffmpeg")?;
    let source = format!("testsrc2=size={size}:rate=25");
    let clip = format!("-nostdin -loglevel error -f lavfi -i {source} -t {seconds} -c:v mpeg2video clip.mpg");
    let made = Command::new("ffmpeg").args(clip.split(' ')).current_dir(at).status()?;
    if made.success() { Ok(()) } else { Err(Reason::new("ffmpeg cannot make an MPEG2 clip here")) }
}

fn fetch(at: &Path) -> Result<Started, Reason> {
    check_installed("curl")?;
    let server = FileServer::start()?;
    let address = format!("http://127.0.0.1:{}/", server.port);
    // A proxy that the environment names would not reach this server.
    let load = Load::start(&["curl", "--silent", "--noproxy", "*", "--output", "file", &address], at)?;
    Ok(Started { load, _server: Some(server) })
}

fn copy(at: &Path) -> Result<Started, Reason> {
    let mut file = fs::File::create(at.join("file"))?;
    io::copy(&mut io::repeat(7).take(COPIED_BYTES), &mut file)?;
    Ok(Load::start(&["cp", "file", "copy"], at)?.into())
}

fn search(at: &Path) -> Result<Started, Reason> {
    Ok(Load::start(&["find", "/usr", "-name", "*mete*"], at)?.into())
}

fn compute(at: &Path) -> Result<Started, Reason> {
    Ok(Load::start(&["awk", "BEGIN { while (1) i++ }"], at)?.into())
}

/// This project's own handler in C, compiled again and again.
pub fn compile(at: &Path, jobs: usize) -> Result<Started, Reason> {
    check_installed("cc")?;
    fs::write(at.join("mete_layout.h"), include_str!("../../../mete-log/include/mete_layout.h"))?;
    fs::write(at.join("mete_handler.h"), include_str!("../../../mete-log/include/mete_handler.h"))?;
    for nth in 0..UNITS {
        fs::write(at.join(format!("unit-{nth}.c")), include_str!("../../../mete-log/tests/vectors.c"))?;
    }
    fs::write(at.join("Makefile"), "CFLAGS = -O2 -I.\nall: $(patsubst %.c,%.o,$(wildcard *.c))\n")?;
    Ok(Load::start(&["make", &format!("-j{jobs}")], at)?.into())
}

/// Sends 30 MB to each client, at the speed of a network of 100 Mbit/s.
struct FileServer {
    port: u16,
    is_done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

const SENT_BYTES: usize = 30_000_000;
/// The number of bytes that 100 Mbit/s carry in [`EVERY`].
const PIECE_BYTES: usize = 25_000;
const EVERY: Duration = Duration::from_millis(2);

impl FileServer {
    fn start() -> Result<FileServer, Reason> {
        let listener = TcpListener::bind("127.0.0.1:0")
            .map_err(Reason::while_trying("listen on the loopback network"))?;
        // So that the thread sees the end while no client comes.
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let is_done = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&is_done);
        let thread =
            thread::Builder::new().name("file server".into()).spawn(move || serve(&listener, &done))?;
        Ok(FileServer { port, is_done, thread: Some(thread) })
    }
}

impl Drop for FileServer {
    fn drop(&mut self) {
        self.is_done.store(true, Ordering::Relaxed);
        // Err means that the thread panicked; then there is nothing left to stop.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

fn serve(listener: &TcpListener, is_done: &AtomicBool) {
    while !is_done.load(Ordering::Relaxed) {
        match listener.accept() {
            // A client that leaves early is not an error.
            Ok((client, _)) => drop(send(client, is_done)),
            Err(_) => thread::sleep(EVERY),
        }
    }
}

fn send(mut client: TcpStream, is_done: &AtomicBool) -> io::Result<()> {
    // Whether an accepted socket inherits this from its listener differs between systems.
    client.set_nonblocking(false)?;
    client.set_write_timeout(Some(Duration::from_secs(1)))?;
    client.set_read_timeout(Some(Duration::from_secs(1)))?;
    let asked = client.read(&mut [0; 1024])?;
    let length = if asked > 0 { SENT_BYTES } else { 0 };
    client.write_all(format!("HTTP/1.0 200 OK\r\nContent-Length: {length}\r\n\r\n").as_bytes())?;
    let piece = [0; PIECE_BYTES];
    for _ in 0..length / PIECE_BYTES {
        if is_done.load(Ordering::Relaxed) {
            break;
        }
        client.write_all(&piece)?;
        thread::sleep(EVERY);
    }
    Ok(())
}
