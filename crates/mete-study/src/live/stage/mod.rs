//! Processes, each with a role, on one processor or on all, and what each has got.

mod groups;
pub(super) mod member;

use std::time::{Duration, Instant};

use mete_base::progress::Progress;
use mete_bench::crew::{Crew, now_ns};
use mete_bench::realtime::Realtime;
use mete_dispatch::{Dispatcher, Setup};
use mete_ext::EmptyScheduler;
use mete_measure::statistics::Summary;
use mete_measure::{Reason, Report, Row, processor};
use mete_pausing::PausingDispatcher;
use mete_policy::{Entry, Nanoseconds, by_name};
use mete_sched::domains::SharedDomain;
use mete_shares::{By, Dealer, SharePolicy};

use self::groups::Groups;
use self::member::{FRAME_NS, Notes, Role};

/// A member of a stage: what it does, and the domain that it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub role: Role,
    pub domain: usize,
}

/// Who is on a stage, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting<'a> {
    pub parts: &'a [Part],
    /// The domains' shares.
    pub shares: &'a [u32],
    /// The nice value of each domain's members under the kernel's own scheduler; 0 where there is none.
    pub nice: &'a [i32],
    /// Whether the members may run on every processor. Otherwise all are bound to one.
    pub is_wide: bool,
    /// How many control groups are in each other around the members of a domain. The outermost one has the share.
    pub depth: usize,
    /// How often the members are looked at, by a thread that may take their processor for that.
    pub look: Duration,
    /// How long they run before they are looked at. The policy gets to know them, and they pay for what they had too much
    /// while they were started.
    pub warm_up: Duration,
    /// How long a member runs at a time under sched_ext, if not as long as otherwise.
    pub quantum: Option<Duration>,
}

impl<'a> Setting<'a> {
    /// Members on one processor, in control groups right below the root.
    pub fn of(parts: &'a [Part], shares: &'a [u32]) -> Setting<'a> {
        Setting {
            parts,
            shares,
            nice: &[],
            is_wide: false,
            depth: 1,
            look: LOOK,
            warm_up: WARM_UP,
            quantum: None,
        }
    }
}

