//! A task: a program, its position in it, and what it waits for.

use std::sync::Arc;

use mete_policy::{ClientId, Nanoseconds};

use super::inbox::Inbox;
use super::io::Io;
use super::locks::Locks;
use super::packet::{Packet, PacketKind, Peer};
use super::program::{Op, Program};
use super::read::{Read, TaskId};
use super::{Scene, Signal};
use crate::model::Context;
use crate::random::{Distribution, Stream};
use crate::recorder::Note;

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    Timer,
    Read,
    For(Awaited),
}

/// What a task waits for that another has to do. It may wait for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// A packet.
    Packet {
        /// The port that it is sent to.
        port: u16,
    },
    /// Room at a port of the task's own client.
    Room {
        /// The port.
        port: u16,
    },
    /// A lock.
    Lock,
}

impl Wait {
    /// `None`: it comes without anything that another task or machine has to do.
    pub(super) fn awaited(self) -> Option<Awaited> {
        if let Wait::For(awaited) = self { Some(awaited) } else { None }
    }
}

/// What a task does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It has something to compute; [`Task::left_ns`] says how much.
    Compute,
    /// It acted on others, and goes on.
    Act,
    Wait(Wait),
    /// It spins until a lock is free; the task that unlocks has it asked again.
    Spin,
    Yield,
    Exit,
}

/// What a task can use while it runs.
pub(super) struct AtHand<'a> {
    /// The client that it runs on. Of a guest's virtual processors it is the one that the task is on now.
    pub(super) on: ClientId,
    pub(super) inbox: &'a mut Inbox,
    pub(super) locks: &'a mut Locks,
    pub(super) io: &'a mut Io,
    pub(super) context: &'a mut Context<Scene>,
}

impl AtHand<'_> {
    /// Sends a message. A message to the task's own client stays inside.
    fn send(&mut self, who: TaskId, message: Packet) {
        match message.to {
            Peer::Client { port, .. } if who.is_at(message.to) => {
                self.context.notify(self.on, Signal::Local { port, packet: message });
            }
            _ => self.io.send(self.on, message, self.context),
        }
    }
}

/// After this number of steps that concern only the task, the host is asked; it makes sure that time goes on.
const STEPS_OF_ITS_OWN: u32 = 100;

pub(super) struct Task {
    program: Arc<Program>,
    at: usize,
    counters: Vec<u64>,
    rounds: u64,
    stream: Stream,
    /// What is left of the present computation.
    pub(super) left_ns: Nanoseconds,
    /// The last packet that it took: it says where a reply goes.
    peer: Option<Packet>,
    /// The spin lock that it holds or wants.
    spin: Option<usize>,
    /// It spins until a lock is free.
    pub(super) is_spinning: bool,
}

impl Task {
    pub(super) fn new(program: Arc<Program>, stream: Stream) -> Task {
        let counters = vec![0; program.counters()];
        Task {
            program,
            at: 0,
            counters,
            rounds: 0,
            stream,
            left_ns: Nanoseconds::ZERO,
            peer: None,
            spin: None,
            is_spinning: false,
        }
    }

    pub(super) fn advance(&mut self, ran_ns: Nanoseconds) {
        self.left_ns = self.left_ns.saturating_sub(ran_ns);
    }

    /// Whether it holds a spin lock or waits for one: then no guest kernel takes the processor from it.
    pub(super) fn is_atomic(&self) -> bool {
        self.spin.is_some()
    }

    /// Goes on from the present position, up to a step that takes time or concerns others.
    pub(super) fn next(&mut self, who: TaskId, at_hand: &mut AtHand<'_>) -> Turn {
        // A second handle, because instructions change the task while the program is read.
        let program = Arc::clone(&self.program);
        for _ in 0..STEPS_OF_ITS_OWN {
            if !self.left_ns.is_zero() {
                return Turn::Compute;
            }
            let turn = match program.op(self.at) {
                Some(op) => {
                    self.at += 1;
                    self.carry_out(op, who, at_hand)
                }
                None => self.round(&program),
            };
            if let Some(turn) = turn {
                return turn;
            }
        }
        // The task is asked again at the same instant, where the host counts the steps.
        Turn::Act
    }

    fn round(&mut self, program: &Program) -> Option<Turn> {
        self.rounds += 1;
        self.at = 0;
        program.times().is_some_and(|times| self.rounds >= times).then_some(Turn::Exit)
    }

    /// Carries out one instruction. `None`: it concerned only the task.
    fn carry_out(&mut self, op: &Op, who: TaskId, at_hand: &mut AtHand<'_>) -> Option<Turn> {
        match *op {
            Op::Compute(length) => self.left_ns = length.sample_ns(&mut self.stream),
            Op::Repeat { start, times, counter } => self.repeat(start, times, counter),
            Op::Done => at_hand.context.note(Note::Done { client: who.client, task: who.task }),
            Op::Sleep(length) => return Some(self.sleep(who, length, at_hand)),
            Op::Read { disk, bytes, goes_on } => return Some(self.read(who, disk, bytes, goes_on, at_hand)),
            Op::Receive { port } => return self.receive(port, at_hand),
            Op::ReceiveAll { port, each } => return self.receive_all(who, port, each, at_hand),
            Op::Reply { bytes } => return self.reply(who, bytes, at_hand),
            Op::Send { to: client, port, bytes } => {
                return self.send(who, Peer::Client { client, port }, port, bytes, at_hand);
            }
            Op::Request { remote, port, bytes } => {
                return self.send(who, Peer::Remote(remote), port, bytes, at_hand);
            }
            Op::Lock(lock) => {
                return (!at_hand.locks.take(lock, who)).then_some(Turn::Wait(Wait::For(Awaited::Lock)));
            }
            Op::SpinLock(lock) => return self.spin(lock, who, at_hand),
            Op::Unlock(lock) => return self.unlock(lock, who, at_hand),
            Op::Yield => return Some(Turn::Yield),
        }
        None
    }

