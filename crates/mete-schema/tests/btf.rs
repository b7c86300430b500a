//! Type information of kernels, made by hand: correct, cut off, and built to be endless.

#![allow(clippy::unwrap_used, reason = "a test may end so")]

use std::fs;
use std::sync::Arc;

use mete_schema::generate::bpf;
use mete_schema::kernel::{Btf, KernelTypes, Running, Type};
use mete_schema::types::Int;
use mete_schema::{Schema, Source, check};

const INT: u32 = 1;
const POINTER: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const ENUM: u32 = 6;
const TYPEDEF: u32 = 8;
const CONST: u32 = 10;
const FUNCTION: u32 = 12;
const PROTOTYPE: u32 = 13;
/// A flag in a structure's info word: the offsets of its members contain the widths of bit fields.
const HAS_BITS: u32 = 1 << 31;

/// Builds type information.
#[derive(Default)]
struct Builder {
    types: Vec<u8>,
    strings: Vec<u8>,
    count: u32,
    /// The bytes of the kernel's names, which stand before a module's own.
    strings_before: u32,
}

impl Builder {
    fn new() -> Builder {
        Builder { strings: vec![0], ..Builder::default() }
    }

    fn name(&mut self, name: &str) -> u32 {
        let at = self.strings_before + self.strings.len() as u32;
        self.strings.extend(name.bytes().chain([0]));
        if name.is_empty() { 0 } else { at }
    }

    fn add(&mut self, name: &str, kind: u32, count: u32, size_or_type: u32, rest: &[u32]) -> u32 {
        let name = self.name(name);
        let words = [name, kind << 24 | count, size_or_type];
        self.types.extend(words.iter().chain(rest).flat_map(|word| word.to_le_bytes()));
        self.count += 1;
        self.count
    }

    fn named(&mut self, parts: &[(&str, u32)]) -> Vec<u32> {
        parts.iter().flat_map(|(name, kind)| [self.name(name), *kind]).collect()
    }

    fn bytes(&self) -> Vec<u8> {
        let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
        let header = [0x0001_eb9f, 24, 0, types, types, strings];
        let header = header.iter().flat_map(|word: &u32| word.to_le_bytes());
        header.chain(self.types.iter().copied()).chain(self.strings.iter().copied()).collect()
    }
}

/// A tracepoint with a task, as the kernel's compiler describes it.
fn kernel() -> Vec<u8> {
    let mut it = Builder::new();
    let int = it.add("int", INT, 0, 4, &[1 << 24 | 32]);
    let letter = it.add("char", INT, 0, 1, &[8]);
    let text = it.add("", ARRAY, 0, 0, &[letter, int, 16]);
    let state = it.add("state", ENUM, 0, 4, &[]);
    let names = ["pid", "comm", "state", "flag"].map(|name| it.name(name));
    let members: Vec<u32> = [int, text, state, int]
        .iter()
        .zip(names)
        .zip([0, 32, 160, 3 << 24 | 192])
        .flat_map(|((kind, name), offset)| [name, *kind, offset])
        .collect();
    let task = it.add("task_struct", STRUCT, 4, 32, &members);
    // The flag is in the info word.
    let at = it.types.len() - 4 * members.len() - 8;
    let info = u32::from_le_bytes(it.types[at..at + 4].try_into().unwrap()) | HAS_BITS;
    it.types[at..at + 4].copy_from_slice(&info.to_le_bytes());
    let constant = it.add("", CONST, 0, task, &[]);
    let pointer = it.add("", POINTER, 0, constant, &[]);
    let anything = it.add("", POINTER, 0, 0, &[]);
    let nameless = it.named(&[("", anything), ("", pointer), ("", int)]);
    let prototype = it.add("", PROTOTYPE, 3, 0, &nameless);
    let handler = it.add("", POINTER, 0, prototype, &[]);
    it.add("btf_trace_sched_switch", TYPEDEF, 0, handler, &[]);
    let named = it.named(&[("__data", anything), ("next", pointer), ("cpu", int)]);
    let caller = it.add("", PROTOTYPE, 3, 0, &named);
    it.add("__traceiter_sched_switch", FUNCTION, 1, caller, &[]);
    it.bytes()
}

