//! A scenario as it is written: the tables and keys of the file, except those of `[policy.credit]`, which are
//! in `credit.rs`.
//!
//! Every table refuses keys that it does not have. A name that refers to something carries its place in the
//! file, so that an error can point at it.

use serde::Deserialize;
use toml::Spanned;

use super::credit::CreditTable;
use super::value::Varying;
use crate::host::Payer;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioTable {
    pub about: String,
    pub duration_ms: Spanned<f64>,
    #[serde(default = "no_time")]
    pub warm_up_ms: Spanned<f64>,
    #[serde(default = "starvation_ms")]
    pub starvation_ms: Spanned<f64>,
    #[serde(default)]
    pub seed: u64,
    #[serde(default)]
    pub host: HostTable,
    #[serde(default)]
    pub policy: PolicyTable,
    #[serde(default)]
    pub domain: Vec<DomainTable>,
    #[serde(default)]
    pub task: Vec<TaskTable>,
    #[serde(default)]
    pub guest: Vec<GuestTable>,
    #[serde(default)]
    pub disk: Vec<DiskTable>,
    pub network: Option<NetworkTable>,
    pub driver: Option<DriverTable>,
    #[serde(default)]
    pub remote: Vec<RemoteTable>,
    #[serde(default)]
    pub change: Vec<ChangeTable>,
}

/// A tenth of a second: people begin to notice a delay of this length.
fn starvation_ms() -> Spanned<f64> {
    Spanned::new(0..0, 100.0)
}

