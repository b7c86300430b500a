//! The dealer: one of the means, and the accounts of the domains.

use std::fmt;
use std::time::{Duration, Instant};

use mete_ext::{Ended, ExtError, Failure, check_kernel_rules, check_quantum};
use mete_kernel::Limit;
use mete_policy::Nanoseconds;
use mete_sched::actuator::ActuatorError;
use mete_sched::domains::SharedDomain;
use mete_sched::domains::process::shown;
use mete_sched::notice::not_for_the_next_start;
use rustix::process::geteuid;
use rustix::time::{ClockId, clock_gettime};

use crate::account::Account;
use crate::by::By;
use crate::error::DealError;
use crate::fallback::Fallback;
use crate::given::Work;
use crate::group::{Identity, control_group, identity, sums};
use crate::in_turn::InTurn;
use crate::means::{Means, PutBack};
use crate::policy::SharePolicy;
use crate::remade::GroupIdentities;
use crate::rules::check;
use crate::{Did, Given};

/// How often it is noted what each group has used: of one that is removed, this much may be missing, and more where they are
/// more than are noted in that time.
const BETWEEN_NOTES: Duration = Duration::from_secs(2);
/// Of how many groups in that time.
const MOST_NOTES: usize = 256;

/// Gives domains their shares, as long as it lives.
pub struct Dealer {
    means: Means,
    policy: SharePolicy,
    /// Why what is to be preferred does not do it.
    because: Option<String>,
    domains: Vec<SharedDomain>,
    /// Those of control groups; the dispatcher has its own.
    accounts: Vec<Account>,
    groups: GroupIdentities,
    /// What they have used is noted.
    notes: InTurn,
    /// How long a task runs at a time, by sched_ext.
    quantum: Option<Nanoseconds>,
    /// What has become of sched_ext's scheduler, if it has failed.
    fallback: Fallback,
    begin: Instant,
    /// When the means that rules was started, and what this process had used then.
    rules_since: Instant,
    used_before: Duration,
    /// When what rules, or a share, was changed last, and what each domain had used then: what is given counts from there.
    since: Instant,
    before: Vec<Option<Duration>>,
}

impl Dealer {
    /// Gives each domain its share. Without a domain, sched_ext gives all control groups what their
    /// `cpu.weight` says.
    ///
    /// # Errors
    ///
    /// [`DealError`] says what is missing, or which domain can have no share.
    pub fn start(by: By, policy: SharePolicy, domains: Vec<SharedDomain>) -> Result<Dealer, DealError> {
        check(by, policy, &domains)?;
        check_groups_to_be(&domains)?;
        let are_groups = domains.iter().all(|domain| control_group(domain).is_some());
        let identities = GroupIdentities::of(&domains);
        let (means, because) = means_of(by, policy, &domains, are_groups)?;
        let groups = domains.iter().filter_map(control_group);
        let has_own = means.is_dispatcher();
        let accounts = if are_groups && !has_own { groups.map(Account::open).collect() } else { Vec::new() };
        let (begin, before) = (Instant::now(), vec![None; domains.len()]);
        let (quantum, fallback) = (means.quantum(), Fallback::default());
        Ok(Dealer {
            means,
            policy,
            because,
            domains,
            accounts,
            groups: identities,
            notes: InTurn::new(BETWEEN_NOTES, MOST_NOTES),
            quantum,
            fallback,
            begin,
            rules_since: begin,
            used_before: used_by_process(),
            since: begin,
            before,
        })
    }

