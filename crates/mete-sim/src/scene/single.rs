//! A client that is one task, without a kernel of its own.

use mete_policy::{ClientId, Nanoseconds};

use super::inbox::Inbox;
use super::read::TaskId;
use super::task::{AtHand, Awaited, Task, Turn, Wait};
use super::{Scene, Signal, World};
use crate::model::{Context, Reaction, Step};

pub(super) struct Single {
    task: Task,
    pub(super) inbox: Inbox,
    wait: Option<Wait>,
    waits_from_ns: Nanoseconds,
    pub(super) spun_ns: Nanoseconds,
}

impl Single {
    pub(super) fn new(task: Task, ports: impl IntoIterator<Item = u16>) -> Single {
        Single {
            task,
            inbox: Inbox::new(ports),
            wait: None,
            waits_from_ns: Nanoseconds::ZERO,
            spun_ns: Nanoseconds::ZERO,
        }
    }

    pub(super) fn next(&mut self, client: ClientId, world: &mut World, context: &mut Context<Scene>) -> Step {
        // A signal that wakes the client need not be the one that the task waits for.
        if self.wait.is_some() {
            return Step::Block;
        }
        let (inbox, locks, io) = (&mut self.inbox, &mut world.locks, &mut world.io);
        let mut at_hand = AtHand { on: client, inbox, locks, io, context };
        match self.task.next(TaskId { client, task: 0 }, &mut at_hand) {
            Turn::Compute => Step::Compute(self.task.left_ns),
            // Without end: only a signal or the policy ends the spinning.
            Turn::Spin => Step::Compute(Nanoseconds::MAX),
            Turn::Act => Step::Continue,
            Turn::Wait(wait) => {
                self.wait = Some(wait);
                self.waits_from_ns = at_hand.context.now_ns();
                Step::Block
            }
            Turn::Yield => Step::Yield,
            Turn::Exit => Step::Exit,
        }
    }

    pub(super) fn advance(&mut self, ran_ns: Nanoseconds) {
        if self.task.is_spinning {
            self.spun_ns += ran_ns;
        }
        self.task.advance(ran_ns);
    }

    pub(super) fn deliver(
        &mut self,
        client: ClientId,
        signal: Signal,
        world: &mut World,
        context: &mut Context<Scene>,
    ) -> Reaction {
        let is_awaited = match signal {
            Signal::Timer { .. } => self.wait == Some(Wait::Timer),
            Signal::Kick | Signal::Sent | Signal::Room { .. } => false,
            Signal::Unacknowledged { port } => {
                world.acknowledge(client, &mut self.inbox, port, context);
                false
            }
            Signal::Released => return Reaction::Wake,
            Signal::Granted { .. } => self.wait == Some(Wait::For(Awaited::Lock)),
            Signal::Read { request } => self.inbox.complete(request).is_some(),
            Signal::Packet { port, packet } | Signal::Local { port, packet } => {
                world.put(client, &mut self.inbox, (port, packet), context)
                    && self.wait == Some(Wait::For(Awaited::Packet { port }))
            }
        };
        if is_awaited {
            self.wait = None;
            Reaction::Wake
        } else {
            Reaction::Pending
        }
    }

    /// What it waits for that others have to do, and since when.
    pub(super) fn awaited(&self) -> Option<(Awaited, Nanoseconds)> {
        Some((self.wait?.awaited()?, self.waits_from_ns))
    }
}
