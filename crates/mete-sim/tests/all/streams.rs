//! Streams in the manner of TCP: everything arrives, once and in order, even if packets are lost or late.

use mete_sim::{Report, Scenario, report};
use proptest::prelude::*;

/// A stream of 1 MiB to a guest behind a driver, beside hogs. Settings replace its keys.
const STREAM: &str = r#"
about = "a stream"
duration_ms = 600_000
[network]
mbit_per_s = 100
delay_us = 100
header_bytes = 78
segment_bytes = 1460
[driver]
tell_sent = true
[[remote]]
name = "sender"
sends = { to = "receiver", port = 7, mib = 1 }
[[guest]]
name = "receiver"
[[guest.task]]
name = "reader"
program = [{ receive = { port = 7 } }, { compute_us = 5 }, "done"]
[[guest]]
name = "hog"
count = 3
[[guest.task]]
name = "hog"
program = [{ compute_ms = 10 }, "done"]
"#;

fn run(settings: &[&str], policy: &str) -> Report {
    let settings: Vec<_> = settings.iter().map(|setting| setting.parse().expect("key=value")).collect();
    let scenario = Scenario::parse("stream", STREAM, &settings).unwrap_or_else(|problem| panic!("{problem}"));
    let run = report::run(&scenario, policy, 1, ()).expect("time goes on");
    run.expect("the policy is known").0
}

fn taken(report: &Report) -> u64 {
    report.clients.iter().find(|client| client.name == "receiver").expect("it is there").done
}

#[test]
fn a_stream_that_loses_nothing_is_sent_once() {
    let report = run(&[], "credit");
    assert_eq!(taken(&report), segments());
    assert_eq!((report.network.lost, report.network.senders.sent_again), (0, 0));
}

fn segments() -> u64 {
    (1024 * 1024_u64).div_ceil(1460)
}

#[test]
fn what_a_full_network_card_loses_is_sent_again_and_taken_once() {
    // The driver takes four times as long for a packet as the wire.
    let settings = [
        "driver.receive_ring=8",
        "driver.receive_us=480",
        "remote.sender.sends.window=200",
        "guest.hog.count=1",
    ];
    let report = run(&settings, "credit");
    let network = report.network;
    assert_eq!(taken(&report), segments());
    assert!(network.lost > 0, "{network:?}");
    assert!(network.senders.sent_again >= network.lost, "{network:?}");
}

#[test]
fn segments_are_sent_again_needlessly_to_a_receiver_that_is_kept_waiting() {
    // Each of the hogs has a second at a time.
    let settings = ["guest.hog.count=2", "policy.quantum_ms=1000"];
    let report = run(&settings, "rr");
    let senders = report.network.senders;
    assert_eq!(taken(&report), segments());
    assert_eq!(report.network.lost, 0);
    assert!(senders.ran_out > 0 && senders.in_vain > 0, "{senders:?}");
    assert!(senders.in_vain <= senders.ran_out, "{senders:?}");
}

#[test]
fn what_a_task_does_not_take_its_kernel_acknowledges_and_the_sender_waits_for_room() {
    let program =
        "guest.receiver.task.reader.program=[{ receive = { port = 7 } }, { sleep_ms = 700 }, \"done\"]";
    let report = run(&[program, "duration_ms=60_000"], "credit");
    assert_eq!(report.network.senders.sent_again, 0, "{:?}", report.network);
    assert!((80..=86).contains(&taken(&report)), "one each 700 ms: {}", taken(&report));
}

#[test]
fn a_stream_on_a_network_without_a_longest_packet_comes_in_pieces() {
    let report = run(&["network.segment_bytes=0", "duration_ms=10_000"], "credit");
    assert_eq!(taken(&report), segments());
}

#[test]
fn a_stream_with_a_window_of_a_hundred_thousand_segments_that_loses_many_comes_to_its_end() {
    let settings = [
        "network.mbit_per_s=0",
        "driver.receive_ring=3000",
        "remote.sender.sends.window=100_000",
        "remote.sender.sends.mib=100",
        "guest.hog.count=1",
    ];
    let report = run(&settings, "credit");
    assert_eq!(taken(&report), (100 * 1024 * 1024_u64).div_ceil(1460));
    assert!(report.network.lost > 1000, "{:?}", report.network);
}

#[test]
fn a_message_goes_as_65536_packets_at_most() {
    let asks = r#"asks = { to = "receiver", port = 7, bytes = 1e12, think_ms = 1 }"#;
    let text = STREAM.replace(r#"sends = { to = "receiver", port = 7, mib = 1 }"#, asks);
    let settings = ["network.segment_bytes=1", "network.mbit_per_s=0", "duration_ms=10_000"];
    let settings = settings.map(|setting| setting.parse().expect("key=value"));
    let scenario = Scenario::parse("stream", &text, &settings).unwrap_or_else(|problem| panic!("{problem}"));
    let report = report::run(&scenario, "credit", 1, ()).expect("time goes on").expect("it is known").0;
    assert_eq!(taken(&report), 1 << 16, "of the first question, which has no answer");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_stream_arrives_whole_and_once_with_any_loss_and_delay(
        ring in 1u32..64,
        window in 2u64..300,
        receive_us in 1u32..600,
        patience_ms in 0u32..400,
        hogs in 1u32..5,
        batch in 1u32..80,
    ) {
        let settings = [
            format!("driver.receive_ring={ring}"),
            format!("driver.receive_us={receive_us}"),
            format!("driver.batch={batch}"),
            format!("guest.hog.count={hogs}"),
            format!("remote.sender.sends.window={window}"),
            format!("remote.sender.sends.patience_ms={patience_ms}"),
            "remote.sender.sends.mib=0.2".to_owned(),
        ];
        let report = run(&settings.iter().map(String::as_str).collect::<Vec<_>>(), "credit");
        prop_assert_eq!(taken(&report), 209_715_u64.div_ceil(1460), "{:?}", report.network);
        prop_assert!(report.network.senders.sent_again >= report.network.lost);
    }
}
