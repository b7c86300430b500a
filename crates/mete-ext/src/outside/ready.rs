//! Where clients that the policy takes for ready may run.

/// How many there are, by processor.
///
/// A processor on which none may run does not ask the policy: those that it would be given belong to other
/// processors.
#[derive(Debug)]
pub(crate) struct Ready {
    /// The processors that there may be, a bit each.
    all: u64,
    /// Those that may run on every processor.
    everywhere: usize,
    /// The others, on each processor on which they may run.
    on: Vec<u32>,
}

impl Ready {
    /// For this number of processors.
    pub fn of(processors: usize) -> Ready {
        let all = u64::MAX >> (64 - processors.clamp(1, 64));
        Ready { all, everywhere: 0, on: vec![0; processors] }
    }

    fn is_everywhere(&self, allowed: u64) -> bool {
        allowed & self.all == self.all
    }

    pub fn add(&mut self, allowed: u64) {
        if self.is_everywhere(allowed) {
            self.everywhere += 1;
        } else {
            self.places(allowed).for_each(|count| *count += 1);
        }
    }

    /// What was added with these processors.
    pub fn remove(&mut self, allowed: u64) {
        if self.is_everywhere(allowed) {
            self.everywhere = self.everywhere.saturating_sub(1);
        } else {
            self.places(allowed).for_each(|count| *count = count.saturating_sub(1));
        }
    }

    fn places(&mut self, allowed: u64) -> impl Iterator<Item = &mut u32> {
        let places = self.on.iter_mut().enumerate();
        places.filter(move |(processor, _)| allowed >> processor & 1 == 1).map(|(_, count)| count)
    }

    pub fn any_on(&self, processor: usize) -> bool {
        self.everywhere > 0 || self.on.get(processor).is_some_and(|count| *count > 0)
    }
}
