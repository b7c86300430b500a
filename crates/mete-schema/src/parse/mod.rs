//! Parses text into trees. A generated lexer cuts the text into words. The grammar is small enough for a
//! parser written by hand, whose messages say what was expected.

mod expression;
mod item;
mod token;

use crate::ast::{Block, File, Name, Noted, Notes, Number};
use crate::limits::MAX_PROBLEMS;
use crate::problem::Problem;
use crate::source::Span;
use token::{Remark, Token, Word, Words};

/// Parses one file; `file` is its index in the schema. Mistakes go into `problems`, items without mistakes
/// into the tree: a mistake in one item does not hide the next item.
pub fn parse(file: u32, text: &str, problems: &mut Vec<Problem>) -> File {
    let Words { words, remarks } = token::words(file, text, problems);
    let mut parser = Parser { text, words, remarks, at: 0, remark: 0, problems, parts_left: 0 };
    parser.file()
}

/// A mistake was found, and has been reported.
struct Reported;

type Parsed<T> = Result<T, Reported>;

struct Parser<'a> {
    text: &'a str,
    words: Vec<Word>,
    remarks: Vec<Remark>,
    /// The next word. Never beyond the last one, which is `End`.
    at: usize,
    /// The next remark.
    remark: usize,
    problems: &'a mut Vec<Problem>,
    /// The number of parts that the current expression may still have.
    parts_left: usize,
}

impl<'a> Parser<'a> {
    fn word(&self) -> Word {
        self.words[self.at]
    }

