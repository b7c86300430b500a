//! Principals and their accounting domains (LOG-6, thesis §3.5, §4.3.4).
//!
//! A table from pid to domain is shared with the handlers. `bpf/domain.bpf.h` and `bpf/select.bpf.h` give
//! entries to new tasks and to tasks that change their cgroup. A task's own binding takes precedence over
//! that of its cgroup.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU16, Ordering};
use std::{fs, io, slice};

use mete_log::layout::PAGE;
use mete_log::{DomainId, Shape};
use rustix::process::{Pid, test_kill_process};

use super::Kernel;
use crate::KernelError;
use crate::cgroup::Cgroup;
use crate::map::{Mapping, NamedMap};
use crate::skeleton::mete::types::cgroup_key;
use crate::skeleton::{globals, map, numbers, table};

/// A user of resources that can be bound to a domain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Principal {
    /// One thread, by its number.
    Thread(i32),
    /// All threads of a process.
    Process(i32),
    /// All tasks in a cgroup and below it, now and later: the directory of the cgroup, of either version. Of
    /// a cgroup and those above it, the binding of the lowest one counts.
    Cgroup(PathBuf),
    /// The processors' idle time.
    Idle,
}

/// The domain of a task in the kernel's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The domain; 0 for none.
    pub domain: DomainId,
    /// Whether the task has it from its cgroup.
    pub is_by_cgroup: bool,
}

/// In an entry of the table: the domain comes from a cgroup of the task.
const BY_CGROUP: u16 = numbers::mete_binding::BOUND_BY_CGROUP.0 as u16;

/// The number of passes over tasks that change meanwhile. What is missing after them is left to inheritance.
const MAX_PASSES: usize = 100;

/// The number of entries of the table: a power of two that is greater than every pid.
pub(crate) fn table_entries() -> usize {
    // PID_MAX_LIMIT of the kernel.
    const HIGHEST: usize = 1 << 22;
    let text = fs::read_to_string("/proc/sys/kernel/pid_max").unwrap_or_default();
    let pid_max = text.trim().parse().unwrap_or(HIGHEST);
    // Two bytes an entry: a page at least, because it is mapped.
    pid_max.clamp(PAGE / 2, HIGHEST).next_power_of_two()
}

/// The table from pid to domain, for programs of other objects: see [`Kernel::domain_table`].
#[derive(Debug)]
pub struct DomainTable {
    file: OwnedFd,
    entries: usize,
}

impl DomainTable {
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The mask that makes the index of an entry of a pid, and the mask that keeps the domain of an entry.
    pub(crate) fn masks(&self) -> [u32; 2] {
        [self.entries as u32 - 1, Shape::KERNEL.domains() as u32 - 1]
    }
}

/// What is bound.
pub(crate) struct Bindings {
    table: Mapping,
    /// The identifier and the hierarchy of each bound cgroup.
    cgroups: BTreeSet<(u64, i32)>,
}

impl Bindings {
    pub(crate) fn new(domain_of_pid: NamedMap<'_>) -> Result<Bindings, KernelError> {
        Ok(Bindings { table: domain_of_pid.mapped(2 * table_entries())?, cgroups: BTreeSet::new() })
    }

    fn table(&self) -> &[AtomicU16] {
        // SAFETY: the mapping holds whole 16-bit words, begins on a page, and is accessed by atomics only.
        unsafe { slice::from_raw_parts(self.table.base().cast().as_ptr(), self.table.bytes() / 2) }
    }

    fn entry(&self, pid: i32) -> &AtomicU16 {
        let table = self.table();
        // Never out of range: the length is a power of two.
        &table[pid as usize & (table.len() - 1)]
    }
}

impl Kernel {
    /// Binds a principal to a domain, from now on. Tasks that its tasks create later inherit the domain.
    ///
    /// Needs the right to signal the tasks. From the first binding on, a program is attached to the creation
    /// of tasks, and from the first binding of a cgroup on, one to their movement.
    ///
    /// # Errors
    ///
    /// If there is no such domain, thread, process or cgroup, its tasks may not be signalled, or the kernel takes no
    /// such program.
    pub fn bind(&mut self, principal: &Principal, domain: DomainId) -> Result<(), KernelError> {
        check_domain(domain)?;
        self.follow_tasks()?;
        match principal {
            Principal::Thread(pid) => self.bind_thread(*pid, domain),
            Principal::Process(pid) => self.bind_process(*pid, domain),
            Principal::Cgroup(path) => self.bind_cgroup(&Cgroup::open(path)?, domain),
            Principal::Idle => {
                self.bindings.entry(0).store(domain.get(), Ordering::Relaxed);
                Ok(())
            }
        }
    }

    /// Returns the tasks of a principal to the default domain, or to that of their cgroup.
    ///
    /// # Errors
    ///
    /// If there is no such thread, process or cgroup, or its tasks may not be signalled.
    pub fn unbind(&mut self, principal: &Principal) -> Result<(), KernelError> {
        match principal {
            Principal::Cgroup(path) => self.unbind_cgroup(&Cgroup::open(path)?),
            other => {
                self.bind(other, DomainId::default())?;
                self.regroup()
            }
        }
    }

