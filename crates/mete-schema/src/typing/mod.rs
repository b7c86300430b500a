//! Gives each expression of a schema its type, and reports expressions that cannot have one.
//!
//! Expressions mean what they mean in C with a 64-bit `long`, where numbers wrap. Two things that C does
//! silently and no author means are refused: comparing a negative number as if it were a large one, and
//! cutting a number to fit a field.

mod operator;
mod point;
mod value;

use crate::kernel::{KernelTypes, Typed};
use crate::known::KnownValue;
use crate::limits::MAX_PROBLEMS;
use crate::problem::{Problem, Problems};
use crate::schema::Schema;

pub(crate) use operator::common;
pub use value::{Node, Value};

/// A schema whose expressions have their types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// One checked point for each point of the schema, in the same order.
    pub points: Vec<CheckedPoint>,
    /// A sentence for each point that could not be checked, with the reason.
    pub unchecked: Vec<String>,
}

/// A point with the types of its expressions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedPoint {
    /// The point's arguments, if they are known.
    pub arguments: Option<Vec<Typed>>,
    /// The condition under which the point logs anything.
    pub when: Option<Value>,
    /// The events that the point logs, in the order of the schema.
    pub logs: Vec<CheckedLog>,
}

/// An event that a point logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedLog {
    /// The condition under which the event is logged.
    pub condition: Option<Value>,
    /// A value for each field.
    pub values: Vec<Value>,
}

impl Checked {
    /// Whether any expression uses this known value.
    pub fn uses(&self, known: KnownValue) -> bool {
        let mut is_used = false;
        for value in self.points.iter().flat_map(CheckedPoint::values) {
            value.walk(&mut |value| is_used |= value.node == Node::KnownValue(known));
        }
        is_used
    }
}

impl CheckedPoint {
    /// All its expressions.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Value> {
        let logs = self.logs.iter().flat_map(|log| log.condition.iter().chain(&log.values));
        self.when.iter().chain(logs)
    }
}

/// Checks a schema against a kernel. Without a kernel, it checks everything that does not depend on one.
///
/// # Errors
///
/// All expressions that are wrong, or that name something that the kernel does not have.
pub fn check(schema: &Schema, kernel: Option<&dyn KernelTypes>) -> Result<Checked, Problems> {
    let mut checker = Checker { schema, kernel, problems: Vec::new(), unchecked: Vec::new() };
    let points = schema.points.iter().map(|point| checker.point(point)).collect();
    let Checker { problems, unchecked, .. } = checker;
    Problems::unless_none(problems)?;
    Ok(Checked { points, unchecked })
}

struct Checker<'a> {
    schema: &'a Schema,
    kernel: Option<&'a dyn KernelTypes>,
    problems: Vec<Problem>,
    unchecked: Vec<String>,
}

impl Checker<'_> {
    /// Whether no further problem will be reported. Then the search for the nearest name, which takes long,
    /// would be wasted.
    fn is_full(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }

    fn report(&mut self, problem: Problem) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        }
    }
}
