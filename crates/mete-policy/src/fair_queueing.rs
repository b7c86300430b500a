//! Fair queueing: each client has an account of virtual time, all clients share one virtual clock, and a
//! queue decides which client is first. [WFQ](crate::wfq), its [linear twin](crate::wfq_linear),
//! [WF²Q+](crate::wf2q) and [stride](crate::stride) differ in the queue alone, which also says where a client
//! that wakes begins.

use alloc::vec::Vec;

use crate::progress::Progress;
use crate::roster::{ClientState, Roster};
use crate::virtual_clock::VirtualClock;
use crate::virtual_time::{Account, ORIGIN, VirtualTime, lead, quantum_ns, service};
use crate::{ClientId, Decision, DomainIndex, Nanoseconds, Policy, ProcessorId, Setup, Share, Stop};

/// A queue of ready clients; the smaller number wins ties.
pub trait FairQueue {
    /// The policy's name with this queue.
    const NAME: &'static str;
    /// An empty queue.
    fn new(clients: u32) -> Self;
    /// Puts in a client that is not in the queue.
    fn push(&mut self, client: ClientId, account: &Account);
    /// Takes out the first client. A queue that chooses no client that is ahead may put the clock forward.
    fn pop(&mut self, accounts: &[Account], clock: &mut VirtualClock) -> Option<ClientId>;
    /// Takes out a client that is in the queue.
    fn remove(&mut self, client: ClientId);

    /// Whether the order depends on the clock.
    const LOOKS_AT_CLOCK: bool = true;
    /// A client blocks when it is `ahead` of the clock in virtual time, or is new and level with it.
    fn leaves(&mut self, client: ClientId, ahead: i128) {
        let _ = (client, ahead);
    }
    /// A client's share changes while it is blocked.
    fn rescale(&mut self, client: ClientId, from: Share, to: Share) {
        let _ = (client, from, to);
    }
    /// Puts the account of a client that wakes where the client begins.
    fn joins(&self, client: ClientId, account: &mut Account, now: VirtualTime) {
        let _ = client;
        // Sleeping saves nothing up, and blocking does not shed what was used ahead.
        account.not_before(now);
    }
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
        self.queue.push(client, &self.accounts[client.index()]);
    }

    /// Lets the clock go on by what running clients have used up to now.
    fn catch_up(&mut self, now: Nanoseconds) {
        self.progress.advance_clock(now, &mut self.clock);
    }
}

impl<Q: FairQueue> Policy for FairQueueing<Q> {
    fn name(&self) -> &'static str {
        Q::NAME
    }

    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, _now: Nanoseconds) {
        if self.roster.add(client, domain, share) {
            self.accounts[client.index()] = Account::new(share, self.quantum_ns, ORIGIN);
            self.queue.leaves(client, 0);
        }
    }

    fn remove(&mut self, client: ClientId, now: Nanoseconds) {
        let state = self.roster.remove(client);
        if state == ClientState::Absent {
            return;
        }
        // What it used counts while its share still competes; its own run is forgotten afterwards.
        self.catch_up(now);
        self.progress.leave(client, now);
        if state == ClientState::Ready {
            self.queue.remove(client);
        }
        if matches!(state, ClientState::Ready | ClientState::Running) {
            self.clock.leave(self.accounts[client.index()].share());
        }
    }

    fn set_share(&mut self, client: ClientId, share: Share, now: Nanoseconds) {
        let state = self.roster.set_share(client, share);
        if state == ClientState::Absent {
            return;
        }
        self.catch_up(now);
        let now = self.clock.now();
        let account = &mut self.accounts[client.index()];
        let before = account.share();
        // The clock's time, not the owner's: the distance from it stays the same service.
        account.set_share(share, self.quantum_ns, now);
        if state == ClientState::Blocked {
            return self.queue.rescale(client, before, share);
        }
        self.clock.leave(before);
        self.clock.join(share);
        // The finishing time has changed, and with it the place in the queue.
        if state == ClientState::Ready {
            self.queue.remove(client);
            self.push(client);
        }
    }

    fn wake(&mut self, client: ClientId, now: Nanoseconds) -> Option<ProcessorId> {
        if self.roster.wake(client) {
            // A wake-up in the middle of a quantum: the clock counts what is used of it (VTRR paper, §3.2).
            self.catch_up(now);
            let now = self.clock.now();
            let account = &mut self.accounts[client.index()];
            self.queue.joins(client, account, now);
            self.clock.join(account.share());
            self.push(client);
        }
        None
    }

    fn pick(&mut self, processor: ProcessorId, now: Nanoseconds) -> Option<Decision> {
        self.roster.check(processor)?;
        if Q::LOOKS_AT_CLOCK {
            self.catch_up(now);
        }
        let client = self.queue.pop(&self.accounts, &mut self.clock)?;
        self.roster.run(client);
        self.progress.enter(processor, client, now);
        Some(Decision::by_share(client, self.quantum_ns))
    }

    /// No client displaces another one.
    fn keeps(&self, _processor: ProcessorId) -> bool {
        true
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, now: Nanoseconds) {
        let Some(state) = self.roster.stop(client, stop) else { return };
        // What was counted of this run goes off again: the time really used replaces the estimate.
        let counted_ns = self.progress.leave(client, now);
        // The others' runs before this client leaves: they were used while its share competed.
        self.catch_up(now);
        self.accounts[client.index()].charge(ran_ns);
        self.clock.advance(service(ran_ns) - service(counted_ns));
        if state == ClientState::Ready {
            self.push(client);
        } else {
            let account = &self.accounts[client.index()];
            // Before the share leaves, so that the distance is from the time that it competed by.
            self.queue.leaves(client, lead(account.time(), self.clock.now()));
            self.clock.leave(account.share());
        }
    }
}
