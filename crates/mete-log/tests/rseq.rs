//! Rows committed by restartable sequences: they have the same bytes as the portable handler's, and none is
//! lost uncounted, however threads are preempted, migrated and signalled (LOG-9, LOG-10, D3).
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]
#![cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]

mod common;

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use common::{SetClock, record};
use mete_log::rseq::{Abi, Target};
use mete_log::{
    Area, Cursor, DomainId, Entries, EventId, FileId, FileSpec, Outcome, Plan, Poll, Region, Shape, Stamp,
    handler, rseq,
};

/// The calling thread's rseq structure, if the C library has registered one.
fn registered() -> Option<*mut Abi> {
    // SAFETY: dlsym looks up two names. The symbols, if they exist, are an offset and a size (rseq(2) of
    // glibc).
    unsafe {
        let offset = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()).cast::<isize>();
        let size = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()).cast::<u32>();
        if offset.is_null() || size.is_null() || *size == 0 {
            return None;
        }
        let thread: *mut u8;
        core::arch::asm!("mov {}, fs:0", out(reg) thread);
        Some(thread.offset(*offset).cast())
    }
}

macro_rules! abi_or_skip {
    ($name:literal) => {
        match registered() {
            Some(abi) => abi,
            None => {
                println!("SKIPPED: {}: the C library has not registered restartable sequences", $name);
                return;
            }
        }
    };
}

fn processors() -> usize {
    // SAFETY: sysconf has no precondition.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) as usize }
}

fn pin(processor: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(processor);
    rustix::thread::sched_setaffinity(None, &set).unwrap();
}

fn target(region: &Region) -> Target {
    assert_eq!(region.shape(), Shape::COMPONENT);
    // SAFETY: the region holds these areas, and every caller drops the target before the region.
    unsafe { Target::new(region.area(0).base(), region.processors() as u32) }
}

/// Every word of an area: the registers, the table and the data.
fn bytes(area: Area<'_>) -> Vec<u64> {
    let words = area.shape().area_bytes() / 8;
    // SAFETY: these are the area's own words, read as atomics.
    let all = unsafe { std::slice::from_raw_parts(area.base().cast::<AtomicU64>().as_ptr(), words) };
    all.iter().map(|word| word.load(Ordering::Relaxed)).collect()
}

#[test]
fn log_4_7_8_the_rseq_handler_writes_the_same_bytes_as_the_portable_one() {
    let abi = abi_or_skip!("log_4_7_8_the_rseq_handler_writes_the_same_bytes_as_the_portable_one");
    pin(0);
    for entries in common::all_entries() {
        for stamp in [Stamp::None, Stamp::Tick, Stamp::Virtual, Stamp::RunQueue] {
            for add in [false, true] {
                if add && !entries.has(Entries::COUNTER) {
                    continue;
                }
                let spec = FileSpec { entries, stamp, add, rows: 8 };
                // A sequence that is aborted leaves a gap in the virtual clock. The test then tries once
                // more.
                let tries = if stamp == Stamp::Virtual { 20 } else { 1 };
                assert!((0..tries).any(|_| both_write_the_same(spec, abi)), "{spec:?}");
            }
        }
    }
}

/// Makes the same hundred calls to both handlers. Answers whether the areas are equal to the last byte.
fn both_write_the_same(spec: FileSpec, abi: *mut Abi) -> bool {
    let mut plan = Plan::new(Shape::COMPONENT);
    let file = plan.file(spec).unwrap();
    EventId::all_below(8).for_each(|event| plan.route_event(event, file).unwrap());
    plan.threshold(EventId::new(2), DomainId::new(1), 3).unwrap();
    plan.keep_internal(EventId::new(3), DomainId::new(1), true).unwrap();
    let regions = [(); 2].map(|()| Region::create(Shape::COMPONENT, 1).unwrap());
    regions.iter().for_each(|region| plan.apply(region.area(0)));
    let clock = SetClock::default();
    for call in 0..100 {
        clock.0.set(call * 5000);
        let record = record((call % 8) as u16, 1, (call % 3) as u16, call);
        let portable = handler::log(regions[0].area(0), &clock, record);
        // SAFETY: this thread's own structure.
        let fast = unsafe { rseq::log(&target(&regions[1]), abi, &clock, record) };
        assert_eq!(portable, fast, "{record:?}");
    }
    // The portable handler's busy word is free again, so the areas must not differ at all.
    bytes(regions[0].area(0)) == bytes(regions[1].area(0))
}

