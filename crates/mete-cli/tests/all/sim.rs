//! `mete sim`: what it prints, and that a seed prints the same again.

use crate::common::{fails, failure, mete, objects, printed_by, stdout};
use serde_json::Value;

#[test]
fn the_list_names_every_scenario_and_every_policy_with_a_line_each() {
    let list = stdout(&["sim", "--list"]);
    for entry in mete_policy::CATALOG {
        assert!(list.contains(&format!("\n{} ", entry.name)), "{}: {list}", entry.name);
    }
    for shipped in mete_sim::scenario::SHIPPED {
        assert!(list.contains(&format!("\n{} ", shipped.name)), "{}: {list}", shipped.name);
    }
}

#[test]
fn a_seed_prints_the_same_again_byte_for_byte_and_another_seed_does_not() {
    let run = |seed| stdout(&["sim", "mix", "--for", "6s", "--policy", "vtrr,eevdf,lottery", "--seed", seed]);
    assert_eq!(run("1"), run("1"));
    assert_ne!(run("1"), run("2"));
}

#[test]
fn several_policies_stand_side_by_side() {
    let text = stdout(&["sim", "shares-3-2-1", "--policy", "vtrr", "--policy", "rr"]);
    assert!(text.contains("client   wanted %    vtrr      rr"), "{text}");
    assert!(text.contains("three       50.00   50.00   33.33"), "{text}");
}

#[test]
fn several_seeds_and_values_make_estimates_in_the_order_of_their_combinations() {
    let directory = tempfile::tempdir().unwrap();
    let csv = directory.path().join("runs.csv");
    let arguments = ["sim", "mix", "--for", "6s", "--policy", "vtrr,rr", "--seeds", "3"];
    let varied = ["--vary", "host.switch_us=0,50", "--csv", csv.to_str().unwrap()];
    let text = stdout(&[&arguments[..], &varied[..]].concat());
    let order = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        Some((words.next()?, words.next()?)).filter(|_| line.contains(" batch "))
    });
    let order: Vec<_> = order.take(4).collect();
    assert_eq!(order, [("0", "vtrr"), ("0", "rr"), ("50", "vtrr"), ("50", "rr")], "{text}");
    assert!(text.contains(" ±"), "{text}");
    let lines = std::fs::read_to_string(&csv).unwrap();
    assert_eq!(lines.lines().count(), 1 + 2 * 2 * 3 * 4, "{lines}");

    let objects = objects(&stdout(&[&arguments[..], &["--json"][..]].concat()));
    assert_eq!(objects.len(), 2 * 4);
    assert!(objects.iter().all(|object| object["kind"] == "estimate" && object["seeds"] == 3));
    assert!(objects[0]["figures"]["got_percent"]["half_width"].is_number());
}

#[test]
fn plots_are_bars_by_client_or_lines_over_one_keys_values() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let plot = |more: &[&str]| {
        stdout(&[&["sim", "mix", "--for", "6s", "--policy", "vtrr,rr", "--plot", path], more].concat());
        std::fs::read_to_string(directory.path().join("got_percent.svg")).unwrap()
    };
    let bars = plot(&[]);
    assert!(["batch", "film", "vtrr", "rr"].iter().all(|name| bars.contains(&format!(">{name}<"))), "{bars}");
    let lines = plot(&["--vary", "host.switch_us=0,50"]);
    assert!(lines.contains(">vtrr, batch<") && lines.contains("host.switch_us"), "{lines}");
    assert!(directory.path().join("longest_wait_ms.svg").exists());
    assert!(!directory.path().join("response_99_ms.svg").exists(), "no client answers here");
}

#[test]
fn what_cannot_vary_is_said() {
    assert!(failure(&["sim", "mix", "--vary", "host.switch_us"]).contains("nothing to vary"));
    assert!(failure(&["sim", "mix", "--vary", "host.swich_us=1"]).contains("--vary host.swich_us=1: "));
    assert!(failure(&["sim", "mix", "--csv", "runs.csv"]).contains("--seeds"));
}

#[test]
fn json_has_an_object_for_each_run_and_each_client() {
    let objects = objects(&stdout(&["sim", "shares-3-2-1", "--policy", "vtrr,rr", "--json"]));
    let kinds: Vec<_> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["run", "client", "client", "client", "run", "client", "client", "client"]);
    assert_eq!(objects[0]["run_ns"], 60_000_000_000u64);
    assert_eq!(objects[1]["got"], 0.5);
}

#[test]
fn a_trace_is_the_same_bytes_again_and_its_events_are_the_kernel_components() {
    use mete_kernel::event as kernel;
    use mete_sim::trace::{event, read};

    let directory = tempfile::tempdir().unwrap();
    let traced = |name: &str| {
        let path = directory.path().join(name);
        stdout(&["sim", "mix", "--for", "6s", "--trace", path.to_str().unwrap()]);
        std::fs::read(path).unwrap()
    };
    let (first, second) = (traced("first"), traced("second"));
    assert!(first == second);
    assert_eq!(read(&first).unwrap().domains, ["idle", "batch", "editor", "film", "reader"]);
    assert_eq!(
        (event::SERVICE_TIME, event::IPC_SEND, event::IPC_RECEIVE),
        (kernel::SERVICE_TIME, kernel::IPC_SEND, kernel::IPC_RECEIVE)
    );
}

