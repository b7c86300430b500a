//! Fields of comma-separated values (RFC 4180).

use std::borrow::Cow;

/// A field, in quotation marks if it could be taken for something else without them.
#[must_use]
pub fn field(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) { Cow::Owned(quoted(text)) } else { Cow::Borrowed(text) }
}

/// A field in quotation marks. Those in the text are doubled.
#[must_use]
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_could_be_taken_for_something_else_is_quoted() {
        assert_eq!(["web", "two words", "it's", ""].map(field), ["web", "two words", "it's", ""]);
        let risky = ["a,b", "say \"a\"", "two\nlines", "two\rlines"].map(field);
        assert_eq!(risky, ["\"a,b\"", "\"say \"\"a\"\"\"", "\"two\nlines\"", "\"two\rlines\""]);
        assert_eq!(quoted("web"), "\"web\"");
    }
}
