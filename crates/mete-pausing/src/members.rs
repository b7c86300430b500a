//! Which processes are clients: those of domains that this user may pause.

use std::collections::{BTreeMap, VecDeque};

use mete_log::DomainId;
use mete_policy::ClientId;
use mete_sched::actuator::Mask;
use mete_sched::domains::ours::{FIRST_PROCESS, is_ours};
use mete_sched::domains::process::{CannotLook, Process};
use mete_sched::domains::{Domains, FIRST};

/// A process that is a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub number: ClientId,
    pub domain: DomainId,
    /// The processors that it may run on, a bit each, as far as the policy was told.
    pub allowed: u64,
    /// When it began, which tells it from another process of the same number.
    start: u64,
}

/// All members, by the numbers of their processes, and the clients' numbers that are free.
#[derive(Debug)]
pub(crate) struct Members {
    present: BTreeMap<u32, Member>,
    free: VecDeque<ClientId>,
}

impl Members {
    /// With numbers below this one.
    pub fn with_room(most: usize) -> Members {
        Members { present: BTreeMap::new(), free: (0..most).map(ClientId::at).collect() }
    }

    /// Those that are in their domains no longer, or have ended; they are members no longer.
    pub fn gone(&mut self, there: &BTreeMap<u32, (Process, DomainId)>) -> Vec<Member> {
        let mut gone = Vec::new();
        self.present.retain(|pid, member| {
            let stays = there
                .get(pid)
                .is_some_and(|(process, domain)| (process.start, *domain) == (member.start, member.domain));
            gone.extend((!stays).then_some(*member));
            stays
        });
        self.free.extend(gone.iter().map(|member| member.number));
        gone
    }

    /// The client of this number is none any more.
    pub fn remove(&mut self, number: ClientId) {
        let before = self.present.len();
        self.present.retain(|_, member| member.number != number);
        if self.present.len() < before {
            self.free.push_back(number);
        }
    }

    pub fn has(&self, pid: u32) -> bool {
        self.present.contains_key(&pid)
    }

    /// Makes a process a member; `None` if there are too many.
    pub fn add(&mut self, process: &Process, domain: DomainId) -> Option<Member> {
        let number = self.free.pop_front()?;
        let member = Member { number, domain, allowed: allowed(process.pid), start: process.start };
        self.present.insert(process.pid, member);
        Some(member)
    }

    /// Those that may run elsewhere than before, and the processors on which any member may.
    pub fn look_at_masks(&mut self) -> (Vec<Member>, u64) {
        let (mut changed, mut all) = (Vec::new(), 0);
        for (&pid, member) in &mut self.present {
            let allowed = allowed(pid);
            all |= allowed;
            if member.allowed != allowed {
                member.allowed = allowed;
                changed.push(*member);
            }
        }
        (changed, all)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Member> {
        self.present.values()
    }
}

/// The processors of a process, a bit each: those that a policy can be told of, or all.
fn allowed(pid: u32) -> u64 {
    let mask = Mask::of_thread(pid).unwrap_or_default();
    let bits = mask.processors().take_while(|&processor| processor < 64).fold(0, |bits, it| bits | 1 << it);
    if bits == 0 { u64::MAX } else { bits }
}

/// The processes of domains, by what may be done with them.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    /// Those that may be paused, as far as it is known.
    pub there: BTreeMap<u32, (Process, DomainId)>,
    /// Jobs of a shell, which sees when they are stopped; with the last one that ties them to it, the kernel would end them.
    pub jobs: usize,
}

/// All processes of domains. Of a group that is not among the known ones, it is not known yet whether it is a job: its processes are
/// neither.
///
/// # Errors
///
/// [`CannotLook`]: those that are there cannot be told from those that have ended.
pub(crate) fn candidates(domains: &Domains, groups: &BTreeMap<u32, bool>) -> Result<Candidates, CannotLook> {
    let users = domains.numbers().filter(|domain| *domain >= FIRST);
    let members = users.flat_map(|domain| domains.members(domain).map(move |pid| (domain, pid)));
    let found = members.map(|(domain, pid)| Ok(Process::find(pid)?.map(|process| (process, domain))));
    let processes = found.collect::<Result<Vec<_>, CannotLook>>()?;
    let is_ordinary =
        |process: &Process| !process.is_kernel && process.pid != FIRST_PROCESS && !is_ours(process);
    let mut candidates = Candidates::default();
    for (process, domain) in processes.into_iter().flatten().filter(|(process, _)| is_ordinary(process)) {
        match groups.get(&process.group) {
            Some(false) => drop(candidates.there.insert(process.pid, (process, domain))),
            Some(true) => candidates.jobs += 1,
            None => {}
        }
    }
    Ok(candidates)
}