    fn sleep(&mut self, who: TaskId, length: Distribution, at_hand: &mut AtHand<'_>) -> Turn {
        let length_ns = length.sample_ns(&mut self.stream);
        at_hand.context.notify_after(length_ns, at_hand.on, Signal::Timer { task: who.task });
        Turn::Wait(Wait::Timer)
    }

    fn reply(&mut self, who: TaskId, bytes: Distribution, at_hand: &mut AtHand<'_>) -> Option<Turn> {
        let bytes = bytes.sample(&mut self.stream);
        at_hand.send(who, self.peer?.answer(bytes));
        Some(Turn::Act)
    }

    fn spin(&mut self, lock: usize, who: TaskId, at_hand: &mut AtHand<'_>) -> Option<Turn> {
        self.spin = Some(lock);
        self.is_spinning = !at_hand.locks.try_take(lock, who, at_hand.on);
        if !self.is_spinning {
            return None;
        }
        // The instruction is carried out again whenever the task is asked.
        self.at -= 1;
        Some(Turn::Spin)
    }

    fn unlock(&mut self, lock: usize, who: TaskId, at_hand: &mut AtHand<'_>) -> Option<Turn> {
        if self.spin == Some(lock) {
            // The lock is left free: the first of the spinning tasks that the host runs takes it.
            self.spin = None;
            for &client in at_hand.locks.release(lock, who) {
                at_hand.context.notify(client, Signal::Released);
            }
            return Some(Turn::Act);
        }
        let next = at_hand.locks.hand_on(lock, who)?;
        // Inside a guest, the virtual processor of the task that unlocks makes the next task ready.
        let to = if next.client == who.client { at_hand.on } else { next.client };
        at_hand.context.notify(to, Signal::Granted { task: next.task });
        Some(Turn::Act)
    }

    fn read(
        &mut self,
        who: TaskId,
        disk: usize,
        bytes: Distribution,
        goes_on: bool,
        at_hand: &mut AtHand<'_>,
    ) -> Turn {
        let bytes = bytes.sample(&mut self.stream);
        let request = at_hand.inbox.request(who.task);
        let on = at_hand.on;
        // A read that is not admitted is sent by the guest's kernel when another one is complete.
        if let Some(read) = at_hand.inbox.admit(Read { who, on, request, disk, bytes, goes_on }) {
            at_hand.io.read(read, at_hand.context);
        }
        Turn::Wait(Wait::Read)
    }

    /// Sends a message from a port.
    fn send(
        &mut self,
        who: TaskId,
        to: Peer,
        port: u16,
        bytes: Distribution,
        at_hand: &mut AtHand<'_>,
    ) -> Option<Turn> {
        if who.is_at(to) && at_hand.inbox.is_full(port) {
            // The instruction is carried out again once there is room.
            self.at -= 1;
            return Some(Turn::Wait(Wait::For(Awaited::Room { port })));
        }
        let bytes = bytes.sample(&mut self.stream);
        // The answer comes to the guest as a whole, wherever the task runs by then.
        let from = Peer::Client { client: who.client, port };
        let (sent_ns, kind) = (at_hand.context.now_ns(), PacketKind::Message { is_last: true });
        at_hand.send(who, Packet { from, to, bytes, sent_ns, kind });
        Some(Turn::Act)
    }

    fn receive(&mut self, port: u16, at_hand: &mut AtHand<'_>) -> Option<Turn> {
        let Some(packet) = at_hand.inbox.take(port) else {
            // The instruction is carried out again once a packet has come.
            self.at -= 1;
            return Some(Turn::Wait(Wait::For(Awaited::Packet { port })));
        };
        self.peer = Some(packet);
        if at_hand.inbox.has_room_again(port) {
            at_hand.context.notify(at_hand.on, Signal::Room { port });
        }
        let acknowledgement = at_hand.inbox.acknowledge(port, packet, at_hand.context.now_ns())?;
        at_hand.io.send(at_hand.on, acknowledgement, at_hand.context);
        Some(Turn::Act)
    }

    fn receive_all(
        &mut self,
        who: TaskId,
        port: u16,
        each: Distribution,
        at_hand: &mut AtHand<'_>,
    ) -> Option<Turn> {
        let turn = self.receive(port, at_hand);
        if matches!(turn, Some(Turn::Wait(_))) {
            return turn;
        }
        self.left_ns = each.sample_ns(&mut self.stream);
        match self.peer {
            Some(packet) if packet.is_last() => {
                let took_ns = at_hand.context.now_ns().saturating_sub(packet.sent_ns);
                at_hand.context.note(Note::Response { client: who.client, port, took_ns });
            }
            // More packets of the message follow: the instruction is carried out again after this one's
            // computing.
            _ => self.at -= 1,
        }
        turn
    }

    fn repeat(&mut self, start: usize, times: u64, counter: usize) {
        self.counters[counter] += 1;
        if self.counters[counter] < times {
            self.at = start;
        } else {
            // Ready for the next time that the loop is entered.
            self.counters[counter] = 0;
        }
    }
}
