//! What the second act says: lines, a table, objects, and its part of the report.

use std::fmt::Write;

use anyhow::Result;
use mete_command::output::Output;
use mete_command::table::{Head, Table};
use mete_plot::{Axis, bars, escape};

use crate::crowds::{CROWDS, Ruler, SecondAct, ShareStretch, wanted_percent};
use crate::show::Show;
use crate::summary::Spread;

pub fn print_stretch(round: u32, stretch: &ShareStretch, show: &Show, out: &mut Output) -> Result<()> {
    let [first, second, third] = stretch.given_percent;
    let line = format!(
        "round {}  {:<19} {first:>5.1} {second:>5.1} {third:>5.1} %  answers in {} ms, 99 of 100 in {} ms",
        round + 1,
        stretch.ruler.name(),
        milliseconds(stretch.latency_us[0]),
        milliseconds(stretch.latency_us[1])
    );
    show.progress.aside(|| out.text(line))?;
    out.object(&serde_json::json!({
        "kind": "share_stretch",
        "round": round + 1,
        "stretch": stretch.ruler.name(),
        "threads": CROWDS.map(|(_, threads)| threads),
        "wanted_percent": wanted_percent(),
        "given_percent": stretch.given_percent,
        "latency_median_us": stretch.latency_us[0],
        "latency_p99_us": stretch.latency_us[1],
    }))
}

fn milliseconds(us: f64) -> String {
    format!("{:.2}", us / 1e3)
}

/// The middle of a figure over the stretches of a ruler.
fn median(stretches: &[ShareStretch], ruler: Ruler, figure: impl Fn(&ShareStretch) -> f64) -> Option<f64> {
    let of_ruler = stretches.iter().filter(|stretch| stretch.ruler == ruler);
    Spread::of(of_ruler.map(figure)).map(|spread| spread.median)
}

/// What the crowds were given, in percent, and how long answers took, in microseconds.
type Figures = ([f64; 3], [f64; 2]);

/// The figures of a ruler.
fn figures(stretches: &[ShareStretch], ruler: Ruler) -> Option<Figures> {
    let mut given = [0.0; 3];
    for (nth, given) in given.iter_mut().enumerate() {
        *given = median(stretches, ruler, |stretch| stretch.given_percent[nth])?;
    }
    let mut latency = [0.0; 2];
    for (nth, latency) in latency.iter_mut().enumerate() {
        *latency = median(stretches, ruler, |stretch| stretch.latency_us[nth])?;
    }
    Some((given, latency))
}

fn crowd_name((share, threads): (u32, usize)) -> String {
    let what = if threads == 1 { "thread" } else { "threads" };
    format!("share {share}, {threads} {what}")
}

/// The table at the end.
pub fn table(stretches: &[ShareStretch]) -> String {
    let crowds = CROWDS.map(|crowd| format!("{} (%)", crowd_name(crowd)));
    let answers = ["answer (ms)", "99 of 100 (ms)"].map(str::to_owned);
    let heads: Vec<_> = crowds.into_iter().chain(answers).collect();
    let heads = heads.iter().map(|head| Head::Number(head.as_str()));
    let mut table = Table::new([Head::Name("three crowds, one processor")].into_iter().chain(heads));
    let percent = |percent: f64| format!("{percent:.1}");
    let wanted = wanted_percent().map(percent);
    table.row(["wanted".to_owned()].into_iter().chain(wanted).chain(["".into(), "".into()]));
    for ruler in Ruler::ALL {
        let Some((given, latency)) = figures(stretches, ruler) else { continue };
        let cells = given.map(percent).into_iter().chain(latency.map(milliseconds));
        table.row([ruler.name().to_owned()].into_iter().chain(cells));
    }
    table.text()
}

/// The result in one sentence; `None` unless both rulers have ruled.
pub fn verdict(stretches: &[ShareStretch]) -> Option<String> {
    let (_, [before, _]) = figures(stretches, Ruler::Kernel)?;
    let (given, [after, _]) = figures(stretches, Ruler::Shares)?;
    let worst = given.iter().zip(wanted_percent()).map(|(given, wanted)| (given - wanted).abs());
    let worst = worst.fold(0.0, f64::max);
    Some(format!(
        "Dealt out by shares, each crowd had its part of the processor to {worst:.1} points, whatever its number of \
         threads; the server among ten that compute answered in {} ms instead of {} ms.",
        milliseconds(after),
        milliseconds(before)
    ))
}

/// The act's part of the report.
pub fn html(act: &SecondAct) -> String {
    let mut page = "<h2>Second act: the processor by shares</h2>".to_owned();
    let stretches = match act {
        SecondAct::Impossible(why) => {
            let _ = write!(page, "<p>Not played: {}.</p>", escape(why));
            return page;
        }
        SecondAct::Played(stretches) => stretches,
    };
    page.push_str(
        "<p>Three crowds compute on one processor, with 1, 4 and 10 threads. They are to have 3, 2 and 1 parts of it. \
         Among the ten threads is a server, which is asked every 5 ms. In turn the kernel's own scheduler rules, which is \
         told nothing, and a policy outside the kernel: distributed virtual-time round robin puts one thread at a time \
         in front.</p>",
    );
    if let Some(sentence) = verdict(stretches) {
        let _ = write!(page, "<p><strong>{}</strong></p>", escape(&sentence));
    }
    let rulers = Ruler::ALL.map(|ruler| (ruler.name().to_owned(), figures(stretches, ruler)));
    let of_rulers = |value: fn(&Figures) -> Vec<f64>| {
        let known =
            rulers.iter().filter_map(|(name, figures)| Some((name.clone(), value(figures.as_ref()?))));
        known.collect::<Vec<_>>()
    };
    let wanted = ("wanted".to_owned(), wanted_percent().to_vec());
    let given: Vec<_> = [wanted].into_iter().chain(of_rulers(|(given, _)| given.to_vec())).collect();
    let crowds = CROWDS.map(crowd_name);
    page.push_str(&bars(
        "What each crowd had",
        &Axis::linear("percent of their processor time"),
        &crowds,
        &given,
    ));
    let times = ["half of the answers", "99 of 100"].map(str::to_owned);
    let took = of_rulers(|(_, latency)| latency.iter().map(|us| us / 1e3).collect());
    page.push_str(&bars("Time from request to answer", &Axis::logarithmic("milliseconds"), &times, &took));
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played() -> Vec<ShareStretch> {
        let stretch = |ruler, given_percent, latency_us| ShareStretch { ruler, given_percent, latency_us };
        vec![
            stretch(Ruler::Kernel, [33.0, 33.5, 33.5], [24_000.0, 60_000.0]),
            stretch(Ruler::Shares, [50.2, 33.1, 16.7], [100.0, 300.0]),
        ]
    }

    #[test]
    fn vtrr_7_the_second_act_is_told_in_a_table_a_sentence_and_two_plots() {
        let stretches = played();
        let table = table(&stretches);
        assert!(table.contains("50.2") && table.contains("24.00") && table.contains("16.7"), "{table}");
        let sentence = verdict(&stretches).unwrap_or_default();
        assert!(
            sentence.contains("to 0.2 points") && sentence.contains("0.10 ms instead of 24.00 ms"),
            "{sentence}"
        );
        let page = html(&SecondAct::Played(stretches));
        assert_eq!((page.matches("<svg").count(), page.matches("<desc>").count()), (2, 2), "{page}");
        assert_eq!(verdict(&played()[..1]), None);
        assert!(html(&SecondAct::Impossible("no <root>".into())).contains("no &lt;root&gt;"));
    }
}
