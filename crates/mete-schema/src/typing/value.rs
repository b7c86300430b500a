//! Names, members and numbers, with their types.

use crate::ast::{Binary, Expr, ExprKind, Name, Number, Unary};
use crate::kernel::{KernelTypes, Type, TypeId, Typed, record_of};
use crate::known::{ARGS, HERE, KNOWN, KnownValue};
use crate::problem::Problem;
use crate::schema::{Point, Schema, Target};
use crate::source::Span;
use crate::types::{FieldType, Int};
use mete_base::nearest;

/// An expression with its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// The kind of value, with its parts.
    pub node: Node,
    /// Its type.
    pub kind: Type,
    /// Where the expression stands.
    pub span: Span,
    /// The number that it is, if it is a constant.
    pub constant: Option<i128>,
}

/// The kinds of value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A number.
    Number(u64),
    /// An argument of the point.
    Argument(String),
    /// A value that every point has.
    KnownValue(KnownValue),
    /// A member of a structure, or of one that a pointer leads to.
    Member(Box<Value>, String),
    /// An element of an array.
    Index(Box<Value>, u64),
    /// The value as another type.
    Cast(FieldType, Box<Value>),
    /// An operator with one operand.
    Unary(Unary, Box<Value>),
    /// An operator with two operands.
    Binary(Binary, Box<Value>, Box<Value>),
    /// A condition, its value where it is true, and its value where it is false.
    Choice(Box<Value>, Box<Value>, Box<Value>),
}

pub(super) type ValueResult = Result<Value, Box<Problem>>;

impl Value {
    pub(crate) fn new(node: Node, kind: Type, span: Span) -> Value {
        Value { node, kind, span, constant: None }
    }

    /// Calls `visit` with the value and all its parts, the whole first.
    pub fn walk<'a>(&'a self, visit: &mut impl FnMut(&'a Value)) {
        visit(self);
        match &self.node {
            Node::Number(_) | Node::Argument(_) | Node::KnownValue(_) => {}
            Node::Member(of, _) | Node::Index(of, _) | Node::Cast(_, of) | Node::Unary(_, of) => {
                of.walk(visit)
            }
            Node::Binary(_, left, right) => [left, right].into_iter().for_each(|part| part.walk(visit)),
            Node::Choice(condition, yes, no) => {
                [condition, yes, no].into_iter().for_each(|part| part.walk(visit))
            }
        }
    }

    /// The values that it is made of.
    pub(crate) fn parts_mut(&mut self) -> Vec<&mut Value> {
        match &mut self.node {
            Node::Number(_) | Node::Argument(_) | Node::KnownValue(_) => Vec::new(),
            Node::Member(of, _) | Node::Index(of, _) | Node::Cast(_, of) | Node::Unary(_, of) => vec![of],
            Node::Binary(_, left, right) => vec![left, right],
            Node::Choice(condition, yes, no) => vec![condition, yes, no],
        }
    }

    /// The value as a condition.
    pub(super) fn truth(self) -> ValueResult {
        match self.kind {
            Type::Unknown | Type::Truth | Type::Int(_) | Type::Pointer(_) => Ok(self),
            _ => Err(wrong(self.span, "this is neither true nor false", "expected a number or a comparison")),
        }
    }
}

/// The names that an expression at a point can use.
pub(super) struct Scope<'a> {
    pub schema: &'a Schema,
    pub kernel: Option<&'a dyn KernelTypes>,
    pub point: &'a Point,
    /// The point's arguments; `None` where they are not known.
    pub arguments: Option<&'a [Typed]>,
}

pub(super) fn wrong(span: Span, title: impl Into<String>, label: impl Into<String>) -> Box<Problem> {
    Box::new(Problem::new(span, title, label))
}

