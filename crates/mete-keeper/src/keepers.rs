//! The program's side: two keepers, and a thread that replaces one that has ended.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, FdFlags, ioctl_fionbio};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use rustix::time::Timespec;

use crate::{READY, Role, Stage};

/// How long a keeper may take to say that it is there, and to end: more than it was seen to take on a machine with
/// hundreds of busy processes, where ten seconds were not enough.
const PATIENCE: Duration = Duration::from_secs(120);
/// When a keeper that could not be started is tried again.
const RETRY: Duration = Duration::from_millis(200);
/// How often this process looks which keepers have ended where the kernel does not let it wait for that: poll takes no
/// more files than the limit of descriptors, which the user or root may lower at any time.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// The longest first line of a keeper.
const LONGEST_WORD: usize = 200;

/// Two keepers at their posts. Dropped, it dismisses them: they see the end of the program.
#[derive(Debug)]
pub struct Keepers {
    /// Whose end is the program's end. Nothing but this process has it.
    pipe: Option<OwnedFd>,
    /// Whose end wakes the thread.
    wake: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    present: Arc<Present>,
}

/// Who is there, for the threads that ask.
#[derive(Debug, Default)]
struct Present {
    count: Mutex<Count>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Count {
    keepers: usize,
    /// Why the last one that was tried could not be started, if it could not.
    why: Option<String>,
    /// Whether it is theirs to undo.
    is_left: bool,
}

impl Keepers {
    /// Starts both; they are there when this returns. `program` says how this program is started, `files` and `words`
    /// are what they find in their [`Duty`](crate::Duty).
    ///
    /// # Errors
    ///
    /// Why one of them cannot be started; none is left then.
    pub fn start(
        role: &'static Role,
        program: impl Fn() -> Command + Send + 'static,
        files: Vec<OwnedFd>,
        words: Vec<OsString>,
    ) -> io::Result<Keepers> {
        let (input, pipe) = pipe_with(PipeFlags::CLOEXEC)?;
        let (woken, wake) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let order = Order { role, program: Box::new(program), files, words, input };
        let present = Arc::new(Present::default());
        let first = order.start(Stage::First)?;
        let second = match order.start(Stage::ToStartSecond) {
            Ok(second) => second,
            Err(error) => {
                drop(pipe);
                first.end();
                return Err(error);
            }
        };
        present.lock().keepers = 2;
        let posts = [Ok(first), Ok(second)];
        let watch = Watch { order, posts, leaving: Vec::new(), present: present.clone() };
        let mut keepers = Keepers { pipe: Some(pipe), wake: Some(wake), thread: None, present };
        let thread = thread::Builder::new().name("mete-keepers".into());
        keepers.thread = Some(thread.spawn(move || watch.run(&woken))?);
        Ok(keepers)
    }

    /// Waits until at least one keeper is there; as a rule it is.
    ///
    /// # Errors
    ///
    /// Why there is none: as soon as none can be started, and after `limit` at the latest.
    pub fn wait_for_one(&self, limit: Duration) -> io::Result<()> {
        let has_none = |count: &mut Count| count.keepers == 0 && count.why.is_none();
        let waited = self.present.changed.wait_timeout_while(self.present.lock(), limit, has_none);
        let (count, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if count.keepers > 0 {
            return Ok(());
        }
        let why = count.why.clone().unwrap_or_else(|| "another one is being started".into());
        Err(io::Error::other(why))
    }

    /// Leaves it to them: they see the end of the program and undo. Waits for that, though not for ever.
    pub fn leave(&mut self) {
        self.present.note(|count| count.is_left = true);
        self.dismiss();
    }

    /// Ends both, after what they are there for was undone.
    pub fn dismiss(&mut self) {
        drop((self.pipe.take(), self.wake.take()));
        if let Some(thread) = self.thread.take() {
            // It does not panic; if it did, the end of the pipe would still reach the keepers.
            let _ = thread.join();
        }
    }
}

impl Drop for Keepers {
    fn drop(&mut self) {
        self.dismiss();
    }
}

impl Present {
    /// Nothing that holds the lock can leave the count half changed.
    fn lock(&self) -> MutexGuard<'_, Count> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, change: impl FnOnce(&mut Count)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }
}

/// How keepers are started.
struct Order {
    role: &'static Role,
    program: Box<dyn Fn() -> Command + Send>,
    files: Vec<OwnedFd>,
    words: Vec<OsString>,
    /// The end of the pipe that keepers read.
    input: OwnedFd,
}

impl Order {
    /// Starts one and hears that it is there.
    fn start(&self, stage: Stage) -> io::Result<Keeper> {
        let mut child = self.command(stage)?.spawn()?;
        let output = child.stdout.take().ok_or(ErrorKind::BrokenPipe)?;
        let mut keeper = Keeper { output, child, handle: None };
        match ioctl_fionbio(&keeper.output, true).map_err(io::Error::from).and_then(|()| keeper.hear()) {
            Ok(pid) => {
                keeper.identify(pid);
                Ok(keeper)
            }
            Err(error) => {
                // What was started is no keeper.
                let _ = keeper.child.kill();
                let _ = keeper.child.wait();
                Err(error)
            }
        }
    }