    fn text(&self) -> &'a str {
        &self.text[self.word().span.bytes()]
    }

    fn span(&self) -> Span {
        self.word().span
    }

    /// Where the last word stands that was taken.
    fn last(&self) -> Span {
        self.words[self.at.saturating_sub(1)].span
    }

    fn is_at_end(&self) -> bool {
        self.word().token == Token::End
    }

    fn is(&self, sign: &str) -> bool {
        self.word().token == Token::Sign && self.text() == sign
    }

    fn is_name(&self, name: &str) -> bool {
        self.word().token == Token::Name && self.text() == name
    }

    /// Continues at the next word. It never passes the last one.
    fn advance(&mut self) {
        self.at = (self.at + 1).min(self.words.len() - 1);
    }

    fn take(&mut self, sign: &str) -> bool {
        let is_there = self.is(sign);
        if is_there {
            self.advance();
        }
        is_there
    }

    fn take_name(&mut self, name: &str) -> bool {
        let is_there = self.is_name(name);
        if is_there {
            self.advance();
        }
        is_there
    }

    fn expect(&mut self, sign: &str, why: &str) -> Parsed<Span> {
        let span = self.span();
        if self.take(sign) { Ok(span) } else { self.refuse(&format!("`{sign}` {why}")) }
    }

    fn name(&mut self, what: &str) -> Parsed<Name> {
        if self.word().token != Token::Name {
            return self.refuse(what);
        }
        let name = Name { text: self.text().to_owned(), span: self.span() };
        self.advance();
        Ok(name)
    }

    fn number(&mut self, what: &str) -> Parsed<Number> {
        if self.word().token != Token::Number {
            return self.refuse(what);
        }
        let (text, span) = (self.text(), self.span());
        self.advance();
        let digits = text.strip_prefix("0x").or(text.strip_prefix("0X"));
        let value = digits.map_or_else(|| text.parse().ok(), |digits| u64::from_str_radix(digits, 16).ok());
        let Some(value) = value.filter(|_| !text.contains('_')) else {
            return self.report(not_a_number(span, text));
        };
        // C would read such a number as octal, a person as decimal.
        if digits.is_none() && text.len() > 1 && text.starts_with('0') {
            let problem = Problem::new(span, "a number begins with 0", "octal or decimal?");
            return self.report(problem.help("write it in decimal, or in hexadecimal as 0x…".to_owned()));
        }
        Ok(Number { value, is_hexadecimal: digits.is_some(), span })
    }

    /// Reports that something else was expected here.
    fn refuse<T>(&mut self, expected: &str) -> Parsed<T> {
        let problem =
            Problem::new(self.span(), format!("expected {expected}, found {}", self.found()), "here");
        self.report(problem)
    }

    fn found(&self) -> String {
        match self.word().token {
            Token::End => "the end of the file".to_owned(),
            Token::Number => format!("the number `{}`", self.text()),
            Token::Text => "a quoted text".to_owned(),
            _ => format!("`{}`", self.text()),
        }
    }

    fn report<T>(&mut self, problem: Problem) -> Parsed<T> {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        }
        Err(Reported)
    }

    /// One piece with the remarks before, inside and behind it.
    fn noted<T>(&mut self, piece: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<Noted<T>> {
        let mut notes = Notes::default();
        // Remarks belong to the piece that follows them.
        while let Some(remark) = self.next_remark(|remark, at| remark.before <= at) {
            self.keep(remark, &mut notes, false);
        }
        let is = piece(self)?;
        // The canonical form has no place for remarks inside a piece: they go before it.
        while let Some(remark) = self.next_remark(|remark, at| remark.before < at) {
            self.keep(remark, &mut notes, false);
        }
        // Behind it, only remarks in the same line are its own.
        while let Some(remark) = self.next_remark(|remark, at| remark.before == at && remark.is_trailing) {
            self.keep(remark, &mut notes, true);
        }
        Ok(Noted { notes, is })
    }

    /// The remarks before the end of a block.
    fn tail(&mut self) -> Vec<String> {
        let mut notes = Notes::default();
        while let Some(remark) = self.next_remark(|remark, at| remark.before <= at) {
            if remark.is_doc {
                let problem =
                    Problem::new(remark.span, "this documentation belongs to nothing", "nothing follows");
                let help = "put it before what it is about, or make it a comment: `// …`";
                let _: Parsed<()> = self.report(problem.help(help.to_owned()));
            }
            self.keep(remark, &mut notes, false);
        }
        // Empty lines at an end separate nothing.
        while notes.comments.last().is_some_and(String::is_empty) {
            notes.comments.pop();
        }
        notes.comments
    }

    /// Takes the next remark, if it belongs here.
    fn next_remark(&mut self, belongs: impl Fn(&Remark, usize) -> bool) -> Option<Remark> {
        let remark = self.remarks.get(self.remark).copied().filter(|remark| belongs(remark, self.at))?;
        self.remark += 1;
        Some(remark)
    }

    /// Adds a remark to the notes of a piece.
    fn keep(&self, remark: Remark, notes: &mut Notes, is_trailing: bool) {
        let text = self.text[remark.span.bytes()].trim_end();
        match text.strip_prefix("///").filter(|_| remark.is_doc) {
            Some(doc) => notes.docs.push(doc.strip_prefix(' ').unwrap_or(doc).to_owned()),
            None if is_trailing => notes.trail.push(text.to_owned()),
            None => {
                notes.comments.push(text.to_owned());
                notes.comments.extend(self.is_blank_behind(remark).then(String::new));
            }
        }
    }

    /// Whether an empty line follows. It is kept, because it separates a comment on a whole file from the
    /// first item.
    fn is_blank_behind(&self, remark: Remark) -> bool {
        let rest = self.text[remark.span.end as usize..].chars();
        rest.take_while(|letter| letter.is_whitespace()).filter(|letter| *letter == '\n').count() > 1
    }

    /// `{ pieces }`
    fn block<T>(&mut self, what: &str, mut piece: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Block<T>> {
        let open = self.expect("{", &format!("before {what}"))?;
        let mut parts = Vec::new();
        while !self.is("}") {
            // An item behind a block that does not end would be read as parts of the block.
            if self.is_at_end() || self.is_surely_an_item() {
                let problem = Problem::new(self.span(), "a block does not end", "expected `}` before this");
                return self.report(problem.other(open, "the block begins here"));
            }
            parts.push(self.noted(&mut piece)?);
        }
        let tail = self.tail();
        // The `}` that ended the loop.
        self.advance();
        Ok(Block { parts, tail })
    }
}

fn not_a_number(span: Span, text: &str) -> Problem {
    let title = format!("`{text}` is no number of at most 64 bits");
    Problem::new(span, title, "expected decimal digits, or 0x and hexadecimal ones")
}
