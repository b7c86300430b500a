//! The handler for user-level components on x86-64 Linux: the decisions of [`handler`], committed by a
//! restartable sequence (design decision D3).
//!
//! A restartable sequence is a few instructions that the kernel aborts if the thread is preempted, migrated
//! or signalled inside them. The sequence ends in one store, here to the file's index. So either the whole
//! row is there or nothing is, and no other thread of the processor can have written to the file in between.
//! It takes no locked instruction and no system call.
//!
//! There are two ways through the handler. [`log`] tries the common case in some fifty instructions, all of
//! them one sequence from reading the processor's number to the commit. Every unusual case (a threshold, an
//! adding file, another clock, a sequence that was aborted) takes the general way, which decides anew. The
//! general way computes everything before its sequence, from words that can change meanwhile. Inside the
//! sequence it only compares what matters (the processor, the index, the control word), stamps, stores and
//! commits.
//!
//! Both ways read the time-stamp counter inside the sequence, so these stamps never go back in a file. Both
//! mask everything that they derive from shared memory, so a garbled control word leads to some other place
//! in the same data.

use core::arch::asm;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::area::{Area, Pair, Register};
use crate::control::{
    COUNTER_BIT, Control, FIRST_SHIFT, HARDWARE_BIT, LAST_SHIFT, PLAIN_BIT, STAMP_BITS, Stamp, WHO_BITS,
};
use crate::handler::{Clock, Outcome, Record, is_internal};
use crate::layout::{self, Shape};
use crate::{DomainId, EventId, FileId, handler, row};

/// The memory that the kernel and a thread share, as far as it is used here (`struct rseq` of linux/rseq.h).
#[repr(C, align(32))]
pub struct Abi {
    processor_start: u32,
    processor: u32,
    sequence: u64,
}

/// The areas of one user-level component, one per processor, of [`Shape::COMPONENT`].
#[derive(Clone, Copy, Debug)]
pub struct Target {
    base: NonNull<u8>,
    processors: u32,
}

// SAFETY: the areas are reached only through `Area`, whose access is atomic, and by sequences.
unsafe impl Send for Target {}
// SAFETY: as above.
unsafe impl Sync for Target {}

// In the common case `test cl, cl` finds the plain bit as the sign.
const _: () = assert!(PLAIN_BIT == 0x80);
// The common case takes a file's number from one byte.
const _: () = assert!(Shape::COMPONENT.files() == 256);

/// How often a sequence is tried. Preemption and signals abort a sequence now and then. One that is always
/// aborted has a scheduler that scribbles over its index, or a thread whose registration was taken back.
const MOST_TRIES: u32 = 64;

impl Target {
    /// The areas that begin at `base`, `Shape::COMPONENT.area_bytes()` apart.
    ///
    /// # Safety
    ///
    /// `processors` areas must be there, as [`Area::new`] asks for, for as long as the target or a copy of it
    /// is used.
    pub const unsafe fn new(base: NonNull<u8>, processors: u32) -> Target {
        Target { base, processors }
    }

    /// The area of a processor, if there is one.
    #[inline(always)]
    fn area(&self, processor: u32) -> Option<Area<'_>> {
        if processor >= self.processors {
            return None;
        }
        let offset = processor as usize * Shape::COMPONENT.area_bytes();
        // SAFETY: the processor is one of those for which `new`'s caller promised an area.
        Some(unsafe { Area::new(self.base.byte_add(offset), Shape::COMPONENT) })
    }
}

/// The whole handler. Also answers [`Outcome::Off`] if the thread runs on a processor without an area.
///
/// # Safety
///
/// `abi` must be the calling thread's own registered rseq structure, registered with the signature
/// 0x53053053 (glibc does, from 2.35 on).
#[inline(always)]
pub unsafe fn log(target: &Target, abi: *mut Abi, clock: &impl Clock, record: Record) -> Outcome {
    // One register for three numbers: the common case has no register to spare.
    let who = row::who(record.event, record.domain, record.correspondent);
    // SAFETY: passed on from the caller.
    if unsafe { log_common_case(target, abi, who, record.counter) } {
        return Outcome::Logged;
    }
    // SAFETY: passed on from the caller.
    unsafe { log_general(target, abi, clock, who, record.counter) }
}

