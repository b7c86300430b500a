//! From tables to a scenario: numbers in range, names that exist, programs that take time.

use std::collections::HashMap;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use mete_policy::{CATALOG, ClientId, CreditSettings, DomainIndex, Nanoseconds, ProcessorId, Share};
use toml::Spanned;

use super::bvt;
use super::credit::CreditTable;
use super::devices;
use super::error::Fault;
use super::ports::Ports;
use super::steps::program;
use super::table::{
    ChangeTable, DiskTable, DomainTable, GuestTable, GuestTaskTable, PolicyTable, ScenarioTable,
    SchedulerTable, TaskTable,
};
use super::value::whole;
use super::vcpus;
use super::{Body, Change, Client, Domain, GuestPlan, GuestTask, Scenario, SchedulerPlan};
use crate::host::Hardware;
use crate::scene::guest::KernelCosts;
use crate::scene::{Disk, Event};

pub(super) const NS_PER_MS: f64 = 1e6;
pub(super) const NS_PER_US: f64 = 1e3;
/// As many clients as a policy can tell apart exactly, with its largest sum of shares.
const MOST_CLIENTS: usize = 1 << 20;
const MOST_PROCESSORS: ProcessorId = 4096;
/// The niceness of a guest's task, as Unix has it.
const NICE: RangeInclusive<i32> = -20..=19;
const MOST_TASKS: usize = 1 << 15;
const MOST_DOMAINS: usize = DomainIndex::MAX as usize - 1;

pub(super) fn scenario(table: ScenarioTable) -> Result<Scenario, Fault> {
    let mut names = Names { unit: vcpus::unit(&table.guest)?, ..Names::default() };
    let mut domains = domains(&table.domain, &mut names)?;
    let clients = clients(&table, &mut names, &mut domains)?;
    let remotes = devices::remotes(&table.remote, &mut names)?;
    names.check_locks()?;
    names.ports.check()?;
    let hardware = hardware(&table)?;
    let (duration_ns, warm_up_ns) = times(&table, hardware.processors)?;
    let changes = table.change.iter().map(|change| self::change(change, duration_ns, &names, &clients));
    let changes = changes.collect::<Result<Vec<_>, _>>()?.concat();
    Ok(Scenario {
        duration_ns,
        warm_up_ns,
        starvation_ns: ns("starvation_ms", &table.starvation_ms, NS_PER_MS)?,
        seed: table.seed,
        hardware,
        policy: policy(&table.policy.name)?,
        quantum_ns: quantum_ns(&table.policy.quantum_ms)?,
        credit: credit(&table.policy)?,
        bvt: bvt::settings(&table.policy.bvt, &names)?,
        domains,
        clients,
        disks: table.disk.iter().map(disk).collect::<Result<_, _>>()?,
        network: devices::network(table.network.as_ref(), &table.remote)?,
        remotes,
        locks: names.locks.len(),
        changes,
        about: table.about,
    })
}

/// Everything gets its number before any program is read; then the clients in the order of their numbers.
fn clients(
    table: &ScenarioTable,
    names: &mut Names,
    domains: &mut Vec<Domain>,
) -> Result<Vec<Client>, Fault> {
    for disk in &table.disk {
        names.disks.add(&disk.name)?;
    }
    for remote in &table.remote {
        for copy in copies(&remote.name, &remote.count)? {
            names.remotes.add(&Spanned::new(remote.name.span(), copy))?;
        }
    }
    names.number_clients(table)?;
    let mut clients = Vec::new();
    if let Some(driver) = &table.driver {
        clients.push(devices::driver(driver, names, domains)?);
    }
    for task in &table.task {
        tasks(task, names, &mut clients)?;
    }
    let track_ns = ns("track_ns", &table.host.track_ns, 1.0)?;
    for guest in &table.guest {
        guests(guest, track_ns, names, domains, &mut clients)?;
    }
    Ok(clients)
}