    /// Looks which threads have begun or ended, where that matters; whether shares are still dealt out: a scheduler that has
    /// failed gives way to the kernel's own, and is tried again after pauses that grow; and which control groups were made
    /// again, and are without their shares. To be called some times each second.
    ///
    /// # Errors
    ///
    /// [`DealError::Dispatcher`] or [`DealError::Pausing`] if it cannot go on.
    pub fn look(&mut self) -> Result<(), DealError> {
        match &mut self.means {
            Means::Dispatcher(dispatcher) => {
                let had_begun = dispatcher.has_begun();
                dispatcher.look()?;
                if !had_begun {
                    self.begin();
                }
                return Ok(());
            }
            Means::Pauses(dispatcher) => return Ok(dispatcher.look()?),
            // If no other thread can decide, the status says that none does.
            Means::Outside(scheduler) => drop(scheduler.look()),
            Means::Ext(_) | Means::Weights(_) | Means::Kernel => {}
        }
        if let Some(ended) = self.means.ended().filter(|ended| ended.is_fault) {
            self.fall_back(&ended);
        } else if self.fallback.is_due() {
            self.try_again();
        }
        if let Work::Outside(status) = self.means.work() {
            self.note_failure(status.failure, status.policy);
        }
        self.look_at_groups();
        Ok(())
    }

    /// It deals from here on.
    fn begin(&mut self) {
        self.count_from_here();
        self.begin = self.since;
        self.rules_from_here();
    }

    fn rules_from_here(&mut self) {
        (self.rules_since, self.used_before) = (Instant::now(), used_by_process());
    }

    /// A policy that has failed, and the one that rules in its place.
    fn note_failure(&mut self, failure: Option<Failure>, ruling: &'static str) {
        if !self.fallback.note(failure.map(|failure| (failure.to_string(), ruling))) {
            return;
        }
        // If the scheduler has to be started again, it is with the one that has not failed.
        self.policy = SharePolicy::named(ruling).unwrap_or(self.policy);
        self.count_from_here();
    }

    /// Control groups that were made again get the shares that the former ones had.
    fn look_at_groups(&mut self) {
        let due = self.notes.due(self.accounts.len());
        self.accounts[due].iter_mut().for_each(Account::note);
        // Where nothing deals, the next try gives all groups their shares.
        if matches!(self.means, Means::Kernel) {
            return;
        }
        for (nth, group) in self.groups.without_share(&self.domains) {
            self.deal_again(nth, group);
        }
    }

    /// What the user should know of what was seen since this was asked last, in sentences.
    pub fn news(&mut self) -> Vec<String> {
        let mut news = self.fallback.news();
        news.extend(self.means.news());
        news
    }

    /// If that fails, it is tried again.
    fn deal_again(&mut self, nth: usize, group: Identity) {
        let domain = &self.domains[nth];
        let Some(path) = control_group(domain) else { return };
        let was_there = self.groups.was_there(nth);
        let dealt = self.means.set_share(nth, domain);
        if dealt.is_ok() {
            self.groups.has_share(nth, group);
            self.accounts.get_mut(nth).iter_mut().for_each(|account| account.go_on(path));
        }
        if self.groups.is_to_be_told(nth) {
            let (path, name) = (shown(path.as_os_str()), &domain.spec.name);
            let made = if was_there { "was made anew" } else { "is there now" };
            self.fallback.tell(match dealt {
                Ok(()) => format!("{path} {made}: {name} has its share there"),
                Err(error) => format!("{path} {made}, and {name} has no share there yet: {error}"),
            });
        }
    }

    /// The kernel's own scheduler rules, by weights if there are any, until another try.
    fn fall_back(&mut self, ended: &Ended) {
        let is_outside = matches!(self.means, Means::Outside(_));
        // First the other one goes.
        self.means = Means::Kernel;
        self.groups = GroupIdentities::of(&self.domains);
        let present = present(&self.domains);
        if !present.is_empty() {
            match Means::weights(&present) {
                Ok(weights) => self.means = weights,
                Err(error) => self.fallback.tell(format!("there are no weights in its place: {error}")),
            }
        }
        self.rules_from_here();
        let verdict = format!("sched_ext rules no more: {}", ended.verdict());
        self.fallback.fail(is_outside, verdict, self.means.meanwhile());
        self.count_from_here();
    }

