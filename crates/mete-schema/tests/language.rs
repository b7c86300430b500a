//! Schemata that are accepted, and what they mean.

#![allow(clippy::unwrap_used, reason = "a test may end so")]

mod support;

use mete_schema::counter::Perf;
use mete_schema::kernel::Type;
use mete_schema::limits::{
    MAX_EVENTS, MAX_EXPRESSION_PARTS, MAX_FILE_BYTES, MAX_LOGS_OF_A_PLACE, MAX_PROBLEMS,
};
use mete_schema::schema::Target;
use mete_schema::types::{FieldType, Int};
use mete_schema::{Checked, Node, Schema, Source, check, explain, format::format, generate::bpf, parse};

/// Paper §4.1, both examples as they are printed there.
const KLOGGER: &str = "arch PentiumIV {
    counter0 l2_cache_misses
}

event SCHEDIN {
    int pid
    ulonglong L2_cache_misses
}
";

fn read(text: &str) -> (Schema, Checked) {
    support::read(text).unwrap_or_else(|(sources, problems)| panic!("{}", problems.render(&sources, false)))
}

/// The type of the only value that is logged.
fn kind_of(expression: &str) -> Type {
    let text = format!("event A {{ {} x }}\nat tp_btf:sched_switch log A({expression})", "u64");
    let sources = [Source::new("test.mete", text)];
    let schema = Schema::read(&sources).unwrap();
    match check(&schema, Some(&support::kernel())) {
        Ok(checked) => checked.points[0].logs[0].values[0].kind.clone(),
        Err(problems) => panic!("{}", problems.render(&sources, false)),
    }
}

#[test]
fn klog_1_examples_of_klogger_are_accepted_as_they_stand() {
    let (schema, _) = read(KLOGGER);
    let event = &schema.events[0];
    assert_eq!(event.name, "SCHEDIN");
    let fields: Vec<_> =
        event.fields.iter().map(|field| (field.name.as_str(), field.word, field.kind)).collect();
    let expected = [
        ("pid", "int", FieldType::Int(Int::signed(32))),
        ("L2_cache_misses", "ulonglong", FieldType::Int(Int::unsigned(64))),
    ];
    assert_eq!(fields, expected);
    let binding = &schema.bindings[0];
    assert_eq!(
        (binding.arch.as_str(), binding.number, binding.counter.name),
        ("PentiumIV", 0, "l2_cache_misses")
    );
}

#[test]
fn klog_1_schema_is_all_its_files_in_any_order() {
    let points = Source::new("points", "at tp_btf:sched_switch log SCHEDIN(next.pid, counter0)");
    let events = Source::new("events", KLOGGER);
    let one_way = Schema::read(&[points.clone(), events.clone()]).unwrap();
    let other_way = Schema::read(&[events, points]).unwrap();
    assert_eq!(one_way.events[0].name, other_way.events[0].name);
    assert_eq!(one_way.points.len(), 1);
    assert_eq!(one_way.fingerprint(), other_way.fingerprint());
}

#[test]
fn klog_1_any_c_identifier_is_a_name_even_a_word_of_the_language() {
    let (schema, _) = read(
        "event event { int event  int at  int log  int _9  int arch  int when }\nevent arch { }\n\
        at tp_btf:sched_switch when next log event(1, 2, 3, 4, 5, 6)",
    );
    let names: Vec<_> = schema.events[0].fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["event", "at", "log", "_9", "arch", "when"]);
    assert!(schema.events[1].fields.is_empty());
}

#[test]
fn klog_1_documentation_belongs_to_what_follows_or_stands_before_it_in_the_line() {
    let (schema, _) = read(
        "/// A process\n/// runs.\nevent A {\n    /// Which.\n    int pid // not this\n    int cpu /// Where.\n}",
    );
    assert_eq!(schema.events[0].docs, "A process\nruns.");
    assert_eq!(schema.events[0].fields[0].docs, "Which.");
    assert_eq!(schema.events[0].fields[1].docs, "Where.");
}