#[test]
fn log_4_rows_with_hardware_stamps_read_back_as_written_whatever_else_they_hold() {
    let abi = abi_or_skip!("log_4_rows_with_hardware_stamps_read_back_as_written_whatever_else_they_hold");
    pin(0);
    for entries in common::all_entries() {
        let region = Region::create(Shape::COMPONENT, 1).unwrap();
        let (plan, file) = one_file(FileSpec { entries, stamp: Stamp::Hardware, add: false, rows: 8 });
        plan.apply(region.area(0));
        let (mut last, mut cursor) = (0, Cursor::new(region.area(0), file, plan.control(file)));
        for number in 1..100 {
            let record = record(1, number as u16, 300, number << 40);
            let before = mete_log::clock::ticks().get();
            // SAFETY: this thread's own structure.
            let outcome = unsafe { rseq::log(&target(&region), abi, &mete_log::clock::UserClock, record) };
            assert_eq!(outcome, Outcome::Logged);
            let poll = cursor.poll_rows(region.area(0), |rows| {
                for row in rows.iter() {
                    assert_eq!(row.event, entries.has(Entries::EVENT).then_some(record.event));
                    assert_eq!(row.domain, entries.has(Entries::DOMAIN).then_some(record.domain));
                    assert_eq!(
                        row.correspondent,
                        entries.has(Entries::CORRESPONDENT).then_some(record.correspondent)
                    );
                    assert_eq!(row.counter, entries.has(Entries::COUNTER).then_some(number << 40));
                    last = row.stamp.unwrap();
                }
            });
            assert_eq!(poll.unwrap().rows, 1);
            assert!((before..=mete_log::clock::ticks().get()).contains(&last), "{entries:?}");
        }
    }
}

#[test]
fn log_9_a_thread_writes_into_the_area_of_its_processor_and_into_no_other() {
    let abi = abi_or_skip!("log_9_a_thread_writes_into_the_area_of_its_processor_and_into_no_other");
    let (region, _) = logged(FileSpec { entries: Entries::ALL, stamp: Stamp::Virtual, add: false, rows: 8 });
    let all = || region.areas().map(bytes).collect::<Vec<_>>();
    let may_use = rustix::thread::sched_getaffinity(None).unwrap();
    for processor in (0..processors()).filter(|&processor| may_use.is_set(processor)) {
        pin(processor);
        let before = all();
        for number in 0..20 {
            // SAFETY: this thread's own structure.
            unsafe { rseq::log(&target(&region), abi, &SetClock::default(), record(1, 2, 3, number)) };
        }
        let after = all();
        let changed: Vec<_> = (0..processors()).filter(|&area| before[area] != after[area]).collect();
        assert_eq!(changed, [processor]);
    }
}

#[test]
fn log_10_hardware_stamps_in_a_file_never_go_back() {
    let _ = abi_or_skip!("log_10_hardware_stamps_in_a_file_never_go_back");
    let (region, cursors) =
        logged(FileSpec { entries: Entries::COUNTER, stamp: Stamp::Hardware, add: false, rows: 1 << 15 });
    let target = target(&region);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| log_numbered(&target, 0, 30_000));
        }
    });
    for (area, mut cursor) in region.areas().zip(cursors) {
        let mut last = 0;
        let poll = cursor.poll_rows(area, |rows| {
            for row in rows.iter() {
                assert!(row.stamp.unwrap() >= last, "a stamp went back");
                last = row.stamp.unwrap();
            }
        });
        let _ = poll.unwrap();
    }
}

fn one_file(spec: FileSpec) -> (Plan, FileId) {
    let mut plan = Plan::new(Shape::COMPONENT);
    let file = plan.file(spec).unwrap();
    plan.route_event(EventId::new(1), file).unwrap();
    (plan, file)
}

