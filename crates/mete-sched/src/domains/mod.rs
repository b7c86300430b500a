//! Accounting domains by name, and who belongs to them (LOG-6, thesis §3.5).
//!
//! Domain 0, "other", is everybody who was bound to none; domain 1, "idle", the processors' idle
//! time. The user's domains follow. A process belongs to the first domain one of whose selectors
//! selects it, else to its parent's at the time when it was first seen: the kernel lets children
//! inherit in the same way.
//!
//! Scanning `/proc` costs milliseconds on a large machine, so a [scan](Domains::scan) first looks
//! whether anything has begun since the last one, and then reads only what is new. A process is
//! read a second time at the next scan, because between fork and exec it still has its parent's
//! name, and all are read again every so often.

pub mod process;
pub mod selector;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use mete_log::DomainId;
use mete_policy::Role;

use process::Process;
pub use selector::{DomainSpec, Selector};

/// Everybody who was bound to no domain.
pub const OTHER: DomainId = 0;
/// The processors' idle time.
pub const IDLE: DomainId = 1;
/// The first domain that a user can name.
pub const FIRST: DomainId = 2;
/// How many domains there can be, the two built-in ones included: one log file each, beside the null file.
pub const MAX_DOMAINS: usize = 255;

/// A process is looked at so often before it is left alone.
const LOOKS: u8 = 2;
/// Every so many scans all processes are looked at again, for the sake of a late exec or setuid.
const FULL_SCAN_EVERY: u32 = 16;
/// Longest chain of ancestors that is followed.
const MAX_ANCESTORS: usize = 64;

/// Why domains cannot be set up as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    /// Not a domain at all.
    #[error("{text:?} is no domain: write NAME=SELECTOR, for example web=comm:nginx")]
    Form {
        /// What was written.
        text: String,
    },
    /// The name has letters that would be mistaken for something else.
    #[error("{name:?} cannot be a domain's name: a name has letters, digits and any of - _ . / @")]
    Name {
        /// What was written.
        name: String,
    },
    /// The name is a built-in domain's.
    #[error(
        "the domain name {name:?} is taken: \"other\" is whatever belongs to no domain, \"idle\" the idle time"
    )]
    Reserved {
        /// The name.
        name: String,
    },
    /// Two domains have the same name.
    #[error(
        "the domain {name:?} is there twice; give several selectors to one domain as {name}=SELECTOR,SELECTOR"
    )]
    Twice {
        /// The name.
        name: String,
    },
    /// More domains than log areas have room for.
    #[error("{wanted} domains are too many: log areas have room for {}", MAX_DOMAINS - FIRST as usize)]
    TooMany {
        /// How many were given.
        wanted: usize,
    },
    /// The kind of selector is unknown.
    #[error(
        "{text:?} selects nothing: write pid:NUMBER, comm:NAME, exe:PATH, cgroup:PATH, user:NAME or children:NUMBER"
    )]
    Selector {
        /// What was written.
        text: String,
    },
    /// The value does not fit the kind of selector.
    #[error("{text:?} needs {expected}")]
    Value {
        /// What was written.
        text: String,
        /// What belongs there.
        expected: &'static str,
    },
    /// There is no such user.
    #[error("there is no user {name:?} in /etc/passwd; a number works for users that are kept elsewhere")]
    NoUser {
        /// The name.
        name: String,
    },
    /// There is no such control group.
    #[error(
        "there is no control group {}: give its directory, or its path as /proc/PID/cgroup shows it", path.display()
    )]
    NoCgroup {
        /// What was written.
        path: PathBuf,
    },
    /// Nobody is selected, and nobody can come: processes have their numbers for life.
    #[error(
        "the domain {name:?} is empty and stays so: no process is there for {selector}; ps -e -o pid,comm,user \
         shows what runs"
    )]
    NoMatch {
        /// The domain.
        name: String,
        /// The selector.
        selector: String,
    },
    /// Nobody is in any domain.
    #[error(
        "no domain has anybody in it: nothing that runs now matches {selectors}; start it first, or see what \
         runs with ps -e -o pid,comm,user"
    )]
    Nobody {
        /// The selectors of all domains.
        selectors: String,
    },
    /// Whoever is selected belongs to an earlier domain.
    #[error(
        "the domain {name:?} is empty: what matches {selector} belongs to {owner:?} already, because the domain \
         that is named first goes first; name {name:?} first"
    )]
    AllTaken {
        /// The domain.
        name: String,
        /// The selector.
        selector: String,
        /// The earlier domain.
        owner: String,
    },
}