    fn try_again(&mut self) {
        let (groups, present) = (GroupIdentities::of(&self.domains), present(&self.domains));
        let started = match self.policy.entry() {
            Ok(policy) if self.fallback.is_outside() => Means::outside(policy, &present),
            Ok(_) => Means::ext(&present),
            Err(error) => Err(error),
        };
        // It has the quantum that was set.
        let started = started.and_then(|means| {
            let quantum = self.quantum.map_or(Ok(None), |quantum| means.set_quantum(quantum))?;
            self.quantum = quantum.or(self.quantum);
            Ok(means)
        });
        match started {
            Ok(means) => {
                if let Some(PutBack { what, see, restored }) =
                    std::mem::replace(&mut self.means, means).finish()
                    && restored.failed > 0
                {
                    self.fallback.tell(format!("some {what} could not be put back: see {see}"));
                }
                self.fallback.succeed();
                self.groups = groups;
                self.rules_from_here();
                self.count_from_here();
            }
            Err(error) => {
                self.fallback.fail(self.fallback.is_outside(), error.to_string(), self.means.meanwhile());
            }
        }
    }

    /// Gives a domain another share. What domains are given counts from here.
    ///
    /// # Errors
    ///
    /// [`DealError::NoDomain`], [`DealError::NoShare`], or what the means answers; it has the share that it
    /// had then.
    pub fn set_share(&mut self, domain: &str, share: &str) -> Result<(), DealError> {
        let nth = self.place_of(domain)?;
        let weight = SharedDomain::weight_of(share.as_ref()).map_err(DealError::NoShare)?;
        self.change(nth, SharedDomain { weight: Some(weight), ..self.domains[nth].clone() })
    }

    /// Gives a domain that has a limit another one. What domains are given counts from here.
    ///
    /// # Errors
    ///
    /// As [`set_share`](Dealer::set_share).
    pub fn set_limit(&mut self, domain: &str, processors: &str) -> Result<(), DealError> {
        let nth = self.place_of(domain)?;
        let limit = SharedDomain::limit_of(processors.as_ref()).map_err(DealError::NoShare)?;
        self.change(nth, SharedDomain { limit: Some(limit), ..self.domains[nth].clone() })
    }

    fn place_of(&self, domain: &str) -> Result<usize, DealError> {
        let place = self.domains.iter().position(|known| known.spec.name == domain);
        place.ok_or_else(|| DealError::NoDomain { name: domain.into(), known: self.listed() })
    }

    fn change(&mut self, nth: usize, changed: SharedDomain) -> Result<(), DealError> {
        // A control group that is not there at the moment gets it when it is.
        if !is_missing(&changed) || self.means.is_dispatcher() {
            self.means.set_share(nth, &changed)?;
        }
        self.domains[nth] = changed;
        self.count_from_here();
        Ok(())
    }

    /// Has another policy of the catalogue decide, where one decides outside the kernel by sched_ext; while a scheduler that has
    /// failed is to be tried again, from the next try on. What domains are given counts from here.
    ///
    /// # Errors
    ///
    /// [`DealError::NotNamed`], [`DealError::NotReplaced`], or [`ExtError::NotTaken`]; the policy goes on then.
    pub fn set_policy(&mut self, name: &str) -> Result<(), DealError> {
        let policy = SharePolicy::named(name);
        let policy = policy
            .ok_or_else(|| DealError::NotNamed { name: name.into(), meant: SharePolicy::meant(name) })?;
        // Where the one before has failed, the next try begins with this one.
        if !self.awaits_policy() && !self.means.set_policy(policy.entry()?)? {
            return Err(DealError::NotReplaced { policy: self.policy.name(), by: self.means.name() });
        }
        self.policy = policy;
        self.count_from_here();
        Ok(())
    }

