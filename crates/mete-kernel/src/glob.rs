//! Patterns of names and paths. This code and the eBPF programs (`bpf/rule.bpf.h`) match them by the same
//! tokens and the same steps, so their answers are the same.

use std::fmt;

use crate::skeleton::numbers::mete_limit;

/// A pattern that takes more steps matches nothing.
const STEPS: u32 = mete_limit::MATCH_STEPS.0;

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Token {
    /// This byte.
    Byte(u8),
    /// One byte.
    Any,
    /// One byte of these: bit n stands for byte n.
    Class(Box<[u8; 32]>),
    /// Any number of bytes.
    Star,
    /// Any number of bytes, in a path slashes included.
    Deep,
}

impl Token {
    /// The byte that it stands for, if it stands for one only.
    fn byte(&self) -> Option<u8> {
        match self {
            Token::Byte(byte) => Some(*byte),
            _ => None,
        }
    }
}

/// A pattern of a name or of a path, or a name or path itself.
///
/// | written | takes |
/// |---|---|
/// | `?` | one byte, in a path no slash |
/// | `*` | any number of bytes, in a path no slashes |
/// | `**` | any number of bytes, slashes included |
/// | `[a-z_]`, `[!0-9]` | one byte of these, or one of the others; in a path no slash |
/// | `\*`, `\?`, `\[` | the star, the question mark, the bracket itself |
///
/// A bracket that is never closed stands for itself, and so does any other backslash.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Glob {
    tokens: Vec<Token>,
    is_path: bool,
}

impl Glob {
    /// A pattern of names.
    pub fn of_names(pattern: &[u8]) -> Glob {
        Glob { tokens: parse(pattern), is_path: false }
    }

    /// A pattern of paths.
    pub fn of_paths(pattern: &[u8]) -> Glob {
        Glob { tokens: parse(pattern), is_path: true }
    }

    /// Exactly this name.
    pub fn name(name: &[u8]) -> Glob {
        Glob { tokens: name.iter().copied().map(Token::Byte).collect(), is_path: false }
    }

    /// Exactly this path.
    pub fn path(path: &[u8]) -> Glob {
        Glob { is_path: true, ..Glob::name(path) }
    }

    /// The text that it matches, if it matches one text only.
    pub fn literal(&self) -> Option<Vec<u8>> {
        self.tokens.iter().map(Token::byte).collect()
    }

    /// The bytes with which everything that it matches begins.
    pub fn prefix(&self) -> Vec<u8> {
        self.tokens.iter().map_while(Token::byte).collect()
    }

    /// Whether it begins with `**`. Then what it matches may begin with any byte, a slash included.
    pub fn takes_any_beginning(&self) -> bool {
        matches!(self.tokens.first(), Some(Token::Deep))
    }

    /// The length of the shortest text that it matches.
    pub fn shortest(&self) -> usize {
        self.tokens.iter().filter(|token| !matches!(token, Token::Star | Token::Deep)).count()
    }

    /// The same pattern with these bytes in place of its first `instead_of` tokens, which must stand for
    /// single bytes.
    pub fn with_prefix(&self, prefix: &[u8], instead_of: usize) -> Glob {
        let rest = self.tokens.iter().skip(instead_of).cloned();
        Glob { tokens: prefix.iter().copied().map(Token::Byte).chain(rest).collect(), is_path: self.is_path }
    }

    /// Whether it matches the whole text.
    pub fn matches(&self, text: &[u8]) -> bool {
        let mut at = MatchPosition::default();
        // Where to go on when the last star takes one byte more: of each kind, the last one is enough.
        let (mut star, mut deep) = (None, None);
        for _ in 0..STEPS {
            match (self.tokens.get(at.token), text.get(at.text)) {
                (None, None) => return true,
                (Some(Token::Star), _) => {
                    at.token += 1;
                    star = Some(at);
                    continue;
                }
                (Some(Token::Deep), _) => {
                    at.token += 1;
                    // A `*` before this one need not take more: this one takes all that it could.
                    (deep, star) = (Some(at), None);
                    continue;
                }
                (Some(token), Some(&byte)) if self.takes(token, byte) => {
                    at = MatchPosition { text: at.text + 1, token: at.token + 1 };
                    continue;
                }
                _ => {}
            }
            match self.give_more(&mut star, &mut deep, text) {
                Some(again) => at = again,
                None => return false,
            }
        }
        false
    }

    fn takes(&self, token: &Token, byte: u8) -> bool {
        match token {
            Token::Byte(own) => *own == byte,
            _ if self.is_path && byte == b'/' => false,
            Token::Class(bits) => bits[usize::from(byte >> 3)] & 1 << (byte & 7) != 0,
            _ => true,
        }
    }

    /// Lets the last star that can take one byte more.
    fn give_more(
        &self,
        star: &mut Option<MatchPosition>,
        deep: &mut Option<MatchPosition>,
        text: &[u8],
    ) -> Option<MatchPosition> {
        if let Some(at) = star
            && text.get(at.text).is_some_and(|&byte| !self.is_path || byte != b'/')
        {
            at.text += 1;
            return Some(*at);
        }
        // The `*` has met a slash or the end: only a `**` before it can help.
        *star = None;
        let at = deep.as_mut().filter(|at| at.text < text.len())?;
        at.text += 1;
        Some(*at)
    }