/// A domain that nobody is in yet. Whoever matches later belongs to it from then on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Empty {
    /// The domain.
    pub name: String,
    /// Who would belong to it.
    pub selectors: String,
}

impl fmt::Display for Empty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Empty { name, selectors } = self;
        write!(
            f,
            "the domain {name:?} is empty so far: nothing that runs now matches {selectors}; whoever starts later and \
             matches belongs to it"
        )
    }
}

/// One domain.
#[derive(Clone, Debug)]
struct Domain {
    name: String,
    role: Option<Role>,
    selectors: Vec<Selector>,
}

/// How a process has come to its domain; what comes first here goes before what comes later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Selected,
    Cgroup,
    Inherited,
}

/// What is known of a process.
#[derive(Clone, Debug)]
struct Known {
    start: u64,
    parent: u32,
    looks: u8,
    domain: DomainId,
    how: How,
}

/// Somebody has come to a domain or left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The process.
    pub pid: u32,
    /// Its domain before.
    pub from: DomainId,
    /// Its domain now.
    pub to: DomainId,
    /// Whether it is still there.
    pub is_alive: bool,
    /// Whether it came or left with its control group, which the kernel follows itself.
    pub is_by_cgroup: bool,
}

/// All domains and their processes. See the [module](self).
#[derive(Clone, Debug)]
pub struct Domains {
    domains: Vec<Domain>,
    known: BTreeMap<u32, Known>,
    newest: Option<u32>,
    scans: u32,
    has_young: bool,
    changes: Vec<Change>,
}

impl Domains {
    /// The two built-in domains and these, without anybody in them yet.
    ///
    /// # Errors
    ///
    /// [`DomainError`] if a name is there twice or taken, or there are too many.
    pub fn new(specs: impl IntoIterator<Item = DomainSpec>) -> Result<Domains, DomainError> {
        let built_in = ["other", "idle"];
        let built_in =
            built_in.map(|name| Domain { name: name.into(), role: Some(Role::Bystander), selectors: vec![] });
        let mut domains = Vec::from(built_in);
        for DomainSpec { name, role, selectors } in specs {
            match domains.iter().position(|domain| domain.name == name) {
                Some(0 | 1) => return Err(DomainError::Reserved { name }),
                Some(_) => return Err(DomainError::Twice { name }),
                None => domains.push(Domain { name, role, selectors }),
            }
        }
        if domains.len() > MAX_DOMAINS {
            return Err(DomainError::TooMany { wanted: domains.len() - usize::from(FIRST) });
        }
        let (known, changes) = (BTreeMap::new(), Vec::new());
        Ok(Domains { domains, known, newest: None, scans: 0, has_young: true, changes })
    }

    /// How many domains there are, "other" and "idle" included.
    #[expect(clippy::len_without_is_empty, reason = "there are always two")]
    pub fn len(&self) -> usize {
        self.domains.len()
    }

    /// The name of a domain.
    pub fn name(&self, domain: DomainId) -> &str {
        self.domains.get(usize::from(domain)).map_or("?", |domain| domain.name.as_str())
    }

