//! The machine against queueing theory: it reproduces what is known in closed form.
//!
//! Runs are repeatable, so a figure within its margin stays within it. The margins are about three standard
//! errors of runs of this length.

use mete_policy::CATALOG;
use mete_sim::{Report, Scenario, report};

fn run(text: &str, policy: &str) -> Report {
    let scenario = Scenario::parse("theory", text, &[]).expect("it is right");
    report::run(&scenario, policy, 1, ()).expect("it is in the catalog").expect("time goes on").0
}

/// How many of `processors` are busy on average, if `clients` think and compute for exponential times, and
/// compute for `load` times as long as they think (the machine repairman's model, M/M/c//N). It holds for
/// every policy that conserves work and does not know how long a computation will be.
fn busy(processors: u32, clients: u32, load: f64) -> f64 {
    let mut weights = vec![1.0];
    for n in 1..=clients {
        // From n − 1 to n computing clients: each client that thinks may come, and as many as are served may
        // go.
        let coming = f64::from(clients - n + 1) * load;
        weights.push(weights[n as usize - 1] * coming / f64::from(n.min(processors)));
    }
    let all: f64 = weights.iter().sum();
    let busy = weights.iter().zip(0u32..).map(|(weight, n)| weight * f64::from(n.min(processors)));
    busy.sum::<f64>() / all
}

#[test]
fn processors_are_as_busy_as_theory_says_under_every_policy() {
    assert!(
        (busy(1, 1, 1.0) - 0.5).abs() < 1e-9 && (busy(3, 3, 1.0) - 1.5).abs() < 1e-9,
        "it is the formula"
    );
    for (processors, clients) in [(1, 5), (2, 8)] {
        let text = format!(
            "about = \"\"\nduration_ms = 500_000\nhost = {{ processors = {processors} }}\n\
             policy = {{ quantum_ms = 3 }}\n[[task]]\nname = \"t\"\ncount = {clients}\n\
             program = [{{ sleep_ms = {{ exponential = 40 }} }}, {{ compute_ms = {{ exponential = 10 }} }}]\n"
        );
        let expected = busy(processors, clients, 0.25);
        for entry in CATALOG {
            let report = run(&text, entry.name);
            let found = report.times.run_ns.get() as f64 / report.measured_ns.get() as f64;
            assert!((found / expected - 1.0).abs() < 0.02, "{}: {found}, not {expected}", entry.name);
        }
    }
}

/// One task asks at random times, another answers the questions in turn. A busy time of the second lasts 1/(μ
/// − λ) on average, for any distribution of service times (M/G/1).
#[test]
fn a_servers_busy_times_are_as_long_as_theory_says() {
    for service in ["{ exponential = 10 }", "10", "{ uniform = [5, 15] }"] {
        let text = format!(
            "about = \"\"\nduration_ms = 2_000_000\nhost = {{ processors = 2 }}\n\
             [[task]]\nname = \"server\"\nprogram = [{{ receive = {{ port = 1 }} }}, {{ compute_ms = {service} }}]\n\
             [[task]]\nname = \"asker\"\nprogram = [{{ sleep_ms = {{ exponential = 20 }} }}, \
             {{ send = {{ to = \"server\", port = 1, bytes = 1 }} }}]\n"
        );
        let report = run(&text, "vtrr");
        let busy_ns = report.clients[0].wake_to_block.as_ref().and_then(|times| times.mean_ns());
        let (busy_ms, expected_ms) = (busy_ns.expect("it was busy") / 1e6, 20.0);
        assert!((busy_ms / expected_ms - 1.0).abs() < 0.03, "{service}: {busy_ms} ms, not {expected_ms}");
        let load = report.clients[0].got * 2.0;
        assert!((load - 0.5).abs() < 0.01, "{service}: {load}");
    }
}
