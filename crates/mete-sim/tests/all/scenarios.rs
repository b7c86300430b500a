//! Scenario files: the shipped ones run, and a mistake in a file is reported with its line and key.

use mete_policy::{CATALOG, Nanoseconds};
use mete_sim::scenario::SHIPPED;
use mete_sim::scene::Awaited;
use mete_sim::{Scenario, Setting, report};
use proptest::prelude::*;

const SMALL: &str = r#"about = "two tasks"
duration_ms = 1000

[host]
processors = 1

[[task]]
name = "a"
share = 3
program = [{ compute_ms = 5 }, { sleep_ms = { exponential = 2 } }, "done"]

[[task]]
name = "b"
program = [{ compute_ms = 50 }]
"#;

fn failure(text: &str) -> String {
    Scenario::parse("x.toml", text, &[]).expect_err("it is wrong").to_string()
}

fn setting(setting: &str) -> Result<Scenario, String> {
    let scenario = setting.parse().and_then(|setting| Scenario::parse("x.toml", SMALL, &[setting]));
    scenario.map_err(|error| error.to_string())
}

#[test]
fn every_shipped_scenario_runs_under_every_policy_and_its_times_add_up() {
    for shipped in SHIPPED {
        let short = ["warm_up_ms=500", "duration_ms=2000"].map(|text| text.parse().expect("key=value"));
        let scenario = Scenario::load(shipped.name, &short).expect("it is right");
        assert!(!scenario.about.is_empty());
        for entry in CATALOG {
            let run = report::run(&scenario, entry.name, 1, ()).expect("it is in the catalog");
            let (report, ()) = run.expect("time goes on");
            let processors = u64::from(scenario.hardware.processors);
            assert_eq!(report.times.total_ns(), report.measured_ns * processors, "{}", shipped.name);
            let ran_ns: Nanoseconds = report.clients.iter().map(|client| client.ran_ns).sum();
            assert_eq!(
                ran_ns,
                Nanoseconds::new(report.times.run_ns.get()),
                "{} under {}",
                shipped.name,
                entry.name
            );
        }
    }
}

#[test]
fn a_key_that_does_not_exist_is_named_with_its_line_and_what_is_allowed() {
    assert_eq!(
        failure(&SMALL.replace("processors = 1", "procesors = 1")),
        "x.toml, line 5: `procesors = 1`: unknown field `procesors`, expected one of `processors`, \
         `switch_us`, `payer`, `track_ns`"
    );
    let program = failure(&SMALL.replace("sleep_ms", "sleep_sec"));
    assert!(program.starts_with("x.toml, line 10: ") && program.contains("`sleep_sec`"), "{program}");
    assert!(program.contains("`sleep_ms`"), "{program}");
    let top = failure(&format!("sed = 1\n{SMALL}"));
    assert!(
        top.starts_with("x.toml, line 1: `sed = 1`: unknown field `sed`") && top.contains("`seed`"),
        "{top}"
    );
    let twice = failure(&SMALL.replace("{ compute_ms = 50 }", "{ compute_ms = 50, sleep_ms = 1 }"));
    assert!(twice.starts_with("x.toml, line 14: "), "{twice}");
}

