//! What a component is told, and for which domains its rows count (LOG-6, LOG-11).
//!
//! A row says in which domain and for which correspondent something happened, and any program can write any
//! row. Where the scheduler acts for several users, a row must not cause processes of other users to be
//! moved. So a component speaks only for the domain that its own process is in, and only about domains that
//! it was told of.
//!
//! A component is told of the processes of its own user, and of no others. There is one exception: a driver
//! that was named as such (`--driver`) is told of all processes, because the user who named it believes what
//! it says about clients. A driver may be selected by a name or a program, which any user's process can have.
//! Then the exception holds for the user whose driver was there first. If drivers of several users were there
//! at the beginning, it holds for none of them.
//!
//! The components of root, and of the user who runs the scheduler, may say everything: they could do by
//! themselves whatever their rows bring about.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mete_log::{DomainId, NO_DOMAIN};

use crate::domains::process;
use crate::domains::{Change, OTHER};

/// The number of domains that rows can name.
const DOMAINS: usize = 256;
/// No user has this number, so no process belongs to it and it speaks for nothing.
const NO_USER: u32 = u32::MAX;
/// The first checks are all made, because a process may change its user soon after its start. Later it seldom
/// does.
const EARLY_CHECKS: u32 = 8;
/// After the first checks, one check in this number is made.
const CHECK_EVERY: u32 = 16;

/// What the standing of all components is based on.
#[derive(Debug, Default)]
pub struct Trust {
    /// Domains that were named as drivers.
    drivers: Vec<DomainId>,
    /// The domains into which any user can bring a process, with the user who is believed there.
    owners: Mutex<BTreeMap<DomainId, DomainOwner>>,
    /// The users of processes that were looked up recently.
    users: Mutex<BTreeMap<u32, Option<u32>>>,
}

/// The user who is believed in a domain that is selected by a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DomainOwner {
    /// No user has had a process there so far.
    Unknown,
    /// The first user with a process there.
    User(u32),
    /// Several users had processes there at the beginning, so it is not known which user was meant.
    Several,
}

impl Trust {
    /// The trust where these domains were named as drivers.
    pub fn in_drivers(drivers: Vec<DomainId>) -> Trust {
        Trust { drivers, ..Trust::default() }
    }

    /// Adds the domains that are selected by name, into which any user can therefore bring a process.
    /// `present` are members at the beginning.
    pub fn with_open(self, open: &[DomainId], present: impl Iterator<Item = (u32, DomainId)>) -> Trust {
        let mut owners: BTreeMap<_, _> = open.iter().map(|&domain| (domain, DomainOwner::Unknown)).collect();
        for (pid, domain) in present {
            // Root's processes may say everything in any case, so they do not decide which user is believed.
            let user = self.user_of(pid).filter(|&user| user != 0);
            if let (Some(owner), Some(user)) = (owners.get_mut(&domain), user) {
                *owner = match *owner {
                    DomainOwner::Unknown => DomainOwner::User(user),
                    DomainOwner::User(first) if first == user => DomainOwner::User(user),
                    _ => DomainOwner::Several,
                };
            }
        }
        Trust { owners: Mutex::new(owners), ..self }
    }

    /// Decides whether a component of this user in this domain is believed as a driver. If the domain has no
    /// owner yet, records this user as its owner: the first user who comes is believed from then on.
    fn admit_driver(&self, domain: DomainId, user: u32) -> bool {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        // A domain that is not in the table is not open to other users, so it needs no owner.
        let is_believed = owners.get_mut(&domain).is_none_or(|owner| {
            if *owner == DomainOwner::Unknown {
                *owner = DomainOwner::User(user);
            }
            *owner == DomainOwner::User(user)
        });
        is_believed && self.drivers.contains(&domain)
    }

    /// Whether a process belongs to this user.
    fn belongs(&self, pid: u32, user: u32) -> bool {
        self.user_of(pid) == Some(user)
    }