/// The means by which the processor is dealt out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Means {
    /// The kernel's own scheduler. Each member has this nice value for its domain.
    Kernel,
    /// The dispatcher, with this policy.
    Dispatcher(&'static str),
    /// Pauses, with this policy.
    Pauses(&'static str),
    /// A dealer to control groups, with this policy.
    Dealt(By, &'static str),
    /// A scheduler of sched_ext that decides nothing.
    Empty,
}

impl Means {
    pub fn name(self) -> String {
        match self {
            Means::Kernel => "the kernel's own scheduler".into(),
            Means::Dispatcher(policy) => format!("the dispatcher, {policy}"),
            Means::Pauses(policy) => format!("pauses, {policy}"),
            Means::Empty => "sched_ext, a scheduler that decides nothing".into(),
            Means::Dealt(By::Cgroup, _) => "the kernel's own scheduler, by weights".into(),
            Means::Dealt(_, "vtrr") => "sched_ext, group VTRR inside the kernel".into(),
            Means::Dealt(_, policy) => format!("sched_ext, {policy} outside the kernel"),
        }
    }
}

/// The runs under one of the means.
pub(crate) struct OfMeans {
    pub means: Means,
    pub runs: Vec<Run>,
}

impl OfMeans {
    /// Has all means take turns, so that what else the machine does meets them alike. The first failure ends
    /// that, and is in the report.
    pub fn in_turns(
        all: &[Means],
        rounds: u64,
        report: &mut Report,
        progress: &mut dyn Progress,
        run: impl Fn(Means, &dyn Progress) -> Result<Run, Reason>,
    ) -> Vec<OfMeans> {
        let mut found: Vec<_> = all.iter().map(|&means| OfMeans { means, runs: Vec::new() }).collect();
        progress.begin("runs", rounds * all.len() as u64);
        for nth in (0..rounds).flat_map(|_| 0..all.len()) {
            if progress.is_cancelled() {
                break;
            }
            match run(all[nth], progress) {
                // One that was stopped is shorter than the others.
                Ok(run) if !progress.is_cancelled() => found[nth].runs.push(run),
                Ok(_) => break,
                Err(reason) => {
                    report.rows.push(Row::new(all[nth].name(), "", Err(reason)));
                    break;
                }
            }
            progress.step();
        }
        found.retain(|of_means| !of_means.runs.is_empty());
        found
    }

    /// The runs under these means, if there are any.
    pub fn find(found: &[OfMeans], means: Means) -> Option<&OfMeans> {
        found.iter().find(|of_means| of_means.means == means)
    }

    /// A value of each run that has it.
    pub fn each(&self, value: impl Fn(&Run) -> Option<f64>) -> Vec<f64> {
        self.runs.iter().filter_map(value).collect()
    }

    /// The greatest difference between a domain's part of a whole run and what it was to have, in percentage
    /// points.
    pub fn points(&self, wanted: &[f64]) -> Vec<f64> {
        self.each(|run| {
            let parts = run.parts()?;
            let errors = parts.iter().zip(wanted).map(|(part, wanted)| 100.0 * (part - wanted).abs());
            errors.max_by(f64::total_cmp)
        })
    }
}

pub(crate) fn median(values: &[f64]) -> Option<f64> {
    Summary::of(values).map(|of| of.median)
}

/// What came out of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    /// The processor time of each domain at each look, in nanoseconds.
    pub looks: Vec<(u64, Vec<u64>)>,
    /// By how much the sleepers ran late, in microseconds, in order of size.
    pub late_us: Vec<f64>,
    /// How long the first member waited from each wake-up until it was switched to, in microseconds and in order of size, if
    /// that was recorded.
    pub waits_us: Vec<f64>,
    /// What each member has noted: see [`Role`].
    pub notes: Vec<Notes>,
    /// How often each player had the byte.
    pub done: Vec<u64>,
    /// What the scheduler did meanwhile, if it is not the kernel's own.
    pub work: Option<Work>,
    /// How long it lets a member run at a time, if it has one such time.
    pub quantum: Option<Nanoseconds>,
}

/// What a scheduler has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    pub decisions: u64,
    /// What it has used itself; 0 if it is inside the kernel.
    pub own_ns: u64,
}

/// Those of the means that this kernel has. The report says why the others are missing.
pub(crate) fn available(all: &[Means], report: &mut Report) -> Vec<Means> {
    let has_sched_ext = std::path::Path::new("/sys/kernel/sched_ext").exists();
    let is_there =
        |means: &Means| has_sched_ext || !matches!(means, Means::Empty | Means::Dealt(By::SchedExt, _));
    let (there, missing): (Vec<_>, Vec<_>) = all.iter().copied().partition(is_there);
    let why = |means: Means| Row::new(means.name(), "", Err(Reason::new("this kernel has no sched_ext")));
    report.rows.extend(missing.into_iter().map(why));
    there
}

/// What schedules the members.
enum Ruler {
    Kernel,
    Dispatcher(Box<Dispatcher>),
    Pauses(Box<PausingDispatcher>),
    Dealer(Box<Dealer>),
    Empty(#[expect(dead_code, reason = "it rules while it lives")] Box<EmptyScheduler>),
}

impl Ruler {
    fn start(
        means: Means,
        groups: Option<&Groups>,
        crew: &Crew,
        setting: &Setting<'_>,
    ) -> Result<Ruler, Reason> {
        Ok(match (means, groups) {
            (Means::Dispatcher(policy), _) => Ruler::Dispatcher(Box::new(dispatcher(policy, crew, setting)?)),
            (Means::Pauses(policy), _) => Ruler::Pauses(Box::new(pauses(policy, crew, setting)?)),
            (Means::Dealt(by, policy), Some(groups)) => {
                Ruler::Dealer(Box::new(dealer(by, policy, groups, setting)?))
            }
            (Means::Empty, _) => Ruler::Empty(Box::new(EmptyScheduler::start().map_err(reason)?)),
            (Means::Kernel | Means::Dealt(..), _) => {
                set_nice(crew, setting)?;
                Ruler::Kernel
            }
        })
    }

