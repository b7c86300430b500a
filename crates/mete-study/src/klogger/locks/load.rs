//! The paper's three loads, and the waits for locks while one of them runs.

use std::time::Duration;

use mete_base::progress::Progress;
use mete_bench::busy::Busy;
use mete_bench::crew::now_ns;
use mete_bench::load::Load;
use mete_bench::realtime::Realtime;
use mete_bench::recording::ScratchRecording;
use mete_bench::scratch::Scratch;
use mete_measure::{Reason, processor};
use mete_trace::Symbols;

use super::network::Network;
use super::waited::{Waited, Watched};
use super::web::Server;
use crate::klogger::pause;
use crate::klogger::workloads::{self, Started};
use crate::trace::LOCKING;

/// How long the use by other programs is watched before a load starts.
const BEFORE: Duration = Duration::from_millis(200);
/// How long a load runs before it is watched.
const WARM: Duration = Duration::from_millis(200);
/// The longest time for which this thread has a real-time priority.
const LIMIT: Duration = Duration::from_secs(10);

/// A load that is run with a growing number of processes at once.
pub(super) struct LockLoad {
    pub name: &'static str,
    start: fn(usize) -> Result<Running, Reason>,
}

/// make, Netperf, a web server.
pub(super) const LOADS: [LockLoad; 3] = [
    LockLoad { name: "make", start: make },
    LockLoad { name: "network", start: network },
    LockLoad { name: "web server", start: web },
];

/// A load that runs until it is dropped.
enum Running {
    Make { _started: Started, _scratch: Scratch },
    Network { _pairs: Network },
    Web { _clients: Load, _server: Server },
}

fn make(jobs: usize) -> Result<Running, Reason> {
    let scratch = Scratch::new()?;
    let started = workloads::compile(scratch.path(), jobs)?;
    Ok(Running::Make { _started: started, _scratch: scratch })
}

fn network(pairs: usize) -> Result<Running, Reason> {
    Ok(Running::Network { _pairs: Network::start(pairs)? })
}

fn web(clients: usize) -> Result<Running, Reason> {
    let server = Server::start(processor::allowed().len())?;
    Ok(Running::Web { _clients: server.clients(clients)?, _server: server })
}

impl LockLoad {
    /// Runs this number of the load's processes at once, and watches them for this time. May take a real-time
    /// priority meanwhile.
    pub(super) fn measure(
        &self,
        parallel: usize,
        time: Duration,
        symbols: &Symbols,
        progress: &dyn Progress,
    ) -> Result<Waited, Reason> {
        // A load whose processes wake each other tens of thousands of times a second can make other sessions
        // of a fair kernel wait. This thread needs the priority to end in time, and sleeps nearly always.
        // Where it may not have the priority, the measurement ends late.
        let _urgent = Realtime::begin(LIMIT).ok();
        // The recording is prepared before the load starts, because its threads have no such priority.
        let session = ScratchRecording::begin("locking", &LOCKING)?;
        let others = busy(progress)?;
        let running = (self.start)(parallel)?;
        // What its start waits for is not what the load waits for.
        pause(WARM, progress);
        let from_ns = now_ns();
        let passed = pause(time, progress);
        let to_ns = now_ns();
        // The load runs until recording has ended, so that its end is not measured.
        let recorded = session.end()?;
        drop(running);
        let watched = Watched { when: from_ns..=to_ns, passed, processors: processor::allowed().len() };
        Ok(Waited { others, ..Waited::of(&recorded, &watched, symbols) })
    }
}

/// Percent of all processors' time that is used while no load of this study runs. The use beside a load is
/// not measured: for that, each switch would have to be recorded, which would change the result.
fn busy(progress: &dyn Progress) -> Result<f64, Reason> {
    let before = Busy::now()?;
    pause(BEFORE, progress);
    Ok(Busy::now()?.percent_since(before))
}
