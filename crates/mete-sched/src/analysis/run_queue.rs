//! Processor load: the mean length of each run queue, with a history (thesis §4.5.3).

use mete_policy::Permille;

/// The number of polls that are remembered: five seconds at 20 ms.
pub const HISTORY: usize = 256;

/// The run queue of one processor. `sum` and `samples` are those of the poll that has not ended.
#[derive(Clone, Debug)]
struct Queue {
    history: [Permille; HISTORY],
    polls: usize,
    sum: u64,
    samples: u64,
}

/// All run queues. Lengths are in thousandths of a task; the running task counts.
#[derive(Clone, Debug)]
pub struct RunQueues {
    queues: Vec<Queue>,
}

impl RunQueues {
    pub(super) fn new(processors: usize) -> RunQueues {
        let queue = Queue { history: [Permille::ZERO; HISTORY], polls: 0, sum: 0, samples: 0 };
        RunQueues { queues: vec![queue; processors] }
    }

    /// The mean over the last `polls` polls that had samples; `None` if there was none.
    pub fn mean(&self, processor: usize, polls: usize) -> Option<Permille> {
        let (mut sum, mut count) = (0u64, 0u64);
        for length in self.history(processor).take(polls) {
            sum += u64::from(length.get());
            count += 1;
        }
        (count > 0).then(|| Permille::new((sum / count) as u32))
    }

    /// The means of past polls, newest first.
    pub fn history(&self, processor: usize) -> impl Iterator<Item = Permille> {
        self.queues.get(processor).into_iter().flat_map(|queue| {
            let kept = queue.polls.min(HISTORY);
            (1..=kept).map(|back| queue.history[(queue.polls - back) % HISTORY])
        })
    }

    pub(super) fn sample(&mut self, processor: usize, tasks: u64) {
        if let Some(queue) = self.queues.get_mut(processor) {
            // More than a million tasks cannot be a length, but must be garbage. The limit also keeps the sum
            // from overflowing.
            queue.sum += tasks.min(1_000_000);
            queue.samples += 1;
        }
    }

    pub(super) fn end_poll(&mut self) {
        for queue in self.queues.iter_mut().filter(|queue| queue.samples > 0) {
            // A ring: the newest mean overwrites the oldest.
            queue.history[queue.polls % HISTORY] = Permille::of(queue.sum, queue.samples);
            queue.polls += 1;
            (queue.sum, queue.samples) = (0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_16_load_is_the_mean_of_the_sampled_lengths_with_its_history() {
        let mut queues = RunQueues::new(2);
        assert_eq!(queues.mean(0, 5), None);
        for lengths in [[1, 2], [3, 4]] {
            lengths.iter().for_each(|&tasks| queues.sample(0, tasks));
            queues.end_poll();
        }
        queues.end_poll();
        assert_eq!(
            queues.history(0).map(Permille::get).collect::<Vec<_>>(),
            [3500, 1500],
            "a poll without samples adds nothing"
        );
        let mean = |processor, polls| queues.mean(processor, polls).map(Permille::get);
        assert_eq!((mean(0, 5), mean(0, 1), mean(1, 1)), (Some(2500), Some(3500), None));
    }

    #[test]
    fn log_16_the_history_keeps_the_newest_polls() {
        let mut queues = RunQueues::new(1);
        for tasks in 0..HISTORY as u64 + 10 {
            queues.sample(0, tasks);
            queues.end_poll();
        }
        let history: Vec<_> = queues.history(0).map(Permille::get).collect();
        assert_eq!((history.len(), history[0], history[HISTORY - 1]), (HISTORY, 265_000, 10_000));
    }
}