    fn look(&mut self) -> Result<(), Reason> {
        match self {
            Ruler::Kernel | Ruler::Empty(_) => Ok(()),
            Ruler::Dispatcher(dispatcher) => dispatcher.look().map_err(reason),
            Ruler::Pauses(dispatcher) => dispatcher.look().map_err(reason),
            Ruler::Dealer(dealer) => {
                dealer.look().map_err(reason)?;
                let ended = dealer.ended().map(|ended| ended.to_string());
                ended.or_else(|| dealer.failure().map(str::to_owned)).map_or(Ok(()), |why| Err(reason(why)))
            }
        }
    }

    fn quantum(&self) -> Option<Nanoseconds> {
        match self {
            Ruler::Kernel | Ruler::Empty(_) => None,
            Ruler::Dispatcher(_) => Some(Setup::default().quantum),
            Ruler::Pauses(_) => Some(mete_pausing::Setup::default().quantum),
            Ruler::Dealer(dealer) => {
                dealer.quantum_ms().map(|ms| Nanoseconds::new((ms * 1e6).round() as u64))
            }
        }
    }

    fn work(&self) -> Option<Work> {
        match self {
            Ruler::Kernel | Ruler::Empty(_) => None,
            Ruler::Dispatcher(dispatcher) => {
                let counts = dispatcher.counts();
                Some(Work { decisions: counts.decisions, own_ns: counts.own_ns.get() })
            }
            Ruler::Pauses(dispatcher) => {
                let counts = dispatcher.counts();
                Some(Work { decisions: counts.decisions, own_ns: counts.own_ns.get() })
            }
            Ruler::Dealer(dealer) => {
                let did = dealer.did();
                Some(Work { decisions: did.decisions?, own_ns: did.own_ns.unwrap_or(0) })
            }
        }
    }
}

/// How often members are looked at as a rule.
const LOOK: Duration = Duration::from_millis(20);
/// How long members run before they are looked at as a rule.
pub(crate) const WARM_UP: Duration = Duration::from_secs(1);

/// How long it may take to look for the last time and to end the members. Nothing looks on in real time for longer.
const END: Duration = Duration::from_secs(30);

/// What else sees a run, beside the stage's own clocks.
pub(crate) trait Witness {
    /// What is measured begins: of these processes, by their parts, on this processor.
    ///
    /// # Errors
    ///
    /// What is missing, which ends the run.
    fn begin(&mut self, place: usize, pids: &[i32]) -> Result<(), Reason>;

    /// It ends.
    ///
    /// # Errors
    ///
    /// As above.
    fn end(&mut self) -> Result<(), Reason>;
}

/// None.
impl Witness for () {
    fn begin(&mut self, _place: usize, _pids: &[i32]) -> Result<(), Reason> {
        Ok(())
    }

    fn end(&mut self) -> Result<(), Reason> {
        Ok(())
    }
}

impl Run {
    /// Has the members run for a while under these means.
    pub fn of(
        means: Means,
        setting: &Setting<'_>,
        time: Duration,
        progress: &dyn Progress,
    ) -> Result<Run, Reason> {
        Run::seen_by(&mut (), means, setting, time, progress)
    }