fn no_time() -> Spanned<f64> {
    Spanned::new(0..0, 0.0)
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct HostTable {
    pub processors: Spanned<u16>,
    pub switch_us: Spanned<f64>,
    pub payer: Payer,
    pub track_ns: Spanned<f64>,
}

impl Default for HostTable {
    fn default() -> Self {
        HostTable {
            processors: Spanned::new(0..0, 1),
            switch_us: no_time(),
            payer: Payer::Nobody,
            track_ns: no_time(),
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PolicyTable {
    pub name: Spanned<String>,
    pub quantum_ms: Spanned<f64>,
    pub credit: Spanned<CreditTable>,
    pub bvt: BvtTable,
}

impl Default for PolicyTable {
    fn default() -> Self {
        PolicyTable {
            name: Spanned::new(0..0, "rr".into()),
            quantum_ms: Spanned::new(0..0, 10.0),
            credit: Spanned::new(0..0, CreditTable::default()),
            bvt: BvtTable::default(),
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DomainTable {
    pub name: Spanned<String>,
    #[serde(default = "one")]
    pub share: Spanned<u32>,
    pub io_threshold_ms: Option<Spanned<f64>>,
    pub parent: Option<Spanned<String>>,
}

fn one() -> Spanned<u32> {
    Spanned::new(0..0, 1)
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskTable {
    pub name: Spanned<String>,
    #[serde(default = "one")]
    pub share: Spanned<u32>,
    pub domain: Option<Spanned<String>>,
    #[serde(default = "one")]
    pub count: Spanned<u32>,
    #[serde(default = "no_time")]
    pub start_ms: Spanned<f64>,
    pub times: Option<u64>,
    pub program: Vec<Spanned<StepTable>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GuestTable {
    pub name: Spanned<String>,
    #[serde(default = "one")]
    pub share: Spanned<u32>,
    pub domain: Option<Spanned<String>>,
    #[serde(default = "one")]
    pub count: Spanned<u32>,
    #[serde(default = "no_time")]
    pub start_ms: Spanned<f64>,
    #[serde(default = "one")]
    pub vcpus: Spanned<u32>,
    pub io_threshold_ms: Option<Spanned<f64>>,
    #[serde(default)]
    pub scheduler: SchedulerTable,
    #[serde(default = "no_time")]
    pub switch_us: Spanned<f64>,
    #[serde(default = "no_time")]
    pub interrupt_us: Spanned<f64>,
    #[serde(default)]
    pub read_depth: usize,
    #[serde(default)]
    pub port_packets: usize,
    pub task: Vec<GuestTaskTable>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(super) enum SchedulerTable {
    Priority { slice_ms: f64 },
    Fair { latency_ms: f64, least_ms: f64 },
}

impl Default for SchedulerTable {
    /// The slice of a task of niceness 0 under Linux 2.6's O(1) scheduler.
    fn default() -> Self {
        SchedulerTable::Priority { slice_ms: 100.0 }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GuestTaskTable {
    pub name: Spanned<String>,
    #[serde(default)]
    pub nice: i32,
    #[serde(default = "one")]
    pub count: Spanned<u32>,
    pub times: Option<u64>,
    pub program: Vec<Spanned<StepTable>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub(super) enum StepTable {
    ComputeMs(Varying),
    ComputeUs(Varying),
    SleepMs(Varying),
    SleepUs(Varying),
    Read { disk: Spanned<String>, kb: Varying },
    ReadOn { disk: Spanned<String>, kb: Varying },
    Receive { port: u16 },
    ReceiveAll { port: u16, each_us: Varying },
    Request { remote: Spanned<String>, port: u16, bytes: Varying },
    Reply { bytes: Varying },
    Send { to: Spanned<String>, port: u16, bytes: Varying },
    Lock(String),
    SpinLock(String),
    Unlock(String),
    Repeat { times: u64, program: Vec<Spanned<StepTable>> },
    Yield,
    Done,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DiskTable {
    pub name: Spanned<String>,
    pub seek_ms: Varying,
    pub mb_per_s: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangeTable {
    pub at_ms: Spanned<f64>,
    pub client: Option<Spanned<String>>,
    pub domain: Option<Spanned<String>>,
    pub share: Spanned<u32>,
}

/// `[policy.bvt]`: all keys are optional.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct BvtTable {
    pub allowance_ms: Option<Spanned<f64>>,
    pub warp: Option<WarpTable>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WarpTable {
    pub domain: Spanned<String>,
    pub warp_ms: Spanned<f64>,
    pub limit_ms: Spanned<f64>,
    pub rest_ms: Spanned<f64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NetworkTable {
    pub delay_us: Spanned<f64>,
    pub mbit_per_s: Spanned<f64>,
    pub header_bytes: u64,
    pub segment_bytes: u64,
}

impl Default for NetworkTable {
    fn default() -> Self {
        NetworkTable { delay_us: no_time(), mbit_per_s: no_time(), header_bytes: 0, segment_bytes: 0 }
    }
}

/// Which of their sent packets are reported to guests.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged, expecting = "true, false, or a number of packets")]
pub(super) enum TellTable {
    Middle(bool),
    After(u64),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct DriverTable {
    pub name: Spanned<String>,
    pub share: Spanned<u32>,
    pub receive_us: Option<Spanned<f64>>,
    pub transmit_us: Option<Spanned<f64>>,
    pub request_us: Option<Spanned<f64>>,
    pub complete_us: Option<Spanned<f64>>,
    pub batch: Option<Spanned<u32>>,
    pub tell_sent: TellTable,
    pub receive_ring: u32,
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
            tell_sent: TellTable::Middle(false),
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
    pub asks: Option<AsksTable>,
    pub sends: Option<SendsTable>,
    pub serves: Option<ServesTable>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AsksTable {
    pub to: Spanned<String>,
    pub port: u16,
    pub bytes: Varying,
    pub think_ms: Varying,
    pub acknowledge_ms: Option<Spanned<f64>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SendsTable {
    pub to: Spanned<String>,
    pub port: u16,
    /// Without it, the stream lasts for the whole run.
    pub mib: Option<Spanned<f64>>,
    #[serde(default = "window")]
    pub window: Spanned<u64>,
    #[serde(default = "patience")]
    pub patience_ms: Spanned<f64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServesTable {
    pub kib: Varying,
    pub think_ms: Varying,
    #[serde(default = "window")]
    pub window: Spanned<u64>,
    #[serde(default = "patience")]
    pub patience_ms: Spanned<f64>,
}

/// What TCP allows to be under way without window scaling: 64 KiB, in segments of 1460 bytes.
fn window() -> Spanned<u64> {
    Spanned::new(0..0, 44)
}

/// Linux's least timeout (`TCP_RTO_MIN`).
fn patience() -> Spanned<f64> {
    Spanned::new(0..0, 200.0)
}
