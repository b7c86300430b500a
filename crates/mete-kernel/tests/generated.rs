//! Programs that are generated from schemata: the kernel accepts them, and they log what happens.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

#[path = "../../mete-schema/tests/support/fake.rs"]
mod fake;
mod support;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;
use std::{env, fs};

use fake::Fake;
use libbpf_rs::{Link, MapCore, Object, ObjectBuilder, ProgramMut, RingBufferBuilder, libbpf_sys};
use mete_schema::generate::bpf;
use mete_schema::kernel::{KernelTypes, Running};
use mete_schema::shipped::SHIPPED;
use mete_schema::{Schema, Source, check};
use support::with_tracing_file_system;
use tempfile::TempDir;

/// Macros for the programs, with the simplest buffer that is possible.
const BUFFER: &str = r#"
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
enum { BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4, BPF_MAP_TYPE_RINGBUF = 27 };
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} records SEC(".maps");
struct mete_place {};
struct mete_here {};
#define METE_BEGIN(place, here, id, size) ((void)(place), (void)(here), bpf_ringbuf_reserve(&records, size, 0))
#define METE_END(place, record, id, size)               \
	do {                                            \
		record->head.type = id;                 \
		record->head.bytes = size;              \
		record->head.serial = 0;                \
		record->head.time = METE_TIME();        \
		bpf_ringbuf_submit(record, 0);          \
	} while (0)
#define METE_TIME() bpf_ktime_get_ns()
#define METE_DOMAIN() 7
#define METE_PARAMETER(ctx, nth) ((nth) == 0 ? ((unsigned long *)ctx)[14] : ((unsigned long *)ctx)[13])
#define METE_RETURNED(ctx) (((unsigned long *)ctx)[10])
#define METE_COUNTER(nth) (100 + nth)
char LICENSE[] SEC("license") = "Dual MIT/GPL";
"#;

/// A directory with the headers of libbpf. It is removed when it is dropped.
fn with_headers() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("bpf")).unwrap();
    for (name, text) in libbpf_sys::API_HEADERS {
        fs::write(place.path().join("bpf").join(name), text).unwrap();
    }
    place
}

fn programs(sources: &[Source], kernel: &dyn KernelTypes) -> String {
    let refused = |problems: mete_schema::Problems| -> ! { panic!("{}", problems.render(sources, false)) };
    let schema = Schema::read(sources).unwrap_or_else(|problems| refused(problems));
    let checked = check(&schema, Some(kernel)).unwrap_or_else(|problems| refused(problems));
    bpf(&schema, &checked, kernel).unwrap_or_else(|problems| refused(problems))
}

/// Compiles programs. Panics with the messages of the compiler.
fn compile(place: &Path, text: &str) -> PathBuf {
    fs::write(place.join("programs.bpf.c"), format!("{BUFFER}{text}")).unwrap();
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang-19".to_owned());
    let arguments =
        ["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", "-I.", "-c", "programs.bpf.c"];
    let output = Command::new(clang).args(arguments).current_dir(place).output().unwrap();
    assert!(output.status.success(), "{}\n{text}", String::from_utf8_lossy(&output.stderr));
    place.join("programs.bpf.o")
}

fn load(object: &Path) -> Object {
    let mut builder = ObjectBuilder::default();
    builder
        .open_file(object)
        .unwrap()
        .load()
        .unwrap_or_else(|error| panic!("the kernel refuses it: {error:?}"))
}

/// The programs that belong to points.
fn at_points(object: &Object) -> impl Iterator<Item = ProgramMut<'_>> {
    object.progs_mut().filter(|program| program.name().to_string_lossy().starts_with("mete_at_"))
}

/// The types of the running kernel, if programs can be loaded here.
fn running(test: &str) -> Option<Running> {
    support::kernel(test)?;
    Some(Running::new().unwrap())
}

