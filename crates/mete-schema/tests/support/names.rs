//! Names that an event may have, although the code around it uses them, too.

#![allow(clippy::unwrap_used, reason = "a test may end so")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use mete_schema::limits::MAX_NAME_LETTERS;
use mete_schema::{Schema, Source};

/// Where this project's own headers are, from a crate's directory.
const HEADERS: [&str; 4] =
    ["../mete-kernel/bpf", "../mete-trace/include", "../mete-log/include", "../mete-probe/include"];

/// Names that are not in these headers: keywords and types of C++ and Rust, functions and macros of system
/// headers.
const OTHERS: &str = "\
    alignas alignof and and_eq asm bitand bitor bool catch char8_t char16_t char32_t class co_await co_return co_yield \
    compl concept consteval constexpr constinit const_cast decltype delete dynamic_cast explicit export false friend \
    mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public reinterpret_cast requires \
    static_assert static_cast template this thread_local throw true try typeid typename using virtual wchar_t xor xor_eq \
    typeof _Bool _Generic _Static_assert _Atomic _Alignas _Noreturn _Complex __int128 __attribute__ __asm__ \
    as async await become box crate dyn fn gen impl in let loop macro match mod move mut override priv pub ref Self self \
    super trait type union unsafe unsized use where yield macro_rules raw safe Self_ self_ super_ crate_ _ __ ___ \
    u8 u16 u32 u64 u128 usize s8 s16 s32 s64 i8 i16 i32 i64 i128 isize f32 f64 str String Vec Box Option Some None Result \
    Ok Err EVENTS ID NAME BYTES FINGERPRINT Copy Clone Debug PartialEq Eq Default Drop Fn core std alloc \
    int8_t uint8_t int64_t uint64_t size_t ssize_t ptrdiff_t time_t pid_t FILE va_list \
    linux unix i386 NULL errno stdin stdout stderr EOF EINVAL ENOENT INT_MAX CHAR_BIT offsetof assert signals \
    main printf puts malloc free memcpy memset strlen exit abort open close read write fork exec wait signal kill time clock \
    log exp sin cos y0 j1 index random stat access system getpid syscall select socket send recv connect \
    task_struct list_head page file inode current ctx dummy bpf_printk SEC LICENSE";

fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words = text.split(move |letter| !is_letter(letter));
    words.filter(|word| word.starts_with(|first: char| !first.is_ascii_digit()))
}

/// All identifiers of the headers, and the part of each that stands behind a prefix of this project.
fn of_headers(crate_directory: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for directory in HEADERS {
        for entry in fs::read_dir(Path::new(crate_directory).join(directory)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "h") {
                continue;
            }
            for name in identifiers(&fs::read_to_string(path).unwrap()) {
                names.insert(name.to_owned());
                let parts = name.match_indices('_').map(|(at, _)| &name[at + 1..]);
                names.extend(parts.filter(|_| name.to_lowercase().starts_with("mete_")).map(str::to_owned));
            }
        }
    }
    names
}

/// Whether a schema accepts the name for an event.
fn is_taken(name: &str) -> bool {
    let is_name = identifiers(name).eq([name]) && name.len() <= MAX_NAME_LETTERS;
    is_name && Schema::read(&[Source::new(name, format!("event {name} {{ int {name} }}"))]).is_ok()
}

/// All names that a schema accepts for events, including those in the `generated` code itself.
pub fn nasty(crate_directory: &str, generated: &str) -> Vec<String> {
    let mut names = of_headers(crate_directory);
    names.extend(OTHERS.split_whitespace().map(str::to_owned));
    names.extend(identifiers(generated).map(str::to_owned));
    names.into_iter().filter(|name| is_taken(name)).collect()
}

/// Schemata with at most `most` events each. Each event has one of these names, and a field of each kind,
/// with its own name and with others.
pub fn schemata(names: &[String], most: usize) -> Vec<String> {
    const KINDS: [&str; 4] = ["int", "bool", "address", "char"];
    let fields = |nth: usize| -> String {
        let of = |by: usize| (KINDS[by % KINDS.len()], &names[(nth + by * 31) % names.len()]);
        let field = |(kind, name): (&str, &String)| match kind {
            "char" => format!("    char {name}[16]\n"),
            kind => format!("    {kind} {name}\n"),
        };
        (0..4.min(names.len())).map(of).map(field).collect()
    };
    let event = |nth: usize| format!("event {} {{\n{}}}\n", names[nth], fields(nth));
    let all: Vec<_> = (0..names.len()).map(event).collect();
    all.chunks(most).map(<[String]>::concat).collect()
}
