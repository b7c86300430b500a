//! Which threads are clients now, and what each domain has had. Threads that begin are taken up, when all
//! threads are looked at or as soon as a client starts them; those that have ended or belong elsewhere are
//! let go.

use std::collections::BTreeMap;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use mete_log::DomainId;
use mete_policy::{Nanoseconds, Share};
use mete_sched::actuator::classes::Adopted;
use mete_sched::actuator::{Classes, Mask, Restored};
use mete_sched::domains::FIRST;
use mete_sched::domains::dealt::policy_domain;
use mete_sched::domains::process::is_runnable;

use crate::bandwidth::Bandwidth;
use crate::channels::Channels;
use crate::error::DispatchError;
use crate::members::{Candidate, Member, Members};
use crate::memory::{Birth, MOST_CLIENTS, Memory};
use crate::message::{Message, now};

/// A check that the programs in the kernel know all members comes after this number of looks: about a second.
const BETWEEN_CHECKS: u64 = 20;
/// How many members are looked at in each look whether they are awake. As a rule that is all of them.
const MOST_CHECKED: usize = 512;

/// See the [module](self).
pub(crate) struct Register {
    members: Members,
    /// What each thread of a domain has. Policies with groups give it a part of its domain's share by that,
    /// the same as the others; policies without groups have nothing else.
    of_threads: Vec<Share>,
    /// How many threads of domains are no members, because there are too many, or because they may not have
    /// enough real time.
    left_out: usize,
    /// All threads were looked at once.
    has_begun: bool,
    /// What the former members of each domain used.
    used: Vec<Nanoseconds>,
    bandwidth: Bandwidth,
    classes: Option<Classes>,
    /// The processors on which clients may run, as far as the manager was told.
    processors: Mask,
    /// Why a thread that was born could not be taken up.
    error: Option<DispatchError>,
    links: ClientLinks,
}

/// What the register needs so that threads become clients: where the programs in the kernel find them, and
/// the manager hears of them.
pub(crate) struct ClientLinks {
    pub memory: Memory,
    /// The clients by the numbers of their threads, for the programs in the kernel.
    pub clients_of_threads: MapHandle,
    pub channels: Channels<Adopted>,
}

impl Register {
    /// Without a client, for this number of domains.
    pub fn new(domains: usize, of_threads: Vec<Share>, classes: Classes, links: ClientLinks) -> Register {
        Register {
            used: vec![Nanoseconds::ZERO; domains],
            members: Members::with_room(MOST_CLIENTS),
            of_threads,
            left_out: 0,
            has_begun: false,
            bandwidth: Bandwidth::here(),
            classes: Some(classes),
            processors: Mask::default(),
            error: None,
            links,
        }
    }

    /// All threads of the domains are looked for from now on: that takes long, and births are taken up
    /// meanwhile.
    pub fn begin_look(&mut self) {
        self.members.begin_look();
    }

