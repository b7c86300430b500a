//! A table of schemata that are refused. `tests/snapshots` has the messages to their authors.

mod support;

use support::refusal;

macro_rules! refused {
    ($($name:ident: $text:expr;)+) => {$(
        #[test]
        fn $name() {
            let said = refusal($text);
            assert!(!said.is_empty(), "it was accepted");
            insta::assert_snapshot!(concat!(stringify!($name)), said, $text);
        }
    )+};
}

refused! {
    klog_1_item_that_is_none: "evnt SCHEDIN { int pid }";
    klog_1_event_without_name: "event { int pid }";
    klog_1_block_without_end: "event SCHEDIN {\n    int pid\n";
    klog_1_block_without_end_before_another_event: "event A {\n    int pid\n\nevent B {\n    int pid\n}\n";
    klog_1_field_without_name: "event SCHEDIN { int }";
    klog_1_type_that_is_none: "event SCHEDIN { itn pid }";
    klog_1_type_of_another_language: "event SCHEDIN { uint32_t pid  float load  string name  i64 delta }";
    klog_1_type_of_two_words: "event SCHEDIN { unsigned int pid }";
    klog_1_field_that_points: "event SCHEDIN { char *name }";
    klog_1_field_twice: "event SCHEDIN {\n    int pid\n    uint pid\n}";
    klog_8_values_missing_of_an_event_with_a_text: "event A { u8 x  char name[16]  bool is_on }\nat tp_btf:sched_wakeup log A(1)";
    klog_8_tracepoint_with_a_letter_that_it_cannot_have: "event A { }\nat tp_btf:\"9p-dump\" log A()";
    klog_1_field_called_header: "event SCHEDIN { int header }";
    klog_1_field_called_like_a_keyword_of_c: "event SCHEDIN { int while }";
    klog_1_event_twice: "event SCHEDIN { int pid }\n\nevent SCHEDIN { int pid }";
    klog_1_event_of_the_recorder: "event DUMP_BEGIN { int pid }";
    klog_1_event_called_as_gaps_are: "event LOST { int pid }\nevent UNKNOWN { int pid }";
    klog_1_array_of_numbers: "event A { int pids[4] }";
    klog_1_text_of_no_letters: "event A { char name[0] }";
    klog_1_text_that_is_too_long: "event A { char name[4000000000] }";
    klog_1_record_that_is_too_large: "event A { char a[200]  char b[60] }";
    klog_1_number_that_is_none: "event A { char name[12ab] }";
    klog_1_number_of_more_than_64_bits: "event A { char name[99999999999999999999999] }";
    klog_1_number_in_octal: "event A { char name[016] }";
    klog_1_letter_without_place: "event A { int p\u{ee}d }\n@";
    klog_1_comment_without_end: "/* an event\nevent A { int pid }";
    klog_1_control_character_in_a_comment: "// \u{202e} hidden\nevent A { int pid }";
    klog_1_text_without_end: "at uprobe:\"/bin/sh:main log A()";
    klog_1_name_that_is_too_long: &format!("event {} {{ int pid }}", "N".repeat(65));
    klog_1_documentation_of_nothing: "event A {\n    int pid\n    /// what?\n}\n";
    klog_3_counter_that_is_none: "arch any { counter0 l2_misses }";
    klog_3_counter_far_from_all: "arch any { counter0 zebras }";
    klog_3_counter_number_too_large: "arch any { counter16 cycles }";
    klog_3_counter_bound_twice: "arch any {\n    counter0 cycles\n    counter0 instructions\n}";
    klog_3_counter_that_is_not_bound: "event A { u64 n }\nat tp_btf:sched_switch log A(counter0)";
    klog_8_kind_of_point_that_is_none: "event A { int pid }\nat tp_bft:sched_switch log A(pid)";
    klog_8_point_with_too_many_parts: "event A { int pid }\nat tp_btf:sched:sched_switch log A(pid)";
    klog_8_path_that_is_relative: "event A { u64 x }\nat uprobe:\"sh\":main log A(arg0)";
    klog_8_tracepoint_that_is_no_name: "event A { int pid }\nat tp_btf:\"sched switch\" log A(pid)";
    klog_8_path_with_a_letter_that_it_cannot_have: "event A { u64 x }\nat uprobe:\"/bin/\\x\":main log A(arg0)";
    klog_8_point_without_log: "event A { int pid }\nat tp_btf:sched_switch A(pid)";
    klog_8_point_that_logs_nothing: "event A { int pid }\nat tp_btf:sched_switch { }";
    klog_8_event_that_is_none: "event SCHEDIN { int pid }\nat tp_btf:sched_switch log SCHEDN(pid)";
    klog_8_value_missing: "event SCHEDIN { int pid  int prio }\nat tp_btf:sched_switch log SCHEDIN(next.pid)";
    klog_8_value_too_many: "event SCHEDIN { int pid }\nat tp_btf:sched_switch log SCHEDIN(next.pid, 1, 2)";
    klog_8_tracepoint_that_is_none: "event A { int pid }\nat tp_btf:sched_swich log A(pid)";
    klog_8_tracepoint_of_another_group: "event A { int pid }\nat tracepoint:irq:sched_wakeup log A(args.pid)";
    klog_8_function_that_is_none: "event A { u64 n }\nat kprobe:vfs_reed log A(count)";
    klog_8_argument_that_is_none: "event A { int pid }\nat tp_btf:sched_switch log A(nxt.pid)";
    klog_8_argument_that_is_far_from_all: "event A { int pid }\nat tp_btf:sched_switch log A(zebra)";
    klog_8_argument_that_is_also_known: "event A { int pid }\nat tp_btf:cpu_idle log A(pid)";
    klog_8_known_value_that_is_none: "event A { int pid }\nat tp_btf:cpu_idle log A(here.pdi)";
    klog_8_member_that_is_none: "event A { int pid }\nat tp_btf:sched_switch log A(next.tigd)";
    klog_8_member_of_a_number: "event A { int pid }\nat tp_btf:sched_switch log A(next.pid.nr)";
    klog_8_member_of_an_untyped_address: "event A { int n }\nat tp_btf:contention_begin log A(lock.owner)";
    klog_8_element_that_is_none: "event A { u8 n }\nat tp_btf:sched_switch log A(next.cpus[4])";
    klog_8_element_of_a_number: "event A { u8 n }\nat tp_btf:sched_switch log A(next.pid[0])";
    klog_8_value_that_is_a_structure: "event A { u64 n }\nat tp_btf:sched_switch log A(next.se)";
    klog_8_value_that_is_a_task: "event A { int pid }\nat tp_btf:sched_switch log A(next)";
    klog_8_value_that_is_cut: "event A { int ns }\nat tp_btf:sched_switch log A(next.se.sum_exec_runtime)";
    klog_8_value_that_may_be_negative: "event A { uint pid }\nat tp_btf:sched_switch log A(next.pid)";
    klog_8_constant_that_does_not_fit: "event A { u8 n }\nat tp_btf:sched_switch log A(256)";
    klog_8_negative_constant_that_does_not_fit: "event A { u64 n }\nat tp_btf:sched_switch log A(-1)";
    klog_8_text_that_does_not_fit: "event A { char name[8] }\nat tp_btf:sched_switch log A(next.comm)";
    klog_8_text_into_a_number: "event A { int n }\nat tp_btf:sched_switch log A(next.comm)";
    klog_8_number_into_truth: "event A { bool b }\nat tp_btf:sched_switch log A(next.flags)";
    klog_8_floating_point_number: "event A { u64 n }\nat tp_btf:sched_switch log A(next.load)";
    klog_8_division_by_what_varies: "event A { int n }\nat tp_btf:sched_switch log A(1000 / next.pid)";
    klog_8_division_by_zero: "event A { u64 n }\nat tp_btf:sched_switch log A(next.se.sum_exec_runtime / 0)";
    klog_8_division_of_what_may_be_negative: "event A { int n }\nat tp_btf:sched_switch log A(next.prio / 2)";
    klog_8_shift_too_far: "event A { int n }\nat tp_btf:sched_switch log A(next.pid << 32)";
    klog_8_comparison_of_different_signs:
        "event A { int n }\nat tp_btf:sched_switch when next.pid < prev_state log A(1)";
    klog_8_comparison_of_a_comparison: "event A { int n }\nat tp_btf:sched_switch when 1 < next.pid < 9 log A(1)";
    klog_8_computing_with_an_address: "event A { u64 n }\nat tp_btf:contention_begin log A(lock + 1)";
    klog_8_condition_that_is_a_text: "event A { int n }\nat tp_btf:sched_switch when next.comm log A(1)";
    klog_8_cast_that_is_a_function: "event A { int n }\nat tp_btf:sched_switch log A(bpf_get_prandom_u32(1))";
    klog_8_expression_that_does_not_end: "event A { int n }\nat tp_btf:sched_switch log A(next.pid +)";
    klog_8_kernel_seen_from_a_program: "event A { int n }\nat probe:request log A(current.pid)";
    klog_8_thread_at_a_probe: "event A { int n  int m }\nat probe:request when comm[0] log A(pid, tgid)";
    klog_8_counter_at_a_probe: "arch any { counter0 cycles }\nevent A { u64 n }\nat probe:request log A(counter0)";
    klog_8_mistakes_in_several_items_are_all_reported:
        "event A { itn x }\n\nevent B { int }\n\nat tp_btf:sched_switch log C()\n\narch any { counter0 cycls }\n";
}

#[test]
fn klog_1_second_file_is_named_and_the_first_one_shown() {
    use mete_schema::{Schema, Source};
    let sources =
        [Source::new("one.mete", "event A { int pid }"), Source::new("two.mete", "event A { int pid }")];
    let said =
        Schema::read(&sources).err().map(|problems| problems.render(&sources, false)).unwrap_or_default();
    insta::assert_snapshot!("klog_1_event_twice_in_two_files", said);
}
