//! Generated code: Rust and C write the same bytes, types are checked at the call, and a disabled call leaves
//! no code.

#![allow(clippy::unwrap_used, reason = "a test may end so")]

#[path = "support/names.rs"]
mod names;
mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use mete_schema::generate::{bpf, c, rust};
use mete_schema::shipped::SHIPPED;
use mete_schema::types::FieldType;
use mete_schema::{Schema, Source, check};
use proptest::prelude::*;
use tempfile::TempDir;

/// Names and texts that could break generated code, and a field of each kind.
const SCHEMA: &str = r#"
/// Ends a comment */ and begins one /* and "quotes" \ and {braces}.
event SCHEDIN {
    /// */ int main() {}
    int pid
    ulonglong L2_cache_misses
}

event Self { u8 type  bool fn  char name[5]  address errno  s16 record  short self  uint r }

event u8 { }
"#;

fn schema() -> Schema {
    Schema::read(&[Source::new("test", SCHEMA)]).unwrap()
}

/// A directory that is removed at the end of the test.
struct ScratchFolder(TempDir);

impl ScratchFolder {
    fn new() -> ScratchFolder {
        ScratchFolder(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).unwrap();
    }
}

fn run(program: &str, arguments: &[&str], place: &Path) -> Output {
    Command::new(program).args(arguments).current_dir(place).output().unwrap()
}