/// How long it runs, and how much of that is the warm-up.
fn times(table: &ScenarioTable, processors: ProcessorId) -> Result<(Nanoseconds, Nanoseconds), Fault> {
    let duration_ns = ns("duration_ms", &table.duration_ms, NS_PER_MS)?;
    let warm_up_ns = ns("warm_up_ms", &table.warm_up_ms, NS_PER_MS)?;
    let fault = |what| Err(Fault::new(table.duration_ms.span(), what));
    if warm_up_ns >= duration_ns {
        let what = "the warm-up (warm_up_ms) is a part of the duration (duration_ms) and must be shorter";
        return fault(what.to_owned());
    }
    // The processors' times are added up.
    match duration_ns.checked_mul(u64::from(processors)) {
        Some(_) => Ok((duration_ns, warm_up_ns)),
        None => {
            fault(format!("duration_ms: too long for the times of {processors} processors to be added up"))
        }
    }
}

/// Names of one kind, each with its number.
#[derive(Default)]
pub(super) struct Register {
    numbers: HashMap<String, usize>,
    next: usize,
}

impl Register {
    fn add(&mut self, name: &Spanned<String>) -> Result<(), Fault> {
        self.add_wide(name, 1)
    }

    /// One that takes so many numbers, of which its name means the first.
    fn add_wide(&mut self, name: &Spanned<String>, width: usize) -> Result<(), Fault> {
        let number = self.next;
        self.next += width;
        match self.numbers.insert(name.get_ref().clone(), number) {
            None => Ok(()),
            Some(_) => {
                Err(Fault::new(name.span(), format!("name: there are two called {:?}", name.get_ref())))
            }
        }
    }

    pub(super) fn find(&self, key: &str, name: &Spanned<String>) -> Result<usize, Fault> {
        let found = self.numbers.get(name.get_ref()).copied();
        found.ok_or_else(|| {
            let mut known: Vec<_> = self.numbers.keys().map(String::as_str).collect();
            known.sort_unstable();
            let known = if known.is_empty() { "none is defined".into() } else { known.join(", ") };
            Fault::new(name.span(), format!("{key}: there is no {:?}; allowed: {known}", name.get_ref()))
        })
    }
}

#[derive(Default)]
pub(super) struct Names {
    /// What a share of 1 is given as, so that each virtual processor's part is a whole number.
    unit: u32,
    domains: Register,
    pub(super) disks: Register,
    pub(super) remotes: Register,
    pub(super) clients: Register,
    pub(super) ports: Ports,
    /// Locks exist by being used.
    locks: HashMap<String, Lock>,
}

/// How a lock is used; one that is only taken, or only handed on, is a mistake in its name.
struct Lock {
    number: usize,
    /// Where its name stands first.
    span: Range<usize>,
    is_taken: bool,
    is_spun_for: bool,
    is_handed_on: bool,
}

impl Names {
    /// Clients are numbered before any program is read: programs send to clients.
    fn number_clients(&mut self, table: &ScenarioTable) -> Result<(), Fault> {
        if let Some(driver) = &table.driver {
            self.clients.add(&driver.name)?;
        }
        let tasks = table.task.iter().map(|task| (&task.name, &task.count, 1));
        let vcpus = |guest: &GuestTable| *guest.vcpus.get_ref() as usize;
        let guests = table.guest.iter().map(|guest| (&guest.name, &guest.count, vcpus(guest)));
        for (name, count, width) in tasks.chain(guests) {
            for copy in copies(name, count)? {
                self.clients.add_wide(&Spanned::new(name.span(), copy), width)?;
            }
            if self.clients.next > MOST_CLIENTS {
                return Err(Fault::new(
                    count.span(),
                    format!("count: at most {MOST_CLIENTS} clients in all"),
                ));
            }
        }
        if self.clients.next == 0 {
            return Err(Fault::new(0..0, "a scenario needs a [[task]] or a [[guest]]"));
        }
        Ok(())
    }

    pub(super) fn domain(&self, name: Option<&Spanned<String>>) -> Result<DomainIndex, Fault> {
        name.map_or(Ok(0), |name| Ok(self.domains.find("domain", name)? as DomainIndex + 1))
    }

    pub(super) fn take(&mut self, lock: &str, span: Range<usize>) -> usize {
        let lock = self.lock(lock, span);
        lock.is_taken = true;
        lock.number
    }

    pub(super) fn hand_on(&mut self, lock: &str, span: Range<usize>) -> usize {
        let lock = self.lock(lock, span);
        lock.is_handed_on = true;
        lock.number
    }

