//! What some threads did on one processor, as if nothing else had run there.
//!
//! What else ran between two of them, as the thread that decides for a policy does, becomes part of the work of the
//! one that was interrupted. Nothing is said of who woke them: a recording names the thread that an interrupt came to.

use super::text::{Event, Pid};

/// The events of these threads on this processor.
pub fn events_of(events: impl IntoIterator<Item = Event>, processor: u32, members: &[Pid]) -> Vec<Event> {
    let mut stage = Stage { processor, members, interrupted: None, events: Vec::new() };
    events.into_iter().for_each(|event| stage.take(event));
    stage.events
}

struct Stage<'a> {
    processor: u32,
    members: &'a [Pid],
    /// The member that could have gone on when another thread came, until the next member comes.
    interrupted: Option<(Pid, String)>,
    events: Vec<Event>,
}

impl Stage<'_> {
    fn take(&mut self, event: Event) {
        match event {
            Event::Switch { processor, .. } if processor == self.processor => self.switch(event),
            Event::Wake { at_ns, pid, name, priority, new, at_cause, .. } if self.is_member(pid) => {
                self.events.push(Event::Wake {
                    at_ns,
                    seen: None,
                    waker: None,
                    pid,
                    name,
                    priority,
                    new,
                    at_cause,
                });
            }
            Event::Lost => self.events.push(event),
            Event::Switch { .. } | Event::Wake { .. } => {}
        }
    }

    fn is_member(&self, pid: Pid) -> bool {
        self.members.contains(&pid)
    }

    fn switch(&mut self, event: Event) {
        let Event::Switch { previous, previous_name, runnable, next, .. } = &event else { return };
        let (previous, runnable, next) = (*previous, *runnable, *next);
        let leaves = self.is_member(previous);
        match (leaves, self.is_member(next)) {
            (true, true) => self.events.push(event),
            (true, false) if runnable => self.interrupted = Some((previous, previous_name.clone())),
            (true, false) => self.events.push(to_idle(event)),
            (false, true) => self.come(event, next),
            (false, false) => {}
        }
    }

    /// A member comes, after threads that are none.
    fn come(&mut self, event: Event, next: Pid) {
        match self.interrupted.take() {
            Some((interrupted, _)) if interrupted == next => {}
            Some((interrupted, name)) => self.events.push(after(event, interrupted, name)),
            None => self.events.push(after(event, 0, String::new())),
        }
    }
}

/// The same switch, from another thread, which could have gone on.
fn after(event: Event, thread: Pid, name: String) -> Event {
    match event {
        Event::Switch { at_ns, processor, next, next_name, next_priority, .. } => Event::Switch {
            at_ns,
            processor,
            previous: thread,
            previous_name: name,
            runnable: true,
            ended: false,
            next,
            next_name,
            next_priority,
        },
        other => other,
    }
}

/// The same switch, to the idle task.
fn to_idle(event: Event) -> Event {
    match event {
        Event::Switch { at_ns, processor, previous, previous_name, runnable, ended, .. } => Event::Switch {
            at_ns,
            processor,
            previous,
            previous_name,
            runnable,
            ended,
            next: 0,
            next_name: String::new(),
            next_priority: None,
        },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use mete_policy::Nanoseconds;

    use super::*;
    use crate::replay::{Action, Recording};

    fn switch(at_ns: u64, previous: Pid, runnable: bool, next: Pid) -> Event {
        Event::Switch {
            at_ns: Nanoseconds::new(at_ns),
            processor: 1,
            previous,
            previous_name: previous.to_string(),
            runnable,
            ended: false,
            next,
            next_name: next.to_string(),
            next_priority: None,
        }
    }

    fn wake(at_ns: u64, pid: Pid) -> Event {
        Event::Wake {
            at_ns: Nanoseconds::new(at_ns),
            seen: None,
            waker: Some(9),
            pid,
            name: pid.to_string(),
            priority: None,
            new: false,
            at_cause: true,
        }
    }

    /// 9 is the thread that decides, which comes between the members 1 and 2, and once back to the same.
    #[test]
    fn new_1_what_others_use_between_two_members_is_the_first_ones() {
        let events = [
            switch(0, 0, true, 1),
            switch(100, 1, true, 9),
            switch(110, 9, false, 1),
            wake(150, 2),
            switch(160, 1, true, 9),
            switch(180, 9, false, 2),
            switch(200, 2, false, 9),
            switch(230, 9, false, 1),
            switch(300, 1, true, 0),
        ];
        let recording = Recording::from_events(&events_of(events, 1, &[1, 2]));
        assert_eq!((recording.gaps, recording.scripts.len()), (0, 2));
        let work: Vec<_> = recording.scripts.iter().map(|script| script.service_ns().get()).collect();
        // To the last event that is about one of them.
        assert_eq!(work, [180, 20]);
        assert_eq!(recording.scripts[1].waits_ns, [Nanoseconds::new(30)]);
        let wakes = recording.scripts[0].steps.iter().filter(|step| matches!(step.action, Action::Wake(_)));
        assert_eq!(wakes.count(), 0, "an interrupt has woken it, and not what ran there");
    }

    #[test]
    fn new_1_other_processors_do_not_count() {
        let elsewhere = |event| match event {
            Event::Switch { at_ns, previous, next, .. } => Event::Switch {
                at_ns,
                processor: 0,
                previous,
                previous_name: String::new(),
                runnable: true,
                ended: false,
                next,
                next_name: String::new(),
                next_priority: None,
            },
            other => other,
        };
        assert_eq!(events_of([elsewhere(switch(0, 1, true, 2))], 1, &[1, 2]), []);
        assert_eq!(events_of([Event::Lost], 1, &[]), [Event::Lost]);
    }
}
