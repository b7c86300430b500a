//! The driver, the network and the remote machines of a scenario.

use mete_policy::{ClientId, Nanoseconds};
use serde::Deserialize;
use toml::Spanned;

use super::check::{NS_PER_MS, NS_PER_US, Names, copies, ns, own_domain};
use super::error::Fault;
use super::table::{no_time, one};
use super::value::Varying;
use super::{Body, Client, Domain};
use crate::random::{Distribution, LONGEST_NS};
use crate::scene::{DriverCosts, Network, Remote, TellSent};

const BYTES_PER_KIB: f64 = 1024.0;
const BYTES_PER_MIB: f64 = 1024.0 * 1024.0;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NetworkTable {
    delay_us: Spanned<f64>,
    mbit_per_s: Spanned<f64>,
    header_bytes: u64,
    segment_bytes: u64,
}

impl Default for NetworkTable {
    fn default() -> Self {
        NetworkTable { delay_us: no_time(), mbit_per_s: no_time(), header_bytes: 0, segment_bytes: 0 }
    }
}

/// Of which packets guests hear that they are sent.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged, expecting = "true, false, or a number of packets")]
enum Tell {
    Middle(bool),
    After(u64),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DriverTable {
    pub name: Spanned<String>,
    share: Spanned<u32>,
    receive_us: Option<Spanned<f64>>,
    transmit_us: Option<Spanned<f64>>,
    request_us: Option<Spanned<f64>>,
    complete_us: Option<Spanned<f64>>,
    batch: Option<Spanned<u32>>,
    tell_sent: Tell,
    receive_ring: u32,
}

impl Default for DriverTable {
    fn default() -> Self {
        DriverTable {
            name: Spanned::new(0..0, "driver".into()),
            share: one(),
            receive_us: None,
            transmit_us: None,
            request_us: None,
            complete_us: None,
            batch: None,
            tell_sent: Tell::Middle(false),
            receive_ring: 0,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoteTable {
    pub name: Spanned<String>,
    #[serde(default = "one")]
    pub count: Spanned<u32>,
    asks: Option<AsksTable>,
    sends: Option<SendsTable>,
    serves: Option<ServesTable>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AsksTable {
    to: Spanned<String>,
    port: u16,
    bytes: Varying,
    think_ms: Varying,
    acknowledge_ms: Option<Spanned<f64>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SendsTable {
    to: Spanned<String>,
    port: u16,
    /// Without it, as much as the run has time for.
    mib: Option<Spanned<f64>>,
    #[serde(default = "window")]
    window: Spanned<u64>,
    #[serde(default = "patience")]
    patience_ms: Spanned<f64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServesTable {
    kib: Varying,
    think_ms: Varying,
    #[serde(default = "window")]
    window: Spanned<u64>,
    #[serde(default = "patience")]
    patience_ms: Spanned<f64>,
}

/// As much as TCP allows under way without scaling its window, 64 KiB, in segments of 1460 bytes.
fn window() -> Spanned<u64> {
    Spanned::new(0..0, 44)
}

/// Linux's least (`TCP_RTO_MIN`).
fn patience() -> Spanned<f64> {
    Spanned::new(0..0, 200.0)
}

/// Remote machines need one that is spoken of; between clients there is always one, as fast as can be.
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
        bytes_per_s: ns("mbit_per_s", &table.mbit_per_s, 1e6 / 8.0)?,
        header_bytes: table.header_bytes,
        segment_bytes: table.segment_bytes,
    })
}

/// The driver: a client in a domain of its own.
pub(super) fn driver(table: &DriverTable, names: &Names, domains: &mut Vec<Domain>) -> Result<Client, Fault> {
    let (name, share) = (table.name.get_ref().clone(), names.share(&table.share)?);
    let domain = own_domain(&name, share, None, domains);
    Ok(Client { name, domain, share, start_ns: 0, body: Body::Driver(costs(table)?) })
}

fn costs(table: &DriverTable) -> Result<DriverCosts, Fault> {
    let usual = DriverCosts::default();
    let cost = |key, value: &Option<Spanned<f64>>, usual: Nanoseconds| {
        value.as_ref().map_or(Ok(usual), |value| ns(key, value, NS_PER_US))
    };
    Ok(DriverCosts {
        receive_ns: cost("receive_us", &table.receive_us, usual.receive_ns)?,
        transmit_ns: cost("transmit_us", &table.transmit_us, usual.transmit_ns)?,
        request_ns: cost("request_us", &table.request_us, usual.request_ns)?,
        complete_ns: cost("complete_us", &table.complete_us, usual.complete_ns)?,
        batch: table.batch.as_ref().map_or(Ok(usual.batch), |batch| one_or_more("batch", batch))?,
        tell_sent: match table.tell_sent {
            Tell::Middle(false) | Tell::After(0) => TellSent::Never,
            Tell::Middle(true) => TellSent::Middle,
            Tell::After(packets) => TellSent::After(packets),
        },
        receive_ring: table.receive_ring,
    })
}

fn one_or_more<N: Copy + Default + PartialEq>(key: &str, number: &Spanned<N>) -> Result<N, Fault> {
    if *number.get_ref() == N::default() {
        return Err(Fault::new(number.span(), format!("{key}: 1 or more, not 0")));
    }
    Ok(*number.get_ref())
}

/// A stream's window: at least what one acknowledgement is for, at most about TCP's 1 GiB (RFC 7323, §2.2).
fn room(window: &Spanned<u64>) -> Result<u64, Fault> {
    const MOST: u64 = 1_000_000;
    match *window.get_ref() {
        allowed @ 2..=MOST => Ok(allowed),
        other => Err(Fault::new(window.span(), format!("window: 2 to {MOST} segments, not {other}"))),
    }
}

/// The remote machines, each as often as it says.
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
    let varying = |key: &str, value: &Varying, per_unit| -> Result<Distribution, Fault> {
        value.distribution(per_unit).map_err(|what| Fault::new(table.name.span(), format!("{key}: {what}")))
    };
    let mut client = |to: &Spanned<String>, port| {
        let client = names.clients.find("to", to)? as ClientId;
        names.ports.send(client, port, to.span());
        Ok(client)
    };
    match (&table.asks, &table.sends, &table.serves) {
        (Some(asks), None, None) => Ok(Remote::Asks {
            to: client(&asks.to, asks.port)?,
            port: asks.port,
            bytes: varying("bytes", &asks.bytes, 1.0)?,
            think: varying("think_ms", &asks.think_ms, NS_PER_MS)?,
            acknowledge_ns: match &asks.acknowledge_ms {
                Some(ms) => Some(ns("acknowledge_ms", ms, NS_PER_MS)?),
                None => None,
            },
        }),
        (None, Some(sends), None) => Ok(Remote::Sends {
            to: client(&sends.to, sends.port)?,
            port: sends.port,
            bytes: sends.mib.as_ref().map_or(Ok(LONGEST_NS), |mib| ns("mib", mib, BYTES_PER_MIB))?,
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