    /// Sets how long a task runs at a time, in milliseconds, by sched_ext. What domains are given counts from here.
    ///
    /// # Errors
    ///
    /// [`DealError::NoQuantum`] if that is no number, [`ExtError::Quantum`], [`DealError::FixedQuantum`] where it cannot
    /// be set, or those of [`set_policy`](Dealer::set_policy).
    pub fn set_quantum_ms(&mut self, milliseconds: &str) -> Result<(), DealError> {
        let number = milliseconds.parse::<f64>().ok().filter(|number| (0.0..=1e9).contains(number));
        let number = number.ok_or_else(|| DealError::NoQuantum { found: milliseconds.into() })?;
        let quantum = Nanoseconds::new((number * 1e6).round() as u64);
        let rules = if self.fallback.is_pending() {
            Some(check_quantum(quantum)?)
        } else {
            self.means.set_quantum(quantum)?
        };
        self.quantum = Some(rules.ok_or(DealError::FixedQuantum { by: self.means.name() })?);
        self.count_from_here();
        Ok(())
    }

    /// How long a task runs at a time, in milliseconds; `None` where the means has quanta of its own.
    #[must_use]
    pub fn quantum_ms(&self) -> Option<f64> {
        self.quantum.map(Nanoseconds::as_millis_f64)
    }

    /// Whether another policy can take over from the one that rules.
    #[must_use]
    pub fn can_replace_policy(&self) -> bool {
        matches!(self.means, Means::Outside(_))
    }

