//! The output for scripts and people (LOG-17): rows as JSON and CSV and in words, with honest verdicts.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

use mete_measure::{Bar, Reason, Report, Row, Verdict};

fn rows() -> Vec<Row> {
    vec![
        Row::new("met", "ns", Ok(vec![1.0, 1.0, 2.0, 2.0, 2.0, 2.0]))
            .bar(Bar::AtMost(2.0))
            .note("as it should be"),
        Row::new("not met", "ratio", Ok(vec![1.0; 6])).bar(Bar::AtLeast(1.2)).note("the floor, \"1.1\""),
        Row::new("missing", "ns", Err(Reason::new("not installed"))).bar(Bar::Below(0.1)),
        Row::new("for information", "ns", Ok(vec![4.0])),
        Row::new("noise", "ratio", Ok(vec![-16.0, -1.0, -0.8, -0.7, 0.3, 2.0])).bar(Bar::AtMost(0.6)),
    ]
}

fn report() -> Report {
    Report { rows: rows(), ..Report::new("mete test") }
}

#[test]
fn log_17_each_row_is_one_json_object_with_what_scripts_check() {
    let rows: Vec<_> = rows().iter().map(|row| serde_json::to_value(row).unwrap()).collect();
    assert_eq!(rows.len(), 5);
    for row in &rows {
        for key in [
            "name", "unit", "median", "low", "high", "min", "q1", "q3", "max", "samples", "bar", "verdict",
            "holds", "note",
        ] {
            assert!(row.get(key).is_some(), "{key} is missing in {row}");
        }
    }
    assert_eq!(rows[0]["median"], 2.0);
    assert_eq!(rows[0]["min"], 1.0);
    assert_eq!((&rows[0]["bar"], &rows[0]["holds"]), (&"<= 2".into(), &true.into()));
    assert_eq!((&rows[1]["bar"], &rows[1]["holds"]), (&">= 1.2".into(), &false.into()));
    let verdicts: Vec<_> = rows.iter().map(|row| row["verdict"].as_str()).collect();
    assert_eq!(verdicts, [Some("yes"), Some("no"), None, None, Some("too-noisy")]);
    assert!(rows[3]["bar"].is_null() && rows[3]["holds"].is_null() && rows[4]["holds"].is_null());
    assert_eq!((&rows[4]["low"], &rows[4]["high"]), (&(-16.0).into(), &2.0.into()));
}

#[test]
fn log_17_what_cannot_be_measured_is_a_row_that_says_why_and_has_no_verdict() {
    let row = &rows()[2];
    assert_eq!((row.median, row.holds, row.samples), (None, None, 0));
    assert_eq!(row.note, "not installed");
    assert!(row.bar.is_some(), "the bar is still said");
}

fn verdict(bar: Bar, samples: &[f64]) -> Option<Verdict> {
    Row::new("x", "ns", Ok(samples.to_vec())).bar(bar).verdict
}

/// Samples that lie evenly between two values.
fn spread(from: f64, to: f64) -> Vec<f64> {
    (0..=20).map(|nth| from + (to - from) * f64::from(nth) / 20.0).collect()
}

#[test]
fn log_17_a_bar_is_met_by_all_of_the_medians_interval_and_its_limit_belongs_to_it() {
    assert_eq!(verdict(Bar::AtMost(1.15), &[1.15; 6]), Some(Verdict::Holds));
    assert_eq!(verdict(Bar::Below(0.1), &[0.1; 6]), Some(Verdict::Fails));
    assert_eq!(verdict(Bar::AtLeast(6.0), &[6.0; 6]), Some(Verdict::Holds));
    assert_eq!(verdict(Bar::AtMost(3.0), &spread(1.0, 2.9)), Some(Verdict::Holds));
    assert_eq!(verdict(Bar::AtMost(3.0), &spread(3.1, 5.0)), Some(Verdict::Fails));
    // Half of the samples meet the bar, and so does the median.
    assert_eq!(verdict(Bar::AtMost(3.0), &spread(1.0, 4.9)), Some(Verdict::TooNoisy));
    assert_eq!(verdict(Bar::AtLeast(3.0), &spread(1.2, 5.0)), Some(Verdict::TooNoisy));
}

/// Costs are differences of two times. A difference that is not greater than its noise is not a measured
/// value, and meets no bar.
#[test]
fn log_17_a_difference_within_its_spread_meets_no_bar() {
    for samples in [spread(-16.0, 14.0), spread(-1.0, 1.5), spread(-3.0, -1.0), vec![0.0; 20]] {
        for bar in [Bar::AtMost(3.0), Bar::Below(3.0), Bar::AtLeast(1.0)] {
            assert_eq!(verdict(bar, &samples), Some(Verdict::TooNoisy), "{bar} {samples:?}");
        }
    }
    let unknown = [vec![f64::NAN; 6], spread(0.2, 0.4)].concat();
    assert_eq!(verdict(Bar::AtMost(0.6), &unknown), Some(Verdict::Holds), "some blocks without a quotient");
    let unknown = [vec![f64::NAN; 10], spread(0.2, 0.4)].concat();
    assert_eq!(
        verdict(Bar::AtMost(0.6), &unknown),
        Some(Verdict::TooNoisy),
        "more of them than the interval leaves out"
    );
}

#[test]
fn log_17_few_samples_are_no_verdict_but_on_counts() {
    assert_eq!(verdict(Bar::AtMost(3.0), &[1.0; 5]), Some(Verdict::TooNoisy));
    let lost = |samples: &[f64]| {
        Row::new("lost", "events", Ok(samples.to_vec())).bar_of_each(Bar::AtMost(0.0)).verdict
    };
    assert_eq!((lost(&[0.0]), lost(&[0.0, 0.0, 1.0])), (Some(Verdict::Holds), Some(Verdict::Fails)));
}

#[test]
fn log_17_csv_says_on_which_machine_and_quotes_what_needs_it() {
    let text = report().csv();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "# mete test");
    assert!(lines[1].contains("processors") && lines[1].contains("Linux"), "{}", lines[1]);
    assert!(lines[4].ends_with(",>= 1.2,false,\"the floor, \"\"1.1\"\"\""), "{}", lines[4]);
    assert!(lines[5].contains(",,,,,0,,,< 0.1,,not installed"), "{}", lines[5]);
    let mut report = report();
    report.rows = vec![Row::new("known", "ns", Ok(spread(1.0, 3.0)))];
    let column = |line: &str, name: &str| {
        let text = report.csv();
        let nth = text.lines().nth(2).unwrap().split(',').position(|known| known == name).unwrap();
        text.lines().find(|known| known.starts_with(line)).unwrap().split(',').nth(nth).unwrap().to_owned()
    };
    let row = &report.rows[0];
    let [low, high] = [row.low, row.high].map(|end| format!("{:.4}", end.unwrap()));
    assert_eq!([column("known", "low"), column("known", "high")], [low, high]);
}

#[test]
fn log_17_a_row_says_its_verdict_and_its_interval_in_words() {
    let rows = rows();
    let verdicts: Vec<_> = rows.iter().map(Row::verdict_text).collect();
    assert_eq!(verdicts, ["yes", "NO", "not measured", "", "too noisy"]);
    assert_eq!(rows[4].interval_text(|end| format!("{end:.1}")), "-16.0 to 2.0");
    assert_eq!(rows[3].interval_text(|end| end.to_string()), "", "one sample has no interval");
}