#[test]
fn a_value_of_the_wrong_kind_or_out_of_range_is_named_with_its_line() {
    for (from, to, expected) in [
        ("share = 3", "share = 0", "line 9: share: 1 to 1048576, not 0"),
        (
            "share = 3",
            "share = \"3\"",
            "line 9: `share = \"3\"`: invalid type: string \"3\", expected a whole number, 1 to 1048576",
        ),
        ("share = 3", "share = -3", "integer `-3`, expected a whole number, 1 to 1048576"),
        ("processors = 1", "processors = -1", "integer `-1`, expected a whole number, 1 to 4096"),
        (
            "share = 3",
            "share = 99999999999999999999",
            "integer `99999999999999999999`, expected a whole number, 1 to",
        ),
        ("\"done\"", "\"dome\"", "there is no `dome`"),
        (
            "duration_ms = 1000",
            "duration_ms = 1e300",
            "duration_ms: 1e300 is out of range: 0 to 1152921504606 ms",
        ),
        ("name = \"b\"", "name = \"b\"\nstart_ms = \"x\"", "expected a number"),
        ("processors = 1", "processors = 0", "line 5: processors: 1 to 4096, not 0"),
        (
            "duration_ms = 1000",
            "duration_ms = -1",
            "line 2: duration_ms: -1 is out of range: 0 to 1152921504606 ms",
        ),
        ("duration_ms = 1000", "duration_ms = 1e12", "line 2: duration_ms: too long for the times of 4096"),
        (
            "{ compute_ms = 50 }",
            "{ compute_ms = { uniform = [0, 0] } }",
            "line 13: program: that of \"b\" takes",
        ),
        ("{ compute_ms = 50 }", "\"done\"", "line 13: program: that of \"b\" takes no time"),
        ("name = \"b\"", "name = \"a\"", "line 13: name: there are two called \"a\""),
        ("{ exponential = 2 }", "{ uniform = [3, 2] }", "line 10: sleep_ms: a uniform number goes from"),
        ("{ exponential = 2 }", "{ exponental = 2 }", "line 10: "),
        ("{ exponential = 2 }", "{ uniform = [1, 2, 3] }", "it takes two numbers, not 3"),
    ] {
        assert!(SMALL.contains(from), "{from}");
        let processors = if to.contains("1e12") { "processors = 4096" } else { "processors = 1" };
        let found = failure(&SMALL.replace("processors = 1", processors).replace(from, to));
        assert!(found.starts_with("x.toml, ") && found.contains(expected), "{found}");
    }
}

/// A slice of length 0 would end at once, over and over, and time would not go on.
#[test]
fn settings_that_a_guests_kernel_cannot_have_are_refused() {
    let guest = |table: &str, task: &str| {
        failure(&format!(
            "{SMALL}[[guest]]\nname = \"g\"\n{table}\n[[guest.task]]\nname = \"t\"\n{task}\nprogram = [\"yield\", {{ compute_ms = 1 }}]\n"
        ))
    };
    for (table, task, expected) in [
        ("scheduler = { priority = { slice_ms = 0 } }", "", "scheduler: slice_ms: more than 0, not 0"),
        ("scheduler = { fair = { latency_ms = 0, least_ms = 1 } }", "", "latency_ms: more than 0, not 0"),
        ("scheduler = { fair = { latency_ms = 1, least_ms = 0 } }", "", "least_ms: more than 0, not 0"),
        ("", "nice = 20", "nice: -20 to 19, not 20"),
        ("", "nice = -21", "nice: -20 to 19, not -21"),
    ] {
        let found = guest(table, task);
        assert!(found.starts_with("x.toml, line ") && found.contains(expected), "{found}");
    }
}

#[test]
fn a_name_that_refers_to_nothing_is_answered_with_the_names_that_there_are() {
    let domain = failure(&SMALL.replace("share = 3", "domain = \"d\""));
    assert_eq!(domain, "x.toml, line 9: domain: there is no \"d\"; allowed: none is defined");
    let disk = failure(&SMALL.replace("\"done\"", "{ read = { disk = \"d\", kb = 4 } }"));
    assert_eq!(disk, "x.toml, line 10: disk: there is no \"d\"; allowed: none is defined");
    let to = failure(&SMALL.replace("\"done\"", "{ send = { to = \"c\", port = 1, bytes = 4 } }"));
    assert_eq!(to, "x.toml, line 10: to: there is no \"c\"; allowed: a, b");
    let locks = |first, second| SMALL.replace("\"done\"", &format!("{{ {first} }}, {{ {second} }}"));
    let unlock = failure(&locks("lock = \"l\"", "unlock = \"L\""));
    assert!(unlock.ends_with("line 10: lock: \"l\" is in no unlock of any program"), "{unlock}");
    let lock = failure(&SMALL.replace("\"done\"", "{ unlock = \"l\" }"));
    assert!(lock.ends_with("line 10: unlock: \"l\" is in no lock or spin_lock of any program"), "{lock}");
    let policy = failure(&format!("{SMALL}[policy]\nname = \"rrr\"\n"));
    assert!(policy.starts_with("x.toml, line 16: policy.name: there is no \"rrr\"; allowed: "), "{policy}");
}

