//! Which process is in which accounting domain while events are recorded.

use std::sync::Arc;

use mete_kernel::{DomainTable, Kernel};
use mete_sched::Domains;
use mete_sched::domains::{Change, DomainError};
use mete_sched::sources::{KernelSource, Source};

use crate::error::RecordingError;
use crate::notice::Notice;
use crate::plan::Plan;

/// Processes that are bound to domains, and the kernel component that keeps the bindings up to date if
/// programs of the kernel ask for them.
pub struct BoundDomains {
    source: Option<KernelSource>,
    domains: Domains,
}

impl BoundDomains {
    /// Binds the processes that are there; `None` if there are no domains.
    pub fn new(
        plan: &Plan,
        has_kernel: bool,
        tell: &mut dyn FnMut(Notice),
    ) -> Result<Option<BoundDomains>, RecordingError> {
        if plan.domains.is_empty() {
            return Ok(None);
        }
        let mut bound = BoundDomains { source: None, domains: Domains::new(plan.domains.clone())? };
        bound.bind_newcomers();
        // Before the kernel is asked for anything: what is mistyped is mistyped for root, too.
        bound.check_matches(plan.has_command, tell)?;
        if has_kernel {
            bound.source = Some(start(&bound.domains)?);
            // Twice: a process may have become another program between a look and its binding.
            bound.bind_newcomers();
            bound.bind_newcomers();
        }
        Ok(Some(bound))
    }

    /// Tells which domains are still empty, and refuses those that stay empty.
    fn check_matches(&self, has_command: bool, tell: &mut dyn FnMut(Notice)) -> Result<(), DomainError> {
        match self.domains.check_matches() {
            // The command may be the first member.
            Err(DomainError::NoMembers { .. }) if has_command => Ok(()),
            matched => {
                matched?.into_iter().for_each(|empty| tell(Notice::Empty(empty)));
                Ok(())
            }
        }
    }

    /// Binds the processes that have started since; returns what has changed.
    pub fn bind_newcomers(&mut self) -> &[Change] {
        let source = self.source.as_ref();
        self.domains.scan_beside(|pid| source?.bound(pid));
        if let Some(source) = &mut self.source {
            // A process that has ended, or is another user's, is in no domain; nor is a group that was
            // removed.
            let changes = self.domains.changes().iter();
            changes
                .for_each(|change| drop(source.rebind(*change, self.domains.kernel_binding_of(change.pid))));
            self.domains.new_cgroups().for_each(|(path, domain)| drop(source.bind_cgroup(path, domain)));
        }
        self.domains.changes()
    }

    /// The processes that are in a domain.
    pub fn present(&self) -> Vec<Change> {
        self.domains.present().collect()
    }

    /// The table in which programs of the kernel look up domains.
    pub fn table(&self) -> Result<Option<Arc<DomainTable>>, RecordingError> {
        let table = self.source.as_ref().map(|source| source.kernel().domain_table()).transpose()?;
        Ok(table.map(Arc::new))
    }

    /// All names, by number.
    pub fn names(&self) -> Vec<String> {
        self.domains.names().map(str::to_owned).collect()
    }
}

/// The kernel component, with each process bound that is in a domain.
fn start(domains: &Domains) -> Result<KernelSource, RecordingError> {
    let (mut source, _) = KernelSource::start(Kernel::load()?, &[])?;
    source.select(&domains.rules(), None)?;
    domains.cgroups().try_for_each(|(path, domain)| source.bind_cgroup(path, domain))?;
    // A process that has ended meanwhile is in no domain.
    domains.present().for_each(|change| drop(source.bind(change)));
    Ok(source)
}
