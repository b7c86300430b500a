//! From tables to a scenario: numbers in their ranges, names that exist, programs that take time.

use std::ops::RangeInclusive;
use std::sync::Arc;

use mete_policy::{
    BvtSettings, CATALOG, ClientId, CreditSettings, DomainIndex, Entry, Nanoseconds, Share, Warp, by_name,
};
use toml::Spanned;

use super::credit::CreditTable;
use super::devices;
use super::error::Fault;
use super::names::{Names, Register, copies};
use super::steps::program;
use super::table::{
    BvtTable, ChangeTable, DiskTable, DomainTable, GuestTable, GuestTaskTable, PolicyTable, ScenarioTable,
    SchedulerTable, TaskTable, WarpTable,
};
use super::value::{NS_PER_MS, NS_PER_US, ns, ns_if, ns_or, whole};
use super::vcpus;
use super::{Change, Client, ClientPlan, Domain, GuestPlan, GuestTask, Scenario};
use crate::host::Hardware;
use crate::scene::guest::{Fair, Kernel, KernelCosts, Priority};
use crate::scene::{Disk, Event};

const MOST_PROCESSORS: u16 = 4096;
/// The niceness of a guest's task, as Unix has it.
const NICE: RangeInclusive<i32> = -20..=19;
const MOST_TASKS: usize = 1 << 15;
const MOST_DOMAINS: usize = DomainIndex::MAX.index() - 1;
/// A policy may have a queue for each domain on each processor, which takes some 70 bytes.
const MOST_QUEUES: usize = 1 << 22;

pub(super) fn scenario(table: ScenarioTable) -> Result<Scenario, Fault> {
    let mut names = Names::new(vcpus::unit(&table.guest)?);
    let mut domains = domains(&table.domain, &mut names)?;
    let clients = clients(&table, &mut names, &mut domains)?;
    let remotes = devices::remotes(&table.remote, &mut names)?;
    // Only now: all programs have been read, and so all uses of locks and ports.
    names.check_locks()?;
    names.ports.check()?;
    let hardware = hardware(&table, domains.len())?;
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
        bvt: bvt(&table.policy.bvt, &names)?,
        domains,
        clients,
        disks: table.disk.iter().map(disk).collect::<Result<_, _>>()?,
        network: devices::network(table.network.as_ref(), &table.remote)?,
        remotes,
        locks: names.locks(),
        changes,
        about: table.about,
    })
}

/// Gives everything its number before any program is read, because programs name clients, disks and remote
/// machines. Then reads the clients, in the order of their numbers.
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

/// The scenario's duration, and how much of it is the warm-up.
fn times(table: &ScenarioTable, processors: u16) -> Result<(Nanoseconds, Nanoseconds), Fault> {
    let duration_ns = ns("duration_ms", &table.duration_ms, NS_PER_MS)?;
    let warm_up_ns = ns("warm_up_ms", &table.warm_up_ms, NS_PER_MS)?;
    if warm_up_ns >= duration_ns {
        let what = "the warm-up (warm_up_ms) is a part of the duration (duration_ms) and must be shorter";
        return Err(Fault::new(table.duration_ms.span(), what));
    }
    // The times of all processors are added up, and the sum has to fit.
    if duration_ns.get().checked_mul(u64::from(processors)).is_none() {
        let what = format!("duration_ms: too long for the times of {processors} processors to be added up");
        return Err(Fault::new(table.duration_ms.span(), what));
    }
    Ok((duration_ns, warm_up_ns))
}

fn domains(tables: &[DomainTable], names: &mut Names) -> Result<Vec<Domain>, Fault> {
    let mut domains = Vec::new();
    for table in tables {
        // A parent stands before its children, so that no domain is its own ancestor.
        let parent = table.parent.as_ref().map_or(Ok(DomainIndex::ROOT), |parent| {
            names.domains.find("parent", parent).map(|number| DomainIndex::at(number + 1))
        })?;
        names.domains.add(&table.name)?;
        let io_threshold_ns = ns_if("io_threshold_ms", &table.io_threshold_ms, NS_PER_MS)?;
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
        body: ClientPlan::Task(program),
    };
    let copies = copies(&table.name, &table.count)?;
    clients.extend(copies.into_iter().map(|name| Client { name, ..client.clone() }));
    Ok(())
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
    let io_threshold_ns = ns_if("io_threshold_ms", &table.io_threshold_ms, NS_PER_MS)?;
    let (share, start_ns) = (names.share(&table.share)?, ns("start_ms", &table.start_ms, NS_PER_MS)?);
    for name in copies(&table.name, &table.count)? {
        let domain = match &table.domain {
            Some(_) => names.domain(table.domain.as_ref())?,
            None => Domain::add_own(&name, share, io_threshold_ns, domains),
        };
        let plan = guest_plan(table, track_ns, &name, tasks.clone())?;
        let first = Client { name, domain, share, start_ns, body: ClientPlan::Guest(plan) };
        clients.extend(vcpus::spread(first, ClientId::at(clients.len())));
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
        kernel: kernel(table.scheduler).map_err(|what| Fault::new(table.name.span(), what))?,
        costs,
        read_depth: table.read_depth,
        port_packets: table.port_packets,
        tasks,
    })
}

fn kernel(scheduler: SchedulerTable) -> Result<Kernel, String> {
    Ok(match scheduler {
        SchedulerTable::Priority { slice_ms } => {
            Kernel::Priority(Priority::new(scheduler_ns("slice_ms", slice_ms)?))
        }
        SchedulerTable::Fair { latency_ms, least_ms } => {
            let latency_ns = scheduler_ns("latency_ms", latency_ms)?;
            Kernel::Fair(Fair::new(latency_ns, scheduler_ns("least_ms", least_ms)?))
        }
    })
}

