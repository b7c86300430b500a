//! Which processes are clients: those of domains that this user may pause.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use mete_log::DomainId;
use mete_policy::ClientId;
use mete_sched::actuator::Mask;
use mete_sched::domains::ours::{FIRST_PROCESS, is_ours};
use mete_sched::domains::process::{self, CannotLook, Process};
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

/// The processes that belong to domains and may be paused as far as it is known, and the numbers of those that are left alone
/// because a shell would take the terminal from them.
///
/// # Errors
///
/// [`CannotLook`]: those that are there cannot be told from those that have ended.
#[expect(clippy::type_complexity, reason = "two tables of processes")]
pub(crate) fn candidates(
    domains: &Domains,
) -> Result<(BTreeMap<u32, (Process, DomainId)>, BTreeSet<u32>), CannotLook> {
    let users = domains.numbers().filter(|domain| *domain >= FIRST);
    let members = users.flat_map(|domain| domains.members(domain).map(move |pid| (domain, pid)));
    let found = members.map(|(domain, pid)| Ok(Process::find(pid)?.map(|process| (process, domain))));
    let processes = found.collect::<Result<Vec<_>, CannotLook>>()?;
    let ordinary = processes
        .into_iter()
        .flatten()
        .filter(|(process, _)| !process.is_kernel && process.pid != FIRST_PROCESS && !is_ours(process));
    let (left, there): (Vec<_>, Vec<_>) =
        ordinary.partition(|(process, _)| process::is_in_foreground(process.pid));
    let there = there.into_iter().map(|(process, domain)| (process.pid, (process, domain))).collect();
    Ok((there, left.into_iter().map(|(process, _)| process.pid).collect()))
}
