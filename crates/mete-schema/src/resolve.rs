//! Turns trees into a schema: looks up each name, and lays out the record of each event. Expressions are left
//! to [`typing`](crate::typing), which may know the kernel.

use std::collections::HashMap;

use crate::ast::{self, File, Item, Name, Noted};
use crate::counter;
use crate::layout::{FIRST_EVENT, OWN_EVENTS, place};
use crate::limits::{
    MAX_COUNTERS, MAX_EVENTS, MAX_FIELDS, MAX_LOGS_OF_A_PLACE, MAX_LOGS_OF_A_POINT, MAX_POINTS, MAX_PROBLEMS,
    MAX_RECORD_BYTES,
};
use crate::problem::Problem;
use crate::schema::{Binding, Event, Field, Log, Point, Schema, Target};
use crate::source::Span;
use crate::target;
use crate::types::{self, FieldType};
use mete_base::nearest;

/// The schema that these files form together.
pub fn resolve(files: &[File], problems: &mut Vec<Problem>) -> Schema {
    let mut resolver = Resolver { events: HashMap::new(), bound: HashMap::new(), problems };
    let mut schema = Schema { bindings: Vec::new(), events: Vec::new(), points: Vec::new() };
    for item in items(files) {
        match &item.is {
            Item::Arch(arch) => schema.bindings.extend(resolver.arch(arch)),
            Item::Event(event) => {
                schema.events.extend(resolver.event(event, docs(&item.notes), schema.events.len()))
            }
            Item::Point(_) => {}
        }
    }
    // A second pass, because a point may stand before its events, even in another file.
    for item in items(files) {
        if let Item::Point(point) = &item.is {
            schema.points.extend(resolver.point(point, docs(&item.notes), &schema.events));
        }
    }
    resolver.limit(schema.points.len(), MAX_POINTS, "points", schema.points.last().map(|point| point.span));
    resolver.places(&schema.points);
    schema
}

fn items(files: &[File]) -> impl Iterator<Item = &Noted<Item>> {
    files.iter().flat_map(|file| &file.parts)
}

/// Documentation as one text.
fn docs(notes: &ast::Notes) -> String {
    notes.docs.join("\n").trim().to_owned()
}

struct Resolver<'a> {
    /// Where each event was defined, even one with mistakes.
    events: HashMap<String, Span>,
    /// Where each counter of each architecture was bound.
    bound: HashMap<(String, u64), Span>,
    problems: &'a mut Vec<Problem>,
}