    /// The same, before a witness.
    pub fn seen_by(
        witness: &mut dyn Witness,
        means: Means,
        setting: &Setting<'_>,
        time: Duration,
        progress: &dyn Progress,
    ) -> Result<Run, Reason> {
        let parts = setting.parts;
        let place = processor::quietest();
        // Before the crew: the groups go when their members have ended.
        let groups = match means {
            Means::Dealt(..) | Means::Empty => Some(Groups::make(setting.shares.len(), setting.depth)?),
            Means::Kernel | Means::Dispatcher(_) | Means::Pauses(_) => None,
        };
        let crew = start(parts, groups.as_ref(), (!setting.is_wide).then_some(place))?;
        let mut ruler = Ruler::start(means, groups.as_ref(), &crew, setting)?;
        // Where members are on all processors, this thread would have its turn after a thousand others.
        let ahead = setting.is_wide.then(|| Realtime::begin(setting.warm_up + time + END)).transpose()?;
        crew.go();
        watch(&mut ruler, setting.warm_up, setting.look, progress, |_| ())?;
        let noted: Vec<_> = (0..parts.len()).map(|nth| member::noted(crew.words(nth))).collect();
        let done = |nth| member::done(crew.words(nth));
        let done_before: Vec<_> = (0..parts.len()).map(done).collect();
        let worked = ruler.work();
        let mut run = Run { quantum: ruler.quantum(), ..Run::default() };
        witness.begin(place, &crew.pids())?;
        watch(&mut ruler, time, setting.look, progress, |now| run.looks.push((now, used(&crew, setting))))?;
        witness.end()?;
        crew.check()?;
        run.work = ruler.work().zip(worked).map(|(after, before)| Work {
            decisions: after.decisions - before.decisions,
            own_ns: after.own_ns.saturating_sub(before.own_ns),
        });
        run.done = done_before.iter().enumerate().map(|(nth, before)| done(nth) - before).collect();
        run.notes = (0..).zip(&noted).map(|(nth, noted)| member::notes(crew.words(nth), *noted)).collect();
        run.late_us = late_us(parts, &run.notes)?;
        // The members end before their groups go.
        drop(ruler);
        drop(crew);
        drop(groups);
        drop(ahead);
        Ok(run)
    }

    /// Whether all that members have noted is there.
    ///
    /// # Errors
    ///
    /// It is not.
    pub fn check_notes(&self) -> Result<(), Reason> {
        let lost: u64 = self.notes.iter().map(|notes| notes.lost).sum();
        if lost > 0 { Err(Reason::new(format!("{lost} notes of processes found no room"))) } else { Ok(()) }
    }

    /// From the first look to the last.
    pub fn seconds(&self) -> f64 {
        self.whole().map_or(0.0, |(_, ns)| ns / 1e9)
    }

    /// What each domain had from the first look to the last, and how long that was, in nanoseconds.
    pub fn whole(&self) -> Option<(Vec<f64>, f64)> {
        let ((begin, before), (end, after)) = (self.looks.first()?, self.looks.last()?);
        (end > begin).then(|| (difference(before, after), (end - begin) as f64))
    }

    /// The part of the processor time of all domains that each had.
    pub fn parts(&self) -> Option<Vec<f64>> {
        let (used, _) = self.whole()?;
        let all: f64 = used.iter().sum();
        (all > 0.0).then(|| used.iter().map(|used| used / all).collect())
    }

    /// The greatest difference of what a domain had and what its part is, in any window of this length, in
    /// milliseconds.
    pub fn worst_error_ms(&self, wanted: &[f64], window: Duration) -> Option<f64> {
        let window = window.as_nanos() as u64;
        let errors = self.looks.iter().enumerate().filter_map(|(nth, (begin, before))| {
            let (_, after) = self.looks[nth..].iter().find(|(end, _)| end - begin >= window)?;
            let used = difference(before, after);
            let all: f64 = used.iter().sum();
            let errors = used.iter().zip(wanted).map(|(used, wanted)| (used - wanted * all).abs() / 1e6);
            errors.max_by(f64::total_cmp)
        });
        errors.max_by(f64::total_cmp)
    }

