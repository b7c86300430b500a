//! A scenario as it is written: the tables and keys of the file, none of them optional to know.
//!
//! Every table refuses keys that it does not have. Names that refer to something carry their place in
//! the file, so that a wrong one can be pointed at.

use serde::Deserialize;
use toml::Spanned;

use super::bvt::BvtTable;
use super::credit::CreditTable;
use super::devices::{DriverTable, NetworkTable, RemoteTable};
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

/// A tenth of a second: what people begin to notice.
fn starvation_ms() -> Spanned<f64> {
    Spanned::new(0..0, 100.0)
}

pub(super) fn no_time() -> Spanned<f64> {
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

pub(super) fn one() -> Spanned<u32> {
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