    pub(super) fn spin_for(&mut self, lock: &str, span: Range<usize>) -> usize {
        let lock = self.lock(lock, span);
        lock.is_spun_for = true;
        lock.number
    }

    /// A share, in the units in which policies are given them.
    pub(super) fn share(&self, share: &Spanned<u32>) -> Result<Share, Fault> {
        vcpus::share(share, self.unit)
    }

    fn lock(&mut self, name: &str, span: Range<usize>) -> &mut Lock {
        let number = self.locks.len();
        let new = Lock { number, span, is_taken: false, is_spun_for: false, is_handed_on: false };
        self.locks.entry(name.to_owned()).or_insert(new)
    }

    /// In the order of their numbers, so that of several mistakes the same one is named each time.
    fn check_locks(&self) -> Result<(), Fault> {
        let wrong = self.locks.iter().filter_map(|(name, lock)| Some((lock, lock.fault(name)?)));
        match wrong.min_by_key(|(lock, _)| lock.number) {
            Some((lock, what)) => Err(Fault::new(lock.span.clone(), what)),
            None => Ok(()),
        }
    }
}

impl Lock {
    /// What is wrong with how it is used. Who spins for one unlocks it, too: programs are refused otherwise.
    fn fault(&self, name: &str) -> Option<String> {
        let step = if self.is_taken { "lock" } else { "unlock" };
        match (self.is_taken, self.is_spun_for, self.is_handed_on) {
            (true, true, _) => {
                Some(format!("{step}: {name:?} is in a spin_lock, too; a lock is waited for in one way"))
            }
            (true, false, false) => Some(format!("{step}: {name:?} is in no unlock of any program")),
            (false, false, _) => Some(format!("{step}: {name:?} is in no lock or spin_lock of any program")),
            (true, false, true) | (false, true, _) => None,
        }
    }
}

/// `name` alone, or `name-1`, `name-2`, …
pub(super) fn copies(name: &Spanned<String>, count: &Spanned<u32>) -> Result<Vec<String>, Fault> {
    match *count.get_ref() {
        0 => Err(Fault::new(count.span(), "count: 1 or more, not 0")),
        1 => Ok(vec![name.get_ref().clone()]),
        count if count as usize > MOST_CLIENTS => {
            Err(Fault::new(name.span(), format!("count: at most {MOST_CLIENTS}, not {count}")))
        }
        count => Ok((1..=count).map(|copy| format!("{}-{copy}", name.get_ref())).collect()),
    }
}

fn domains(tables: &[DomainTable], names: &mut Names) -> Result<Vec<Domain>, Fault> {
    let mut domains = Vec::new();
    for table in tables {
        // A parent stands before its children, so nobody is in himself.
        let parent = table.parent.as_ref().map_or(Ok(0), |parent| {
            names.domains.find("parent", parent).map(|number| number as DomainIndex + 1)
        })?;
        names.domains.add(&table.name)?;
        let io_threshold = table.io_threshold_ms.as_ref();
        let io_threshold_ns = io_threshold.map(|ms| ns("io_threshold_ms", ms, NS_PER_MS)).transpose()?;
        let (name, share) = (table.name.get_ref().clone(), names.share(&table.share)?);
        domains.push(Domain { name, parent, share, io_threshold_ns });
    }
    match tables.get(MOST_DOMAINS) {
        Some(table) => Err(Fault::new(table.name.span(), format!("at most {MOST_DOMAINS} domains"))),
        None => Ok(domains),
    }
}

fn tasks(table: &TaskTable, names: &mut Names, clients: &mut Vec<Client>) -> Result<(), Fault> {
    names.ports.of(clients.len(), *table.count.get_ref());
    let program = program(&table.name, table.times, &table.program, names)?;
    let client = Client {
        name: String::new(),
        domain: names.domain(table.domain.as_ref())?,
        share: names.share(&table.share)?,
        start_ns: ns("start_ms", &table.start_ms, NS_PER_MS)?,
        body: Body::Task(program),
    };
    let copies = copies(&table.name, &table.count)?;
    clients.extend(copies.into_iter().map(|name| Client { name, ..client.clone() }));
    Ok(())
}