    /// By how much sleepers ran late, at this permille of all times, in microseconds.
    pub fn late_us(&self, permille: usize) -> Option<f64> {
        at(&self.late_us, permille)
    }

    /// How long the first member waited, likewise.
    pub fn waits_us(&self, permille: usize) -> Option<f64> {
        at(&self.waits_us, permille)
    }
}

/// The value at this permille of sorted ones.
fn at(sorted: &[f64], permille: usize) -> Option<f64> {
    sorted.get(sorted.len() * permille / 1000).copied()
}

/// Members with these parts on this processor, or on any, which wait for their beginning.
fn start(parts: &[Part], groups: Option<&Groups>, place: Option<usize>) -> Result<Crew, Reason> {
    let group_of = |groups: &Groups| parts.iter().map(|part| groups.path(part.domain)).collect();
    let groups: Vec<_> = groups.map_or_else(Vec::new, group_of);
    let crew = Crew::start_in(&groups, &vec![place; parts.len()], member::WORDS, member::play)?;
    let has_encoders = parts.iter().any(|part| part.role == Role::Encoder);
    let steps = if has_encoders { member::steps_in(FRAME_NS) } else { 0 };
    let mut players = 0..;
    for (nth, part) in parts.iter().enumerate() {
        let knows = match part.role {
            Role::Hog | Role::Sleeper => 0,
            Role::Encoder => steps,
            Role::Player => players.next().unwrap_or_default(),
        };
        member::cast(crew.words(nth), part.role, knows);
    }
    Ok(crew)
}

fn difference(before: &[u64], after: &[u64]) -> Vec<f64> {
    after.iter().zip(before).map(|(after, before)| after.saturating_sub(*before) as f64).collect()
}

fn dispatcher(policy: &str, crew: &Crew, setting: &Setting<'_>) -> Result<Dispatcher, Reason> {
    let domains = domains_of_processes(crew, setting)?;
    Dispatcher::start(entry(policy)?, domains, Setup::default()).map_err(reason)
}

fn pauses(policy: &str, crew: &Crew, setting: &Setting<'_>) -> Result<PausingDispatcher, Reason> {
    let domains = domains_of_processes(crew, setting)?;
    PausingDispatcher::start(entry(policy)?, domains, mete_pausing::Setup::default()).map_err(reason)
}

fn entry(policy: &str) -> Result<&'static Entry, Reason> {
    by_name(policy).ok_or_else(|| Reason::new(format!("there is no policy {policy}")))
}

fn domains_of_processes(crew: &Crew, setting: &Setting<'_>) -> Result<Vec<SharedDomain>, Reason> {
    let pids = crew.pids();
    let domains = setting.shares.iter().enumerate().map(|(domain, share)| {
        let members = pids.iter().zip(setting.parts).filter(|(_, part)| part.domain == domain);
        let members: Vec<_> = members.map(|(pid, _)| format!("pid:{pid}")).collect();
        let members = members.iter().map(String::as_str);
        SharedDomain::new(&format!("d{domain}"), members, Some(f64::from(*share)), None)
    });
    domains.collect::<Result<Vec<_>, _>>().map_err(reason)
}

fn dealer(by: By, policy: &str, groups: &Groups, setting: &Setting<'_>) -> Result<Dealer, Reason> {
    let policy =
        SharePolicy::named(policy).ok_or_else(|| Reason::new(format!("there is no policy {policy}")))?;
    let domain = |(domain, share): (usize, &u32)| {
        SharedDomain::new(
            &format!("d{domain}"),
            [groups.selector(domain).as_str()],
            Some(f64::from(*share)),
            None,
        )
    };
    let domains =
        setting.shares.iter().enumerate().map(domain).collect::<Result<Vec<_>, _>>().map_err(reason)?;
    let mut dealer = Dealer::start(by, policy, domains).map_err(reason)?;
    if let Some(quantum) = setting.quantum {
        dealer.set_quantum_ms(&quantum.as_millis().to_string()).map_err(reason)?;
    }
    Ok(dealer)
}