/// A region for all processors with one file, and a cursor in it on each processor.
fn logged(spec: FileSpec) -> (Region, Vec<Cursor>) {
    let region = Region::create(Shape::COMPONENT, processors()).unwrap();
    let (plan, file) = one_file(spec);
    region.areas().for_each(|area| plan.apply(area));
    let cursors = region.areas().map(|area| Cursor::new(area, file, plan.control(file))).collect();
    (region, cursors)
}

/// Logs rows numbered from 1 on, charged to one domain.
fn log_numbered(target: &Target, domain: u16, rows: u64) {
    let abi = registered().unwrap();
    for number in 1..=rows {
        let record = record(1, domain, domain + 100, number);
        // SAFETY: this thread's own structure.
        unsafe { rseq::log(target, abi, &mete_log::clock::UserClock, record) };
    }
}

/// Several threads, more than there are processors and free to migrate, log at full speed. The reader is too
/// slow for the small file. Every row is accounted for, whole, and in its thread's order.
#[test]
fn log_9_10_numbered_rows_of_many_threads_are_all_accounted_for() {
    let _ = abi_or_skip!("log_9_10_numbered_rows_of_many_threads_are_all_accounted_for");
    const THREADS: u64 = 6;
    const ROWS: u64 = 300_000;
    let (region, mut cursors) =
        logged(FileSpec { entries: Entries::ALL, stamp: Stamp::Hardware, add: false, rows: 256 });
    let target = target(&region);
    let is_done = AtomicBool::new(false);

    let total = std::thread::scope(|scope| {
        let (target, is_done) = (&target, &is_done);
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || log_numbered(target, thread as u16, ROWS)))
            .collect();
        let reader = scope.spawn(|| read_until_done(&region, &mut cursors, is_done));
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_done.store(true, Ordering::Release);
        reader.join().unwrap()
    });
    assert_eq!(total.rows + total.overwritten, THREADS * ROWS);
    assert!(total.rows > 0 && total.overwritten > 0, "{total:?}: the test must see both");
    assert_eq!(total.refused, 0);
}

/// The correspondent that `log_numbered` names for a domain.
fn partner_of(domain: DomainId) -> DomainId {
    DomainId::new(domain.get() + 100)
}