#[test]
fn klog_8_programs_of_shipped_schemata_are_taken_by_the_kernel() {
    let test = "klog_8_programs_of_shipped_schemata_are_taken_by_the_kernel";
    let Some(kernel) = running(test) else { return };
    with_tracing_file_system(test, || take_shipped(&kernel));
}

fn take_shipped(kernel: &Running) {
    for shipped in SHIPPED {
        let schema = Schema::read(&[shipped.source()]).unwrap();
        let place = with_headers();
        let object = load(&compile(place.path(), &programs(&[shipped.source()], kernel)));
        assert_eq!(at_points(&object).count(), schema.points.len(), "{}", shipped.name);
        assert_eq!(
            object.progs().count(),
            schema.points.len() + schema.events.len(),
            "one to measure each event"
        );
    }
}

#[test]
fn klog_8_point_that_no_program_is_made_for_is_named() {
    let text = "event A { u64 x }\nat probe:request log A(value)\nat tracepoint:a:b log A(x)";
    let schema = Schema::read(&[Source::new("test", text)]).unwrap();
    let kernel = Fake::default();
    let problems = bpf(&schema, &check(&schema, None).unwrap(), &kernel).unwrap_err();
    let titles: Vec<_> = problems.0.iter().map(|problem| problem.title.as_str()).collect();
    assert_eq!(
        titles,
        ["no program can be made for probe:request", "no program can be made for tracepoint:a:b"]
    );
}

#[test]
fn klog_8_value_behind_too_many_pointers_is_refused_before_it_is_compiled() {
    let mut kernel = Fake::default();
    let own = 1;
    let anything = kernel.add(mete_schema::kernel::Type::Pointer(Some(own)));
    let pid = mete_schema::kernel::Type::Int(mete_schema::types::Int::signed(32));
    let parent = mete_schema::kernel::Type::Pointer(Some(own));
    assert_eq!(kernel.add_structure("task_struct", &[("pid", pid), ("parent", parent.clone())]), own);
    assert_eq!(anything, 0);
    kernel.add_tracepoint("sched_switch", &[("next", parent)]);
    let said = |kind: &str, parents: usize| {
        let text = format!(
            "event A {{ int n }}\nat {kind}:sched_switch log A(next.{}pid)",
            "parent.".repeat(parents)
        );
        let schema = Schema::read(&[Source::new("test", text)]).unwrap();
        let made = bpf(&schema, &check(&schema, Some(&kernel)).unwrap(), &kernel);
        made.map_or_else(|problems| problems.0[0].title.clone(), |_| "taken".to_owned())
    };
    assert_eq!(said("raw_tp", 8), "taken");
    assert_eq!(said("raw_tp", 9), "raw_tp:sched_switch cannot follow so many pointers");
    assert_eq!(said("tp_btf", 60), "taken");
}

/// Bit fields, arrays, texts by address and in place, structures without names, all operators: directly and
/// by CO-RE.
#[test]
fn klog_8_every_kind_of_expression_is_taken_by_the_kernel() {
    let Some(kernel) = running("klog_8_every_kind_of_expression_is_taken_by_the_kernel") else { return };
    let event = "arch any { counter3 cycles }\nevent A { u64 a  u64 b  uint c  int d  bool e  char f[16]  char g[40]  char h[20]  address i }\n";
    for kind in ["tp_btf", "raw_tp"] {
        let text = format!(
            "{event}
            at {kind}:sched_switch when prev.pid != next.pid && !(next.flags & 0x200000) || next.mm == 0
                log A(next.se.sum_exec_runtime / 1000 % 7, counter3 + time * 2 - cpu, prev_state << 3 ^ ~next.flags,
                      preempt ? -next.prio : domain | tgid, next.in_execve, next.comm, prev.comm, here.comm, next)
            at {kind}:sched_switch log A(next.sched_class == prev.sched_class, u64(next.stack), uint(next.on_cpu),
                      int(u8(next.prio)), current.pid == pid, current.comm, next.group_leader.comm,
                      next.parent.real_parent.comm, next.parent.real_parent)
            at {kind}:sched_process_exec log A(0, 1, 2, old_pid, bprm.secureexec, bprm.filename, bprm.filename, bprm.interp, bprm.file)
            at {kind}:irq_handler_entry log A(0xffffffffffffffff, u64(irq), 2, -2147483647 - 1, action.name != 0, action.name,
                      action.name, action.name, action.handler)"
        );
        let place = with_headers();
        let object = load(&compile(place.path(), &programs(&[Source::new("test", text)], &kernel)));
        assert_eq!(at_points(&object).count(), 3, "points at one place are one program");
    }
}

