//! Operators, by the rules of C but without its traps.

use super::value::{Node, Scope, Value, ValueResult, wrong};
use crate::ast::{Binary, Expr, Unary};
use crate::kernel::Type;
use crate::problem::Problem;
use crate::source::Span;
use crate::types::Int;

/// The type that C computes in: nothing is smaller than `int`.
fn promoted(int: Int) -> Int {
    match int.bits {
        // `int` holds all smaller numbers, with or without a sign.
        ..32 => Int::signed(32),
        32 => int,
        _ => Int { bits: 64, ..int },
    }
}

/// The type that C computes two numbers in.
pub(crate) fn common(left: Int, right: Int) -> Int {
    let (left, right) = (promoted(left), promoted(right));
    // The wider type, with its sign; of two with the same width, the one without a sign.
    match left.bits.cmp(&right.bits) {
        std::cmp::Ordering::Less => right,
        std::cmp::Ordering::Greater => left,
        std::cmp::Ordering::Equal => Int { is_signed: left.is_signed && right.is_signed, ..left },
    }
}

impl Value {
    /// The type of the value as a number; `None` if it is not known.
    fn int(&self, scope: &Scope<'_>) -> Result<Option<Int>, Box<Problem>> {
        match &self.kind {
            Type::Unknown => Ok(None),
            Type::Truth => Ok(Some(Int::unsigned(1))),
            Type::Int(int) => Ok(Some(*int)),
            Type::Pointer(_) => {
                let title = "this is an address: nothing can be computed with it";
                let problem = Problem::new(self.span, title, "expected a number");
                Err(Box::new(problem.help("write `u64(…)` to compute with its value".to_owned())))
            }
            other => {
                let title = format!("this is {}: nothing can be computed with it", scope.describe(other));
                Err(wrong(self.span, title, "expected a number"))
            }
        }
    }
}

/// Whether C gets this value in that type. A value that the type does not hold would have wrapped.
fn holds(kind: &Type, constant: i128) -> bool {
    let magnitude = u64::try_from(constant.unsigned_abs());
    matches!((kind, magnitude), (Type::Int(int), Ok(magnitude)) if int.holds_value(magnitude, constant < 0))
}

