//! Recursive logging (LOG-15): completes the requests that the example `requests` logs, and passes them on.
//!
//! ```sh
//! cargo run --example requests -- 60 &
//! cargo run --example complete -- $! 60    # its process, seconds
//! ```
//!
//! The requests' server knows only that there was a request; this program knows the shard that it belongs to.
//! A scheduler that reads this program's event sees both.

use std::time::{Duration, Instant};

use mete_probe::attach::Component;
use mete_probe::recursive::Preliminary;
use mete_probe::{DomainId, directory, event, probe};

event! {
    /// A request, and the domain whose shard it went to.
    static SHARDED_REQUEST: access "sharded request";
}

fn main() -> std::process::ExitCode {
    match complete() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("complete: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn complete() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let pid: u32 = arguments.next().ok_or("usage: complete PID [SECONDS]")?.parse()?;
    let seconds = arguments.next().map_or(Ok(5), |seconds| seconds.parse())?;
    let socket = directory::own().join(format!("{pid}.sock"));
    let server = Component::connect(&socket, Duration::from_secs(2))?;
    let mut requests = Preliminary::new(server, &["request"], 4096)?;

    let end = Instant::now() + Duration::from_secs(seconds);
    let mut number = 0;
    while Instant::now() < end {
        let poll = requests.poll(|row| {
            number += 1;
            probe!(SHARDED_REQUEST, shard_of(number), row.counter.unwrap_or(1));
        })?;
        println!("{} requests completed, {} lost before", poll.rows, poll.overwritten + poll.refused);
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

/// The domain that a request's shard belongs to.
fn shard_of(number: u64) -> DomainId {
    DomainId::new((number % 4) as u16 + 1)
}
