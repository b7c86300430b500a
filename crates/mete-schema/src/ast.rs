//! A schema file as it was written: its items, and the comments that belong to each.
//!
//! Two trees are equal if they have the same content: their spans are not compared. So a test can format a
//! tree, and compare it with what is parsed again: `parse(format(tree)) == tree`.

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

/// One list of operators: of each its name, how it is written, and how strongly it binds.
macro_rules! operators {
    ($(#[$about:meta])* $kind:ident: $($name:ident $sign:literal $strength:literal),* $(,)?) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "their signs say it")]
        pub enum $kind { $($name,)* }

        impl $kind {
            /// All of them.
            pub const ALL: [$kind; [$($strength),*].len()] = [$($kind::$name),*];

            /// How it is written.
            pub fn sign(self) -> &'static str {
                match self { $($kind::$name => $sign,)* }
            }

            /// How strongly it binds, as in C. An operator with a larger number binds first.
            pub fn strength(self) -> u8 {
                match self { $($kind::$name => $strength,)* }
            }
        }
    };
}

operators! {
    /// Operators with one operand.
    Unary: Negate "-" 11, Not "!" 11, Invert "~" 11,
}

operators! {
    /// Operators with two operands.
    Binary:
    Or "||" 1,
    And "&&" 2,
    BitOr "|" 3,
    BitXor "^" 4,
    BitAnd "&" 5,
    Equal "==" 6, Unequal "!=" 6,
    Less "<" 7, LessEqual "<=" 7, Greater ">" 7, GreaterEqual ">=" 7,
    ShiftLeft "<<" 8, ShiftRight ">>" 8,
    Add "+" 9, Subtract "-" 9,
    Multiply "*" 10, Divide "/" 10, Remainder "%" 10,
}

impl Binary {
    /// Whether it compares, so that its result is true or false.
    pub fn compares(self) -> bool {
        // The strengths of equality and of order.
        (6..=7).contains(&self.strength())
    }
}
