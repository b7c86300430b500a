//! The trace of a simulated run as a recorded schedule.
//!
//! The rows do not say whether a client left its processor because it had nothing to do. It did if it wakes
//! before it runs again. The waker is a client that notifies it ([`event::IPC_SEND`]) at the instant of the
//! wake-up. Other wake-ups count as events from outside, such as a timer's.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use mete_log::Row;
use mete_policy::Nanoseconds;

use super::text::{Event, Pid};
use crate::trace::{IDLE, Trace, event};

/// What happens on one processor, in order.
#[derive(Clone, Copy)]
enum LaneStep {
    Enter(Pid),
    Leave(Pid),
    Wake(Pid),
    Notify { from: Pid, to: Pid },
}

type Lane = VecDeque<(Nanoseconds, LaneStep)>;

/// The events of a trace in the order of time.
pub(super) fn events(trace: &Trace<'_>) -> Vec<Event> {
    // The processors are those in the rows: the header of a damaged file may claim any number of them.
    let mut lanes: BTreeMap<usize, Lane> = BTreeMap::new();
    for (processor, row) in trace.rows() {
        lanes.entry(processor).or_default().extend(steps(&row).into_iter().flatten());
    }
    let mut lanes: Vec<Lane> = lanes.into_values().collect();
    for lane in &mut lanes {
        // A turn has one row, at its end; its beginning belongs before what happened in between.
        lane.make_contiguous().sort_by_key(|&(at_ns, _)| at_ns);
    }
    Merge { trace, lanes, running: HashSet::new(), notified: HashMap::new() }.events()
}

fn steps(row: &Row) -> [Option<(Nanoseconds, LaneStep)>; 2] {
    let (Some(of), Some(domain), Some(at_ns)) = (row.event, row.domain, row.stamp) else { return [None; 2] };
    let (who, at_ns) = (Pid::from(domain.get()), Nanoseconds::new(at_ns));
    let ran_ns = Nanoseconds::new(row.counter.unwrap_or(0));
    match of {
        event::SERVICE_TIME if domain != IDLE => {
            [Some((at_ns.saturating_sub(ran_ns), LaneStep::Enter(who))), Some((at_ns, LaneStep::Leave(who)))]
        }
        event::WAKE => [Some((at_ns, LaneStep::Wake(who))), None],
        event::IPC_SEND => {
            let to = Pid::from(row.correspondent.unwrap_or_default().get());
            [Some((at_ns, LaneStep::Notify { from: who, to })), None]
        }
        _ => [None; 2],
    }
}

/// Merges the processors' steps by their stamps.
struct Merge<'a, 't> {
    trace: &'a Trace<'t>,
    lanes: Vec<Lane>,
    running: HashSet<Pid>,
    /// The client that last notified each client, and when.
    notified: HashMap<Pid, (Pid, Nanoseconds)>,
}

impl Merge<'_, '_> {
    fn events(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(lane) = self.next_lane() {
            if let Some((at_ns, step)) = self.lanes[lane].pop_front() {
                events.extend(self.take(lane as u32, at_ns, step));
            }
        }
        say_who_blocks(&mut events);
        events
    }

    /// The lane whose step comes next. Of the steps of one instant, the first possible one is taken: no
    /// client runs twice at once, and no running client wakes.
    fn next_lane(&self) -> Option<usize> {
        let heads = || self.lanes.iter().enumerate().filter_map(|(lane, steps)| Some((lane, steps.front()?)));
        let now_ns = heads().map(|(_, (at_ns, _))| *at_ns).min()?;
        let mut at_once = heads().filter(|(_, (at_ns, _))| *at_ns == now_ns);
        let (first, _) = at_once.clone().next()?;
        Some(at_once.find(|(_, (_, step))| self.is_possible(step)).map_or(first, |(lane, _)| lane))
    }

    fn is_possible(&self, step: &LaneStep) -> bool {
        match step {
            LaneStep::Enter(who) | LaneStep::Wake(who) => !self.running.contains(who),
            LaneStep::Leave(_) | LaneStep::Notify { .. } => true,
        }
    }

    fn take(&mut self, processor: u32, at_ns: Nanoseconds, step: LaneStep) -> Option<Event> {
        match step {
            LaneStep::Enter(who) => {
                self.running.insert(who);
                Some(self.switch(processor, at_ns, 0, who))
            }
            LaneStep::Leave(who) => {
                self.running.remove(&who);
                Some(self.switch(processor, at_ns, who, 0))
            }
            LaneStep::Notify { from, to } => {
                self.notified.insert(to, (from, at_ns));
                None
            }
            LaneStep::Wake(pid) => {
                // An older notification is not the cause of this wake-up.
                let notified = self.notified.remove(&pid).filter(|&(_, then_ns)| then_ns == at_ns);
                let waker = notified.map(|(from, _)| from);
                let seen = None;
                Some(Event::Wake {
                    at_ns,
                    seen,
                    waker,
                    pid,
                    name: self.name(pid),
                    priority: None,
                    new: false,
                    at_cause: true,
                })
            }
        }
    }

    fn switch(&self, processor: u32, at_ns: Nanoseconds, previous: Pid, next: Pid) -> Event {
        let (previous_name, next_name) = (self.name(previous), self.name(next));
        Event::Switch {
            at_ns,
            processor,
            previous,
            previous_name,
            runnable: true,
            ended: false,
            next,
            next_name,
            next_priority: None,
        }
    }

    fn name(&self, pid: Pid) -> String {
        self.trace.domains.get(pid as usize).cloned().unwrap_or_default()
    }
}

/// Marks as blocked each client that leaves and then wakes before it runs again.
fn say_who_blocks(events: &mut [Event]) {
    // Backwards, because what a client does next decides.
    let mut wakes_next: HashMap<Pid, bool> = HashMap::new();
    for event in events.iter_mut().rev() {
        match event {
            Event::Wake { pid, .. } => drop(wakes_next.insert(*pid, true)),
            Event::Switch { previous, next, runnable, .. } => {
                if *next == 0 {
                    *runnable = !wakes_next.get(previous).copied().unwrap_or(false);
                } else {
                    wakes_next.insert(*next, false);
                }
            }
            Event::Lost => {}
        }
    }
}
