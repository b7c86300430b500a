//! What a scheduler should do.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use mete_kernel::Characteristic;
use mete_policy as policy;
use mete_probe::directory::Users;

use crate::configure::Layout;
use crate::domains::DivideBy;

/// What a scheduler should do.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The time between two polls of the logs. The papers use 20 ms.
    pub poll: Duration,
    /// The number of polls in a period. The policy is asked at the end of each period: with 5 polls, every
    /// 100 ms.
    pub polls_in_period: u32,
    /// The time between two looks at processes and components: one second, or less to find components that
    /// live only briefly.
    pub housekeeping: Duration,
    /// How the logs are laid out.
    pub layout: Layout,
    /// What the kernel should log. If it is empty, the kernel component is not used.
    pub kernel: Vec<Characteristic>,
    /// Whether it is an error if the kernel component cannot be loaded. If false, the scheduler goes on with
    /// the logs of components alone.
    pub needs_kernel: bool,
    /// Whether the scheduler looks for user-level components.
    pub components: bool,
    /// The only directory in which it looks for them; `None` for every directory that this user may look
    /// into.
    pub component_directory: Option<PathBuf>,
    /// The users whose components the scheduler looks for. It always looks for this user's components and for
    /// those of users who have a process in a domain or are selected for a domain.
    pub component_users: Users,
    /// Whether all domains may be empty at first, without a notice. If not, at least one domain must have a
    /// member, and each domain that is empty causes a [`Notice::Empty`](crate::Notice::Empty).
    pub may_be_empty: bool,
    /// The property by which processes that no selector selects are divided into domains; `None` for no
    /// division.
    pub divide: Option<DivideBy>,
    /// The constants of the affinity policy; `None` to observe only and move nothing.
    pub policy: Option<policy::affinity::Settings>,
    /// Whether what the policy decides is carried out. Else each decision is a
    /// [`Notice::WouldMove`](crate::Notice::WouldMove).
    pub acts: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        let run_queue = Characteristic::RunQueue { hertz: 100 };
        Settings {
            poll: Duration::from_millis(20),
            polls_in_period: 5,
            housekeeping: Duration::from_secs(1),
            layout: Layout::PerEvent,
            kernel: vec![Characteristic::ServiceTime, Characteristic::Ipc, run_queue],
            needs_kernel: false,
            components: true,
            component_directory: None,
            component_users: Users::These(BTreeSet::new()),
            may_be_empty: false,
            divide: None,
            policy: None,
            acts: true,
        }
    }
}
