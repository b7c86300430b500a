//! The recording of a run, and its work done once more.

use mete_measure::Reason;
use mete_policy::{DomainIndex, Nanoseconds, Share, by_name};
use mete_sim::ClientReport;
use mete_sim::replay::{self, Recording, Settings, Under};

use super::super::recorded::Recorded;
use super::super::stage::Run;
use super::{Numbers, Scene, late_us, parts};

/// What was recorded live, and what becomes of its work under the same policy.
///
/// # Errors
///
/// The recording has nothing of the members.
pub(super) fn numbers(
    mut recorded: Recorded,
    scene: &Scene,
    run: &Run,
    policy: &str,
    quantum: Nanoseconds,
) -> Result<[Numbers; 2], Reason> {
    recorded.recording.domains = scene.shares.iter().filter_map(|share| Share::new(*share)).collect();
    let scripts = &recorded.recording.scripts;
    let members: Vec<_> =
        scripts.iter().filter_map(|script| Some(&scene.parts[recorded.place_of(script.pid)?])).collect();
    for (script, part) in recorded.recording.scripts.iter_mut().zip(&members) {
        script.domain = DomainIndex::at(part.domain + 1);
    }
    let was = replay::as_recorded(&recorded.recording);
    let was = was.iter().zip(members.iter().copied());
    let again = again(&recorded.recording, policy, quantum)?;
    let again = again.iter().zip(members.iter().copied());
    let live = run.parts().ok_or_else(|| Reason::new("the members have used no time"))?;
    Ok([
        Numbers { late_us: late_us(was), parts: live },
        Numbers { late_us: late_us(again.clone()), parts: parts(again, scene.shares.len()) },
    ])
}

/// Does the work once more, and measures the half in the middle: at first the policy gets to know the threads, as it
/// had live before the recording began, and at the end each thread is done with what it did.
fn again(recording: &Recording, policy: &str, quantum_ns: Nanoseconds) -> Result<Vec<ClientReport>, Reason> {
    let entry = by_name(policy).ok_or_else(|| Reason::new(format!("there is no policy {policy}")))?;
    let quarter = Nanoseconds::new(recording.duration_ns.get() / 4);
    let measured = Some([quarter, 3 * quarter]);
    let settings = Settings { processors: 1, quantum_ns, switch_ns: Nanoseconds::ZERO, seed: 1, measured };
    let outcome = replay::run(recording, Under::Policy(entry), settings).map_err(Reason::from_error)?;
    Ok(outcome.threads)
}
