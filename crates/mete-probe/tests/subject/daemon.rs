//! What daemons do to descriptors that they do not know.

use std::fs::File;
use std::io::{BufRead, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rustix::fs::{Stat, fstat};

/// Files of the program, at the numbers that the probes' sockets had.
struct OwnFiles {
    listeners: Vec<(UnixListener, UnixStream)>,
    null: File,
    found: Vec<Stat>,
}

/// Follows orders: closes all descriptors and opens files, checks these files, has a child write to them,
/// prints the number of threads.
pub fn daemon() {
    let mut own = None;
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match line.as_str() {
            "close" => own = Some(OwnFiles::instead_of_all()),
            "check" => own.as_ref().expect("opened").check(),
            "fork" => own.as_ref().expect("opened").write_in_child(),
            _ => println!("{}", std::fs::read_dir("/proc/self/task").expect("threads").count()),
        }
        println!("{line} done");
    }
}

impl OwnFiles {
    fn instead_of_all() -> OwnFiles {
        // SAFETY: only the standard descriptors and those of the probes are open here.
        (3..1024).for_each(|number| _ = unsafe { libc::close(number) });
        let listeners: Vec<_> = (0..4).map(listener_with_client).collect();
        let null = File::create("/dev/null").expect("open /dev/null");
        let mut own = OwnFiles { listeners, null, found: Vec::new() };
        own.found = own.look();
        own
    }

    fn look(&self) -> Vec<Stat> {
        let listeners = self.listeners.iter().map(|(listener, _)| fstat(listener));
        let clients = self.listeners.iter().map(|(_, client)| fstat(client));
        let all = listeners.chain(clients).chain([fstat(&self.null)]);
        all.map(|found| found.expect("still open")).collect()
    }

    /// Each file is the one it was, and each client still waits for the program itself.
    fn check(&self) {
        assert!(self.is_whole());
        for (listener, _) in &self.listeners {
            listener.set_nonblocking(true).expect("a mode");
            drop(listener.accept().expect("the own client"));
        }
    }

    fn is_whole(&self) -> bool {
        let inodes = |all: &[Stat]| all.iter().map(|one| (one.st_dev, one.st_ino)).collect::<Vec<_>>();
        inodes(&self.look()) == inodes(&self.found)
    }

    fn write_in_child(&self) {
        // SAFETY: the child writes to files and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let is_whole = self.is_whole() && (&self.null).write_all(b"x").is_ok();
            // SAFETY: ends the child.
            unsafe { libc::_exit(if is_whole { 7 } else { 1 }) };
        }
        assert_eq!(status_of(child), 7);
    }
}

/// Writes a line for each descriptor: its number and its file.
pub fn descriptors(into: &Path) {
    let all = std::fs::read_dir("/proc/self/fd").expect("descriptors").flatten();
    let line = |entry: std::fs::DirEntry| {
        let target = std::fs::read_link(entry.path()).ok()?;
        Some(format!("{} {}\n", entry.file_name().display(), target.display()))
    };
    let lines: String = all.filter_map(line).collect();
    std::fs::write(into, lines).expect("the test's file");
}

/// A listener at an address that the kernel chooses, and a client that has connected to it.
fn listener_with_client(_: usize) -> (UnixListener, UnixStream) {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, getsockname, listen, socket};
    let server = socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
    bind(&server, &SocketAddrUnix::new_unnamed()).expect("an address");
    listen(&server, 8).expect("listen");
    let client = socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
    rustix::net::connect(&client, &getsockname(&server).expect("its address")).expect("connect");
    (server.into(), client.into())
}

/// A child's exit status; -1 if it was killed.
pub fn status_of(child: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: waits for the own child.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -1 }
}

/// Forks in a thread, while that thread is ending, in the main thread, and while the program is ending.
pub fn forks() {
    extern "C" fn at_end() {
        fork_on("at the end");
    }
    unsafe extern "C" fn at_thread_end(_: *mut libc::c_void) {
        fork_on("at a thread's end");
    }
    let mut key = 0;
    // SAFETY: functions of the right types.
    let failed = unsafe { libc::atexit(at_end) | libc::pthread_key_create(&mut key, Some(at_thread_end)) };
    assert_eq!(failed, 0);
    let thread = std::thread::spawn(move || {
        // SAFETY: the key was made above. Any value that is not null serves.
        unsafe { libc::pthread_setspecific(key, std::ptr::dangling()) };
        fork_on("in a thread");
    });
    thread.join().expect("a thread");
    fork_on("in the main thread");
}

/// Forks and prints the child's exit status.
fn fork_on(occasion: &str) {
    // SAFETY: the child only ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: ends the child.
        unsafe { libc::_exit(7) };
    }
    println!("{occasion}: {}", status_of(child));
}
