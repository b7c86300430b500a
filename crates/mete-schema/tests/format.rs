//! Formatting changes only spaces, and formatting again changes nothing.

#![allow(clippy::unwrap_used, reason = "a test may end so")]

use mete_schema::ast::{
    Action, Arch, Binary, Binding, Block, Event, Expr, ExprKind, Field, File, Item, Name, Noted, Notes,
    Number, Point, Target, Unary,
};
use mete_schema::{Schema, Source, Span, format::format, parse};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn name() -> impl Strategy<Value = Name> {
    "[A-Za-z_][A-Za-z0-9_]{0,7}".prop_map(|text| Name { text, span: Span::default() })
}

fn number() -> impl Strategy<Value = Number> {
    (any::<u64>(), any::<bool>()).prop_map(|(value, is_hexadecimal)| Number {
        value,
        is_hexadecimal,
        span: Span::default(),
    })
}

fn part() -> impl Strategy<Value = Name> {
    let quoted = "[ !#-\\[\\]-~]{1,12}".prop_map(|text| Name { text, span: Span::default() });
    prop_oneof![name(), quoted]
}

fn comment() -> impl Strategy<Value = String> {
    prop_oneof!["// [a-z{}/*]{0,8}", "# [a-z]{0,8}", "/\\* [a-z/\n]{0,8} \\*/"]
        .prop_map(|text| text.trim_end().to_owned())
}

fn notes() -> impl Strategy<Value = Notes> {
    let docs = vec("[a-z/*][a-z /*{}]{0,8}".prop_map(|text| text.trim_end().to_owned()), 0..3);
    let trail = option::of("// [a-z]{1,8}").prop_map(Vec::from_iter);
    // Documentation may begin with a slash: behind `/// ` it does not make a comment of the line.
    (vec(comment(), 0..3), docs, trail).prop_map(|(comments, docs, trail)| Notes { comments, docs, trail })
}

fn block<T: std::fmt::Debug + Clone>(part: impl Strategy<Value = T>) -> impl Strategy<Value = Block<T>> {
    let noted = (notes(), part).prop_map(|(notes, is)| Noted { notes, is });
    (vec(noted, 0..4), vec(comment(), 0..2)).prop_map(|(parts, tail)| Block { parts, tail })
}

fn expr() -> impl Strategy<Value = Expr> {
    let make = |kind| Expr { kind, span: Span::default() };
    let leaf = prop_oneof![
        number().prop_map(ExprKind::Number),
        name()
            .prop_filter("`log` ends an expression", |name| name.text != "log")
            .prop_map(|name| ExprKind::Name(name.text)),
    ];
    leaf.prop_map(make).prop_recursive(5, 24, 3, move |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        let unary = prop::sample::select(Unary::ALL.to_vec());
        let binary = prop::sample::select(Binary::ALL.to_vec());
        prop_oneof![
            (boxed(), name()).prop_map(|(base, name)| ExprKind::Member(base, name)),
            (boxed(), number()).prop_map(|(base, at)| ExprKind::Index(base, at)),
            (name(), boxed()).prop_map(|(kind, of)| ExprKind::Cast(kind, of)),
            (unary, boxed()).prop_map(|(operator, of)| ExprKind::Unary(operator, of)),
            (binary, boxed(), boxed())
                .prop_map(|(operator, left, right)| ExprKind::Binary(operator, left, right)),
            (boxed(), boxed(), boxed()).prop_map(|(condition, yes, no)| ExprKind::Choice(condition, yes, no)),
        ]
        .prop_map(make)
    })
}

fn item() -> impl Strategy<Value = Item> {
    let binding = (name(), name()).prop_map(|(counter, counts)| Binding { counter, counts });
    let is_type = |name: &Name| {
        !["struct", "union", "enum", "const", "unsigned", "signed", "event", "arch", "at"]
            .contains(&name.text.as_str())
    };
    let field = (name().prop_filter("a type", is_type), name(), option::of(number()));
    let field = field.prop_map(|(kind, name, length)| Field { kind, name, length });
    let action = (option::of(expr()), name(), vec(expr(), 0..3));
    let action = action.prop_map(|(condition, event, arguments)| Action { condition, event, arguments });
    let target = (name(), vec(part(), 1..4)).prop_map(|(kind, parts)| Target { kind, parts });
    let point = (target, option::of(expr()), block(action));
    prop_oneof![
        (name(), block(binding)).prop_map(|(name, bindings)| Item::Arch(Arch { name, bindings })),
        (name(), block(field)).prop_map(|(name, fields)| Item::Event(Event { name, fields })),
        point.prop_map(|(target, when, actions)| Item::Point(Point { target, when, actions })),
    ]
}

fn file() -> impl Strategy<Value = File> {
    block(item())
}

proptest! {
    #[test]
    fn klog_1_what_is_formatted_is_read_as_the_same_tree(file in file()) {
        let text = format(&file);
        let mut problems = Vec::new();
        let again = parse(0, &text, &mut problems);
        prop_assert!(problems.is_empty(), "{}\n{:?}", text, problems);
        prop_assert_eq!(&again, &file, "{}", text);
        prop_assert_eq!(format(&again), text);
    }

    #[test]
    fn klog_1_formatting_twice_is_formatting_once(text in "([a-z{}();:=+. \n]|event A \\{|int x|at b:c |log |// x\n|/// y\n|\"z\"){0,40}") {
        let mut problems = Vec::new();
        let file = parse(0, &text, &mut problems);
        if problems.is_empty() {
            let once = format(&file);
            prop_assert_eq!(format(&parse(0, &once, &mut problems)), once);
        }
    }

    #[test]
    fn klog_1_any_text_is_read_or_refused_with_a_place_in_it(text in "\\PC{0,200}") {
        let sources = [Source::new("any", text.as_str())];
        if let Err(problems) = Schema::read(&sources) {
            prop_assert!(!problems.0.is_empty());
            for problem in &problems.0 {
                prop_assert!(problem.span.end as usize <= text.len());
            }
            prop_assert!(problems.render(&sources, false).contains("error: "));
        }
    }
}

#[test]
fn klog_1_comments_stay_where_they_belong() {
    let written = "# A file.\n\n\n// Of an item.\nevent   A{ // of a field\nint pid; /* trailing */ // twice\n/// Documents.\n\
        uint x // x\n// at the end\n}\nat tp_btf:a /* inside */ log A( 1,\n // here\n 2 )\n// last\n";
    let file = parse(0, written, &mut Vec::new());
    let expected = "# A file.\n\n// Of an item.\nevent A {\n    // of a field\n    int pid /* trailing */ // twice\n    \
        /// Documents.\n    uint x // x\n    // at the end\n}\n\n/* inside */\n// here\nat tp_btf:a log A(1, 2)\n\n// last\n";
    assert_eq!(format(&file), expected);
}
