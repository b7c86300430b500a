//! The schema language: one description of what is recorded of a subsystem.
//!
//! A schema says which events exist and which fields they have, what each counter counts, and where in the
//! kernel or in a program each event is logged. The language is KLogger's configuration language (Etsion et
//! al., "Fine Grained Kernel Logging with KLogger", EuroSys 2007, §4.1). KLogger's own files are read
//! unchanged. The language adds the instrumentation points, which KLogger patched into the kernel (§5.5).
//!
//! ```text
//!   text ──parse──▶ File (ast) ──resolve──▶ Schema ──typing──▶ Checked
//!                      │                      │                   ▲
//!                   format          explain, generate       KernelTypes (BTF, or by hand)
//! ```
//!
//! 1. [`parse()`] reads one file. It does not look up names, so that a file with unknown names can still be
//!    formatted.
//! 2. [`Schema::read`] resolves the names of all files together and gives each field its place ([`layout`]).
//! 3. [`check`] gives each expression its type, with a kernel's type information where it is available.
//!
//! Each step reports as many mistakes as it can find, each with its place ([`Problem`]). No input makes a
//! step panic or run for long: [`limits`].
//!
//! ```
//! use mete_schema::{Schema, Source, check};
//!
//! let source = Source::new("scheduler", "
//!     arch any { counter0 l2_cache_misses }
//!     event SCHEDIN { int pid  ulonglong L2_cache_misses }
//!     at tp_btf:sched_switch log SCHEDIN(next.pid, counter0)
//! ");
//! let schema = Schema::read(&[source]).unwrap();
//! assert_eq!(schema.events[0].layout.size, 32);
//! assert!(check(&schema, None).is_ok());
//! ```
//!
//! `docs/schema.md` explains what a schema means.

pub mod ast;
pub mod counter;
pub mod evaluate;
mod explain;
pub mod format;
pub mod generate;
pub mod kernel;
pub mod known;
pub mod layout;
pub mod limits;
mod parse;
mod problem;
pub mod program;
mod resolve;
pub mod schema;
pub mod shipped;
mod source;
pub mod target;
pub mod types;
mod typing;

pub use explain::explain;
pub use parse::parse;
pub use problem::{Problem, Problems};
pub use schema::Schema;
pub use source::{Source, Span};
pub use typing::{Checked, CheckedLog, CheckedPoint, Node, Value, check};

impl Schema {
    /// Reads the files of one schema.
    ///
    /// # Errors
    ///
    /// All mistakes of the schema that can be found without a kernel.
    pub fn read(sources: &[Source]) -> Result<Schema, Problems> {
        let mut problems = Vec::new();
        if sources.len() > limits::MAX_FILES {
            let title =
                format!("the schema has {} files; at most {} are allowed", sources.len(), limits::MAX_FILES);
            return Err(Problems(vec![Problem::new(Span::default(), title, "the first one")]));
        }
        let numbered = (0..).zip(sources);
        let files: Vec<_> = numbered.map(|(nth, source)| parse(nth, &source.text, &mut problems)).collect();
        // Files with mistakes are resolved, too, so that the author learns of wrong names in the same run.
        let schema = resolve::resolve(&files, &mut problems);
        problems.truncate(limits::MAX_PROBLEMS);
        // The steps report in an order of their own; the author reads from the top.
        problems.sort_by_key(|problem| (problem.span.file, problem.span.start));
        Problems::unless_none(problems)?;
        Ok(schema)
    }
}
