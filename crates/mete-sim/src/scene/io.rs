//! The devices through which clients reach the world: disks, the network, and the driver if there is one.

use mete_policy::{ClientId, Nanoseconds, Observation, RequestId};

use super::driver::{Driver, DriverAction, DriverCosts, DriverJob};
use super::packet::{Packet, PacketKind, Peer};
use super::read::{Read, TaskId};
use super::remote::{Remote, RemoteMachine};
use super::tcp::Troubles;
use super::{Event, Scene, Signal};
use crate::model::{Context, Step};
use crate::random::{Distribution, Stream};

/// How long `bytes` take at a rate, rounded up. The rate 0 means at once.
pub(super) fn transfer_ns(bytes: u64, bytes_per_s: u64) -> Nanoseconds {
    if bytes_per_s == 0 {
        return Nanoseconds::ZERO;
    }
    let ns = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(bytes_per_s));
    Nanoseconds::new(u64::try_from(ns).unwrap_or(u64::MAX))
}

/// A device that serves one job after another.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    free_ns: Nanoseconds,
}

impl Line {
    /// When a job of this length is done if it arrives now.
    pub(super) fn serve(&mut self, now_ns: Nanoseconds, length_ns: Nanoseconds) -> Nanoseconds {
        self.free_ns = self.free_ns.max(now_ns).saturating_add(length_ns);
        self.free_ns
    }
}

/// A disk. It serves one read after another; a read takes a positioning time and a transfer time.
#[derive(Clone, Debug)]
pub struct Disk {
    /// How long positioning takes, in nanoseconds. A read that goes on where the last one ended needs no
    /// positioning.
    pub seek: Distribution,
    /// How fast data is transferred after positioning; 0: at once.
    pub bytes_per_s: u64,
}

/// The network. Packets are sent one after another in each direction; each then travels for a delay. One
/// direction leads out of the host, and from client to client where there is no driver. The other direction
/// leads in from remote machines.
#[derive(Clone, Copy, Debug, Default)]
pub struct Network {
    /// From the end of sending to the arrival.
    pub delay_ns: Nanoseconds,
    /// How fast packets are sent; 0: at once.
    pub bytes_per_s: u64,
    /// What each packet takes on the wire in addition to its bytes. With TCP over Ethernet that is 78: 20
    /// each for IP and TCP, 18 for Ethernet, 20 for Ethernet's preamble and gap.
    pub header_bytes: u64,
    /// A longer message is sent as several packets. 0: no message is too long, and streams are sent in pieces
    /// of 1460 bytes, as over Ethernet.
    pub segment_bytes: u64,
}

/// A message is sent as at most this number of packets; its packets are as long as that requires.
const MOST_PACKETS: u64 = 1 << 16;
/// The length of a stream's segments where no message is too long: as over Ethernet.
const SEGMENT_BYTES: u64 = 1460;

impl Network {
    /// How long the packets of a message are at most.
    fn packet_bytes(&self, message_bytes: u64) -> u64 {
        let usual = if self.segment_bytes == 0 { u64::MAX } else { self.segment_bytes };
        // A very long message gets longer packets, so that it does not become millions of events.
        usual.max(message_bytes.div_ceil(MOST_PACKETS))
    }

    /// How long the segments of a stream are at most.
    fn segment_bytes(&self) -> u64 {
        if self.segment_bytes == 0 { SEGMENT_BYTES } else { self.segment_bytes }
    }
}

/// A disk at work.
struct Drive {
    disk: Disk,
    line: Line,
    stream: Stream,
    /// The task whose read left the head where it is.
    last: Option<TaskId>,
}

impl Drive {
    /// Each disk draws from a stream of its own.
    fn new(number: usize, disk: Disk, seed: u64) -> Drive {
        Drive {
            disk,
            line: Line::default(),
            stream: Stream::new(seed, &format!("disk {number}")),
            last: None,
        }
    }

    /// When a read that arrives now is done.
    fn serve(&mut self, read: &Read, now_ns: Nanoseconds) -> Nanoseconds {
        // The head stays where the last read ended, so only the same task's read can go on there.
        let is_there = read.goes_on && self.last.replace(read.who) == Some(read.who);
        self.last = Some(read.who);
        let seek_ns = if is_there { Nanoseconds::ZERO } else { self.disk.seek.sample_ns(&mut self.stream) };
        self.line.serve(now_ns, seek_ns.saturating_add(transfer_ns(read.bytes, self.disk.bytes_per_s)))
    }
}

