//! How much of a processor a cgroup is to have beside others.

/// A share, in the unit of `cpu.weight`: 100 is what a cgroup has that nothing was said about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u32);

impl Share {
    /// What the kernel takes as the greatest weight, too.
    pub const MOST: u32 = 10_000;

    /// A share from 1 to [`Share::MOST`]; `None` for any other number.
    #[must_use]
    pub const fn new(weight: u32) -> Option<Share> {
        if weight >= 1 && weight <= Share::MOST { Some(Share(weight)) } else { None }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}
