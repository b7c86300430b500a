//! The program's side: two keepers, and a thread that replaces a keeper that has ended.

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

use crate::{KeeperStage, READY, Role};

/// How long a keeper may take to report that it is there, and to end. This is more than keepers were seen to
/// take on a machine with hundreds of busy processes, where ten seconds were not enough.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long to wait before another try, after a keeper could not be started.
const RETRY: Duration = Duration::from_millis(200);
/// How often this process looks which keepers have ended, if the kernel does not let it wait for that. Poll
/// takes no more files than the limit of descriptors, which the user or root may lower at any time.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// The length of the longest first line of a keeper.
const LONGEST_WORD: usize = 200;

/// Two keepers at work. When this is dropped, they are dismissed: they see the end of the program.
#[derive(Debug)]
pub struct Keepers {
    /// The end of this pipe is the end of the program for the keepers. No other process has this side of it.
    pipe: Option<OwnedFd>,
    /// The end of this pipe wakes the thread.
    wake: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    present: Arc<PresentKeepers>,
}

/// How many keepers are there, for the threads that ask.
#[derive(Debug, Default)]
struct PresentKeepers {
    count: Mutex<KeeperCount>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct KeeperCount {
    keepers: usize,
    /// The reason why the last keeper could not be started; `None` if it could.
    why: Option<String>,
    /// Whether the keepers have to undo what must be undone.
    is_left: bool,
}

impl Keepers {
    /// Starts both keepers. They are there when this returns. `program` returns the command that starts this
    /// program; `files` and `words` are what the keepers find in their [`Duty`](crate::Duty).
    ///
    /// # Errors
    ///
    /// The reason why one of them cannot be started. No keeper is left then.
    pub fn start(
        role: &'static Role,
        program: impl Fn() -> Command + Send + 'static,
        files: Vec<OwnedFd>,
        words: Vec<OsString>,
    ) -> io::Result<Keepers> {
        let (input, pipe) = pipe_with(PipeFlags::CLOEXEC)?;
        // Does not block: the thread only looks whether this pipe has ended.
        let (woken, wake) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let order = KeeperOrder { role, program: Box::new(program), files, words, input };
        let present = Arc::new(PresentKeepers::default());
        let first = order.start(KeeperStage::First)?;
        let second = match order.start(KeeperStage::ToStartSecond) {
            Ok(second) => second,
            Err(error) => {
                // The end of the pipe ends the first keeper, too, unless it is stopped.
                drop(pipe);
                first.end();
                return Err(error);
            }
        };
        present.lock().keepers = 2;
        let posts = [Ok(first), Ok(second)];
        let watch = KeeperWatch { order, posts, leaving: Vec::new(), present: present.clone() };
        let mut keepers = Keepers { pipe: Some(pipe), wake: Some(wake), thread: None, present };
        let thread = thread::Builder::new().name("mete-keepers".into());
        keepers.thread = Some(thread.spawn(move || watch.run(&woken))?);
        Ok(keepers)
    }