    /// All names, by number.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.domains.iter().map(|domain| domain.name.as_str())
    }

    /// The domain of that name.
    pub fn by_name(&self, name: &str) -> Option<DomainId> {
        self.domains.iter().position(|domain| domain.name == name).map(|number| number as DomainId)
    }

    /// The role that the user gave a domain.
    pub fn role(&self, domain: DomainId) -> Option<Role> {
        self.domains.get(usize::from(domain))?.role
    }

    /// The domain of a process, as of the last scan.
    pub fn domain_of(&self, pid: u32) -> DomainId {
        self.known.get(&pid).map_or(OTHER, |known| known.domain)
    }

    /// The processes of a domain, as of the last scan.
    pub fn members(&self, domain: DomainId) -> impl Iterator<Item = u32> {
        self.known.iter().filter(move |(_, known)| known.domain == domain).map(|(&pid, _)| pid)
    }

    /// All who belong to one of the user's domains, for a source that has just come.
    pub fn present(&self) -> impl Iterator<Item = Change> {
        let bound = self.known.iter().filter(|(_, known)| known.domain >= FIRST);
        bound.map(|(&pid, known)| {
            let is_by_cgroup = known.how == How::Cgroup;
            Change { pid, from: OTHER, to: known.domain, is_alive: true, is_by_cgroup }
        })
    }

    /// Control groups that are bound as such, with their domain.
    pub fn cgroups(&self) -> impl Iterator<Item = (&Path, DomainId)> {
        self.domains.iter().enumerate().flat_map(|(number, domain)| {
            domain.selectors.iter().filter_map(move |selector| match selector {
                Selector::Cgroup(path) => Some((path.as_path(), number as DomainId)),
                _ => None,
            })
        })
    }

    /// The domains that nobody is in yet. A selector of names, groups or users can come true at any
    /// time, and a scan binds whoever makes it true.
    ///
    /// # Errors
    ///
    /// [`DomainError::NoMatch`] or [`DomainError::AllTaken`] names a domain that stays empty, and
    /// [`DomainError::Nobody`] says that there is nobody in any: then something is mistyped.
    pub fn check_matches(&self) -> Result<Vec<Empty>, DomainError> {
        let is_empty = |number: &DomainId| self.members(*number).next().is_none();
        let empty: Vec<_> = (FIRST..self.len() as DomainId).filter(is_empty).collect();
        empty.iter().try_for_each(|&number| self.check_can_fill(number))?;
        let all = self.len() - usize::from(FIRST);
        let empty: Vec<_> = empty.into_iter().map(|number| self.empty(number)).collect();
        if all > 0 && empty.len() == all {
            let selectors: Vec<_> = empty.into_iter().map(|empty| empty.selectors).collect();
            return Err(DomainError::Nobody { selectors: selectors.join(" or ") });
        }
        Ok(empty)
    }

    fn empty(&self, number: DomainId) -> Empty {
        let Domain { name, selectors, .. } = &self.domains[usize::from(number)];
        let texts: Vec<_> = selectors.iter().map(Selector::to_string).collect();
        Empty { name: name.clone(), selectors: texts.join(" or ") }
    }

    fn check_can_fill(&self, number: DomainId) -> Result<(), DomainError> {
        let Empty { name, selectors: selector } = self.empty(number);
        let selectors = &self.domains[usize::from(number)].selectors;
        let in_cgroups = self.cgroup_members_of(number);
        let is_selected = |pid: &u32| {
            let selects = |process: Process| selectors.iter().any(|selector| selector.selects(&process));
            in_cgroups.contains_key(pid) || Process::read(*pid).is_some_and(selects)
        };
        let taken = self.known.iter().find(|(pid, known)| known.domain >= FIRST && is_selected(pid));
        match taken.map(|(_, known)| self.name(known.domain).to_owned()) {
            Some(owner) => Err(DomainError::AllTaken { name, selector, owner }),
            None if selectors.iter().any(Selector::can_come_true) => Ok(()),
            None => Err(DomainError::NoMatch { name, selector }),
        }
    }

    fn cgroup_members_of(&self, number: DomainId) -> BTreeMap<u32, DomainId> {
        let mut members = BTreeMap::new();
        for (path, domain) in self.cgroups().filter(|&(_, domain)| domain == number) {
            collect_cgroup(path, domain, &mut members);
        }
        members
    }

    /// Brings membership up to date and says what has changed. Costs one read of a small file as
    /// long as nothing begins.
    pub fn scan(&mut self) -> &[Change] {
        self.changes.clear();
        self.scans = self.scans.wrapping_add(1);
        let newest = process::newest();
        let is_full = self.scans.is_multiple_of(FULL_SCAN_EVERY) && self.has_patterns();
        let is_quiet = newest.is_some() && newest == self.newest && !self.has_young;
        // Tasks move between cgroups without a new process.
        if is_quiet && !is_full && self.cgroups().next().is_none() {
            return &self.changes;
        }
        self.newest = newest;
        self.look_at_all(is_full);
        &self.changes
    }

    fn has_patterns(&self) -> bool {
        self.domains.iter().any(|domain| domain.selectors.iter().any(Selector::is_pattern))
    }

    fn look_at_all(&mut self, is_full: bool) {
        let present = process::processes();
        self.forget_missing(&present.iter().copied().collect());
        let fresh: Vec<_> = present.into_iter().filter_map(|pid| self.look_at(pid, is_full)).collect();
        // Parents first where a number tells; where numbers have begun anew, the chain is followed.
        for process in &fresh {
            let (domain, how) = self.place(process);
            self.settle(process.pid, domain, how);
        }
        self.follow_cgroups();
        self.has_young = self.known.values().any(|known| known.looks < LOOKS);
    }

    fn forget_missing(&mut self, present: &BTreeSet<u32>) {
        let missing: Vec<_> = self.known.keys().filter(|pid| !present.contains(pid)).copied().collect();
        missing.into_iter().for_each(|pid| self.forget(pid));
    }

    fn forget(&mut self, pid: u32) {
        if let Some(Known { domain: from, .. }) =
            self.known.remove(&pid).filter(|known| known.domain != OTHER)
        {
            self.changes.push(Change { pid, from, to: OTHER, is_alive: false, is_by_cgroup: false });
        }
    }

    /// Reads a process if it is new, young or everybody's turn.
    fn look_at(&mut self, pid: u32, is_full: bool) -> Option<Process> {
        let looks = self.known.get(&pid).map_or(0, |known| known.looks);
        if looks >= LOOKS && !is_full {
            return None;
        }
        let Some(process) = Process::read(pid) else {
            self.forget(pid);
            return None;
        };
        let before = self.known.get(&pid).filter(|known| known.start == process.start);
        let (looks, domain, how) =
            before.map_or((0, OTHER, How::Inherited), |known| (known.looks, known.domain, known.how));
        let (start, parent) = (process.start, process.parent);
        let known = Known { start, parent, looks: looks.saturating_add(1), domain, how };
        self.known.insert(pid, known);
        Some(process)
    }

    /// The domain of a process: by selector, else what it has, else an ancestor's.
    fn place(&self, process: &Process) -> (DomainId, How) {
        let own = process.pid == std::process::id();
        if let Some(domain) = self.selected(process, own) {
            return (domain, How::Selected);
        }
        match self.known.get(&process.pid) {
            // What was selected once stays, as it does in the kernel.
            Some(known) if known.domain != OTHER || own => (known.domain, known.how),
            _ => self.inherited(process.parent),
        }
    }

    /// The scheduler itself is in a domain only if its number was given.
    fn selected(&self, process: &Process, is_own: bool) -> Option<DomainId> {
        let selects = |selector: &Selector| {
            selector.selects(process) && (!is_own || matches!(selector, Selector::Pid(_)))
        };
        let found = self.domains.iter().position(|domain| domain.selectors.iter().any(selects));
        found.map(|number| number as DomainId)
    }

    fn inherited(&self, mut ancestor: u32) -> (DomainId, How) {
        for _ in 0..MAX_ANCESTORS {
            match self.known.get(&ancestor) {
                // Control groups list their members themselves, children included.
                Some(known) if known.domain != OTHER && known.how != How::Cgroup => {
                    return (known.domain, How::Inherited);
                }
                Some(known) => ancestor = known.parent,
                None => break,
            }
        }
        (OTHER, How::Inherited)
    }

    /// Who is in a bound control group, and was not selected otherwise; and who has left it.
    fn follow_cgroups(&mut self) {
        let members = self.cgroup_members();
        let has_left = |(pid, known): (&u32, &Known)| {
            (known.how == How::Cgroup && !members.contains_key(pid)).then_some(*pid)
        };
        let left: Vec<_> = self.known.iter().filter_map(has_left).collect();
        for pid in left {
            self.settle(pid, OTHER, How::Cgroup);
        }
        for (pid, domain) in members {
            if self.known.get(&pid).is_some_and(|known| known.how != How::Selected) {
                self.settle(pid, domain, How::Cgroup);
            }
        }
    }

    fn settle(&mut self, pid: u32, to: DomainId, how: How) {
        let Some(known) = self.known.get_mut(&pid) else { return };
        let from = std::mem::replace(&mut known.domain, to);
        known.how = if to == OTHER { How::Inherited } else { how };
        if from != to {
            self.changes.push(Change { pid, from, to, is_alive: true, is_by_cgroup: how == How::Cgroup });
        }
    }

    fn cgroup_members(&self) -> BTreeMap<u32, DomainId> {
        let mut members = BTreeMap::new();
        for (path, domain) in self.cgroups() {
            collect_cgroup(path, domain, &mut members);
        }
        members
    }
}