#[test]
fn klog_1_header_is_sixteen_bytes_and_fields_follow_without_a_gap() {
    let (schema, _) = read("event A { u8 a  u64 b  char c[5]  u16 d  uint e  bool f }\nevent NONE { }\n");
    let layout = &schema.events[0].layout;
    assert_eq!(layout.offsets, [30, 16, 31, 28, 24, 36]);
    assert_eq!((layout.size, layout.padding), (40, 3));
    assert_eq!((schema.events[1].layout.size, schema.events[1].layout.padding), (16, 0));
    assert_eq!((schema.events[0].id, schema.events[1].id), (16, 17));
}

#[test]
fn klog_1_papers_event_of_32_bytes_is_a_record_of_32_bytes() {
    assert_eq!(read(KLOGGER).0.events[0].layout.size, 32);
}

#[test]
fn klog_1_fingerprint_changes_with_names_and_types_and_with_nothing_else() {
    let of = |text: &str| read(text).0.events[0].fingerprint();
    let original = of("event A { int pid }");
    assert_eq!(original, of("/// docs\nevent A {\n  s32 pid }  // the same type"));
    for other in
        ["event B { int pid }", "event A { int pit }", "event A { uint pid }", "event A { int pid int x }"]
    {
        assert_ne!(original, of(other), "{other}");
    }
}

#[test]
fn klog_3_counter_is_taken_from_the_best_architecture_that_binds_it() {
    let (schema, _) = read(
        "arch any {\n counter0 cycles\n counter1 instructions\n}\narch AMD { counter0 l2_cache_misses }\n",
    );
    let names = |machine: &[&str]| {
        let found =
            schema.bindings_for(machine).into_iter().map(|binding| (binding.number, binding.counter.name));
        found.collect::<Vec<_>>()
    };
    assert_eq!(names(&["amd", "x86_64"]), [(0, "l2_cache_misses"), (1, "instructions")]);
    assert_eq!(names(&["Intel", "x86_64"]), [(0, "cycles"), (1, "instructions")]);
    let counter = schema.bindings_for(&["AMD"])[0].counter;
    assert!(matches!(counter.perf, Perf::ByMaker { amd: "r964", .. }));
}

#[test]
fn klog_8_every_kind_of_point_is_understood() {
    let (schema, checked) = read(
        "event A { u64 x }
        at tp_btf:sched_switch log A(next.se.sum_exec_runtime)
        at raw_tp:sched_switch log A(next->se.sum_exec_runtime)
        at tracepoint:sched:sched_wakeup log A(u64(args.pid))
        at fentry:vfs_read log A(count)
        at fexit:vfs_read when retval > 0 log A(u64(retval))
        at kprobe:vfs_read log A(count)
        at uprobe:\"/bin/bash\":readline log A(arg0)
        at uretprobe:\"/bin/bash\":\"std::rt::begin()\" log A(retval)
        at usdt:\"/usr/lib/libc.so.6\":libc:setjmp log A(arg2)
        at probe:request log A(value)",
    );
    assert_eq!(schema.points.len(), 10);
    assert_eq!(
        schema.points[7].target,
        Target::Uretprobe { path: "/bin/bash".into(), symbol: "std::rt::begin()".into() }
    );
    assert_eq!(schema.points[7].target.to_string(), "uretprobe:\"/bin/bash\":\"std::rt::begin()\"");
    assert!(checked.unchecked.is_empty());
    assert!(checked.points.iter().all(|point| point.logs[0].values.len() == 1));
}

#[test]
fn klog_8_members_of_an_argument_called_args_can_be_logged() {
    let mut kernel = support::kernel();
    let pair = [("x", Type::Int(Int::signed(32))), ("y", Type::Int(Int::signed(32)))];
    let pair = Type::Pointer(Some(kernel.add_structure("pair", &pair)));
    kernel.add_tracepoint("one", &[("args", pair.clone())]);
    kernel.add_tracepoint("two", &[("args", pair), ("x", Type::Int(Int::signed(16)))]);
    let sources = [Source::new(
        "test.mete",
        "event A { int x }\nevent B { s16 x }
        at tp_btf:one { log A(args.x); log A(args.args.y) }
        at tp_btf:two { log B(args.x); log A(args.args.x); log A(args.y) }",
    )];
    let schema = Schema::read(&sources).unwrap();
    // The types tell which `x` it is: the member does not fit into 16 bits.
    assert_eq!(check(&schema, Some(&kernel)).map(|checked| checked.points.len()).ok(), Some(2));
    let wrong = [Source::new("test.mete", "event A { int x }\nat tp_btf:one log A(args.z)")];
    let refused = check(&Schema::read(&wrong).unwrap(), Some(&kernel)).unwrap_err().render(&wrong, false);
    assert!(refused.contains("has no member `z`"), "{refused}");
}

