//! The page and the plots of the study `vtrr-cost`.

use std::fmt::Write as _;

use mete_policy::CATALOG;

use super::cost::{CLIENTS, PolicyCost, cost, noise, range, row_name};
use crate::study::KeptRows;
use crate::study::figure::{self, Figure};
use mete_measure::report::Report;
use mete_plot::{self as plot, Axis, Series, short};

/// The greatest number of clients in the paper's figure.
const PAPERS_MOST: u32 = 400;
const MOST: u32 = CLIENTS[CLIENTS.len() - 1];
/// Our names for the paper's schedulers: Linux 2.2, WFQ over a list, WFQ over a heap, VTRR.
const PAPERS: [&str; 4] = ["goodness", "wfq-linear", "wfq", "vtrr"];
/// The numbers of clients in the page's table.
pub(super) const SHOWN: [u32; 7] = [1, 10, 100, 400, 10_000, 100_000, 1_000_000];

pub(super) fn files(report: &Report, figures: &[Figure], points: &[PolicyCost]) -> Vec<(String, String)> {
    let mut files = plots(points);
    files.insert(0, ("README.md".to_owned(), page(report, figures, points)));
    files
}

fn plots(points: &[PolicyCost]) -> Vec<(String, String)> {
    let all: Vec<&str> = CATALOG.iter().map(|entry| entry.name).collect();
    vec![
        ("scheduling-overhead.svg".to_owned(), plot(points, &PAPERS, PAPERS_MOST, false)),
        ("all-policies.svg".to_owned(), plot(points, &all, MOST, true)),
    ]
}

/// The plots from the rows as they are kept in the study's folder.
pub(super) fn plots_of(rows: &KeptRows) -> Vec<(String, String)> {
    let all = CLIENTS.iter().flat_map(|&clients| CATALOG.iter().map(move |entry| (entry.name, clients)));
    plots(
        &all.map(|(policy, clients)| {
            let found = rows.find(&row_name(policy, clients));
            let (ns, quartiles) = (found.map(|[median, ..]| median), found.map(|[_, q1, q3]| (q1, q3)));
            PolicyCost { policy, clients, ns, quartiles, is_noisy: false }
        })
        .collect::<Vec<_>>(),
    )
}

fn plot(points: &[PolicyCost], policies: &[&str], most: u32, is_logarithmic: bool) -> String {
    let of = |policy: &&str| {
        let own = points.iter().filter(|point| point.policy == *policy && point.clients <= most);
        let places = own.filter_map(|point| Some(((f64::from(point.clients), point.ns?), point.quartiles)));
        let (points, quartiles): (Vec<_>, Vec<_>) = places.unzip();
        (Series { name: (*policy).to_owned(), points }, quartiles)
    };
    let (series, quartiles): (Vec<_>, Vec<_>) = policies.iter().map(of).unzip();
    let (title, x) = ("What a decision costs", "number of clients");
    let axis = |label: &str| Axis { label: label.into(), is_logarithmic };
    // With eighteen lines, quartiles at each point would hide the lines.
    if policies.len() > PAPERS.len() {
        return plot::lines(title, &axis(x), &axis("ns, median"), &series);
    }
    plot::lines_with_intervals(title, &axis(x), &axis("ns, median and quartiles"), &series, &quartiles)
}

pub(super) fn figures(points: &[PolicyCost]) -> Vec<Figure> {
    [constant(points), linear(points), logarithmic(points), single(points)].into()
}

const OVERHEAD: &str = "VTRR §5.2, average scheduling overhead";
const MISSING: &str = "not measured: the run was stopped before";

fn constant(points: &[PolicyCost]) -> Figure {
    let paper = "VTRR's overhead is below a microsecond and constant for all numbers of clients";
    let Some((least, most)) = range(points, "vtrr", 10, PAPERS_MOST) else {
        return Figure::missing(OVERHEAD, paper, MISSING);
    };
    let ours = format!("{} to {} ns from 10 to {PAPERS_MOST} clients", short(least), short(most));
    Figure::new(OVERHEAD, paper, ours, most < 1000.0 && most <= 1.3 * least).unless_noisy(noise(
        points,
        "vtrr",
        10,
        PAPERS_MOST,
    ))
}

