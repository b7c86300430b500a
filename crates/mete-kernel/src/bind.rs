//! Principals and their accounting domains (LOG-6, thesis §3.5, §4.3.4).
//!
//! A table from pid to domain is shared with the handlers; `bpf/domain.h` tells how new tasks and
//! tasks that change their cgroup get their entries. A task's own binding goes before its cgroup's.

use std::collections::{BTreeMap, BTreeSet};
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

/// Entry of the table: the domain comes from the task's cgroup. As in `bpf/domain.h`.
const BY_CGROUP: u16 = 0x8000;

/// Passes over a list of tasks that changes meanwhile, before the rest is left to inheritance.
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
    /// Entry by identifier, within one hierarchy.
    cgroups: BTreeMap<u64, u16>,
    hierarchy: Option<i32>,
}

impl Bindings {
    pub(crate) fn new(object: &Object) -> Result<Bindings, KernelError> {
        let table = Mapping::of_map(object, "domain_of_pid", 2 * table_entries())?;
        Ok(Bindings { table, cgroups: BTreeMap::new(), hierarchy: None })
    }

    fn table(&self) -> &[AtomicU16] {
        // SAFETY: the mapping holds whole 16-bit words, page-aligned, and is touched by atomics only.
        unsafe { slice::from_raw_parts(self.table.base().cast().as_ptr(), self.table.bytes() / 2) }
    }

    fn entry(&self, pid: i32) -> &AtomicU16 {
        let table = self.table();
        &table[pid as usize & (table.len() - 1)]
    }

    /// A domain from a cgroup, which a task's own domain goes before. The programs do the same.
    fn move_task(&self, pid: i32, entry: u16) {
        let slot = self.entry(pid);
        let mut old = slot.load(Ordering::Relaxed);
        while old == 0 || old & BY_CGROUP != 0 {
            match slot.compare_exchange_weak(old, entry, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => old = now,
            }
        }
    }

    /// The entry of tasks in `cgroup`: the nearest bound one's.
    fn entry_of(&self, cgroup: &Cgroup) -> u16 {
        let nearest = cgroup.path().ancestors().find_map(|path| {
            let id = Cgroup::id_of(path).ok()?;
            self.cgroups.get(&id).copied()
        });
        nearest.unwrap_or(0)
    }

    /// Tells every task in `cgroup` and below, until a pass finds none that is new.
    fn tell_tasks(&self, cgroup: &Cgroup) -> io::Result<()> {
        let mut known = BTreeSet::new();
        for _ in 0..MAX_PASSES {
            let before = known.len();
            self.tell_once(cgroup, &mut known)?;
            if known.len() == before {
                break;
            }
        }
        Ok(())
    }

    fn tell_once(&self, cgroup: &Cgroup, known: &mut BTreeSet<i32>) -> io::Result<()> {
        let entry = self.entry_of(cgroup);
        for pid in cgroup.tasks()? {
            if known.insert(pid) {
                self.move_task(pid, entry);
            }
        }
        cgroup.children()?.iter().try_for_each(|child| self.tell_once(child, known))
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
            other => self.bind(other, 0),
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
        self.bindings.entry(pid).load(Ordering::Relaxed) & (Shape::KERNEL.domains() as u16 - 1)
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
        let hierarchy = cgroup.hierarchy()?;
        if self.bindings.hierarchy.is_some_and(|bound| bound != hierarchy) {
            return Err(KernelError::OtherHierarchy { path: cgroup.path().into() });
        }
        self.follow_cgroups()?;
        self.set_hierarchy(Some(hierarchy))?;
        let entry = domain | BY_CGROUP;
        map::write(&self.object, CGROUPS, &cgroup.id()?.to_ne_bytes(), &entry.to_ne_bytes())?;
        self.bindings.cgroups.insert(cgroup.id()?, entry);
        self.bindings.tell_tasks(cgroup).map_err(|source| cgroup.failed(source))
    }

    fn unbind_cgroup(&mut self, cgroup: &Cgroup) -> Result<(), KernelError> {
        let id = cgroup.id()?;
        if self.bindings.cgroups.remove(&id).is_none() {
            return Ok(());
        }
        let bound = map::find(&self.object, CGROUPS)?;
        bound.delete(&id.to_ne_bytes()).map_err(|error| map::failed(CGROUPS, error))?;
        if self.bindings.cgroups.is_empty() {
            self.set_hierarchy(None)?;
        }
        self.bindings.tell_tasks(cgroup).map_err(|source| cgroup.failed(source))
    }

    fn set_hierarchy(&mut self, hierarchy: Option<i32>) -> Result<(), KernelError> {
        self.bindings.hierarchy = hierarchy;
        map::write_global(&self.object, ".data.binding", &hierarchy.unwrap_or(-1).to_ne_bytes())
    }
}

const CGROUPS: &str = "domain_of_cgroup";

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
