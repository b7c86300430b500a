//! What scripts and people get (LOG-17): rows as JSON, CSV and a table, with honest verdicts.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use mete_study::{Bar, Reason, Report, Row};

fn rows() -> Vec<Row> {
    vec![
        Row::new("met", "ns", Ok(vec![1.0, 2.0, 3.0])).bar(Bar::AtMost(2.0)).note("as it should be"),
        Row::new("not met", "ratio", Ok(vec![1.0])).bar(Bar::AtLeast(1.2)).note("the floor, \"1.1\""),
        Row::new("missing", "ns", Err(Reason::new("not installed"))).bar(Bar::Below(0.1)),
        Row::new("for information", "ns", Ok(vec![4.0])),
    ]
}

fn report() -> Report {
    Report { rows: rows(), ..Report::new("mete test") }
}

#[test]
fn log_17_each_row_is_one_json_object_with_what_scripts_check() {
    let text = report().json_lines();
    let rows: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 4);
    for row in &rows {
        for key in ["name", "unit", "median", "min", "q1", "q3", "max", "samples", "bar", "holds", "note"] {
            assert!(row.get(key).is_some(), "{key} is missing in {row}");
        }
    }
    assert_eq!(rows[0]["median"], 2.0);
    assert_eq!(rows[0]["min"], 1.0);
    assert_eq!((&rows[0]["bar"], &rows[0]["holds"]), (&"<= 2".into(), &true.into()));
    assert_eq!((&rows[1]["bar"], &rows[1]["holds"]), (&">= 1.2".into(), &false.into()));
    assert!(rows[3]["bar"].is_null() && rows[3]["holds"].is_null());
}

#[test]
fn log_17_what_cannot_be_measured_is_a_row_that_says_why_and_has_no_verdict() {
    let row = &rows()[2];
    assert_eq!((row.median, row.holds, row.samples), (None, None, 0));
    assert_eq!(row.note, "not installed");
    assert!(row.bar.is_some(), "the bar is still said");
}

#[test]
fn log_17_a_bar_is_judged_by_the_median_and_its_limit_belongs_to_it() {
    let holds = |bar, samples: &[f64]| Row::new("x", "ns", Ok(samples.to_vec())).bar(bar).holds;
    assert_eq!(holds(Bar::AtMost(1.15), &[9.0, 1.15, 0.0]), Some(true));
    assert_eq!(holds(Bar::Below(0.1), &[0.1]), Some(false));
    assert_eq!(holds(Bar::AtLeast(6.0), &[6.0]), Some(true));
    assert_eq!(holds(Bar::AtLeast(6.0), &[5.9, 5.8, 7.0]), Some(false));
}

#[test]
fn log_17_csv_says_on_which_machine_and_quotes_what_needs_it() {
    let text = report().csv();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "# mete test");
    assert!(lines[1].contains("processors") && lines[1].contains("Linux"), "{}", lines[1]);
    assert!(lines[4].ends_with(",>= 1.2,false,\"the floor, \"\"1.1\"\"\""), "{}", lines[4]);
    assert!(lines[5].contains(",,,,,0,< 0.1,,not installed"), "{}", lines[5]);
}

#[test]
fn log_17_the_table_shows_every_row_and_its_verdict() {
    let text = report().table().to_string();
    for part in ["not met", "NO", "not measured", "for information", "not installed"] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
}

#[test]
fn log_17_results_are_kept_by_what_was_run_and_day() {
    let name = report().file_name();
    assert!(name.starts_with("test-20") && name.ends_with(".csv"), "{name}");
}