/// Looks at the members for a while, with the time of each look.
fn watch(
    ruler: &mut Ruler,
    time: Duration,
    pause: Duration,
    progress: &dyn Progress,
    mut look: impl FnMut(u64),
) -> Result<(), Reason> {
    let begin = Instant::now();
    while begin.elapsed() < time && !progress.is_cancelled() {
        ruler.look()?;
        look(now_ns());
        std::thread::sleep(pause);
    }
    Ok(())
}

fn reason(error: impl std::fmt::Display) -> Reason {
    Reason::new(error.to_string())
}

fn set_nice(crew: &Crew, setting: &Setting<'_>) -> Result<(), Reason> {
    for (pid, part) in crew.pids().into_iter().zip(setting.parts) {
        let pid = rustix::process::Pid::from_raw(pid);
        let nice = setting.nice.get(part.domain).copied().unwrap_or(0);
        rustix::process::setpriority_process(pid, nice).map_err(Reason::while_trying("set a nice value"))?;
    }
    Ok(())
}

/// The processor time of each domain.
fn used(crew: &Crew, setting: &Setting<'_>) -> Vec<u64> {
    let mut used = vec![0; setting.shares.len()];
    for (nth, part) in setting.parts.iter().enumerate() {
        used[part.domain] += member::used(crew.words(nth));
    }
    used
}

/// By how much sleepers were late, in microseconds, in order of size.
fn late_us(parts: &[Part], notes: &[Notes]) -> Result<Vec<f64>, Reason> {
    let mut late = Vec::new();
    for (_, notes) in parts.iter().zip(notes).filter(|(part, _)| part.role == Role::Sleeper) {
        if notes.lost > 0 {
            return Err(Reason::new(format!("{} notes of a sleeper found no room", notes.lost)));
        }
        late.extend(notes.kept.iter().map(|late_ns| *late_ns as f64 / 1e3));
    }
    late.sort_by(f64::total_cmp);
    Ok(late)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vtrr_6_the_worst_window_is_found_wherever_it_begins() {
        // Two domains, which should have half each; in one second the first had all.
        let second = 1_000_000_000;
        let looks = [(0, vec![0, 0]), (1, vec![5, 5]), (2, vec![15, 5]), (3, vec![20, 10])];
        let looks =
            looks.map(|(at, used)| (at * second, used.iter().map(|used| used * 100_000_000).collect()));
        let run = Run { looks: looks.into(), ..Run::default() };
        assert_eq!(run.worst_error_ms(&[0.5, 0.5], Duration::from_secs(1)), Some(500.0));
        assert_eq!(run.worst_error_ms(&[0.5, 0.5], Duration::from_secs(9)), None, "no window is so long");
        assert_eq!(run.parts(), Some(vec![20.0 / 30.0, 10.0 / 30.0]));
    }

    #[test]
    fn vtrr_6_members_note_what_their_roles_say() -> Result<(), Reason> {
        let roles = [Role::Hog, Role::Hog, Role::Sleeper, Role::Encoder];
        let parts = roles.map(|role| Part { role, domain: 0 });
        let run = Run::of(Means::Kernel, &Setting::of(&parts, &[1]), Duration::from_secs(2), &())?;
        run.check_notes()?;
        let [one, other, _, encoder] = &run.notes[..] else { panic!("{} of four", run.notes.len()) };
        for hog in [one, other] {
            assert!(hog.kept.len() >= 2 && hog.kept.is_sorted(), "{:?}", hog.kept);
        }
        assert!(!encoder.kept.is_empty() && encoder.kept.is_sorted());
        assert!(!run.late_us.is_empty() && run.late_us.is_sorted());
        Ok(())
    }
}
