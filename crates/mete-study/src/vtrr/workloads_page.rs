//! The page, the plots and the data of the study `vtrr-workloads`.

use std::fmt::Write as _;

use super::workloads::{Client, POLICIES, RanWorkload, WORKLOADS, Workload};
use crate::study::figure::{self, Figure};
use mete_measure::report::Report;
use mete_plot::{self as plot, Axis, Series, short};

/// The time that the plots show, from the beginning.
const SHOWN_MS: f64 = 1500.0;

pub(super) fn files(report: &Report, figures: &[Figure], found: &[RanWorkload]) -> Vec<(String, String)> {
    let mut files = vec![
        ("README.md".to_owned(), page(report, figures, found)),
        ("done.csv".to_owned(), csv(report, found)),
    ];
    files.extend(found.iter().map(|ran| (plot_name(ran), plot(ran))));
    files
}

fn plot_name(ran: &RanWorkload) -> String {
    format!("{}-{}.svg", ran.workload.name, ran.policy)
}

fn csv(report: &Report, found: &[RanWorkload]) -> String {
    let mut text = format!("# {}\n# {}\n", report.title, report.machine.line());
    text.push_str("workload,policy,share,done_ms\n");
    for ran in found {
        for client in &ran.clients {
            for done_ns in &client.done_ns {
                let (name, policy, share) = (ran.workload.name, ran.policy, client.share);
                let _ = writeln!(text, "{name},{policy},{share},{:.3}", *done_ns as f64 / 1e6);
            }
        }
    }
    text
}

/// The work that each client has done, over time.
fn plot(ran: &RanWorkload) -> String {
    let series: Vec<_> = ran.clients.iter().map(done).collect();
    let axis = |label: &str| Axis { label: label.into(), is_logarithmic: false };
    let title = format!("{} under {}", ran.workload.name, ran.policy);
    plot::lines(&title, &axis("time, ms"), &axis(ran.workload.unit), &series)
}

fn done(client: &Client) -> Series {
    let ends = client.done_ns.iter().map(|ns| *ns as f64 / 1e6).take_while(|ms| *ms <= SHOWN_MS);
    let points = std::iter::once(0.0).chain(ends).zip(0u32..).map(|(ms, units)| (ms, f64::from(units)));
    Series { name: client.name.clone(), points: points.collect() }
}

fn of<'a>(found: &'a [RanWorkload], workload: &Workload, policy: &str) -> Option<&'a RanWorkload> {
    found.iter().find(|ran| ran.workload.name == workload.name && ran.policy == policy)
}

pub(super) fn figures(found: &[RanWorkload]) -> Vec<Figure> {
    WORKLOADS.iter().flat_map(|workload| [proportions(found, workload), evenness(found, workload)]).collect()
}

/// All work that was done, against shares.
fn proportions(found: &[RanWorkload], workload: &Workload) -> Figure {
    let name = format!("VTRR §5.4, {}, coarse", workload.figure);
    let paper = "WFQ and VTRR give each client what its share says";
    let [_, Some(wfq), Some(vtrr)] = POLICIES.map(|policy| of(found, workload, policy)) else {
        return Figure::missing(name, paper, "stopped before it was simulated");
    };
    let [wfq, vtrr] = [wfq, vtrr].map(off);
    let ours = format!("nobody is off by more than {} % (WFQ), {} % (VTRR)", short(wfq), short(vtrr));
    Figure::new(name, paper, ours, wfq.max(vtrr) <= 2.0)
}

/// The greatest distance of a client from its share of all work, in percent of it.
fn off(ran: &RanWorkload) -> f64 {
    dues(ran).map(|(client, due)| 100.0 * (client.done_ns.len() as f64 / due - 1.0).abs()).fold(0.0, f64::max)
}