    pub(crate) fn tokens(&self) -> &[Token] {
        &self.tokens
    }
}

/// A position in the text and in the pattern.
#[derive(Clone, Copy, Default)]
struct MatchPosition {
    text: usize,
    token: usize,
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Glob").field(&self.tokens).finish()
    }
}

fn parse(mut pattern: &[u8]) -> Vec<Token> {
    let mut tokens = Vec::new();
    while let Some((&first, rest)) = pattern.split_first() {
        let (token, length) = match first {
            b'*' if rest.starts_with(b"*") => (Token::Deep, 2),
            b'*' => (Token::Star, 1),
            b'?' => (Token::Any, 1),
            b'[' => class(rest).map_or((Token::Byte(b'['), 1), |(class, length)| (class, length + 1)),
            b'\\' if rest.first().is_some_and(|next| b"*?[".contains(next)) => (Token::Byte(rest[0]), 2),
            byte => (Token::Byte(byte), 1),
        };
        tokens.push(token);
        pattern = &pattern[length..];
    }
    tokens
}

/// The class that follows an opening bracket, and its length with the closing one.
fn class(text: &[u8]) -> Option<(Token, usize)> {
    let is_inverse = text.first().is_some_and(|first| b"!^".contains(first));
    let begin = usize::from(is_inverse);
    // A closing bracket at the very beginning is a member of the class.
    let end = begin + 1 + text.get(begin + 1..)?.iter().position(|&byte| byte == b']')?;
    let mut bits = [0; 32];
    let mut members = &text[begin..end];
    while let Some((&low, rest)) = members.split_first() {
        let (high, length) = match rest {
            [b'-', high, ..] => (*high, 3),
            _ => (low, 1),
        };
        (low..=high).for_each(|byte| bits[usize::from(byte >> 3)] |= 1 << (byte & 7));
        members = &members[length..];
    }
    if is_inverse {
        bits.iter_mut().for_each(|byte: &mut u8| *byte = !*byte);
    }
    Some((Token::Class(Box::new(bits)), end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the patterns mean, as directly as possible.
    fn means(tokens: &[Token], text: &[u8], is_path: bool) -> bool {
        let Some((token, rest)) = tokens.split_first() else { return text.is_empty() };
        let is_free = |byte: &u8| !is_path || *byte != b'/';
        match token {
            Token::Byte(byte) => text.first() == Some(byte) && means(rest, &text[1..], is_path),
            Token::Any => text.first().is_some_and(is_free) && means(rest, &text[1..], is_path),
            Token::Class(bits) => {
                text.first()
                    .is_some_and(|byte| is_free(byte) && bits[usize::from(byte >> 3)] & 1 << (byte & 7) != 0)
                    && means(rest, &text[1..], is_path)
            }
            Token::Star => (0..=text.len())
                .take_while(|&taken| text[..taken].iter().all(is_free))
                .any(|taken| means(rest, &text[taken..], is_path)),
            Token::Deep => (0..=text.len()).any(|taken| means(rest, &text[taken..], is_path)),
        }
    }

    #[test]
    fn log_6_patterns_take_what_they_say() {
        for (pattern, text, expected) in [
            ("nginx", "nginx", true),
            ("nginx", "nginx2", false),
            ("nginx*", "nginx: worker", true),
            ("*", "", true),
            ("?", "", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]]", "]", true),
            ("[x", "[x", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("a\\x2db", "a\\x2db", true),
            ("k*/0", "kworker/0", true),
        ] {
            let glob = Glob::of_names(pattern.as_bytes());
            assert_eq!(glob.matches(text.as_bytes()), expected, "{pattern} {text}");
        }
        for (pattern, text, expected) in [
            ("/usr/lib/postgresql/*/bin/postgres", "/usr/lib/postgresql/15/bin/postgres", true),
            ("/usr/lib/postgresql/*/bin/postgres", "/usr/lib/postgresql/15/x/bin/postgres", false),
            ("/usr/**/postgres", "/usr/lib/postgresql/15/bin/postgres", true),
            ("/a/?/b", "/a///b", false),
        ] {
            let glob = Glob::of_paths(pattern.as_bytes());
            assert_eq!(glob.matches(text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn log_6_patterns_mean_the_same_however_they_are_matched() {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        println!("seed {state}");
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        for _ in 0..200_000 {
            let parts = ["a", "b", "/", "?", "*", "**", "[ab]", "[!a]"];
            let pattern: String = (0..random(7)).map(|_| parts[random(parts.len())]).collect();
            let text: String = (0..random(9)).map(|_| parts[random(3)]).collect();
            for glob in [Glob::of_names(pattern.as_bytes()), Glob::of_paths(pattern.as_bytes())] {
                let expected = means(&glob.tokens, text.as_bytes(), glob.is_path);
                assert_eq!(glob.matches(text.as_bytes()), expected, "{pattern} {text} {}", glob.is_path);
            }
        }
    }
}
