//! Accounting domains by name, and the processes that belong to them (LOG-6, thesis §3.5).
//!
//! Domain 0, "other", has every process that was bound to no domain. Domain 1, "idle", is the idle time of
//! the processors. The user's domains follow. A process belongs to the first domain with a selector that
//! selects it. If there is none, it belongs to the domain that its parent had when the process was first
//! seen: the kernel lets children inherit in the same way.

pub mod dealt;
mod divide;
mod emptied;
mod empty;
mod error;
pub mod groups;
mod hint;
pub mod ours;
pub mod process;
mod scan;
pub mod selector;
pub mod shared;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use mete_kernel::{ProcessKind, Rule};
use mete_log::DomainId;
use mete_policy::{DomainIndex, Role};

pub use divide::DivideBy;
pub use emptied::Emptied;
pub use error::{DomainError, EmptyDomain};
pub use groups::{controller_mount, group_under, in_controller};
pub(crate) use groups::{is_cgroup, is_root};
use scan::KnownProcess;
pub use scan::{Change, LateBindings};
pub use selector::{DomainSpec, Pattern, Selector};
pub use shared::{ShareError, SharedDomain};

/// The domain of every process that was bound to no other domain.
pub const OTHER: DomainId = DomainId::new(0);
/// The domain of the processors' idle time.
pub const IDLE: DomainId = DomainId::new(1);
/// The names of the built-in domains, in the order of their numbers.
const BUILT_IN: [&str; 2] = ["other", "idle"];
/// The first domain that a user can name.
pub const FIRST: DomainId = DomainId::new(2);
/// The largest number of domains, including the two built-in ones: each can have a log file, beside the null
/// file.
pub const MAX_DOMAINS: usize = 255;

/// A domain that is there without being named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BuiltIn {
    /// [`OTHER`].
    Other,
    /// [`IDLE`].
    Idle,
}

impl BuiltIn {
    /// The built-in domain with this number; `None` for a domain that a user named.
    pub fn of(domain: DomainId) -> Option<BuiltIn> {
        match domain {
            OTHER => Some(BuiltIn::Other),
            IDLE => Some(BuiltIn::Idle),
            _ => None,
        }
    }
}

/// The domain that a placement policy means by a number of its own.
pub const fn of_policy(number: DomainIndex) -> DomainId {
    DomainId::new(number.get())
}

/// The number by which a placement policy knows a domain.
pub const fn for_policy(domain: DomainId) -> DomainIndex {
    DomainIndex::new(domain.get())
}

/// The user's domains in a table of this number of domains, in order.
pub(crate) fn user_domains(domains: usize) -> impl Iterator<Item = DomainId> + Clone {
    DomainId::all_below(domains).skip(FIRST.index())
}

/// A name that other users chose, where each letter that a domain's name cannot have is replaced.
pub fn plain_name(name: &OsStr) -> String {
    let name: String = name
        .to_string_lossy()
        .chars()
        .map(|letter| if selector::is_plain(letter) { letter } else { '_' })
        .collect();
    if BUILT_IN.contains(&name.as_str()) { format!("{name}_") } else { name }
}

/// One domain.
#[derive(Clone, Debug)]
struct Domain {
    name: String,
    role: Option<Role>,
    selectors: Vec<Selector>,
}

/// All domains and their processes. See the [module](self).
#[derive(Clone, Debug)]
pub struct Domains {
    domains: Vec<Domain>,
    known: BTreeMap<u32, KnownProcess>,
    /// The number that was given to a process most recently, as of the last scan.
    newest: Option<u32>,
    scans: u32,
    /// Whether a process must be looked at again, even if nothing has begun.
    has_young: bool,
    changes: Vec<Change>,
    /// The control groups that are bound as such.
    groups: BTreeMap<PathBuf, DomainId>,
    /// Those of them that the last scan found.
    new_groups: Vec<(PathBuf, DomainId)>,
    /// Whether the kernel component is expected to bind processes.
    expects_kernel_bindings: bool,
    late: LateBindings,
    divide: Option<DivideBy>,
    /// The domains that were given out, by the kind of their processes.
    kinds: BTreeMap<ProcessKind, DomainId>,
    /// Whether the kernel component gives domains out.
    is_handed_over: bool,
}

impl Domains {
    /// The two built-in domains and these, all without members so far.
    ///
    /// # Errors
    ///
    /// [`DomainError`] if a name is given twice or is taken, or if there are too many domains.
    pub fn new(specs: impl IntoIterator<Item = DomainSpec>) -> Result<Domains, DomainError> {
        let built_in =
            BUILT_IN.map(|name| Domain { name: name.into(), role: Some(Role::Bystander), selectors: vec![] });
        let mut domains = Vec::from(built_in);
        for DomainSpec { name, role, selectors } in specs {
            match domains.iter().position(|domain| domain.name == name) {
                Some(0 | 1) => return Err(DomainError::Reserved(name)),
                Some(_) => return Err(DomainError::Twice(name)),
                None => domains.push(Domain { name, role, selectors }),
            }
        }
        if domains.len() > MAX_DOMAINS {
            return Err(DomainError::TooMany(domains.len() - FIRST.index()));
        }
        let mut domains = Domains {
            domains,
            known: BTreeMap::new(),
            newest: None,
            scans: 0,
            has_young: true,
            changes: Vec::new(),
            groups: BTreeMap::new(),
            new_groups: Vec::new(),
            expects_kernel_bindings: false,
            late: LateBindings::default(),
            divide: None,
            kinds: BTreeMap::new(),
            is_handed_over: false,
        };
        domains.look_for_groups();
        // Not new: a source that is added later gets all groups.
        domains.new_groups.clear();
        Ok(domains)
    }

