//! Traces: every switch of a run as rows of the log facility (`mete-log`), in a file.
//!
//! ```text
//!   header   "METESIM1", control word of the rows, processors, domains; their names
//!   piece    processor (u32), rows (u32), rows as they would lie in a log file of that processor
//!   piece    …
//! ```
//!
//! All numbers are little-endian. A row has all five entries; [`Row::decode`] reads it. Domain 0 is the
//! processor's idle time, and client n is domain n + 1. Events below [`event::WAKE`] belong to the kernel
//! component and have the same meaning here; stamps are simulated nanoseconds. The rows of one processor are
//! in order; the rows of several are merged by their stamps.
//!
//! ```
//! use mete_log::DomainId;
//! use mete_sim::{Scenario, report, trace};
//!
//! let scenario = Scenario::load("shares-3-2-1", &[])?;
//! let writer = trace::Writer::new(&scenario, Vec::new())?;
//! let (_, writer) = report::run(&scenario, "vtrr", 1, writer).expect("it is in the catalog")?;
//! let bytes = writer.finish()?;
//! let trace = trace::read(&bytes)?;
//! assert_eq!(trace.domains, ["idle", "three", "two", "one"]);
//! let (processor, first) = trace.rows().next().expect("a client ran");
//! assert_eq!((processor, first.domain), (0, Some(DomainId::new(1))));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io::{self, Write};

use mete_log::row::who;
use mete_log::{Control, DomainId, Entries, EventId, NO_DOMAIN, Row, Stamp};
use mete_policy::{ClientId, Grant, Nanoseconds, Observation, ProcessorId, Stop};

use crate::recorder::{Note, Recorder};
use crate::scenario::Scenario;

/// The events of rows.
pub mod event {
    use mete_log::EventId;

    /// Processor time, at each switch to another domain. Domain: the one that ran; correspondent: the one
    /// that runs next; counter: nanoseconds.
    pub const SERVICE_TIME: EventId = EventId::new(0);
    /// One client notified another. Domain: the sender; correspondent: the receiver.
    pub const IPC_SEND: EventId = EventId::new(1);
    /// The same from the receiver's side. Domain: the receiver; correspondent: the sender.
    pub const IPC_RECEIVE: EventId = EventId::new(2);
    /// A client became runnable. Domain: the client.
    pub const WAKE: EventId = EventId::new(32);
    /// A guest switched tasks. Domain: the guest; counter: the task's number.
    pub const TASK_SWITCH: EventId = EventId::new(33);
    /// A request was answered. Domain: the client that answered; counter: nanoseconds from the request to the
    /// answer.
    pub const RESPONSE: EventId = EventId::new(34);
    /// A client got a processor by a boost. Domain: the client; counter: 1 if it was boosted because it woke,
    /// 2 if it was boosted for an event that is aimed at an I/O-bound task.
    pub const BOOST: EventId = EventId::new(35);
}

/// The domain of a processor's idle time.
pub(crate) const IDLE: DomainId = DomainId::new(0);

/// The first bytes of a trace.
pub(crate) const MAGIC: &[u8; 8] = b"METESIM1";
/// The words of a row: three entries' words, padded to a power of two.
const ROW_WORDS: usize = 4;
/// How many rows of one processor are written at a time.
const PIECE_ROWS: usize = 1024;

/// The layout of the rows.
fn control() -> Control {
    Control::new(Entries::ALL, Stamp::Hardware, false, 1, 0)
}

/// Why a run cannot be traced.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A row's domain has 16 bits.
    #[error("a trace tells at most {most} clients apart, and the scenario has {clients}", most = NO_DOMAIN.get() - 1)]
    TooManyClients {
        /// How many clients there are.
        clients: usize,
    },
    /// The file cannot be written.
    #[error(transparent)]
    Unwritten(#[from] io::Error),
}

/// What a processor did last, until the next client is known.
#[derive(Clone, Copy, Default)]
struct Lane {
    /// The client that ran last and has no row for that yet; `None` while the processor is idle or the switch
    /// has its row.
    client: Option<ClientId>,
    ran_ns: Nanoseconds,
    stopped_ns: Nanoseconds,
    /// Whether no client has followed yet.
    is_stopped: bool,
}

/// Writes the rows of a run.
pub struct Writer<W: Write> {
    out: W,
    failure: Option<io::Error>,
    lanes: Vec<Lane>,
    /// Processors whose clients have stopped at this instant.
    stopped: Vec<usize>,
    now_ns: Nanoseconds,
    pieces: Vec<Vec<u64>>,
    /// The processor that acted last: rows that belong to no processor are written with its rows.
    active: usize,
}

