//! What clients reach the world by: disks, the network, and the driver between, if there is one.

use mete_policy::{ClientId, Nanoseconds, Observation, RequestId};

use super::driver::{Action, Driver, DriverCosts, Job};
use super::remote::{Machine, Remote};
use super::task::Who;
use super::tcp::{Acknowledgement, Troubles};
use super::{Event, Scene, Signal};
use crate::model::{Context, Step};
use crate::random::{Distribution, Stream};

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A port of a client.
    Client {
        /// The client.
        client: ClientId,
        /// Its port.
        port: u16,
    },
    /// A remote machine, by its number.
    Remote(u16),
}

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A message, or a piece of one.
    Message {
        /// It is the message's last.
        is_last: bool,
    },
    /// A message has come: a packet of TCP's own.
    Received,
    /// A segment of a stream, which its receiver acknowledges.
    Segment {
        /// Its number in the stream.
        number: u64,
        /// When it was sent.
        stamp_ns: Nanoseconds,
        /// It is the last of what was asked for.
        is_last: bool,
    },
    /// What has come of a stream.
    Acknowledgement(Acknowledgement),
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Who sent it.
    pub from: Peer,
    /// Who is to get it.
    pub to: Peer,
    /// How long it is, without headers.
    pub bytes: u64,
    /// When it was sent; answers and streams carry the time of what they answer.
    pub sent_ns: Nanoseconds,
    /// What it is.
    pub kind: Kind,
}

impl Packet {
    /// A message back to where this one came from, sent when this one was: so both ways are counted.
    pub(super) fn answer(self, bytes: u64) -> Packet {
        Packet { from: self.to, to: self.from, bytes, kind: Kind::Message { is_last: true }, ..self }
    }

    /// A packet of TCP's own back to where this one came from.
    pub(super) fn control(self, kind: Kind) -> Packet {
        Packet { from: self.to, to: self.from, bytes: 0, kind, ..self }
    }

    /// Nothing more follows of the same message or stream.
    pub(super) fn is_last(&self) -> bool {
        matches!(self.kind, Kind::Message { is_last: true } | Kind::Segment { is_last: true, .. })
    }
}

/// How long `bytes` take at a rate, rounded up; nothing at the rate 0, which means at once.
pub(super) fn transfer_ns(bytes: u64, bytes_per_s: u64) -> Nanoseconds {
    if bytes_per_s == 0 {
        return 0;
    }
    let ns = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(bytes_per_s));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

/// A device that serves one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    free_ns: Nanoseconds,
}

impl Line {
    /// When a job of this length that comes now is done.
    pub(super) fn serve(&mut self, now_ns: Nanoseconds, length_ns: Nanoseconds) -> Nanoseconds {
        self.free_ns = self.free_ns.max(now_ns).saturating_add(length_ns);
        self.free_ns
    }
}

/// A disk: reads take a positioning time and a transfer, one after the other.
#[derive(Clone, Debug)]
pub struct Disk {
    /// How long it takes to get to the data, in nanoseconds; a read that goes on where the last one
    /// ended needs none.
    pub seek: Distribution,
    /// How fast data comes then; 0: at once.
    pub bytes_per_s: u64,
}

/// A read from a disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub(super) who: Who,
    /// Which client asks for it and gets the answer: of a guest's virtual processors, the one that sends it.
    pub(super) on: ClientId,
    pub(super) request: RequestId,
    pub(super) disk: usize,
    pub(super) bytes: u64,
    /// It goes on where this task's last read from the disk ended.
    pub(super) goes_on: bool,
}

/// The network: packets take a time to be sent, one after the other in each direction, and a delay.
/// One direction leads out of the host, and from client to client where no driver is between; the other
/// leads in from remote machines.
#[derive(Clone, Copy, Debug, Default)]
pub struct Network {
    /// From the end of sending to the arrival.
    pub delay_ns: Nanoseconds,
    /// How fast packets are sent; 0: at once.
    pub bytes_per_s: u64,
    /// What each packet takes on the wire besides its bytes. With TCP over Ethernet that is 78: 20 each
    /// for IP and TCP, 18 of Ethernet, 20 for its preamble and gap.
    pub header_bytes: u64,
    /// What is longer goes as several packets; 0: nothing is too long, and streams come in pieces of 1460,
    /// as over Ethernet.
    pub segment_bytes: u64,
}

/// A message goes as so many packets at most, each as long as that takes.
const MOST_PACKETS: u64 = 1 << 16;
/// What a segment of a stream has where nothing is too long: as over Ethernet.
const SEGMENT_BYTES: u64 = 1460;