/// Where a guest is that says nothing of it: in a domain of its own, as virtual machines are.
pub(super) fn own_domain(
    name: &str,
    share: Share,
    io_threshold_ns: Option<Nanoseconds>,
    domains: &mut Vec<Domain>,
) -> DomainIndex {
    domains.push(Domain { name: name.to_owned(), parent: 0, share, io_threshold_ns });
    domains.len() as DomainIndex
}

fn guests(
    table: &GuestTable,
    track_ns: Nanoseconds,
    names: &mut Names,
    domains: &mut Vec<Domain>,
    clients: &mut Vec<Client>,
) -> Result<(), Fault> {
    let vcpus = *table.vcpus.get_ref();
    names.ports.of(clients.len(), table.count.get_ref().saturating_mul(vcpus));
    let tasks = guest_tasks(&table.name, &table.task, names)?;
    let io_threshold = table.io_threshold_ms.as_ref();
    let io_threshold_ns = io_threshold.map(|ms| ns("io_threshold_ms", ms, NS_PER_MS)).transpose()?;
    let (share, start_ns) = (names.share(&table.share)?, ns("start_ms", &table.start_ms, NS_PER_MS)?);
    for name in copies(&table.name, &table.count)? {
        let domain = match &table.domain {
            Some(_) => names.domain(table.domain.as_ref())?,
            None => own_domain(&name, share, io_threshold_ns, domains),
        };
        let plan = guest_plan(table, track_ns, &name, tasks.clone())?;
        let first = Client { name, domain, share, start_ns, body: Body::Guest(plan) };
        clients.extend(vcpus::spread(first, clients.len() as ClientId));
    }
    match domains.len() > MOST_DOMAINS {
        true => Err(Fault::new(table.count.span(), format!("count: at most {MOST_DOMAINS} domains in all"))),
        false => Ok(()),
    }
}

fn guest_plan(
    table: &GuestTable,
    track_ns: Nanoseconds,
    name: &str,
    tasks: Vec<GuestTask>,
) -> Result<GuestPlan, Fault> {
    let costs = KernelCosts {
        switch_ns: ns("switch_us", &table.switch_us, NS_PER_US)?,
        interrupt_ns: ns("interrupt_us", &table.interrupt_us, NS_PER_US)?,
        track_ns,
    };
    Ok(GuestPlan {
        name: name.to_owned(),
        vcpus: *table.vcpus.get_ref(),
        scheduler: scheduler(table.scheduler).map_err(|what| Fault::new(table.name.span(), what))?,
        costs,
        read_depth: table.read_depth,
        port_packets: table.port_packets,
        tasks,
    })
}

fn scheduler(table: SchedulerTable) -> Result<SchedulerPlan, String> {
    let ns = |key, ms| match whole(ms, NS_PER_MS) {
        Ok(0) => Err(format!("scheduler: {key}: more than 0, not {ms}")),
        other => other.map_err(|what| format!("scheduler: {key}: {what}")),
    };
    Ok(match table {
        SchedulerTable::Priority { slice_ms } => {
            SchedulerPlan::Priority { slice_ns: ns("slice_ms", slice_ms)? }
        }
        SchedulerTable::Fair { latency_ms, least_ms } => SchedulerPlan::Fair {
            latency_ns: ns("latency_ms", latency_ms)?,
            least_ns: ns("least_ms", least_ms)?,
        },
    })
}

fn guest_tasks(
    guest: &Spanned<String>,
    tables: &[GuestTaskTable],
    names: &mut Names,
) -> Result<Vec<GuestTask>, Fault> {
    let mut known = Register::default();
    let mut tasks = Vec::new();
    for table in tables {
        let program = program(&table.name, table.times, &table.program, names)?;
        if !NICE.contains(&table.nice) {
            let what = format!("nice: {} to {}, not {}", NICE.start(), NICE.end(), table.nice);
            return Err(Fault::new(table.name.span(), what));
        }
        for name in copies(&table.name, &table.count)? {
            known.add(&Spanned::new(table.name.span(), name.clone()))?;
            tasks.push(GuestTask { name, nice: table.nice, program: Arc::clone(&program) });
        }
    }
    if tasks.is_empty() || tasks.len() > MOST_TASKS {
        let what = format!("task: a guest has 1 to {MOST_TASKS} tasks, not {}", tasks.len());
        return Err(Fault::new(guest.span(), what));
    }
    Ok(tasks)
}