#[test]
fn settings_change_keys_by_their_paths() {
    assert_eq!(setting("host.processors=3").map(|scenario| scenario.hardware.processors), Ok(3));
    assert_eq!(setting("task.a.share=7").map(|scenario| scenario.clients[0].share.get()), Ok(7));
    assert_eq!(setting("task.1.count=4").map(|scenario| scenario.clients.len()), Ok(5));
    assert_eq!(setting("policy.name=rr").map(|scenario| scenario.policy.name), Ok("rr"));
    assert_eq!(
        setting("host.switch_us=1.5").map(|scenario| scenario.hardware.switch_ns),
        Ok(Nanoseconds::new(1500))
    );
}

#[test]
fn the_parts_of_tavs_can_be_set_one_by_one() {
    let settings = [
        "policy.credit.boost_ratio=0.25",
        "policy.credit.keep_on_run_queue=false",
        "policy.credit.tick_ms=5",
    ];
    let scenario = Scenario::parse("x.toml", SMALL, &settings.map(|text| text.parse().expect("key=value")))
        .expect("it is right");
    let policy = scenario.policy("credit-tavs", 1).expect("it is in the catalog");
    assert_eq!(policy.tick_ns(), Some(Nanoseconds::new(5_000_000)));
    for (wrong, expected) in [
        ("policy.credit.boost_ratio=2", "policy.credit.boost_ratio: 0 to 1, not 2"),
        ("policy.credit.portmap_bits=9", "policy.credit.portmap_bits: 1 to 8, not 9"),
        ("policy.credit.tick_ms=0", "policy.credit.tick_ms: more than 0, not 0"),
        ("policy.credit.negative_evidence=-20", "policy.credit.negative_evidence: 0 to 32767, not -20"),
        ("policy.credit.negative_evidence=40000", "expected a whole number, -32768 to 32767"),
        ("policy.credit.belief_min=301", "policy.credit.belief_min: at most belief_max, 300, not 301"),
        ("policy.credit.boosting=true", "unknown field `boosting`"),
    ] {
        let found = setting(wrong).expect_err("it fits nothing");
        assert!(found.starts_with(&format!("--set {wrong}: ")) && found.contains(expected), "{found}");
    }
}

#[test]
fn a_domain_can_be_warped_under_bvt() {
    let domain = "[[domain]]\nname = \"fast\"\n";
    let text = format!("{domain}{}", &SMALL[SMALL.find("[[task]]").expect("it has one")..]);
    let text = format!("about = \"\"\nduration_ms = 5000\n{text}").replace("share = 3", "domain = \"fast\"");
    let wait_ns = |settings: &[Setting]| {
        let scenario = Scenario::parse("x.toml", &text, settings).expect("it is right");
        let (report, ()) = report::run(&scenario, "bvt", 1, ()).expect("it is known").expect("time goes on");
        report.clients[0].longest_wait_ns
    };
    let warp = "policy.bvt.warp={ domain = \"fast\", warp_ms = 100, limit_ms = 100, rest_ms = 0 }";
    let (plain_ns, warped_ns) = (wait_ns(&[]), wait_ns(&[warp.parse().expect("key=value")]));
    assert!(warped_ns < plain_ns, "{warped_ns} against {plain_ns}");
    let wrong = Scenario::parse("x.toml", &text, &[warp.replace("fast", "slow").parse().expect("key=value")])
        .expect_err("there is none");
    assert!(wrong.to_string().contains("there is no \"slow\"; allowed: fast"), "{wrong}");
}