#[test]
fn klog_8_point_logs_several_events_under_conditions_of_their_own() {
    let (schema, checked) = read(
        "event A { int pid }\nevent B { int pid }
        at tp_btf:sched_switch when prev.pid != next.pid {
            if prev_state && !preempt log A(prev.pid)
            log B(next.pid);
        }",
    );
    let point = &schema.points[0];
    assert_eq!(point.logs.iter().map(|log| log.event).collect::<Vec<_>>(), [0, 1]);
    assert!(point.logs[0].condition.is_some() && point.logs[1].condition.is_none());
    assert!(checked.points[0].when.is_some());
}

#[test]
fn klog_8_expressions_have_the_types_that_c_gives_them() {
    let int = |bits, is_signed| Type::Int(Int { bits, is_signed });
    // Kernel: flags u32, prio int, sum_exec_runtime u64, in_execve and policy_bits bit fields.
    for (expression, kind) in [
        ("next.flags", int(32, false)),
        ("next.flags + next.prio", int(32, false)),
        ("next.flags & 7", int(32, false)),
        ("next.policy_bits", int(3, false)),
        ("u32(next.policy_bits + 1)", int(32, false)),
        ("next.se.sum_exec_runtime / 1000", int(64, false)),
        ("next.se.sum_exec_runtime - next.prio", int(64, false)),
        ("next.flags << 3 | 1", int(32, false)),
        ("next.flags > 3 ? next.se.sum_exec_runtime : 0", int(64, false)),
        ("next.prio == 120", Type::Truth),
        ("!next.mm", Type::Truth),
        ("next.mm == 0 || preempt", Type::Truth),
        ("-1 + 2", int(32, true)),
        ("0xffffffffffffffff", int(64, false)),
        ("next.cpus[3]", int(8, false)),
        ("u64(next.mm)", int(64, false)),
        ("cpu", int(32, false)),
        ("here.domain", int(16, false)),
        ("current.se.sum_exec_runtime", int(64, false)),
    ] {
        assert_eq!(kind_of(expression), kind, "{expression}");
    }
}

#[test]
fn klog_8_operators_bind_as_in_c() {
    let (_, checked) =
        read("event A { bool x }\nat tp_btf:sched_switch log A(1 + 2 * 3 << 1 == 14 && prev_state | 4 & 6)");
    let Node::Binary(operator, left, _) = &checked.points[0].logs[0].values[0].node else {
        panic!("no operator")
    };
    assert_eq!(operator.sign(), "&&");
    let Node::Binary(operator, left, _) = &left.node else { panic!("no operator") };
    assert_eq!((operator.sign(), left.constant), ("==", Some(14)));
}

#[test]
fn klog_8_texts_are_logged_from_arrays_and_from_addresses() {
    let (_, checked) = read(
        "event A { char name[16] }\nat tp_btf:sched_switch { log A(next.comm) log A(next.name) log A(comm) }",
    );
    assert_eq!(checked.points[0].logs.len(), 3);
}

#[test]
fn klog_8_names_of_the_kernel_may_begin_with_a_digit_in_quotes() {
    let text = "event A {\n    int tag\n}\n\nat tp_btf:\"9p_protocol_dump\" log A(tag)\n";
    let mut kernel = support::kernel();
    kernel.add_tracepoint("9p_protocol_dump", &[("tag", Type::Int(Int::signed(32)))]);
    let schema = Schema::read(&[Source::new("test", text)]).unwrap();
    let checked = check(&schema, Some(&kernel)).unwrap();
    let programs = bpf(&schema, &checked, &kernel).unwrap();
    assert!(programs.contains("SEC(\"tp_btf/9p_protocol_dump\")"), "{programs}");
    let mut problems = Vec::new();
    assert_eq!(format(&parse(0, text, &mut problems)), text);
}

