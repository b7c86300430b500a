//! What came out of the paper's claims on loggers.

use serde_json::json;

use super::cost::{Cost, OURS};
use crate::study::{Finding, Findings};

pub(super) fn of(costs: &[Cost]) -> Findings {
    [("printk", 10.0), ("ftrace", 5.0), ("perf", 5.0)]
        .map(|(name, times)| (name, costs_more(costs, name, times)))
        .into()
}

/// A logger costs more than `least` times as much as ours.
fn costs_more(costs: &[Cost], name: &str, least: f64) -> Option<Finding> {
    let times = costs.iter().find(|cost| cost.name == name)?.times.as_ref()?.median?;
    let is_noisy = costs.iter().any(|cost| cost.is_noisy && [name, OURS].contains(&cost.name));
    Some(Finding::new(json!({ "times": times }), times > least).unless_noisy(is_noisy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::klogger::loggers::cost;
    use crate::klogger::loggers::stage::{ALL, Logger};
    use mete_measure::Verdict::{self, Fails, Holds, TooNoisy};
    use mete_measure::interleave::interleave;
    use mete_measure::reason::Reason;

    /// Our event costs 10 ns, printk's 132 ns, and ftrace's 20 ns.
    fn measure(logger: Logger) -> Result<f64, Reason> {
        match logger {
            Logger::Kernel => Ok(110.0),
            Logger::Printk => Ok(232.0),
            Logger::Ftrace => Ok(120.0),
            Logger::Perf => Err(Reason::new("perf is not here")),
            _ => Ok(100.0),
        }
    }

    fn verdicts(costs: &[Cost]) -> Vec<Option<Verdict>> {
        of(costs).into_iter().map(|(_, finding)| Some(finding?.verdict)).collect()
    }

    #[test]
    fn klog_9_loggers_as_in_the_paper_agree_and_what_is_absent_is_named() {
        let mut costs = cost::of(&interleave("test", 3, &ALL, &mut (), measure));
        assert_eq!(verdicts(&costs), [Some(Holds), Some(Fails), None]);
        assert_eq!((costs[2].name, costs[2].event.note.as_str()), ("perf", "perf is not here"));
        costs[4].is_noisy = true;
        assert_eq!((costs[4].name, verdicts(&costs)), ("printk", vec![Some(TooNoisy), Some(Fails), None]));
        costs[0].is_noisy = true;
        assert_eq!((costs[0].name, verdicts(&costs)), (OURS, vec![Some(TooNoisy), Some(TooNoisy), None]));
    }
}