/// The paper's statements on bursts and on jitter.
fn evenness(found: &[RanWorkload], workload: &Workload) -> Figure {
    let name = format!("VTRR §5.4, {}", workload.figure);
    let paper = "Linux works in bursts, which is jitter; WFQ and VTRR have less of it and are far more alike";
    let ran = POLICIES.map(|policy| of(found, workload, policy).map(RanWorkload::jitter_ms));
    let [Some(linux), Some(wfq), Some(vtrr)] = ran else {
        return Figure::missing(name, paper, "stopped before it was simulated");
    };
    let [linux_said, wfq_said, vtrr_said] = [linux, wfq, vtrr].map(short);
    let ours = format!(
        "jitter between two {}: goodness {linux_said}, WFQ {wfq_said}, VTRR {vtrr_said} ms",
        workload.unit
    );
    Figure::new(name, paper, ours, linux > wfq.max(vtrr) && (wfq - vtrr).abs() < linux - wfq.max(vtrr))
}

fn page(report: &Report, figures: &[Figure], found: &[RanWorkload]) -> String {
    let mut page = String::from("# Encoders and virtual machines\n\n");
    let _ = writeln!(page, "Taken with `mete study vtrr-workloads`, {}.\n", report.machine.date);
    if !report.is_complete {
        page.push_str("The run was stopped before its end; what is missing here was not simulated.\n\n");
    }
    page.push_str(&figure::markdown(figures));
    page.push_str(SIMULATED);
    page.push_str(&compared(found));
    page.push_str(&table(found));
    for ran in found {
        let _ = writeln!(page, "![]({})\n", plot_name(ran));
    }
    page.push_str("When every client got every piece of its work done: `done.csv`.\n");
    page
}

const SIMULATED: &str = "Two workloads on the simulated machine, from the scenario files beside this page; `mete sim \
     studies/vtrr-workloads/encoders.toml --policy vtrr` runs one of them alone. Five encoders with shares 1 to 5 read \
     their input from a disk and compute frame after frame. Three virtual machines with shares 1 to 3 each run a \
     program that times its rounds, beside the little that a system does for itself; the host sees one virtual \
     processor each. The paper's text says neither how long a frame or a round took nor how many machines ran: \
     these are choices of the scenarios, and can be changed there.\n\n";

fn compared(found: &[RanWorkload]) -> String {
    let off = POLICIES[1..].iter().filter_map(|policy| Some((policy, of(found, &WORKLOADS[0], policy)?)));
    let said = off.map(|(policy, ran)| format!("{} frames ({})", short(off_by(ran)), policy.to_uppercase()));
    let said = said.collect::<Vec<_>>().join(" and ");
    let said = if said.is_empty() { "(not simulated)".to_owned() } else { said };
    format!(
        "The plots are the paper's figures: what has been done over time. Under `goodness`, the scheduler of Linux \
         2.2, a client gets all of its time between two recharges in one stretch, and its line is a staircase; under \
         WFQ and VTRR the lines are smoother, and nearly alike. Jitter is the standard deviation of the time from one \
         piece of work to the next, averaged over the clients. Who reads from a disk is away for some milliseconds \
         and comes back: neither WFQ nor VTRR pays that time back. It is little here: the encoder that is furthest \
         from its share of all frames is {said} away from it at the end. The paper's Linux was disturbed by \
         interrupts, which made its stretches irregular; the simulated ones are as regular as the programs.\n\n"
    )
}

/// The greatest distance of a client from its share of all work, in units of work.
fn off_by(ran: &RanWorkload) -> f64 {
    dues(ran).map(|(client, due)| (client.done_ns.len() as f64 - due).abs()).fold(0.0, f64::max)
}

/// The clients, and the part of all work that their shares entitle them to.
fn dues(ran: &RanWorkload) -> impl Iterator<Item = (&Client, f64)> {
    let all: usize = ran.clients.iter().map(|client| client.done_ns.len()).sum();
    let shares: u32 = ran.clients.iter().map(|client| client.share).sum();
    ran.clients.iter().map(move |client| (client, all as f64 * f64::from(client.share) / f64::from(shares)))
}

fn table(found: &[RanWorkload]) -> String {
    let mut text = String::from("| workload | policy | share | done | median ms | shortest | longest |\n");
    text.push_str("|---|---|---:|---:|---:|---:|---:|\n");
    for ran in found {
        for client in &ran.clients {
            let Some(summary) = mete_measure::statistics::Summary::of(&client.intervals_ms()) else {
                continue;
            };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} |",
                ran.workload.name,
                ran.policy,
                client.share,
                client.done_ns.len(),
                short(summary.median),
                short(summary.min),
                short(summary.max)
            );
        }
    }
    text + "\n"
}
