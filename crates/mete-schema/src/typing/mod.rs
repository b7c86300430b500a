//! Gives each expression of a schema its type, and finds those that cannot be.
//!
//! Expressions mean what they mean in C, with 64-bit `long`, where numbers wrap. What C would do silently and
//! nobody means is refused: comparing a negative number as a large one, cutting a number to fit a field.

mod operator;
mod point;
mod value;

use crate::kernel::{KernelTypes, Typed};
use crate::known::Known;
use crate::limits::MAX_PROBLEMS;
use crate::problem::{Problem, Problems};
use crate::schema::Schema;

pub(crate) use operator::common;
pub use value::{Node, Value};

/// A schema whose expressions have their types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// One for each point of the schema.
    pub points: Vec<CheckedPoint>,
    /// What could not be checked, and why, a sentence each.
    pub unchecked: Vec<String>,
}

/// A point with the types of its expressions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedPoint {
    /// Its arguments, if anybody knows them.
    pub arguments: Option<Vec<Typed>>,
    /// Only if this is true.
    pub when: Option<Value>,
    /// What is logged, in the order of the schema's.
    pub logs: Vec<CheckedLog>,
}

/// An event that a point logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedLog {
    /// Only if this is true.
    pub condition: Option<Value>,
    /// A value for each field.
    pub values: Vec<Value>,
}

impl Checked {
    /// Whether a value that is known everywhere is asked for anywhere.
    pub fn uses(&self, known: Known) -> bool {
        let mut is_used = false;
        let mut look = |value: &Value| is_used |= value.node == Node::Known(known);
        self.points.iter().flat_map(CheckedPoint::values).for_each(|value| value.walk(&mut look));
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

/// Checks a schema against a kernel, or without one as far as that goes.
///
/// # Errors
///
/// All places where an expression cannot be, or names what the kernel does not have.
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
    /// Whether nothing more is told. Looking for the nearest name would be wasted then, and takes long.
    fn is_full(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }

    fn tell(&mut self, problem: Problem) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        }
    }
}
