//! Cuts a text into words.

use logos::Logos;

use crate::limits::{MAX_FILE_BYTES, MAX_NAME_LETTERS, MAX_PROBLEMS};
use crate::problem::Problem;
use crate::source::Span;

/// The kinds of word. Keywords are names, too: where no keyword can stand, `event`, `at` and `log` are names
/// like any other.
#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
#[logos(skip r"[ \t\r]+")]
pub enum Token {
    /// The end of a line. It matters only for comments, and for finding the next item after a mistake.
    #[token("\n")]
    Newline,
    /// `/// text`. Four slashes begin a comment.
    #[regex(r"///([^/\n][^\n]*)?", priority = 20, allow_greedy = true)]
    Doc,
    /// `// text`, `# text` or `/* text */`
    #[regex(r"//[^\n]*", priority = 10, allow_greedy = true)]
    #[regex(r"#[^\n]*", allow_greedy = true)]
    #[regex(r"/\*([^*]|\*+[^*/])*\*+/")]
    Comment,
    /// `/*` without an end.
    #[token("/*")]
    Unclosed,
    /// A C identifier.
    #[regex("[A-Za-z_][A-Za-z0-9_]*")]
    Name,
    /// A number, or a word that begins like one.
    #[regex("[0-9][A-Za-z0-9_]*")]
    Number,
    /// `"text"`
    #[regex(r#""[^"\n]*""#)]
    Text,
    /// Any other sign that can stand in a schema.
    #[regex(r"[{}()\[\],;:.?|^&<>+*/%!~=-]")]
    #[regex(r"->|\|\||&&|[=!<>]=|<<|>>")]
    Sign,
    /// The end of the file, behind the last word.
    End,
}

/// A word of a schema.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// The kind of word.
    pub token: Token,
    /// Where it stands.
    pub span: Span,
    /// Whether it is the first one of its line.
    pub is_first: bool,
}

/// A comment or a line of documentation.
#[derive(Clone, Copy, Debug)]
pub struct Remark {
    /// The index of the word that follows it.
    pub before: usize,
    /// Whether a word stands before it in its line.
    pub is_trailing: bool,
    /// Whether it is documentation, and not a comment.
    pub is_doc: bool,
    /// Where it stands.
    pub span: Span,
}

/// A file as words.
#[derive(Debug, Default)]
pub struct Words {
    /// The words; the last one is [`Token::End`].
    pub words: Vec<Word>,
    /// The comments and documentation between the words.
    pub remarks: Vec<Remark>,
}

/// Cuts a text into words. A letter that has no place in a schema is reported and left out.
pub fn words(file: u32, text: &str, problems: &mut Vec<Problem>) -> Words {
    let mut found = Words::default();
    let end = Span::new(file, text.len()..text.len());
    if text.len() > MAX_FILE_BYTES {
        let title = format!("the file has {} bytes; a schema file may have {MAX_FILE_BYTES}", text.len());
        problems.push(Problem::new(Span::new(file, 0..0), title, "this file").help("split it".to_owned()));
    } else {
        collect(file, text, &mut found, problems);
    }
    // The parser relies on it: it never looks for a word behind this one.
    found.words.push(Word { token: Token::End, span: end, is_first: true });
    found
}

fn collect(file: u32, text: &str, found: &mut Words, problems: &mut Vec<Problem>) {
    let mut is_first = true;
    for (token, bytes) in Token::lexer(text).spanned() {
        let span = Span::new(file, bytes.clone());
        if problems.len() >= MAX_PROBLEMS {
            // No further problem would be reported, and a schema with problems is not used.
            return;
        }
        match token {
            Ok(Token::Newline) => is_first = true,
            Ok(Token::Doc | Token::Comment) => {
                let remark = Remark {
                    before: found.words.len(),
                    is_trailing: !is_first,
                    is_doc: token == Ok(Token::Doc),
                    span,
                };
                problems.extend(strange_letter(span, &text[bytes]));
                found.remarks.push(remark);
            }
            Ok(token @ (Token::Name | Token::Number | Token::Text)) if bytes.len() > MAX_NAME_LETTERS => {
                problems.extend(too_long(token, span, &text[bytes]));
                // Kept as a word, so that the parser does not report that one is missing.
                found.words.push(Word { token, span, is_first: std::mem::take(&mut is_first) });
            }
            // The rest of the file may be meant as part of the comment.
            Ok(Token::Unclosed) => {
                problems.push(Problem::new(span, "this comment does not end", "there is no `*/` behind it"));
                return;
            }
            Ok(token) => found.words.push(Word { token, span, is_first: std::mem::take(&mut is_first) }),
            Err(()) => problems.push(no_word(span, &text[bytes])),
        }
    }
}

/// The problem of a word that is too long. Quoted texts are paths, and may be longer than names.
fn too_long(token: Token, span: Span, text: &str) -> Option<Problem> {
    const MAX_TEXT_LETTERS: usize = 1024;
    let (what, limit) =
        if token == Token::Text { ("text", MAX_TEXT_LETTERS) } else { ("name", MAX_NAME_LETTERS) };
    let title = format!("this {what} has {} letters; at most {limit} are allowed", text.len());
    (text.len() > limit).then(|| Problem::new(span, title, "too long"))
}

/// Whether a letter is invisible, or changes the order in which other letters are shown.
fn hides(letter: char) -> bool {
    (letter.is_control() && !matches!(letter, '\t' | '\n' | '\r'))
        || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The problem of a comment with a letter that hides what is written.
fn strange_letter(span: Span, comment: &str) -> Option<Problem> {
    let letter = comment.chars().find(|letter| hides(*letter))?;
    let title = format!("the control character {} in a comment", letter.escape_unicode());
    Some(Problem::new(span, title, "in here").help("remove it: it hides what is written".to_owned()))
}

fn no_word(span: Span, text: &str) -> Problem {
    let help = match text.chars().next() {
        Some('"') => "a quoted text ends in its line, with a second `\"`",
        Some('\'') => "numbers are written as numbers, in decimal or as 0x…",
        Some(letter) if !letter.is_ascii() => "names have the letters of C: A-Z, a-z, 0-9 and _",
        _ => "names, numbers, quoted texts, comments and the signs of C's expressions can stand here",
    };
    // A control character in a message could change how a terminal shows it.
    let shown: String =
        text.chars().take(8).map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect();
    Problem::new(span, format!("`{shown}` has no place in a schema"), "this").help(Some(help.into()))
}
