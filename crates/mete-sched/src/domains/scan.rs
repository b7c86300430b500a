//! Which process belongs to which domain now.
//!
//! The [kernel component](mete_kernel) follows the same [rules](Domains::rules). It binds processes at fork,
//! at exec and when they are renamed, because a process that lives for a millisecond is in no scan. A
//! [scan beside it](Domains::scan_beside) takes over what the kernel has bound, and binds what the kernel
//! could not see: processes that were there before, and users that change without an exec. What a scan finds
//! late is counted ([`LateBindings`]).
//!
//! To scan `/proc` costs milliseconds on a large machine. So a [scan](Domains::scan) first looks whether
//! anything has begun since the last scan, and then reads only what is new. A process is read a second time
//! at the next scan, because between fork and exec it still has its parent's name. At every 16th scan, all
//! processes are read again.

use std::collections::BTreeSet;

use mete_kernel::Bound;
use mete_log::DomainId;
use rustix::param::clock_ticks_per_second;

use super::process::{self, Process};
use super::{Domains, FIRST, OTHER, Selector, groups};

/// How often a process is looked at before it is left alone.
const LOOKS: u8 = 2;
/// After this number of scans, all processes are looked at again, because of execs and changes of users that
/// come late.
const FULL_SCAN_EVERY: u32 = 16;
/// The length of the longest chain of ancestors that is followed.
const MAX_ANCESTORS: usize = 64;

/// Why a process is in its domain. A process's own binding, which its children inherit, takes precedence over
/// that of its control group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BoundBy {
    /// A selector, or the process's kind.
    Selector,
    /// The binding of its parent.
    Parent,
    /// Its control group.
    Cgroup,
}

/// Processes that a scan bound after the kernel had begun to bind them by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LateBindings {
    /// The number of processes.
    pub processes: u64,
    /// The processor time that they had used since the look before: an upper bound. It stands under another
    /// domain.
    pub ran_ns: u64,
}

/// What is known about a process.
#[derive(Clone, Debug)]
pub(super) struct KnownProcess {
    start: u64,
    parent: u32,
    /// How often it was looked at since it began, or since it was doubted.
    looks: u8,
    pub domain: DomainId,
    by: BoundBy,
    /// How the kernel has bound it; `None` without the kernel component.
    bound: Option<Bound>,
    /// Its processor time at the last look and at the look before, in ticks.
    ran: [u64; 2],
    /// Set if the last look found that the kernel had bound it otherwise than it should be: its processor
    /// time at the look before the first such look.
    doubted_since: Option<u64>,
}

/// A process has come to a domain or has left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The process.
    pub pid: u32,
    /// Its domain before.
    pub from: DomainId,
    /// Its domain now.
    pub to: DomainId,
    /// Whether the process is still there.
    pub is_alive: bool,
    /// Whether it came or left with its control group, which the kernel follows by itself.
    pub is_by_cgroup: bool,
}

impl Domains {
    /// From now on, the kernel component is expected to have bound every process that a scan finds.
    pub fn expect_kernel_bindings(&mut self) {
        self.expects_kernel_bindings = true;
    }

    /// What scans have found late since [`Domains::expect_kernel_bindings`].
    pub fn late_bindings(&self) -> LateBindings {
        self.late
    }

    /// The domain of a process, as of the last scan.
    pub fn domain_of(&self, pid: u32) -> DomainId {
        self.known.get(&pid).map_or(OTHER, |known| known.domain)
    }

    /// How the kernel component had bound a process when it was last looked at.
    pub fn kernel_binding_of(&self, pid: u32) -> Option<Bound> {
        self.known.get(&pid)?.bound
    }

    /// The processes of a domain, as of the last scan.
    pub fn members(&self, domain: DomainId) -> impl Iterator<Item = u32> {
        self.known.iter().filter(move |(_, known)| known.domain == domain).map(|(&pid, _)| pid)
    }

    /// All processes that belong to one of the user's domains, as changes for a source that was just added.
    pub fn present(&self) -> impl Iterator<Item = Change> {
        let bound = self.known.iter().filter(|(_, known)| known.domain >= FIRST);
        bound.map(|(&pid, known)| {
            let is_by_cgroup = known.by == BoundBy::Cgroup;
            Change { pid, from: OTHER, to: known.domain, is_alive: true, is_by_cgroup }
        })
    }