#[test]
fn a_setting_that_fits_nothing_is_an_error_and_never_ignored() {
    for (wrong, expected) in [
        ("host.processor=3", "unknown field `processor`"),
        ("hosts.processors=3", "unknown field `hosts`"),
        ("task.c.share=3", "there is no \"c\" in task; there are a, b"),
        ("task.share=3", "task is a list: name one of its elements"),
        ("about.x=3", "about is a value"),
        ("host.processors", "it takes key=value"),
        ("task.a.share=0", "share: 1 to 1048576, not 0"),
    ] {
        let found = setting(wrong).expect_err("it fits nothing");
        assert!(found.starts_with(&format!("--set {wrong}: ")) && found.contains(expected), "{found}");
    }
    // A key below something that is not a list of tables fails, too.
    assert!(setting("task=3").is_err());
}

#[test]
fn a_scenario_that_is_neither_file_nor_shipped_is_answered_with_the_shipped_ones() {
    let found = Scenario::load("no-such-scenario", &[]).expect_err("there is none").to_string();
    assert!(found.contains("no-such-scenario") && SHIPPED.iter().all(|shipped| found.contains(shipped.name)));
}

#[test]
fn another_client_does_not_shift_the_random_numbers_of_the_others() {
    let bursts = |text: &str| {
        let scenario = Scenario::parse("x.toml", text, &["host.processors=4".parse().expect("key=value")])
            .expect("it is right");
        let (report, ()) = report::run(&scenario, "rr", 1, ()).expect("it is known").expect("time goes on");
        (report.clients[0].ran_ns, report.clients[0].wakes, report.clients[0].done)
    };
    let with_one_more =
        format!("{SMALL}\n[[task]]\nname = \"c\"\nprogram = [{{ compute_ms = {{ uniform = [1, 3] }} }}]\n");
    assert_eq!(bursts(SMALL), bursts(&with_one_more));
}

#[test]
fn shares_can_change_while_a_scenario_runs() {
    let text = format!("{SMALL}\n[[change]]\nat_ms = 500\nclient = \"b\"\nshare = 30\n");
    let scenario = Scenario::parse("x.toml", &text.replace("{ sleep_ms = { exponential = 2 } }, ", ""), &[]);
    let scenario = scenario.expect("it is right");
    let (report, ()) = report::run(&scenario, "stride", 1, ()).expect("it is known").expect("time goes on");
    // Half a second at 3 to 1, and half a second at 3 to 30.
    let expected_ns = 125_000_000 + 454_545_454;
    assert!(
        report.clients[1].ran_ns.abs_diff(Nanoseconds::new(expected_ns)) < Nanoseconds::new(30_000_000),
        "{}",
        report.clients[1].ran_ns
    );
}

fn under_every_policy(text: &str, check: impl Fn(&str, &report::Report)) {
    let scenario = Scenario::parse("x.toml", text, &[]).expect("it is right");
    for entry in CATALOG {
        let (report, ()) =
            report::run(&scenario, entry.name, 1, ()).expect("it is known").expect("time goes on");
        check(entry.name, &report);
    }
}

#[test]
fn when_all_wait_for_ever_processors_idle_and_the_run_ends() {
    let first_the_other = |to: &str| {
        format!("{{ receive = {{ port = 7 }} }}, {{ send = {{ to = \"{to}\", port = 7, bytes = 1 }} }}")
    };
    let text = SMALL.replace("{ compute_ms = 5 }", &first_the_other("b"));
    let text =
        text.replace("{ compute_ms = 50 }", &format!("{{ compute_ms = 50 }}, {}", first_the_other("a")));
    under_every_policy(&text, |policy, report| {
        assert_eq!(
            (report.times.run_ns, report.times.idle_ns),
            (Nanoseconds::from_millis(50), Nanoseconds::from_millis(950)),
            "{policy}"
        );
        let said: Vec<_> = report.waiting.iter().map(ToString::to_string).collect();
        let expected = [
            "a waits for a packet to port 7 since 0.000 ms",
            "b waits for a packet to port 7 since 50.000 ms",
        ];
        assert_eq!(said, expected, "{policy}");
    });
}