/// A time of a guest's scheduler: more than 0.
fn scheduler_ns(key: &str, ms: f64) -> Result<Nanoseconds, String> {
    match whole(ms, NS_PER_MS) {
        Ok(0) => Err(format!("scheduler: {key}: more than 0, not {ms}")),
        other => other.map(Nanoseconds::new).map_err(|what| format!("scheduler: {key}: {what}")),
    }
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
            // The names of tasks are unique within their guest.
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

fn hardware(table: &ScenarioTable, domains: usize) -> Result<Hardware, Fault> {
    let processors = *table.host.processors.get_ref();
    if !(1..=MOST_PROCESSORS).contains(&processors) {
        let what = format!("processors: 1 to {MOST_PROCESSORS}, not {processors}");
        return Err(Fault::new(table.host.processors.span(), what));
    }
    if usize::from(processors) * (domains + 1) > MOST_QUEUES {
        let what = format!(
            "processors: with {domains} domains at most {}, not {processors}",
            MOST_QUEUES / (domains + 1)
        );
        return Err(Fault::new(table.host.processors.span(), what));
    }
    let switch_ns = ns("switch_us", &table.host.switch_us, NS_PER_US)?;
    Ok(Hardware { processors, switch_ns, payer: table.host.payer })
}

fn policy(name: &Spanned<String>) -> Result<&'static Entry, Fault> {
    if let Some(entry) = by_name(name.get_ref()) {
        return Ok(entry);
    }
    let known = CATALOG.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
    let what = format!("policy.name: there is no {:?}; allowed: {known}", name.get_ref());
    Err(Fault::new(name.span(), what))
}

fn credit(table: &PolicyTable) -> Result<CreditTable, Fault> {
    // The run's policy is known only later, so the settings have to fit each base.
    for base in [CreditSettings::XEN, CreditSettings::BASELINE, CreditSettings::TAVS] {
        table.credit.get_ref().settings(base).map_err(|what| Fault::new(table.credit.span(), what))?;
    }
    Ok(table.credit.get_ref().clone())
}

/// The settings of borrowed virtual time: the table's keys over the defaults.
fn bvt(table: &BvtTable, names: &Names) -> Result<BvtSettings, Fault> {
    let usual = BvtSettings::default();
    Ok(BvtSettings {
        allowance_ns: ns_or("policy.bvt.allowance_ms", &table.allowance_ms, NS_PER_MS, usual.allowance_ns)?,
        warp: table.warp.as_ref().map(|table| warp(table, names)).transpose()?,
    })
}

fn warp(table: &WarpTable, names: &Names) -> Result<Warp, Fault> {
    Ok(Warp {
        domain: names.domain(Some(&table.domain))?,
        warp_ns: ns("policy.bvt.warp.warp_ms", &table.warp_ms, NS_PER_MS)?,
        limit_ns: ns("policy.bvt.warp.limit_ms", &table.limit_ms, NS_PER_MS)?,
        rest_ns: ns("policy.bvt.warp.rest_ms", &table.rest_ms, NS_PER_MS)?,
    })
}

fn quantum_ns(quantum_ms: &Spanned<f64>) -> Result<Nanoseconds, Fault> {
    match ns("quantum_ms", quantum_ms, NS_PER_MS)? {
        Nanoseconds::ZERO => Err(Fault::new(quantum_ms.span(), "quantum_ms: more than 0")),
        quantum_ns => Ok(quantum_ns),
    }
}

fn disk(table: &DiskTable) -> Result<Disk, Fault> {
    let fault = |key, what| Fault::new(table.name.span(), format!("{key}: {what}"));
    Ok(Disk {
        seek: table.seek_ms.distribution(NS_PER_MS).map_err(|what| fault("seek_ms", what))?,
        bytes_per_s: whole(table.mb_per_s, 1e6).map_err(|what| fault("mb_per_s", what))?,
    })
}

/// The changes that a table asks for: a client's share, a domain's share, or both where the client is a guest
/// in a domain of its own.
fn change(
    table: &ChangeTable,
    end_ns: Nanoseconds,
    names: &Names,
    clients: &[Client],
) -> Result<Vec<Change>, Fault> {
    let (at_ns, share) = (ns("at_ms", &table.at_ms, NS_PER_MS)?, names.share(&table.share)?);
    if at_ns >= end_ns {
        let (end_ms, at_ms) = (end_ns.get() as f64 / NS_PER_MS, table.at_ms.get_ref());
        let what = format!("at_ms: before the end of the run (duration_ms), {end_ms}, not {at_ms}");
        return Err(Fault::new(table.at_ms.span(), what));
    }
    match (&table.client, &table.domain) {
        (Some(name), None) => {
            let client = names.clients.find("client", name)?;
            let domain = clients[client].domain.index();
            // Domains that no table defines come after those that are defined: this one is the guest's own.
            let own = domain > names.domains.count();
            let own = own.then(|| domain_change(at_ns, DomainIndex::at(domain), share));
            let vcpus = clients[client].vcpus();
            let each = (0..vcpus).map(|vcpu| {
                let (client, share) = (ClientId::at(client + vcpu as usize), vcpus::part(share, vcpus));
                Change { at_ns, event: Event::SetShare { client, share } }
            });
            Ok(own.into_iter().chain(each).collect())
        }
        (None, Some(name)) => Ok(vec![domain_change(at_ns, names.domain(Some(name))?, share)]),
        _ => Err(Fault::new(table.at_ms.span(), "a [[change]] names one client or one domain")),
    }
}

fn domain_change(at_ns: Nanoseconds, domain: DomainIndex, share: Share) -> Change {
    Change { at_ns, event: Event::SetDomainShare { domain, share } }
}