/// Sleeps, so that this thread is scheduled in once more.
fn sleep() {
    std::thread::sleep(Duration::from_millis(1));
}

/// The records that programs log while this work is done twenty times, as bytes.
fn logged(text: &str, kernel: &Running, work: impl Fn()) -> Vec<Vec<u8>> {
    let place = with_headers();
    let object = load(&compile(place.path(), &programs(&[Source::new("test", text)], kernel)));
    let _links: Vec<Link> = at_points(&object).map(|program| program.attach().unwrap()).collect();
    let records = Rc::new(RefCell::new(Vec::new()));
    let sink = Rc::clone(&records);
    let map = object.maps().find(|map| map.name() == "records").unwrap();
    let mut ring = RingBufferBuilder::new();
    let keep = move |record: &[u8]| {
        sink.borrow_mut().push(record.to_vec());
        0
    };
    ring.add(&map, keep).unwrap();
    let ring = ring.build().unwrap();
    for _ in 0..20 {
        work();
        ring.consume().unwrap();
    }
    records.take()
}

fn int(record: &[u8], at: usize) -> i32 {
    i32::from_ne_bytes(record[at..at + 4].try_into().unwrap())
}

/// Some kernels refuse all such programs.
#[test]
fn klog_8_programs_on_functions_of_the_kernel_are_taken_where_there_may_be_any() {
    let test = "klog_8_programs_on_functions_of_the_kernel_are_taken_where_there_may_be_any";
    let Some(kernel) = running(test) else { return };
    for kind in ["fentry", "fexit", "kprobe"] {
        let result = if kind == "fexit" { "retval" } else { "0" };
        let text = format!(
            "event A {{ u64 count  s64 result  uint mode  int pid }}
            at {kind}:vfs_read when count > 0 log A(count, {result}, file.f_mode, pid)"
        );
        let place = with_headers();
        let object = compile(place.path(), &programs(&[Source::new("test", text)], &kernel));
        if let Err(error) = ObjectBuilder::default().open_file(object).unwrap().load() {
            println!("SKIPPED: {test}: {kind}: {error}");
        }
    }
}

/// The example of paper §4, with a counter that this test defines.
#[test]
fn klog_8_papers_example_logs_who_is_scheduled_in() {
    let test = "klog_8_papers_example_logs_who_is_scheduled_in";
    let Some(kernel) = running(test) else { return };
    let text = "arch any { counter0 l2_cache_misses }\nevent SCHEDIN { int pid  ulonglong L2_cache_misses }\n\
        at tp_btf:sched_switch when next.pid != 0 log SCHEDIN(next.pid, counter0)";
    let records = logged(text, &kernel, sleep);
    let word = |record: &[u8], at: usize| u64::from_ne_bytes(record[at..at + 8].try_into().unwrap());
    for record in &records {
        assert_eq!(record.len(), 32);
        assert_eq!(&record[..4], [16, 0, 32, 0]);
        assert!(word(record, 8) > 0 && word(record, 16) == 100);
        assert_eq!(&record[28..], [0; 4], "padding");
    }
    let own = rustix::thread::gettid().as_raw_pid();
    let of_own = records.iter().filter(|record| int(record, 24) == own);
    assert!(of_own.count() >= 10, "of {} records", records.len());
}

