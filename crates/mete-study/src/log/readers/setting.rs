//! What is compared, and under which load.

/// The readers that are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scheme {
    /// Our reader: one pass, and losses are counted.
    Ours,
    /// The papers' reader, which clears the flags after a failure (figure 5.4).
    RestartClearing,
    /// The papers' reader, which only tries again (figure 5.5).
    Restart,
}

impl Scheme {
    pub(super) const ALL: [Scheme; 3] = [Scheme::Ours, Scheme::RestartClearing, Scheme::Restart];

    pub(super) fn name(self) -> &'static str {
        match self {
            Scheme::Ours => "one pass",
            Scheme::RestartClearing => "restart, clearing flags",
            Scheme::Restart => "restart",
        }
    }
}

/// The writers under which readers are measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Load {
    /// No writer, as on the reader's own processor in the thesis, whose kernel is not preempted.
    NoWriter,
    /// A writer of one row in each message of the thesis.
    ThesisPace,
    /// A writer that is as fast as the probe allows.
    FullSpeed,
}

impl Load {
    pub(super) const ALL: [Load; 3] = [Load::NoWriter, Load::ThesisPace, Load::FullSpeed];

    pub(super) fn name(self) -> &'static str {
        match self {
            Load::NoWriter => "no writer",
            Load::ThesisPace => "writer at the thesis' pace",
            Load::FullSpeed => "writer at full speed",
        }
    }
}

/// The sizes of log files, in bytes.
pub(super) fn sizes() -> impl ExactSizeIterator<Item = u64> {
    (5u32..21).map(|log2| 1 << log2)
}