/// All devices, the remote machines and the driver.
#[derive(Default)]
pub struct Io {
    disks: Vec<Drive>,
    network: Network,
    link_out: Line,
    link_in: Line,
    remotes: Vec<RemoteMachine>,
    driver: Option<Driver>,
    seed: u64,
}

impl Io {
    /// These devices, without a driver or remote machines; `seed` is the run's.
    pub fn new(disks: Vec<Disk>, network: Network, seed: u64) -> Io {
        let disks = (0..).zip(disks).map(|(number, disk)| Drive::new(number, disk, seed)).collect();
        Io { disks, network, seed, ..Io::default() }
    }

    /// Adds a remote machine and returns its number, counted from 0.
    pub fn add_remote(&mut self, remote: Remote) -> u16 {
        let number = self.remotes.len() as u16;
        let stream = Stream::new(self.seed, &format!("remote {number}"));
        self.remotes.push(RemoteMachine::new(number, remote, stream));
        number
    }

    /// Makes a client the driver: from now on it stands between all other clients and the devices.
    pub(super) fn set_driver(&mut self, client: ClientId, costs: DriverCosts) {
        self.driver = Some(Driver::new(client, costs));
    }

    /// Reports the driver to the host and lets the remote machines begin.
    pub(super) fn start(&mut self, context: &mut Context<Scene>) {
        if let Some(driver) = &self.driver {
            context.observe(Observation::Driver { client: driver.client });
        }
        // The policy knows the driver before any machine sends.
        for machine in &mut self.remotes {
            machine.start(context);
        }
    }

    /// A client reads from a disk. It gets [`Signal::Read`] when the data are there.
    pub(super) fn read(&mut self, read: Read, context: &mut Context<Scene>) {
        let client = read.on;
        context.observe(Observation::BlockRead { client, request: read.request });
        // The driver's own reads do not go through its rings.
        match self.driver.as_mut().filter(|driver| driver.client != client) {
            Some(driver) => driver.ask(client, DriverJob::Request(read), context),
            None => self.position(read, context),
        }
    }

    /// A read reaches the disk.
    fn position(&mut self, read: Read, context: &mut Context<Scene>) {
        let Some(drive) = self.disks.get_mut(read.disk) else { return };
        let done_ns = drive.serve(&read, context.now_ns());
        let done = Event::ReadDone { client: read.on, request: read.request };
        // A line's answer is never before the present, so the difference cannot be negative.
        context.after(done_ns - context.now_ns(), done);
    }

    /// A disk has completed a read.
    pub(super) fn read_done(&mut self, client: ClientId, request: RequestId, context: &mut Context<Scene>) {
        match self.driver.as_mut().filter(|driver| driver.client != client) {
            Some(driver) => driver.interrupt(DriverJob::Complete(client, request), context),
            None => context.notify(client, Signal::Read { request }),
        }
    }

    /// A client sends a message, through the driver if there is one and the client is not the driver. For a
    /// guest, `on` is the virtual processor that sends.
    pub(super) fn send(&mut self, on: ClientId, message: Packet, context: &mut Context<Scene>) {
        let through_driver = self.driver.as_ref().is_some_and(|driver| driver.client != on);
        // Each packet is a job of its own, so the driver's time is charged packet by packet.
        self.cut(message, |io, packet| match &mut io.driver {
            Some(driver) if through_driver => driver.ask(on, DriverJob::Transmit(on, packet), context),
            _ => io.transmit(packet, context),
        });
    }

    /// Cuts a message into packets and passes each to `each`.
    fn cut(&mut self, message: Packet, mut each: impl FnMut(&mut Io, Packet)) {
        let most_bytes = self.network.packet_bytes(message.bytes);
        let mut left_bytes = message.bytes;
        // A loop that tests at its end, because an empty message, such as an acknowledgement, is one packet,
        // too.
        loop {
            let bytes = left_bytes.min(most_bytes);
            left_bytes -= bytes;
            let kind = match message.kind {
                PacketKind::Message { .. } => PacketKind::Message { is_last: left_bytes == 0 },
                other => other,
            };
            each(self, Packet { bytes, kind, ..message });
            if left_bytes == 0 {
                return;
            }
        }
    }