    /// The rules by which the kernel component should bind processes by itself, in order of precedence.
    pub fn rules(&self) -> Vec<Rule> {
        let mut rules = Vec::new();
        for (domain, Domain { selectors, .. }) in self.numbered() {
            rules.extend(selectors.iter().filter_map(Selector::rule).map(|selects| Rule { selects, domain }));
        }
        rules
    }

    /// The number of domains, including "other" and "idle".
    #[expect(clippy::len_without_is_empty, reason = "there are always two")]
    pub fn len(&self) -> usize {
        self.domains.len()
    }

    /// The name of a domain.
    pub fn name(&self, domain: DomainId) -> &str {
        self.domains.get(domain.index()).map_or("?", |domain| domain.name.as_str())
    }

    /// The numbers of all domains, in order.
    pub fn numbers(&self) -> impl DoubleEndedIterator<Item = DomainId> + ExactSizeIterator + Clone + use<> {
        DomainId::all_below(self.domains.len())
    }

    fn numbered(&self) -> impl Iterator<Item = (DomainId, &Domain)> {
        self.numbers().zip(&self.domains)
    }

    /// All names, by number.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.domains.iter().map(|domain| domain.name.as_str())
    }

    /// The domain with this name.
    pub fn by_name(&self, name: &str) -> Option<DomainId> {
        self.domains.iter().position(|domain| domain.name == name).map(DomainId::from_index)
    }

    /// The role that the user gave to a domain.
    pub fn role(&self, domain: DomainId) -> Option<Role> {
        self.domains.get(domain.index())?.role
    }

    /// The domains into which any user can bring a process: by giving the process a name, or by running a
    /// program.
    pub fn joinable_by_any_user(&self) -> Vec<DomainId> {
        let is_name = |selector: &Selector| matches!(selector, Selector::Comm(_) | Selector::Program(_));
        let open = self.numbered().filter(|(_, domain)| domain.selectors.iter().any(is_name));
        open.map(|(number, _)| number).collect()
    }

    /// The control groups that are bound as such, with their domains.
    pub fn cgroups(&self) -> impl Iterator<Item = (&Path, DomainId)> {
        self.groups.iter().map(|(path, domain)| (path.as_path(), *domain))
    }

    /// The control groups that the last scan found and bound as such, with their domains.
    pub fn new_cgroups(&self) -> impl Iterator<Item = (&Path, DomainId)> {
        self.new_groups.iter().map(|(path, domain)| (path.as_path(), *domain))
    }

    /// Looks which of the selected control groups there are. A group that two domains name belongs to the
    /// first of them.
    fn look_for_groups(&mut self) {
        self.new_groups.clear();
        self.groups.retain(|path, _| groups::is_cgroup(path));
        let numbered = DomainId::all_below(self.domains.len()).zip(&self.domains);
        for (number, domain) in numbered {
            let paths = domain.selectors.iter().flat_map(|selector| match selector {
                Selector::Cgroup(path) => vec![path.clone()],
                Selector::Cgroups(groups) => groups.directories(),
                _ => Vec::new(),
            });
            for path in paths {
                if let std::collections::btree_map::Entry::Vacant(new) = self.groups.entry(path) {
                    self.new_groups.push((new.key().clone(), number));
                    new.insert(number);
                }
            }
        }
        if self.divide == Some(DivideBy::Cgroup) {
            self.divide_groups();
        }
    }

    fn has_groups(&self) -> bool {
        if self.divide == Some(DivideBy::Cgroup) {
            return true;
        }
        let mut selectors = self.domains.iter().flat_map(|domain| &domain.selectors);
        selectors.any(|selector| matches!(selector, Selector::Cgroup(_) | Selector::Cgroups(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn specs(texts: &[&str]) -> Vec<DomainSpec> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn log_6_a_name_twice_or_taken_is_refused() {
        let twice = Domains::new(specs(&["a=pid:1", "a=pid:2"])).unwrap_err();
        assert_eq!(twice, DomainError::Twice("a".into()));
        let taken = Domains::new(specs(&["idle=pid:1"])).unwrap_err();
        assert_eq!(taken, DomainError::Reserved("idle".into()));
    }

    #[test]
    fn log_6_more_domains_than_fit_are_refused() {
        let spec = |number: usize| format!("d{number}=pid:1").parse().unwrap();
        assert!(Domains::new((0..253).map(spec)).is_ok());
        assert_eq!(Domains::new((0..254).map(spec)).unwrap_err(), DomainError::TooMany(254));
    }
}
