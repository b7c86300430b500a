//! Who is in which accounting domain while events are recorded.

use std::sync::Arc;

use mete_kernel::{DomainTable, Kernel};
use mete_sched::Domains;
use mete_sched::domains::DomainError;
use mete_sched::sources::{KernelSource, Source};

use super::Options;
use crate::failure;

/// Principals that are bound to domains, and the kernel component that keeps the bindings up to date.
pub struct Bound {
    source: KernelSource,
    domains: Domains,
}

impl Bound {
    /// Binds who is there; `None` if there are no domains.
    pub fn new(options: &Options) -> anyhow::Result<Option<Bound>> {
        if options.domains.is_empty() {
            return Ok(None);
        }
        let domains = Domains::new(options.domains.clone())?;
        let (source, _) = KernelSource::start(Kernel::load()?, &[])?;
        let mut bound = Bound { source, domains };
        for (path, domain) in bound.domains.cgroups() {
            bound.source.bind_cgroup(path, domain)?;
        }
        bound.look();
        match bound.domains.check_matches() {
            // The command may be the first one.
            Err(DomainError::Nobody { .. }) if !options.command.is_empty() => {}
            matched => {
                matched?.iter().for_each(|empty| failure::say(&empty.to_string()));
            }
        }
        Ok(Some(bound))
    }

    /// Binds who has come since.
    pub fn look(&mut self) {
        for change in self.domains.scan() {
            // Whoever has ended, or belongs to somebody else, is in no domain.
            let _ = self.source.bind(*change);
        }
    }

    /// What programs look up domains in.
    pub fn table(&self) -> anyhow::Result<Arc<DomainTable>> {
        Ok(Arc::new(self.source.kernel().domain_table()?))
    }

    /// All names, by number.
    pub fn names(&self) -> Vec<String> {
        self.domains.names().map(str::to_owned).collect()
    }
}
