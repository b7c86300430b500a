//! A server with probes. It prints nothing and runs until it is killed or its time is over:
//!
//! ```sh
//! cargo run --example requests -- 5      # seconds
//! ```

use std::time::{Duration, Instant};

use mete_probe::{DomainId, NO_DOMAIN, enter, event, exit, probe, sample};

event! {
    /// A request was taken.
    static REQUEST: access "request";
    /// From taking a request to its answer.
    static SERVICE: phase "service";
    /// Requests that wait.
    static QUEUE: sample "queue length";
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|seconds| seconds.parse().ok()).unwrap_or(2);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut served = 0_u64;
    while Instant::now() < end {
        serve(1000 + (served % 3) as u32, served % 5);
        served += 1;
    }
}

/// Serves one client.
fn serve(client: u32, waiting: u64) {
    sample!(QUEUE, waiting);
    probe!(REQUEST, domain_of(client));
    let phase = enter!(SERVICE);
    std::thread::sleep(Duration::from_micros(50)); // the work
    exit!(SERVICE, phase, domain_of(client));
}

/// The domain at the other end: the one that the scheduler bound the client to. It is looked up only while
/// the event is on, because a probe evaluates its arguments only then.
fn domain_of(client: u32) -> DomainId {
    mete_probe::domain_of_process(client).unwrap_or(NO_DOMAIN)
}
