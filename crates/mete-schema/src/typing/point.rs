//! The arguments of a point, and whether its values fit the fields of its events.

use super::value::{Scope, Value, wrong};
use super::{CheckedLog, CheckedPoint, Checker};
use crate::kernel::{Function, KernelTypes, Type, Typed};
use crate::problem::Problem;
use crate::program::{Program, ProgramError};
use crate::schema::{Event, Field, Log, Point, Target};
use crate::types::{FieldType, Int};
use mete_base::nearest;

/// The number of arguments that a call passes in registers.
const CALL_ARGUMENTS: usize = 6;
/// The most arguments that a static probe can have.
const USDT_ARGUMENTS: usize = 12;

impl Checker<'_> {
    pub(super) fn point(&mut self, point: &Point) -> CheckedPoint {
        if self.is_full() {
            // An empty point is never used: `check` returns the problems only.
            return CheckedPoint { arguments: None, when: None, logs: Vec::new() };
        }
        let arguments = match self.arguments(point) {
            Ok(arguments) => arguments,
            Err(problem) => {
                self.report(*problem);
                None
            }
        };
        let scope =
            Scope { schema: self.schema, kernel: self.kernel, point, arguments: arguments.as_deref() };
        let when = point.when.as_ref().and_then(|condition| self.truth(&scope, condition));
        let logs = point.logs.iter().map(|log| self.log(&scope, log)).collect();
        CheckedPoint { arguments, when, logs }
    }

    fn truth(&mut self, scope: &Scope<'_>, condition: &crate::ast::Expr) -> Option<Value> {
        let value = scope.value(condition).and_then(|value| value.truth());
        value.map_err(|problem| self.report(*problem)).ok()
    }

    fn log(&mut self, scope: &Scope<'_>, log: &Log) -> CheckedLog {
        let event = &self.schema.events[log.event];
        let condition = log.condition.as_ref().and_then(|condition| self.truth(scope, condition));
        let mut values = Vec::new();
        // There is one argument for each field: a schema with another number is refused when it is read.
        for (argument, field) in log.arguments.iter().zip(&event.fields) {
            if self.is_full() {
                break;
            }
            let value = scope.value(argument).and_then(|value| fits(value, field, event, scope));
            values.extend(value.map_err(|problem| self.report(*problem)));
        }
        CheckedLog { condition, values }
    }

    /// The arguments of a point; `None` where they are not known.
    fn arguments(&mut self, point: &Point) -> Result<Option<Vec<Typed>>, Box<Problem>> {
        // A program's types are not known: its values are words.
        match &point.target {
            Target::Uprobe { path, symbol } => {
                self.in_program(point, path, |program| program.offset(symbol))?;
                return Ok(Some(numbered_words(CALL_ARGUMENTS)));
            }
            Target::Uretprobe { path, symbol } => {
                whole_function(point, symbol)?;
                self.in_program(point, path, |program| program.offset(symbol))?;
                return Ok(Some(vec![word("retval")]));
            }
            Target::Usdt { path, provider, name } => {
                let count = self.in_program(point, path, |program| program.arguments_of(provider, name))?;
                return Ok(Some(numbered_words(count.unwrap_or(USDT_ARGUMENTS).min(USDT_ARGUMENTS))));
            }
            Target::Probe(_) => {
                let correspondent = Typed::new("correspondent", Type::Int(Int::unsigned(16)));
                return Ok(Some(vec![word("value"), correspondent]));
            }
            _ => {}
        }
        let Some(kernel) = self.kernel else { return Ok(None) };
        match &point.target {
            Target::TpBtf(name) | Target::RawTracepoint(name) => match kernel.tracepoint(name) {
                None => Err(no_tracepoint(point, kernel, name)),
                found => Ok(found),
            },
            Target::Tracepoint { group, name } => self.record(point, group, name),
            Target::Fentry(name) | Target::Kprobe(name) => {
                self.function(point, name, |function| function.arguments)
            }
            Target::Fexit(name) => self.function(point, name, |function| {
                let result = Typed::new("retval", function.result);
                function.arguments.into_iter().chain([result]).collect()
            }),
            _ => Ok(None),
        }
    }

    /// Asks a program of the machine that the schema is checked for; `None` if that machine's programs are
    /// not known.
    fn in_program<T>(
        &self,
        point: &Point,
        path: &str,
        ask: impl FnOnce(&Program) -> Result<T, ProgramError>,
    ) -> Result<Option<T>, Box<Problem>> {
        let Some(program) = self.kernel.and_then(|kernel| kernel.program(path)) else { return Ok(None) };
        program.and_then(|program| ask(&program)).map(Some).map_err(|error| {
            Box::new(Problem::new(point.span, error.to_string(), "no such place").help(error.help()))
        })
    }

    /// The fields of a tracepoint's record.
    fn record(&mut self, point: &Point, group: &str, name: &str) -> Result<Option<Vec<Typed>>, Box<Problem>> {
        let Some(kernel) = self.kernel else { return Ok(None) };
        match kernel.record(group, name) {
            Ok(None) => Err(no_tracepoint(point, kernel, &format!("{group}:{name}"))),
            Ok(found) => Ok(found),
            Err(reason) => {
                self.unchecked.push(format!("{} was not checked: {reason}", point.target));
                Ok(None)
            }
        }
    }

    fn function(
        &self,
        point: &Point,
        name: &str,
        arguments: impl Fn(Function) -> Vec<Typed>,
    ) -> Result<Option<Vec<Typed>>, Box<Problem>> {
        let Some(kernel) = self.kernel else { return Ok(None) };
        match kernel.function(name) {
            Some(function) => Ok(Some(arguments(function))),
            None => Err(no_function(point, kernel, name)),
        }
    }
}

