//! The pairs of programs, and the cases of each.

use mete_sim::scenario::Shipped;

use crate::simulated::{Case, scenario};

/// A program beside one that computes, with the names of its cases.
pub(super) struct Pair {
    pub scenario: Shipped,
    pub io: &'static str,
    pub cpu: &'static str,
    pub baseline: &'static str,
    pub tavs: &'static str,
    pub alone: &'static str,
    pub inherits: &'static str,
}

macro_rules! pair {
    ($io:literal, $cpu:literal) => {
        Pair {
            scenario: scenario!("tavs-belief", $io),
            io: $io,
            cpu: $cpu,
            baseline: concat!($io, " + ", $cpu, ", baseline"),
            tavs: concat!($io, " + ", $cpu, ", TAVS"),
            alone: concat!($io, ", baseline"),
            inherits: concat!($io, ", priority inheritance"),
        }
    };
}

pub(super) use pair;

pub(super) const PAIRS: [Pair; 6] = [
    pair!("grep", "cc1"),
    pair!("find", "bzip2"),
    pair!("wget", "bzip2"),
    pair!("smb", "cc1"),
    pair!("acrobat", "mencoder"),
    pair!("svn", "mencoder"),
];

impl Pair {
    /// Beside the program that computes, without TAVS and with it; beside computing domains only, without inheritance
    /// and with it.
    pub(super) fn cases(&self) -> [Case; 4] {
        // The program that computes does only one round, which ends within about a second.
        let alone = format!("guest.mixed.task.{}.times=1", self.cpu);
        let inherits = |on| [alone.clone(), format!("policy.credit.priority_inheritance={on}")];
        [
            self.case(self.baseline, "credit"),
            self.tavs_case(),
            self.case(self.alone, "credit").with(inherits(false)),
            self.case(self.inherits, "credit").with(inherits(true)),
        ]
    }

    /// The case in which TAVS tells the pair's tasks apart.
    pub(super) fn tavs_case(&self) -> Case {
        self.case(self.tavs, "credit-tavs")
    }

    fn case(&self, line: &'static str, policy: &'static str) -> Case {
        Case::new(line, self.scenario, policy, ("mixed", self.io))
    }
}
