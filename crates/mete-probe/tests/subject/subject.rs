//! A program with probes, for the tests. Its first argument says what it does, the others with what. It ends
//! when its standard input does, so that no test leaves it behind.

mod daemon;

use std::io::{BufRead, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mete_log::{DomainId, Entries, EventId, FileId, FileSpec, Plan, Region, Shape, Stamp};
use mete_probe::attach::{Component, configured_processors};
use mete_probe::recursive::Preliminary;
use mete_probe::{enter, event, exit, probe, sample};

event! {
    static NUMBER: access "number";
    static PHASE: phase "phase";
    static VALUE: sample "value";
}

const LIMIT: Duration = Duration::from_secs(300);

static IS_OVER: AtomicBool = AtomicBool::new(false);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |nth: usize| arguments[nth].parse::<u64>().expect("a number");
    match arguments[0].as_str() {
        "count" => count(number(1) as u16),
        "numbers" => numbers(number(1) as u16, number(2)),
        "sites" => sites(),
        "fork" => fork(),
        "withdrawn" => withdrawn(),
        "daemon" => daemon::daemon(),
        "domains" => domains(),
        "descriptors" => daemon::descriptors(Path::new(&arguments[1])),
        "forks" => daemon::forks(),
        "phases" => phases(),
        "schedule" => schedule(Path::new(&arguments[1])),
        "complete" => complete(Path::new(&arguments[1])),
        other => panic!("no such role: {other}"),
    }
}

fn watch_input() {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        IS_OVER.store(true, Ordering::Relaxed);
    });
}

fn is_over() -> bool {
    IS_OVER.load(Ordering::Relaxed)
}

/// Threads 1, 2, … that log the numbers 0, 1, 2, … with their own number as correspondent, until the end.
/// Each prints the number of its passes.
fn count(threads: u16) {
    watch_input();
    let threads: Vec<_> = (1..=threads)
        .map(DomainId::new)
        .map(|thread| std::thread::spawn(move || count_one(thread)))
        .collect();
    for thread in threads {
        println!("{}", thread.join().expect("a counting thread"));
    }
}

fn count_one(thread: DomainId) -> u64 {
    let mut number = 0;
    while !is_over() {
        let phase = enter!(PHASE, number);
        probe!(NUMBER, thread, number);
        sample!(VALUE, number);
        exit!(PHASE, phase, thread, number + 3);
        number += 1;
    }
    number
}

/// Once the event is on, has threads log exactly `rows` numbers each, then says so.
fn numbers(threads: u16, rows: u64) {
    watch_input();
    while !NUMBER.is_enabled() && !is_over() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let log = move |thread| (0..rows).for_each(|number| probe!(NUMBER, thread, number));
    let threads: Vec<_> =
        (1..=threads).map(DomainId::new).map(|thread| std::thread::spawn(move || log(thread))).collect();
    threads.into_iter().for_each(|thread| thread.join().expect("a logging thread"));
    println!("done");
    while !is_over() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// For each line of input, prints the five bytes at each site, and whether they jump to its logging code.
fn sites() {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        if line == "spoil" {
            spoil();
        }
        let states: Vec<_> = own_sites().iter().map(describe).collect();
        println!("{}", states.join(" "));
    }
}

/// Puts a breakpoint, as a debugger would, on a site that is not executed any more.
fn spoil() {
    let is_number = |site: &&[usize; 3]| describe(site).starts_with("number");
    let code = own_sites().iter().find(is_number).expect("a site")[0];
    let page = (code & !4095) as *mut libc::c_void;
    // SAFETY: this is a page of this program's code, which stays executable all along.
    unsafe {
        assert_eq!(libc::mprotect(page, 4096, libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC), 0);
        (code as *mut u8).write_volatile(0xcc);
        assert_eq!(libc::mprotect(page, 4096, libc::PROT_READ | libc::PROT_EXEC), 0);
    }
}

/// The addresses of code, target and event of each site of this program, as the linker lists them.
fn own_sites() -> Vec<[usize; 3]> {
    unsafe extern "C" {
        #[link_name = "__start_mete_sites"]
        static START: [usize; 3];
        #[link_name = "__stop_mete_sites"]
        static STOP: [usize; 3];
    }
    let (start, stop) = (&raw const START, &raw const STOP);
    // SAFETY: these are the bounds of the section, which has records of three words.
    let sites = unsafe { std::slice::from_raw_parts(start, stop.offset_from(start) as usize) };
    sites.iter().copied().filter(|site| site[0] != 0).collect()
}