    /// Waits until at least one keeper is there. Usually, one is.
    ///
    /// # Errors
    ///
    /// The reason why there is none. This returns as soon as none can be started, and after `limit` at the
    /// latest.
    pub fn wait_for_one(&self, limit: Duration) -> io::Result<()> {
        let waited = self.present.changed.wait_timeout_while(self.present.lock(), limit, |count| {
            // A reason ends the wait: the next try comes only after a while.
            count.keepers == 0 && count.why.is_none()
        });
        let (count, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if count.keepers > 0 {
            return Ok(());
        }
        let why = count.why.clone().unwrap_or_else(|| "another one is being started".into());
        Err(io::Error::other(why))
    }

    /// Leaves the undoing to the keepers: they see the end of the program and undo. Waits for that, but not
    /// for ever.
    pub fn leave(&mut self) {
        self.present.note(|count| count.is_left = true);
        self.dismiss();
    }

    /// Ends both keepers, after what they are there for was undone.
    pub fn dismiss(&mut self) {
        // Together: the thread ends by `wake`, the keepers by `pipe`.
        drop((self.pipe.take(), self.wake.take()));
        if let Some(thread) = self.thread.take() {
            // The thread does not panic. If it did, the end of the pipe would still reach the keepers.
            let _ = thread.join();
        }
    }
}

impl Drop for Keepers {
    fn drop(&mut self) {
        self.dismiss();
    }
}

impl PresentKeepers {
    /// The count. A panic of a thread that held the lock is of no consequence, because no change leaves the
    /// count half done.
    fn lock(&self) -> MutexGuard<'_, KeeperCount> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, change: impl FnOnce(&mut KeeperCount)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }
}

/// How keepers are started.
struct KeeperOrder {
    role: &'static Role,
    program: Box<dyn Fn() -> Command + Send>,
    files: Vec<OwnedFd>,
    words: Vec<OsString>,
    /// The end of the pipe that keepers read.
    input: OwnedFd,
}

impl KeeperOrder {
    /// Starts a keeper, and waits until it has reported that it is there.
    fn start(&self, stage: KeeperStage) -> io::Result<Keeper> {
        let mut child = self.command(stage)?.spawn()?;
        let output = child.stdout.take().ok_or(ErrorKind::BrokenPipe)?;
        let mut keeper = Keeper { output, child, handle: None };
        match ioctl_fionbio(&keeper.output, true).map_err(io::Error::from).and_then(|()| keeper.hear()) {
            Ok(pid) => {
                keeper.identify(pid);
                Ok(keeper)
            }
            Err(error) => {
                // The process that was started is no keeper.
                let _ = keeper.child.kill();
                let _ = keeper.child.wait();
                Err(error)
            }
        }
    }

    fn command(&self, stage: KeeperStage) -> io::Result<Command> {
        let numbers: Vec<RawFd> = self.files.iter().map(AsRawFd::as_raw_fd).collect();
        let mut command = (self.program)();
        command.arg(self.role.argument).arg(stage.word()).arg(numbers.len().to_string());
        command.args(numbers.iter().map(RawFd::to_string)).args(&self.words);
        command.stdin(self.input.try_clone()?).stdout(Stdio::piped()).stderr(Stdio::null()).current_dir("/");
        // Probes in this program are for other uses of it. A keeper is no component that a scheduler should
        // find.
        command.env("METE_PROBES", "off");
        // SAFETY: `set_apart` makes only system calls, which touch no memory of the parent.
        unsafe { command.pre_exec(move || set_apart(&numbers)) };
        Ok(command)
    }
}

/// In the child, before exec: gives it a session of its own, and the files that it inherits.
fn set_apart(numbers: &[RawFd]) -> io::Result<()> {
    rustix::process::setsid()?;
    for &number in numbers {
        // SAFETY: the descriptors are the parent's own files, and they are open in the child's copy, too.
        rustix::io::fcntl_setfd(unsafe { BorrowedFd::borrow_raw(number) }, FdFlags::empty())?;
    }
    Ok(())
}

/// A keeper while it is there.
struct Keeper {
    /// Ends with the keeper.
    output: ChildStdout,
    /// The keeper, or its parent.
    child: Child,
    /// The keeper itself, if its number was certain.
    handle: Option<OwnedFd>,
}

impl Keeper {
    /// Reads the keeper's first line, which says the number of its process. Another program would not say so.
    fn hear(&mut self) -> io::Result<Option<u32>> {
        let deadline = Instant::now() + PATIENCE;
        let mut line = Vec::new();
        let mut letter = [0];
        while line.len() < LONGEST_WORD {
            if !is_ready(&self.output, PollFlags::IN, deadline)? {
                return Err(io::Error::new(ErrorKind::TimedOut, "the program that was started says nothing"));
            }
            // Letter by letter, so that nothing behind the line is read.
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

    /// Takes a handle of the process that said this number, unless the keeper may have ended and the number
    /// may belong to another process.
    fn identify(&mut self, pid: Option<u32>) {
        let Some(pid) = pid.and_then(|pid| Pid::from_raw(pid.try_into().ok()?)) else { return };
        self.handle = pidfd_open(pid, PidfdFlags::empty()).ok();
        // The order matters: if the keeper has not ended now, the handle above was opened while it had its
        // number.
        if self.has_ended(Instant::now()) {
            self.handle = None;
        }
    }

    /// Whether the keeper's output has ended, or ends before the deadline.
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
            // An error means that the process has ended.
            let _ = pidfd_send_signal(handle, signal);
        }
    }

