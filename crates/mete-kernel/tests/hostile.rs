//! LOG-11: garbled control data never harm the kernel. The verifier proves that handlers access nothing
//! outside their maps. These tests show that inside them, handlers write only the log's own data, and that
//! logging goes on once the control data are good again.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mete_kernel::{Characteristic, Kernel, Principal, event};
use mete_log::layout::{PAGE, SLACK_BYTES};
use mete_log::{Area, DomainId, FileId, Shape};
use support::{Child, Gate, apply, between, follow, kernel, pin, plan, run, touch};

const SHAPE: Shape = Shape::KERNEL;
const A: DomainId = DomainId::new(1);
const B: DomainId = DomainId::new(2);
/// The number of words of a row, which may begin at the last word of the data.
const ROW_WORDS: usize = 4;

/// A small generator (xorshift). A failure can be repeated from the seed that is printed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn word<'a>(area: Area<'a>, offset: usize) -> &'a AtomicU64 {
    assert!(offset + 8 <= SHAPE.area_bytes());
    // SAFETY: inside the area, which lives for 'a and is accessed by atomics only.
    unsafe { area.base().byte_add(offset).cast().as_ref() }
}

/// Every word that the kernel must not write: the header, except the magic, the shape and the virtual clock,
/// and the slack that no row can reach.
fn forbidden() -> Vec<usize> {
    let virtual_clock = mete_log::layout::HEADER_VIRTUAL_CLOCK;
    let header = (16..PAGE).step_by(8).filter(|&offset| offset != virtual_clock);
    let behind = SHAPE.data_offset() + SHAPE.data_bytes() + 8 * (ROW_WORDS - 1);
    assert!(behind <= SHAPE.data_offset() + SHAPE.data_bytes() + SLACK_BYTES);
    header.chain((behind..SHAPE.area_bytes()).step_by(8)).collect()
}

fn guard(offset: usize) -> u64 {
    0x5afe_5afe_0000_0000 | offset as u64
}

/// Writes random words over everything that controls the log.
fn scribble(area: Area<'_>, random: &mut Random) {
    let registers = SHAPE.files() * 8;
    let table = SHAPE.domains() * SHAPE.events() * 2;
    let place = random.next() as usize % (registers + table);
    let bits = random.next();
    // Half of the words enable a file, so that rows are really written.
    word(area, PAGE + 8 * place).store(if bits & 1 == 0 { bits | 1 << 8 } else { bits }, Ordering::Relaxed);
    area.virtual_clock().store(bits, Ordering::Relaxed);
}

/// Causes wake-ups, switches, faults and exits without an end.
fn busy(gate: &mut Gate) {
    gate.tell(0);
    loop {
        // SAFETY: forks a child that ends at once, and reaps it.
        unsafe {
            let pid = libc::fork();
            if pid == 0 {
                support::exit(0);
            }
            libc::waitpid(pid, std::ptr::null_mut(), 0);
        }
        // SAFETY: it was mapped just before, and nothing else uses it.
        unsafe { libc::munmap(touch(64 << 10).cast(), 64 << 10) };
    }
}

fn enable_all(kernel: &mut Kernel) {
    kernel.enable(&Characteristic::ServiceTime).unwrap();
    for counter in ["page-faults", "cpu-clock", "context-switches"] {
        kernel.enable(&Characteristic::Counter(counter.parse().unwrap())).unwrap();
    }
    kernel.enable(&Characteristic::Ipc).unwrap();
    kernel.enable(&Characteristic::Memory).unwrap();
    kernel.enable(&Characteristic::RunQueue { hertz: 2000 }).unwrap();
}