#[test]
fn arguments_of_a_tracepoint_have_their_names_and_types() {
    let btf = Btf::parse("test", &kernel()).unwrap();
    let arguments = btf.tracepoint("sched_switch").unwrap();
    assert_eq!(arguments.iter().map(|argument| argument.name.as_str()).collect::<Vec<_>>(), ["next", "cpu"]);
    assert_eq!(arguments[1].kind, Type::Int(Int::signed(32)));
    let Type::Pointer(Some(task)) = arguments[0].kind else { panic!("no pointer") };
    let Type::Record(task) = btf.kind(task) else { panic!("no structure") };
    let members: Vec<_> = btf.members(task).into_iter().map(|member| (member.name, member.kind)).collect();
    let expected = [
        ("pid", Type::Int(Int::signed(32))),
        ("comm", Type::Text(16)),
        ("state", Type::Int(Int::unsigned(32))),
        ("flag", Type::Int(Int { bits: 3, is_signed: true })),
    ];
    assert_eq!(members, expected.map(|(name, kind)| (name.to_owned(), kind)));
    assert!(btf.is_bit_field(task, "flag") && !btf.is_bit_field(task, "pid"));
    assert!(btf.is_enumeration(task, "state") && !btf.is_enumeration(task, "pid"));
    assert_eq!(btf.tracepoints(), ["sched_switch"]);
    assert!(btf.tracepoint("sched_wakeup").is_none());
}

#[test]
fn type_information_cut_at_any_byte_is_refused_or_read() {
    let whole = kernel();
    for end in 0..whole.len() {
        if let Ok(btf) = Btf::parse("test", &whole[..end]) {
            btf.tracepoint("sched_switch");
        }
    }
    assert!(Btf::parse("test", &whole[..whole.len() - 1]).is_err());
}

#[test]
fn typedefs_in_a_circle_end() {
    let mut it = Builder::new();
    it.add("a", TYPEDEF, 0, 2, &[]);
    it.add("b", TYPEDEF, 0, 1, &[]);
    let btf = Btf::parse("test", &it.bytes()).unwrap();
    assert!(matches!(btf.kind(1), Type::Other(_)));
}

/// Found by fuzzing: without any names, the number of members that were found never grew.
#[test]
fn nameless_structures_that_hold_themselves_many_times_end() {
    let mut it = Builder::new();
    let members: Vec<u32> = (0..64).flat_map(|_| [0, 1, 0]).collect();
    it.add("", STRUCT, 64, 0, &members);
    let btf = Btf::parse("test", &it.bytes()).unwrap();
    assert!(btf.members(1).is_empty());
}

#[test]
fn the_running_kernels_types_are_read() {
    let kernel = match Running::new() {
        Ok(kernel) => kernel,
        Err(error) => {
            println!("SKIPPED: the_running_kernels_types_are_read: {error}");
            return;
        }
    };
    let task = kernel.structure("task_struct").unwrap();
    let members = kernel.members(task);
    let kind =
        |name: &str| members.iter().find(|member| member.name == name).map(|member| member.kind.clone());
    assert_eq!(kind("pid"), Some(Type::Int(Int::signed(32))));
    assert_eq!(kind("comm"), Some(Type::Text(16)));
    assert!(kernel.is_bit_field(task, "in_execve"));
    assert!(kernel.tracepoint("sched_switch").is_some_and(|arguments| arguments.len() >= 3));
}