/// The task that leaves the processor is the running one, so its structure has what the kernel's helpers
/// return.
#[test]
fn klog_8_members_are_read_where_this_kernel_has_them() {
    let test = "klog_8_members_are_read_where_this_kernel_has_them";
    let Some(kernel) = running(test) else { return };
    for kind in ["tp_btf", "raw_tp"] {
        let text = format!(
            "event A {{ int a  int b  int c  int d  int e  int f  char g[16]  char h[16]  char i[16] }}
            at {kind}:sched_switch when tgid == {} log A(prev.pid, here.pid, prev.tgid, here.tgid,
                prev.group_leader.pid, prev.group_leader.group_leader.pid, prev.comm, comm, current.comm)",
            std::process::id()
        );
        let records = logged(&text, &kernel, sleep);
        assert!(records.len() >= 10, "{kind}: {} records", records.len());
        let name = fs::read_to_string("/proc/thread-self/comm").unwrap();
        let own = rustix::thread::gettid().as_raw_pid();
        for record in records.iter().filter(|record| int(record, 16) == own) {
            let ints: Vec<_> = (0..6).map(|nth| int(record, 16 + 4 * nth)).collect();
            assert_eq!(ints[1], own, "{kind}: the thread");
            assert!(
                ints[2..].iter().all(|process| *process == std::process::id() as i32),
                "{kind}: {ints:?}"
            );
            for at in [40, 56, 72] {
                let read = record[at..at + 16].split(|byte| *byte == 0).next().unwrap();
                assert_eq!(read, name.trim_end().as_bytes(), "{kind}: its name");
            }
        }
        assert!(records.iter().filter(|record| int(record, 16) == own).count() >= 10, "{kind}");
    }
}

/// Sleeps for a time, and asks for the rest of it if it is woken before.
fn sleep_for_a_time() {
    let time = libc::timespec { tv_sec: 0, tv_nsec: 100_000 };
    let mut rest = time;
    // SAFETY: the call reads the first time and may write the second one.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, &raw const time, &raw mut rest) };
}

/// The loader library does not accept an enumeration as a number of the same size.
#[test]
fn klog_8_members_that_are_enumerations_are_read() {
    let test = "klog_8_members_that_are_enumerations_are_read";
    let Some(kernel) = running(test) else { return };
    // By a helper: if a program reads directly, the kernel accepts only the first member of a union.
    let text = format!(
        "event A {{ uint rest_is_wanted }}
        at raw_tp:sched_switch when prev.pid == {} log A(prev.restart_block.nanosleep.type)",
        rustix::thread::gettid().as_raw_nonzero()
    );
    let records = logged(&text, &kernel, sleep_for_a_time);
    // 1 is TT_NATIVE: the rest is wanted, by a program of 64 bits.
    let wanted = records.iter().filter(|record| int(record, 16) == 1).count();
    assert!(wanted >= 10, "{wanted} of {}", records.len());
}

/// They are read by the fields of the record, as the kernel describes it.
#[test]
fn klog_8_classic_tracepoints_log_the_fields_of_their_records() {
    let test = "klog_8_classic_tracepoints_log_the_fields_of_their_records";
    let Some(kernel) = running(test) else { return };
    with_tracing_file_system(test, || {
        let text = "event A { int a  int b  char c[16]  char d[20]  long e }
            at tracepoint:sched:sched_switch log A(prev_pid, here.pid, prev_comm, comm, prev_state)";
        let records = logged(text, &kernel, sleep);
        assert!(records.len() >= 10);
        for record in &records {
            assert_eq!(record.len(), 72);
            assert_eq!(int(record, 24), int(record, 28));
            assert_eq!(record[32..48], record[48..64]);
            assert_eq!(record[64..68], [0; 4]);
        }
    });
}