    /// A packet goes onto the wire.
    pub(super) fn transmit(&mut self, packet: Packet, context: &mut Context<Scene>) {
        let length_ns =
            transfer_ns(packet.bytes.saturating_add(self.network.header_bytes), self.network.bytes_per_s);
        // By the sender: what clients send each other without a driver shares the way out.
        let line = match packet.from {
            Peer::Client { .. } => &mut self.link_out,
            Peer::Remote(_) => &mut self.link_in,
        };
        let arrives_ns = line.serve(context.now_ns(), length_ns).saturating_add(self.network.delay_ns);
        context.after(arrives_ns - context.now_ns(), Event::Arrive(packet));
    }

    /// A packet has arrived at its receiver's machine.
    pub(super) fn arrive(&mut self, packet: Packet, context: &mut Context<Scene>) {
        match packet.to {
            Peer::Client { client, port } => match &mut self.driver {
                Some(driver) => driver.receive(packet, context),
                None => context.notify(client, Signal::Packet { port, packet }),
            },
            Peer::Remote(number) => {
                if let Some(machine) = self.remotes.get_mut(usize::from(number)) {
                    machine.take(packet, context);
                    // An acknowledgement may have made room for segments, or have shown that some are lost.
                    self.send_segments(number, context);
                }
            }
        }
    }

    /// A remote machine's think time is over.
    pub(super) fn thought(&mut self, number: u16, context: &mut Context<Scene>) {
        let Some(machine) = self.remotes.get_mut(usize::from(number)) else { return };
        if let Some(message) = machine.thought(context.now_ns()) {
            self.cut(message, |io, packet| io.transmit(packet, context));
        }
        self.send_segments(number, context);
    }

    /// A remote machine's timer has run out.
    pub(super) fn timer(&mut self, number: u16, context: &mut Context<Scene>) {
        if let Some(machine) = self.remotes.get_mut(usize::from(number)) {
            machine.timer(context.now_ns());
            self.send_segments(number, context);
        }
    }

    fn send_segments(&mut self, number: u16, context: &mut Context<Scene>) {
        let (most_bytes, now_ns) = (self.network.segment_bytes(), context.now_ns());
        // The machine is looked up each time, because sending needs all devices.
        while let Some(packet) =
            self.remotes.get_mut(usize::from(number)).and_then(|machine| machine.segment(most_bytes, now_ns))
        {
            self.transmit(packet, context);
        }
        if let Some(machine) = self.remotes.get_mut(usize::from(number)) {
            machine.set_timer(context);
        }
    }

    /// What the senders of streams had to do in addition to sending, and how many packets the driver's
    /// network card had no room for.
    pub fn troubles(&self) -> (Troubles, u64) {
        let mut all = Troubles::default();
        self.remotes.iter().flat_map(RemoteMachine::troubles).for_each(|one| all.add(one));
        (all, self.driver.as_ref().map_or(0, |driver| driver.lost))
    }

    /// The driver has the processor: what it does next.
    pub(super) fn drive(&mut self, context: &mut Context<Scene>) -> Step {
        let Some(driver) = &mut self.driver else { return Step::Block };
        match driver.next(context) {
            DriverAction::Step(step) => step,
            DriverAction::Finish(job) => {
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

    /// Carries out what a finished job of the driver leads to.
    fn finish(&mut self, job: DriverJob, context: &mut Context<Scene>) {
        match job {
            DriverJob::Request(read) => self.position(read, context),
            DriverJob::Transmit(client, packet) => {
                match packet.to {
                    Peer::Remote(_) => self.transmit(packet, context),
                    // Between two guests the driver is the network: the packet needs no wire, only the way up
                    // through the driver.
                    Peer::Client { .. } => self.arrive(packet, context),
                }
                if let Some(driver) = &mut self.driver {
                    // The packet has left the guest's memory, which the guest may use again once it hears of
                    // that.
                    driver.sent(client, packet);
                }
            }
            DriverJob::Receive(packet) => {
                if let (Peer::Client { client, port }, Some(driver)) = (packet.to, &mut self.driver) {
                    driver.answer(client, Signal::Packet { port, packet });
                }
            }
            DriverJob::Complete(client, request) => {
                if let Some(driver) = &mut self.driver {
                    driver.answer(client, Signal::Read { request });
                }
            }
        }
    }
}