/// The entry into a phase of use; see [`handler::enter`].
///
/// # Safety
///
/// As [`log`].
#[inline]
pub unsafe fn enter(target: &Target, abi: *mut Abi, domain: DomainId, event: EventId) -> bool {
    for _ in 0..MOST_TRIES {
        // Anew at each try: what aborted the sequence may have moved the thread to another processor.
        // SAFETY: `abi` is the caller's own.
        let processor = unsafe { processor(abi) };
        let Some(area) = target.area(processor) else { return false };
        let pair = area.pair(domain, event);
        // Relaxed: the threshold says all that there is to it.
        let threshold = pair.threshold.load(Ordering::Relaxed);
        if threshold <= 1 {
            return true;
        }
        // SAFETY: `abi` is the caller's own.
        match unsafe { count(abi, processor, pair, threshold) } {
            ThresholdCount::Reached => return true,
            ThresholdCount::NotYet => return false,
            ThresholdCount::Aborted => {}
        }
    }
    false
}

/// The exit from a phase; see [`handler::exit`].
///
/// # Safety
///
/// As [`log`].
#[inline]
pub unsafe fn exit(target: &Target, abi: *mut Abi, clock: &impl Clock, record: Record) -> Outcome {
    // SAFETY: `abi` is the caller's own.
    let processor = unsafe { processor(abi) };
    match target.area(processor) {
        Some(area) if is_internal(area.pair(record.domain, record.event), record) => Outcome::Internal,
        // SAFETY: passed on from the caller.
        _ => unsafe { put(target, abi, clock, record) },
    }
}

/// Logs one row without threshold, stamped by the time-stamp counter or not at all. False if the case is
/// another one or if the sequence was aborted; then nothing has happened.
///
/// The time-stamp counter is read as soon as the code knows that the file wants it. Read last, it delayed the
/// program's next instructions, and a row added 8 ns instead of 3 to 20 ns of work.
///
/// The sequence is written by hand, because only so it needs no register that has to be saved. Nothing has to
/// be compared again, because no other thread of the processor runs inside the sequence. Some addresses are
/// spelt out twice: computing them once into a register was measured to be slower.
#[inline(always)]
unsafe fn log_common_case(target: &Target, abi: *mut Abi, who: u64, counter: u64) -> bool {
    let (event, domain, correspondent) = row::who_parts(who);
    // Whether such an occurrence is logged depends on the pair's flags: the general way looks at them.
    if domain == correspondent {
        return false;
    }
    // SAFETY: `abi` is the caller's own. The area is one of those that the target's maker promised. The pair,
    // the file and the place are masked to their parts of the area, and a row's three words extend at most 16
    // bytes further, into the slack. The commit is the increment of the index.
    unsafe {
        asm!(
            sequence!("jmp {general}",
                // The processor's area. The number of an unregistered thread is negative: out of range as
                // unsigned.
                "mov {area:e}, [{abi} + 4]",
                "cmp {area:e}, [{target} + {processors}]",
                "jae {general}",
                "imul {area}, {area}, {area_bytes}",
                "add {area}, [{target} + {base}]",
                // The pair's threshold and file.
                "cmp dword ptr [{area} + {pair} + {threshold}], 1",
                "ja {general}",
                "movzx {pair:e}, byte ptr [{area} + {pair} + {selector}]",
                "shl {pair:e}, {register_log2}",
                // The file's control word.
                "mov rcx, [{area} + {pair} + {control}]",
                "test cl, cl",
                "jns {general}",
                // The time stamp, early, so that the rest runs beside it, in the target's register, which is
                // free.
                "test ch, {hardware}",
                "jz 7f",
                "rdtsc",
                "shl rdx, 32",
                "lea {target}, [rax + rdx]",
                // The row's place: its number shifted by the log2 of a row's words, masked to the file, plus
                // the file's first word, masked to the data. `cl` has flags above the log2; shifts count
                // modulo 32.
                "7: mov edx, [{area} + {pair} + {index}]",
                "shl edx, cl",
                "mov rax, rcx",
                "shr rax, {last_shift}",
                "and edx, eax",
                "mov rax, rcx",
                "shr rax, {first_shift}",
                "add eax, edx",
                "and eax, {data_mask}",
                "lea rax, [{area} + rax * 8 + {data}]",
                // The row's words, those that the file has entries for.
                "test ch, {who_bits}",
                "jz 7f",
                "mov [rax], {who}",
                "add rax, 8",
                "7: test ch, {counter_bit}",
                "jz 7f",
                "mov [rax], {counter}",
                "add rax, 8",
                "7: test ch, {hardware}",
                "jz 8f",
                "mov [rax], {target}",
                // The commit.
                "8: inc qword ptr [{area} + {pair} + {index}]",
                "2:",
                "mov qword ptr [{abi} + 8], 0",
            ),
            processors = const core::mem::offset_of!(Target, processors),
            base = const core::mem::offset_of!(Target, base),
            area_bytes = const Shape::COMPONENT.area_bytes(),
            threshold = const Shape::COMPONENT.table_offset() + layout::PAIR_THRESHOLD,
            selector = const Shape::COMPONENT.table_offset() + layout::PAIR_SELECTOR,
            register_log2 = const layout::REGISTER_BYTES.trailing_zeros(),
            index = const layout::PAGE + layout::REGISTER_INDEX,
            control = const layout::PAGE + layout::REGISTER_CONTROL,
            last_shift = const LAST_SHIFT,
            first_shift = const FIRST_SHIFT,
            data_mask = const Shape::COMPONENT.data_bytes() / 8 - 1,
            data = const Shape::COMPONENT.data_offset(),
            hardware = const HARDWARE_BIT >> 8,
            who_bits = const WHO_BITS >> 8,
            counter_bit = const COUNTER_BIT >> 8,
            abi = in(reg) abi,
            target = inout(reg) target => _,
            pair = inout(reg) pair_offset(domain, event) => _,
            who = in(reg) who,
            counter = in(reg) counter,
            area = out(reg) _,
            out("rax") _, out("rcx") _, out("rdx") _,
            general = label { return false },
            options(nostack),
        );
    }
    true
}