fn describe([code, target, event]: &[usize; 3]) -> String {
    // SAFETY: these are the first five bytes of a site.
    let bytes = unsafe { (*code as *const [u8; 5]).read_volatile() };
    let is_number = *event == std::ptr::from_ref(&NUMBER).addr();
    let distance = i32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
    let state = match bytes {
        [0x0f, 0x1f, 0x44, 0x00, 0x00] => "no-op",
        [0xe9, ..] if code + 5 + distance as usize == *target => "jump",
        _ => "else",
    };
    format!("{}:{state}:{}", if is_number { "number" } else { "other" }, code % 8 <= 3)
}

/// Forks once the event is on. The child prints its number and whether its probe is on; both pass the probe
/// until the end.
fn fork() {
    while !NUMBER.is_enabled() {
        std::thread::sleep(Duration::from_millis(1));
    }
    // SAFETY: the child only uses what works after a fork; the C library sees to the rest.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let states: Vec<_> = own_sites().iter().map(describe).collect();
        println!("{} {}", std::process::id(), states.iter().any(|state| state.contains("jump")));
    }
    watch_input();
    count_one(DomainId::new(if child == 0 { 2 } else { 1 }));
    // SAFETY: waits for the own child; without one it returns at once.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
}

/// Withdraws and forks. The child prints the number of files in the directory of sockets.
fn withdrawn() {
    mete_probe::withdraw();
    // SAFETY: as above.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let directory = std::env::var_os("METE_RUNTIME_DIR").expect("the test's directory");
        println!("{}", std::fs::read_dir(directory).expect("it is there").count());
        return;
    }
    watch_input();
    // SAFETY: waits for the own child.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    while !is_over() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Enters and leaves phases as its input says, with the values given there. Counts how often a probe's
/// argument is evaluated.
fn phases() {
    let mut phase = mete_probe::site::Entered::UNLOGGED;
    let mut evaluated = 0;
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let (what, value) = line.split_once(' ').expect("an order and a value");
        let value: u64 = value.parse().expect("a value");
        match what {
            "enter" => phase = enter!(PHASE, value),
            "exit" => exit!(PHASE, phase, DomainId::new(1), value),
            _ => probe!(NUMBER, DomainId::new(1), {
                evaluated += 1;
                value
            }),
        }
        println!("{evaluated}");
    }
}

/// Prints its thread's number, passes the probe for each line of input, and follows orders in it.
fn domains() {
    println!("{}", rustix::thread::gettid().as_raw_nonzero());
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match line.split_once(' ') {
            Some(("thread", domain)) => mete_probe::set_domain(domain_from(domain)),
            Some(("process", domain)) => mete_probe::set_process_domain(domain_from(domain)),
            Some(("of", pid)) => {
                let domain = mete_probe::domain_of_process(pid.parse().expect("a process"));
                println!("{:?}", domain.map(DomainId::get));
                continue;
            }
            _ => {}
        }
        probe!(NUMBER);
        std::thread::spawn(|| probe!(VALUE_OF_THREAD)).join().expect("another thread");
        println!("passed");
    }
}

fn domain_from(order: &str) -> DomainId {
    DomainId::new(order.parse().expect("a domain"))
}

event! {
    static VALUE_OF_THREAD: access "other thread";
}

/// A scheduler that takes the component at this socket and reads it until it is killed.
fn schedule(socket: &Path) {
    let mut component = Component::connect(socket, LIMIT).expect("take the component");
    let (region, _) = memory();
    component.provide(region).expect("provide");
    for event in EventId::all_below(component.events().len()) {
        component.enable(event).expect("enable");
    }
    println!("reading");
    watch_input();
    while !is_over() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn memory() -> (Arc<Region>, FileId) {
    let region = Region::create(Shape::COMPONENT, configured_processors()).expect("a region");
    let mut plan = Plan::new(Shape::COMPONENT);
    let spec = FileSpec { entries: Entries::ALL, stamp: Stamp::Hardware, add: false, rows: 1024 };
    let file = plan.file(spec).expect("a file");
    EventId::all_below(4).for_each(|event| plan.route_event(event, file).expect("a route"));
    region.areas().for_each(|area| plan.apply(area));
    (Arc::new(region), file)
}

/// Completes the preliminary log of the component at this socket: its numbers, with their remainder by 5 as
/// correspondent (LOG-15).
fn complete(socket: &Path) {
    watch_input();
    while !NUMBER.is_enabled() && !is_over() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let component = Component::connect(socket, LIMIT).expect("take the component");
    let mut preliminary = Preliminary::new(component, &["number"], 8192).expect("its numbers");
    println!("completing");
    let (mut passed, mut lost) = (0, 0);
    while !is_over() {
        let poll = preliminary.poll(|row| {
            let number = row.counter.expect("a number");
            probe!(NUMBER, DomainId::new((number % 5) as u16 + 1), number);
        });
        let poll = poll.expect("a sound log");
        passed += poll.rows;
        lost += poll.overwritten + poll.refused;
        std::thread::sleep(Duration::from_millis(1));
    }
    println!("{passed} {lost}");
}
