//! Principals and their accounting domains (LOG-6, thesis §3.5, §4.3.4).
//!
//! A table from pid to domain is shared with the handlers; `bpf/domain.h` tells how new tasks and
//! tasks that change their cgroup get their entries. A task's own binding goes before its cgroup's.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU16, Ordering};
use std::{fs, io, slice};

use libbpf_rs::{MapCore, Object};
use mete_log::layout::PAGE;
use mete_log::{DomainId, Shape};
use rustix::process::{Pid, test_kill_process};

use crate::cgroup::Cgroup;
use crate::map::{self, Mapping};
use crate::{Kernel, KernelError};

/// Somebody who uses resources, and can be bound to a domain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Principal {
    /// One thread, by its number.
    Thread(i32),
    /// All threads of a process.
    Process(i32),
    /// All tasks in a cgroup and below it, now and later, of either version: its directory. A
    /// cgroup that is bound itself goes before those above it.
    Cgroup(PathBuf),
    /// The processors' idle time.
    Idle,
}

/// Where the kernel has a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The domain; 0 for none.
    pub domain: DomainId,
    /// Whether it is the domain of the task's cgroup.
    pub is_by_cgroup: bool,
}

/// Entry of the table: the domain comes from a cgroup of the task. As in `bpf/domain.h`.
const BY_CGROUP: u16 = 0x8000;

/// Passes over tasks that change meanwhile, before the rest is left to inheritance.
const MAX_PASSES: usize = 100;

/// Entries of the table: a power of two that every pid is below.
pub(crate) fn table_entries() -> usize {
    const HIGHEST: usize = 1 << 22;
    let text = fs::read_to_string("/proc/sys/kernel/pid_max").unwrap_or_default();
    let pid_max = text.trim().parse().unwrap_or(HIGHEST);
    pid_max.clamp(PAGE / 2, HIGHEST).next_power_of_two()
}

/// A table from pid to domain, for programs that are loaded besides: see [`Kernel::domain_table`].
#[derive(Debug)]
pub struct DomainTable {
    file: OwnedFd,
    entries: usize,
}

impl DomainTable {
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// What leaves an entry's place of a pid, and the domain of an entry.
    pub(crate) fn masks(&self) -> [u32; 2] {
        [self.entries as u32 - 1, Shape::KERNEL.domains() as u32 - 1]
    }
}

/// What is bound.
pub(crate) struct Bindings {
    table: Mapping,
    /// By identifier and hierarchy.
    cgroups: BTreeSet<(u64, i32)>,
}

impl Bindings {
    pub(crate) fn new(object: &Object) -> Result<Bindings, KernelError> {
        let table = Mapping::of_map(object, "domain_of_pid", 2 * table_entries())?;
        Ok(Bindings { table, cgroups: BTreeSet::new() })
    }

    fn table(&self) -> &[AtomicU16] {
        // SAFETY: the mapping holds whole 16-bit words, page-aligned, and is touched by atomics only.
        unsafe { slice::from_raw_parts(self.table.base().cast().as_ptr(), self.table.bytes() / 2) }
    }

    fn entry(&self, pid: i32) -> &AtomicU16 {
        let table = self.table();
        &table[pid as usize & (table.len() - 1)]
    }
}

impl Kernel {
    /// Binds a principal to a domain, from now on; what its tasks start later inherits it.
    ///
    /// Needs the right to signal the tasks. From the first binding on a program is attached to the
    /// creation of tasks, and from the first cgroup on one to their movement.
    pub fn bind(&mut self, principal: &Principal, domain: DomainId) -> Result<(), KernelError> {
        let max = Shape::KERNEL.domains() as u16 - 1;
        if domain > max {
            return Err(KernelError::NoSuchDomain { domain, max });
        }
        self.follow_tasks()?;
        match principal {
            Principal::Thread(pid) => self.bind_thread(*pid, domain),
            Principal::Process(pid) => self.bind_process(*pid, domain),
            Principal::Cgroup(path) => self.bind_cgroup(&Cgroup::open(path)?, domain),
            Principal::Idle => {
                self.bindings.entry(0).store(domain, Ordering::Relaxed);
                Ok(())
            }
        }
    }

    /// Gives a principal's tasks back to the default domain, or to that of their cgroup.
    pub fn unbind(&mut self, principal: &Principal) -> Result<(), KernelError> {
        match principal {
            Principal::Cgroup(path) => self.unbind_cgroup(&Cgroup::open(path)?),
            other => {
                self.bind(other, 0)?;
                self.regroup()
            }
        }
    }

    /// The table of all bindings. It is kept up to date as long as this component is loaded.
    ///
    /// # Errors
    ///
    /// [`KernelError::Map`] if there is no descriptor left for it.
    pub fn domain_table(&self) -> Result<DomainTable, KernelError> {
        const TABLE: &str = "domain_of_pid";
        let file = map::find(&self.object, TABLE)?.as_fd().try_clone_to_owned();
        let file = file.map_err(|source| KernelError::Map { map: TABLE, source })?;
        Ok(DomainTable { file, entries: table_entries() })
    }

