//! Domains that are given out: the processes that no selector selects are divided into domains by a property.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use mete_kernel::{DividedBy, Division, ProcessKind};
use mete_log::DomainId;

use super::process::{self, Process};
use super::{Domain, Domains, MAX_DOMAINS, OTHER, groups, plain_name, selector};

/// The property by which processes that no selector selects are divided into domains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DivideBy {
    /// The control group.
    Cgroup,
    /// The name of the program.
    Program,
    /// The user.
    User,
}

impl Domains {
    /// Makes room for the largest number of domains. They are given out when their processes appear.
    pub fn divide(&mut self, by: DivideBy) {
        self.divide = Some(by);
        let free = Domain { name: String::new(), role: None, selectors: Vec::new() };
        self.domains.resize(MAX_DOMAINS, free);
    }

    /// What a component needs in order to divide processes into domains by itself. It gives domains out after
    /// [`Domains::hand_over`].
    pub fn division(&self) -> Option<Division> {
        let by = match self.divide? {
            DivideBy::Cgroup => return None,
            DivideBy::Program => DividedBy::Program,
            DivideBy::User => DividedBy::User,
        };
        let known = self.kinds.iter().map(|(kind, domain)| (*kind, *domain)).collect();
        Some(Division { by, known, free: self.first_free_domain()..DomainId::from_index(self.domains.len()) })
    }

    /// From now on, the kernel component gives domains out, and a scan gives out none.
    pub fn hand_over(&mut self) {
        self.is_handed_over = true;
    }

    /// Whether no domain is left to be given out.
    pub fn is_full(&self) -> bool {
        self.divide.is_some() && self.first_free_domain().index() >= self.domains.len()
    }

    /// Notes that the kernel has given a domain out.
    pub fn name_kind(&mut self, kind: ProcessKind, domain: DomainId) {
        if self.kinds.insert(kind, domain).is_none() {
            let text = match kind {
                ProcessKind::Program(name) => plain_name(OsStr::from_bytes(name.as_bytes())),
                ProcessKind::User(id) => selector::user_name(id),
            };
            self.name_domain(domain, text);
        }
    }

    /// The first domain that was not given out.
    fn first_free_domain(&self) -> DomainId {
        let named = self.domains.iter().rposition(|domain| !domain.name.is_empty());
        named.map_or(OTHER, |last| DomainId::from_index(last + 1))
    }

    /// Names a domain after a text, with a number behind it if another domain has that name.
    fn name_domain(&mut self, domain: DomainId, text: String) {
        let candidates = std::iter::once(text.clone()).chain((2..).map(|nth| format!("{text}_{nth}")));
        // One candidate more than there are domains: so at least one of them is free.
        let name = candidates
            .take(MAX_DOMAINS + 1)
            .find(|name| !name.is_empty() && self.by_name(name).is_none())
            .unwrap_or_else(|| format!("domain-{domain}"));
        if let Some(domain) = self.domains.get_mut(domain.index()) {
            domain.name = name;
        }
    }

    /// The domain of a process of this kind, if the kind has a domain. Gives one out if that is the task of a
    /// scan.
    pub(super) fn of_kind(&mut self, process: &Process) -> Option<DomainId> {
        let kind = match self.divide? {
            DivideBy::Program => ProcessKind::program(process.comm.as_bytes()),
            DivideBy::User => ProcessKind::User(process::user(process.pid)?),
            DivideBy::Cgroup => return None,
        };
        // Neither the kernel's threads nor the scheduler itself are divided into domains.
        if process.is_kernel || process.pid == std::process::id() {
            return None;
        }
        let free = self.first_free_domain();
        // After the hand-over, a scan would give out a domain that the kernel gives out at the same moment.
        if !self.kinds.contains_key(&kind) && !self.is_handed_over && free.index() < self.domains.len() {
            self.name_kind(kind, free);
        }
        self.kinds.get(&kind).copied()
    }

    /// Gives a domain to each group that has processes of its own, as long as there are free domains.
    pub(super) fn divide_groups(&mut self) {
        for (path, name) in groups::populated() {
            let free = self.first_free_domain();
            if free.index() >= self.domains.len() {
                return;
            }
            // Two groups can have the same path name in different hierarchies, so the directory is the key.
            if !self.groups.contains_key(&path) {
                self.name_domain(free, plain_name(name.as_os_str()));
                self.groups.insert(path.clone(), free);
                self.new_groups.push((path, free));
            }
        }
    }
}
