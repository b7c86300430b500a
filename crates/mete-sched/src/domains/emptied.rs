//! Which domains have lost their last process while they were ruled.

use std::time::{Duration, Instant};

use super::{Domains, Selector, user_domains};

/// A domain whose processes are short is without one now and then.
const LEAST: Duration = Duration::from_secs(1);

/// Says once of each domain that it has no process any more.
#[derive(Debug, Default)]
pub struct Emptied(Vec<Seen>);

/// What was seen of a domain.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    has_had: bool,
    empty_since: Option<Instant>,
    is_told: bool,
}

impl Emptied {
    /// Which domains have had none for a second, in sentences. To be called after each scan.
    pub fn look(&mut self, domains: &Domains, now: Instant) -> Vec<String> {
        self.0.resize(domains.len(), Seen::default());
        let mut has_member = vec![false; domains.len()];
        for known in domains.known.values() {
            has_member[known.domain.index()] = true;
        }
        let mut news = Vec::new();
        for number in user_domains(domains.len()) {
            let seen = &mut self.0[number.index()];
            if has_member[number.index()] {
                *seen = Seen { has_had: true, empty_since: None, ..*seen };
                continue;
            }
            let since = *seen.empty_since.get_or_insert(now);
            if seen.has_had && !seen.is_told && now.saturating_duration_since(since) >= LEAST {
                seen.is_told = true;
                let domain = &domains.domains[number.index()];
                let later = match domain.selectors.iter().any(Selector::can_come_true) {
                    true => "what starts later and matches belongs to it",
                    false => "no other one can belong to it",
                };
                news.push(format!("the domain {:?} has lost its last process; {later}", domain.name));
            }
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;
    use crate::domains::SharedDomain;

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").spawn().unwrap()
    }

    #[test]
    fn vtrr_6_of_a_domain_that_has_lost_its_last_process_it_is_said_once() {
        let mut sleepers = [sleeper(), sleeper()];
        let pids = sleepers.each_ref().map(Child::id);
        let specs = [
            format!("a=pid:{}", pids[0]),
            format!("b=pid:{},comm:there-is-no-such", pids[1]),
            "c=comm:never-there".into(),
        ];
        let specs = specs.map(|text| SharedDomain::parse(text.as_ref()).unwrap().spec);
        let mut domains = Domains::new(specs).unwrap();
        let (mut emptied, begin) = (Emptied::default(), Instant::now());
        domains.scan_fully();
        assert!(emptied.look(&domains, begin).is_empty());
        for sleeper in &mut sleepers {
            sleeper.kill().unwrap();
            sleeper.wait().unwrap();
        }
        domains.scan_fully();
        let after = |ms| begin + Duration::from_millis(ms);
        assert!(emptied.look(&domains, after(100)).is_empty());
        assert!(emptied.look(&domains, after(1050)).is_empty());
        assert_eq!(
            emptied.look(&domains, after(1150)),
            [
                "the domain \"a\" has lost its last process; no other one can belong to it",
                "the domain \"b\" has lost its last process; what starts later and matches belongs to it",
            ]
        );
        assert!(emptied.look(&domains, after(9000)).is_empty());
    }
}