    /// The domain of a task; 0 for whoever is bound to none.
    pub fn domain_of(&self, pid: i32) -> DomainId {
        self.bound(pid).domain
    }

    /// Binds a process as [`Kernel::bind`] does, unless the kernel itself has bound it anew since it was `seen` so.
    ///
    /// # Errors
    ///
    /// As [`Kernel::bind`].
    pub fn rebind(&mut self, pid: i32, seen: Bound, domain: DomainId) -> Result<(), KernelError> {
        check_right(pid)?;
        let (slot, order) = (self.bindings.entry(pid), Ordering::Relaxed);
        let entry = slot.load(order);
        let is_so = bound(entry) == seen && slot.compare_exchange(entry, domain, order, order).is_ok();
        if is_so { self.bind(&Principal::Process(pid), domain) } else { Ok(()) }
    }

    /// Where a task belongs, and why.
    pub fn bound(&self, pid: i32) -> Bound {
        bound(self.bindings.entry(pid).load(Ordering::Relaxed))
    }

    fn bind_thread(&self, pid: i32, domain: DomainId) -> Result<(), KernelError> {
        check_right(pid)?;
        self.bindings.entry(pid).store(domain, Ordering::Relaxed);
        Ok(())
    }

    /// Threads that appear meanwhile inherit, from one that is bound already or from one that is
    /// not: so until a pass finds no new one.
    fn bind_process(&self, pid: i32, domain: DomainId) -> Result<(), KernelError> {
        check_right(pid)?;
        let mut known = BTreeSet::new();
        for _ in 0..MAX_PASSES {
            let threads = threads(pid).map_err(|source| KernelError::Task { pid, source })?;
            let fresh: Vec<_> = threads.into_iter().filter(|&thread| known.insert(thread)).collect();
            if fresh.is_empty() {
                break;
            }
            fresh.iter().for_each(|&thread| self.bindings.entry(thread).store(domain, Ordering::Relaxed));
        }
        Ok(())
    }

    fn bind_cgroup(&mut self, cgroup: &Cgroup, domain: DomainId) -> Result<(), KernelError> {
        let key = (cgroup.id()?, cgroup.hierarchy()?);
        self.follow_cgroups()?;
        map::write(&self.object, CGROUPS, &bytes_of(key), &(domain | BY_CGROUP).to_ne_bytes())?;
        self.bindings.cgroups.insert(key);
        self.regroup()
    }

    fn unbind_cgroup(&mut self, cgroup: &Cgroup) -> Result<(), KernelError> {
        let key = (cgroup.id()?, cgroup.hierarchy()?);
        if !self.bindings.cgroups.remove(&key) {
            return Ok(());
        }
        let bound = map::find(&self.object, CGROUPS)?;
        bound.delete(&bytes_of(key)).map_err(|error| map::failed(CGROUPS, error))?;
        self.regroup()
    }

    /// Brings every task to where it belongs by its cgroups: until a pass changes nothing, as tasks move and begin meanwhile.
    fn regroup(&self) -> Result<(), KernelError> {
        let mut before = self.regrouped()?;
        for _ in 0..MAX_PASSES {
            self.follow_all()?;
            let now = self.regrouped()?;
            if std::mem::replace(&mut before, now) == now {
                break;
            }
        }
        Ok(())
    }

    /// How many entries that has changed, ever.
    fn regrouped(&self) -> Result<u64, KernelError> {
        self.count_in(".bss.regrouped", 0, 0)
    }
}

const CGROUPS: &str = "domain_of_cgroup";

/// `struct cgroup_key` of `bpf/domain.h`.
fn bytes_of((id, hierarchy): (u64, i32)) -> Vec<u8> {
    [id, hierarchy as u64].map(u64::to_ne_bytes).concat()
}

fn bound(entry: u16) -> Bound {
    Bound { domain: entry & (Shape::KERNEL.domains() as u16 - 1), is_by_cgroup: entry & BY_CGROUP != 0 }
}

/// Whoever may not signal a task has no business in accounting it.
fn check_right(pid: i32) -> Result<(), KernelError> {
    let nobody = KernelError::Task { pid, source: io::ErrorKind::InvalidInput.into() };
    let task = (pid > 0).then(|| Pid::from_raw(pid)).flatten().ok_or(nobody)?;
    test_kill_process(task).map_err(|error| KernelError::Task { pid, source: error.into() })
}

fn threads(pid: i32) -> io::Result<Vec<i32>> {
    let number = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    Ok(fs::read_dir(format!("/proc/{pid}/task"))?.filter_map(number).collect())
}
