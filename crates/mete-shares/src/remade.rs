//! Control groups that are removed and made again, as services and containers are when they start anew. The kernel takes a
//! group of the same path for another one, without the share that the former one had.

use std::path::Path;
use std::time::{Duration, Instant};

use mete_sched::domains::SharedDomain;

use crate::group::{Identity, control_group, identity};

/// So long a new group may be without its share.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// Which group each domain was when it got its share; `None` for what is no control group.
pub(crate) struct Groups {
    known: Vec<Option<Identity>>,
    looked: Instant,
}

impl Groups {
    pub fn of(domains: &[SharedDomain]) -> Groups {
        let known = domains.iter().map(|domain| control_group(domain).and_then(identity)).collect();
        Groups { known, looked: Instant::now() }
    }

    /// The places of the domains that are other groups now. Each is named once.
    pub fn remade(&mut self, domains: &[SharedDomain]) -> Vec<usize> {
        if self.looked.elapsed() < BETWEEN_LOOKS {
            return Vec::new();
        }
        self.looked = Instant::now();
        let paths = domains.iter().map(control_group);
        let each = self.known.iter_mut().zip(paths).enumerate();
        each.filter_map(|(nth, (known, path))| is_another(known, path?).then_some(nth)).collect()
    }
}

/// One that is gone stays the one that was known.
fn is_another(known: &mut Option<Identity>, path: &Path) -> bool {
    let Some(found) = identity(path) else { return false };
    known.replace(found) != Some(found)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use mete_sched::domains::Selector;

    use super::*;

    #[test]
    fn vtrr_7_a_group_that_was_made_again_is_found_once() {
        let directory = tempfile::tempdir().unwrap();
        let domain = |name: &str| {
            let path = directory.path().join(name);
            fs::create_dir(&path).unwrap();
            let mut domain = SharedDomain::parse("a=pid:1".as_ref()).unwrap();
            domain.spec.selectors = vec![Selector::Cgroup(path)];
            domain
        };
        let domains = ["first", "second"].map(domain);
        let mut groups = Groups::of(&domains);
        let mut remade = || -> Vec<usize> {
            groups.looked -= BETWEEN_LOOKS;
            groups.remade(&domains)
        };
        assert!(remade().is_empty());
        let second = directory.path().join("second");
        fs::remove_dir(&second).unwrap();
        assert!(remade().is_empty());
        // Its number must not be that of the former one; control groups never get one again.
        fs::create_dir(directory.path().join("between")).unwrap();
        fs::create_dir(&second).unwrap();
        assert_eq!(remade(), [1]);
        assert!(remade().is_empty());
    }
}
