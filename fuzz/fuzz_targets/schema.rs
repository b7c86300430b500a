//! Any text is read or refused, with places that are in it; what is read is formatted and read again as the
//! same; checking it, explaining it and generating code from it end.
#![no_main]

#[path = "../../crates/mete-schema/tests/support/fake.rs"]
mod fake;

use fake::Fake;
use libfuzzer_sys::fuzz_target;
use mete_schema::format::format;
use mete_schema::kernel::Type;
use mete_schema::types::Int;
use mete_schema::{Schema, Source, check, explain, generate, parse};

/// As much of a kernel as short texts may name.
fn kernel() -> Fake {
    let mut kernel = Fake::default();
    let int = || Type::Int(Int::signed(32));
    let task = kernel.add_structure("task_struct", &[("pid", int()), ("comm", Type::Text(16))]);
    kernel.add_tracepoint(
        "t",
        &[("p", Type::Pointer(Some(task))), ("n", int()), ("u", Type::Int(Int::unsigned(64)))],
    );
    kernel
}

fuzz_target!(|text: &str| {
    let mut problems = Vec::new();
    let file = parse(0, text, &mut problems);
    if problems.is_empty() {
        let formatted = format(&file);
        let again = parse(0, &formatted, &mut problems);
        assert!(problems.is_empty(), "{formatted}");
        assert_eq!(again, file);
        assert_eq!(format(&again), formatted);
    }
    let sources = [Source::new("fuzz", text)];
    let refused = match Schema::read(&sources) {
        Ok(schema) => {
            let checked = check(&schema, Some(&kernel()));
            explain(&schema, checked.as_ref().ok());
            generate::c(&schema);
            generate::rust(&schema);
            checked.and_then(|checked| generate::bpf(&schema, &checked, &kernel()).map(drop)).err()
        }
        Err(problems) => Some(problems),
    };
    for problem in refused.into_iter().flat_map(|problems| problems.0) {
        assert!(problem.span.start <= problem.span.end && problem.span.end as usize <= text.len());
        problem.render(&sources, false);
    }
});
