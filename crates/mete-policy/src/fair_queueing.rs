//! Fair queueing: each client has an account of virtual time, all have one virtual clock, and a queue
//! says who is first. [WFQ](crate::wfq), its [linear twin](crate::wfq_linear) and [WF²Q+](crate::wf2q)
//! differ in the queue alone.

use alloc::vec::Vec;

use crate::progress::Progress;
use crate::roster::{Roster, State};
use crate::virtual_clock::VirtualClock;
use crate::virtual_time::{Account, ORIGIN, quantum_ns, service};
use crate::{ClientId, Decision, DomainIndex, Grant, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop};

/// A queue of ready clients; ties go to the smaller number.
pub trait FairQueue {
    /// The policy's name with this queue.
    const NAME: &'static str;
    /// An empty queue.
    fn new(clients: u32) -> Self;
    /// Puts a client in that is not in the queue.
    fn push(&mut self, client: ClientId, account: &Account);
    /// Takes the first client out. A queue that chooses nobody who is ahead may put the clock forward.
    fn pop(&mut self, accounts: &[Account], clock: &mut VirtualClock) -> Option<ClientId>;
    /// Takes a client out that is in the queue.
    fn remove(&mut self, client: ClientId);
}

/// Fair queueing over some queue.
pub struct FairQueueing<Q> {
    roster: Roster,
    accounts: Vec<Account>,
    clock: VirtualClock,
    progress: Progress,
    pub(crate) queue: Q,
    quantum_ns: Nanoseconds,
}

impl<Q: FairQueue> FairQueueing<Q> {
    /// A policy without clients.
    #[must_use]
    pub fn new(setup: &Setup) -> FairQueueing<Q> {
        FairQueueing {
            roster: Roster::new(setup),
            accounts: Account::all(setup),
            clock: VirtualClock::new(),
            progress: Progress::new(setup, quantum_ns(setup)),
            queue: Q::new(setup.clients),
            quantum_ns: quantum_ns(setup),
        }
    }

    fn push(&mut self, client: ClientId) {
        self.queue.push(client, &self.accounts[client as usize]);
    }

    /// Lets the clock go on by what those who run have used up to now.
    fn catch_up(&mut self, now: Nanoseconds) {
        let clock = &mut self.clock;
        self.progress.count(now, |_, used_ns| clock.advance(service(used_ns)));
    }
}

impl<Q: FairQueue> Policy for FairQueueing<Q> {
    fn name(&self) -> &'static str {
        Q::NAME
    }

    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, _now: Nanoseconds) {
        if self.roster.add(client, domain, share) {
            self.accounts[client as usize] = Account::new(share, self.quantum_ns, ORIGIN);
        }
    }

    fn remove(&mut self, client: ClientId, now: Nanoseconds) {
        let state = self.roster.remove(client);
        if state == State::Absent {
            return;
        }
        self.catch_up(now);
        self.progress.leave(client, now);
        if state == State::Ready {
            self.queue.remove(client);
        }
        if matches!(state, State::Ready | State::Running) {
            self.clock.leave(self.accounts[client as usize].share());
        }
    }

    fn set_share(&mut self, client: ClientId, share: Share, now: Nanoseconds) {
        let state = self.roster.set_share(client, share);
        if state == State::Absent {
            return;
        }
        self.catch_up(now);
        let now = self.clock.now();
        let account = &mut self.accounts[client as usize];
        let before = account.share();
        account.set_share(share, self.quantum_ns, now);
        if state != State::Blocked {
            self.clock.leave(before);
            self.clock.join(share);
        }
        if state == State::Ready {
            self.queue.remove(client);
            self.push(client);
        }
    }

    fn wake(&mut self, client: ClientId, now: Nanoseconds) -> Option<ProcessorId> {
        if self.roster.wake(client) {
            self.catch_up(now);
            let now = self.clock.now();
            let account = &mut self.accounts[client as usize];
            account.not_before(now);
            self.clock.join(account.share());
            self.push(client);
        }
        None
    }

    fn pick(&mut self, processor: ProcessorId, now: Nanoseconds) -> Option<Decision> {
        if !self.roster.has_processor(processor) {
            return None;
        }
        self.catch_up(now);
        let client = self.queue.pop(&self.accounts, &mut self.clock)?;
        self.roster.run(client);
        self.progress.enter(processor, client, now);
        Some(Decision { client, slice_ns: self.quantum_ns, grant: Grant::Share })
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, now: Nanoseconds) {
        let Some(state) = self.roster.stop(client, stop) else { return };
        let counted_ns = self.progress.leave(client, now);
        self.catch_up(now);
        self.accounts[client as usize].charge(ran_ns);
        self.clock.advance(service(ran_ns) - service(counted_ns));
        if state == State::Ready {
            self.push(client);
        } else {
            self.clock.leave(self.accounts[client as usize].share());
        }
    }
}