/// Scribbles for this time, and checks that no guard has changed. Returns the number of scribbled words.
fn scribble_for(kernel: &Kernel, duration: Duration, seed: u64) -> u64 {
    let areas: Vec<_> = kernel.areas().collect();
    let forbidden = forbidden();
    for &area in &areas {
        forbidden.iter().for_each(|&offset| word(area, offset).store(guard(offset), Ordering::Relaxed));
    }
    let mut random = Random(seed);
    let begin = Instant::now();
    let mut words = 0;
    while begin.elapsed() < duration {
        areas.iter().for_each(|&area| (0..256).for_each(|_| scribble(area, &mut random)));
        words += 256 * areas.len() as u64;
        // The events need the processors, too.
        std::thread::sleep(Duration::from_micros(50));
    }
    for &area in &areas {
        for &offset in &forbidden {
            assert_eq!(
                word(area, offset).load(Ordering::Relaxed),
                guard(offset),
                "offset {offset}, seed {seed}"
            );
        }
    }
    words
}

/// Clears the busy marks. A scheduler that takes over finds them as the last one left them, like counts and
/// indices.
fn clear_marks(kernel: &Kernel) {
    for area in kernel.areas() {
        for file in FileId::all_below(SHAPE.files()) {
            area.register(file).busy.store(0, Ordering::Relaxed);
        }
    }
}

#[test]
fn log_11_random_control_words_harm_neither_the_kernel_nor_later_logging() {
    let Some(mut kernel) = kernel("log_11_scribble") else { return };
    let seed = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64 | 1;
    println!("seed {seed}");
    let mut workers = [0, 1].map(|_| Child::start(busy));
    let mut pair = support::ping_pong(u64::MAX, [0, 0]);
    for (domain, worker) in workers.iter().chain(&pair).enumerate() {
        kernel.bind(&Principal::Process(worker.pid), DomainId::from_index(domain + 1)).unwrap();
    }
    enable_all(&mut kernel);
    run(&mut workers);
    pair.iter_mut().for_each(Child::release);
    let words = scribble_for(&kernel, Duration::from_secs(2), seed);
    assert!(words > 10_000, "{words}");
    drop((workers, pair));
    kernel.disable(&Characteristic::Memory).unwrap();

    let (plan, files) = plan(&[event::IPC_SEND, event::IPC_RECEIVE]);
    apply(&plan, &kernel);
    clear_marks(&kernel);
    let [sent, received] = [files[0], files[1]].map(|file| follow(&kernel, &plan, file, 0));
    let mut pair = support::ping_pong(200, [0, 0]);
    kernel.bind(&Principal::Process(pair[0].pid), A).unwrap();
    kernel.bind(&Principal::Process(pair[1].pid), B).unwrap();
    let blocked = run(&mut pair);
    let (sent, received) = (sent(&kernel), received(&kernel));
    assert!(between(&sent, A, B) as u64 >= blocked[1] && blocked[1] > 0);
    assert_eq!(between(&sent, A, B), between(&received, B, A));
}

#[test]
fn log_11_scribbling_over_rows_and_counts_does_not_reach_what_the_handlers_rely_on() {
    let Some(mut kernel) = kernel("log_11_private_state") else { return };
    let (plan, files) = plan(&[event::MEMORY]);
    apply(&plan, &kernel);
    let mut child = Child::start(|gate| {
        pin(0);
        touch(1 << 20);
        gate.tell(0);
        gate.wait();
        touch(1 << 20);
        gate.tell(0);
        gate.wait();
    });
    kernel.bind(&Principal::Process(child.pid), A).unwrap();
    kernel.enable(&Characteristic::Memory).unwrap();
    run(std::slice::from_mut(&mut child));
    for area in kernel.areas() {
        let rows = (SHAPE.data_offset()..SHAPE.data_offset() + SHAPE.data_bytes()).step_by(8);
        rows.for_each(|offset| word(area, offset).store(u64::MAX, Ordering::Relaxed));
    }
    let rows = follow(&kernel, &plan, files[0], 0);
    child.release();
    child.report();
    let bytes: Vec<_> = rows(&kernel).iter().filter_map(|row| row.counter).collect();
    assert!(bytes.last().is_some_and(|&bytes| (2 << 20..1 << 30).contains(&bytes)), "{bytes:?}");
}
