//! How far a replay is from the recording, in words.

use mete_command::table::grouped;
use mete_sim::replay::{Fidelity, Outcome};

use crate::latency::milliseconds;

/// Marks a figure whose difference is within the replay's error, and so means nothing.
pub(super) const WITHIN: &str = "≈";
/// If a figure is further off than this, the output says what is known of the reason.
const CLOSE_PERCENT: f64 = 25.0;

/// The names of the figures by which policies are compared, in text.
const NAMES: [&str; 3] = ["median", "mean", "99 %"];
/// The same in JSON.
pub(super) const KEYS: [&str; 3] = ["median_ns", "mean_ns", "p99_ns"];

/// The distance, and which results are within it.
pub(super) fn text(fidelity: &Fidelity, outcomes: &[Outcome]) -> String {
    let mut lines = vec![format!(
        "how far this replay is from the recording, by {} (tick {} ms{}, slice {} ms):",
        fidelity.policy,
        milliseconds(fidelity.tick_ns),
        if fidelity.is_tick_known { "" } else { ", assumed" },
        milliseconds(fidelity.slice_ns),
    )];
    let named = NAMES.into_iter().zip(fidelity.all()).chain([("end", fidelity.end_ns)]);
    let parts = named.map(|(name, compared)| format!("{name} {:+.0} %", compared.off_percent));
    lines.push(format!(
        "{}; processors' parts of the work {:.1} % apart",
        parts.collect::<Vec<_>>().join(", "),
        fidelity.processors_off_percent
    ));
    if fidelity.all().iter().any(|compared| compared.off_percent.abs() > CLOSE_PERCENT) {
        lines.push(why(fidelity));
    }
    for outcome in outcomes {
        let within = fidelity.within(NAMES, outcome.policy, &outcome.threads);
        if !within.is_empty() {
            lines.push(format!("{}: {} within the replay's error", outcome.policy, within.join(", ")));
        }
    }
    lines.join("\n")
}

/// Says what is known of the reason for a large distance, and what is not known.
fn why(fidelity: &Fidelity) -> String {
    let met = fidelity.wakes.min(fidelity.recorded_wakes);
    let known = format!(
        "{} of {} recorded wake-ups found their thread asleep here. The others came while\n\
         it still ran, so these figures are of fewer waits than the recorded ones. Why else",
        grouped(met),
        grouped(fidelity.recorded_wakes),
    );
    let why = if met < fidelity.recorded_wakes { known } else { "Why".to_owned() };
    format!(
        "That is far. {why} is not known:\n\
         a recording lacks what could explain it, such as the shares of groups (cgroups,\n\
         sessions), masks of processors, and the timers that woke threads."
    )
}

#[cfg(test)]
mod tests {
    use mete_sim::replay::ComparedFigure;

    use super::*;

    fn far_off(wakes: u64) -> String {
        let mut fidelity = Fidelity::default();
        fidelity.median_ns = ComparedFigure::new(100, 200);
        (fidelity.wakes, fidelity.recorded_wakes) = (wakes, 1000);
        text(&fidelity, &[])
    }

    #[test]
    fn new_1_of_why_a_replay_is_far_off_only_what_was_counted_is_said_to_be_known() {
        let text = far_off(400);
        assert!(text.contains("400 of 1,000 recorded wake-ups found their thread asleep here"), "{text}");
        assert!(text.contains("Why else is not known"), "{text}");
        let text = far_off(1000);
        assert!(!text.contains("asleep here") && text.contains("far. Why is not known"), "{text}");
    }
}
