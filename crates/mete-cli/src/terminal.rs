//! How wide what is printed may be, and sentences made to fit.

use std::io::{IsTerminal, stdout};

use mete_log::letters;

/// What a terminal has that does not say so.
const USUAL: u16 = 80;

/// The columns that there are for results; `None` if they may be as wide as they are, because they go
/// into a file or a pipe and `COLUMNS` does not say otherwise.
pub fn columns() -> Option<u16> {
    let asked =
        std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).filter(|&some| some > 0);
    if stdout().is_terminal() { Some(own_columns().or(asked).unwrap_or(USUAL)) } else { asked }
}

/// A serial line answers 0, which is no width.
fn own_columns() -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(stdout()).ok()?;
    Some(size.ws_col).filter(|&columns| columns > 0)
}

/// Text without what steers a terminal, turns its letters around or shows nothing, but for ends of lines and tabs: names of programs, threads, files and events in it are
/// chosen by others.
pub fn harmless(text: &str) -> String {
    let is_kept = |letter: char| matches!(letter, '\n' | '\t');
    text.chars().map(|letter| if is_kept(letter) { letter } else { letters::shown(letter) }).collect()
}

/// Lines that are too wide for the terminal go on below, under the last of their columns: behind the
/// last gap of two blanks or more.
pub fn folded(text: &str) -> String {
    columns().map_or_else(|| text.to_owned(), |columns| folded_within(usize::from(columns), text))
}

fn folded_within(columns: usize, text: &str) -> String {
    let lines: Vec<_> = text.lines().map(|line| folded_line(columns, line)).collect();
    let end = if text.ends_with('\n') { "\n" } else { "" };
    lines.join("\n") + end
}

fn folded_line(columns: usize, line: &str) -> String {
    if line.chars().count() <= columns {
        return line.to_owned();
    }
    let head = line.rfind("  ").map_or(0, |gap| gap + 2);
    // Too little would be left beside a wide head.
    let indent = Some(line[..head].chars().count()).filter(|&indent| indent <= columns * 2 / 3).unwrap_or(0);
    let (mut folded, mut column) = (line[..head].to_owned(), line[..head].chars().count());
    for (number, word) in line[head..].split(' ').enumerate() {
        let letters = word.chars().count();
        if number > 0 && column + 1 + letters > columns {
            folded.push('\n');
            folded.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else if number > 0 {
            folded.push(' ');
            column += 1;
        }
        folded.push_str(word);
        column += letters;
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::{folded_within, harmless};

    #[test]
    fn new_6_names_that_others_chose_steer_no_terminal() {
        let said = "r\u{1b}[31m is\nred\r\u{9b}2J\u{7f}\u{7}";
        assert_eq!(harmless(said), "r?[31m is\nred??2J??");
        assert_eq!(harmless("gpj.\u{202e}exe\t\u{2066}x\u{200b}"), "gpj.?exe\t?x?");
    }

    #[test]
    fn a_line_that_is_too_wide_goes_on_under_its_last_column() {
        let text = "short\n   4  int  flags   one two three four five\n";
        assert_eq!(
            folded_within(32, text),
            "short\n   4  int  flags   one two three\n                   four five\n"
        );
        assert_eq!(folded_within(100, text), text);
    }

    #[test]
    fn a_sentence_goes_on_under_its_beginning_and_no_word_is_broken() {
        assert_eq!(folded_within(10, "one two three"), "one two\nthree");
        assert_eq!(folded_within(3, "  /a/long/path x"), "  /a/long/path\n  x");
    }
}
