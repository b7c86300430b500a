//! Which domains are empty at the start, and whether that is an error.

use std::collections::BTreeMap;

use mete_log::DomainId;

use super::process::{self, Process};
use super::{Domain, DomainError, Domains, EmptyDomain, FIRST, Selector, groups, user_domains};

impl Domains {
    /// The domains that have no members so far. A selector of names, groups or users may select a process at
    /// any later time; a scan binds the process then.
    ///
    /// # Errors
    ///
    /// [`DomainError::NoMatch`] or [`DomainError::AllTaken`] names a domain that stays empty.
    /// [`DomainError::NoMembers`] says that no domain has a member. Then a selector is probably mistyped, so
    /// this is an error, unless a domain waits for the children of a process that is there.
    pub fn check_matches(&self) -> Result<Vec<EmptyDomain>, DomainError> {
        let empty = self.empty_so_far()?;
        let all = self.len() - FIRST.index();
        let has_parent = user_domains(self.len())
            .any(|number| self.members(number).next().is_none() && self.waits_for_children(number));
        if all > 0 && empty.len() == all && !has_parent {
            let selectors: Vec<_> = empty.into_iter().map(|empty| empty.selectors).collect();
            let unread = user_domains(self.len()).map(|number| self.unread(number)).max().unwrap_or(0);
            return Err(DomainError::NoMembers { selectors: selectors.join(" or "), unread });
        }
        Ok(empty)
    }

    /// The domains that have no members so far, which all of them may be: a service that starts with the
    /// machine may come before those that it serves.
    ///
    /// # Errors
    ///
    /// [`DomainError::NoMatch`] or [`DomainError::AllTaken`] names a domain that stays empty.
    pub fn empty_so_far(&self) -> Result<Vec<EmptyDomain>, DomainError> {
        let empty = user_domains(self.len()).filter(|&number| self.members(number).next().is_none());
        empty.map(|number| self.check_can_fill(number).map(|()| self.empty(number))).collect()
    }

    /// Whether a process that is there only has to start another process in order to fill the domain.
    fn waits_for_children(&self, number: DomainId) -> bool {
        let mut selectors = self.domains[number.index()].selectors.iter();
        selectors.any(|selector| matches!(selector, Selector::Children(_)) && selector.can_come_true())
    }

    fn empty(&self, number: DomainId) -> EmptyDomain {
        let Domain { name, selectors, .. } = &self.domains[number.index()];
        let texts: Vec<_> = selectors.iter().map(Selector::to_string).collect();
        EmptyDomain { name: name.clone(), selectors: texts.join(" or "), unread: self.unread(number) }
    }

    /// The number of processes that may belong to a domain by their program, where this user may not see the
    /// program.
    fn unread(&self, number: DomainId) -> usize {
        let selectors = &self.domains[number.index()].selectors;
        let asks = selectors.iter().any(|selector| matches!(selector, Selector::Program(_)));
        // What is hidden from root, too, is not hidden for lack of rights.
        if !asks || rustix::process::geteuid().is_root() {
            return 0;
        }
        self.known.keys().filter(|&&pid| process::hides_program(pid)).count()
    }

    /// An error if a domain without members can have none later.
    fn check_can_fill(&self, number: DomainId) -> Result<(), DomainError> {
        let EmptyDomain { name, selectors: selector, .. } = self.empty(number);
        let selectors = &self.domains[number.index()].selectors;
        let in_cgroups = self.cgroup_members_of(number);
        let taken = self.known.iter().filter(|(_, known)| known.domain >= FIRST).find(|(pid, _)| {
            in_cgroups.contains_key(pid)
                || Process::read(**pid)
                    .is_some_and(|process| selectors.iter().any(|selector| selector.selects(&process)))
        });
        match taken.map(|(_, known)| self.name(known.domain).to_owned()) {
            Some(owner) => Err(DomainError::AllTaken { name, selector, owner }),
            None if selectors.iter().any(Selector::can_come_true) => Ok(()),
            None => Err(DomainError::NoMatch { name, selector }),
        }
    }

    fn cgroup_members_of(&self, number: DomainId) -> BTreeMap<u32, DomainId> {
        let mut members = groups::members(&self.groups);
        members.retain(|_, domain| *domain == number);
        members
    }
}