/// The offset of a pair in the domain table, in bytes.
#[inline(always)]
fn pair_offset(domain: DomainId, event: EventId) -> usize {
    let domain = domain.index() & (Shape::COMPONENT.domains() - 1);
    let event = event.index() & (Shape::COMPONENT.events() - 1);
    (domain << Shape::COMPONENT.events_log2() | event) * layout::PAIR_BYTES
}

/// Handles every case, step by step. `who` has all three numbers.
///
/// # Safety
///
/// As [`log`].
#[cold]
#[inline(never)]
unsafe fn log_general(target: &Target, abi: *mut Abi, clock: &impl Clock, who: u64, counter: u64) -> Outcome {
    let (event, domain, correspondent) = row::who_parts(who);
    let record = Record { event, domain, correspondent, counter };
    // SAFETY: the structure is the caller's own; the access is volatile because the kernel reads it. The
    // descriptor that the common case left there is taken back for the reason that `sequence!` gives.
    unsafe { (&raw mut (*abi).sequence).write_volatile(0) };
    // SAFETY: `abi` is the caller's own.
    let Some(area) = target.area(unsafe { processor(abi) }) else { return Outcome::Off };
    if is_internal(area.pair(record.domain, record.event), record) {
        return Outcome::Internal;
    }
    // SAFETY: passed on from the caller.
    if !unsafe { enter(target, abi, record.domain, record.event) } {
        return Outcome::Counted;
    }
    // SAFETY: passed on from the caller.
    unsafe { put(target, abi, clock, record) }
}

/// Routes an occurrence and writes its row, on the processor on which the thread is by now.
unsafe fn put(target: &Target, abi: *mut Abi, clock: &impl Clock, record: Record) -> Outcome {
    let mut tries = 0;
    loop {
        // SAFETY: `abi` is the caller's own.
        let processor = unsafe { processor(abi) };
        let Some(area) = target.area(processor) else { return Outcome::Off };
        let register = area.register(FileId::new(area.pair_word(record.domain, record.event) as u16));
        let control = register.control();
        if !control.is_enabled() {
            return Outcome::Off;
        }
        if control.is_frozen() || tries == MOST_TRIES {
            // Relaxed: a count on its own. By a locked instruction, because outside of a sequence other
            // threads of the processor can be counting at once.
            register.lost.fetch_add(1, Ordering::Relaxed);
            return Outcome::Refused;
        }
        tries += 1;
        let row = NewRow::new(area, processor, register, control, record);
        // SAFETY: `abi` is the caller's own and `new` placed the row inside the data.
        if unsafe { commit(abi, area, clock, control, row) } {
            return Outcome::Logged;
        }
    }
}