    fn command(&self, stage: Stage) -> io::Result<Command> {
        let numbers: Vec<RawFd> = self.files.iter().map(AsRawFd::as_raw_fd).collect();
        let mut command = (self.program)();
        command.arg(self.role.argument).arg(stage.word()).arg(numbers.len().to_string());
        command.args(numbers.iter().map(RawFd::to_string)).args(&self.words);
        command.stdin(self.input.try_clone()?).stdout(Stdio::piped()).stderr(Stdio::null()).current_dir("/");
        // Probes in there are for other uses of the program: a keeper is no component for anyone to find.
        command.env("METE_PROBES", "off");
        // SAFETY: system calls alone, which touch no memory of the parent's.
        unsafe { command.pre_exec(move || set_apart(&numbers)) };
        Ok(command)
    }
}

/// In the child: a session of its own, and the files that it inherits.
fn set_apart(numbers: &[RawFd]) -> io::Result<()> {
    rustix::process::setsid()?;
    for &number in numbers {
        // SAFETY: the parent's own files, open in its copy too.
        rustix::io::fcntl_setfd(unsafe { BorrowedFd::borrow_raw(number) }, FdFlags::empty())?;
    }
    Ok(())
}

/// A keeper while it is there.
struct Keeper {
    /// Ends with it.
    output: ChildStdout,
    /// The keeper, or its parent.
    child: Child,
    handle: Option<OwnedFd>,
}

impl Keeper {
    /// Its first line, which says its number; another program would not say so.
    fn hear(&mut self) -> io::Result<Option<u32>> {
        let deadline = Instant::now() + PATIENCE;
        let mut line = Vec::new();
        let mut letter = [0];
        while line.len() < LONGEST_WORD {
            if !is_ready(&self.output, PollFlags::IN, deadline)? {
                return Err(io::Error::new(ErrorKind::TimedOut, "the program that was started says nothing"));
            }
            match self.output.read(&mut letter) {
                Ok(0) => break,
                Ok(_) if letter == *b"\n" => break,
                Ok(_) => line.push(letter[0]),
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
                Err(error) => return Err(error),
            }
        }
        let line = String::from_utf8_lossy(&line);
        match line.strip_prefix(READY) {
            Some(number) => Ok(number.trim().parse().ok()),
            None => Err(io::Error::other(format!("the program that was started said {line:?}"))),
        }
    }

    /// A handle of the process that said this number, as long as it cannot have ended and left the number to another
    /// one.
    fn identify(&mut self, pid: Option<u32>) {
        let Some(pid) = pid.and_then(|pid| Pid::from_raw(pid.try_into().ok()?)) else { return };
        self.handle = pidfd_open(pid, PidfdFlags::empty()).ok();
        if self.has_ended(Instant::now()) {
            self.handle = None;
        }
    }