/// The value of an operator whose sides are constants.
fn constant(operator: Binary, left: &Value, right: &Value) -> Option<i128> {
    // In 128 bits a result beyond 64 bits is seen instead of wrapping.
    let (left, right) = (left.constant?, right.constant?);
    let result = match operator {
        Binary::Add => left.checked_add(right),
        Binary::Subtract => left.checked_sub(right),
        Binary::Multiply => left.checked_mul(right),
        Binary::ShiftLeft => left.checked_mul(1_i128.checked_shl(u32::try_from(right).ok()?)?),
        Binary::BitOr => Some(left | right),
        Binary::BitAnd => Some(left & right),
        _ => None,
    };
    result.filter(|value| (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(value))
}

fn may_be_negative(value: &Value, int: Int) -> bool {
    int.is_signed && value.constant.is_none_or(|constant| constant < 0)
}

impl Scope<'_> {
    pub(super) fn unary(&self, operator: Unary, of: Value, span: Span) -> ValueResult {
        if operator == Unary::Not {
            let of = of.truth()?;
            return Ok(Value::new(Node::Unary(operator, of.into()), Type::Truth, span));
        }
        let kind = of.int(self)?.map_or(Type::Unknown, |int| Type::Int(promoted(int)));
        let constant = of.constant.filter(|_| operator == Unary::Negate).map(|constant| -constant);
        let constant = constant.filter(|constant| holds(&kind, *constant));
        Ok(Value { node: Node::Unary(operator, of.into()), kind, span, constant })
    }

    pub(super) fn binary(&self, operator: Binary, left: Value, right: Value, span: Span) -> ValueResult {
        let kind = match operator {
            Binary::Or | Binary::And => {
                let (left, right) = (left.truth()?, right.truth()?);
                return Ok(Value::new(Node::Binary(operator, left.into(), right.into()), Type::Truth, span));
            }
            Binary::ShiftLeft | Binary::ShiftRight => self.shift(&left, &right)?,
            Binary::Divide | Binary::Remainder => self.divide(operator, &left, &right)?,
            _ if operator.compares() => self.compare(operator, &left, &right)?,
            _ => self.arithmetic(&left, &right)?,
        };
        let constant = constant(operator, &left, &right);
        let constant = constant.filter(|constant| holds(&kind, *constant));
        Ok(Value { node: Node::Binary(operator, left.into(), right.into()), kind, span, constant })
    }

    fn arithmetic(&self, left: &Value, right: &Value) -> Result<Type, Box<Problem>> {
        match (left.int(self)?, right.int(self)?) {
            (Some(left), Some(right)) => Ok(Type::Int(common(left, right))),
            _ => Ok(Type::Unknown),
        }
    }

    fn shift(&self, left: &Value, by: &Value) -> Result<Type, Box<Problem>> {
        // The result has the type of the left side alone.
        let int = left.int(self)?.map(promoted);
        by.int(self)?;
        let bits = int.map_or(64, |int| int.bits);
        match by.constant {
            Some(by) if (0..i128::from(bits)).contains(&by) => Ok(int.map_or(Type::Unknown, Type::Int)),
            Some(_) => {
                let label = format!("expected 0 to {}", bits - 1);
                Err(wrong(by.span, format!("the number has {bits} bits"), label))
            }
            None => Err(wrong(by.span, "numbers are shifted by constants only", "expected a constant")),
        }
    }

    fn divide(&self, operator: Binary, left: &Value, by: &Value) -> Result<Type, Box<Problem>> {
        let kind = self.arithmetic(left, by)?;
        let Some(divisor) = by.constant else {
            let title = "numbers are divided by constants only";
            let help = "log both numbers, and divide afterwards".to_owned();
            return Err(Problem::new(by.span, title, "expected a constant").help(help).into());
        };
        if divisor <= 0 {
            return Err(wrong(by.span, "a divisor must be above zero", "expected 1 or more"));
        }
        // The compiler divides constants itself, negative ones, too.
        let may_be_negative = left.constant.is_none() && matches!(left.kind, Type::Int(int) if int.is_signed);
        if may_be_negative {
            let title = format!("`{}` of a number that may be negative", operator.sign());
            let help =
                "programs in the kernel divide unsigned numbers only: write `u64(…)` if it is never negative";
            return Err(Box::new(Problem::new(left.span, title, "may be negative").help(help.to_owned())));
        }
        Ok(kind)
    }

    fn compare(&self, operator: Binary, left: &Value, right: &Value) -> Result<Type, Box<Problem>> {
        let is_equality = matches!(operator, Binary::Equal | Binary::Unequal);
        match (&left.kind, &right.kind) {
            (Type::Pointer(_), Type::Pointer(_) | Type::Unknown) | (Type::Unknown, Type::Pointer(_))
                if is_equality => {}
            // As in C, 0 is the null pointer.
            (Type::Pointer(_), _) if is_equality && right.constant == Some(0) => {}
            (_, Type::Pointer(_)) if is_equality && left.constant == Some(0) => {}
            (Type::Truth, _) | (_, Type::Truth) if !is_equality => {
                let side = if left.kind == Type::Truth { left } else { right };
                let title = "this is true or false: it cannot be compared by size";
                let help = "`a < b < c` is written `a < b && b < c`".to_owned();
                return Err(Problem::new(side.span, title, "expected a number").help(help).into());
            }
            _ => self.same_sign(left, right)?,
        }
        Ok(Type::Truth)
    }

    /// Refuses comparisons in which C would take a negative number for a large one.
    fn same_sign(&self, left: &Value, right: &Value) -> Result<(), Box<Problem>> {
        let (Some(left_int), Some(right_int)) = (left.int(self)?, right.int(self)?) else { return Ok(()) };
        if common(left_int, right_int).is_signed {
            return Ok(());
        }
        let (risky, other) = match () {
            () if may_be_negative(left, left_int) => (left, right),
            () if may_be_negative(right, right_int) => (right, left),
            () => return Ok(()),
        };
        let title = "a number that may be negative is compared with one that cannot";
        let problem = Problem::new(risky.span, title, "may be negative");
        let help = "C would take it as a large one: write `u64(…)` or `s64(…)` around one of them";
        Err(Box::new(problem.other(other.span, "never negative").help(help.to_owned())))
    }

    pub(super) fn choice(&self, [condition, yes, no]: [&Expr; 3], span: Span) -> ValueResult {
        let condition = self.value(condition)?.truth()?;
        let (yes, no) = (self.value(yes)?, self.value(no)?);
        let kind = match (&yes.kind, &no.kind) {
            (yes, no) if yes == no => yes.clone(),
            (Type::Unknown, _) | (_, Type::Unknown) => Type::Unknown,
            // Addresses of different types have no type in common.
            (Type::Pointer(_), Type::Pointer(_)) => Type::Pointer(None),
            _ => self.arithmetic(&yes, &no)?,
        };
        if matches!(kind, Type::Text(_) | Type::Record(_) | Type::Array(..) | Type::Other(_)) {
            let title = format!("this is {}: `?` chooses between numbers", self.describe(&kind));
            return Err(wrong(yes.span, title, "expected a number"));
        }
        Ok(Value::new(Node::Choice(condition.into(), yes.into(), no.into()), kind, span))
    }
}