/// Everybody in a control group and below.
fn collect_cgroup(directory: &Path, domain: DomainId, into: &mut BTreeMap<u32, DomainId>) {
    let text = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    for pid in text.lines().filter_map(|line| line.parse().ok()) {
        into.entry(pid).or_insert(domain);
    }
    let below = fs::read_dir(directory).into_iter().flatten().flatten();
    for directory in below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        collect_cgroup(&directory.path(), domain, into);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn specs(texts: &[&str]) -> Vec<DomainSpec> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    /// A process that is ended with the test, however it ends.
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
            // The shell waits for its input and goes when it ends.
            drop(self.0.stdin.take());
            let _ = self.0.wait();
        }
    }

    #[test]
    fn log_6_a_name_twice_or_taken_is_refused() {
        let twice = Domains::new(specs(&["a=pid:1", "a=pid:2"])).unwrap_err();
        assert_eq!(twice, DomainError::Twice { name: "a".into() });
        let taken = Domains::new(specs(&["idle=pid:1"])).unwrap_err();
        assert_eq!(taken, DomainError::Reserved { name: "idle".into() });
    }

    #[test]
    fn log_6_more_domains_than_fit_are_refused() {
        let spec = |number: usize| format!("d{number}=pid:1").parse().unwrap();
        assert!(Domains::new((0..253).map(spec)).is_ok());
        assert_eq!(Domains::new((0..254).map(spec)).unwrap_err(), DomainError::TooMany { wanted: 254 });
    }

    #[test]
    fn log_6_a_selector_that_matches_nothing_is_named() {
        let error = |texts: &[&str]| {
            let mut domains = Domains::new(specs(texts)).unwrap();
            domains.scan();
            domains.check_matches().unwrap_err()
        };
        let selectors = "comm:no-such-prog or user:4294967294".to_owned();
        let nobody = DomainError::Nobody { selectors };
        assert_eq!(error(&["none=comm:no-such-prog", "no=user:4294967294"]), nobody);
        // No process has a number beyond 2^22.
        let dead = DomainError::NoMatch { name: "none".into(), selector: "pid:4194305".into() };
        assert_eq!(error(&["own=children:1", "none=pid:4194305"]), dead);
        let dead = DomainError::NoMatch { name: "none".into(), selector: "children:4194305".into() };
        assert_eq!(error(&["own=children:1", "none=children:4194305"]), dead);
    }

    #[test]
    fn log_6_beside_a_domain_with_somebody_in_it_one_that_can_fill_may_be_empty() {
        let shell = Running::shell("read x");
        let texts =
            [format!("here=pid:{}", shell.pid()), "later=comm:no-such-prog,user:4294967294".to_owned()];
        let mut domains = Domains::new(specs(&texts.each_ref().map(String::as_str))).unwrap();
        domains.scan();
        let selectors = "comm:no-such-prog or user:4294967294".into();
        assert_eq!(domains.check_matches(), Ok(vec![Empty { name: "later".into(), selectors }]));
    }

    #[test]
    fn log_6_a_domain_whose_processes_an_earlier_one_has_is_told_which() {
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
        // Something begins, so the scan looks again.
        drop(Running::shell("read x"));
        let gone: Vec<_> = domains.scan().to_vec();
        assert!(
            gone.contains(&Change { pid, from: a, to: OTHER, is_alive: false, is_by_cgroup: false }),
            "{gone:?}"
        );
        assert_eq!(domains.members(a).count(), 0);
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
}
