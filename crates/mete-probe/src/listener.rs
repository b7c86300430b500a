//! The listener: one thread of a program with events, which sleeps until a scheduler connects and serves
//! one scheduler after the other.

use core::sync::atomic::{AtomicBool, Ordering};
use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};

use crate::descriptor::Descriptor;
use crate::endpoint::{self, Endpoint};
use crate::session::{self, Session};
use crate::{debug, state};

/// Large enough for what the thread does, small enough not to be noticed.
const STACK_BYTES: usize = 128 * 1024;

/// When something has happened, the kernel looks up by its number again the file that a thread waits for. If
/// the program has given the number to a file of its own meanwhile, the wait misses what has happened, but
/// for no longer than this.
const LOOK_AGAIN: rustix::time::Timespec = rustix::time::Timespec { tv_sec: 30, tv_nsec: 0 };

/// Whether this program and its children want to be no components.
static IS_WITHDRAWN: AtomicBool = AtomicBool::new(false);

/// Takes this program off the list of components: no scheduler finds it any more, nor the children that it
/// forks from now on. This is for programs that have probes for some of their uses only. A scheduler that has
/// connected already keeps its connection.
pub fn withdraw() {
    // Relaxed, here and below: the flag says all that there is to it.
    IS_WITHDRAWN.store(true, Ordering::Relaxed);
    endpoint::remove();
}

/// Starts the thread in the child of a fork: the child is a component as its parent is.
pub(crate) fn start_in_child() {
    if !IS_WITHDRAWN.load(Ordering::Relaxed) {
        start();
    }
}

/// Starts the thread, with all signals blocked, because they are meant for the program.
pub(crate) fn start() {
    let endpoint = match Endpoint::open() {
        Ok(endpoint) => endpoint,
        Err(error) => return debug::tell(|| format!("not published: {error}")),
    };
    let endpoint = Box::into_raw(Box::new(endpoint));
    if let Err(error) = with_signals_blocked(|| start_thread(endpoint)) {
        // SAFETY: no thread has taken it.
        drop(unsafe { Box::from_raw(endpoint) });
        endpoint::remove();
        debug::tell(|| format!("not published: no thread: {error}"));
    }
}

fn with_signals_blocked<T>(run: impl FnOnce() -> T) -> T {
    // SAFETY: signal sets are plain data, and they are filled before they are used.
    unsafe {
        let (mut all, mut before) = (core::mem::zeroed(), core::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let result = run();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, core::ptr::null_mut());
        result
    }
}

/// Starts the thread by pthread, because the constructor runs before the program's own run-time system is set
/// up.
fn start_thread(endpoint: *mut Endpoint) -> io::Result<()> {
    // SAFETY: attributes and thread are plain data, set up before use. `listen` takes `endpoint`.
    let answer = unsafe {
        let (mut attributes, mut thread) = (core::mem::zeroed(), core::mem::zeroed());
        libc::pthread_attr_init(&mut attributes);
        libc::pthread_attr_setstacksize(&mut attributes, STACK_BYTES);
        libc::pthread_attr_setdetachstate(&mut attributes, libc::PTHREAD_CREATE_DETACHED);
        let mut answer = libc::pthread_create(&mut thread, &attributes, listen, endpoint.cast());
        if answer == libc::EINVAL {
            // Thread-local storage alone can need more than a small stack.
            libc::pthread_attr_setstacksize(&mut attributes, 8 << 20);
            answer = libc::pthread_create(&mut thread, &attributes, listen, endpoint.cast());
        }
        libc::pthread_attr_destroy(&mut attributes);
        answer
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(answer)) }
}

extern "C" fn listen(endpoint: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: `start` made it from a box and gave it away.
    let endpoint = unsafe { Box::from_raw(endpoint.cast::<Endpoint>()) };
    let _ = rustix::thread::set_name(c"mete");
    // A program that has closed the socket no longer wants to be a component.
    while endpoint.descriptor().is_ours() {
        debug::tell_error(serve(&endpoint));
        session::stop_logging();
    }
    state::lock().closing(endpoint.descriptor());
    endpoint::remove();
    core::ptr::null_mut()
}

/// Serves one scheduler, from its connection to its end.
fn serve(endpoint: &Endpoint) -> io::Result<()> {
    wait([endpoint.descriptor()])?;
    let session = accept(endpoint)?;
    session.introduce()?;
    loop {
        let [asked, late] = wait([session.descriptor(), endpoint.descriptor()])?;
        // This comes first, so that a scheduler that follows one that has gone is not told that the component
        // is busy.
        if asked.contains(PollFlags::HUP) {
            return Ok(());
        }
        if !late.is_empty() {
            // What happens to the late scheduler does not concern this session.
            let _ = accept(endpoint).and_then(|late| late.turn_away(&session));
        }
        if !asked.is_empty() {
            session.serve()?;
        }
    }
}

fn accept(endpoint: &Endpoint) -> io::Result<Session> {
    let accepted = endpoint.accept(&mut state::lock());
    if accepted.as_ref().is_err_and(is_shortage) {
        // The connection stays pending, so without a pause this would spin.
        std::thread::sleep(Duration::from_secs(1));
    }
    Session::new(accepted?)
}

fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS))
}

/// Waits until something has happened to one of the files. An error if one is no longer the library's.
fn wait<const N: usize>(files: [&Descriptor; N]) -> io::Result<[PollFlags; N]> {
    loop {
        if !files.iter().all(|file| file.is_ours()) {
            return Err(io::Error::other("the program has closed a socket of its probes"));
        }
        let mut polled = files.map(|file| PollFd::from_borrowed_fd(file.unchecked(), PollFlags::IN));
        rustix::io::retry_on_intr(|| rustix::event::poll(&mut polled, Some(&LOOK_AGAIN)))?;
        let events = polled.map(|file| file.revents());
        // If a file is closed, the next turn of the loop finds out.
        if events.iter().any(|events| !events.is_empty() && !events.contains(PollFlags::NVAL)) {
            return Ok(events);
        }
    }
}