/// The processor on which the thread runs for now.
#[inline(always)]
unsafe fn processor(abi: *mut Abi) -> u32 {
    // SAFETY: the structure is the caller's own; the access is volatile because the kernel writes it.
    unsafe { (&raw const (*abi).processor_start).read_volatile() }
}

/// The parts that every sequence has. The labels: `3` is its descriptor, `21` its start, `2` its end after
/// the commit, `4` the place to which the kernel sends an aborted thread and where `$aborted` is executed.
///
/// After the commit the descriptor is taken back. It would do no harm if it stayed, but the kernel would have
/// to look at it at the thread's next switch, which costs it some thirty nanoseconds.
macro_rules! sequence {
    ($aborted:literal, $($body:literal),+ $(,)?) => {
        concat!(
            ".pushsection __rseq_cs, \"aw\"\n",
            ".balign 32\n",
            "3: .long 0, 0\n",
            ".quad 21f, 2f - 21f, 4f\n",
            ".popsection\n",
            // The kernel jumps only to an address that has the signature in front of it.
            ".pushsection __rseq_failure, \"ax\"\n",
            ".byte 0x0f, 0xb9, 0x3d\n",
            ".long 0x53053053\n",
            "4: ", $aborted, "\n",
            ".popsection\n",
            "lea rax, [rip + 3b]\n",
            "mov [{abi} + 8], rax\n",
            "21:\n",
            $($body, "\n",)+
        )
    };
}
use sequence;

/// What came of counting an occurrence towards a threshold.
enum ThresholdCount {
    Reached,
    NotYet,
    Aborted,
}

/// Counts one occurrence towards the threshold.
unsafe fn count(abi: *mut Abi, processor: u32, pair: &Pair, threshold: u32) -> ThresholdCount {
    let is_reached: u32;
    // SAFETY: the sequence stores into the thread's descriptor field and, as its commit, into the pair's
    // count. Both outlive it. The abort label lies outside of the sequence.
    unsafe {
        asm!(
            sequence!("mov {is_reached:e}, 2\njmp 5f",
                "cmp [{abi} + 4], {processor:e}",
                "jne 4b",
                "mov {next:e}, [{count}]",
                "inc {next:e}",
                "xor {is_reached:e}, {is_reached:e}",
                "cmp {next:e}, {threshold:e}",
                "cmovae {next:e}, {is_reached:e}",
                "setae {is_reached:l}",
                "mov [{count}], {next:e}",
                "2:",
                "mov qword ptr [{abi} + 8], 0",
                "5:",
            ),
            abi = in(reg) abi,
            processor = in(reg) processor,
            count = in(reg) pair.count.as_ptr(),
            threshold = in(reg) threshold,
            next = out(reg) _,
            is_reached = out(reg) is_reached,
            out("rax") _,
            options(nostack),
        );
    }
    match is_reached {
        0 => ThresholdCount::NotYet,
        1 => ThresholdCount::Reached,
        // 2, as set where the kernel sends an aborted thread.
        _ => ThresholdCount::Aborted,
    }
}

/// A row that is about to be written: all that its sequence needs.
struct NewRow<'a> {
    processor: u32,
    register: &'a Register,
    /// The index for which the place and the counter were computed.
    index: u64,
    place: *mut u64,
    control: u64,
    who: u64,
    counter: u64,
}

impl<'a> NewRow<'a> {
    fn new(
        area: Area<'a>,
        processor: u32,
        register: &'a Register,
        control: Control,
        record: Record,
    ) -> NewRow<'a> {
        // Relaxed: the sequence compares the index again, and gives up if it has moved.
        let index = register.index.load(Ordering::Relaxed);
        NewRow {
            processor,
            register,
            index,
            place: area.row_word(control.place(index), 0).as_ptr(),
            control: control.to_bits(),
            who: row::who(record.event, record.domain, record.correspondent),
            counter: handler::counter(area, control, index, record),
        }
    }
}

