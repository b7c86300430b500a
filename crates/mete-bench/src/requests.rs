//! What logging costs the requests of real processes: the clients and drivers of `mete demo`, which this
//! starts.

use std::time::Duration;

use mete_demo::{Piece, Placement, Requests, Setting};
use mete_measure::Bar;
use mete_measure::pairs::{Goal, PIECES, Pairs, several_pairs};
use mete_measure::reason::Reason;
use mete_measure::report::Row;

use crate::context::Context;

/// The quotient shall be known to one percent on both sides.
const WITHIN: f64 = 0.01;
/// The longest time for up to three settings, unless the caller gives another one. Up to six settings have
/// twice as long.
const USUAL_TIME: Duration = Duration::from_secs(120);
const QUICK_TIME: Duration = Duration::from_secs(15);

const NOTE: &str = "a pair is a second of each, in tenths that alternate in random order, so that each second of logging \
                    has its polls and its look at the processes";

/// What logging costs the requests.
pub(crate) fn rows(context: &mut Context<'_>) -> Vec<Row> {
    let [[rate, used]] = compare(context, [("demo: requests, logging on / off", Setting::Logged, NOTE)]);
    vec![rate.bar(Bar::AtLeast(0.98)), used]
}

/// What these costs consist of, which part of them every log in the kernel would have, and how well this
/// method measures.
pub(crate) fn floor_rows(context: &mut Context<'_>) -> Vec<Row> {
    let compared = [
        (
            "floor: requests, logged / nothing",
            Setting::Logged,
            "as in the row of the demo, in the rounds of those below",
        ),
        ("floor: requests, logged and not read / nothing", Setting::Unread, "no reader polls meanwhile"),
        ("floor: requests, only the kernel logged / nothing", Setting::Kernel, "without the drivers' probes"),
        ("floor: requests, only probes logged / nothing", Setting::Probes, "one probe a request"),
        (
            "floor: requests, empty programs / nothing",
            Setting::Empty,
            "at the context switch, the wake-up and the tick: what the kernel takes for calling programs there",
        ),
        (
            "floor: requests, nothing / nothing",
            Setting::Nothing,
            "the measurement's check of itself: its interval has 1 in it, but for one run in twenty",
        ),
    ];
    compare(context, compared).into_iter().flatten().collect()
}

/// A name, the setting that is compared with [`Setting::Nothing`], and how to read the row.
type Compared = (&'static str, Setting, &'static str);

/// For each setting, a row of requests a second and one of the processor time of a request.
fn compare<const N: usize>(context: &mut Context<'_>, compared: [Compared; N]) -> [[Row; 2]; N] {
    // It is not known how many pairs it takes, so the whole comparison is one step.
    context.progress.begin(compared[0].0, 1);
    let found = measure(context, &compared.map(|(_, setting, _)| setting));
    context.progress.step();
    let mut nth = 0;
    compared.map(|(name, _, note)| {
        let found = found.as_ref().map(|found| found[nth].clone()).map_err(Reason::clone);
        nth += 1;
        let words = found.as_ref().map_or(String::new(), |found| found.rates.in_words());
        let placement = found.as_ref().ok().and(context.options.request_placement);
        let (rates, used) = found
            .map(|found| (found.rates.quotients, found.used))
            .map_or_else(|reason| (Err(reason.clone()), Err(reason)), |(rates, used)| (Ok(rates), Ok(used)));
        let of_time = name.replace("requests", "processor time of a request");
        [
            Row::new(name, "ratio", rates)
                .note(words)
                .note(note)
                .note(placement.map_or("", Placement::in_words)),
            Row::new(of_time, "ratio", used)
                .note("of clients and drivers, without what polling takes from them"),
        ]
    })
}

/// What was measured with one setting.
#[derive(Clone)]
struct RequestCosts {
    /// The quotients of requests a second.
    rates: Pairs,
    /// The quotients of a request's processor time, pair by pair.
    used: Vec<f64>,
}

fn measure(context: &Context<'_>, settings: &[Setting]) -> Result<Vec<RequestCosts>, Reason> {
    let placement = context
        .options
        .request_placement
        .ok_or_else(|| Reason::new("there are no processes whose requests could be counted"))?;
    let mut requests = Requests::start(placement).map_err(reason)?;
    // Each setting beyond three takes its share of pieces, so the time grows in steps of three settings.
    let usual =
        if context.options.is_quick { QUICK_TIME } else { USUAL_TIME * settings.len().div_ceil(3) as u32 };
    let goal = Goal { within: WITHIN, at_most: context.options.requests_for.unwrap_or(usual) };

    let mut pieces = vec![Vec::new(); settings.len() + 1];
    let all = several_pairs(
        goal,
        settings.len(),
        || !context.is_cancelled(),
        |nth| {
            // Number 0 is the setting that all others are compared with.
            let setting = if nth == 0 { Setting::Nothing } else { settings[nth - 1] };
            let piece = requests.piece(setting).map_err(reason)?;
            pieces[nth].push(piece);
            Ok(piece.rate())
        },
    )?;
    let without = used_ns(&pieces[0]);
    Ok(all
        .into_iter()
        .zip(&pieces[1..])
        .map(|(rates, pieces)| {
            let quotients = used_ns(pieces).into_iter().zip(&without).map(|(with, without)| with / without);
            // A stretch without any answered request says nothing about the time of one: its quotient is not
            // finite.
            RequestCosts { rates, used: quotients.filter(|quotient| quotient.is_finite()).collect() }
        })
        .collect())
}

/// Nanoseconds of processor time for each request, stretch by stretch. Time of pieces without an answered
/// request counts, too.
fn used_ns(pieces: &[Piece]) -> Vec<f64> {
    pieces.chunks_exact(PIECES).map(used_ns_in).collect()
}

fn used_ns_in(stretch: &[Piece]) -> f64 {
    let used: Duration = stretch.iter().map(|piece| piece.used).sum();
    let requests: u64 = stretch.iter().map(|piece| piece.requests).sum();
    used.as_nanos() as f64 / requests as f64
}

fn reason(error: anyhow::Error) -> Reason {
    Reason::new(mete_base::sentence(error.as_ref()))
}