/// An argument of 64 bits.
fn word(name: impl Into<String>) -> Typed {
    Typed::new(name, Type::Int(Int::unsigned(64)))
}

/// `arg0` and so on.
fn numbered_words(count: usize) -> Vec<Typed> {
    (0..count).map(|nth| word(format!("arg{nth}"))).collect()
}

fn whole_function(point: &Point, symbol: &str) -> Result<(), Box<Problem>> {
    if Program::is_whole(symbol) {
        return Ok(());
    }
    let title = format!("`{symbol}` is a place within a function, which returns as a whole");
    Err(wrong(point.span, title, "expected the function alone"))
}

fn no_tracepoint(point: &Point, kernel: &dyn KernelTypes, name: &str) -> Box<Problem> {
    // The known names are without their groups.
    let plain = name.rsplit(':').next().unwrap_or(name);
    let known = kernel.tracepoints();
    let help = nearest::nearest(plain, known.iter().map(String::as_str)).map(|near| match near {
        // The name is right, so that the group must be wrong.
        near if near == plain => "a tracepoint of that name belongs to another group".to_owned(),
        near => format!("did you mean `{near}`?"),
    });
    let title = format!("{} has no tracepoint `{name}`", kernel.name());
    Problem::new(point.span, title, "no such tracepoint").help(help).into()
}

fn no_function(point: &Point, kernel: &dyn KernelTypes, name: &str) -> Box<Problem> {
    let known = kernel.functions();
    let near = nearest::nearest(name, known.iter().map(String::as_str));
    let help = near.map_or_else(
        || "a function that the compiler inlined everywhere is not there".to_owned(),
        |near| format!("did you mean `{near}`?"),
    );
    let title = format!("{} has no function `{name}`", kernel.name());
    Problem::new(point.span, title, "no such function").help(help).into()
}

/// The value itself, if it fits its field without loss; otherwise the problem.
fn fits(value: Value, field: &Field, event: &Event, scope: &Scope<'_>) -> Result<Value, Box<Problem>> {
    let does_fit = match (&value.kind, field.kind) {
        // Without a kernel, no type is known, and nothing can be refused.
        (Type::Unknown, _) | (Type::Truth, FieldType::Bool | FieldType::Int(_)) => true,
        (Type::Int(int), FieldType::Int(wanted)) => match value.constant {
            // The cast cuts nothing: a constant lies between the least `s64` and the largest `u64`.
            Some(constant) => wanted.holds_value(constant.unsigned_abs() as u64, constant < 0),
            None => wanted.holds(*int),
        },
        (Type::Int(int), FieldType::Bool) => {
            // A bit field of one bit is a truth value.
            *int == Int::unsigned(1) || matches!(value.constant, Some(0 | 1))
        }
        (Type::Int(int), FieldType::Address) => *int == Int::unsigned(64),
        (Type::Pointer(_), FieldType::Address) => true,
        (Type::Pointer(_), FieldType::Int(wanted)) => wanted == Int::unsigned(64),
        (Type::Text(letters), FieldType::Text(wanted)) => *letters <= u32::from(wanted),
        // The text behind an address is copied up to its end, and cut to the field.
        (Type::Pointer(Some(to)), FieldType::Text(_)) => scope.is_letter(*to),
        _ => false,
    };
    if does_fit { Ok(value) } else { Err(misfit(&value, field, event, scope)) }
}

fn misfit(value: &Value, field: &Field, event: &Event, scope: &Scope<'_>) -> Box<Problem> {
    let what = value.constant.map_or_else(|| scope.describe(&value.kind), |constant| constant.to_string());
    let shown = field.shown();
    let title = format!("`{}.{}` is `{shown}`, and this is {what}", event.name, field.name);
    let problem = Problem::new(value.span, title, format!("expected what fits `{shown}`"));
    Box::new(problem.help(remedy(value, field, scope)))
}

/// What the author can do about a value that does not fit.
fn remedy(value: &Value, field: &Field, scope: &Scope<'_>) -> Option<String> {
    match (&value.kind, field.kind) {
        (Type::Int(_), FieldType::Int(_)) if value.constant.is_some() => {
            Some("take a larger type for the field".to_owned())
        }
        (Type::Int(int), FieldType::Int(wanted)) => {
            let loses =
                if int.bits > wanted.bits { "cuts it" } else { "takes a negative one as a large one" };
            let better = crate::types::WORDS
                .iter()
                .find(|(_, kind)| matches!(kind, FieldType::Int(it) if it.holds(*int)));
            let better = better.map_or(String::new(), |(word, _)| format!("make the field `{word}`, or "));
            Some(format!("{better}write `{}(…)`, which {loses}", field.word))
        }
        (Type::Int(_), FieldType::Bool) => Some("write `… != 0`".to_owned()),
        (Type::Int(_), FieldType::Address) => Some("write `u64(…)` if it is an address".to_owned()),
        (Type::Record(_), _) => scope.members_of(&value.kind),
        (Type::Pointer(_), _) if scope.record_of(&value.kind).is_some() => scope.members_of(&value.kind),
        (Type::Pointer(_), _) => Some("an address fits `address`".to_owned()),
        (Type::Text(letters), FieldType::Text(_)) => {
            Some(format!("make the field `char {}[{letters}]`", field.name))
        }
        (Type::Text(letters), _) => Some(format!("a text fits `char {}[{letters}]`", field.name)),
        _ => None,
    }
}