    /// Whether its output has ended, or does so until then.
    fn has_ended(&self, deadline: Instant) -> bool {
        loop {
            if is_at_end(&self.output) {
                return true;
            }
            match is_ready(&self.output, PollFlags::empty(), deadline) {
                Ok(has_ended) => return has_ended,
                Err(_) if Instant::now() >= deadline => return false,
                Err(_) => thread::sleep(LOOK_AGAIN),
            }
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(handle) = &self.handle {
            // Refused only if it has ended.
            let _ = pidfd_send_signal(handle, signal);
        }
    }

    /// Ends it. The pipe has ended already, which one that is stopped does not see.
    fn end(mut self) {
        self.signal(Signal::KILL);
        self.has_ended(Instant::now() + PATIENCE);
        // Its parent has nothing else to do, and may be stopped. No other part of this program waits for it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The thread's own.
struct Watch {
    order: Order,
    /// The keepers, or when to try again.
    posts: [Result<Keeper, Instant>; 2],
    /// What was started as keepers that have ended, until it has ended too: the parent of one may be stopped.
    leaving: Vec<Child>,
    present: Arc<Present>,
}

impl Watch {
    fn run(mut self, woken: &OwnedFd) {
        while !self.wait(woken) {
            for (post, stage) in self.posts.iter_mut().zip([Stage::First, Stage::ToStartSecond]) {
                if post.as_ref().is_ok_and(|keeper| keeper.has_ended(Instant::now())) {
                    self.present.note(|count| count.keepers -= 1);
                    let ended = std::mem::replace(post, Err(Instant::now()));
                    self.leaving.extend(ended.map(|keeper| keeper.child));
                }
                if let Err(when) = post
                    && *when <= Instant::now()
                {
                    match self.order.start(stage) {
                        Ok(keeper) => {
                            *post = Ok(keeper);
                            self.present.note(|count| (count.keepers, count.why) = (count.keepers + 1, None));
                        }
                        Err(error) => {
                            *post = Err(Instant::now() + RETRY);
                            self.present.note(|count| count.why = Some(error.to_string()));
                        }
                    }
                }
            }
            self.leaving.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        }
        for mut child in self.leaving {
            // Refused only if it has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
        let is_left = self.present.lock().is_left;
        if is_left {
            // One that is stopped, perhaps with the lock that the other one waits for, goes on and undoes it.
            self.posts.iter().flatten().for_each(|keeper| keeper.signal(Signal::CONT));
        }
        for keeper in self.posts.into_iter().flatten() {
            if !is_left || keeper.has_ended(Instant::now() + PATIENCE) {
                keeper.end();
            }
        }
    }

    /// Waits until something is to be done; whether it is to end.
    fn wait(&self, woken: &OwnedFd) -> bool {
        let mut files = vec![PollFd::new(woken, PollFlags::empty())];
        files.extend(
            self.posts.iter().flatten().map(|keeper| PollFd::new(&keeper.output, PollFlags::empty())),
        );
        let next = self.posts.iter().filter_map(|post| post.as_ref().err()).min();
        let timeout = next.map(|when| timespec(when.saturating_duration_since(Instant::now())));
        match poll(&mut files, timeout.as_ref()) {
            // Interrupted, it looks once more.
            Ok(_) | Err(Errno::INTR) => !files[0].revents().is_empty(),
            Err(_) => {
                thread::sleep(LOOK_AGAIN);
                is_at_end(woken)
            }
        }
    }
}

/// Whether nothing can come any more from a pipe that does not block. What comes is thrown away: keepers say nothing
/// after their first line.
fn is_at_end(pipe: impl AsFd) -> bool {
    rustix::io::read(pipe, &mut [0]) == Ok(0)
}

/// Whether something of this, or its end, has come to a file until then.
fn is_ready(file: impl AsFd, flags: PollFlags, deadline: Instant) -> io::Result<bool> {
    loop {
        let timeout = timespec(deadline.saturating_duration_since(Instant::now()));
        match poll(&mut [PollFd::new(&file, flags)], Some(&timeout)) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() }
}