impl Scope<'_> {
    pub(super) fn value(&self, expr: &Expr) -> ValueResult {
        match &expr.kind {
            ExprKind::Number(number) => Ok(literal(*number, expr.span)),
            ExprKind::Name(name) => self.name(name, expr.span),
            ExprKind::Member(base, name) => self.member(base, name, expr.span),
            ExprKind::Index(base, at) => self.index(base, *at, expr.span),
            ExprKind::Cast(kind, of) => self.cast(kind, of, expr.span),
            ExprKind::Unary(operator, of) => self.unary(*operator, self.value(of)?, expr.span),
            ExprKind::Binary(operator, left, right) => {
                self.binary(*operator, self.value(left)?, self.value(right)?, expr.span)
            }
            ExprKind::Choice(condition, yes, no) => self.choice([condition, yes, no], expr.span),
        }
    }

    fn argument(&self, name: &str) -> Option<&Typed> {
        self.arguments?.iter().find(|argument| argument.name == name)
    }

    fn name(&self, name: &str, span: Span) -> ValueResult {
        match (self.argument(name), KnownValue::by_name(name)) {
            (Some(_), Some(_)) => {
                let title =
                    format!("`{name}` is an argument of {}, and also known everywhere", self.point.target);
                let help = format!("write `{ARGS}.{name}` for the argument, `{HERE}.{name}` for the other");
                Err(Box::new(Problem::new(span, title, "which one?").help(help)))
            }
            (None, Some(known)) => self.known(known, name, span),
            (argument, None) => self.argument_value(argument, name, span),
        }
    }

    fn argument_value(&self, argument: Option<&Typed>, name: &str, span: Span) -> ValueResult {
        let kind = match argument {
            Some(argument) => argument.kind.clone(),
            // Where the arguments are not known, any name may be one.
            None if self.arguments.is_none() => Type::Unknown,
            None => return Err(self.no_name(name, span)),
        };
        Ok(Value::new(Node::Argument(name.to_owned()), kind, span))
    }

    fn no_name(&self, name: &str, span: Span) -> Box<Problem> {
        let arguments: Vec<_> =
            self.arguments.unwrap_or_default().iter().map(|argument| argument.name.as_str()).collect();
        let known = KNOWN.map(|(name, _)| name);
        let everything: Vec<_> = arguments.iter().copied().chain(known).collect();
        let help = match nearest::nearest(name, everything) {
            Some(near) => format!("did you mean `{near}`?"),
            None if arguments.is_empty() => {
                format!("it has no arguments; known everywhere: {}", nearest::list(&known))
            }
            None => format!(
                "its arguments: {}; known everywhere: {}",
                nearest::list(&arguments),
                nearest::list(&known)
            ),
        };
        let title = format!("{} has no argument `{name}`", self.point.target);
        Box::new(Problem::new(span, title, "nothing has this name here").help(help))
    }

    fn known(&self, known: KnownValue, name: &str, span: Span) -> ValueResult {
        if let KnownValue::Counter(number) = known
            && self.schema.bindings.iter().all(|binding| binding.number != number)
        {
            let help = format!("say what it counts: `arch any {{ {name} cycles }}`");
            let problem = Problem::new(span, format!("`{name}` is not bound"), "counts nothing");
            return Err(problem.help(help).into());
        }
        if matches!(self.point.target, Target::Probe(_)) {
            at_probe(known, name, span)?;
        }
        let kind = match known.int() {
            Some(int) => Type::Int(int),
            None if known == KnownValue::Comm => Type::Text(16),
            // Only `current` is left.
            None => self
                .kernel
                .and_then(|kernel| kernel.structure("task_struct"))
                .map_or(Type::Unknown, |id| Type::Pointer(Some(id))),
        };
        Ok(Value::new(Node::KnownValue(known), kind, span))
    }

    /// A member of a structure, or `args.x` and `here.x`, which are not members: the first is the argument
    /// `x`, the second the known value `x`. Where the point has an argument called `here`, `here.x` is a
    /// member of that. Where it has one called `args` and none called `x`, `args.x` is a member of that, too.
    fn member(&self, base: &Expr, name: &Name, span: Span) -> ValueResult {
        let is_argument = self.argument(&name.text).is_some() || self.argument(ARGS).is_none();
        if matches!(&base.kind, ExprKind::Name(base) if base == ARGS) && is_argument {
            return self.argument_value(self.argument(&name.text), &name.text, span);
        }
        if matches!(&base.kind, ExprKind::Name(base) if base == HERE) && self.argument(HERE).is_none() {
            let known = KnownValue::by_name(&name.text).ok_or_else(|| {
                let help = nearest::help(&name.text, KNOWN.map(|(name, _)| name), "known");
                let title = format!("there is no known value `{}`", name.text);
                Problem::new(name.span, title, "here").help(help)
            })?;
            return self.known(known, &name.text, span);
        }
        let base = self.value(base)?;
        let (record, kernel) = match (&base.kind, self.kernel) {
            // Without a kernel, no member can be checked.
            (Type::Unknown, _) | (_, None) => {
                return Ok(Value::new(Node::Member(base.into(), name.text.clone()), Type::Unknown, span));
            }
            (Type::Record(id), Some(kernel)) => (*id, kernel),
            (Type::Pointer(Some(to)), Some(kernel)) => match kernel.kind(*to) {
                Type::Record(id) => (id, kernel),
                _ => return Err(self.no_record(&base, name)),
            },
            _ => return Err(self.no_record(&base, name)),
        };
        let member = kernel.members(record).into_iter().find(|member| member.name == name.text);
        let kind = member.map(|member| member.kind).ok_or_else(|| no_member(kernel, record, name))?;
        Ok(Value::new(Node::Member(base.into(), name.text.clone()), kind, span))
    }

    fn no_record(&self, base: &Value, name: &Name) -> Box<Problem> {
        let title = format!("this is {}: it has no members", self.describe(&base.kind));
        let mut problem = Problem::new(base.span, title, format!("`{}` of what?", name.text));
        if base.kind == Type::Pointer(None) {
            problem = problem
                .help("the kernel does not say what it points to: only the address can be logged".to_owned());
        }
        Box::new(problem)
    }

    fn index(&self, base: &Expr, at: Number, span: Span) -> ValueResult {
        let base = self.value(base)?;
        let (kind, count) = match (&base.kind, self.kernel) {
            // Nothing is known of the array, so that no index is too large.
            (Type::Unknown, _) => (Type::Unknown, u32::MAX),
            (Type::Array(of, count), Some(kernel)) => (kernel.kind(*of), *count),
            // A letter is a `char`, which has a sign in schemata.
            (Type::Text(letters), _) => (Type::Int(Int::signed(8)), *letters),
            _ => {
                let title = format!("this is {}: it has no elements", self.describe(&base.kind));
                return Err(wrong(base.span, title, "expected an array"));
            }
        };
        if at.value >= u64::from(count) {
            let label = format!("expected 0 to {}", count.saturating_sub(1));
            return Err(wrong(at.span, format!("there is no element {}", at.value), label));
        }
        Ok(Value::new(Node::Index(base.into(), at.value), kind, span))
    }

    fn cast(&self, word: &Name, of: &Expr, span: Span) -> ValueResult {
        let Some(wanted) = FieldType::by_word(&word.text) else {
            let words = crate::types::WORDS.map(|(word, _)| word);
            let help = nearest::help(&word.text, words, "types")
                .unwrap_or_else(|| "there are no functions".to_owned());
            let title = format!("`{}` is no type", word.text);
            let problem = Problem::new(word.span, title, "expected a type before the parenthesis");
            return Err(problem.help(help).into());
        };
        let value = self.value(of)?;
        let kind = match (wanted, &value.kind) {
            (_, Type::Text(_) | Type::Record(_) | Type::Array(..) | Type::Other(_)) => {
                let title = format!("this is {}: it is no number", self.describe(&value.kind));
                return Err(wrong(value.span, title, "expected a number"));
            }
            (FieldType::Int(int), Type::Pointer(_)) if int.bits < 64 => {
                let title = format!("an address has 64 bits, `{}` has {}", word.text, int.bits);
                return Err(wrong(span, title, "this cuts it"));
            }
            (FieldType::Int(int), _) => Type::Int(int),
            (FieldType::Address, _) => Type::Pointer(None),
            // Only `bool` is left: no word means a text.
            _ => Type::Truth,
        };
        // A value that the cast changes is not treated as a constant.
        let constant = value.constant.filter(|constant| {
            let magnitude = constant.unsigned_abs() as u64;
            matches!(wanted, FieldType::Int(int) if int.holds_value(magnitude, *constant < 0))
        });
        Ok(Value { node: Node::Cast(wanted, value.into()), kind, span, constant })
    }

    /// A type in words, with its article.
    pub(super) fn describe(&self, kind: &Type) -> String {
        match kind {
            Type::Unknown => "of an unknown type".to_owned(),
            Type::Truth => "true or false".to_owned(),
            Type::Int(int) if int.bits % 8 == 0 => format!("a number of the type `{int}`"),
            Type::Int(int) => format!("a number of {} bits", int.bits),
            Type::Text(letters) => format!("a text of {letters} letters"),
            Type::Pointer(_) => match self.record_of(kind) {
                Some(id) => format!("a pointer to `{}`", self.structure_name(id)),
                None => "a pointer".to_owned(),
            },
            Type::Record(id) => format!("the structure `{}`", self.structure_name(*id)),
            Type::Array(_, count) => format!("an array of {count} elements"),
            Type::Other(what) => (*what).to_owned(),
        }
    }

    fn structure_name(&self, id: TypeId) -> String {
        self.kernel.map(|kernel| kernel.structure_name(id)).unwrap_or_default()
    }

    pub(super) fn record_of(&self, kind: &Type) -> Option<TypeId> {
        record_of(self.kernel?, kind)
    }

    pub(super) fn is_letter(&self, id: TypeId) -> bool {
        matches!(self.kernel.map(|kernel| kernel.kind(id)), Some(Type::Int(Int { bits: 8, .. })))
    }

    /// Help that names some members, for an author who has named the whole structure, or a pointer to it.
    pub(super) fn members_of(&self, kind: &Type) -> Option<String> {
        const SOME: usize = 8;
        let mut members = self.kernel?.members(self.record_of(kind)?);
        members.retain(|member| matches!(member.kind, Type::Int(_) | Type::Truth | Type::Text(_)));
        let names: Vec<_> = members.iter().take(SOME).map(|member| member.name.as_str()).collect();
        let more = if members.len() > SOME { ", …" } else { "" };
        (!names.is_empty()).then(|| format!("name one of its members: {}{more}", nearest::list(&names)))
    }
}

