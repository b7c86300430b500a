//! Domains where none was named: the programs that use the processors most.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::{Duration, Instant};

use crate::domains::process::{self, Process};
use crate::domains::{DomainSpec, Selector, plain_name};

/// As many as can be taken in at a glance.
const MOST: usize = 12;
/// Long enough for the kernel's own accounting to move: it counts in hundredths of a second.
const LOOK_FOR: Duration = Duration::from_millis(300);

/// Processor time in ticks, by name of program: just now, and since it began.
type Busy = BTreeMap<OsString, (u64, u64)>;

/// A first look at the processes that run. [`FirstLook::busiest`] takes the second one.
pub struct FirstLook {
    used: BTreeMap<u32, (OsString, u64)>,
    at: Instant,
}

impl FirstLook {
    /// Looks at all processes.
    pub fn now() -> FirstLook {
        FirstLook { used: used(), at: Instant::now() }
    }

    /// The busiest programs since then, over a third of a second at least, and behind them those that have
    /// run most in their life. Blocks until that time has passed.
    pub fn busiest(self) -> Vec<DomainSpec> {
        std::thread::sleep(LOOK_FOR.saturating_sub(self.at.elapsed()));
        let mut busy: Vec<_> = since(&self.used, used()).into_iter().collect();
        busy.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        busy.truncate(MOST);
        let mut specs: Vec<DomainSpec> = Vec::new();
        for (comm, _) in busy {
            let (name, selector) = (plain_name(&comm), Selector::comm(&comm));
            match specs.iter_mut().find(|spec| spec.name == name) {
                Some(spec) => spec.selectors.push(selector),
                None => specs.push(DomainSpec { name, selectors: vec![selector], role: None }),
            }
        }
        specs
    }
}

/// Processor time by process. The kernel's own threads stay together in "other", and so does the first
/// process, because every process descends from it.
fn used() -> BTreeMap<u32, (OsString, u64)> {
    let own = std::process::id();
    let first = Process::read(1).map(|process| process.comm);
    let programs = process::processes().into_iter().filter_map(Process::read);
    let programs = programs.filter(|process| !process.is_kernel && process.pid != own);
    let programs =
        programs.filter(|process| Some(&process.comm) != first.as_ref() && !process.comm.is_empty());
    programs.map(|process| (process.pid, (process.comm, process.ran))).collect()
}

fn since(before: &BTreeMap<u32, (OsString, u64)>, now: BTreeMap<u32, (OsString, u64)>) -> Busy {
    let mut busy = Busy::new();
    for (pid, (comm, ticks)) in now {
        let earlier = before.get(&pid).map_or(0, |(_, ticks)| *ticks);
        let sum = busy.entry(comm).or_default();
        sum.0 += ticks.saturating_sub(earlier);
        sum.1 += ticks;
    }
    busy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_programs_become_names_of_domains() {
        assert_eq!(
            (plain_name("kube-proxy".as_ref()), plain_name("a b:c".as_ref()), plain_name("idle".as_ref())),
            ("kube-proxy".into(), "a_b_c".into(), "idle_".into())
        );
        for spec in FirstLook::now().busiest() {
            assert!(format!("{}=pid:1", spec.name).parse::<DomainSpec>().is_ok(), "{}", spec.name);
        }
    }

    #[test]
    fn programs_are_ordered_by_what_they_use_now() {
        let before = BTreeMap::from([(1, ("old".into(), 900)), (2, ("new".into(), 5))]);
        let now = BTreeMap::from([(1, ("old".into(), 901)), (2, ("new".into(), 25)), (3, ("new".into(), 7))]);
        assert_eq!(since(&before, now), Busy::from([("new".into(), (27, 32)), ("old".into(), (1, 901))]));
    }
}