    /// The names of the domains, in one line.
    fn listed(&self) -> String {
        self.domains.iter().map(|domain| domain.spec.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    fn count_from_here(&mut self) {
        self.before = self.ran();
        self.since = Instant::now();
    }

    /// The domains, with their shares.
    #[must_use]
    pub fn domains(&self) -> &[SharedDomain] {
        &self.domains
    }

    /// Since when what domains are given counts, as a sentence, if that is not since the start.
    #[must_use]
    pub fn counts_since(&self) -> Option<String> {
        let since = self.since.elapsed().as_secs_f64();
        let policy = self.did().policy.map_or(String::new(), |policy| format!(" under {policy}"));
        (self.since != self.begin)
            .then(|| format!("what each was given counts from the last change on: {since:.1} s{policy}"))
    }

    /// For how long it has dealt by the present shares.
    #[must_use]
    pub fn passed_since_change(&self) -> Duration {
        self.since.elapsed()
    }

    /// How long it has dealt.
    #[must_use]
    pub fn passed(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Why the kernel has ended the scheduler for good: it was asked to. After a fault, it is tried again.
    #[must_use]
    pub fn ended(&self) -> Option<Ended> {
        self.means.ended().filter(|ended| !ended.is_fault)
    }

    /// What has failed last, if anything has.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.fallback.verdict()
    }

    /// What each domain was to have and what it has got.
    #[must_use]
    pub fn given(&self) -> Vec<Given> {
        let ran = self.ran_since_change();
        let seconds = |nth: usize| ran[nth].map_or(0.0, |ran| ran.as_secs_f64());
        let shares = sums(&self.domains, |nth| weight(&self.domains[nth]));
        let all = sums(&self.domains, seconds);
        let given = |(nth, domain): (usize, &SharedDomain)| Given {
            domain: domain.spec.name.clone(),
            share: domain.weight_or_ordinary().share(),
            limit: domain.limit.map(Limit::processors),
            wanted_percent: 100.0 * weight(domain) / shares[nth],
            given_percent: ran[nth].filter(|_| all[nth] > 0.0).map(|_| 100.0 * seconds(nth) / all[nth]),
            ran_ns: ran[nth].map(|ran| u64::try_from(ran.as_nanos()).unwrap_or(u64::MAX)),
        };
        self.domains.iter().enumerate().map(given).collect()
    }

    /// The processor time of each domain by the present shares.
    fn ran_since_change(&self) -> Vec<Option<Duration>> {
        let both = self.ran().into_iter().zip(&self.before);
        both.map(|(ran, before)| Some(ran?.saturating_sub(before.unwrap_or_default()))).collect()
    }

    /// The processor time of each domain.
    fn ran(&self) -> Vec<Option<Duration>> {
        let each =
            |used: Vec<Nanoseconds>| used.iter().map(|it| Some(Duration::from_nanos(it.get()))).collect();
        match &self.means {
            Means::Dispatcher(dispatcher) => each(dispatcher.used()),
            Means::Pauses(dispatcher) => each(dispatcher.used()),
            Means::Ext(_) | Means::Outside(_) | Means::Weights(_) | Means::Kernel => {
                self.accounts.iter().map(Account::used).collect()
            }
        }
    }

    /// What it did since it started.
    #[must_use]
    pub fn did(&self) -> Did {
        let did =
            Did::new(self.policy.name(), self.means.name(), self.passed().as_secs_f64(), &self.means.work());
        Did {
            rules_s: self.rules_since.elapsed().as_secs_f64(),
            process_ns: used_by_process().saturating_sub(self.used_before).as_nanos() as u64,
            next: self.awaits_policy().then(|| self.policy.name()),
            because: self.because.clone(),
            failed: did.failed.clone().or_else(|| self.failure().map(str::to_owned)),
            restarts: self.is_by_sched_ext().then(|| self.fallback.restarts()),
            ..did
        }
    }

    /// Whether a scheduler is to be tried again in which a policy decides from outside the kernel.
    fn awaits_policy(&self) -> bool {
        self.fallback.is_pending() && self.fallback.is_outside()
    }

    /// Whether a scheduler of sched_ext rules, or is to be tried again.
    fn is_by_sched_ext(&self) -> bool {
        matches!(self.means, Means::Ext(_) | Means::Outside(_)) || self.failure().is_some()
    }

    /// What the user should know, if not everything is as it should be, in sentences.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let unnamed = self.means.unnamed().map(|why| not_for_the_next_start(&why.to_string()));
        let missing = self.domains.iter().filter(|domain| is_missing(domain));
        let missing = missing.filter(|_| !self.means.is_dispatcher()).map(|domain| {
            let path = shown(control_group(domain).unwrap_or("".as_ref()).as_os_str());
            format!(
                "there is no control group {path} yet: {} has its share from when there is",
                domain.spec.name
            )
        });
        let accounts = self.domains.iter().zip(&self.accounts);
        let accounts = accounts.filter(|(domain, account)| !account.is_known() && !is_missing(domain));
        let unknown = accounts.filter_map(|(domain, _)| control_group(domain)).map(|group| {
            format!(
                "what {} is given is not known: cpuacct, which accounts for it, is mounted apart and has no such group; \
                 make one there and move the processes into it, too",
                group.display()
            )
        });
        unnamed
            .into_iter()
            .chain(missing)
            .chain(self.means.left_out())
            .chain(unknown)
            .chain(self.means.empty_domains().iter().cloned())
            .collect()
    }

    /// Puts back what was changed; `None` if it needs no putting back.
    pub fn finish(self) -> Option<PutBack> {
        let put_back = self.means.finish()?;
        let is_limited = self.domains.iter().any(|domain| domain.limit.is_some());
        let what = if is_limited { "weights and limits of control groups" } else { put_back.what };
        Some(PutBack { what, ..put_back })
    }
}

/// The means that rules, how closely it keeps shares, and why it is not a better one.
impl fmt::Display for Dealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(because) = &self.because {
            write!(f, "{because}. So ")?;
        }
        self.means.say(self.policy, f)
    }
}

/// Groups that are not there yet are known by their paths only.
fn check_groups_to_be(domains: &[SharedDomain]) -> Result<(), DealError> {
    for (nth, domain) in domains.iter().enumerate().filter(|(_, domain)| is_missing(domain)) {
        let same = |other: &&SharedDomain| control_group(other) == control_group(domain);
        if let Some(other) = domains[..nth].iter().find(same) {
            let [one, other] = [other, domain].map(|domain| domain.spec.name.clone());
            return Err(DealError::Twice { one, other });
        }
    }
    Ok(())
}

/// Whether a domain is a control group that is not there: a service may be down at the moment.
fn is_missing(domain: &SharedDomain) -> bool {
    control_group(domain).is_some_and(|group| identity(group).is_none())
}