#[test]
fn a_table_has_a_hundred_clients_and_says_how_many_it_leaves_out() {
    let text = stdout(&["sim", "shares-3-2-1", "--for", "1s", "--set", "task.one.count=1000"]);
    assert!(text.contains("… and 902 clients more") && text.lines().count() < 230, "{text}");
}

#[test]
fn a_program_that_stands_still_is_named_by_its_client() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.toml");
    let ping = |name: &str, to: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\nprogram = [{{ send = {{ to = \"{to}\", port = 1, bytes = 1 }} }}, \
             {{ receive = {{ port = 1 }} }}]\n"
        )
    };
    let text = format!("about = \"\"\nduration_ms = 10\n{}{}", ping("here", "there"), ping("there", "here"));
    std::fs::write(&path, text).unwrap();
    let said = failure(&["sim", path.to_str().unwrap()]);
    assert!(said.contains("here: client ") && said.contains("has to take time"), "{said}");
}

#[test]
fn what_is_wrong_is_said_and_nothing_is_run() {
    for (arguments, expected) in [
        (&["sim", "no-such"][..], "there is no scenario \"no-such\": give a file, or one of "),
        (&["sim", "mix", "--policy", "vtrrr"], "there is no policy \"vtrrr\"; did you mean vtrr?"),
        (&["sim", "mix", "--set", "host.proc=2"], "--set host.proc=2: `proc = 2`: unknown field `proc`"),
        (&["sim", "mix", "--set", "host.procesors=2"], "; did you mean `processors`?"),
        (&["sim", "mix", "--for", "1s"], "the warm-up (warm_up_ms) is a part of the duration"),
        (&["sim", "mix", "--trace", "/no/such/folder/x"], "cannot write the trace /no/such/folder/x"),
        (&["sim", "mix", "--trace", "x", "--policy", "rr,vtrr"], "--trace takes a single policy"),
        (&["sim"], "<SCENARIO>"),
    ] {
        fails(arguments, expected);
    }
}

#[test]
fn policies_stand_under_the_names_that_they_were_asked_for_by() {
    let text = stdout(&["sim", "tavs-host", "--for", "6s", "--policy", "credit,credit-tavs", "--json"]);
    let runs = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let policies = runs.filter(|object| object["kind"] == "run").map(|object| object["policy"].clone());
    assert_eq!(policies.collect::<Vec<_>>(), ["credit", "credit-tavs"]);
}

#[test]
fn tables_fit_80_and_120_columns() {
    let sweep = ["--seeds", "2", "--policy", "vtrr,eevdf", "--vary", "host.switch_us=0,5"];
    for scenario in ["mix", "tavs-host", "processors"] {
        for more in [&[][..], &["--cost"], &["--policy", "vtrr,credit-tavs"], &sweep] {
            for columns in [80, 120] {
                let mut command = mete(&[&["sim", scenario, "--for", "6s"], more].concat());
                let assert = command.env("COLUMNS", columns.to_string()).assert().success();
                let text = printed_by(&assert);
                let fits = text.lines().all(|line| line.chars().count() <= columns);
                assert!(fits, "{scenario} {more:?}\n{text}");
            }
        }
    }
}

#[test]
fn service_time_errors_and_starvation_are_shown_for_each_client() {
    let text = stdout(&["sim", "shares-3-2-1", "--policy", "wrr"]);
    assert!(text.contains("error ms   lowest ms   highest ms   starved"), "{text}");
    let json = stdout(&["sim", "shares-3-2-1", "--policy", "wrr", "--set", "starvation_ms=9", "--json"]);
    let clients = objects(&json);
    let one = clients.iter().find(|object| object["client"] == "one").unwrap();
    let three = clients.iter().find(|object| object["client"] == "three").unwrap();
    assert!(one["error_lowest_ns"].as_i64().unwrap() < 0 && three["error_highest_ns"].as_i64().unwrap() > 0);
    assert!(one["starved"].as_u64().unwrap() > 0, "{one}");
    assert!(clients[0]["cost"].is_null() && clients[0]["boost_hit_ratio"].is_null());
}

/// The policy's cost is the only figure that a clock measures, so it is printed only on request.
#[test]
fn a_decisions_cost_is_measured_only_on_request() {
    let json = stdout(&["sim", "mix", "--for", "6s", "--policy", "vtrr,rr", "--cost", "--json"]);
    let objects = json.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let runs: Vec<Value> = objects.filter(|object| object["kind"] == "run").collect();
    assert_eq!(runs.len(), 2);
    for run in runs {
        assert!(run["cost"]["ns"].as_f64().unwrap() > 0.0 && run["cost"]["calls"].as_f64().unwrap() >= 1.0);
    }
}