    /// Brings membership up to date, and returns what has changed. The cost is one read of a small file, as
    /// long as no process begins.
    pub fn scan(&mut self) -> &[Change] {
        self.scan_beside(|_| None)
    }

    /// Has the next scan look for processes that have ended, although none has begun.
    pub fn expect_change(&mut self) {
        self.newest = None;
    }

    /// Like [`Domains::scan`], for use beside the kernel component, which binds processes by itself: `bound`
    /// returns how it has bound one.
    pub fn scan_beside(&mut self, bound: impl Fn(u32) -> Option<Bound>) -> &[Change] {
        self.changes.clear();
        self.new_groups.clear();
        self.scans = self.scans.wrapping_add(1);
        let newest = process::newest();
        let is_full = self.scans.is_multiple_of(FULL_SCAN_EVERY) && self.has_patterns();
        let is_quiet = newest.is_some() && newest == self.newest && !self.has_young;
        // Tasks move between control groups without a new process.
        if is_quiet && !is_full && !self.has_groups() {
            return &self.changes;
        }
        self.newest = newest;
        self.look_at_all(is_full, &bound);
        &self.changes
    }

    /// The same, and every process is looked at again, as else in one of some scans: for who scans seldom.
    pub fn scan_fully(&mut self) -> &[Change] {
        self.scans = FULL_SCAN_EVERY - 1;
        self.scan()
    }

    /// The changes of the last scan.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Whether the domain of a process can change without a new process.
    fn has_patterns(&self) -> bool {
        if self.divide.is_some() {
            return true;
        }
        self.domains.iter().any(|domain| domain.selectors.iter().any(Selector::is_pattern))
    }

    fn look_at_all(&mut self, is_full: bool, bound: &impl Fn(u32) -> Option<Bound>) {
        // A process that cannot be looked at has not ended, so nothing is forgotten.
        let Ok(present) = process::all() else { return };
        self.forget_missing(&present.iter().copied().collect());
        let fresh: Vec<_> = present.into_iter().filter_map(|pid| self.look_at(pid, is_full, bound)).collect();
        // By number, so that parents usually come before their children. Where the numbers have begun again
        // from the bottom, `inherited` follows the chain of ancestors.
        for process in &fresh {
            let of_kind = self.of_kind(process);
            let (domain, by) = self.place(process, of_kind);
            self.settle(process.pid, domain, by);
        }
        self.follow_cgroups();
        self.has_young = self.known.values().any(|known| known.looks < LOOKS);
    }

    fn forget_missing(&mut self, present: &BTreeSet<u32>) {
        let missing: Vec<_> = self.known.keys().filter(|pid| !present.contains(pid)).copied().collect();
        missing.into_iter().for_each(|pid| self.forget(pid));
    }

    fn forget(&mut self, pid: u32) {
        if let Some(KnownProcess { domain: from, .. }) =
            self.known.remove(&pid).filter(|known| known.domain != OTHER)
        {
            self.changes.push(Change { pid, from, to: OTHER, is_alive: false, is_by_cgroup: false });
        }
    }

    /// Reads a process if it is new or young, or if this scan reads all processes.
    fn look_at(&mut self, pid: u32, is_full: bool, bound: &impl Fn(u32) -> Option<Bound>) -> Option<Process> {
        let looks = self.known.get(&pid).map_or(0, |known| known.looks);
        if looks >= LOOKS && !is_full {
            return None;
        }
        // The kernel is asked before the process is read: what the kernel binds in between is newer than what
        // is read.
        let bound = bound(pid);
        let Some(process) = Process::find(pid).ok()? else {
            self.forget(pid);
            return None;
        };
        // A process with another start has only the number in common with the former one.
        let before = self.known.get(&pid).filter(|known| known.start == process.start);
        let (looks, domain, by, ran, doubted_since) = before
            .map_or((0, OTHER, BoundBy::Parent, 0, None), |known| {
                (known.looks, known.domain, known.by, known.ran[0], known.doubted_since)
            });
        let (start, parent, ran) = (process.start, process.parent, [process.ran, ran]);
        let looks = looks.saturating_add(1);
        let known = KnownProcess { start, parent, looks, domain, by, bound, ran, doubted_since };
        self.known.insert(pid, known);
        Some(process)
    }

