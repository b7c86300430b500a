//! Which threads are dispatched: those of the processes that belong to domains.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::ops::Bound;

use mete_log::DomainId;
use mete_policy::ClientId;
use mete_sched::actuator::Mask;
use mete_sched::domains::ours::{FIRST_PROCESS, is_ours};
use mete_sched::domains::process::{self, Process};
use mete_sched::domains::{Domains, FIRST};

/// A thread that is dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub number: ClientId,
    pub domain: DomainId,
    /// The processors that it may run on, as far as the policy was told, a bit each.
    pub allowed: u64,
    /// When it began, which tells it from another thread of the same number.
    start: u64,
    /// The look at all threads that was under way, or the last one, when it became a member.
    since: u64,
}

/// A thread that is to be.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub process: Process,
    pub thread: u32,
    pub domain: DomainId,
    start: u64,
}

impl Candidate {
    /// A thread that is to belong to this domain. `None` if it has ended, or may not be dispatched.
    pub fn read(process: u32, thread: u32, domain: DomainId) -> Option<Candidate> {
        let process = Process::read(process).filter(is_dispatched)?;
        let start = Process::read_thread(process.pid, thread)?.start;
        Some(Candidate { process, thread, domain, start })
    }
}

/// All members, by the numbers of their threads, and the clients' numbers that are free.
#[derive(Debug)]
pub(crate) struct Members {
    present: BTreeMap<u32, Member>,
    free: VecDeque<ClientId>,
    /// How many looks at all threads have begun.
    looks: u64,
    /// The thread that was looked at last in turn.
    last: u32,
}

impl Members {
    /// With numbers below this one.
    pub fn with_room(most: usize) -> Members {
        // One that was given back is given out last: the kernel and the manager may still know its former
        // holder.
        Members { present: BTreeMap::new(), free: (0..most).map(ClientId::at).collect(), looks: 0, last: 0 }
    }

    /// All threads are looked at from now on. What becomes a member meanwhile may not be among those that are
    /// found.
    pub fn begin_look(&mut self) {
        self.looks += 1;
    }

    /// The members that have ended or belong elsewhere now; they are members no longer. And the threads that
    /// belong to a domain and are none. By the threads that the look has found that was begun last.
    pub fn changes(&mut self, there: BTreeMap<u32, Candidate>) -> (Vec<(u32, Member)>, Vec<Candidate>) {
        let looks = self.looks;
        let is_there = |thread: &u32, member: &Member| {
            let is_found = there
                .get(thread)
                .is_some_and(|found| (found.start, found.domain) == (member.start, member.domain));
            is_found || member.since == looks
        };
        let mut gone = Vec::new();
        self.present.retain(|&thread, member| {
            let stays = is_there(&thread, member);
            gone.extend((!stays).then_some((thread, *member)));
            stays
        });
        self.free.extend(gone.iter().map(|(_, member)| member.number));
        let new = there.into_values().filter(|found| !self.present.contains_key(&found.thread)).collect();
        (gone, new)
    }

    /// Whether one more thread may become a member.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// Makes a thread a member that may run on these processors; `None` if there are too many.
    pub fn add(&mut self, candidate: &Candidate, mask: &Mask) -> Option<Member> {
        let number = self.free.pop_front()?;
        let (domain, start, since) = (candidate.domain, candidate.start, self.looks);
        let member = Member { number, domain, allowed: allowed(mask), start, since };
        self.present.insert(candidate.thread, member);
        Some(member)
    }

    /// The thread of this number is a member no longer.
    pub fn remove(&mut self, thread: u32) -> Option<Member> {
        let member = self.present.remove(&thread)?;
        self.free.push_back(member.number);
        Some(member)
    }

    /// How many looks at all threads have begun.
    pub fn looks(&self) -> u64 {
        self.looks
    }

    /// The threads of all members.
    pub fn threads(&self) -> impl Iterator<Item = u32> {
        self.present.keys().copied()
    }

    /// The threads and clients whose turn it is to be looked at, at most this number of them.
    pub fn next(&mut self, most: usize) -> Vec<(u32, ClientId)> {
        let behind = (Bound::Excluded(self.last), Bound::Unbounded);
        let next: Vec<_> =
            self.present.range(behind).take(most).map(|(thread, member)| (*thread, member.number)).collect();
        // From the beginning, when all had their turn.
        self.last = next.last().filter(|_| next.len() == most).map_or(0, |(thread, _)| *thread);
        next
    }

    /// Whether the thread of this number is a member.
    pub fn has(&self, thread: u32) -> bool {
        self.present.contains_key(&thread)
    }

    /// The domain of a member, by its thread.
    pub fn domain_of(&self, thread: u32) -> Option<DomainId> {
        self.present.get(&thread).map(|member| member.domain)
    }