fn are_noisy(points: &[PolicyCost], policies: &[&str], clients: &[u32]) -> bool {
    policies.iter().any(|policy| clients.iter().any(|&clients| noise(points, policy, clients, clients)))
}

/// A linear search takes four times as long with 400 clients as with 100. A part of a decision's cost is the same for
/// any number.
fn linear(points: &[PolicyCost]) -> Figure {
    let paper = "the overhead of Linux and of WFQ over a list grows in proportion to the clients";
    let growth = |policy| Some(cost(points, policy, PAPERS_MOST)? / cost(points, policy, 100)?);
    let (Some(linux), Some(wfq)) = (growth(PAPERS[0]), growth(PAPERS[1])) else {
        return Figure::missing(OVERHEAD, paper, MISSING);
    };
    let ours = format!("four times the clients cost {} and {} times as much", short(linux), short(wfq));
    Figure::new(OVERHEAD, paper, ours, [linux, wfq].iter().all(|growth| (2.0..8.0).contains(growth)))
        .unless_noisy(are_noisy(points, &PAPERS[..2], &[100, PAPERS_MOST]))
}

fn logarithmic(points: &[PolicyCost]) -> Figure {
    let paper = "WFQ over a heap costs less than Linux and WFQ over a list, and more than VTRR, the more so with many clients";
    let [Some(linux), Some(list), Some(heap), Some(vtrr)] =
        PAPERS.map(|policy| cost(points, policy, PAPERS_MOST))
    else {
        return Figure::missing(OVERHEAD, paper, MISSING);
    };
    let ours = format!(
        "{PAPERS_MOST} clients: goodness {}, list {}, heap {}, VTRR {} ns",
        short(linux),
        short(list),
        short(heap),
        short(vtrr)
    );
    Figure::new(OVERHEAD, paper, ours, heap < linux.min(list) && vtrr < heap).unless_noisy(are_noisy(
        points,
        &PAPERS,
        &[PAPERS_MOST],
    ))
}

fn single(points: &[PolicyCost]) -> Figure {
    let paper = "Linux spends longer on a single client than VTRR on hundreds of them";
    let (Some(linux), Some(vtrr)) = (cost(points, PAPERS[0], 1), cost(points, "vtrr", PAPERS_MOST)) else {
        return Figure::missing(OVERHEAD, paper, MISSING);
    };
    let ours = format!("{} ns on one, VTRR {} ns on {PAPERS_MOST}", short(linux), short(vtrr));
    Figure::new(OVERHEAD, paper, ours, linux > vtrr)
        .unless_noisy(are_noisy(points, &PAPERS[..1], &[1]) || are_noisy(points, &["vtrr"], &[PAPERS_MOST]))
}

fn page(report: &Report, figures: &[Figure], points: &[PolicyCost]) -> String {
    let mut page = String::from("# What a decision costs over the number of clients\n\n");
    let _ = writeln!(page, "Taken with `mete study vtrr-cost` on: {}.\n", report.machine.line());
    if !report.is_complete {
        page.push_str("The run was stopped before its end; what is missing here was not measured.\n\n");
    }
    page.push_str(&figure::markdown(figures));
    page.push_str(&measured());
    page.push_str(&compared(points));
    page.push_str("![](scheduling-overhead.svg)\n\n![](all-policies.svg)\n\n");
    page.push_str(&table(points));
    page.push_str("All samples' medians and quartiles: `vtrr-cost.csv`.\n");
    page
}

fn measured() -> String {
    "A decision is what a scheduler calls of a policy from one switch to the next: pick, run a slice, charge it and \
     queue the client again. All clients have random shares from 1 to 100 and are always ready. Every policy is \
     called through the same table of functions, as from `--policy`, which costs some nanoseconds of each; \
     `mete bench --only policy` measures VTRR compiled into its loop. The policies are measured in turn, again and \
     again, with the caches that a loop of nothing but decisions has: a kernel that runs programs in between will \
     find less of its queue there, and the longer the queue is, the more it will miss. A slice is whatever the policy \
     gives: WRR decides once for a whole share of quanta. Medians leave out what happens in few decisions: the steps \
     in which fair share or the scheduler of Linux 2.2 goes through all clients are in the samples of some numbers of \
     clients and not of others.\n\n"
        .into()
}