    /// Takes up threads that have begun, and lets go of others. These were found since a look was begun.
    ///
    /// # Errors
    ///
    /// Why a thread cannot be dispatched, also of one that was born since the last call.
    pub fn end_look(&mut self, there: BTreeMap<u32, Candidate>) -> Result<(), DispatchError> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let (gone, new) = self.members.changes(there);
        for (thread, member) in gone.into_iter().chain(self.forgotten()) {
            self.let_go(thread, member);
        }
        self.left_out = 0;
        for candidate in new {
            self.admit(&candidate)?;
        }
        self.has_begun = true;
        self.tell_of_missed();
        self.use_masks();
        self.links.channels.bell.ring();
        Ok(())
    }

    /// Takes up a thread that a client has started: it belongs to the client's domain, until the next look at
    /// all threads finds otherwise.
    pub fn take_up_born(&mut self, birth: Birth) {
        let known =
            [birth.parent, birth.thread].into_iter().find_map(|thread| self.members.domain_of(thread));
        let Some(domain) = known else { return };
        if birth.is_renumbered {
            self.forget_renumbered(birth);
        }
        let candidate = Candidate::read(birth.process, birth.thread, domain);
        let Some(candidate) = candidate.filter(|_| !self.members.has(birth.thread)) else { return };
        match self.admit(&candidate) {
            Ok(None) => {}
            Ok(Some(mask)) => {
                self.use_processors(self.processors.or(&mask));
                self.links.channels.bell.ring();
            }
            Err(error) => {
                self.error.get_or_insert(error);
            }
        }
    }

    /// Now and then: members that the programs in the kernel know no longer, though their threads are there. What the programs told of them
    /// was lost. They are taken up anew by the next look.
    fn forgotten(&mut self) -> Vec<(u32, Member)> {
        if !self.members.looks().is_multiple_of(BETWEEN_CHECKS) {
            return Vec::new();
        }
        let known = &self.links.clients_of_threads;
        let is_known = |thread: u32| {
            known.lookup(&thread.to_ne_bytes(), MapFlags::ANY).is_ok_and(|found| found.is_some())
        };
        let forgotten: Vec<_> = self.members.threads().filter(|thread| !is_known(*thread)).collect();
        forgotten.into_iter().filter_map(|thread| Some((thread, self.members.remove(thread)?))).collect()
    }

    /// Tells of members that can run though the programs take them for blocked: the kernel does not tell of every wake-up.
    fn tell_of_missed(&mut self) {
        for (thread, number) in self.members.next(MOST_CHECKED) {
            if !self.links.memory.can_run(number) && is_runnable(thread) {
                self.links.tell(Message::Awake { number });
            }
        }
    }

    /// A thread that is a member no longer.
    fn let_go(&mut self, thread: u32, member: Member) {
        // The program in the kernel has forgotten a thread that has ended.
        let _ = self.links.clients_of_threads.delete(&thread.to_ne_bytes());
        self.used[member.domain.index()] += self.links.memory.used(member.number, now());
        self.links.tell(Message::Leave { number: member.number });
    }

    /// Neither the thread by its former number is a member any more, nor the one whose number it has now. It has the class that its owner
    /// gave it, until it is a member again: what it was given here would be taken for that.
    fn forget_renumbered(&mut self, birth: Birth) {
        let members = [birth.parent, birth.thread].map(|thread| (thread, self.members.remove(thread)));
        for (thread, member) in members {
            if let Some(member) = member {
                self.let_go(thread, member);
            }
        }
        // Else what is noted under its former number may be another thread's.
        if let (Some(classes), [(_, Some(_)), _]) = (&self.classes, members) {
            classes.follow(birth.parent, birth.thread);
        }
    }

    /// Members may have been bound to other processors.
    fn use_masks(&mut self) {
        let (processors, changed) = self.members.look_at_masks();
        for Member { number, allowed, .. } in changed {
            self.links.tell(Message::Allowed { number, allowed });
        }
        self.use_processors(processors);
    }

    fn use_processors(&mut self, processors: Mask) {
        if self.processors != processors {
            self.processors = processors;
            self.links.tell(Message::Processors(Box::new(processors)));
        }
    }

    /// Makes a thread a client if it may have enough real time. If it may not, that is an error as long as
    /// nothing is changed, and later the thread is left out.
    fn admit(&mut self, candidate: &Candidate) -> Result<Option<Mask>, DispatchError> {
        match self.bandwidth.check(candidate) {
            Ok(()) => self.add(candidate),
            Err(little) if !self.has_begun => Err(little),
            Err(_) => {
                self.left_out += 1;
                Ok(None)
            }
        }
    }

    /// Makes a thread a client, and returns the processors that it may run on. `None` if it is none: it may
    /// have ended, be in real time, or be one too many.
    fn add(&mut self, candidate: &Candidate) -> Result<Option<Mask>, DispatchError> {
        if !self.members.has_room() {
            self.left_out += 1;
            return Ok(None);
        }
        let Candidate { process, thread, domain, .. } = candidate;
        let Some(classes) = &mut self.classes else { return Ok(None) };
        let Some(adopted) = classes.adopt(process, *thread, *domain)? else { return Ok(None) };
        let mask = Mask::of_thread(*thread).unwrap_or_default();
        let Some(Member { number, allowed, .. }) = self.members.add(candidate, &mask) else {
            return Ok(None);
        };
        self.links.memory.begin(number, mask.processors().next().unwrap_or_default(), now());
        let (key, value) = (thread.to_ne_bytes(), number.get().to_ne_bytes());
        self.links.clients_of_threads.update(&key, &value, MapFlags::ANY).map_err(DispatchError::Attach)?;
        // From now on the programs see what it does.
        self.links.memory.suppose(number, is_runnable(*thread));
        let share = self.of_threads.get(domain.index() - FIRST.index()).copied().unwrap_or(Share::ONE);
        let domain = policy_domain(*domain);
        self.links.tell(Message::Join { number, thread: adopted, domain, share, allowed });
        Ok(Some(mask))
    }

    /// A domain has another share, and with it the threads of all domains.
    pub fn set_share(&mut self, domain: DomainId, share: Share, of_threads: Vec<Share>) {
        self.of_threads = of_threads;
        let of_client = |domain: DomainId| self.of_threads[domain.index() - FIRST.index()];
        let clients = self.members.iter().map(|member| (member.number, of_client(member.domain))).collect();
        self.links.tell(Message::Shares { domain: policy_domain(domain), share, clients });
        self.links.channels.bell.ring();
    }

    /// What each domain has used since the dispatcher started, in their order.
    pub fn used(&self) -> Vec<Nanoseconds> {
        let now = now();
        let mut used = self.used.clone();
        for member in self.members.iter() {
            used[member.domain.index()] += self.links.memory.used(member.number, now);
        }
        used.split_off(FIRST.index())
    }

    /// How many threads are clients.
    pub fn clients(&self) -> usize {
        self.members.iter().count()
    }

    /// How many threads of domains were left out since the last look began.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// Puts all classes back. `None` if that was done before.
    pub fn put_back(&mut self) -> Option<Restored> {
        self.classes.take().map(Classes::finish)
    }
}

impl ClientLinks {
    pub fn tell(&self, message: Message<Adopted>) {
        self.channels.messages.put(message);
    }
}