    /// Ends the keeper. The pipe has ended already, but a keeper that is stopped does not see that.
    fn end(mut self) {
        self.signal(Signal::KILL);
        self.has_ended(Instant::now() + PATIENCE);
        // The keeper's parent has nothing else to do, and may be stopped. No other part of this program waits
        // for it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the thread owns.
struct KeeperWatch {
    order: KeeperOrder,
    /// The keepers. In the place of one that has ended: when to try to start another one.
    posts: [Result<Keeper, Instant>; 2],
    /// The processes that were started for keepers that have ended. Some have not ended yet: the parent of a
    /// keeper may be stopped.
    leaving: Vec<Child>,
    present: Arc<PresentKeepers>,
}

impl KeeperWatch {
    fn run(mut self, woken: &OwnedFd) {
        while !self.wait(woken) {
            self.replace_ended(0, KeeperStage::First);
            self.replace_ended(1, KeeperStage::ToStartSecond);
            self.leaving.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        }
        self.end_all();
    }

    /// Notes the end of a keeper, and starts another one as soon as it is time.
    fn replace_ended(&mut self, nth: usize, stage: KeeperStage) {
        let post = &mut self.posts[nth];
        if post.as_ref().is_ok_and(|keeper| keeper.has_ended(Instant::now())) {
            self.present.note(|count| count.keepers -= 1);
            let ended = std::mem::replace(post, Err(Instant::now()));
            self.leaving.extend(ended.map(|keeper| keeper.child));
        }
        let Err(when) = post else { return };
        if *when > Instant::now() {
            return;
        }
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

    /// Ends everything that was started. If the undoing was left to the keepers, waits for it first.
    fn end_all(self) {
        for mut child in self.leaving {
            // An error means that the process has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
        let is_left = self.present.lock().is_left;
        if is_left {
            // A keeper may be stopped while it holds the lock that the other one waits for. Now it goes on
            // and undoes.
            self.posts.iter().flatten().for_each(|keeper| keeper.signal(Signal::CONT));
        }
        for keeper in self.posts.into_iter().flatten() {
            // A keeper that still undoes after this time is not killed: it may yet succeed.
            if !is_left || keeper.has_ended(Instant::now() + PATIENCE) {
                keeper.end();
            }
        }
    }

    /// Waits until there is something to do. Returns whether the thread should end.
    fn wait(&self, woken: &OwnedFd) -> bool {
        let mut files = vec![PollFd::new(woken, PollFlags::empty())];
        files.extend(
            self.posts.iter().flatten().map(|keeper| PollFd::new(&keeper.output, PollFlags::empty())),
        );
        let next = self.posts.iter().filter_map(|post| post.as_ref().err()).min();
        let timeout = next.map(|when| timespec(when.saturating_duration_since(Instant::now())));
        match poll(&mut files, timeout.as_ref()) {
            // After an interruption, the caller looks at everything once more.
            Ok(_) | Err(Errno::INTR) => !files[0].revents().is_empty(),
            Err(_) => {
                thread::sleep(LOOK_AGAIN);
                is_at_end(woken)
            }
        }
    }
}

/// Whether nothing more can come from a pipe that does not block. What does come is thrown away: keepers say
/// nothing after their first line.
fn is_at_end(pipe: impl AsFd) -> bool {
    rustix::io::read(pipe, &mut [0]) == Ok(0)
}

/// Whether one of these events, or the end, comes to a file before the deadline.
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
