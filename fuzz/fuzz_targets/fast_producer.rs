//! The fast handler on an area of any content, scribbled over meanwhile, stays inside it. All that
//! can be addressed around the area, other processors' areas among it, may not even be looked at.
#![no_main]
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use libfuzzer_sys::fuzz_target;
use mete_log::handler::Clock;
use mete_log::layout::{PAGE, PAIR_BYTES, REGISTER_BYTES};
use mete_log::rseq::{Abi, Target, enter, exit, log};
use mete_log::{DomainId, EventId, Record, Shape};

const SHAPE: Shape = Shape::COMPONENT;
const WORDS: usize = SHAPE.area_bytes() / 8;
/// Farther than a 32-bit number of words leads.
const GUARD_BYTES: usize = 64 << 30;
/// Areas without access on both sides of the one.
const OTHERS: usize = 2;

struct NoClock;

impl Clock for NoClock {
    fn hardware(&self) -> u64 {
        u64::MAX
    }

    fn tick(&self) -> u64 {
        u64::MAX
    }
}

/// What lasts from input to input. All inputs are run by one thread, which stays on one processor.
struct Scene {
    words: &'static [AtomicU64],
    target: Target,
    abi: usize,
}

/// What the scribbler writes again and again: places, and values that are written in turn.
static SCRIBBLES: [(AtomicUsize, [AtomicU64; 2]); 4] =
    [const { (AtomicUsize::new(0), [const { AtomicU64::new(0) }; 2]) }; 4];

fn scene() -> &'static Scene {
    static SCENE: OnceLock<Scene> = OnceLock::new();
    SCENE.get_or_init(|| {
        let processor = pin_here();
        let own = GUARD_BYTES + (OTHERS + processor) * SHAPE.area_bytes();
        let all = own + (1 + OTHERS) * SHAPE.area_bytes() + GUARD_BYTES;
        let base = reserve(all);
        // SAFETY: the offsets lie inside the reservation, which is never given back.
        let (first, area) =
            unsafe { (base.byte_add(own - processor * SHAPE.area_bytes()), base.byte_add(own)) };
        // SAFETY: whole pages of the reservation above.
        let opened = unsafe {
            libc::mprotect(area.as_ptr().cast(), SHAPE.area_bytes(), libc::PROT_READ | libc::PROT_WRITE)
        };
        assert_eq!(opened, 0, "cannot open the area");
        // SAFETY: open for ever from here on, page-aligned, and reached as atomics alone.
        let words = unsafe { std::slice::from_raw_parts(area.cast::<AtomicU64>().as_ptr(), WORDS) };
        // SAFETY: this thread stays on the one processor whose area is open.
        let target = unsafe { Target::new(first, (processor + 1 + OTHERS) as u32) };
        std::thread::spawn(move || scribble(words));
        Scene { words, target, abi: registered() as usize }
    })
}

/// Keeps this thread on the last processor that it may use, and says which.
fn pin_here() -> usize {
    // SAFETY: sets of the size that is said.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        assert_eq!(libc::sched_getaffinity(0, size_of_val(&set), &raw mut set), 0);
        let is_ours = |processor: &usize| libc::CPU_ISSET(*processor, &set);
        let processor = (0..libc::CPU_SETSIZE as usize).rfind(is_ours).expect("a processor");
        libc::CPU_ZERO(&mut set);
        libc::CPU_SET(processor, &mut set);
        assert_eq!(libc::sched_setaffinity(0, size_of_val(&set), &raw const set), 0);
        processor
    }
}

/// Addresses without access.
fn reserve(bytes: usize) -> NonNull<u8> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a fresh mapping at a place that the kernel picks.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
    assert_ne!(base, libc::MAP_FAILED, "cannot reserve {bytes} bytes of addresses");
    NonNull::new(base.cast()).expect("not at zero")
}

/// This thread's rseq structure, which the C library has registered.
fn registered() -> *mut Abi {
    // SAFETY: the symbols, if there, are an offset from the thread pointer and a size (glibc, from 2.35 on).
    unsafe {
        let offset = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()).cast::<isize>();
        let size = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()).cast::<u32>();
        let is_there = !offset.is_null() && size.as_ref().is_some_and(|size| *size > 0);
        assert!(is_there, "the C library has not registered restartable sequences");
        let thread: *mut u8;
        std::arch::asm!("mov {}, fs:0", out(reg) thread);
        thread.offset(*offset).cast()
    }
}

fn scribble(words: &[AtomicU64]) {
    // The thread has inherited the one processor; meanwhile is what happens on another.
    // SAFETY: a set of the size that is said; if there is one processor only, it stays there.
    unsafe {
        let set: libc::cpu_set_t = std::mem::transmute([u8::MAX; size_of::<libc::cpu_set_t>()]);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
    }
    for turn in 0usize.. {
        for (place, values) in &SCRIBBLES {
            words[place.load(Ordering::Relaxed)]
                .store(values[turn % 2].load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

/// A word that steers the handler: mostly one that it will look at soon.
fn place(choice: u64) -> usize {
    let [kind, domain, event, file, word, ..] = choice.to_le_bytes().map(usize::from);
    let pair = domain % SHAPE.domains() * SHAPE.events() + event % SHAPE.events();
    let byte = match kind % 4 {
        0 | 1 => PAGE + file * REGISTER_BYTES + word % 2 * 8,
        2 => SHAPE.table_offset() + pair * PAIR_BYTES + word % 2 * 8,
        _ => (choice >> 8) as usize % SHAPE.data_offset(),
    };
    byte / 8
}

fn record(choice: u64, counter: u64) -> Record {
    let [_, domain, event, correspondent, high, ..] = choice.to_le_bytes().map(u16::from);
    // Numbers beyond the table's, too.
    Record {
        event: EventId::new(event | high << 8),
        domain: DomainId::new(domain | high << 8),
        correspondent: DomainId::new(correspondent),
        counter,
    }
}

fn begin(scene: &Scene) {
    SCRIBBLES.iter().for_each(|(place, _)| place.store(0, Ordering::Relaxed));
    // SAFETY: private pages without a file read as zeroes again.
    let forgotten = unsafe {
        libc::madvise(scene.words.as_ptr().cast_mut().cast(), SHAPE.area_bytes(), libc::MADV_DONTNEED)
    };
    assert_eq!(forgotten, 0, "cannot clear the area");
}

fuzz_target!(|bytes: &[u8]| {
    let scene = scene();
    let (target, abi) = (&scene.target, scene.abi as *mut Abi);
    begin(scene);
    for step in bytes.chunks_exact(16) {
        let [choice, value] =
            [&step[..8], &step[8..]].map(|word| u64::from_le_bytes(word.try_into().unwrap()));
        let (place, record) = (place(choice >> 8), record(choice, value));
        match choice as u8 % 8 {
            0..=2 => scene.words[place].store(value, Ordering::Relaxed),
            3 => {
                let (scribble, values) = &SCRIBBLES[value as usize % SCRIBBLES.len()];
                values[0].store(value, Ordering::Relaxed);
                values[1].store(scene.words[place].load(Ordering::Relaxed), Ordering::Relaxed);
                scribble.store(place, Ordering::Relaxed);
            }
            // SAFETY: this thread's own structure, here and below.
            4..=6 => drop(unsafe { log(target, abi, &NoClock, record) }),
            _ => {
                if unsafe { enter(target, abi, record.domain, record.event) } {
                    unsafe { exit(target, abi, &NoClock, record) };
                }
            }
        }
    }
});