    /// Looks where members may run now: the processors on which any of them may, and the members for which that has changed.
    pub fn look_at_masks(&mut self) -> (Mask, Vec<Member>) {
        let mut all = Mask::default();
        let mut changed = Vec::new();
        for (&thread, member) in &mut self.present {
            let Ok(mask) = Mask::of_thread(thread) else { continue };
            all = all.or(&mask);
            let allowed = allowed(&mask);
            if member.allowed != allowed {
                member.allowed = allowed;
                changed.push(*member);
            }
        }
        (all, changed)
    }

    /// All members.
    pub fn iter(&self) -> impl Iterator<Item = &Member> {
        self.present.values()
    }
}

/// The processors of a mask, a bit each: those that a policy can be told of, or all.
fn allowed(mask: &Mask) -> u64 {
    let bits = mask.processors().take_while(|&processor| processor < 64).fold(0, |bits, it| bits | 1 << it);
    if bits == 0 { u64::MAX } else { bits }
}

/// All threads that belong to domains and may be dispatched.
pub(crate) fn candidates(domains: &Domains) -> BTreeMap<u32, Candidate> {
    let users = domains.numbers().filter(|domain| *domain >= FIRST);
    let members = users.flat_map(|domain| domains.members(domain).map(move |pid| (domain, pid)));
    let processes = members.filter_map(|(domain, pid)| Some((domain, Process::read(pid)?)));
    let others = processes.filter(|(_, process)| is_dispatched(process));
    let threads = others.flat_map(|(domain, process)| {
        process::threads(process.pid).into_iter().filter_map(move |thread| {
            let start = Process::read_thread(process.pid, thread)?.start;
            Some((thread, Candidate { process: process.clone(), thread, domain, start }))
        })
    });
    threads.collect()
}

/// Whether a process may be dispatched: it is none of the kernel's, not the first one, and neither this
/// program nor one that clears up behind it.
fn is_dispatched(process: &Process) -> bool {
    !process.is_kernel && process.pid != FIRST_PROCESS && !is_ours(process) && !has_bound(process.pid)
}

/// Whether the kernel ends a process after some time in real time (`RLIMIT_RTTIME`). A client has more of it than one that is written for
/// real time. One of which that is not known is left alone. Read, because to ask for it (`prlimit`) takes a right that reading does not.
fn has_bound(process: u32) -> bool {
    let limits = fs::read_to_string(format!("/proc/{process}/limits")).unwrap_or_default();
    let of_real_time = limits.lines().find_map(|line| line.strip_prefix("Max realtime timeout"));
    of_real_time.is_none_or(|limit| !limit.trim_start().starts_with("unlimited"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_so_many_and_again_when_one_has_left() {
        let mut members = Members::with_room(1);
        let process = Process::read(std::process::id()).unwrap();
        let candidate = |thread| Candidate { process: process.clone(), thread, domain: FIRST, start: 0 };
        let mut add = |thread| members.add(&candidate(thread), &Mask::default()).map(|member| member.number);
        assert_eq!([add(1), add(2)], [Some(ClientId::at(0)), None]);
        assert!(!members.has_room());
        assert_eq!(members.changes(BTreeMap::new()).0, [], "it has come since the look began");
        members.begin_look();
        assert_eq!(members.changes(BTreeMap::new()).0.len(), 1);
        assert!(members.has_room());
    }

    #[test]
    fn all_members_have_their_turn_to_be_looked_at() {
        let mut members = Members::with_room(5);
        let process = Process::read(std::process::id()).unwrap();
        for thread in [7, 3, 9, 5, 1] {
            let candidate = Candidate { process: process.clone(), thread, domain: FIRST, start: 0 };
            members.add(&candidate, &Mask::default());
        }
        let mut next = || members.next(2).into_iter().map(|(thread, _)| thread).collect::<Vec<_>>();
        assert_eq!([next(), next(), next(), next()], [vec![1, 3], vec![5, 7], vec![9], vec![1, 3]]);
    }

    #[test]
    fn a_process_that_the_kernel_would_end_in_real_time_is_not_dispatched() {
        let mut bounded = std::process::Command::new("prlimit");
        let bounded = bounded.args(["--rttime=200000:200000", "sleep", "60"]).spawn().unwrap();
        let free = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let begin = std::time::Instant::now();
        while !has_bound(bounded.id()) && begin.elapsed() < std::time::Duration::from_secs(30) {
            std::thread::yield_now();
        }
        assert!(has_bound(bounded.id()) && !has_bound(free.id()));
        for mut process in [bounded, free] {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    #[test]
    fn what_all_others_depend_on_is_not_dispatched() {
        let own = std::process::id();
        let [Some(first), Some(this)] = [FIRST_PROCESS, own].map(Process::read) else {
            println!("SKIPPED: no other process can be seen");
            return;
        };
        assert!(!is_dispatched(&first) && !is_dispatched(&this));
        let mut sleep = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let other = Process { pid: sleep.id(), parent: FIRST_PROCESS, comm: "server".into(), ..this };
        let child = Process { parent: own, ..other.clone() };
        assert!(is_dispatched(&other) && is_dispatched(&child));
        assert!(!is_dispatched(&Process { is_kernel: true, ..other }));
        sleep.kill().unwrap();
        sleep.wait().unwrap();
    }
}