#[test]
fn klog_8_without_a_kernel_everything_else_is_checked() {
    let sources = [Source::new(
        "test",
        "event A { u8 x }\nat tp_btf:no_such_thing log A(whatever.it.is + 1)\nat tp_btf:x log A(pid)",
    )];
    let problems = check(&Schema::read(&sources).unwrap(), None).unwrap_err();
    assert_eq!(
        problems.0.len(),
        1,
        "the thread's number does not fit eight bits, and nothing else is known to be wrong"
    );
}

#[test]
fn klog_1_explanation_has_each_byte_of_a_record() {
    let (schema, checked) = read(
        "arch any { counter0 l2_cache_misses }\n/// A process runs.\nevent SCHEDIN {\n /// Which.\n int pid\n u64 misses\n char name[16] }\n\
        /// The only place.\nat tp_btf:sched_switch when next.pid log SCHEDIN(next.pid, counter0, next.comm)",
    );
    insta::assert_snapshot!(explain(&schema, Some(&checked)));
}

#[test]
fn klog_8_limits_hold_for_files_expressions_events_places_and_messages() {
    let refused = |text: &str| Schema::read(&[Source::new("test", text)]).unwrap_err().0;
    assert!(refused(&" ".repeat(MAX_FILE_BYTES + 1))[0].title.contains("1048576"));
    let deep =
        format!("event A {{ int x }}\nat tp_btf:a log A({}1{})", "(".repeat(100_000), ")".repeat(100_000));
    assert!(refused(&deep)[0].title.contains(&MAX_EXPRESSION_PARTS.to_string()));
    let long = format!("event A {{ int x }}\nat tp_btf:a log A(a{})", ".a".repeat(100_000));
    assert!(refused(&long)[0].title.contains(&MAX_EXPRESSION_PARTS.to_string()));
    let signs = format!("event A {{ int x }}\nat tp_btf:a log A({}1)", "-".repeat(100_000));
    assert!(refused(&signs)[0].title.contains(&MAX_EXPRESSION_PARTS.to_string()));
    let many: String = (0..=MAX_EVENTS).map(|nth| format!("event E{nth} {{ }}\n")).collect();
    assert!(refused(&many)[0].title.contains("1024"));
    let place = |point: &str| {
        format!("event A {{ }}\n{}", format!("at {point} log A()\n").repeat(MAX_LOGS_OF_A_PLACE + 1))
    };
    let said = refused(&place("tp_btf:sched_switch"));
    assert_eq!(said[0].title, "more than 256 events are logged at tp_btf:sched_switch");
    assert_eq!(said.len(), 1);
    assert!(
        Schema::read(&[Source::new("test", place("probe:request"))]).is_ok(),
        "no program is made for it"
    );
    let wrong: String = (0..5000).map(|nth| format!("event E{nth} {{ itn x }}\n")).collect();
    assert_eq!(refused(&wrong).len(), MAX_PROBLEMS);
    assert_eq!(refused(&"@".repeat(MAX_FILE_BYTES)).len(), MAX_PROBLEMS);
    assert_eq!(refused(&"event a\n".repeat(100_000)).len(), MAX_PROBLEMS);
    let fields = format!("event A {{ {} }}", "itn x ".repeat(100_000));
    assert_eq!(refused(&fields).len(), MAX_PROBLEMS);
}

#[test]
fn a_file_full_of_mistakes_is_refused_without_a_search_for_the_nearest_name_of_each() {
    let events: String = (0..1000).map(|nth| format!("event EVENT_{nth} {{ }}\n")).collect();
    let logs = format!("{events}at tp_btf:a {{ {} }}", "log EVNT() ".repeat(80_000));
    assert_eq!(Schema::read(&[Source::new("test", logs)]).unwrap_err().0.len(), MAX_PROBLEMS);
    let points: String =
        (0..1000).map(|nth| format!("at kprobe:vfs_{nth} log A(nothing, nothing)\n")).collect();
    let schema =
        Schema::read(&[Source::new("test", format!("event A {{ int x  int y }}\n{points}"))]).unwrap();
    let mut kernel = support::kernel();
    for nth in 0..2_000 {
        kernel.add_function(&format!("vfs_function_{nth}"), &[], Type::Truth);
    }
    assert_eq!(check(&schema, Some(&kernel)).unwrap_err().0.len(), MAX_PROBLEMS);
}