fn hardware(table: &ScenarioTable) -> Result<Hardware, Fault> {
    let processors = *table.host.processors.get_ref();
    if !(1..=MOST_PROCESSORS).contains(&processors) {
        let what = format!("processors: 1 to {MOST_PROCESSORS}, not {processors}");
        return Err(Fault::new(table.host.processors.span(), what));
    }
    let switch_ns = ns("switch_us", &table.host.switch_us, NS_PER_US)?;
    Ok(Hardware { processors, switch_ns, payer: table.host.payer })
}

fn policy(name: &Spanned<String>) -> Result<String, Fault> {
    if CATALOG.iter().any(|entry| entry.name == name.get_ref()) {
        return Ok(name.get_ref().clone());
    }
    let known = CATALOG.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
    let what = format!("policy.name: there is no {:?}; allowed: {known}", name.get_ref());
    Err(Fault::new(name.span(), what))
}

fn credit(table: &PolicyTable) -> Result<CreditTable, Fault> {
    for base in [CreditSettings::XEN, CreditSettings::BASELINE, CreditSettings::TAVS] {
        table.credit.get_ref().settings(base).map_err(|what| Fault::new(table.credit.span(), what))?;
    }
    Ok(table.credit.get_ref().clone())
}

fn quantum_ns(quantum_ms: &Spanned<f64>) -> Result<Nanoseconds, Fault> {
    match ns("quantum_ms", quantum_ms, NS_PER_MS)? {
        0 => Err(Fault::new(quantum_ms.span(), "quantum_ms: more than 0")),
        quantum_ns => Ok(quantum_ns),
    }
}

fn disk(table: &DiskTable) -> Result<Disk, Fault> {
    let fault = |key: &str, what| Fault::new(table.name.span(), format!("{key}: {what}"));
    Ok(Disk {
        seek: table.seek_ms.distribution(NS_PER_MS).map_err(|what| fault("seek_ms", what))?,
        bytes_per_s: whole(table.mb_per_s, 1e6).map_err(|what| fault("mb_per_s", what))?,
    })
}

/// What changes: a client's share, a domain's, or both where the client is a guest in a domain of its own.
fn change(
    table: &ChangeTable,
    end_ns: Nanoseconds,
    names: &Names,
    clients: &[Client],
) -> Result<Vec<Change>, Fault> {
    let (at_ns, share) = (ns("at_ms", &table.at_ms, NS_PER_MS)?, names.share(&table.share)?);
    if at_ns >= end_ns {
        let (end_ms, at_ms) = (end_ns as f64 / NS_PER_MS, table.at_ms.get_ref());
        let what = format!("at_ms: before the end of the run (duration_ms), {end_ms}, not {at_ms}");
        return Err(Fault::new(table.at_ms.span(), what));
    }
    let of_domain = |domain| Change { at_ns, event: Event::SetDomainShare { domain, share } };
    match (&table.client, &table.domain) {
        (Some(name), None) => {
            let client = names.clients.find("client", name)?;
            let domain = usize::from(clients[client].domain);
            let own = (domain > names.domains.next).then(|| of_domain(domain as DomainIndex));
            let (vcpus, part) = (clients[client].vcpus(), vcpus::part(share, clients[client].vcpus()));
            let of_client = |client| Event::SetShare { client, share: part };
            let each = (0..vcpus).map(|vcpu| Change { at_ns, event: of_client(client as ClientId + vcpu) });
            Ok(own.into_iter().chain(each).collect())
        }
        (None, Some(name)) => Ok(vec![of_domain(names.domain(Some(name))?)]),
        _ => Err(Fault::new(table.at_ms.span(), "a [[change]] is of one client or one domain")),
    }
}

pub(super) fn ns(key: &str, value: &Spanned<f64>, per_unit: f64) -> Result<Nanoseconds, Fault> {
    // Keys of times end in their unit.
    let unit = key.rsplit_once('_').map_or("", |(_, unit)| unit);
    let fault = |what| Fault::new(value.span(), format!("{key}: {what} {unit}"));
    whole(*value.get_ref(), per_unit).map_err(fault)
}