    /// Forgets which process belongs to which user: processes may have changed their users, and numbers of
    /// processes may have been given out again.
    pub fn look_anew(&self) {
        self.users().clear();
    }

    fn user_of(&self, pid: u32) -> Option<u32> {
        *self.users().entry(pid).or_insert_with(|| process::user(pid))
    }

    fn users(&self) -> MutexGuard<'_, BTreeMap<u32, Option<u32>>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The domains that rows of a component may name.
#[derive(Clone, Debug)]
pub struct Claims {
    own: RecentDomains,
    told: RecentDomains,
    /// Whether the component is told of every process.
    all_told: bool,
}

/// A set of domains as of now, with the domains that were in it until recently: rows from that time may still
/// be unread.
#[derive(Clone, Copy, Debug, Default)]
struct RecentDomains {
    now: DomainSet,
    /// What has left the set: since the last aging, and between the last two.
    before: [DomainSet; 2],
}

#[derive(Clone, Copy, Debug, Default)]
struct DomainSet([u64; DOMAINS / 64]);

impl DomainSet {
    fn has(&self, domain: DomainId) -> bool {
        self.0.get(domain.index() / 64).is_some_and(|word| word >> (domain.index() % 64) & 1 != 0)
    }

    fn put(&mut self, domain: DomainId, is_in: bool) {
        if let Some(word) = self.0.get_mut(domain.index() / 64) {
            *word = *word & !(1 << (domain.index() % 64)) | u64::from(is_in) << (domain.index() % 64);
        }
    }
}

impl RecentDomains {
    fn has(&self, domain: DomainId) -> bool {
        self.now.has(domain) || self.before.iter().any(|set| set.has(domain))
    }

    fn put(&mut self, domain: DomainId, is_in: bool) {
        if !is_in && self.now.has(domain) {
            self.before[0].put(domain, true);
        }
        self.now.put(domain, is_in);
    }

    fn age(&mut self) {
        // What has just left stays for one more round, so that its rows are surely read before it is
        // forgotten.
        self.before = [DomainSet::default(), self.before[0]];
    }
}

impl Claims {
    /// Whether a row that names this domain and this correspondent counts.
    #[inline]
    pub fn allow(&self, domain: DomainId, correspondent: DomainId) -> bool {
        self.own.has(domain) && (correspondent == NO_DOMAIN || self.knows(correspondent))
    }

    fn knows(&self, domain: DomainId) -> bool {
        self.all_told || self.own.has(domain) || self.told.has(domain)
    }
}

/// One component's standing. See the [module](self).
#[derive(Debug)]
pub struct Standing {
    pid: u32,
    user: u32,
    own: DomainId,
    checks: u32,
    trust: Arc<Trust>,
    /// `None` for a component that may say everything.
    limits: Option<ComponentLimits>,
}

/// What is kept about a component that may not say everything.
#[derive(Debug)]
struct ComponentLimits {
    claims: Claims,
    /// The processes that belong to a domain, whether the component was told of them or not.
    bound: BTreeMap<u32, DomainId>,
    /// The processes that the component was told of.
    told: BTreeMap<u32, DomainId>,
    /// The number of processes that it was told of, by domain.
    counts: Vec<u32>,
}

impl Standing {
    /// The standing of a component at whose socket this process of this user listens.
    pub fn new(pid: u32, listener: u32, trust: Arc<Trust>) -> Standing {
        // A process that root has started may have given up root's rights since.
        let user = if listener == 0 { process::user(pid).unwrap_or(NO_USER) } else { listener };
        let may_say_all = user == 0 || user == rustix::process::geteuid().as_raw();
        let limits = (!may_say_all).then(ComponentLimits::new);
        Standing { pid, user, own: OTHER, checks: 0, trust, limits }
    }

    /// The domains that rows may name; `None` for all domains.
    pub fn claims(&self) -> Option<&Claims> {
        self.limits.as_ref().map(|limits| &limits.claims)
    }

