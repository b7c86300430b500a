//! The items of a file: `arch`, `event` and `at`.

use super::token::Token;
use super::{Parsed, Parser};
use crate::ast::{Action, Arch, Binding, Block, Event, Field, File, Item, Name, Noted, Notes, Point, Target};
use crate::limits::MAX_PROBLEMS;
use crate::problem::Problem;
use mete_base::nearest::nearest;

const ITEMS: [&str; 3] = ["arch", "event", "at"];

impl Parser<'_> {
    pub(super) fn file(&mut self) -> File {
        let mut parts = Vec::new();
        // Beyond the limit no problem is reported, so that the rest need not be read.
        while !self.is_at_end() && self.problems.len() < MAX_PROBLEMS {
            let begin = self.at;
            match self.noted(Self::item) {
                Ok(item) => parts.push(item),
                Err(_) => self.recover(begin),
            }
        }
        Block { parts, tail: self.tail() }
    }

    /// Continues at the next line that begins like an item. Remarks on the way belong to the item with the
    /// mistake, and are dropped with it.
    fn recover(&mut self, begin: usize) {
        self.at = self.at.max(begin);
        // At least one word further, because otherwise the same mistake would be found again.
        if self.at == begin {
            self.advance();
        }
        while !(self.is_at_end() || self.word().is_first && self.begins_an_item()) {
            self.advance();
        }
        while self.next_remark(|remark, at| remark.before < at).is_some() {}
    }

    /// Whether a keyword and a name follow. A field may be called `event`, too, but its type stands before it
    /// in the line.
    fn begins_an_item(&self) -> bool {
        let next = self.words.get(self.at + 1).map(|word| word.token);
        ITEMS.iter().any(|item| self.is_name(item)) && next == Some(Token::Name)
    }

    /// Whether a keyword, a name and a sign follow that no field has behind its name. Then the block before
    /// was not closed.
    pub(super) fn is_surely_an_item(&self) -> bool {
        let behind = self.words.get(self.at + 2).map(|word| &self.text[word.span.bytes()]);
        self.word().is_first && self.begins_an_item() && matches!(behind, Some("{" | ":"))
    }

    fn item(&mut self) -> Parsed<Item> {
        if self.take_name("arch") {
            return self.arch().map(Item::Arch);
        }
        if self.take_name("event") {
            return self.event().map(Item::Event);
        }
        if self.take_name("at") {
            return self.point().map(Item::Point);
        }
        let meant = nearest(self.text(), ITEMS).map(|item| format!("did you mean `{item}`?"));
        let title = format!("expected `arch`, `event` or `at`, found {}", self.found());
        self.report(Problem::new(self.span(), title, "an item begins here").help(meant))
    }

    fn arch(&mut self) -> Parsed<Arch> {
        let name = self.name("the name of an architecture")?;
        let bindings = self.block("the counters of an architecture", |parser| {
            let counter = parser.name("a counter, such as `counter0`, or `}`")?;
            let counts = parser.name("what the counter counts, such as `l2_cache_misses`")?;
            parser.take(";");
            Ok(Binding { counter, counts })
        })?;
        Ok(Arch { name, bindings })
    }

    fn event(&mut self) -> Parsed<Event> {
        let name = self.name("the name of an event")?;
        let fields = self.block("the fields of an event", Self::field)?;
        Ok(Event { name, fields })
    }

    fn field(&mut self) -> Parsed<Field> {
        let kind = self.name("a field, such as `int pid`, or `}`")?;
        if matches!(kind.text.as_str(), "struct" | "union" | "enum" | "const" | "unsigned" | "signed") {
            return self.report(two_words(&kind));
        }
        if self.is("*") {
            let label = "what it points to is gone when the log is read";
            let help = "log the address itself as `address`, or each value behind it as a field".to_owned();
            return self.report(Problem::new(self.span(), "a field cannot be a pointer", label).help(help));
        }
        let name = self.name("the name of the field")?;
        let letters = "how many letters the field has, such as `[16]`";
        let length = self.take("[").then(|| self.number(letters)).transpose()?;
        if length.is_some() {
            self.expect("]", "behind the length")?;
        }
        self.take(";");
        Ok(Field { kind, name, length })
    }

    fn point(&mut self) -> Parsed<Point> {
        let target = self.target()?;
        let when = self.take_name("when").then(|| self.expression()).transpose()?;
        let actions = if self.is("{") {
            self.block("what is logged", Self::action)?
        } else {
            let action = Noted { notes: Notes::default(), is: self.action()? };
            Block { parts: vec![action], tail: Vec::new() }
        };
        Ok(Point { target, when, actions })
    }

    fn target(&mut self) -> Parsed<Target> {
        let kind = self.name("a kind of point, such as `tp_btf`")?;
        self.expect(":", "behind the kind of point, as in `tp_btf:sched_switch`")?;
        let mut parts = vec![self.target_part()?];
        while self.take(":") {
            parts.push(self.target_part()?);
        }
        Ok(Target { kind, parts })
    }

    fn target_part(&mut self) -> Parsed<Name> {
        if self.word().token != Token::Text {
            return self.name("a name, or a text in quotes");
        }
        // The quotes around the text: the lexer leaves none within it.
        let text = self.text().trim_matches('"').to_owned();
        let span = self.span();
        self.advance();
        match text.chars().find(|letter| !matches!(letter, ' '..='~') || *letter == '\\') {
            Some(letter) => {
                let title = format!("`{letter}` has no place in a path or a symbol");
                let help = "printable letters of ASCII are allowed, without `\\`";
                self.report(Problem::new(span, title, "in here").help(help.to_owned()))
            }
            None if text.is_empty() => self.report(Problem::new(span, "a path or symbol is empty", "here")),
            None => Ok(Name { text, span }),
        }
    }

    fn action(&mut self) -> Parsed<Action> {
        let condition = self.take_name("if").then(|| self.expression()).transpose()?;
        if !self.take_name("log") {
            let expected = if condition.is_some() { "`log`" } else { "`log`, `if`, or `when` before them" };
            return self.refuse(expected);
        }
        let event = self.name("the name of an event")?;
        self.expect("(", "before the values of the event")?;
        let mut arguments = Vec::new();
        while !self.is(")") {
            arguments.push(self.expression()?);
            // A comma may stand behind the last value, too.
            if !self.take(",") && !self.is(")") {
                return self.refuse("`,` or `)` behind a value");
            }
        }
        self.advance();
        self.take(";");
        Ok(Action { condition, event, arguments })
    }
}

/// The problem of a field whose type has two words, as in C.
fn two_words(kind: &Name) -> Problem {
    let title = format!("`{}` is no type of a field", kind.text);
    let help = match kind.text.as_str() {
        "unsigned" => {
            "unsigned types are one word: `uchar`, `ushort`, `uint`, `ulong`, `ulonglong`, or `u8` to `u64`"
        }
        "signed" => "signed types are one word: `char`, `short`, `int`, `long`, `longlong`, or `s8` to `s64`",
        "enum" => "log an enumeration as `int`",
        "const" => "leave it out: what is logged does not change",
        _ => "a field is one number or text: log each part of a structure as a field of its own",
    };
    Problem::new(kind.span, title, "expected one word").help(help.to_owned())
}