    /// The domain of a process: the one that a selector or its kind gives it, else the one that it has, else
    /// an ancestor's.
    fn place(&self, process: &Process, of_kind: Option<DomainId>) -> (DomainId, BoundBy) {
        let own = process.pid == std::process::id();
        if let Some(domain) = self.selected(process, own).or(of_kind) {
            return (domain, BoundBy::Selector);
        }
        match self.known.get(&process.pid) {
            // The kernel has seen what the process was before, and which process started it.
            Some(KnownProcess { bound: Some(bound), .. }) if bound.domain != OTHER && !bound.is_by_cgroup => {
                (bound.domain, BoundBy::Parent)
            }
            // A process that was selected once stays in its domain, as it does in the kernel.
            Some(known) if known.domain != OTHER || own => (known.domain, known.by),
            _ => self.inherited(process.parent),
        }
    }

    /// The first domain with a selector that selects a process. The scheduler itself is in a domain only if
    /// its number was given.
    fn selected(&self, process: &Process, is_own: bool) -> Option<DomainId> {
        let found = self.domains.iter().position(|domain| {
            domain.selectors.iter().any(|selector| {
                selector.selects(process) && (!is_own || matches!(selector, Selector::Pid(_)))
            })
        });
        found.map(DomainId::from_index)
    }

    fn inherited(&self, mut ancestor: u32) -> (DomainId, BoundBy) {
        // Bounded, because numbers that were given out again may make the chain a circle.
        for _ in 0..MAX_ANCESTORS {
            match self.known.get(&ancestor) {
                // The binding of a control group is not inherited: groups list their members themselves,
                // including children.
                Some(known) if known.domain != OTHER && known.by != BoundBy::Cgroup => {
                    return (known.domain, BoundBy::Parent);
                }
                Some(known) => ancestor = known.parent,
                None => break,
            }
        }
        (OTHER, BoundBy::Parent)
    }

    /// Binds processes that are in a bound control group and were not bound otherwise, and frees those that
    /// have left their group.
    fn follow_cgroups(&mut self) {
        self.look_for_groups();
        let members = groups::members(&self.groups);
        let by_cgroup = self.known.iter().filter(|(_, known)| known.by == BoundBy::Cgroup);
        let left: Vec<_> = by_cgroup.map(|(&pid, _)| pid).filter(|pid| !members.contains_key(pid)).collect();
        for pid in left {
            self.settle(pid, OTHER, BoundBy::Cgroup);
        }
        for (pid, domain) in members {
            if self.known.get(&pid).is_some_and(|known| known.domain == OTHER || known.by == BoundBy::Cgroup)
            {
                self.settle(pid, domain, BoundBy::Cgroup);
            }
        }
    }

    /// Notes the domain of a process, and the change if there is one. A process that the kernel has bound
    /// otherwise is doubted at first, and counts as late only if the next look finds the same.
    fn settle(&mut self, pid: u32, to: DomainId, by: BoundBy) {
        let expects_kernel_bindings = self.expects_kernel_bindings;
        let Some(known) = self.known.get_mut(&pid) else { return };
        let is_by_cgroup = by == BoundBy::Cgroup;
        let is_told = is_by_cgroup || known.bound.is_none_or(|bound| fits(bound, to));
        if expects_kernel_bindings && !is_told && known.doubted_since.is_none() {
            // In the middle of an exec, a process has its new file and name a moment before the kernel tells
            // its programs. So this look may be too early, and `looks` asks for another one.
            (known.doubted_since, known.looks) = (Some(known.ran[1]), 0);
            return;
        }
        let doubted_since = known.doubted_since.take();
        let before = std::mem::replace(&mut known.domain, to);
        known.by = if to == OTHER { BoundBy::Parent } else { by };
        // A process that the kernel has not bound as it should is a change for the sources, even if it is
        // none here.
        if before != to || !is_told {
            self.changes.push(Change { pid, from: before, to, is_alive: true, is_by_cgroup });
        }
        if expects_kernel_bindings && !is_told {
            let tick_ns = 1_000_000_000 / clock_ticks_per_second().max(1);
            // A process that ran for less than a tick shows no tick, so one is added.
            let ticks = known.ran[0].saturating_sub(doubted_since.unwrap_or(known.ran[1])) + 1;
            self.late.processes += 1;
            self.late.ran_ns = self.late.ran_ns.saturating_add(ticks * tick_ns);
        }
    }
}