/// Refuses, at a probe point, values that a row of the log facility does not have.
fn at_probe(known: KnownValue, name: &str, span: Span) -> Result<(), Box<Problem>> {
    let (title, help) = match known {
        KnownValue::Cpu | KnownValue::Tgid | KnownValue::Time | KnownValue::Domain => return Ok(()),
        KnownValue::Current => ("a program cannot look into the kernel", None),
        KnownValue::Pid | KnownValue::Comm => {
            ("a row does not say which thread wrote it", Some("`tgid` is the process of the program"))
        }
        KnownValue::Counter(_) => ("counters are read in the kernel, and not at a `probe:`", None),
    };
    let problem = Problem::new(span, title, format!("there is no `{name}` at a `probe:`"));
    Err(Box::new(problem.help(help.map(str::to_owned))))
}

fn no_member(kernel: &dyn KernelTypes, record: TypeId, name: &Name) -> Box<Problem> {
    let members = kernel.members(record);
    let help = nearest::help(&name.text, members.iter().map(|member| member.name.as_str()), "its members");
    let title =
        format!("`{}` of {} has no member `{}`", kernel.structure_name(record), kernel.name(), name.text);
    Box::new(Problem::new(name.span, title, "no such member").help(help))
}

/// A number, with the first of the types `int`, `long` and `unsigned long` that holds it.
fn literal(number: Number, span: Span) -> Value {
    let types = [Int::signed(32), Int::signed(64)];
    let int = types.into_iter().find(|int| int.holds_value(number.value, false)).unwrap_or(Int::unsigned(64));
    Value {
        constant: Some(number.value.into()),
        ..Value::new(Node::Number(number.value), Type::Int(int), span)
    }
}
