//! Schedules in detail, of real processes (VTRR paper, §5.3 and §5.4): which of five hogs runs when, and when
//! five encoders are done with each frame.

use std::fmt::Write as _;
use std::time::Duration;

use mete_base::progress::Progress;
use mete_measure::{Reason, Report, Row};
use mete_plot::{self as plot, Axis, Lane, Series, Span};
use mete_shares::By;
use serde_json::{Value, json};

use super::shares::{NICE, SHARES, wanted};
use super::stage::member::{FRAME_NS, FRAMES_A_READ, READ_NS, Role};
use super::stage::{Means, OfMeans, Part, Run, Setting, available, median};
use super::turns::{Turn, errors_ms, in_pieces, longest_wait_ms, repeated, turns};
use crate::study::{Finding, Findings, Study, StudyFile, StudyOptions, about, head};

const WFQ: Means = Means::Dispatcher("wfq");
const VTRR: Means = Means::Dispatcher("vtrr");
const MEANS: [Means; 5] =
    [Means::Kernel, WFQ, VTRR, Means::Dispatcher("distributed-vtrr"), Means::Dealt(By::SchedExt, "vtrr")];
/// The quanta of a scheduling cycle: one for each share.
const CYCLE: usize = (SHARES[0] + SHARES[1] + SHARES[2] + SHARES[3] + SHARES[4]) as usize;
/// The part of all quanta in which the order has to repeat. Interrupts disturb some.
const LEAST_QUANTA: f64 = 0.9;
/// How far a process may be from its share of all time, in points, and of all frames, as a part of its share.
/// What is begun of a frame does not count, so one frame is no distance.
const MOST_POINTS: f64 = 0.2;
const MOST_FRAMES_OFF: f64 = 0.02;
/// The time that the pictures show, from the beginning of a run.
const SHOWN_MS: f64 = 180.0;
const SHOWN_FRAMES_MS: f64 = 1500.0;
/// The time that the data hold.
const KEPT_MS: f64 = 1000.0;

/// The runs of hogs and those of encoders.
pub(crate) struct Found {
    hogs: Vec<OfMeans>,
    encoders: Vec<OfMeans>,
}

pub(crate) struct LiveMicro;

impl Study for LiveMicro {
    about!("live-micro", "which process runs when, and what encoders get done: nice values, WFQ and VTRR");
    type Found = Found;

    fn measure(options: StudyOptions, report: &mut Report, progress: &mut dyn Progress) -> Self::Found {
        let (rounds, time) = if options.is_quick { (1, 2) } else { (5, 8) };
        let time = Duration::from_secs(time);
        let all = available(&MEANS, report);
        let mut runs = |role| {
            let run = |means, progress: &dyn Progress| run(role, means, time, progress);
            OfMeans::in_turns(&all, rounds, report, progress, run)
        };
        let found = Found { hogs: runs(Role::Hog), encoders: runs(Role::Encoder) };
        report.rows.extend(found.hogs.iter().flat_map(rows_of_hogs));
        report.rows.extend(found.encoders.iter().flat_map(rows_of_encoders));
        found
    }

    fn findings(found: &Self::Found) -> Findings {
        vec![
            ("coarse", coarse(&found.hogs)),
            ("pattern", pattern(&found.hogs)),
            ("evenness", evenness(&found.hogs, range_ms)),
            ("encoders-coarse", encoders_coarse(&found.encoders)),
            ("encoders-evenness", evenness(&found.encoders, jitter_ms)),
        ]
    }

    fn facts(found: &Self::Found) -> Value {
        json!({
            "hogs": found.hogs.iter().map(line_of_hogs).collect::<Vec<_>>(),
            "encoders": found.encoders.iter().map(line_of_encoders).collect::<Vec<_>>(),
            "cycle": CYCLE,
            "kernel_is_most_even": unevenness(&found.hogs, range_ms).map(|[kernel, wfq, vtrr]| kernel < wfq.min(vtrr)),
            "frame_ms": FRAME_NS as f64 / 1e6,
            "read_ms": READ_NS as f64 / 1e6,
            "frames_a_read": FRAMES_A_READ,
        })
    }

