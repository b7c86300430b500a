//! The driver, the network and the remote machines of a scenario.

use mete_policy::{ClientId, Nanoseconds};
use toml::Spanned;

use super::error::Fault;
use super::names::{Names, copies};
use super::table::{DriverTable, NetworkTable, RemoteTable, TellTable};
use super::value::{NS_PER_MS, NS_PER_US, Varying, ns, ns_if, ns_or, small};
use super::{Client, ClientPlan, Domain};
use crate::random::LONGEST_NS;
use crate::scene::{DriverCosts, Network, Remote, TellSent};

const BYTES_PER_KIB: f64 = 1024.0;
const BYTES_PER_MIB: f64 = 1024.0 * 1024.0;

/// The network. A scenario with remote machines needs a `[network]` table. Between clients there is always a
/// network; without the table it delivers at once.
pub(super) fn network(table: Option<&NetworkTable>, remotes: &[RemoteTable]) -> Result<Network, Fault> {
    let table = match (table, remotes.first()) {
        (Some(table), _) => table,
        (None, None) => &NetworkTable::default(),
        (None, Some(remote)) => {
            let what = "a [[remote]] needs a network: add a [network] table, which may be empty";
            return Err(Fault::new(remote.name.span(), what));
        }
    };
    Ok(Network {
        delay_ns: ns("delay_us", &table.delay_us, NS_PER_US)?,
        bytes_per_s: small("mbit_per_s", &table.mbit_per_s, 1e6 / 8.0)?,
        header_bytes: table.header_bytes,
        segment_bytes: table.segment_bytes,
    })
}

/// The driver: a client in a domain of its own.
pub(super) fn driver(table: &DriverTable, names: &Names, domains: &mut Vec<Domain>) -> Result<Client, Fault> {
    let (name, share) = (table.name.get_ref().clone(), names.share(&table.share)?);
    let domain = Domain::add_own(&name, share, None, domains);
    Ok(Client { name, domain, share, start_ns: Nanoseconds::ZERO, body: ClientPlan::Driver(costs(table)?) })
}

fn costs(table: &DriverTable) -> Result<DriverCosts, Fault> {
    let usual = DriverCosts::default();
    Ok(DriverCosts {
        receive_ns: ns_or("receive_us", &table.receive_us, NS_PER_US, usual.receive_ns)?,
        transmit_ns: ns_or("transmit_us", &table.transmit_us, NS_PER_US, usual.transmit_ns)?,
        request_ns: ns_or("request_us", &table.request_us, NS_PER_US, usual.request_ns)?,
        complete_ns: ns_or("complete_us", &table.complete_us, NS_PER_US, usual.complete_ns)?,
        batch: table.batch.as_ref().map_or(Ok(usual.batch), batch)?,
        tell_sent: match table.tell_sent {
            TellTable::Middle(false) | TellTable::After(0) => TellSent::Never,
            TellTable::Middle(true) => TellSent::Middle,
            TellTable::After(packets) => TellSent::After(packets),
        },
        receive_ring: table.receive_ring,
    })
}

fn batch(jobs: &Spanned<u32>) -> Result<u32, Fault> {
    match *jobs.get_ref() {
        0 => Err(Fault::new(jobs.span(), "batch: 1 or more, not 0")),
        jobs => Ok(jobs),
    }
}

/// A stream's window: at least the segments of one acknowledgement, at most about TCP's 1 GiB (RFC 7323,
/// §2.2).
fn room(window: &Spanned<u64>) -> Result<u64, Fault> {
    const MOST: u64 = 1_000_000;
    match *window.get_ref() {
        allowed @ 2..=MOST => Ok(allowed),
        other => Err(Fault::new(window.span(), format!("window: 2 to {MOST} segments, not {other}"))),
    }
}

/// The remote machines. A table stands for as many of them as its count.
pub(super) fn remotes(tables: &[RemoteTable], names: &mut Names) -> Result<Vec<Remote>, Fault> {
    const MOST: usize = u16::MAX as usize;
    let mut remotes = Vec::new();
    for table in tables {
        let remote = remote(table, names)?;
        remotes.extend(copies(&table.name, &table.count)?.iter().map(|_| remote));
        if remotes.len() > MOST {
            return Err(Fault::new(table.count.span(), format!("count: at most {MOST} remotes in all")));
        }
    }
    Ok(remotes)
}

fn remote(table: &RemoteTable, names: &mut Names) -> Result<Remote, Fault> {
    let varying = |key, value: &Varying, per_unit| {
        value.distribution(per_unit).map_err(|what| Fault::new(table.name.span(), format!("{key}: {what}")))
    };
    let mut client = |to: &Spanned<String>, port| {
        let client = ClientId::at(names.clients.find("to", to)?);
        names.ports.send(client, port, to.span());
        Ok(client)
    };
    match (&table.asks, &table.sends, &table.serves) {
        (Some(asks), None, None) => Ok(Remote::Asks {
            to: client(&asks.to, asks.port)?,
            port: asks.port,
            bytes: varying("bytes", &asks.bytes, 1.0)?,
            think: varying("think_ms", &asks.think_ms, NS_PER_MS)?,
            acknowledge_ns: ns_if("acknowledge_ms", &asks.acknowledge_ms, NS_PER_MS)?,
        }),
        (None, Some(sends), None) => Ok(Remote::Sends {
            to: client(&sends.to, sends.port)?,
            port: sends.port,
            bytes: sends.mib.as_ref().map_or(Ok(LONGEST_NS.get()), |mib| small("mib", mib, BYTES_PER_MIB))?,
            window: room(&sends.window)?,
            patience_ns: ns("patience_ms", &sends.patience_ms, NS_PER_MS)?,
        }),
        (None, None, Some(serves)) => Ok(Remote::Serves {
            bytes: varying("kib", &serves.kib, BYTES_PER_KIB)?,
            think: varying("think_ms", &serves.think_ms, NS_PER_MS)?,
            window: room(&serves.window)?,
            patience_ns: ns("patience_ms", &serves.patience_ms, NS_PER_MS)?,
        }),
        _ => Err(Fault::new(table.name.span(), "a remote machine does one of asks, sends and serves")),
    }
}