/// Whether the kernel has bound a process as a scan finds that it should be. A process without a domain of
/// its own may have one by its control groups, which the kernel follows by itself.
fn fits(bound: Bound, to: DomainId) -> bool {
    if to == OTHER {
        bound.domain == OTHER || bound.is_by_cgroup
    } else {
        bound.domain == to && !bound.is_by_cgroup
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Child, Command, Stdio};

    use super::super::tests::specs;
    use super::super::{DomainError, EmptyDomain};
    use super::*;

    /// A process that ends with the test, in whatever way the test ends.
    struct Running(Child);

    impl Running {
        fn shell(script: &str) -> Running {
            Running(Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap())
        }

        fn pid(&self) -> u32 {
            self.0.id()
        }
    }

    impl Drop for Running {
        fn drop(&mut self) {
            // The shell waits for its input, and ends when the input ends.
            drop(self.0.stdin.take());
            let _ = self.0.wait();
        }
    }

    #[test]
    fn log_6_a_selector_that_matches_nothing_is_named() {
        let error = |texts: &[&str]| {
            let mut domains = Domains::new(specs(texts)).unwrap();
            domains.scan();
            domains.check_matches().unwrap_err()
        };
        let selectors = "comm:no-such-prog or user:4294967294".to_owned();
        let nobody = DomainError::NoMembers { selectors, unread: 0 };
        assert_eq!(error(&["none=comm:no-such-prog", "no=user:4294967294"]), nobody);
        // No process has a number beyond 2^22.
        let dead = DomainError::NoMatch { name: "none".into(), selector: "pid:4194305".into() };
        assert_eq!(error(&["own=children:1", "none=pid:4194305"]), dead);
        let dead = DomainError::NoMatch { name: "none".into(), selector: "children:4194305".into() };
        assert_eq!(error(&["own=children:1", "none=children:4194305"]), dead);
    }

    #[test]
    fn log_6_beside_a_domain_with_members_one_that_can_fill_may_be_empty() {
        let shell = Running::shell("read x");
        let texts =
            [format!("here=pid:{}", shell.pid()), "later=comm:no-such-prog,user:4294967294".to_owned()];
        let mut domains = Domains::new(specs(&texts.each_ref().map(String::as_str))).unwrap();
        domains.scan();
        let selectors = "comm:no-such-prog or user:4294967294".into();
        assert_eq!(
            domains.check_matches(),
            Ok(vec![EmptyDomain { name: "later".into(), selectors, unread: 0 }])
        );
    }

    #[test]
    fn log_6_children_of_a_process_that_has_none_yet_are_waited_for() {
        let shell = Running::shell("read x");
        let selectors = format!("children:{}", shell.pid());
        let mut domains = Domains::new(specs(&[&format!("later={selectors}")])).unwrap();
        domains.scan();
        assert_eq!(
            domains.check_matches(),
            Ok(vec![EmptyDomain { name: "later".into(), selectors, unread: 0 }])
        );
    }

    #[test]
    fn log_6_for_a_domain_whose_processes_belong_to_an_earlier_one_the_error_names_that_one() {
        let shell = Running::shell("read x");
        let texts = ["a", "b"].map(|name| format!("{name}=pid:{}", shell.pid()));
        let mut domains = Domains::new(specs(&texts.each_ref().map(String::as_str))).unwrap();
        domains.scan();
        let selector = format!("pid:{}", shell.pid());
        let expected = DomainError::AllTaken { name: "b".into(), selector, owner: "a".into() };
        assert_eq!(domains.check_matches(), Err(expected));
    }

    #[test]
    fn log_6_a_process_and_its_descendants_belong_to_its_domain_until_they_end() {
        let shell = Running::shell("cat | cat; true");
        let text = format!("a=pid:{}", shell.pid());
        let mut domains = Domains::new(specs(&[&text])).unwrap();
        let a = domains.by_name("a").unwrap();
        let children =
            || process::processes().into_iter().filter_map(Process::read).filter(|p| p.parent == shell.pid());
        while children().count() < 2 {
            std::thread::yield_now();
        }
        domains.scan();
        assert_eq!(domains.members(a).count(), 3);
        assert_eq!(domains.check_matches(), Ok(vec![]));
        let pid = shell.pid();
        drop(shell);
        // A process begins, so the scan looks again.
        drop(Running::shell("read x"));
        let gone: Vec<_> = domains.scan().to_vec();
        assert!(
            gone.contains(&Change { pid, from: a, to: OTHER, is_alive: false, is_by_cgroup: false }),
            "{gone:?}"
        );
        assert_eq!(domains.members(a).count(), 0);
    }

    /// Has a process take the name that selects a domain long after it has begun, looks then, and asserts that it is found.
    fn assert_late_name_is_found(mark: &str, look: impl FnOnce(&mut Domains)) {
        let name = format!("{mark}-{}", std::process::id() % 1_000_000);
        let mut shell = Running::shell(&format!("read x; printf %s {name} >/proc/$$/comm; read x"));
        let mut domains = Domains::new(specs(&[&format!("late=comm:{name}")])).unwrap();
        for _ in 0..2 * LOOKS {
            domains.scan();
        }
        assert_eq!(domains.domain_of(shell.pid()), OTHER);
        writeln!(shell.0.stdin.as_mut().unwrap()).unwrap();
        while Process::read(shell.pid()).unwrap().comm != *name {
            std::thread::yield_now();
        }
        look(&mut domains);
        assert_eq!(domains.domain_of(shell.pid()), FIRST);
    }

    #[test]
    fn log_6_a_process_that_takes_another_name_long_after_its_beginning_is_found_in_time() {
        assert_late_name_is_found("late", |domains| {
            for _ in 0..FULL_SCAN_EVERY {
                domains.scan();
            }
        });
    }

    #[test]
    fn log_6_who_scans_seldom_finds_another_name_at_once() {
        assert_late_name_is_found("soon", |domains| drop(domains.scan_fully().to_vec()));
    }

    #[test]
    fn log_6_a_process_that_appears_later_is_bound_when_it_matches() {
        let mut domains = Domains::new(specs(&[&format!("later=children:{}", std::process::id())])).unwrap();
        domains.scan();
        let shell = Running::shell("read x");
        let found = domains.scan().iter().any(|change| change.pid == shell.pid() && change.to == FIRST);
        assert!(found);
        assert_eq!(domains.domain_of(shell.pid()), FIRST);
        assert_eq!(
            domains.domain_of(std::process::id()),
            OTHER,
            "the scheduler selects itself only by number"
        );
    }

    #[test]
    fn log_6_a_scan_leaves_processes_to_the_kernel_that_it_has_bound_by_a_control_group() {
        let mut domains = Domains::new(specs(&["a=comm:no-such-prog", "b=comm:nor-this-one"])).unwrap();
        domains.expect_kernel_bindings();
        let shell = Running::shell("read x");
        let bound = |pid| (pid == shell.pid()).then_some(Bound { domain: FIRST, is_by_cgroup: true });
        for _ in 0..3 {
            let changes = domains.scan_beside(bound);
            assert!(changes.iter().all(|change| change.pid != shell.pid()), "{changes:?}");
        }
        assert_eq!(domains.late_bindings(), LateBindings::default());
    }

    #[test]
    fn log_6_a_process_is_bound_late_only_if_two_looks_find_it_where_it_does_not_belong() {
        let (one, two) = (Running::shell("read x"), Running::shell("read x"));
        let texts = [format!("a=pid:{},pid:{}", one.pid(), two.pid())];
        let mut domains = Domains::new(specs(&texts.each_ref().map(String::as_str))).unwrap();
        domains.expect_kernel_bindings();
        let elsewhere = Bound { domain: OTHER, is_by_cgroup: false };
        let here = Bound { domain: FIRST, ..elsewhere };
        domains.scan_beside(|_| Some(elsewhere));
        assert_eq!(
            domains.late_bindings(),
            LateBindings::default(),
            "the kernel may be about to bind it by itself"
        );
        let has_begun = Running::shell("read x");
        domains.scan_beside(|pid| Some(if pid == one.pid() { here } else { elsewhere }));
        assert_eq!(domains.late_bindings().processes, 1, "the kernel has never bound the second one");
        assert_eq!([&one, &two].map(|process| domains.domain_of(process.pid())), [FIRST; 2]);
        drop(has_begun);
    }
}
