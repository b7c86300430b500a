//! A load on the network like the paper's Netperf (KLogger paper, §8.1), which is not among Debian's free
//! packages. It consists of pairs of sockperf processes, a server and a client each, which exchange messages
//! over TCP on the loopback device.

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use mete_bench::load::Load;
use mete_bench::scratch::Scratch;
use mete_measure::Reason;

/// Bytes of a request and of its answer. The paper's requests have the same size, its answers twice as much.
const BYTES: &str = "100";
/// The longest time until all servers listen.
const START: Duration = Duration::from_secs(10);

/// Pairs of processes that exchange messages. They end when this is dropped.
pub struct Network {
    // Fields are dropped in this order: the clients, then the servers, then their directory.
    _clients: Vec<Load>,
    _servers: Vec<Load>,
    _scratch: Scratch,
}

impl Network {
    /// Starts `pairs` pairs, which run for a minute unless they are dropped.
    ///
    /// # Errors
    ///
    /// If sockperf is not installed, or does not start.
    pub fn start(pairs: usize) -> Result<Network, Reason> {
        let scratch = Scratch::new()?;
        let ports = free_ports(pairs)?;
        let start = |verb: &[&str], port: &str| {
            let words = [&["sockperf"], verb, &["--tcp", "-i", "127.0.0.1", "-p", port]].concat();
            Load::start(&words, scratch.path())
        };
        let servers = ports.iter().map(|port| start(&["server"], port)).collect::<Result<_, _>>()?;
        // A client that starts before its server ends with an error.
        wait_for("sockperf", &ports)?;
        let asks = ["ping-pong", "-t", "60", "-m", BYTES];
        let clients = ports.iter().map(|port| start(&asks, port)).collect::<Result<_, _>>()?;
        Ok(Network { _clients: clients, _servers: servers, _scratch: scratch })
    }
}

/// Ports that are free. Another process may take one before its server does; then the server does not start.
pub(super) fn free_ports(number: usize) -> Result<Vec<String>, Reason> {
    // All ports are held before the first one is released, so that no two are the same.
    let held: Vec<_> = (0..number).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
    held.iter().map(|listener| Ok(listener.local_addr()?.port().to_string())).collect()
}

/// Waits until servers listen at these ports.
pub(super) fn wait_for(server: &str, ports: &[String]) -> Result<(), Reason> {
    let begin = Instant::now();
    for port in ports {
        while TcpStream::connect(format!("127.0.0.1:{port}")).is_err() {
            if begin.elapsed() > START {
                return Err(Reason::new(format!("{server} does not start here")));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mete_bench::child::check_installed;

    /// The number of packets that the loopback device has carried.
    fn packets() -> u64 {
        let text = std::fs::read_to_string("/sys/class/net/lo/statistics/rx_packets");
        text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or_default()
    }

    #[test]
    fn klog_9_pairs_over_the_loopback_network_ask_and_answer() -> Result<(), Reason> {
        if let Err(reason) = check_installed("sockperf") {
            println!("SKIPPED: {reason}");
            return Ok(());
        }
        let network = Network::start(2)?;
        let (before, begin) = (packets(), Instant::now());
        while packets() < before + 200 {
            assert!(begin.elapsed() < Duration::from_secs(20), "{} packets", packets() - before);
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(network);
        Ok(())
    }
}
