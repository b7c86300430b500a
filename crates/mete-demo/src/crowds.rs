//! The crowds of the second act: their shares, who rules them, and what a stretch of the act found.

use mete_command::lab::DemoOptions;

/// The share and the number of threads of each crowd. The server is in the last one.
pub const CROWDS: [(u32, usize); 3] = [(3, 1), (2, 4), (1, 10)];

/// How many rounds are enough to see it.
const MOST_ROUNDS: u32 = 2;

/// Who rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruler {
    /// The kernel's own scheduler.
    Kernel,
    /// The dispatcher.
    Shares,
}

impl Ruler {
    pub const ALL: [Ruler; 2] = [Ruler::Kernel, Ruler::Shares];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Ruler::Kernel => "the kernel alone",
            Ruler::Shares => "dealt out by shares",
        }
    }
}

/// One stretch of the act, measured.
#[derive(Clone, Debug)]
pub struct ShareStretch {
    pub ruler: Ruler,
    /// The part of all crowds' processor time that each had, in percent.
    pub given_percent: [f64; 3],
    /// The times that half of the answers, and 99 of 100, did not exceed, in microseconds.
    pub latency_us: [f64; 2],
}

/// What came of the act.
pub enum SecondAct {
    Played(Vec<ShareStretch>),
    /// It cannot be played here, and why.
    Impossible(String),
}

impl SecondAct {
    /// Whether all of it was played, or none of it can be.
    pub fn is_over(&self, options: &DemoOptions) -> bool {
        match self {
            SecondAct::Played(stretches) => stretches.len() == rounds(options) as usize * Ruler::ALL.len(),
            SecondAct::Impossible(_) => true,
        }
    }
}

/// The part of the processor that each crowd is to have, in percent.
pub fn wanted_percent() -> [f64; 3] {
    let all: u32 = CROWDS.iter().map(|(share, _)| share).sum();
    CROWDS.map(|(share, _)| 100.0 * f64::from(share) / f64::from(all))
}

/// How many rounds are played.
pub fn rounds(options: &DemoOptions) -> u32 {
    if options.no_kernel { 0 } else { options.rounds.min(MOST_ROUNDS) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vtrr_7_a_crowd_is_to_have_its_share_of_all_shares() {
        assert_eq!(wanted_percent(), [50.0, 100.0 / 3.0, 100.0 / 6.0]);
    }
}
