//! The canonical form of a file: one statement in each line, indented by four spaces, with all comments.

use std::fmt::Write;

use crate::ast::{Action, Block, Expr, ExprKind, Field, File, Item, Noted, Notes, Number, Point, Target};

/// The file in its canonical form. Formatting that again changes nothing.
pub fn format(file: &File) -> String {
    let mut text = String::new();
    for (nth, item) in file.parts.iter().enumerate() {
        if nth > 0 {
            text.push('\n');
        }
        before(&mut text, &item.notes, "");
        self::item(&mut text, &item.is);
        behind(&mut text, &item.notes);
    }
    if !file.parts.is_empty() && !file.tail.is_empty() {
        text.push('\n');
    }
    lines(&mut text, &file.tail, "");
    text
}

const INDENT: &str = "    ";

fn lines(text: &mut String, comments: &[String], indent: &str) {
    for comment in comments {
        // An empty line has no indentation.
        let _ = writeln!(text, "{}", format!("{indent}{comment}").trim_end());
    }
}

fn before(text: &mut String, notes: &Notes, indent: &str) {
    lines(text, &notes.comments, indent);
    for doc in &notes.docs {
        let space = if doc.is_empty() { "" } else { " " };
        let _ = writeln!(text, "{indent}///{space}{doc}");
    }
}

fn behind(text: &mut String, notes: &Notes) {
    for comment in &notes.trail {
        let _ = write!(text, " {comment}");
    }
    text.push('\n');
}

fn item(text: &mut String, item: &Item) {
    match item {
        Item::Arch(arch) => {
            let _ = write!(text, "arch {} ", arch.name.text);
            block(text, &arch.bindings, |binding| {
                format!("{} {}", binding.counter.text, binding.counts.text)
            });
        }
        Item::Event(event) => {
            let _ = write!(text, "event {} ", event.name.text);
            block(text, &event.fields, field);
        }
        Item::Point(point) => self::point(text, point),
    }
}

fn block<T>(text: &mut String, block: &Block<T>, statement: impl Fn(&T) -> String) {
    text.push_str("{\n");
    for Noted { notes, is } in &block.parts {
        before(text, notes, INDENT);
        let _ = write!(text, "{INDENT}{}", statement(is));
        behind(text, notes);
    }
    lines(text, &block.tail, INDENT);
    text.push('}');
}

fn field(field: &Field) -> String {
    let length = field.length.map(|length| format!("[{}]", number(length))).unwrap_or_default();
    format!("{} {}{length}", field.kind.text, field.name.text)
}

fn point(text: &mut String, point: &Point) {
    let _ = write!(text, "at {}", target(&point.target));
    if let Some(condition) = &point.when {
        let _ = write!(text, " when {}", expression(condition));
    }
    match point.actions.parts.as_slice() {
        // A single action without comments needs no block.
        [one] if one.notes == Notes::default() && point.actions.tail.is_empty() => {
            // `text` is the whole file so far: only its last line counts.
            let short = format!("{text} {}", action(&one.is));
            let width = short.lines().last().map_or(0, |line| line.chars().count());
            let separator = if width > 100 { "\n    " } else { " " };
            let _ = write!(text, "{separator}{}", action(&one.is));
        }
        _ => {
            text.push(' ');
            block(text, &point.actions, action);
        }
    }
}

/// `kind:part:part`. A part that is not a name stands in quotes.
pub fn target(target: &Target) -> String {
    let mut text = target.kind.text.clone();
    for part in &target.parts {
        match is_name(&part.text) {
            true => write!(text, ":{}", part.text),
            // The parser refuses quotes in quotes, so that nothing needs an escape.
            false => write!(text, ":\"{}\"", part.text),
        }
        .unwrap_or_default();
    }
    text
}

/// Whether a text is a C identifier.
pub fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    let begins = letters.next().is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '_');
    // A longer text is refused as a name, and must stay in quotes.
    begins
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && text.len() <= crate::limits::MAX_NAME_LETTERS
}

fn action(action: &Action) -> String {
    let arguments: Vec<_> = action.arguments.iter().map(expression).collect();
    let log = format!("log {}({})", action.event.text, arguments.join(", "));
    match &action.condition {
        Some(condition) => format!("if {} {log}", expression(condition)),
        None => log,
    }
}

fn number(number: Number) -> String {
    if number.is_hexadecimal { format!("{:#x}", number.value) } else { number.value.to_string() }
}

/// An expression with only those parentheses that it needs.
pub fn expression(expr: &Expr) -> String {
    match &expr.kind {
        ExprKind::Number(it) => number(*it),
        ExprKind::Name(name) => name.clone(),
        ExprKind::Member(base, name) => format!("{}.{}", inner(base, POSTFIX), name.text),
        ExprKind::Index(base, at) => format!("{}[{}]", inner(base, POSTFIX), number(*at)),
        ExprKind::Cast(kind, of) => format!("{}({})", kind.text, expression(of)),
        ExprKind::Unary(operator, of) => format!("{}{}", operator.sign(), inner(of, operator.strength())),
        ExprKind::Binary(operator, left, right) => {
            let strength = operator.strength();
            // Operators of the same strength bind to the left: `a - (b - c)` needs its parentheses.
            format!("{} {} {}", inner(left, strength), operator.sign(), inner(right, strength + 1))
        }
        ExprKind::Choice(condition, yes, no) => {
            // Only another choice needs parentheses as a condition.
            format!("{} ? {} : {}", inner(condition, 1), expression(yes), expression(no))
        }
    }
}

/// How strongly operators behind an operand bind: more strongly than all others.
const POSTFIX: u8 = 12;

/// An operand of an operator that binds with this strength, in parentheses if it needs them.
fn inner(expr: &Expr, strength: u8) -> String {
    let own = match &expr.kind {
        ExprKind::Choice(..) => 0,
        ExprKind::Binary(operator, ..) => operator.strength(),
        ExprKind::Unary(operator, _) => operator.strength(),
        // Names, numbers, members and casts hold together by themselves.
        _ => u8::MAX,
    };
    let text = expression(expr);
    if own < strength { format!("({text})") } else { text }
}