impl<W: Write> Writer<W> {
    /// Begins a trace of a run of this scenario.
    ///
    /// # Errors
    ///
    /// [`TraceError`] if the scenario has too many clients, or if the trace cannot be written.
    pub fn new(scenario: &Scenario, mut out: W) -> Result<Writer<W>, TraceError> {
        let clients = scenario.clients.len();
        if clients >= NO_DOMAIN.index() {
            return Err(TraceError::TooManyClients { clients });
        }
        let processors = usize::from(scenario.hardware.processors);
        out.write_all(MAGIC)?;
        for number in [control().to_bits(), processors as u64, clients as u64 + 1] {
            out.write_all(&number.to_le_bytes())?;
        }
        let names = scenario.clients.iter().map(|client| client.name.as_str());
        for name in std::iter::once("idle").chain(names) {
            out.write_all(&(name.len() as u64).to_le_bytes())?;
            out.write_all(name.as_bytes())?;
        }
        Ok(Writer {
            out,
            failure: None,
            lanes: vec![Lane::default(); processors],
            stopped: Vec::new(),
            now_ns: Nanoseconds::ZERO,
            pieces: vec![Vec::new(); processors],
            active: 0,
        })
    }

    /// Writes the rest of the rows.
    ///
    /// # Errors
    ///
    /// The first error in writing.
    pub fn finish(mut self) -> Result<W, TraceError> {
        self.pass_to(Nanoseconds::MAX);
        (0..self.pieces.len()).for_each(|processor| self.write(processor));
        match self.failure {
            Some(failure) => Err(failure.into()),
            None => {
                self.out.flush()?;
                Ok(self.out)
            }
        }
    }

    fn row(
        &mut self,
        processor: usize,
        event: EventId,
        (domain, correspondent): (DomainId, DomainId),
        counter: u64,
        now_ns: Nanoseconds,
    ) {
        let piece = &mut self.pieces[processor];
        piece.extend([who(event, domain, correspondent), counter, now_ns.get(), 0]);
        if piece.len() >= PIECE_ROWS * ROW_WORDS {
            self.write(processor);
        }
    }

    fn write(&mut self, processor: usize) {
        // Put back afterwards, so that its memory is used again.
        let mut piece = std::mem::take(&mut self.pieces[processor]);
        if self.failure.is_none() && !piece.is_empty() {
            self.failure = put(&mut self.out, processor, &piece).err();
        }
        piece.clear();
        self.pieces[processor] = piece;
    }

    /// Time goes on: if no client has followed on a processor in the instant that ends, the processor was
    /// idle next.
    fn pass_to(&mut self, now_ns: Nanoseconds) {
        if now_ns <= self.now_ns {
            return;
        }
        let mut stopped = std::mem::take(&mut self.stopped);
        for processor in stopped.drain(..) {
            if self.lanes[processor].is_stopped {
                self.switch(processor, IDLE, self.now_ns);
            }
        }
        self.stopped = stopped;
        self.now_ns = now_ns;
    }

    /// Writes the row about what ran last, now that the next domain is known.
    fn switch(&mut self, processor: usize, next: DomainId, now_ns: Nanoseconds) {
        let lane = &mut self.lanes[processor];
        lane.is_stopped = false;
        let Some(client) = lane.client.take() else { return };
        let ran_ns = std::mem::take(&mut lane.ran_ns);
        self.row(processor, event::SERVICE_TIME, (domain(client), next), ran_ns.get(), now_ns);
    }

    /// A processor goes on with a client.
    fn follow(&mut self, processor: usize, client: ClientId) {
        let Lane { client: last, stopped_ns, .. } = self.lanes[processor];
        if last == Some(client) {
            // The same client goes on: its times are added up.
            self.lanes[processor].is_stopped = false;
        } else if last.is_some() {
            self.switch(processor, domain(client), self.now_ns);
        } else if self.now_ns > stopped_ns {
            let idle_ns = self.now_ns - stopped_ns;
            self.row(processor, event::SERVICE_TIME, (IDLE, domain(client)), idle_ns.get(), self.now_ns);
        }
    }
}

fn put(out: &mut impl Write, processor: usize, piece: &[u64]) -> io::Result<()> {
    out.write_all(&(processor as u32).to_le_bytes())?;
    out.write_all(&((piece.len() / ROW_WORDS) as u32).to_le_bytes())?;
    let bytes: Vec<u8> = piece.iter().flat_map(|word| word.to_le_bytes()).collect();
    out.write_all(&bytes)
}

/// Client n is domain n + 1. The constructor has checked that all of them fit.
fn domain(client: ClientId) -> DomainId {
    u16::try_from(client.get() + 1).map_or(NO_DOMAIN, DomainId::new)
}

impl<W: Write> Recorder for Writer<W> {
    fn woke(&mut self, client: ClientId, now_ns: Nanoseconds) {
        self.pass_to(now_ns);
        self.row(self.active, event::WAKE, (domain(client), NO_DOMAIN), 1, now_ns);
    }