#[test]
fn a_share_larger_than_all_others_together_leaves_the_processor_busy_and_no_client_out() {
    let text =
        SMALL.replace("share = 3", "share = 1048576").replace("{ sleep_ms = { exponential = 2 } }, ", "");
    under_every_policy(&text.replace("duration_ms = 1000", "duration_ms = 60_000"), |policy, report| {
        assert_eq!(report.times.run_ns, Nanoseconds::new(60_000_000_000), "{policy}");
        // A cycle of shares, a round or a drawing may be longer than the run; the larger share still has its
        // part of it.
        let others = ["rr", "goodness", "fair-share", "credit", "credit-tavs"];
        let least = if others.contains(&policy) { 0.49 } else { 0.99 };
        assert!(report.clients[0].got > least, "{policy}: {}", report.clients[0].got);
    });
}

#[test]
fn a_million_clients_take_their_first_steps() {
    let text = "about = \"many\"\nduration_ms = 20\n[policy]\nname = \"vtrr\"\n[[task]]\nname = \"t\"\n\
                count = 1000000\nprogram = [{ compute_ms = 10 }]\n";
    let scenario = Scenario::parse("x.toml", text, &[]).expect("it is right");
    let (report, ()) = report::run(&scenario, "vtrr", 1, ()).expect("it is known").expect("time goes on");
    assert_eq!((report.clients.len(), report.decisions), (1_000_000, 2));
    let more = text.replace("1000000", "1048577");
    assert!(failure(&more).contains("count: at most 1048576, not 1048577"));
}

/// The scenario's host is the TAVS paper's; `tavs_host.rs` tests the paper's claims.
#[test]
fn tavs_8_the_shipped_host_answers_late_under_credit_and_at_once_under_tavs() {
    let scenario =
        Scenario::load("tavs-host", &["duration_ms=30000".parse().expect("key=value")]).expect("it is right");
    let mean_ns = |policy| {
        let (report, ()) =
            report::run(&scenario, policy, 1, ()).expect("it is in the catalog").expect("time goes on");
        let mixed = report.clients.iter().find(|client| client.name == "mixed").expect("it is there");
        mixed.response.as_ref().and_then(|response| response.mean_ns()).expect("it was asked")
    };
    let (baseline_ns, tavs_ns) = (mean_ns("credit"), mean_ns("credit-tavs"));
    assert!(baseline_ns > 40e6 && tavs_ns < 4e6, "{baseline_ns} and {tavs_ns}");
}

#[test]
fn mistakes_in_a_driver_or_a_remote_machine_are_reported() {
    let with = |table: &str| failure(&format!("{SMALL}{table}\n"));
    for (table, expected) in [
        ("[driver]\nbatch = 0", "line 16: batch: 1 or more, not 0"),
        ("[driver]\nreceive_ms = 1", "line 16: `receive_ms = 1`: unknown field `receive_ms`"),
        ("[driver]\nname = \"a\"", "line 8: name: there are two called \"a\""),
        ("[[remote]]\nname = \"r\"", "line 16: a remote machine does one of asks, sends and serves"),
        (
            "[[remote]]\nname = \"r\"\nsends = { to = \"c\", port = 1 }",
            "line 17: to: there is no \"c\"; allowed: a, b",
        ),
        (
            "[[remote]]\nname = \"r\"\nserves = { kib = 1, think_ms = 1, window = 0 }",
            "line 17: window: 2 to 1000000 segments, not 0",
        ),
        (
            "[[remote]]\nname = \"r\"\ncount = 0\nserves = { kib = 1, think_ms = 1 }",
            "line 17: count: 1 or more",
        ),
        (
            "[[task]]\nname = \"t\"\nprogram = [{ request = { remote = \"r\", port = 1, bytes = 1 } }]",
            "line 17: remote: there is no \"r\"; allowed: none is defined",
        ),
    ] {
        let found = with(table);
        assert!(found.starts_with("x.toml, ") && found.contains(expected), "{found}");
    }
}