/// A module with a tracepoint of its own: a structure of its own, and a pointer of the kernel's to a task.
fn module(kernel: &[u8], own: &str, member: &str) -> Vec<u8> {
    const INT_OF_KERNEL: u32 = 1;
    const TASK_OF_KERNEL: u32 = 7;
    let word = |at: usize| u32::from_le_bytes(kernel[at..at + 4].try_into().unwrap());
    let types = Btf::parse("kernel", kernel).map(|btf| btf.types()).unwrap();
    let mut it = Builder { count: types, strings_before: word(20), ..Builder::default() };
    let member = it.name(member);
    let name = format!("{own}_device");
    let device = it.add(&name, STRUCT, 1, 4, &[member, INT_OF_KERNEL, 0]);
    let pointer = it.add("", POINTER, 0, device, &[]);
    let nameless = it.named(&[("", pointer), ("", pointer), ("", TASK_OF_KERNEL)]);
    let prototype = it.add("", PROTOTYPE, 3, 0, &nameless);
    let handler = it.add("", POINTER, 0, prototype, &[]);
    it.add(&format!("btf_trace_{own}_queue"), TYPEDEF, 0, handler, &[]);
    let named = it.named(&[("__data", pointer), ("device", pointer), ("task", TASK_OF_KERNEL)]);
    let caller = it.add("", PROTOTYPE, 3, 0, &named);
    it.add(&format!("__traceiter_{own}_queue"), FUNCTION, 1, caller, &[]);
    it.bytes()
}

/// The program for an event at a tracepoint, asked for as `tp_btf:`.
fn program_at(tracepoint: &str, types: &Running) -> String {
    let text = format!("event A {{ int pid }} at tp_btf:{tracepoint} log A(pid)");
    let schema = Schema::read(&[Source::new("test", text)]).unwrap();
    bpf(&schema, &check(&schema, Some(types)).unwrap(), types).unwrap()
}

/// The modules give the same numbers to different types.
#[test]
fn klog_8_tracepoints_and_structures_of_modules_are_found_and_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(directory.path().join(name), bytes).unwrap();
    let kernel = kernel();
    write("vmlinux", &kernel);
    write("nvme", &module(&kernel, "nvme", "sectors"));
    write("usb", &module(&kernel, "usb", "port"));
    write("broken", b"x");
    let types = Running::with_types(directory.path(), "the kernel");
    let found = types.map(|types| {
        assert!(types.tracepoint("sched_switch").is_some() && types.tracepoint("scsi_queue").is_none());
        assert_eq!(types.tracepoints(), ["sched_switch", "nvme_queue", "usb_queue"]);
        assert!(types.is_of_module("usb_queue") && !types.is_of_module("sched_switch"));
        assert!(program_at("usb_queue", &types).contains("SEC(\"raw_tp/usb_queue\")"));
        assert!(program_at("sched_switch", &types).contains("SEC(\"tp_btf/sched_switch\")"));
        ["nvme", "usb"].map(|module| {
            let arguments = types.tracepoint(&format!("{module}_queue")).unwrap();
            let Type::Pointer(Some(device)) = arguments[0].kind else { panic!("no pointer") };
            let Type::Record(device) = types.kind(device) else { panic!("no structure") };
            let Type::Pointer(Some(task)) = arguments[1].kind else { panic!("no pointer") };
            let Type::Record(task) = types.kind(task) else { panic!("no structure") };
            assert_eq!(types.structure(&format!("{module}_device")), Some(device));
            assert_eq!(types.structure("task_struct"), Some(task));
            let names = types.members(device).into_iter().map(|member| member.name);
            (types.structure_name(device), names.collect::<Vec<_>>(), types.structure_name(task))
        })
    });
    let expected = [("nvme_device", "sectors"), ("usb_device", "port")];
    let task = "task_struct".to_owned();
    assert_eq!(
        found.unwrap(),
        expected.map(|(name, member)| (name.to_owned(), vec![member.to_owned()], task.clone()))
    );
}

#[test]
fn klog_8_types_of_a_module_that_are_cut_off_are_read_without_harm() {
    let kernel = kernel();
    let whole = module(&kernel, "usb", "port");
    let kernel = Arc::new(Btf::parse("kernel", &kernel).unwrap());
    let file = tempfile::NamedTempFile::new().unwrap();
    for length in 0..=whole.len() {
        fs::write(file.path(), &whole[..length]).unwrap();
        if let Ok(module) = Btf::read_module(file.path(), &kernel) {
            let _ = (module.tracepoint("usb_queue"), module.tracepoints(), module.members(u32::MAX));
        }
    }
}