    /// The domain of its own process.
    pub fn own(&self) -> DomainId {
        self.own
    }

    /// Follows a change, and returns what the component must be told because of it.
    pub fn follow(&mut self, change: Change) -> Vec<Change> {
        let is_bound = change.is_alive && change.to != OTHER;
        if change.pid == self.pid {
            // By now, the number may belong to another user's process.
            let is_its = self.limits.is_none() || self.trust.belongs(self.pid, self.user);
            self.own = if is_bound && is_its { change.to } else { OTHER };
        }
        let (trust, user) = (&self.trust, self.user);
        let Some(limits) = &mut self.limits else { return vec![change] };
        if is_bound {
            limits.bound.insert(change.pid, change.to);
        } else {
            limits.bound.remove(&change.pid);
        }
        if change.pid != self.pid {
            let is_driver = limits.claims.all_told;
            let told = limits.tell(change.pid, |pid| is_driver || trust.belongs(pid, user));
            return told.into_iter().collect();
        }
        limits.claims.speak_for(self.own);
        // The domain comes first, so that a component in "other" is recorded as the owner of nothing.
        let is_driver = self.own != OTHER && trust.admit_driver(self.own, user);
        let has_turned = std::mem::replace(&mut limits.claims.all_told, is_driver) != is_driver;
        // A component that has become a driver, or is one no longer, must be told about every process anew.
        let all: Vec<_> = if has_turned { limits.bound.keys().copied().collect() } else { vec![change.pid] };
        all.into_iter()
            .filter_map(|pid| limits.tell(pid, |pid| is_driver || trust.belongs(pid, user)))
            .collect()
    }

    /// Notes that some time has passed. Returns whether the component still is what it was taken for: for
    /// example root's.
    pub fn is_up_to_date(&mut self) -> bool {
        if let Some(limits) = &mut self.limits {
            limits.claims.own.age();
            limits.claims.told.age();
            // Limits hold whatever user the component's process has now.
            return true;
        }
        self.checks = self.checks.wrapping_add(1);
        let is_due = self.checks <= EARLY_CHECKS || self.checks.is_multiple_of(CHECK_EVERY);
        // A process that has ended has no user; that is noticed elsewhere.
        !is_due || process::user(self.pid).is_none_or(|user| user == self.user)
    }
}

impl Claims {
    /// Makes `own` the one domain that the component speaks for, apart from "other".
    fn speak_for(&mut self, own: DomainId) {
        // "other" stays in the set: what belongs to no domain concerns no user.
        for domain in DomainId::all_below(DOMAINS).filter(|&domain| domain != OTHER) {
            self.own.put(domain, domain == own);
        }
    }
}

impl ComponentLimits {
    fn new() -> ComponentLimits {
        let (own, told) = (RecentDomains::default(), RecentDomains::default());
        let mut claims = Claims { own, told, all_told: false };
        // What belongs to no domain concerns no user.
        claims.own.put(OTHER, true);
        let (bound, told) = Default::default();
        ComponentLimits { claims, bound, told, counts: vec![0; DOMAINS] }
    }

    /// What the component must be told about a process; `None` if nothing has changed for it.
    fn tell(&mut self, pid: u32, may_know: impl Fn(u32) -> bool) -> Option<Change> {
        let now = self.bound.get(&pid).copied().filter(|_| may_know(pid));
        let before = self.told.get(&pid).copied();
        if now == before {
            return None;
        }
        match now {
            Some(domain) => _ = self.told.insert(pid, domain),
            None => _ = self.told.remove(&pid),
        }
        now.into_iter().for_each(|domain| self.count(domain, true));
        before.into_iter().for_each(|domain| self.count(domain, false));
        let (from, to) = (before.unwrap_or(OTHER), now.unwrap_or(OTHER));
        Some(Change { pid, from, to, is_alive: now.is_some(), is_by_cgroup: false })
    }

