//! Plots and data of `mete sim`: what they say, and that they are whole or not there.

use std::path::Path;

use crate::common::{mete, said_by};

/// Runs a short sweep of the scenario `mix` that writes into a folder.
fn sweep(folder: &Path, more: &[&str]) -> assert_cmd::assert::Assert {
    let arguments = ["sim", "mix", "--for", "6s", "--policy", "vtrr,rr", "--plot", folder.to_str().unwrap()];
    mete(&[&arguments[..], more].concat()).assert()
}

fn plot(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// The ends of an interval.
fn caps(plot: &str) -> usize {
    plot.matches("h6M").count()
}

#[test]
fn a_plot_says_what_it_shows_in_words_with_the_unit_the_scenario_and_the_seeds() {
    let folder = tempfile::tempdir().unwrap();
    sweep(folder.path(), &["--seed", "7"]).success();
    let text = plot(folder.path(), "wake_to_run_99_ms.svg");
    assert!(text.contains(">from waking to running, 99th percentile (ms)<"), "{text}");
    assert!(text.contains("<title>mix: from waking to running, 99th percentile, seed 7</title>"), "{text}");
    for entry in folder.path().read_dir().unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let raw = name.trim_end_matches(".svg").replace('_', " ");
        let text = plot(folder.path(), &name);
        assert!(raw == "starved" || !text.contains(&format!(">{raw}<")), "{name} is labelled by its column");
    }
}

#[test]
fn with_several_seeds_a_plot_shows_the_confidence_intervals_and_with_one_none() {
    let folder = tempfile::tempdir().unwrap();
    sweep(folder.path(), &[]).success();
    assert_eq!(caps(&plot(folder.path(), "got_percent.svg")), 0);
    sweep(folder.path(), &["--seeds", "3"]).success();
    let bars = plot(folder.path(), "got_percent.svg");
    assert_eq!(caps(&bars), 2 * 4, "for two policies and four clients: {bars}");
    assert!(bars.contains("means of 3 seeds with 95 % confidence intervals"), "{bars}");
    sweep(folder.path(), &["--seeds", "3", "--vary", "host.switch_us=0,50"]).success();
    assert_eq!(caps(&plot(folder.path(), "got_percent.svg")), 2 * 4 * 2, "and for two values");
}

#[test]
fn plots_and_data_that_cannot_be_written_fail_before_the_work_and_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "before").unwrap();
    let csv = folder.path().join("missing/runs.csv");
    for (plots, csv, why) in [
        (file.as_path(), folder.path().join("runs.csv"), "it is a file, not a folder"),
        (Path::new("/proc"), folder.path().join("runs.csv"), "cannot write into /proc"),
        (folder.path(), csv, "missing/runs.csv"),
    ] {
        let failed = sweep(plots, &["--csv", csv.to_str().unwrap()]).failure();
        let said = said_by(&failed);
        assert!(said.contains(why) && failed.get_output().stdout.is_empty(), "{said}");
    }
    assert_eq!(folder.path().read_dir().unwrap().count(), 1, "the file alone");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "before");
}
