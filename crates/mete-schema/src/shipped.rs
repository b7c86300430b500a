//! The schemata that come with the program, in `schemas/` (paper §5.5 and §7 to §10).

use crate::source::Source;

/// A schema that comes with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// The schema's name.
    pub name: &'static str,
    /// The text of its file.
    pub text: &'static str,
}

/// All shipped schemata.
pub const SHIPPED: [Shipped; 4] = [
    Shipped { name: "stopwatch", text: include_str!("../../../schemas/stopwatch.mete") },
    Shipped { name: "locking", text: include_str!("../../../schemas/locking.mete") },
    Shipped { name: "scheduler", text: include_str!("../../../schemas/scheduler.mete") },
    Shipped { name: "interrupt", text: include_str!("../../../schemas/interrupt.mete") },
];

/// The schema of this name.
pub fn by_name(name: &str) -> Option<Shipped> {
    SHIPPED.into_iter().find(|shipped| shipped.name == name)
}

impl Shipped {
    /// Its file, with the name that messages show.
    pub fn source(&self) -> Source {
        Source::new(format!("schemas/{}.mete", self.name), self.text)
    }
}