/// Commits a row with the time stamp that the file asks for. False if the sequence was aborted.
///
/// # Safety
///
/// `abi` is the thread's own; `row.place` begins a row inside an area's data.
unsafe fn commit(
    abi: *mut Abi,
    area: Area<'_>,
    clock: &impl Clock,
    control: Control,
    row: NewRow<'_>,
) -> bool {
    // SAFETY: passed on from the caller.
    unsafe {
        match control.stamp() {
            Stamp::Hardware => commit_now(abi, row),
            Stamp::Virtual => commit_in_order(abi, row, area.virtual_clock()),
            Stamp::Tick => commit_given(abi, row, clock.tick()),
            Stamp::RunQueue => commit_given(abi, row, clock.run_queue()),
            Stamp::None => commit_given(abi, row, 0),
        }
    }
}

/// A sequence that writes a row. `$stamp` are the instructions that get the time stamp, which ends up in
/// `rdx`.
macro_rules! commit_row {
    ($abi:expr, $row:expr, [$($stamp:literal),*], $($operands:tt)*) => {{
        let status: u32;
        asm!(
            sequence!("mov {status:e}, 1\njmp 5f",
                "cmp [{abi} + 4], {processor:e}",
                "jne 4b",
                // Another thread of this processor may have logged since the index was read. Or the file may
                // have become another one: in memory that replaces other memory at the same address, the
                // index alone can look the same.
                "cmp [{register}], {index}",
                "jne 4b",
                "cmp [{register} + {control_offset}], {control}",
                "jne 4b",
                $($stamp,)*
                "test {control:e}, {who_bits}",
                "jz 7f",
                "mov [{place}], {who}",
                "add {place}, 8",
                "7: test {control:e}, {counter_bit}",
                "jz 7f",
                "mov [{place}], {counter}",
                "add {place}, 8",
                "7: test {control:e}, {stamp_bits}",
                "jz 7f",
                "mov [{place}], rdx",
                "7: xor {status:e}, {status:e}",
                "inc qword ptr [{register}]",
                "2:",
                "mov qword ptr [{abi} + 8], 0",
                "5:",
            ),
            who_bits = const WHO_BITS,
            counter_bit = const COUNTER_BIT,
            stamp_bits = const STAMP_BITS,
            control_offset = const layout::REGISTER_CONTROL,
            abi = in(reg) $abi,
            processor = in(reg) $row.processor,
            register = in(reg) $row.register.index.as_ptr(),
            index = in(reg) $row.index,
            control = in(reg) $row.control,
            who = in(reg) $row.who,
            counter = in(reg) $row.counter,
            place = inout(reg) $row.place => _,
            status = out(reg) status,
            out("rax") _,
            $($operands)*
            options(nostack),
        );
        status == 0
    }};
}

/// Commits a row with the processor's time-stamp counter, read inside the sequence.
///
/// # Safety
///
/// As [`commit`].
unsafe fn commit_now(abi: *mut Abi, row: NewRow<'_>) -> bool {
    // SAFETY: at most 24 bytes are stored from `place` on, which the slack covers. The commit is the
    // increment of the register's index.
    unsafe { commit_row!(abi, row, ["rdtsc", "shl rdx, 32", "or rdx, rax"], out("rdx") _,) }
}

/// Commits a row with a time stamp that was read before the sequence, or without one.
///
/// # Safety
///
/// As [`commit`].
unsafe fn commit_given(abi: *mut Abi, row: NewRow<'_>, stamp: u64) -> bool {
    // SAFETY: as in `commit_now`.
    unsafe { commit_row!(abi, row, [], in("rdx") stamp,) }
}

/// Commits a row stamped by the area's virtual clock. The clock's store is not the commit: a sequence that is
/// aborted after it leaves a gap in the order of the stamps, which is still an order.
///
/// # Safety
///
/// As [`commit`].
unsafe fn commit_in_order(abi: *mut Abi, row: NewRow<'_>, clock: &AtomicU64) -> bool {
    // SAFETY: as in `commit_now`. The clock is a word of the area.
    unsafe {
        commit_row!(
            abi,
            row,
            ["mov rax, rdx", "mov rdx, [rax]", "inc qword ptr [rax]"],
            inout("rdx") clock.as_ptr() => _,
        )
    }
}
