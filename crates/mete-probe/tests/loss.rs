//! Every row is accounted for (LOG-9, LOG-10).

mod common;

use std::collections::HashMap;
use std::process::Command;

use common::{LIMIT, Log, SocketDirectory, Subject, poll_all};
use mete_log::{Poll, Stamp};

const THREADS: u64 = 4;
const ROWS: u64 = 400_000;

/// Several threads write numbered rows at full speed into small rings, and a reader looks now and then.
fn account_for_every_row(name: &str, tunables: &str) -> Poll {
    let place = SocketDirectory::new(name);
    let mut command = Command::new(env!("CARGO_BIN_EXE_mete-probe-subject"));
    command.args(["numbers", &THREADS.to_string(), &ROWS.to_string()]).env("GLIBC_TUNABLES", tunables);
    let mut subject = Subject::start_command(&place, command);
    let mut component = subject.connect();
    let log = Log::of(&mut component, 2048, Stamp::Hardware);
    let mut readers = log.readers();
    let number = component.event("number").expect("published").id;
    component.enable(number).expect("enable");

    let done = std::thread::scope(|scope| {
        let done = scope.spawn(|| subject.line());
        let (mut sum, mut last, mut stamps) = (Poll::default(), HashMap::new(), HashMap::new());
        let end = std::time::Instant::now() + LIMIT;
        loop {
            let is_last = done.is_finished();
            sum += poll_all(&mut readers, |processor, row| {
                let number = row.counter.expect("selected");
                let thread = row.correspondent.expect("selected");
                let before: Option<u64> = last.insert((processor, thread), number);
                assert!(
                    before.is_none_or(|before| before < number),
                    "thread {thread}: {number} after {before:?}"
                );
                let stamp = row.stamp.expect("selected");
                let before = stamps.insert(processor, stamp);
                assert!(before.is_none_or(|before| before <= stamp), "stamps of a file never go back");
            });
            if is_last {
                break;
            }
            assert!(std::time::Instant::now() < end, "the subject does not come to its end");
            std::thread::sleep(std::time::Duration::from_millis(3));
        }
        assert_eq!(done.join().expect("the subject's answer"), "done");
        sum
    });
    subject.finish();
    done
}

#[test]
fn log_10_rows_seen_overwritten_and_refused_are_all_rows_written() {
    let poll = account_for_every_row("numbers", "");
    assert_eq!(poll.rows + poll.overwritten + poll.refused, THREADS * ROWS);
    assert!(poll.rows > 0 && poll.overwritten > 0, "{poll:?}: the reader was meant to be slow, not blind");
}

#[test]
fn log_10_the_locked_fallback_loses_no_row_uncounted_either() {
    let poll = account_for_every_row("locked", "glibc.pthread.rseq=0");
    assert_eq!(poll.rows + poll.overwritten + poll.refused, THREADS * ROWS);
    assert!(poll.rows > 0 && poll.overwritten > 0, "{poll:?}: the reader was meant to be slow, not blind");
}