impl Network {
    /// How long the packets of a message are.
    fn packet_bytes(&self, message_bytes: u64) -> u64 {
        let usual = if self.segment_bytes == 0 { u64::MAX } else { self.segment_bytes };
        usual.max(message_bytes.div_ceil(MOST_PACKETS))
    }

    /// How long the segments of a stream are.
    fn segment_bytes(&self) -> u64 {
        if self.segment_bytes == 0 { SEGMENT_BYTES } else { self.segment_bytes }
    }
}

/// A disk at work.
struct Drive {
    disk: Disk,
    line: Line,
    stream: Stream,
    /// Whose read left the head where it is.
    last: Option<Who>,
}

impl Drive {
    /// When a read that comes now is done.
    fn serve(&mut self, read: &Read, now_ns: Nanoseconds) -> Nanoseconds {
        let is_there = read.goes_on && self.last.replace(read.who) == Some(read.who);
        self.last = Some(read.who);
        let seek_ns = if is_there { 0 } else { self.disk.seek.sample(&mut self.stream) };
        self.line.serve(now_ns, seek_ns.saturating_add(transfer_ns(read.bytes, self.disk.bytes_per_s)))
    }
}

/// All devices, remote machines and the driver.
pub struct Io {
    disks: Vec<Drive>,
    network: Network,
    link_out: Line,
    link_in: Line,
    remotes: Vec<Machine>,
    driver: Option<Driver>,
    seed: u64,
}

impl Io {
    /// These devices, without a driver and remote machines; `seed` is the run's.
    #[must_use]
    pub fn new(disks: Vec<Disk>, network: Network, seed: u64) -> Io {
        let drive = |(number, disk)| Drive {
            disk,
            line: Line::default(),
            stream: Stream::new(seed, &format!("disk {number}")),
            last: None,
        };
        Io {
            disks: disks.into_iter().enumerate().map(drive).collect(),
            network,
            link_out: Line::default(),
            link_in: Line::default(),
            remotes: Vec::new(),
            driver: None,
            seed,
        }
    }

    /// Adds a remote machine and answers its number, counted from 0.
    pub fn add_remote(&mut self, remote: Remote) -> u16 {
        let number = self.remotes.len() as u16;
        let stream = Stream::new(self.seed, &format!("remote {number}"));
        self.remotes.push(Machine::new(number, remote, stream));
        number
    }

    /// From now on this client stands between all others and the devices.
    pub(super) fn set_driver(&mut self, client: ClientId, costs: DriverCosts) {
        self.driver = Some(Driver::new(client, costs));
    }

    /// Lets the host know the driver, and remote machines begin.
    pub(super) fn start(&mut self, context: &mut Context<'_, Scene>) {
        if let Some(driver) = &self.driver {
            context.observe(Observation::Driver { client: driver.client() });
        }
        for machine in &mut self.remotes {
            machine.start(context);
        }
    }

    /// A client reads from a disk; it gets [`Signal::Read`] when the data are there.
    pub(super) fn read(&mut self, read: Read, context: &mut Context<'_, Scene>) {
        let client = read.on;
        context.observe(Observation::BlockRead { client, request: read.request });
        match self.driver.as_mut().filter(|driver| driver.client() != client) {
            Some(driver) => driver.ask(client, Job::Request(read), context),
            None => self.position(read, context),
        }
    }

    /// The disk gets a read.
    fn position(&mut self, read: Read, context: &mut Context<'_, Scene>) {
        let Some(drive) = self.disks.get_mut(read.disk) else { return };
        let done_ns = drive.serve(&read, context.now_ns());
        let done = Event::ReadDone { client: read.on, request: read.request };
        context.after(done_ns - context.now_ns(), done);
    }

    /// The disk has read.
    pub(super) fn read_done(
        &mut self,
        client: ClientId,
        request: RequestId,
        context: &mut Context<'_, Scene>,
    ) {
        match self.driver.as_mut().filter(|driver| driver.client() != client) {
            Some(driver) => driver.interrupt(Job::Complete(client, request), context),
            None => context.notify(client, Signal::Read { request }),
        }
    }

    /// A client sends a message, through the driver if it has one. Of a guest's virtual processors, `on` is
    /// the one that does.
    pub(super) fn send(&mut self, on: ClientId, message: Packet, context: &mut Context<'_, Scene>) {
        let through_driver = self.driver.as_ref().is_some_and(|driver| driver.client() != on);
        self.cut(message, |io, packet| match &mut io.driver {
            Some(driver) if through_driver => driver.ask(on, Job::Transmit(on, packet), context),
            _ => io.transmit(packet, context),
        });
    }