/// Runs a program that must succeed; fails with its errors otherwise.
fn succeed(program: &str, arguments: &[&str], place: &Path) -> String {
    let output = run(program, arguments, place);
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn has(program: &str, test: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    if !is_there {
        println!("SKIPPED: {test}: there is no {program}");
    }
    is_there
}

const C_CALLS: &str = r#"
    mete_log_SCHEDIN(-2, 0x1122334455667788ull);
    mete_log_Self(200, 7, "ab", 0xffff800000000001ull, -3, -4, 5);
    mete_log_u8();
"#;

const C_MAIN: &str = r#"
#include <stdio.h>
static void emit(const void *record, unsigned long bytes)
{
    for (unsigned long at = 0; at < bytes; at++)
        printf("%02x", ((const unsigned char *)record)[at]);
    puts("");
}
#define METE_EMIT(record, bytes) emit(record, bytes)
#include "schema.h"
int main(void)
{
    CALLS
    struct mete_record_SCHEDIN record;
    mete_encode_SCHEDIN(&record, 5, 6);
    if (!mete_decode_SCHEDIN(&record, &record, sizeof(record)) || record.f_pid != 5)
        return 1;
    if (mete_decode_SCHEDIN(&record, &record, sizeof(record) - 1))
        return 2;
    return 0;
}
"#;

const RUST_MAIN: &str = r#"
#[allow(dead_code)]
#[macro_use]
mod schema;
use schema::*;
fn emit(record: &[::core::primitive::u8]) {
    println!("{}", record.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
}
fn main() {
    mete_log!(emit, SCHEDIN(-2, 0x1122334455667788));
    mete_log!(emit, Self_(200, true, *b"ab\0\0\0", 0xffff800000000001, -3, -4, 5));
    mete_log!(emit, u8());
    let event = SCHEDIN::new(5, 6);
    assert_eq!(SCHEDIN::decode(&event.encode()), Some(event));
    assert_eq!(SCHEDIN::decode(&event.encode()[..31]), None);
    assert_eq!(SCHEDIN::decode(&[0; 32]), None);
    let event = Self_::new(1, true, *b"abcde", 2, 3, 4, 5);
    assert_eq!(Self_::decode(&event.encode()), Some(event));
}
"#;

fn c_output(place: &ScratchFolder) -> String {
    place.write("schema.h", &c(&schema()));
    place.write("main.c", &C_MAIN.replace("CALLS", C_CALLS));
    succeed("cc", &["-Wall", "-Wextra", "-Werror", "-O2", "-o", "c", "main.c"], place.0.path());
    succeed(place.0.path().join("c").to_str().unwrap(), &[], place.0.path())
}

fn rust_output(place: &ScratchFolder) -> String {
    place.write("schema.rs", &rust(&schema()));
    place.write("main.rs", RUST_MAIN);
    succeed("rustc", &["--edition", "2024", "-D", "warnings", "-o", "rust", "main.rs"], place.0.path());
    succeed(place.0.path().join("rust").to_str().unwrap(), &[], place.0.path())
}

#[test]
fn klog_2_rust_and_c_encode_the_same_bytes_and_decode_them() {
    let test = "klog_2_rust_and_c_encode_the_same_bytes_and_decode_them";
    if !has("cc", test) || !has("rustc", test) {
        return;
    }
    let place = ScratchFolder::new();
    let from_c = c_output(&place);
    let head = |id: u16, bytes: u16| {
        format!("{}{}{}", hex(&id.to_le_bytes()), hex(&bytes.to_le_bytes()), "00".repeat(12))
    };
    let fields =
        [hex(&0x1122_3344_5566_7788_u64.to_le_bytes()), hex(&(-2_i32).to_le_bytes()), "00000000".to_owned()];
    let first = format!("{}{}", head(16, 32), fields.concat());
    assert_eq!(from_c.lines().next(), Some(first.as_str()));
    assert_eq!(from_c.lines().nth(2), Some(head(18, 16).as_str()));
    assert_eq!(rust_output(&place), from_c);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The C and C++ compilers of this machine. Those that are missing are printed.
fn compilers(test: &str) -> Vec<(&'static str, &'static str)> {
    let all = [("cc", "c"), ("c++", "c++"), ("clang-19", "c"), ("clang++-19", "c++")];
    all.into_iter().filter(|(compiler, _)| has(compiler, test)).collect()
}

/// Calls in C and C++, and whether they are right.
const KINDS: [(&str, bool); 23] = [
    ("SCHEDIN(1, 2)", true),
    ("SCHEDIN(n * 1.5, 'c')", true),
    ("SCHEDIN(n++, 2)", true),
    ("SCHEDIN(small, n == 2)", true),
    ("SCHEDIN(COLOUR, 2)", true),
    ("SCHEDIN(1)", false),
    ("SCHEDIN(1, 2, 3)", false),
    ("SCHEDIN(o, 1)", false),
    ("SCHEDIN(\"a\", 2)", false),
    ("SCHEDIN(1, &n)", false),
    ("u8()", true),
    ("u8(1)", false),
    ("Self(1, n, \"ab\", 2, 3, 4, 5)", true),
    ("Self(1, n == 3, letters, 2, 3, 4, 5)", true),
    ("Self(1, 1, fixed++, 2, 3, 4, 5)", true),
    ("Self(1, \"a\", \"ab\", 2, 3, 4, 5)", false),
    ("Self(1, &n, \"ab\", 2, 3, 4, 5)", false),
    ("Self(1, o, \"ab\", 2, 3, 4, 5)", false),
    ("Self(1, 1, n, 2, 3, 4, 5)", false),
    ("Self(1, 1, &n, 2, 3, 4, 5)", false),
    ("Self(1, 1, (void *)fixed, 2, 3, 4, 5)", false),
    ("Self(1, 1, o, 2, 3, 4, 5)", false),
    ("Self(1, 1, \"ab\", fixed, 3, 4, 5)", false),
];

#[test]
fn klog_2_value_of_a_wrong_kind_does_not_compile_in_c_even_where_disabled() {
    let place = ScratchFolder::new();
    place.write("schema.h", &c(&schema()));
    let head = "#define METE_EMIT(record, bytes) (void)(record)\n#include \"schema.h\"\n\
        struct other { int x; };\nenum colour { COLOUR };\n\
        void f(struct other o, int n, unsigned char small, char *letters, const char *fixed);\n\
        void f(struct other o, int n, unsigned char small, char *letters, const char *fixed)\n{\n\
        (void)o, (void)n, (void)small, (void)letters, (void)fixed;\n";
    let warnings = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only"];
    for (compiler, language) in
        compilers("klog_2_value_of_a_wrong_kind_does_not_compile_in_c_even_where_disabled")
    {
        for (call, is_right) in KINDS {
            place.write("call.c", &format!("{head} mete_log_{call};\n}}\n"));
            // Whether a wrong call compiles must not depend on which warnings are errors.
            let warnings = if is_right { &warnings[..] } else { &["-w", "-fsyntax-only"] };
            for define in ["-DMETE_ENABLE", "-DMETE_DISABLE"] {
                let output =
                    run(compiler, &[warnings, &[define, "-x", language, "call.c"]].concat(), place.0.path());
                let said = String::from_utf8_lossy(&output.stderr);
                assert_eq!(output.status.success(), is_right, "{compiler} {call} {define}: {said}");
            }
        }
    }
}

#[test]
fn klog_2_wrong_type_or_count_does_not_compile_in_rust_even_where_disabled() {
    if !has("rustc", "klog_2_wrong_type_or_count_does_not_compile_in_rust_even_where_disabled") {
        return;
    }
    let place = ScratchFolder::new();
    place.write("schema.rs", &rust(&schema()));
    for (call, is_right) in [
        ("SCHEDIN(1, 2)", true),
        ("SCHEDIN(1)", false),
        ("SCHEDIN(1, -2)", false),
        ("SCHEDIN(1u8, 2)", false),
    ] {
        let main = "#[allow(dead_code)]\n#[macro_use]\nmod schema;\nuse schema::*;\nfn main()";
        place.write("call.rs", &format!("{main} {{ mete_log!(|_: &[_]| (), {call}); }}"));
        for cfg in ["mete_enable", "mete_disable"] {
            let output =
                run("rustc", &["--edition", "2024", "--cfg", cfg, "-o", "call", "call.rs"], place.0.path());
            assert_eq!(
                output.status.success(),
                is_right,
                "{call} {cfg}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
}

#[test]
fn klog_2_disabled_calls_leave_nothing_in_the_object_code() {
    let test = "klog_2_disabled_calls_leave_nothing_in_the_object_code";
    if !has("objcopy", test) {
        return;
    }
    let place = ScratchFolder::new();
    place.write("schema.h", &c(&schema()));
    let head = "#define METE_EMIT(record, bytes) (void)(record)\n#include \"schema.h\"\nint costly(void);\nint f(int x) {";
    for (compiler, language) in compilers(test) {
        let code = |body: &str| {
            place.write("f.c", &format!("{head} {body} return x + 1; }}"));
            let arguments = ["-DMETE_DISABLE", "-O2", "-c", "-o", "f.o", "-x", language, "f.c"];
            succeed(compiler, &arguments, place.0.path());
            object_code(&place)
        };
        let (without, _) = code("");
        let (with, symbols) = code(&format!("mete_log_SCHEDIN(costly(), x); {C_CALLS}"));
        assert!(!without.is_empty());
        assert_eq!(with, without, "{compiler}");
        assert!(!symbols.contains("costly"), "{symbols}");
    }
}

/// The code in `f.o`, and its symbols.
fn object_code(place: &ScratchFolder) -> (Vec<u8>, String) {
    succeed("objcopy", &["-O", "binary", "-j", ".text*", "f.o", "f.bin"], place.0.path());
    (fs::read(place.0.path().join("f.bin")).unwrap(), succeed("nm", &["f.o"], place.0.path()))
}

#[test]
fn klog_2_disabled_calls_leave_nothing_in_the_object_code_of_rust() {
    let test = "klog_2_disabled_calls_leave_nothing_in_the_object_code_of_rust";
    if !has("rustc", test) || !has("objcopy", test) {
        return;
    }
    let place = ScratchFolder::new();
    place.write("schema.rs", &rust(&schema()));
    let head = "#![crate_type = \"rlib\"]\n#[allow(dead_code, unused_imports)]\n#[macro_use]\nmod schema;\n#[allow(unused_imports)]\n\
        use schema::*;\nunsafe extern \"C\" { safe fn costly() -> i32; safe fn emit(record: *const ::core::primitive::u8); }\n\
        #[allow(dead_code)]\nfn send(record: &[::core::primitive::u8]) { emit(record.as_ptr()) }\n\
        #[unsafe(no_mangle)]\npub fn f(x: i32) -> i32 {";
    let code = |cfg: &str, body: &str| {
        place.write("f.rs", &format!("{head} {body} x + 1 }}"));
        let arguments =
            ["--edition", "2024", "--cfg", cfg, "-O", "-A", "warnings", "--emit", "obj", "-o", "f.o", "f.rs"];
        succeed("rustc", &arguments, place.0.path());
        object_code(&place)
    };
    let calls = "mete_log!(send, SCHEDIN(costly(), 1)); mete_log!(send, u8());";
    let (without, _) = code("mete_disable", "");
    let (with, symbols) = code("mete_disable", calls);
    assert!(!without.is_empty());
    assert_eq!(with, without);
    assert!(!symbols.contains("costly") && !symbols.contains("emit"), "{symbols}");
    let (enabled, symbols) = code("mete_enable", calls);
    assert!(
        enabled.len() > without.len() && symbols.contains("U costly"),
        "the comparison above needs a call that leaves code where it is enabled: {symbols}"
    );
}

#[test]
fn klog_2_disabled_calls_in_rust_do_not_even_compute_their_values() {
    if !has("rustc", "klog_2_disabled_calls_in_rust_do_not_even_compute_their_values") {
        return;
    }
    let place = ScratchFolder::new();
    place.write("schema.rs", &rust(&schema()));
    let main = "#[allow(dead_code)]\n#[macro_use]\nmod schema;\nuse schema::*;\nfn main() {\n\
        fn costly() -> i32 { unreachable!() }\nmete_log!(|_: &[_]| panic!(), SCHEDIN(costly(), 1)); }";
    place.write("main.rs", main);
    succeed(
        "rustc",
        &["--edition", "2024", "--cfg", "mete_disable", "-o", "main", "main.rs"],
        place.0.path(),
    );
    succeed(place.0.path().join("main").to_str().unwrap(), &[], place.0.path());
}

#[test]
fn klog_2_generated_code_of_shipped_schemata_compiles_without_a_warning() {
    let test = "klog_2_generated_code_of_shipped_schemata_compiles_without_a_warning";
    if !has("cc", test) || !has("rustc", test) {
        return;
    }
    let place = ScratchFolder::new();
    for shipped in SHIPPED {
        let schema = Schema::read(&[shipped.source()]).unwrap();
        place.write("schema.c", &format!("#define METE_EMIT(record, bytes) (void)(record)\n{}", c(&schema)));
        succeed("cc", &["-Wall", "-Wextra", "-Werror", "-c", "-o", "schema.o", "schema.c"], place.0.path());
        if has("c++", test) {
            succeed(
                "c++",
                &["-Wall", "-Wextra", "-Werror", "-x", "c++", "-c", "-o", "cc.o", "schema.c"],
                place.0.path(),
            );
        }
        place.write("schema.rs", &rust(&schema));
        let arguments = [
            "--edition",
            "2024",
            "-D",
            "warnings",
            "-A",
            "unused_macros",
            "--crate-type",
            "rlib",
            "schema.rs",
        ];
        succeed("rustc", &arguments, place.0.path());
    }
}

/// Headers that a program may have included before, and this project's header for programs.
const C_BEFORE: &str = "#include <assert.h>\n#include <errno.h>\n#include <math.h>\n#include <signal.h>\n#include <stdio.h>\n\
    #include <string.h>\n#include <sys/socket.h>\n#include \"mete_recorder.h\"\n";

/// A call of each event, with values of the right kinds.
fn calls(schema: &Schema) -> String {
    let value = |kind: FieldType| if matches!(kind, FieldType::Text(_)) { "\"text\"" } else { "1" };
    let call = |event: &mete_schema::schema::Event| {
        let values: Vec<_> = event.fields.iter().map(|field| value(field.kind)).collect();
        format!("\tmete_log_{}({});\n", event.name, values.join(", "))
    };
    schema.events.iter().map(call).collect()
}

#[test]
fn klog_2_an_event_may_be_called_as_anything_in_headers_or_languages() {
    let test = "klog_2_an_event_may_be_called_as_anything_in_headers_or_languages";
    if !has("cc", test) || !has("c++", test) || !has("rustc", test) {
        return;
    }
    let place = ScratchFolder::new();
    let crates = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let includes = ["trace", "probe"].map(|name| format!("-I{crates}/mete-{name}/include"));
    let names = names::nasty(env!("CARGO_MANIFEST_DIR"), &(c(&schema()) + &rust(&schema())));
    assert!(names.len() > 1000, "{}", names.len());
    for text in names::schemata(&names, 500) {
        let schema =
            Schema::read(&[Source::new("names", text)]).unwrap_or_else(|problems| panic!("{problems}"));
        let program =
            format!("{C_BEFORE}#include \"mete.h\"\n{}void f(void)\n{{\n{}}}\n", c(&schema), calls(&schema));
        place.write("names.c", &program);
        place.write("names.rs", &rust(&schema));
        for define in ["-DMETE_ENABLE", "-DMETE_DISABLE"] {
            for language in ["c", "c++"] {
                let arguments =
                    [&includes[0], &includes[1], "-Wall", "-Werror", "-Wno-unused-function", define];
                let compiler = if language == "c" { "cc" } else { "c++" };
                let of_language = ["-x", language, "-fsyntax-only", "names.c"];
                succeed(compiler, &[&arguments[..], &of_language].concat(), place.0.path());
            }
        }
        let arguments =
            ["--edition", "2024", "-D", "warnings", "-A", "unused_macros", "--crate-type", "rlib"];
        succeed("rustc", &[&arguments[..], &["--emit", "metadata", "names.rs"]].concat(), place.0.path());
    }
}

#[test]
fn klog_2_generated_code_is_as_it_was() {
    let small = Schema::read(&[Source::new(
        "test",
        "/// A process runs.\nevent SCHEDIN {\n /// Which.\n int pid\n u64 misses\n char name[16] }",
    )])
    .unwrap();
    insta::assert_snapshot!("generated_c", c(&small));
    insta::assert_snapshot!("generated_rust", rust(&small));
}

#[test]
fn klog_8_generated_programs_are_as_they_were() {
    let text = "event A { int pid  u64 ns  bool in_exec  char name[16] }
        at tp_btf:sched_switch when prev.pid != next.pid {
            if !preempt log A(prev.pid, prev.se.sum_exec_runtime / 1000, prev.in_execve, prev.comm)
            log A(next.pid, here.time, 0, next.name)
        }
        at raw_tp:sched_wakeup log A(p.pid, p.se.sum_exec_runtime, 1, p.comm)";
    let (schema, checked) =
        support::read(text).unwrap_or_else(|(sources, it)| panic!("{}", it.render(&sources, false)));
    insta::assert_snapshot!("generated_bpf", bpf(&schema, &checked, &support::kernel()).unwrap());
}

/// The part of C code that a compiler sees. As in C, lines are joined first, and then comments become spaces.
fn without_comments(text: &str) -> String {
    let joined = text.replace("??/", "\\").replace("\\\n", "");
    let mut seen = String::new();
    let mut rest = joined.as_str();
    while let Some((before, comment)) = rest.split_once("/*") {
        seen.push_str(before);
        seen.push(' ');
        rest = comment.split_once("*/").map_or("", |(_, behind)| behind);
    }
    seen.push_str(rest);
    seen.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn documented(docs: &[String]) -> Schema {
    let docs: String = docs.iter().map(|line| format!("/// {line}\n")).collect();
    let text = format!("{docs}event A {{\n{docs}int pid\n{docs}char name[4]\n}}\n");
    Schema::read(&[Source::new("test", text)]).unwrap()
}

proptest! {
    /// No documentation changes the code, not even pieces of comments, quotes, joined lines or directives.
    #[test]
    fn klog_1_documentation_puts_nothing_into_generated_code(
        docs in prop::collection::vec(
            prop::collection::vec(
                prop::sample::select(vec![
                    "*/", "/*", "*", "/", "\\", "??/", "\"", "]", "#define x", "#[cfg(x)]", "int x;", "{", "}", "//", " ",
                    "'", "r#\"", "%s", "\u{2028}", "x",
                ]),
                0..8,
            ).prop_map(|pieces| pieces.concat()),
            0..4,
        ),
    ) {
        let (with, plain) = (documented(&docs), documented(&[]));
        prop_assert_eq!(without_comments(&c(&with)), without_comments(&c(&plain)));
        let is_code = |line: &&str| !line.trim_start().starts_with("#[doc = ");
        let lines = |schema: &Schema| rust(schema).lines().filter(is_code).map(str::to_owned).collect::<Vec<_>>();
        prop_assert_eq!(lines(&with), lines(&plain));
    }
}

/// Paths and symbols go to the recorder and nowhere else.
#[test]
fn klog_8_names_of_files_and_symbols_are_not_in_generated_code() {
    let of = |path: &str, symbol: &str| {
        let text = format!(
            "event A {{ u64 x }}\nat uprobe:\"{path}\":\"{symbol}\" log A(arg0)\nat usdt:\"{path}\":p:n log A(arg1)"
        );
        let schema = Schema::read(&[Source::new("test", text)]).unwrap();
        let kernel = support::kernel();
        bpf(&schema, &check(&schema, Some(&kernel)).unwrap(), &kernel).unwrap()
    };
    assert_eq!(of("/*/ */ int evil; //", "f); } int evil() { ("), of("/bin/sh", "main"));
}
