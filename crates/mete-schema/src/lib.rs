//! The schema language: what is recorded of a subsystem, described once.
//!
//! A schema says which events there are and what they hold, what counters count, and where in the kernel
//! or in a program each event is logged. It is KLogger's configuration language (Etsion et al., "Fine
//! Grained Kernel Logging with KLogger", EuroSys 2007, §4.1), whose files are read as they stand, with the
//! instrumentation points added that KLogger patched into the kernel (§5.5).
//!
//! ```text
//!   text ──parse──▶ File (ast) ──resolve──▶ Schema ──typing──▶ Checked
//!                      │                      │                   ▲
//!                   format          explain, generate       KernelTypes (BTF, or by hand)
//! ```
//!
//! 1. [`parse`] reads one file. It knows no names, so that a file can be formatted that is not right yet.
//! 2. [`Schema::read`] resolves the names of all files together and places the fields ([`layout`]).
//! 3. [`check`] gives expressions their types, from a kernel's type information if there is one.
//!
//! Each finds as much as it can that is wrong, and says where ([`Problem`]). Nothing panics or takes long, whatever
//! the input: [`limits`].
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
//! What the text means is in `docs/schema.md`.

pub mod ast;
pub mod counter;
pub mod evaluate;
mod explain;
pub mod folder;
pub mod format;
pub mod generate;
pub mod kernel;
pub mod known;
pub mod layout;
pub mod limits;
pub mod nearest;
mod parse;
mod problem;
pub mod program;
pub mod regular;
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
    /// All that is wrong with it, without regard to any kernel.
    pub fn read(sources: &[Source]) -> Result<Schema, Problems> {
        let mut problems = Vec::new();
        if sources.len() > limits::MAX_FILES {
            let title =
                format!("the schema has {} files; at most {} are allowed", sources.len(), limits::MAX_FILES);
            return Err(Problems(vec![Problem::new(Span::default(), title, "the first one")]));
        }
        let parse = |(nth, source): (usize, &Source)| parse(nth as u32, &source.text, &mut problems);
        let files: Vec<_> = sources.iter().enumerate().map(parse).collect();
        let schema = resolve::resolve(&files, &mut problems);
        problems.truncate(limits::MAX_PROBLEMS);
        problems.sort_by_key(|problem| (problem.span.file, problem.span.start));
        Problems::unless_none(problems)?;
        Ok(schema)
    }
}