    /// A message in as many packets as it takes.
    fn cut(&mut self, message: Packet, mut each: impl FnMut(&mut Io, Packet)) {
        let most_bytes = self.network.packet_bytes(message.bytes);
        let mut left_bytes = message.bytes;
        loop {
            let bytes = left_bytes.min(most_bytes);
            left_bytes -= bytes;
            let kind = match message.kind {
                Kind::Message { .. } => Kind::Message { is_last: left_bytes == 0 },
                other => other,
            };
            each(self, Packet { bytes, kind, ..message });
            if left_bytes == 0 {
                return;
            }
        }
    }

    /// A packet goes on the wire.
    pub(super) fn transmit(&mut self, packet: Packet, context: &mut Context<'_, Scene>) {
        let length_ns =
            transfer_ns(packet.bytes.saturating_add(self.network.header_bytes), self.network.bytes_per_s);
        let line = match packet.from {
            Peer::Client { .. } => &mut self.link_out,
            Peer::Remote(_) => &mut self.link_in,
        };
        let arrives_ns = line.serve(context.now_ns(), length_ns).saturating_add(self.network.delay_ns);
        context.after(arrives_ns - context.now_ns(), Event::Arrive(packet));
    }

    /// A packet has arrived.
    pub(super) fn arrive(&mut self, packet: Packet, context: &mut Context<'_, Scene>) {
        match packet.to {
            Peer::Client { client, port } => match &mut self.driver {
                Some(driver) => driver.receive(packet, context),
                None => context.notify(client, Signal::Packet { port, packet }),
            },
            Peer::Remote(number) => {
                if let Some(machine) = self.remotes.get_mut(usize::from(number)) {
                    machine.take(packet, context);
                    self.send_segments(number, context);
                }
            }
        }
    }

    /// A remote machine has thought.
    pub(super) fn thought(&mut self, number: u16, context: &mut Context<'_, Scene>) {
        let Some(machine) = self.remotes.get_mut(usize::from(number)) else { return };
        if let Some(message) = machine.thought(context.now_ns()) {
            self.cut(message, |io, packet| io.transmit(packet, context));
        }
        self.send_segments(number, context);
    }

    /// A remote machine's timer has run out.
    pub(super) fn timer(&mut self, number: u16, context: &mut Context<'_, Scene>) {
        if let Some(machine) = self.remotes.get_mut(usize::from(number)) {
            machine.timer(context.now_ns());
            self.send_segments(number, context);
        }
    }

    fn send_segments(&mut self, number: u16, context: &mut Context<'_, Scene>) {
        let (most_bytes, now_ns) = (self.network.segment_bytes(), context.now_ns());
        while let Some(packet) =
            self.remotes.get_mut(usize::from(number)).and_then(|machine| machine.segment(most_bytes, now_ns))
        {
            self.transmit(packet, context);
        }
        if let Some(machine) = self.remotes.get_mut(usize::from(number)) {
            machine.set_timer(context);
        }
    }

    /// What the senders of streams have had to do besides sending, and how many packets the driver's
    /// network card had no room for.
    #[must_use]
    pub fn troubles(&self) -> (Troubles, u64) {
        let mut all = Troubles::default();
        self.remotes.iter().flat_map(Machine::troubles).for_each(|one| all.add(one));
        (all, self.driver.as_ref().map_or(0, Driver::lost))
    }

    /// The driver runs: what it does next.
    pub(super) fn drive(&mut self, context: &mut Context<'_, Scene>) -> Step {
        let Some(driver) = &mut self.driver else { return Step::Block };
        match driver.next(context) {
            Action::Step(step) => step,
            Action::Finish(job) => {
                self.finish(job, context);
                Step::Continue
            }
        }
    }

    /// A guest takes an event of its network device.
    pub(super) fn look(&mut self, client: ClientId) {
        if let Some(driver) = &mut self.driver {
            driver.look(client);
        }
    }

    pub(super) fn driver_advance(&mut self, ran_ns: Nanoseconds) {
        if let Some(driver) = &mut self.driver {
            driver.advance(ran_ns);
        }
    }

    /// What a job of the driver's brings about.
    fn finish(&mut self, job: Job, context: &mut Context<'_, Scene>) {
        match job {
            Job::Request(read) => self.position(read, context),
            Job::Transmit(client, packet) => {
                match packet.to {
                    Peer::Remote(_) => self.transmit(packet, context),
                    Peer::Client { .. } => self.arrive(packet, context),
                }
                if let Some(driver) = &mut self.driver {
                    driver.sent(client, packet);
                }
            }
            Job::Receive(packet) => {
                if let (Peer::Client { client, port }, Some(driver)) = (packet.to, &mut self.driver) {
                    driver.answer(client, Signal::Packet { port, packet });
                }
            }
            Job::Complete(client, request) => {
                if let Some(driver) = &mut self.driver {
                    driver.answer(client, Signal::Read { request });
                }
            }
        }
    }
}
