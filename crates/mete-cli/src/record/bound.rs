//! Who is in which accounting domain while events are recorded.

use std::sync::Arc;

use mete_kernel::{DomainTable, Kernel};
use mete_sched::Domains;
use mete_sched::domains::{Change, DomainError};
use mete_sched::sources::{KernelSource, Source};

use super::Options;
use crate::failure;

/// Principals that are bound to domains, and the kernel component that keeps the bindings up to date, if there are
/// programs of the kernel that ask it.
pub struct Bound {
    source: Option<KernelSource>,
    domains: Domains,
}

impl Bound {
    /// Binds who is there; `None` if there are no domains.
    pub fn new(options: &Options, has_kernel: bool) -> anyhow::Result<Option<Bound>> {
        if options.domains.is_empty() {
            return Ok(None);
        }
        let mut bound = Bound { source: None, domains: Domains::new(options.domains.clone())? };
        bound.look();
        // Before the kernel is asked for anything: what is mistyped is so for root, too.
        bound.check_matches(!options.command.is_empty())?;
        if has_kernel {
            bound.source = Some(start(&bound.domains)?);
            // Twice: a process may have become another program between a look and its binding.
            bound.look();
            bound.look();
        }
        Ok(Some(bound))
    }

    /// Says which domains nobody is in yet, and refuses those that stay empty.
    fn check_matches(&self, has_command: bool) -> Result<(), DomainError> {
        match self.domains.check_matches() {
            // The command may be the first one.
            Err(DomainError::Nobody { .. }) if has_command => Ok(()),
            matched => {
                matched?.iter().for_each(|empty| failure::say(&empty.to_string()));
                Ok(())
            }
        }
    }

    /// Binds who has come since; says who has come or gone.
    pub fn look(&mut self) -> &[Change] {
        let source = self.source.as_ref();
        self.domains.scan_beside(|pid| source?.bound(pid));
        if let Some(source) = &mut self.source {
            // A process that has ended, or is another user's, is in no domain; nor is a group that has gone.
            let changes = self.domains.changes().iter();
            changes.for_each(|change| drop(source.rebind(*change, self.domains.seen(change.pid))));
            self.domains.new_cgroups().for_each(|(path, domain)| drop(source.bind_cgroup(path, domain)));
        }
        self.domains.changes()
    }

    /// Who belongs to a domain.
    pub fn present(&self) -> Vec<Change> {
        self.domains.present().collect()
    }

    /// What programs of the kernel look up domains in.
    pub fn table(&self) -> anyhow::Result<Option<Arc<DomainTable>>> {
        let table = self.source.as_ref().map(|source| source.kernel().domain_table()).transpose()?;
        Ok(table.map(Arc::new))
    }

    /// All names, by number.
    pub fn names(&self) -> Vec<String> {
        self.domains.names().map(str::to_owned).collect()
    }
}

/// The kernel component, with everybody bound who is in a domain.
fn start(domains: &Domains) -> anyhow::Result<KernelSource> {
    let (mut source, _) = KernelSource::start(Kernel::load()?, &[])?;
    source.select(&domains.rules(), None)?;
    domains.cgroups().try_for_each(|(path, domain)| source.bind_cgroup(path, domain))?;
    // Whoever has ended is in no domain.
    domains.present().for_each(|change| drop(source.bind(change)));
    Ok(source)
}