fn compared(points: &[PolicyCost]) -> String {
    let said = |policy, clients| {
        cost(points, policy, clients)
            .map_or_else(|| "(not measured)".into(), |ns| format!("{} ns", short(ns)))
    };
    let [few, many] = [100, PAPERS_MOST].map(|clients| cost(points, "wfq-linear", clients));
    // The difference contains only the cost that grows with the clients.
    let each = few.zip(many).map(|(few, many)| (many - few) / f64::from(PAPERS_MOST - 100));
    format!(
        "The paper measured inside a kernel of its day: its numbers were not at hand, and would not compare. \
         What can be compared is the growth. VTRR takes {vtrr} with {PAPERS_MOST} clients and {vtrr_most} with \
         {MOST}, where the queue is far larger than the caches; WFQ over a heap {heap} and {heap_most}; over a list \
         {list} and {list_most}; the scheduler of Linux 2.2 {linux} and {linux_most}. A linear search takes {each} \
         a client here, where the whole queue lies in the caches.\n\n",
        each = each.map_or_else(|| "(not measured)".to_owned(), |ns| format!("{} ns", short(ns))),
        vtrr = said("vtrr", PAPERS_MOST),
        vtrr_most = said("vtrr", MOST),
        heap = said("wfq", PAPERS_MOST),
        heap_most = said("wfq", MOST),
        list = said("wfq-linear", PAPERS_MOST),
        list_most = said("wfq-linear", MOST),
        linux = said("goodness", PAPERS_MOST),
        linux_most = said("goodness", MOST),
    )
}

fn table(points: &[PolicyCost]) -> String {
    let heads: Vec<_> = SHOWN.iter().map(u32::to_string).collect();
    let mut text = format!("| ns a decision, clients: | {} |\n|---|", heads.join(" | "));
    SHOWN.iter().for_each(|_| text.push_str("---:|"));
    text.push('\n');
    for entry in CATALOG {
        let cells: Vec<_> = SHOWN
            .iter()
            .map(|&clients| cost(points, entry.name, clients).map(short).unwrap_or_default())
            .collect();
        let _ = writeln!(text, "| {} | {} |", entry.name, cells.join(" | "));
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::figure::Verdict;

    /// Costs that grow as the paper says. Those for which `is_noisy` holds allow no verdict.
    fn points(is_noisy: impl Fn(&str, u32) -> bool) -> Vec<PolicyCost> {
        let ns = |policy: &str, clients: u32| match policy {
            "goodness" | "wfq-linear" => 20.0 + f64::from(clients),
            "wfq" => 30.0,
            _ => 10.0,
        };
        let all = PAPERS.iter().flat_map(|&policy| CLIENTS.map(|clients| (policy, clients)));
        let point = |(policy, clients)| PolicyCost {
            quartiles: None,
            policy,
            clients,
            ns: Some(ns(policy, clients)),
            is_noisy: is_noisy(policy, clients),
        };
        all.map(point).collect()
    }

    fn verdicts(points: &[PolicyCost]) -> Vec<Verdict> {
        figures(points).iter().map(|figure| figure.verdict).collect()
    }

    #[test]
    fn vtrr_5_there_is_no_verdict_on_times_that_are_too_noisy_and_one_on_all_others() {
        use Verdict::{Agrees, TooNoisy};
        assert_eq!(verdicts(&points(|_, _| false)), [Agrees; 4]);
        assert_eq!(
            verdicts(&points(|policy, clients| policy == "vtrr" && clients == 20)),
            [TooNoisy, Agrees, Agrees, Agrees],
            "only the first looks at VTRR with 20 clients"
        );
        assert_eq!(
            verdicts(&points(|policy, clients| policy == "wfq-linear" && clients == 400)),
            [Agrees, TooNoisy, TooNoisy, Agrees]
        );
        assert_eq!(verdicts(&points(|_, _| true)), [TooNoisy; 4]);
        assert_eq!(
            verdicts(&points(|_, clients| clients > 400)),
            [Agrees; 4],
            "beyond what the paper measured"
        );
    }
}
