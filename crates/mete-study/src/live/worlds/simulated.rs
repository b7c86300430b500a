//! The simulation of a scene.

use std::fmt::Write;
use std::time::Duration;

use mete_measure::Reason;
use mete_policy::Nanoseconds;
use mete_sim::{Scenario, report};

use super::super::stage::member::{ANSWER_NS, FRAME_NS, FRAMES_A_READ, READ_NS, Role, SLEEP_NS};
use super::super::stage::{Part, WARM_UP};
use super::{Numbers, Scene, late_us, parts};

/// By how much Linux lets a sleep last longer, so that timers fall together: the default of
/// `prctl(PR_SET_TIMERSLACK)`. Without it, sleeps and quanta would keep step for ever.
const SLACK_NS: u64 = 50_000;

/// Simulates a scene for as long as it ran live, with its warm-up.
///
/// # Errors
///
/// A fault of this program: there is no such policy, or the scenario is none.
pub(super) fn numbers(
    scene: &Scene,
    policy: &str,
    quantum: Nanoseconds,
    switch: Nanoseconds,
    time: Duration,
) -> Result<Numbers, Reason> {
    let text = scenario(scene, quantum, switch, time)?;
    let scenario = Scenario::parse(scene.name, &text, &[]).map_err(Reason::from_error)?;
    let ran = report::run(&scenario, policy, 1, ());
    let ran = ran.ok_or_else(|| Reason::new(format!("there is no policy {policy}")))?;
    let (report, ()) = ran.map_err(Reason::from_error)?;
    let members = report.clients.iter().zip(&scene.parts);
    // There a client runs from the beginning of the switch on; it computes at its end.
    let late_us = late_us(members.clone()).map(|late| late.map(|late| late + switch.get() as f64 / 1e3));
    Ok(Numbers { late_us, parts: parts(members, scene.shares.len()) })
}

/// The scene in the simulator's own words, in which members have the order of their numbers.
fn scenario(
    scene: &Scene,
    quantum: Nanoseconds,
    switch: Nanoseconds,
    time: Duration,
) -> Result<String, Reason> {
    let mut text = format!(
        "about = {:?}\nduration_ms = {}\nwarm_up_ms = {}\n[host]\nswitch_us = {:?}\n[policy]\nquantum_ms = {:?}\n",
        scene.name,
        (WARM_UP + time).as_millis(),
        WARM_UP.as_millis(),
        switch.get() as f64 / 1e3,
        quantum.as_millis_f64(),
    );
    for (domain, share) in scene.shares.iter().enumerate() {
        let _ = writeln!(text, "[[domain]]\nname = \"d{domain}\"\nshare = {share}");
    }
    for (nth, part) in scene.parts.iter().enumerate() {
        let (domain, program) = (part.domain, program(part)?);
        let _ = writeln!(text, "[[task]]\nname = \"m{nth}\"\ndomain = \"d{domain}\"\nprogram = [{program}]");
    }
    Ok(text)
}

fn program(part: &Part) -> Result<String, Reason> {
    let ms = |ns: u64| ns as f64 / 1e6;
    Ok(match part.role {
        Role::Hog => "{ compute_ms = 100 }".into(),
        Role::Sleeper => format!(
            "{{ sleep_ms = {{ uniform = [{:?}, {:?}] }} }}, {{ compute_ms = {:?} }}",
            ms(SLEEP_NS),
            ms(SLEEP_NS + SLACK_NS),
            ms(ANSWER_NS)
        ),
        Role::Encoder => format!(
            "{{ repeat = {{ times = {FRAMES_A_READ}, program = [{{ compute_ms = {:?} }}] }} }}, {{ sleep_ms = {:?} }}",
            ms(FRAME_NS),
            ms(READ_NS)
        ),
        Role::Player => return Err(Reason::new("no scene has one")),
    })
}

#[cfg(test)]
mod tests {
    use super::super::scenes;
    use super::*;

    #[test]
    fn new_1_scenes_are_scenarios_and_shares_hold_in_them() {
        for scene in scenes() {
            let [quantum, switch] = [Nanoseconds::from_millis(4), Nanoseconds::new(30_000)];
            let numbers =
                numbers(&scene, "distributed-vtrr", quantum, switch, Duration::from_secs(10)).unwrap();
            let all: f64 = scene.shares.iter().map(|share| f64::from(*share)).sum();
            for (part, share) in numbers.parts.iter().zip(&scene.shares) {
                assert!((part - f64::from(*share) / all).abs() < 0.01, "{}: {numbers:?}", scene.name);
            }
            let has_sleeper = scene.parts.iter().any(|part| part.role == Role::Sleeper);
            assert_eq!(numbers.late_us.is_some(), has_sleeper);
        }
    }
}
