//! What all tests of real processes need.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use mete_log::{Area, Cursor, Entries, EventId, FileId, FileSpec, Plan, Poll, Region, Row, Shape, Stamp};
use mete_probe::attach::{AttachError, Component};
use mete_probe::finder::Finder;

/// Nothing here waits longer than this.
pub const LIMIT: Duration = Duration::from_secs(300);

/// A directory of sockets. Dropped, it is removed.
pub struct SocketDirectory(PathBuf);

impl SocketDirectory {
    pub fn new(name: &str) -> SocketDirectory {
        let path = std::env::temp_dir().join(format!("mete-test-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory for the test");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&path, mode).expect("the test's own directory");
        SocketDirectory(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SocketDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running program with probes. Dropped, it is killed.
pub struct Subject {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<String>,
    socket: PathBuf,
}

impl Subject {
    pub fn start(place: &SocketDirectory, arguments: &[&str]) -> Subject {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mete-probe-subject"));
        command.args(arguments);
        Subject::start_command(place, command)
    }

    pub fn start_command(place: &SocketDirectory, mut command: Command) -> Subject {
        command.env("METE_RUNTIME_DIR", place.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("start the subject");
        let (input, output) = (child.stdin.take(), lines_of(child.stdout.take().expect("piped")));
        let socket = place.path().join(format!("{}.sock", child.id()));
        Subject { child, input, output, socket }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Takes the subject, once it listens and no earlier scheduler has it any more.
    pub fn connect(&self) -> Component {
        until(|| match Component::connect(&self.socket, LIMIT) {
            Ok(component) => Some(component),
            Err(AttachError::Gone { .. } | AttachError::Busy { .. }) => None,
            Err(error) => panic!("{error}"),
        })
    }

    /// Writes a line to its input.
    pub fn say(&mut self, line: &str) {
        writeln!(self.input.as_mut().expect("open"), "{line}").expect("the subject's input");
    }

    pub fn line(&mut self) -> String {
        self.output.recv_timeout(LIMIT).expect("a line of the subject's output in time")
    }

    /// Ends it gently and returns the rest of its output. It must end successfully.
    pub fn finish(mut self) -> Vec<String> {
        drop(self.input.take());
        let mut lines = Vec::new();
        while let Ok(line) = self.output.recv_timeout(LIMIT) {
            lines.push(line);
        }
        let status = until(|| self.child.try_wait().expect("wait for the subject"));
        assert!(status.success(), "the subject ended with {status}");
        lines
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("look at the subject").is_none()
    }
}

/// Reads the output in a thread, so that waiting for a line can be limited.
fn lines_of(output: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        // The receiver may be gone.
        lines.map(|line| sender.send(line)).take_while(Result::is_ok).for_each(drop);
    });
    receiver
}

/// The number that an event has in rows.
pub fn id(component: &Component, name: &str) -> EventId {
    component.event(name).expect("published").id
}

impl Drop for Subject {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Tries until there is an answer, for [`LIMIT`] at most.
pub fn until<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(answer) = attempt() {
            return answer;
        }
        assert!(Instant::now() < end, "nothing happened within {LIMIT:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Has a finder look everywhere and go on until no component that it has called can still answer.
pub fn take_new(finder: &mut Finder) -> Vec<Result<Component, AttachError>> {
    finder.look_again();
    let mut found = finder.step(LIMIT);
    while !finder.is_settled() {
        finder.wait_or(LIMIT, &[]);
        found.extend(finder.step(LIMIT));
    }
    found
}

/// A region for all processors, with one file of `rows` rows for all events.
pub struct Log {
    pub region: Arc<Region>,
    pub plan: Plan,
    pub file: FileId,
}

impl Log {
    pub fn new(rows: u32, stamp: Stamp) -> Log {
        let processors = mete_probe::attach::configured_processors();
        let region = Arc::new(Region::create(Shape::COMPONENT, processors).expect("a region"));
        let mut plan = Plan::new(Shape::COMPONENT);
        let spec = FileSpec { entries: Entries::ALL, stamp, add: false, rows };
        let file = plan.file(spec).expect("a file");
        for event in EventId::all_below(4) {
            plan.route_event(event, file).expect("a route");
        }
        let log = Log { region, plan, file };
        log.apply();
        log
    }

    /// A new one, handed to a component.
    pub fn of(component: &mut Component, rows: u32, stamp: Stamp) -> Log {
        let log = Log::new(rows, stamp);
        component.provide(log.region.clone()).expect("provide");
        log
    }

    pub fn apply(&self) {
        self.region.areas().for_each(|area| self.plan.apply(area));
    }

    pub fn readers(&self) -> Vec<LogReader<'_>> {
        let cursor = |area| Cursor::new(area, self.file, self.plan.control(self.file));
        self.region.areas().map(|area| (area, cursor(area))).collect()
    }
}

/// A processor's log area, and how far it has been read.
pub type LogReader<'a> = (Area<'a>, Cursor);

/// One pass over all processors.
pub fn poll_all(readers: &mut [LogReader<'_>], mut each: impl FnMut(usize, Row)) -> Poll {
    let mut sum = Poll::default();
    for (processor, (area, cursor)) in readers.iter_mut().enumerate() {
        sum += cursor.poll(*area, |row| each(processor, row)).expect("a sound log");
    }
    sum
}
