//! What a scheduler costs that polls every 20 ms and finds hardly any events.

use std::hint::black_box;
use std::time::Duration;

use mete_base::processors::thread_time_ns;
use mete_kernel::{Characteristic, Kernel, Principal, event};
use mete_log::{Cursor, DomainId, Entries, FileSpec, Plan, Shape, Stamp};
use mete_measure::Bar;
use mete_measure::reason::Reason;
use mete_measure::report::Row;

use crate::context::{Context, Turn};

/// The thesis' interval (§5.3.1: "the scheduler wakeup interval").
const INTERVAL: Duration = Duration::from_millis(20);
/// The number of accounting domains.
const DOMAINS: usize = 16;
/// The number of polls in one sample.
const POLLS: u32 = 10;

pub(crate) fn rows(context: &mut Context<'_>) -> Vec<Row> {
    let (turn, what) = match &context.options.scheduler {
        Some(make) => (make(), "the scheduler's whole turn"),
        None => (bare_turn(), "reading alone, without analysis and policy"),
    };
    let samples = turn.and_then(|mut turn| measure(context, &mut turn));
    let (sleeping, polling) = match samples {
        Ok(Samples { sleeping, polling }) => (Ok(sleeping), Ok(polling)),
        Err(reason) => (Err(reason.clone()), Err(reason)),
    };
    let note = format!("{what}; its own processor time; the kernel's handlers run at others' expense");
    vec![
        Row::new("polling: sleeping 20 ms at a time, and no more", "percent", sleeping)
            .note("the floor: what waking up costs, in turns with the row below"),
        Row::new("polling: every 20 ms, 16 domains, idle system", "percent", polling)
            .bar(Bar::Below(0.3))
            .note(note),
    ]
}

/// Percent of a processor, sample by sample.
#[derive(Default)]
struct Samples {
    sleeping: Vec<f64>,
    polling: Vec<f64>,
}

/// What this thread uses while it only sleeps, and what it uses while it takes its turns; samples alternate.
fn measure(context: &mut Context<'_>, turn: &mut Turn) -> Result<Samples, Reason> {
    let rounds = if context.options.is_quick { 6 } else { 20 };
    context.progress.begin("polling", rounds);
    let mut samples = Samples::default();
    for _ in 0..rounds {
        if context.is_cancelled() {
            break;
        }
        // In turns, so that other load of the machine meets both alike.
        samples.sleeping.push(share_used(&mut || Ok(()))?);
        samples.polling.push(share_used(turn)?);
        context.progress.step();
    }
    Ok(samples)
}

/// Percent of a processor that the polls of a sample use.
fn share_used(turn: &mut dyn FnMut() -> Result<(), Reason>) -> Result<f64, Reason> {
    let before = thread_time_ns();
    for _ in 0..POLLS {
        std::thread::sleep(INTERVAL);
        turn()?;
    }
    let used_ns = thread_time_ns() - before;
    Ok(100.0 * used_ns as f64 / (INTERVAL * POLLS).as_nanos() as f64)
}

/// A scheduler that only reads the kernel's logs. There is a log file for each domain and characteristic on
/// each processor.
fn bare_turn() -> Result<Turn, Reason> {
    let mut kernel = Kernel::load()?;
    let mut plan = Plan::new(Shape::KERNEL);
    for domain in DomainId::all_below(DOMAINS) {
        for event in [event::SERVICE_TIME, event::IPC_SEND, event::IPC_RECEIVE] {
            let file =
                plan.file(FileSpec { entries: Entries::ALL, stamp: Stamp::RunQueue, add: false, rows: 512 })?;
            plan.route(event, domain, file)?;
        }
    }
    kernel.areas().for_each(|area| plan.apply(area));
    kernel.enable(&Characteristic::ServiceTime)?;
    kernel.enable(&Characteristic::Ipc)?;
    kernel.bind(&Principal::Idle, DomainId::from_index(DOMAINS - 1))?;
    let mut cursors: Vec<_> = kernel
        .areas()
        .map(|area| -> Vec<Cursor> {
            plan.files().skip(1).map(|(file, control)| Cursor::new(area, file, control)).collect()
        })
        .collect();
    Ok(Box::new(move || {
        for (area, cursors) in kernel.areas().zip(&mut cursors) {
            for cursor in cursors {
                // Rows that were lost do not matter here.
                let _ = cursor.poll_rows(area, |rows| {
                    rows.iter().for_each(|row| {
                        black_box(row);
                    });
                })?;
            }
        }
        Ok(())
    }))
}