fn read_until_done(region: &Region, cursors: &mut [Cursor], is_done: &AtomicBool) -> Poll {
    let mut total = Poll::default();
    let mut last = vec![[0; 16]; cursors.len()];
    loop {
        let is_last = is_done.load(Ordering::Acquire);
        for (processor, cursor) in cursors.iter_mut().enumerate() {
            let last = &mut last[processor];
            total += cursor
                .poll_rows(region.area(processor), |rows| rows.iter().for_each(|row| check(row, last)))
                .unwrap();
        }
        if is_last {
            return total;
        }
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
}

fn check(row: mete_log::Row, last: &mut [u64; 16]) {
    let domain = row.domain.unwrap();
    assert_eq!(row.event, Some(EventId::new(1)));
    assert_eq!(row.correspondent, Some(partner_of(domain)), "a torn row");
    let number = row.counter.unwrap();
    assert!(
        number > last[domain.index()],
        "thread {domain}: row {number} came after {}",
        last[domain.index()]
    );
    last[domain.index()] = number;
}

static SIGNAL_TARGET: AtomicPtr<Target> = AtomicPtr::new(std::ptr::null_mut());
static SIGNAL_ABI: AtomicPtr<Abi> = AtomicPtr::new(std::ptr::null_mut());
static SIGNALS: AtomicU64 = AtomicU64::new(0);

extern "C" fn log_in_signal(_: libc::c_int) {
    let number = SIGNALS.fetch_add(1, Ordering::Relaxed) + 1;
    let record = record(1, 9, 109, number);
    // SAFETY: the test sets the pointers before the timer, and deletes the timer before they become invalid.
    // The signal comes to the test's thread only, so the structure is this thread's own; the kernel aborts
    // the interrupted sequence. A signal handler may not ask the dynamic linker for the structure.
    unsafe {
        let target = &*SIGNAL_TARGET.load(Ordering::Acquire);
        let abi = SIGNAL_ABI.load(Ordering::Acquire);
        rseq::log(target, abi, &mete_log::clock::UserClock, record);
    }
}

/// A signal handler logs in the middle of a thread that logs. No row is torn, none is lost.
#[test]
fn log_10_a_signal_handler_may_log_while_its_thread_does() {
    let abi = abi_or_skip!("log_10_a_signal_handler_may_log_while_its_thread_does");
    let (region, mut cursors) =
        logged(FileSpec { entries: Entries::ALL, stamp: Stamp::None, add: false, rows: 1 << 14 });
    let mut target = target(&region);
    SIGNAL_TARGET.store(&raw mut target, Ordering::Release);
    SIGNAL_ABI.store(abi, Ordering::Release);
    let written = with_interval_timer(50, || {
        let mut written = 0;
        while SIGNALS.load(Ordering::Relaxed) < 200 && written < 200_000_000 {
            log_numbered(&target, 0, 100);
            written += 100;
        }
        written
    });
    let mut total = Poll::default();
    for (processor, cursor) in cursors.iter_mut().enumerate() {
        let area = region.area(processor);
        let whole = |row: mete_log::Row| assert_eq!(row.correspondent, row.domain.map(partner_of));
        total += cursor.poll_rows(area, |rows| rows.iter().for_each(whole)).unwrap();
    }
    assert!(SIGNALS.load(Ordering::Relaxed) > 0, "no signal came");
    assert_eq!(total.rows + total.overwritten, written + SIGNALS.load(Ordering::Relaxed));
}

/// Runs `work` while a timer sends SIGALRM to the calling thread, then deletes the timer. All signals have
/// been handled when this returns.
fn with_interval_timer<T>(microseconds: i64, work: impl FnOnce() -> T) -> T {
    let handler = log_in_signal as extern "C" fn(libc::c_int);
    // SAFETY: the handler only logs and counts, which is allowed in a signal handler.
    unsafe { libc::signal(libc::SIGALRM, handler as libc::sighandler_t) };
    let every = libc::timespec { tv_sec: 0, tv_nsec: 1000 * microseconds };
    let interval = libc::itimerspec { it_interval: every, it_value: every };
    let mut timer = std::ptr::null_mut();
    // SAFETY: the structures are valid, and all zeroes is a valid one. Old settings are not asked for.
    unsafe {
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGALRM;
        event.sigev_notify_thread_id = libc::gettid();
        assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer), 0);
        assert_eq!(libc::timer_settime(timer, 0, &raw const interval, std::ptr::null_mut()), 0);
    }
    let result = work();
    // SAFETY: the timer was made above. A signal that is still pending is dropped.
    unsafe {
        assert_eq!(libc::timer_delete(timer), 0);
        libc::signal(libc::SIGALRM, libc::SIG_IGN);
    }
    result
}

/// The structure is not registered, so every sequence finds itself on another processor.
#[test]
fn log_11_a_sequence_that_can_never_commit_gives_up_and_counts() {
    #[repr(C, align(32))]
    struct Unregistered([u32; 8]);
    let mut unregistered = Unregistered([0, u32::MAX, 0, 0, 0, 0, 0, 0]);
    let region = Region::create(Shape::COMPONENT, 1).unwrap();
    let (mut plan, file) =
        one_file(FileSpec { entries: Entries::ALL, stamp: Stamp::Hardware, add: false, rows: 8 });
    plan.threshold(EventId::new(1), DomainId::new(2), 3).unwrap();
    plan.apply(region.area(0));
    let abi = (&raw mut unregistered).cast::<Abi>();
    let log = |domain| {
        // SAFETY: the memory is large and aligned enough for the structure. As it is not registered, the
        // kernel never looks at it, and no sequence gets to its commit.
        unsafe { rseq::log(&target(&region), abi, &SetClock::default(), record(1, domain, 9, 1)) }
    };
    assert_eq!(log(1), mete_log::Outcome::Refused);
    assert_eq!(log(2), mete_log::Outcome::Counted);
    let register = region.area(0).register(file);
    assert_eq!((register.lost.load(Ordering::Relaxed), register.index.load(Ordering::Relaxed)), (1, 0));
}
