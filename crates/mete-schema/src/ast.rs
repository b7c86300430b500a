//! A schema file as it was written: its items, and the comments that belong to each.
//!
//! Two trees are equal if they have the same content: their spans are not compared. So a test can format a tree, and
//! compare it with what is parsed again: `parse(format(tree)) == tree`.

use crate::source::Span;

/// The comments and the documentation that belong to a piece of a schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Comments before the piece or inside it, with their markers. An empty string is an empty line.
    pub comments: Vec<String>,
    /// The lines of the piece's documentation, without their markers.
    pub docs: Vec<String>,
    /// Comments behind the piece in the same line.
    pub trail: Vec<String>,
}

/// A piece and its notes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noted<T> {
    /// The comments and the documentation of the piece.
    pub notes: Notes,
    /// The piece.
    pub is: T,
}

/// A block of pieces, with the comments before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block<T> {
    /// The pieces, in their order.
    pub parts: Vec<Noted<T>>,
    /// Comments behind the last one.
    pub tail: Vec<String>,
}

/// A schema file.
pub type File = Block<Item>;

/// What can stand in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// `arch NAME { counter0 EVENT }`
    Arch(Arch),
    /// `event NAME { type field }`
    Event(Event),
    /// `at POINT log EVENT(…)`
    Point(Point),
}

/// A word that the author has chosen, and where it stands.
#[derive(Clone, Debug)]
pub struct Name {
    /// The word.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        self.text == other.text
    }
}

impl Eq for Name {}

/// Counters of one architecture (paper §4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arch {
    /// The architecture's name.
    pub name: Name,
    /// What each counter counts there.
    pub bindings: Block<Binding>,
}

/// `counter0 l2_cache_misses`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The virtual counter.
    pub counter: Name,
    /// What it counts.
    pub counts: Name,
}

/// An event and its data (paper §4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its name.
    pub name: Name,
    /// Its fields, in the order of the arguments.
    pub fields: Block<Field>,
}

/// `type name` or `char name[16]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The type's word.
    pub kind: Name,
    /// Its name.
    pub name: Name,
    /// The number of elements, if the field is an array.
    pub length: Option<Number>,
}

/// Where events are logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// `tp_btf:sched_switch`
    pub target: Target,
    /// The condition under which the point logs anything.
    pub when: Option<Expr>,
    /// What is logged, in this order.
    pub actions: Block<Action>,
}

/// `tp_btf:sched_switch`: words or quoted texts between colons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The kind of point.
    pub kind: Name,
    /// The parts behind the kind, which name the place.
    pub parts: Vec<Name>,
}

/// `if CONDITION log EVENT(ARGUMENTS)`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// The condition under which the event is logged.
    pub condition: Option<Expr>,
    /// The event.
    pub event: Name,
    /// A value for each field of the event.
    pub arguments: Vec<Expr>,
}

/// A number, and whether it was written in hexadecimal.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// Its value.
    pub value: u64,
    /// Whether it was written as `0x…`.
    pub is_hexadecimal: bool,
    /// Where it stands.
    pub span: Span,
}

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        (self.value, self.is_hexadecimal) == (other.value, other.is_hexadecimal)
    }
}

impl Eq for Number {}

/// An expression over the arguments of a point.
#[derive(Clone, Debug)]
pub struct Expr {
    /// The kind of expression, with its parts.
    pub kind: ExprKind,
    /// Where it stands.
    pub span: Span,
}

impl PartialEq for Expr {
    fn eq(&self, other: &Expr) -> bool {
        self.kind == other.kind
    }
}

impl Eq for Expr {}

/// The kinds of expression; they mean what they mean in C.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExprKind {
    /// `0x10`
    Number(Number),
    /// `prev`
    Name(String),
    /// `prev.pid` or `prev->pid`
    Member(Box<Expr>, Name),
    /// `comm[0]`
    Index(Box<Expr>, Number),
    /// `u32(x)`: the value as this type.
    Cast(Name, Box<Expr>),
    /// `!x`
    Unary(Unary, Box<Expr>),
    /// `x + y`
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// `c ? x : y`
    Choice(Box<Expr>, Box<Expr>, Box<Expr>),
}

/// Operators with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// `-`
    Negate,
    /// `!`
    Not,
    /// `~`
    Invert,
}

impl Unary {
    /// All of them.
    pub const ALL: [Unary; 3] = [Unary::Negate, Unary::Not, Unary::Invert];

    /// How it is written.
    pub fn sign(self) -> &'static str {
        match self {
            Unary::Negate => "-",
            Unary::Not => "!",
            Unary::Invert => "~",
        }
    }
}

/// Operators with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their signs say it")]
pub enum Binary {
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Binary {
    /// All of them.
    pub const ALL: [Binary; 18] = [
        Binary::Or,
        Binary::And,
        Binary::BitOr,
        Binary::BitXor,
        Binary::BitAnd,
        Binary::Equal,
        Binary::Unequal,
        Binary::Less,
        Binary::LessEqual,
        Binary::Greater,
        Binary::GreaterEqual,
        Binary::ShiftLeft,
        Binary::ShiftRight,
        Binary::Add,
        Binary::Subtract,
        Binary::Multiply,
        Binary::Divide,
        Binary::Remainder,
    ];

    /// How it is written.
    pub fn sign(self) -> &'static str {
        match self {
            Binary::Or => "||",
            Binary::And => "&&",
            Binary::BitOr => "|",
            Binary::BitXor => "^",
            Binary::BitAnd => "&",
            Binary::Equal => "==",
            Binary::Unequal => "!=",
            Binary::Less => "<",
            Binary::LessEqual => "<=",
            Binary::Greater => ">",
            Binary::GreaterEqual => ">=",
            Binary::ShiftLeft => "<<",
            Binary::ShiftRight => ">>",
            Binary::Add => "+",
            Binary::Subtract => "-",
            Binary::Multiply => "*",
            Binary::Divide => "/",
            Binary::Remainder => "%",
        }
    }

    /// How strongly it binds, as in C. An operator with a larger number binds first.
    pub fn strength(self) -> u8 {
        match self {
            Binary::Or => 1,
            Binary::And => 2,
            Binary::BitOr => 3,
            Binary::BitXor => 4,
            Binary::BitAnd => 5,
            Binary::Equal | Binary::Unequal => 6,
            Binary::Less | Binary::LessEqual | Binary::Greater | Binary::GreaterEqual => 7,
            Binary::ShiftLeft | Binary::ShiftRight => 8,
            Binary::Add | Binary::Subtract => 9,
            Binary::Multiply | Binary::Divide | Binary::Remainder => 10,
        }
    }

    /// Whether it compares, so that its result is true or false.
    pub fn compares(self) -> bool {
        // The strengths of equality and of order.
        (6..=7).contains(&self.strength())
    }
}