    fn pictures(found: &Self::Found) -> Vec<StudyFile> {
        let lanes: Vec<_> = found.hogs.iter().filter_map(lane).collect();
        let mut pictures: Vec<_> = found.encoders.iter().filter_map(frames_picture).collect();
        if !lanes.is_empty() {
            let title = "Who ran when: five processes with shares of 1 to 5";
            pictures.insert(0, ("schedules.svg".to_owned(), plot::timeline(title, "time, ms", &lanes)));
        }
        pictures
    }

    fn data(found: &Self::Found, report: &Report) -> Vec<StudyFile> {
        if found.hogs.is_empty() {
            return Vec::new();
        }
        vec![("schedules.csv".to_owned(), schedules(found, report))]
    }
}

fn run(role: Role, means: Means, time: Duration, progress: &dyn Progress) -> Result<Run, Reason> {
    let parts = [0, 1, 2, 3, 4].map(|domain| Part { role, domain });
    let setting = Setting { nice: &NICE, ..Setting::of(&parts, &SHARES) };
    let run = Run::of(means, &setting, time, progress)?;
    run.check_notes()?;
    Ok(run)
}

/// The turns of the hogs of a run, from its first look on.
fn turns_of(run: &Run) -> Vec<Turn> {
    turns(&run.notes, run.looks.first().map_or(0, |(begin, _)| *begin))
}

/// The difference between the highest and the lowest error of any hog.
fn range_ms(of_means: &OfMeans) -> Vec<f64> {
    let wanted = wanted(of_means.means);
    of_means.each(|run| errors_ms(&turns_of(run), &wanted).map(|[lowest, highest]| highest - lowest))
}

/// The longest time between two turns of the hog with the largest share.
fn largest_waits_ms(of_means: &OfMeans) -> Vec<f64> {
    of_means.each(|run| longest_wait_ms(&turns_of(run), SHARES.len() - 1))
}

/// The part of the quanta in which the order repeats; of none under the kernel's own scheduler, which has no
/// quanta.
fn repeating(of_means: &OfMeans) -> Vec<f64> {
    of_means.each(|run| repeated(&turns_of(run), run.quantum?.get(), CYCLE))
}

/// The part of the time in which hogs ran for less than half a quantum.
fn pieces(of_means: &OfMeans) -> Vec<f64> {
    of_means.each(|run| in_pieces(&turns_of(run), run.quantum?.get()))
}

/// How far the hog is from its share that is furthest from it, in points.
fn points(of_means: &OfMeans) -> Vec<f64> {
    of_means.points(&wanted(of_means.means))
}

/// How far the encoder is from its share of all frames that is furthest from it, as a part of its share.
fn frames_off(of_means: &OfMeans) -> Vec<f64> {
    let wanted = wanted(of_means.means);
    of_means.each(|run| {
        let done = run.notes.iter().map(|notes| notes.kept.len() as f64);
        let all: f64 = done.clone().sum();
        let beyond_one = |(done, wanted): (f64, &f64)| {
            let due = wanted * all;
            (due + ((done - due).abs() - 1.0).max(0.0), due)
        };
        furthest(done.zip(&wanted).map(beyond_one))
    })
}

/// The greatest distance of what was had from what was due, as a part of it.
fn furthest(pairs: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    pairs.filter(|(_, due)| *due > 0.0).map(|(had, due)| (had / due - 1.0).abs()).max_by(f64::total_cmp)
}

/// How much the time from one frame to the next varies: from the 5th to the 95th percentile, in the mean of
/// the encoders. A few disturbed frames do not count.
fn jitter_ms(of_means: &OfMeans) -> Vec<f64> {
    of_means.each(|run| {
        let each = run.notes.iter().map(|notes| spread(&intervals_ms(&notes.kept)));
        let each: Vec<_> = each.collect::<Option<_>>()?;
        Some(each.iter().sum::<f64>() / each.len() as f64)
    })
}