    fn dispatched(&mut self, processor: ProcessorId, client: ClientId, grant: Grant, now_ns: Nanoseconds) {
        self.pass_to(now_ns);
        self.active = processor.index();
        self.follow(self.active, client);
        let boost = match grant {
            // A turn by share is in the row of its service time.
            Grant::Share => return,
            Grant::WakeBoost => 1,
            Grant::PartialBoost => 2,
        };
        self.row(self.active, event::BOOST, (domain(client), NO_DOMAIN), boost, now_ns);
    }

    fn stopped(
        &mut self,
        processor: ProcessorId,
        client: ClientId,
        ran_ns: Nanoseconds,
        _stop: Stop,
        now_ns: Nanoseconds,
    ) {
        self.pass_to(now_ns);
        self.active = processor.index();
        let lane = &mut self.lanes[self.active];
        // Consecutive turns of one client make one row.
        let ran_ns = lane.ran_ns + ran_ns;
        *lane = Lane { client: Some(client), ran_ns, stopped_ns: now_ns, is_stopped: true };
        self.stopped.push(self.active);
    }

    fn observed(&mut self, observation: Observation, now_ns: Nanoseconds) {
        self.pass_to(now_ns);
        match observation {
            Observation::TaskSwitch { client, task } => {
                let who = (domain(client), NO_DOMAIN);
                self.row(self.active, event::TASK_SWITCH, who, u64::from(task.get()), now_ns);
            }
            Observation::Notify { from, to } => {
                let (from, to) = (domain(from), domain(to));
                self.row(self.active, event::IPC_SEND, (from, to), 1, now_ns);
                self.row(self.active, event::IPC_RECEIVE, (to, from), 1, now_ns);
            }
            _ => {}
        }
    }

    fn noted(&mut self, note: Note, now_ns: Nanoseconds) {
        self.pass_to(now_ns);
        if let Note::Response { client, took_ns, .. } = note {
            self.row(self.active, event::RESPONSE, (domain(client), NO_DOMAIN), took_ns.get(), now_ns);
        }
    }
}

/// A trace that has been read.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace<'a> {
    /// How many processors there were.
    pub processors: usize,
    /// The domains' names, by number.
    pub domains: Vec<String>,
    control: Control,
    pieces: &'a [u8],
}

/// Why bytes are not a whole trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// They do not begin as a trace does.
    #[error("this is not a trace of a simulated run: it does not begin with METESIM1")]
    Foreign,
    /// They end in the middle of something.
    #[error("the trace ends in the middle, at byte {at}: was it written to the end?")]
    CutOff {
        /// The byte at which they end.
        at: usize,
    },
}

/// Reads a trace.
///
/// # Errors
///
/// [`ReadError`] if the bytes are no trace, or not a whole one.
pub fn read(bytes: &[u8]) -> Result<Trace<'_>, ReadError> {
    let mut rest = bytes.strip_prefix(MAGIC).ok_or(ReadError::Foreign)?;
    let cut_off = |rest: &[u8]| ReadError::CutOff { at: bytes.len() - rest.len() };
    let number = |rest: &mut &[u8]| take_u64(rest).ok_or_else(|| cut_off(rest));
    let control = Control::from_bits(number(&mut rest)?);
    let processors = number(&mut rest)? as usize;
    let count = number(&mut rest)?;
    let mut domains = Vec::new();
    for _ in 0..count {
        let length = number(&mut rest)? as usize;
        let name = rest.get(..length).ok_or_else(|| cut_off(rest))?;
        domains.push(String::from_utf8_lossy(name).into_owned());
        rest = &rest[length..];
    }
    let pieces = rest;
    // Every piece is looked at once, so that iterating over the rows later cannot fail.
    while !rest.is_empty() {
        let at = rest;
        take_piece(&mut rest).ok_or_else(|| cut_off(at))?;
    }
    Ok(Trace { processors, domains, control, pieces })
}

fn take_u64(rest: &mut &[u8]) -> Option<u64> {
    let (number, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(u64::from_le_bytes(*number))
}

/// Takes a piece: its processor, and the bytes of its rows.
fn take_piece<'a>(rest: &mut &'a [u8]) -> Option<(usize, &'a [u8])> {
    let head = take_u64(rest)?;
    let (processor, rows) = (head as u32, (head >> 32) as usize);
    let (piece, behind) = rest.split_at_checked(rows * ROW_WORDS * 8)?;
    *rest = behind;
    Some((processor as usize, piece))
}

impl<'a> Trace<'a> {
    /// The rows, each with its processor, piece by piece.
    pub fn rows(&self) -> impl Iterator<Item = (usize, Row)> + use<'a> {
        let (mut rest, control) = (self.pieces, self.control);
        let pieces = std::iter::from_fn(move || take_piece(&mut rest));
        pieces.flat_map(move |(processor, piece)| {
            let rows = piece.chunks_exact(ROW_WORDS * 8);
            rows.map(move |row| (processor, Row::decode(control, &words(row))))
        })
    }
}

fn words(row: &[u8]) -> [u64; ROW_WORDS] {
    let mut rest = row;
    std::array::from_fn(|_| take_u64(&mut rest).unwrap_or(0))
}
