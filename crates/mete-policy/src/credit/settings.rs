//! The settings, with Xen's and the paper's values.

use crate::{Nanoseconds, Permille};

/// The credit scheduler's settings. [`CreditSettings::XEN`] is the scheduler without the TAVS parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditSettings {
    /// How often the running client is found and charged, in nanoseconds: 10 ms (§2.2).
    pub tick_ns: Nanoseconds,
    /// The number of ticks of processor 0 from one hand-out of credit to the next: 3, which makes 30 ms
    /// (§2.2).
    pub accounting_ticks: u32,
    /// How long a client runs when no other preempts it, in nanoseconds: 30 ms (§2.2). Also the most
    /// credit, and the most debt, that a client may have (Xen's clipping).
    pub slice_ns: Nanoseconds,
    /// Charge what a client ran instead of a whole tick to the client that a tick finds (§5, first
    /// paragraph).
    pub precise_accounting: bool,
    /// The TAVS parts.
    pub tavs: TavsSettings,
}

impl CreditSettings {
    /// Xen's credit scheduler as §2.2 has it: charged by tick, nothing of TAVS.
    pub const XEN: CreditSettings = CreditSettings {
        tick_ns: Nanoseconds::from_millis(10),
        accounting_ticks: 3,
        slice_ns: Nanoseconds::from_millis(30),
        precise_accounting: false,
        tavs: TavsSettings::OFF,
    };
    /// The paper's baseline in its evaluation: charged by time stamp, nothing of TAVS (§5).
    pub const BASELINE: CreditSettings = CreditSettings { precise_accounting: true, ..CreditSettings::XEN };
    /// The paper's whole scheduler, and in addition the driver's time charged to its clients.
    pub const TAVS: CreditSettings = CreditSettings { tavs: TavsSettings::ALL, ..CreditSettings::BASELINE };
}

/// Which TAVS parts are on, and their numbers. Each part can be on without the others. A part that needs
/// the knowledge of another one (boosting needs inferred tasks) does nothing while that one is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TavsSettings {
    /// Track tasks and infer which are I/O-bound (§3.2, §3.3).
    pub inference: bool,
    /// A task that runs no longer than this after an event may be I/O-bound, in nanoseconds: 0.5 ms for
    /// text, 2 ms for graphical interfaces (§5). The value that every domain starts with; see
    /// [`set_io_threshold`](super::Credit::set_io_threshold).
    pub io_threshold_ns: Nanoseconds,
    /// What positive evidence adds to the belief: 5 (§5).
    pub positive_evidence: i16,
    /// What negative evidence takes from it: 20 (§5).
    pub negative_evidence: i16,
    /// A task is I/O-bound while the belief in it is larger than this: 20 (§5).
    pub belief_threshold: i16,
    /// The least belief: -100 (§5).
    pub belief_min: i16,
    /// The largest belief: 300 (§5).
    pub belief_max: i16,

    /// Boost a virtual processor for any packet that comes and any read that is done, whatever task it is for
    /// and for a whole slice: the case that §3.1 warns of (figure 1(b)). In none of the sets below.
    pub aggressive_boosting: bool,
    /// Boost a virtual processor for an event that an I/O-bound task in it waits for (§3.4).
    pub partial_boosting: bool,
    /// The longest time that a partial boost lasts, in nanoseconds: 10 ms (§3.4).
    pub boost_max_ns: Nanoseconds,
    /// PBratio: the part of its processor time that a virtual processor may spend boosted: 125 ‰ (§5.1).
    pub boost_ratio: Permille,
    /// A client that is first in the queue, and so goes on when its driver is done in any case, is not
    /// boosted. So it spends nothing of its ratio. The paper does not except that case.
    pub skip_needless_boosts: bool,

    /// Boost for block reads only where an I/O-bound task was near the request (§3.5.1).
    pub block_correlation: bool,
    /// The number of tasks in the inspection window, the running one included: 3 (§5.4). 1 to 16.
    pub inspection_window: u8,

    /// Boost for packets only where the portmap expects an I/O-bound task (§3.5.2).
    pub network_correlation: bool,
    /// The width of a portmap counter, in bits: 2 (§5.2). 1 to 8.
    pub portmap_bits: u8,
    /// The number of packets whose ports a driver notes in one slice of its own: 16 (§3.5.3).
    pub ports_per_slice: u16,

    /// Which packets teach. `true`: packets that a driver brought in one slice of its own, if all of them are
    /// for one port (§3.5.3), whatever else is pending. `false`: only if all that is pending is for one
    /// (§3.5.2).
    pub learn_by_driver_slice: bool,

    /// The driver domain inherits its requesters' priority (§4.2, algorithm 2).
    pub priority_inheritance: bool,
    /// KeepOnRunQ: a client that the driver preempts goes to the head of its list (§4.2).
    pub keep_on_run_queue: bool,
    /// Charge the driver's processor time to the clients that it worked for (§4.2, left there as future
    /// work).
    pub charge_driver_time: bool,

    /// The number of clients that can be tracked: those with numbers below this; 256 here. Each takes a
    /// portmap of `portmap_bits` × 8 KiB.
    pub tracked_clients: u32,
    /// The number of tasks that each tracked client can have: those with numbers below this; 256 here.
    pub tasks_per_client: u16,
    /// The number of block requests that each tracked client can have pending at a time: 1024 here.
    pub requests_per_client: u16,
}

impl TavsSettings {
    /// Everything is off; the numbers are the paper's, ready for parts to be switched on.
    pub const OFF: TavsSettings = TavsSettings {
        inference: false,
        io_threshold_ns: Nanoseconds::from_micros(500),
        positive_evidence: 5,
        negative_evidence: 20,
        belief_threshold: 20,
        belief_min: -100,
        belief_max: 300,
        aggressive_boosting: false,
        partial_boosting: false,
        boost_max_ns: Nanoseconds::from_millis(10),
        boost_ratio: Permille::new(125),
        skip_needless_boosts: false,
        block_correlation: false,
        inspection_window: 3,
        network_correlation: false,
        portmap_bits: 2,
        ports_per_slice: 16,
        learn_by_driver_slice: false,
        priority_inheritance: false,
        keep_on_run_queue: false,
        charge_driver_time: false,
        tracked_clients: 256,
        tasks_per_client: 256,
        requests_per_client: 1024,
    };
    /// Task-aware scheduling as §3 has it; nothing of the driver's part (§4).
    pub const TASK_AWARE: TavsSettings = TavsSettings {
        inference: true,
        partial_boosting: true,
        block_correlation: true,
        network_correlation: true,
        ..TavsSettings::OFF
    };
    /// Everything that the paper has.
    pub const PAPER: TavsSettings =
        TavsSettings { priority_inheritance: true, keep_on_run_queue: true, ..TavsSettings::TASK_AWARE };
    /// Everything, charging the driver's time included.
    pub const ALL: TavsSettings = TavsSettings { charge_driver_time: true, ..TavsSettings::PAPER };

    /// Whether no part is switched on: this is the plain credit scheduler.
    pub const fn is_off(&self) -> bool {
        let task_aware = self.inference || self.partial_boosting || self.aggressive_boosting;
        let correlating = self.block_correlation || self.network_correlation;
        let driver = self.priority_inheritance || self.keep_on_run_queue || self.charge_driver_time;
        !(task_aware || correlating || driver)
    }
}