fn intervals_ms(done: &[u64]) -> Vec<f64> {
    let mut intervals: Vec<_> =
        done.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64 / 1e6).collect();
    intervals.sort_by(f64::total_cmp);
    intervals
}

fn spread(sorted: &[f64]) -> Option<f64> {
    let at = |percent: usize| sorted.get(sorted.len() * percent / 100);
    Some(at(95)? - at(5)?)
}

fn rows_of_hogs(of_means: &OfMeans) -> Vec<Row> {
    let all = [
        ("errors, from the lowest to the highest", "ms", range_ms(of_means)),
        ("the largest share waits at most", "ms", largest_waits_ms(of_means)),
        ("quanta like those one cycle before", "%", percents(&repeating(of_means))),
        ("in pieces of less than half a quantum", "% of the time", percents(&pieces(of_means))),
        ("furthest from its share", "points", points(of_means)),
    ];
    rows(of_means, all.into())
}

fn rows_of_encoders(of_means: &OfMeans) -> Vec<Row> {
    let all = [
        ("encoders: jitter from one frame to the next", "ms", jitter_ms(of_means)),
        ("encoders: frames, furthest from its share", "% of it", percents(&frames_off(of_means))),
    ];
    rows(of_means, all.into())
}

fn rows(of_means: &OfMeans, all: Vec<(&str, &'static str, Vec<f64>)>) -> Vec<Row> {
    let name = of_means.means.name();
    let known = all.into_iter().filter(|(_, _, values)| !values.is_empty());
    known.map(|(what, unit, values)| Row::new(format!("{name}: {what}"), unit, Ok(values))).collect()
}

fn percents(parts: &[f64]) -> Vec<f64> {
    parts.iter().map(|part| 100.0 * part).collect()
}

fn line_of_hogs(of_means: &OfMeans) -> Value {
    json!({
        "means": of_means.means.name(), "range_ms": median(&range_ms(of_means)),
        "wait_ms": median(&largest_waits_ms(of_means)),
        "repeated": median(&percents(&repeating(of_means))), "pieces": median(&percents(&pieces(of_means))),
        "points": median(&points(of_means)),
    })
}

fn line_of_encoders(of_means: &OfMeans) -> Value {
    let frames: Vec<_> = (0..SHARES.len())
        .map(|nth| median(&of_means.each(|run| Some(run.notes[nth].kept.len() as f64))))
        .collect();
    json!({
        "means": of_means.means.name(), "frames": frames, "jitter_ms": median(&jitter_ms(of_means)),
        "off": median(&percents(&frames_off(of_means))),
    })
}

/// Over long times, each has what its share says, or under the kernel's own scheduler what its nice value says.
fn coarse(hogs: &[OfMeans]) -> Option<Finding> {
    let of = |means| OfMeans::find(hogs, means).and_then(|of_means| median(&points(of_means)));
    let worst = of(Means::Kernel)?.max(of(WFQ)?).max(of(VTRR)?);
    Some(Finding::new(json!({ "points": worst }), worst <= MOST_POINTS))
}

fn pattern(hogs: &[OfMeans]) -> Option<Finding> {
    let part = |means| OfMeans::find(hogs, means).and_then(|of_means| median(&repeating(of_means)));
    let (wfq, vtrr) = (part(WFQ)?, part(VTRR)?);
    let values = json!({ "wfq_percent": 100.0 * wfq, "vtrr_percent": 100.0 * vtrr });
    Some(Finding::new(values, wfq.min(vtrr) >= LEAST_QUANTA))
}

/// How uneven the kernel's own scheduler, WFQ and VTRR are, in the middle of the runs.
fn unevenness(found: &[OfMeans], uneven_ms: fn(&OfMeans) -> Vec<f64>) -> Option<[f64; 3]> {
    let of = |means| OfMeans::find(found, means).and_then(|of_means| median(&uneven_ms(of_means)));
    Some([of(Means::Kernel)?, of(WFQ)?, of(VTRR)?])
}

/// The kernel's own scheduler is the least even, and WFQ and VTRR are more alike.
fn evenness(found: &[OfMeans], uneven_ms: fn(&OfMeans) -> Vec<f64>) -> Option<Finding> {
    let [kernel, wfq, vtrr] = unevenness(found, uneven_ms)?;
    let holds = kernel > wfq.max(vtrr) && (wfq - vtrr).abs() < kernel - wfq.max(vtrr);
    Some(Finding::new(json!({ "kernel_ms": kernel, "wfq_ms": wfq, "vtrr_ms": vtrr }), holds))
}

fn encoders_coarse(encoders: &[OfMeans]) -> Option<Finding> {
    let of = |means| OfMeans::find(encoders, means).and_then(|of_means| median(&frames_off(of_means)));
    let (wfq, vtrr) = (of(WFQ)?, of(VTRR)?);
    let values = json!({ "wfq_percent": 100.0 * wfq, "vtrr_percent": 100.0 * vtrr });
    Some(Finding::new(values, wfq.max(vtrr) <= MOST_FRAMES_OFF))
}

/// The turns of the first run from its beginning, in milliseconds.
fn first_turns(of_means: &OfMeans) -> Option<Vec<(usize, f64, f64)>> {
    let turns = turns_of(of_means.runs.first()?);
    let begin = turns.first()?.from_ns;
    let ms = |time: u64| time.saturating_sub(begin) as f64 / 1e6;
    Some(turns.iter().map(|turn| (turn.member, ms(turn.from_ns), ms(turn.to_ns))).collect())
}

fn lane(of_means: &OfMeans) -> Option<Lane> {
    let shown = first_turns(of_means)?.into_iter().take_while(|(_, from, _)| *from < SHOWN_MS);
    Some(Lane {
        name: of_means.means.name(),
        rows: SHARES.iter().map(|share| format!("share {share}")).collect(),
        // A turn that goes on beyond the picture ends at its edge.
        spans: shown.map(|(row, from, to)| Span { row, from, to: to.min(SHOWN_MS) }).collect(),
    })
}

/// The frames that each encoder has done, over time, in the first run.
fn frames_picture(of_means: &OfMeans) -> Option<StudyFile> {
    let run = of_means.runs.first()?;
    let begin = *run.notes.iter().filter_map(|notes| notes.kept.first()).min()?;
    let series = SHARES.iter().zip(&run.notes).map(|(share, notes)| {
        let times = notes.kept.iter().map(|time| (time - begin) as f64 / 1e6);
        let points = times.take_while(|ms| *ms <= SHOWN_FRAMES_MS).zip(1u32..);
        let points = points.map(|(ms, frames)| (ms, f64::from(frames)));
        Series::new(format!("share {share}"), points.collect::<Vec<_>>())
    });
    let title = format!("Encoders, {}", of_means.means.name());
    let [x, y] = ["time, ms", "frames"].map(Axis::linear);
    let name = match of_means.means {
        Means::Kernel => "kernel",
        Means::Dispatcher(policy) => policy,
        Means::Pauses(_) => "pauses",
        Means::Dealt(..) | Means::Empty => "sched-ext",
    };
    Some((format!("frames-{name}.svg"), plot::lines(&title, &x, &y, &series.collect::<Vec<_>>())))
}

/// The turns at the beginning of each first run.
fn schedules(found: &Found, report: &Report) -> String {
    let mut text = head(report) + "means,share,from_ms,to_ms\n";
    for of_means in &found.hogs {
        let name = of_means.means.name().replace(", ", " ");
        let kept = first_turns(of_means).unwrap_or_default().into_iter();
        for (member, from, to) in kept.take_while(|(_, from, _)| *from < KEPT_MS) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name},{},{from:.3},{to:.3}", SHARES[member]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use mete_measure::Verdict;
    use mete_policy::Nanoseconds;

    use super::super::shares::WEIGHTS;
    use super::super::stage::member::Notes;
    use super::*;

    const MS: u64 = 1_000_000;

    /// A run of hogs that had turns of this length in this order, again and again, by their places.
    fn hogs(means: Means, order: &[usize], turn_ms: u64) -> OfMeans {
        let mut run = Run { quantum: Some(Nanoseconds::from_millis(turn_ms)), ..Run::default() };
        run.notes = vec![Notes::default(); SHARES.len()];
        let mut used = vec![0; SHARES.len()];
        run.looks.push((0, used.clone()));
        let mut now = 0;
        for &member in order.iter().cycle().take(order.len() * 20) {
            run.notes[member].kept.extend([now, now + turn_ms * MS]);
            used[member] += turn_ms * MS;
            now += turn_ms * MS;
        }
        run.looks.push((now, used));
        OfMeans { means, runs: vec![run] }
    }

    /// The order of a cycle under VTRR: from the largest share to the smallest, then once more without it.
    const VTRR_ORDER: [usize; CYCLE] = [4, 3, 2, 1, 0, 4, 3, 2, 1, 4, 3, 2, 4, 3, 4];

    #[test]
    fn vtrr_6_findings_are_of_turns() {
        let bursts = WEIGHTS.iter().enumerate();
        let in_bursts: Vec<_> =
            bursts.flat_map(|(nth, weight)| std::iter::repeat_n(nth, *weight as usize)).collect();
        let found =
            [hogs(Means::Kernel, &in_bursts, 1), hogs(WFQ, &VTRR_ORDER, 4), hogs(VTRR, &VTRR_ORDER, 4)];
        for finding in [coarse(&found), pattern(&found), evenness(&found, range_ms)] {
            assert_eq!(finding.as_ref().map(|found| found.verdict), Some(Verdict::Holds), "{finding:?}");
        }
        let [bursts, _, even] = unevenness(&found, range_ms).unwrap();
        assert!(bursts > 500.0 && (4.0..12.0).contains(&even), "{bursts} {even}");
        let uneven =
            [hogs(Means::Kernel, &in_bursts, 1), hogs(WFQ, &in_bursts, 1), hogs(VTRR, &in_bursts, 1)];
        for finding in [coarse(&uneven), evenness(&uneven, range_ms)] {
            assert_ne!(finding.unwrap().verdict, Verdict::Holds);
        }
        let back = VTRR_ORDER.into_iter().rev();
        let there_and_back: Vec<_> = VTRR_ORDER.into_iter().chain(back).collect();
        let found = [hogs(WFQ, &VTRR_ORDER, 4), hogs(VTRR, &there_and_back, 4)];
        assert_ne!(pattern(&found).unwrap().verdict, Verdict::Holds);
        assert!(coarse(&found).is_none(), "one of the three was not measured");
    }

    #[test]
    fn vtrr_6_a_frame_that_is_begun_is_no_distance() {
        let done = |counts: [u64; 5]| {
            let notes = counts.map(|count| Notes { kept: (0..count).collect(), lost: 0 });
            let run = Run { notes: notes.into(), ..Run::default() };
            frames_off(&OfMeans { means: VTRR, runs: vec![run] })[0]
        };
        assert_eq!(done([10, 20, 30, 40, 50]), 0.0);
        assert_eq!(done([11, 20, 30, 40, 49]), 0.0);
        assert!((done([12, 20, 30, 40, 48]) - 0.1).abs() < 1e-9);
    }

    #[test]
    fn vtrr_6_jitter_is_the_spread_of_the_times_between_frames() {
        let done: Vec<u64> = (0..101).map(|nth| nth * 10_000_000 + (nth % 2) * 2_000_000).collect();
        assert_eq!(spread(&intervals_ms(&done)), Some(4.0), "8 and 12 ms in turn");
        assert_eq!(spread(&intervals_ms(&[0])), None, "there is no interval");
    }

    #[test]
    fn vtrr_6_the_furthest_is_measured_by_its_share() {
        let off = furthest([(9.0, 10.0), (41.0, 40.0), (1.0, 0.0)].into_iter()).unwrap();
        assert!((off - 0.1).abs() < 1e-9, "{off}");
        assert_eq!(furthest(std::iter::empty()), None);
    }
}