impl Resolver<'_> {
    fn report(&mut self, problem: Problem) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        }
    }

    /// Whether no further problem will be reported. Then the search for the nearest name, which takes long,
    /// would be wasted.
    fn is_full(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }

    fn limit(&mut self, there: usize, most: usize, what: &str, span: Option<Span>) {
        if let Some(span) = span.filter(|_| there > most) {
            let title = format!("the schema has {there} {what}; at most {most} are allowed");
            self.report(Problem::new(span, title, "the last one"));
        }
    }

    /// Checks that the events that all points of a place log fit into one program. Probe points are exempt,
    /// because nothing is compiled for them.
    fn places(&mut self, points: &[Point]) {
        let mut logs: HashMap<&Target, usize> = HashMap::new();
        for point in points.iter().filter(|point| !matches!(point.target, Target::Probe(_))) {
            let there = logs.entry(&point.target).or_default();
            let before = std::mem::replace(there, *there + point.logs.len());
            // Reported once, at the point that goes beyond the limit.
            if before <= MAX_LOGS_OF_A_PLACE && *there > MAX_LOGS_OF_A_PLACE {
                let title = format!("more than {MAX_LOGS_OF_A_PLACE} events are logged at {}", point.target);
                let help = "one program logs all that is logged at a place: log fewer events, or some of them elsewhere";
                self.report(Problem::new(point.span, title, "too many with these").help(help.to_owned()));
            }
        }
    }

    fn arch(&mut self, arch: &ast::Arch) -> Vec<Binding> {
        let parts = &arch.bindings.parts;
        parts.iter().filter_map(|part| self.binding(arch, &part.is, docs(&part.notes))).collect()
    }

    fn binding(&mut self, arch: &ast::Arch, binding: &ast::Binding, docs: String) -> Option<Binding> {
        if self.is_full() {
            return None;
        }
        let number = self.counter_number(&binding.counter)?;
        // Names of architectures are compared without regard to case, as in `bindings_for`.
        let key = (arch.name.text.to_lowercase(), number);
        if let Some(first) = self.bound.insert(key, binding.counter.span) {
            let title = format!("`{}` of `{}` is bound twice", binding.counter.text, arch.name.text);
            self.report(Problem::new(binding.counter.span, title, "here again").other(first, "here first"));
        }
        let name = &binding.counts;
        let Some(counter) = counter::by_name(&name.text) else {
            let known = counter::COUNTERS.iter().map(|counter| counter.name);
            let help = nearest::help(&name.text, known, "counters").unwrap_or_else(|| {
                format!("the well-known ones: {}", nearest::list(&counter::COUNTERS.map(|it| it.name)))
            });
            let title = format!("there is no counter `{}`", name.text);
            self.report(Problem::new(name.span, title, "expected a well-known name").help(help));
            return None;
        };
        // The number is less than MAX_COUNTERS.
        Some(Binding { arch: arch.name.text.clone(), number: number as u8, counter, docs })
    }

    fn counter_number(&mut self, name: &Name) -> Option<u64> {
        let number = counter::number(&name.text).filter(|number| *number < MAX_COUNTERS);
        if number.is_none() {
            let title = format!("`{}` is no virtual counter", name.text);
            let label = format!("expected `counter0` to `counter{}`", MAX_COUNTERS - 1);
            self.report(Problem::new(name.span, title, label));
        }
        number
    }

    fn event(&mut self, event: &ast::Event, docs: String, nth: usize) -> Option<Event> {
        self.event_name(&event.name);
        self.limit(nth + 1, MAX_EVENTS, "events", Some(event.name.span));
        let fields = self.fields(event);
        // A field with a mistake is left out, so that the size may be too small; the schema is refused in any
        // case.
        let kinds: Vec<_> = fields.iter().map(|field| field.kind).collect();
        let layout = place(&kinds);
        if layout.size > MAX_RECORD_BYTES {
            let title = format!("a record of `{}` has {} bytes", event.name.text, layout.size);
            let label = format!("at most {MAX_RECORD_BYTES} are allowed, 16 of them for the header");
            self.report(Problem::new(event.name.span, title, label).help(largest(&fields)));
        }
        // An event beyond the limit is not kept, so that the number always fits.
        let id = u16::try_from(nth).ok()?.checked_add(FIRST_EVENT)?;
        let (name, span) = (event.name.text.clone(), event.name.span);
        (nth < MAX_EVENTS).then_some(Event { id, name, docs, fields, layout, span })
    }

    fn event_name(&mut self, name: &Name) {
        self.usable(name);
        if OWN_EVENTS.contains(&name.text.as_str()) {
            let title = format!("`{}` is an event of the recorder", name.text);
            self.report(Problem::new(name.span, title, "choose another name"));
        }
        if let Some(first) = self.events.insert(name.text.clone(), name.span) {
            let title = format!("there are two events `{}`", name.text);
            self.report(Problem::new(name.span, title, "here again").other(first, "here first"));
        }
    }

    fn fields(&mut self, event: &ast::Event) -> Vec<Field> {
        let mut seen: HashMap<&str, Span> = HashMap::new();
        let mut fields = Vec::new();
        for part in &event.fields.parts {
            let name = &part.is.name;
            if let Some(first) = seen.insert(&name.text, name.span) {
                let title = format!("`{}` has two fields `{}`", event.name.text, name.text);
                self.report(Problem::new(name.span, title, "here again").other(first, "here first"));
            }
            fields.extend(self.field(&part.is, docs(&part.notes)));
        }
        let there = event.fields.parts.len();
        if there > MAX_FIELDS {
            let title = format!("`{}` has {there} fields", event.name.text);
            self.report(Problem::new(event.name.span, title, format!("at most {MAX_FIELDS} are allowed")));
        }
        fields
    }

    fn field(&mut self, field: &ast::Field, docs: String) -> Option<Field> {
        if self.is_full() {
            return None;
        }
        self.usable(&field.name);
        if field.name.text == "header" {
            let problem =
                Problem::new(field.name.span, "a field cannot be called `header`", "choose another name");
            let help = "each record has a `header` already: its type, serial number and time stamp";
            self.report(problem.help(help.to_owned()));
        }
        let word = self.type_word(&field.kind)?;
        let kind = match field.length {
            Some(length) => self.text(&field.kind, length)?,
            None => FieldType::by_word(word)?,
        };
        Some(Field { name: field.name.text.clone(), word, kind, docs })
    }

    fn type_word(&mut self, kind: &Name) -> Option<&'static str> {
        let words = types::WORDS.map(|(word, _)| word);
        let word = words.into_iter().find(|word| *word == kind.text);
        if word.is_none() {
            let help = match types::other_word(&kind.text) {
                Some(help) => help.to_owned(),
                None => nearest::help(&kind.text, words, "types")
                    .unwrap_or_else(|| format!("the types: {}", nearest::list(&words))),
            };
            let title = format!("there is no type `{}`", kind.text);
            self.report(Problem::new(kind.span, title, "expected the type of a field").help(help));
        }
        word
    }

    fn text(&mut self, kind: &Name, length: ast::Number) -> Option<FieldType> {
        if kind.text != types::LETTER {
            let title = format!("an array of `{}`", kind.text);
            let problem = Problem::new(kind.span, title, "only `char` can be an array");
            self.report(problem.help("make each number a field of its own".to_owned()));
            return None;
        }
        let most = (MAX_RECORD_BYTES - crate::layout::HEADER_BYTES) as u64;
        if !(1..=most).contains(&length.value) {
            let title = format!("a text of {} letters", length.value);
            self.report(Problem::new(length.span, title, format!("1 to {most} letters are allowed")));
            return None;
        }
        // At most MAX_RECORD_BYTES, checked above.
        Some(FieldType::Text(length.value as u16))
    }

    /// Refuses keywords of C, which cannot be names in C, because generated code is C as well.
    fn usable(&mut self, name: &Name) {
        let text = name.text.as_str();
        if C_KEYWORDS.contains(&text) || OF_THE_PREPROCESSOR.contains(&text) {
            let title = format!("`{}` is a keyword of C", name.text);
            self.report(Problem::new(name.span, title, "names are C identifiers: choose another one"));
        }
    }

    fn point(&mut self, point: &ast::Point, docs: String, events: &[Event]) -> Option<Point> {
        let kind = point.target.kind.span;
        let span = kind.to(point.target.parts.last().map_or(kind, |part| part.span));
        if point.actions.parts.is_empty() {
            let label = "expected `log EVENT(…)` in its block";
            self.report(Problem::new(span, "this point logs nothing", label));
        }
        self.limit(point.actions.parts.len(), MAX_LOGS_OF_A_POINT, "events at one point", Some(span));
        let logs = point.actions.parts.iter().filter_map(|action| self.log(&action.is, events)).collect();
        let target = target::resolve(&point.target).map_err(|problem| self.report(*problem)).ok()?;
        Some(Point { target, docs, when: point.when.clone(), logs, span })
    }

    fn log(&mut self, action: &ast::Action, events: &[Event]) -> Option<Log> {
        if self.is_full() {
            return None;
        }
        let name = &action.event;
        let Some(event) = events.iter().position(|event| event.name == name.text) else {
            // An event with a mistake has a name all the same. Its mistake has been reported already.
            if !self.events.contains_key(&name.text) {
                let known: Vec<_> = events.iter().map(|event| event.name.as_str()).collect();
                let help = nearest::help(&name.text, known.iter().copied(), "events of this schema");
                let title = format!("there is no event `{}`", name.text);
                self.report(Problem::new(name.span, title, "expected the name of an event").help(help));
            }
            return None;
        };
        self.argument_count(action, &events[event]);
        Some(Log { event, condition: action.condition.clone(), arguments: action.arguments.clone() })
    }

    fn argument_count(&mut self, action: &ast::Action, event: &Event) {
        let (given, wanted) = (action.arguments.len(), event.fields.len());
        if given == wanted {
            return;
        }
        let fields: Vec<_> = event.fields.iter().map(declared).collect();
        let span = action.arguments.last().map_or(action.event.span, |last| last.span);
        let title =
            format!("`{}` has {wanted} field{}, not {given}", event.name, if wanted == 1 { "" } else { "s" });
        let label =
            if given < wanted { "values are missing behind this" } else { "too many values, up to this" };
        let problem = Problem::new(span, title, label).other(event.span, "the event is defined here");
        self.report(problem.help(Some(format!("its fields: ({})", fields.join(", ")))));
    }
}

/// A field as a schema writes it.
fn declared(field: &Field) -> String {
    let length = match field.kind {
        FieldType::Text(letters) => format!("[{letters}]"),
        _ => String::new(),
    };
    format!("{} {}{length}", field.word, field.name)
}

fn largest(fields: &[Field]) -> Option<String> {
    let field = fields.iter().max_by_key(|field| field.kind.size())?;
    Some(format!("its largest field is `{}` with {} bytes", field.name, field.kind.size()))
}

const C_KEYWORDS: [&str; 34] = [
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum",
    "extern", "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return",
    "short", "signed", "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void",
    "volatile", "while",
];
/// Names that cannot be passed to a macro.
const OF_THE_PREPROCESSOR: [&str; 3] = ["_Pragma", "__VA_ARGS__", "__VA_OPT__"];
