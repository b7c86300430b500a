//! The means by name.

/// A means by which shares are enforced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// For control groups, the first of the others that this kernel has and that can run the policy; for
    /// other domains, the dispatcher, or pauses where that cannot be had.
    #[default]
    Auto,
    /// By sched_ext: group VTRR inside the kernel, other policies outside it.
    SchedExt,
    /// Weights of control groups.
    Cgroup,
    /// The policy outside the kernel, by scheduling classes of threads.
    Dispatcher,
    /// The policy outside the kernel, by signals that have processes wait.
    Pauses,
}

impl By {
    /// All of them.
    pub const ALL: [By; 5] = [By::Auto, By::SchedExt, By::Cgroup, By::Dispatcher, By::Pauses];

    /// Its name, as the status has it, too.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            By::Auto => "auto",
            By::SchedExt => "sched_ext",
            By::Cgroup => "cgroup",
            By::Dispatcher => "dispatcher",
            By::Pauses => "pauses",
        }
    }

    /// Another name that is taken for it.
    #[must_use]
    pub fn short(self) -> Option<&'static str> {
        (self == By::SchedExt).then_some("ext")
    }

    /// The one of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<By> {
        By::ALL.into_iter().find(|by| by.name() == name || by.short() == Some(name))
    }

    /// Whether it gives shares to control groups only.
    #[must_use]
    pub fn is_for_groups(self) -> bool {
        matches!(self, By::SchedExt | By::Cgroup)
    }
}
