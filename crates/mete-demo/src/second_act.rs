//! The second act: three crowds on one processor, with 1, 4 and 10 threads, are to have shares of 3, 2 and 1,
//! and a server among the ten is asked. In turn the kernel's own scheduler rules, which is told nothing, and
//! the dispatcher.
//!
//! Each crowd is a session, as a terminal or a service has one. So the kernel gives crowds the same, where it
//! divides processor time among sessions (autogroup), or each thread the same, where it does not.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use mete_base::sentence;
use mete_command::interrupt;
use mete_command::lab::DemoOptions;
use mete_command::output::Output;
use mete_dispatch::{Dispatcher, Setup};
use mete_measure::processor::{other_than, quietest};
use mete_policy::by_name;
use mete_sched::domains::SharedDomain;

use crate::cast::{CastProcess, DemoStage, Tally};
use crate::crowds::{CROWDS, Ruler, SecondAct, ShareStretch, rounds};
use crate::requests::pin;
use crate::share_show;
use crate::show::Show;

/// The policy that deals out the shares.
const POLICY: &str = "distributed-vtrr";
/// Time between a change of the ruler and the measurement.
const SETTLE: Duration = Duration::from_secs(1);
/// How often the dispatcher looks for new threads.
const LOOK: Duration = Duration::from_millis(20);

/// How long it takes about.
pub fn time(options: &DemoOptions) -> Duration {
    (SETTLE + options.stretch) * Ruler::ALL.len() as u32 * rounds(options)
}

/// Plays it; what is over when the end is asked for is kept.
///
/// # Errors
///
/// If its processes cannot be started or do not work.
pub fn play(options: &DemoOptions, show: &Show, out: &mut Output) -> Result<SecondAct> {
    if options.no_kernel {
        return Ok(SecondAct::Impossible("the kernel is not to be logged, as asked for".into()));
    }
    if interrupt::asked() {
        return Ok(SecondAct::Played(Vec::new()));
    }
    let scene = Scene::open()?;
    // Known before anything is shown: half of an act says nothing.
    if let Err(why) = scene.dispatcher() {
        return Ok(SecondAct::Impossible(why));
    }
    let mut stretches = Vec::new();
    for round in 0..rounds(options) {
        // The order changes from round to round, as in the first act.
        for nth in [round as usize % 2, 1 - round as usize % 2] {
            let ruler = Ruler::ALL[nth];
            match scene.stretch(ruler, options.stretch, show)? {
                Some(Ok(stretch)) => {
                    share_show::print_stretch(round, &stretch, show, out)?;
                    stretches.push(stretch);
                }
                Some(Err(why)) => return Ok(SecondAct::Impossible(why)),
                None => return Ok(SecondAct::Played(stretches)),
            }
        }
    }
    Ok(SecondAct::Played(stretches))
}

/// The processes of the act. They end when it is dropped.
struct Scene {
    crowds: Vec<CastProcess>,
    asker: CastProcess,
    stage: DemoStage,
}

/// Until a moment: what each crowd has used, and what was answered.
struct Count {
    used: [Duration; 3],
    tally: Tally,
}

impl Scene {
    fn open() -> Result<Scene> {
        let stage = DemoStage::empty()?;
        let place = quietest();
        let crowd = |(nth, &(_, threads)): (usize, &(u32, usize))| {
            stage.start_crowd(&format!("crowd{nth}"), threads, place, nth + 1 == CROWDS.len())
        };
        let crowds = CROWDS.iter().enumerate().map(crowd).collect::<Result<Vec<_>>>()?;
        let asker = stage.start_asker()?;
        pin(&asker, other_than(place))?;
        Ok(Scene { crowds, asker, stage })
    }

    /// Has a ruler rule for a while. `None` if the end was asked for; an error in it says why that ruler
    /// cannot.
    fn stretch(
        &self,
        ruler: Ruler,
        length: Duration,
        show: &Show,
    ) -> Result<Option<Result<ShareStretch, String>>> {
        let mut dispatcher = match ruler {
            Ruler::Kernel => None,
            Ruler::Shares => match self.dispatcher() {
                Ok(dispatcher) => Some(dispatcher),
                Err(why) => return Ok(Some(Err(why))),
            },
        };
        let tick = || show.tick_act(ruler.name());
        if let Err(why) = wait(&mut dispatcher, SETTLE, tick) {
            return Ok(Some(Err(why)));
        }
        let before = self.count()?;
        if let Err(why) = wait(&mut dispatcher, length, tick) {
            return Ok(Some(Err(why)));
        }
        let after = self.count()?;
        if interrupt::asked() {
            return Ok(None);
        }
        self.measured(ruler, &before, &after).map(Ok).map(Some)
    }

    fn dispatcher(&self) -> Result<Dispatcher, String> {
        let policy = by_name(POLICY).ok_or_else(|| format!("there is no policy {POLICY}"))?;
        let domain = |(crowd, (share, _)): (&CastProcess, &(u32, usize))| {
            let selector = format!("pid:{}", crowd.pid());
            SharedDomain::new(crowd.name(), [selector.as_str()], Some(f64::from(*share)), None)
        };
        let domains = self.crowds.iter().zip(&CROWDS).map(domain).collect::<Result<Vec<_>, _>>();
        let domains = domains.map_err(|error| error.to_string())?;
        Dispatcher::start(policy, domains, Setup::default()).map_err(|error| sentence(&error))
    }

    fn count(&self) -> Result<Count> {
        let mut used = [Duration::ZERO; 3];
        for (used, crowd) in used.iter_mut().zip(&self.crowds) {
            *used = crowd.used()?;
        }
        Ok(Count { used, tally: self.stage.tally(1) })
    }

    fn measured(&self, ruler: Ruler, before: &Count, after: &Count) -> Result<ShareStretch> {
        let used: [f64; 3] = std::array::from_fn(|nth| (after.used[nth] - before.used[nth]).as_secs_f64());
        let all: f64 = used.iter().sum();
        let latencies = (after.tally - before.tally).latencies;
        let quantile = |part| latencies.quantile_ns(part).map(|ns| ns / 1e3);
        let (middle, most) = quantile(0.5).zip(quantile(0.99)).with_context(|| {
            format!("the asker (process {}) got no answer in a whole stretch", self.asker.pid())
        })?;
        Ok(ShareStretch {
            ruler,
            given_percent: used.map(|used| 100.0 * used / all),
            latency_us: [middle, most],
        })
    }
}

/// Lets the crowds compute for a while.
fn wait(dispatcher: &mut Option<Dispatcher>, length: Duration, tick: impl Fn()) -> Result<(), String> {
    let end = Instant::now() + length;
    while Instant::now() < end && !interrupt::asked() {
        if let Some(dispatcher) = dispatcher {
            dispatcher.look().map_err(|error| sentence(&error))?;
        }
        std::thread::sleep(LOOK.min(end.saturating_duration_since(Instant::now())));
        tick();
    }
    Ok(())
}