    /// The table of all bindings. The programs keep it up to date as long as this component is loaded.
    ///
    /// # Errors
    ///
    /// [`KernelError::Map`] if this process has no descriptor left for it.
    pub fn domain_table(&self) -> Result<DomainTable, KernelError> {
        let NamedMap { name, map } = map!(self.skeleton, domain_of_pid);
        let file = map.as_fd().try_clone_to_owned();
        let file = file.map_err(|source| KernelError::Map { map: name, source })?;
        Ok(DomainTable { file, entries: table_entries() })
    }

    /// The domain of a task; 0 if it is bound to none.
    pub fn domain_of(&self, pid: i32) -> DomainId {
        self.bound(pid).domain
    }

    /// Binds a process as [`Kernel::bind`] does, unless the kernel itself has changed its binding, which was
    /// `seen` before.
    ///
    /// # Errors
    ///
    /// As [`Kernel::bind`].
    pub fn rebind(&mut self, pid: i32, seen: Bound, domain: DomainId) -> Result<(), KernelError> {
        check_right(pid)?;
        let (slot, order) = (self.bindings.entry(pid), Ordering::Relaxed);
        let entry = slot.load(order);
        // Exchanged at once: a program may write the entry at any moment.
        let is_unchanged =
            bound(entry) == seen && slot.compare_exchange(entry, domain.get(), order, order).is_ok();
        if is_unchanged { self.bind(&Principal::Process(pid), domain) } else { Ok(()) }
    }

    /// The domain of a task, and whether it comes from a cgroup.
    pub fn bound(&self, pid: i32) -> Bound {
        bound(self.bindings.entry(pid).load(Ordering::Relaxed))
    }

    fn bind_thread(&self, pid: i32, domain: DomainId) -> Result<(), KernelError> {
        check_right(pid)?;
        self.bindings.entry(pid).store(domain.get(), Ordering::Relaxed);
        Ok(())
    }

    /// A thread that appears meanwhile inherits from one that is bound already, or from one that is not. So
    /// this passes over the threads until it finds no new one.
    fn bind_process(&self, pid: i32, domain: DomainId) -> Result<(), KernelError> {
        check_right(pid)?;
        let mut known = BTreeSet::new();
        for _ in 0..MAX_PASSES {
            let threads = threads(pid).map_err(|source| KernelError::Task { pid, source })?;
            let fresh: Vec<_> = threads.into_iter().filter(|&thread| known.insert(thread)).collect();
            if fresh.is_empty() {
                break;
            }
            fresh
                .iter()
                .for_each(|&thread| self.bindings.entry(thread).store(domain.get(), Ordering::Relaxed));
        }
        Ok(())
    }

    fn bind_cgroup(&mut self, cgroup: &Cgroup, domain: DomainId) -> Result<(), KernelError> {
        let key = (cgroup.id()?, cgroup.hierarchy()?);
        // First: the program sees tasks that move from now on, and the passes see those that have moved
        // before.
        self.follow_cgroups()?;
        table!(mete, self.skeleton, domain_of_cgroup).write(key_of(key), &(domain.get() | BY_CGROUP))?;
        self.bindings.cgroups.insert(key);
        self.regroup()
    }

    fn unbind_cgroup(&mut self, cgroup: &Cgroup) -> Result<(), KernelError> {
        let key = (cgroup.id()?, cgroup.hierarchy()?);
        if !self.bindings.cgroups.remove(&key) {
            return Ok(());
        }
        table!(mete, self.skeleton, domain_of_cgroup).delete(key_of(key))?;
        self.regroup()
    }

    /// Brings every task to the domain that it belongs to by its cgroups. Tasks move and start meanwhile, so
    /// this passes over them until a pass changes nothing.
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

    /// How many entries such passes have changed since the programs were loaded.
    fn regrouped(&self) -> Result<u64, KernelError> {
        Ok(globals!(mete, self.skeleton, bss_regrouped).read_all()?.regrouped)
    }
}

/// An error for a domain that the kernel component does not have.
pub(crate) fn check_domain(domain: DomainId) -> Result<(), KernelError> {
    let max = DomainId::from_index(Shape::KERNEL.domains() - 1);
    if domain > max { Err(KernelError::NoSuchDomain { domain, max }) } else { Ok(()) }
}

fn key_of((id, hierarchy): (u64, i32)) -> cgroup_key {
    cgroup_key { id, hierarchy: hierarchy as u64 }
}

fn bound(entry: u16) -> Bound {
    let domain = DomainId::new(entry & (Shape::KERNEL.domains() as u16 - 1));
    Bound { domain, is_by_cgroup: entry & BY_CGROUP != 0 }
}

/// A user that may not signal a task may not bind it, either.
fn check_right(pid: i32) -> Result<(), KernelError> {
    let no_task = KernelError::Task { pid, source: io::ErrorKind::InvalidInput.into() };
    // Not 0 and not negative: kill(2) would take those for groups of processes.
    let task = (pid > 0).then(|| Pid::from_raw(pid)).flatten().ok_or(no_task)?;
    test_kill_process(task).map_err(|error| KernelError::Task { pid, source: error.into() })
}

fn threads(pid: i32) -> io::Result<Vec<i32>> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"))?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}