/// The domains whose control groups are there.
fn present(domains: &[SharedDomain]) -> Vec<SharedDomain> {
    domains.iter().filter(|domain| !is_missing(domain)).cloned().collect()
}

/// What deals, by these means, and why it is not what is to be preferred, if it is not.
fn means_of(
    by: By,
    policy: SharePolicy,
    domains: &[SharedDomain],
    are_groups: bool,
) -> Result<(Means, Option<String>), DealError> {
    let is_apart = by == By::Pauses || by == By::SchedExt || (by == By::Auto && are_groups);
    if !is_apart && let Err(taken) = check_kernel_rules() {
        // Signals do not depend on who schedules.
        let may_pause = by == By::Auto && domains.iter().all(|domain| domain.limit.is_none());
        return if may_pause {
            pauses_instead(policy, domains, std::iter::once(taken.to_string()))
        } else {
            Err(taken.into())
        };
    }
    Ok(match (by, policy) {
        (By::Dispatcher, _) => (Means::dispatcher(policy.entry()?, domains)?, None),
        (By::Pauses, _) => (Means::pauses(policy.entry()?, domains)?, None),
        (By::Auto, _) if domains.iter().any(|domain| domain.limit.is_some()) => {
            let why = "limits are kept by the kernel's own scheduler only";
            (Means::weights(&present(domains))?, Some(why.into()))
        }
        (By::Auto, _) if !are_groups => dispatcher_or_pauses(policy, domains, None)?,
        (By::Cgroup, _) => (Means::weights(&present(domains))?, None),
        (By::SchedExt | By::Auto, _) => match Means::sched_ext(policy, &present(domains)) {
            Err(DealError::Ext(missing)) if by == By::Auto && missing.lies_in_the_machine() => {
                means_instead(policy, domains, &missing)?
            }
            means => (means?, None),
        },
    })
}

/// What deals where the machine has no sched_ext that can.
fn means_instead(
    policy: SharePolicy,
    domains: &[SharedDomain],
    missing: &ExtError,
) -> Result<(Means, Option<String>), DealError> {
    let why = missing.to_string();
    match policy {
        _ if domains.is_empty() => Err(DealError::NothingNamed(why)),
        SharePolicy::GroupVtrr => match Means::weights(&present(domains)) {
            // A user may give weights to delegated groups only.
            Err(refused @ DealError::Weights(ActuatorError::Group { .. })) if !geteuid().is_root() => {
                pauses_instead(policy, domains, [why, refused.to_string()].into_iter())
            }
            means => Ok((means?, Some(why))),
        },
        SharePolicy::Outside(_) => dispatcher_or_pauses(policy, domains, Some(why)),
    }
}

/// The dispatcher, or pauses where this machine or this user cannot have it; and why it is no better one.
fn dispatcher_or_pauses(
    policy: SharePolicy,
    domains: &[SharedDomain],
    before: Option<String>,
) -> Result<(Means, Option<String>), DealError> {
    match Means::dispatcher(policy.entry()?, domains) {
        Err(DealError::Dispatcher(missing)) if missing.lies_in_the_machine() => {
            pauses_instead(policy, domains, before.into_iter().chain([missing.to_string()]))
        }
        means => Ok((means?, before)),
    }
}

/// Pauses, because of what others lack.
fn pauses_instead(
    policy: SharePolicy,
    domains: &[SharedDomain],
    missing: impl Iterator<Item = String>,
) -> Result<(Means, Option<String>), DealError> {
    let missing = missing.collect::<Vec<_>>().join(". And ");
    match Means::pauses(policy.entry()?, domains) {
        Err(DealError::Pausing(source)) => Err(DealError::Neither { missing, source }),
        means => Ok((means?, Some(missing))),
    }
}

/// The processor time of this process.
fn used_by_process() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec.cast_unsigned(), used.tv_nsec as u32)
}

fn weight(domain: &SharedDomain) -> f64 {
    f64::from(domain.weight_or_ordinary().get())
}