    fn count(&mut self, domain: DomainId, one_more: bool) {
        let Some(count) = self.counts.get_mut(domain.index()) else { return };
        *count = if one_more { count.saturating_add(1) } else { count.saturating_sub(1) };
        // A domain stays known as long as the component knows of one process in it.
        self.claims.told.put(domain, *count > 0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::domains::IDLE;

    const OWN: u32 = 64_001;
    const OTHERS: u32 = 64_002;
    const DRIVER: DomainId = DomainId::new(2);
    const CLIENT: DomainId = DomainId::new(3);
    const VICTIM: DomainId = DomainId::new(4);

    fn trust(drivers: &[DomainId]) -> Arc<Trust> {
        let trust = Trust::in_drivers(drivers.to_vec());
        // Numbers that no process has.
        let users = [(5_000_001, OWN), (5_000_002, OWN), (5_000_003, OTHERS), (5_000_004, 64_003)];
        trust.users().extend(users.map(|(pid, user)| (pid, Some(user))));
        Arc::new(trust)
    }

    fn change(pid: u32, to: DomainId) -> Change {
        Change { pid: 5_000_000 + pid, from: OTHER, to, is_alive: to != OTHER, is_by_cgroup: false }
    }

    fn told(standing: &mut Standing, pid: u32, to: DomainId) -> Vec<(u32, DomainId)> {
        let told = standing.follow(change(pid, to));
        told.into_iter().map(|change| (change.pid - 5_000_000, change.to)).collect()
    }

    #[test]
    fn log_6_a_component_is_told_of_its_own_user_s_processes_and_speaks_for_itself_about_them() {
        let mut standing = Standing::new(5_000_001, OWN, trust(&[]));
        assert_eq!(told(&mut standing, 3, VICTIM), []);
        assert_eq!(told(&mut standing, 2, CLIENT), [(2, CLIENT)]);
        assert_eq!(told(&mut standing, 1, DRIVER), [(1, DRIVER)]);
        let claims = standing.claims().unwrap();
        for (domain, correspondent, counts) in [
            (DRIVER, CLIENT, true),
            (DRIVER, NO_DOMAIN, true),
            (DRIVER, DRIVER, true),
            (DRIVER, OTHER, true),
            (OTHER, CLIENT, true),
            (DRIVER, VICTIM, false),
            (VICTIM, CLIENT, false),
            (CLIENT, DRIVER, false),
            (IDLE, CLIENT, false),
            (DomainId::new(256 + 2), CLIENT, false),
            (DRIVER, DomainId::new(256 + 3), false),
        ] {
            assert_eq!(claims.allow(domain, correspondent), counts, "{domain} about {correspondent}");
        }
    }

    #[test]
    fn log_6_what_a_component_may_no_longer_say_counts_as_long_as_such_rows_may_be_unread() {
        let mut standing = Standing::new(5_000_001, OWN, trust(&[]));
        told(&mut standing, 1, DRIVER);
        told(&mut standing, 2, CLIENT);
        assert_eq!(told(&mut standing, 2, OTHER), [(2, OTHER)]);
        assert_eq!(told(&mut standing, 1, VICTIM), [(1, VICTIM)]);
        let allows = |standing: &Standing| {
            let claims = standing.claims().unwrap();
            (claims.allow(DRIVER, NO_DOMAIN), claims.allow(VICTIM, CLIENT), claims.allow(VICTIM, VICTIM))
        };
        assert_eq!(allows(&standing), (true, true, true));
        assert!(standing.is_up_to_date());
        assert_eq!(allows(&standing), (true, true, true));
        assert!(standing.is_up_to_date());
        assert_eq!(allows(&standing), (false, false, true));
    }

    #[test]
    fn log_6_a_driver_that_was_named_as_such_knows_all_and_says_it_of_itself_only() {
        let mut standing = Standing::new(5_000_001, OWN, trust(&[DRIVER]));
        assert_eq!(told(&mut standing, 3, VICTIM), []);
        assert_eq!(told(&mut standing, 1, DRIVER), [(1, DRIVER), (3, VICTIM)]);
        assert_eq!(told(&mut standing, 4, VICTIM), [(4, VICTIM)], "a process that comes later, too");
        let claims = standing.claims().unwrap();
        assert!(claims.allow(DRIVER, VICTIM) && !claims.allow(VICTIM, DRIVER));
        assert_eq!(told(&mut standing, 1, CLIENT), [(1, CLIENT), (3, OTHER), (4, OTHER)]);
    }

    #[test]
    fn log_6_a_driver_known_by_its_name_is_believed_if_it_is_of_the_user_who_was_there_first() {
        let open = |present: &[u32]| {
            let trust = Arc::into_inner(trust(&[DRIVER])).unwrap();
            let present: Vec<_> = present.iter().map(|pid| (5_000_000 + pid, DRIVER)).collect();
            Arc::new(trust.with_open(&[DRIVER], present.into_iter()))
        };
        let tells = |trust: &Arc<Trust>, pid: u32, user| {
            let mut standing = Standing::new(5_000_000 + pid, user, Arc::clone(trust));
            told(&mut standing, pid, DRIVER);
            !told(&mut standing, 4, VICTIM).is_empty()
        };
        let trust = open(&[1, 2]);
        assert!(tells(&trust, 1, OWN) && tells(&trust, 2, OWN) && !tells(&trust, 3, OTHERS));
        let trust = open(&[]);
        assert!(tells(&trust, 3, OTHERS) && !tells(&trust, 1, OWN), "the first user who comes");
        let trust = open(&[1, 3]);
        assert!(!tells(&trust, 1, OWN) && !tells(&trust, 3, OTHERS), "it is not known which user was meant");
    }

    #[test]
    fn log_6_a_process_number_that_another_user_has_now_gives_a_component_nothing() {
        let mut standing = Standing::new(5_000_003, OWN, trust(&[VICTIM]));
        assert_eq!(told(&mut standing, 3, VICTIM), []);
        assert!(!standing.claims().unwrap().allow(VICTIM, NO_DOMAIN));
        assert_eq!(standing.own(), OTHER);
    }

    #[test]
    fn log_6_a_component_that_may_say_everything_is_let_go_once_it_has_another_user() {
        let own = rustix::process::geteuid().as_raw();
        let of_us = || Standing::new(std::process::id(), own, Arc::default());
        let of_another_by_now = |standing: Standing| Standing { user: own.wrapping_add(1), ..standing };
        assert!(!of_another_by_now(of_us()).is_up_to_date(), "soon after it was taken");
        let mut standing = of_us();
        assert!((0..100).all(|_| standing.is_up_to_date()));
        let mut standing = of_another_by_now(standing);
        assert_eq!((0..CHECK_EVERY).filter(|_| !standing.is_up_to_date()).count(), 1, "later now and then");
    }

    #[test]
    fn log_6_what_root_has_started_and_is_another_user_s_by_now_may_not_say_everything() {
        const TEST: &str = "log_6_what_root_has_started_and_is_another_user_s_by_now_may_not_say_everything";
        if !rustix::process::geteuid().is_root() {
            println!("SKIPPED: {TEST}: not root");
            return;
        }
        let of = |command: &mut Command| {
            let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
            let standing = Standing::new(child.id(), 0, Arc::default());
            drop(child.stdin.take());
            child.wait().unwrap();
            standing.claims().is_some()
        };
        assert!(!of(&mut Command::new("cat")));
        assert!(of(Command::new("cat").uid(OWN)));
    }

    #[test]
    fn log_6_users_are_those_whose_rights_processes_have() {
        let own = rustix::process::geteuid().as_raw();
        assert_eq!((process::user(std::process::id()), process::user(5_000_001)), (Some(own), None));
        let standing = Standing::new(std::process::id(), own, Arc::default());
        assert!(standing.claims().is_none(), "the user who runs the scheduler may say everything");
    }
}