proptest! {
    /// A damaged text is refused or is a scenario; the same holds for its settings.
    #[test]
    fn no_text_and_no_setting_makes_the_reader_panic(
        which in 0..SHIPPED.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), "[ -~äé\n]{0,3}"), 0..4),
        setting in "[a-z0-9._]{0,12}=?[ -~]{0,8}",
    ) {
        let mut text: Vec<char> = SHIPPED[which].text.chars().collect();
        for (place, new) in changes {
            let place = place.index(text.len());
            text.splice(place..(place + 1), new.chars());
        }
        let text = String::from_iter(text);
        let _ = Scenario::parse("x.toml", &text, &[]);
        let parsed = setting.parse().and_then(|setting| Scenario::parse("x.toml", &text, &[setting]));
        if let Err(error) = parsed {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}

/// One task takes two locks in one order, another task takes them in the other order.
#[test]
fn a_deadlock_is_named_at_the_end_of_a_run_in_a_guest_as_well() {
    let take = |first: &str, second: &str| {
        format!(
            "[{{ lock = \"{first}\" }}, {{ sleep_ms = 1 }}, {{ lock = \"{second}\" }}, {{ unlock = \"{second}\" }}, \
             {{ unlock = \"{first}\" }}]"
        )
    };
    let (one, other) = (take("x", "y"), take("y", "x"));
    let head = "about = \"\"\nduration_ms = 1000\n";
    let tasks =
        format!("{head}[[task]]\nname = \"a\"\nprogram = {one}\n[[task]]\nname = \"b\"\nprogram = {other}\n");
    let guest = format!(
        "{head}[[guest]]\nname = \"g\"\n[[guest.task]]\nname = \"a\"\nprogram = {one}\n\
         [[guest.task]]\nname = \"b\"\nprogram = {other}\n"
    );
    for (text, names) in [(tasks, ["a", "b"]), (guest, ["g/a", "g/b"])] {
        under_every_policy(&text, |policy, report| {
            let found: Vec<_> = report.waiting.iter().map(|task| (task.name.as_str(), task.wait)).collect();
            assert_eq!(found, names.map(|name| (name, Awaited::Lock)), "{policy}");
        });
    }
}

#[test]
fn ports_without_a_receiver_or_without_a_sender_are_named() {
    let send = failure(&SMALL.replace("\"done\"", "{ send = { to = \"b\", port = 1, bytes = 4 } }"));
    assert_eq!(
        send,
        "x.toml, line 10: port: no task of its receiver receives on 1; allowed: it receives on none"
    );
    let receive = failure(&SMALL.replace("\"done\"", "{ receive = { port = 8 } }"));
    assert!(receive.starts_with("x.toml, line 10: port: no packet comes to 8: "), "{receive}");
    let both = SMALL
        .replace("\"done\"", "{ send = { to = \"b\", port = 2, bytes = 4 } }")
        .replace("{ compute_ms = 50 }", "{ receive = { port = 3 } }");
    assert!(failure(&both).ends_with("receives on 2; allowed: 3"), "{}", failure(&both));
    let remote = "[network]\n[[remote]]\nname = \"r\"\nsends = { to = \"a\", port = 5 }\n";
    assert!(failure(&format!("{SMALL}{remote}")).starts_with("x.toml, line 18: port: "));
    let serves = "[[remote]]\nname = \"r\"\nserves = { kib = 1, think_ms = 1 }\n";
    let no_network = failure(&format!("{SMALL}{serves}"));
    assert_eq!(
        no_network,
        "x.toml, line 16: a [[remote]] needs a network: add a [network] table, which may be empty"
    );
}

#[test]
fn a_change_after_the_end_of_the_run_is_refused() {
    let change = |at_ms: u32| format!("{SMALL}[[change]]\nat_ms = {at_ms}\nclient = \"a\"\nshare = 2\n");
    assert!(Scenario::parse("x.toml", &change(999), &[]).is_ok());
    assert_eq!(
        failure(&change(1000)),
        "x.toml, line 16: at_ms: before the end of the run (duration_ms), 1000, not 1000"
    );
}
