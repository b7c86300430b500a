//! The width of the terminal, text that fits it, and text that cannot control it.

use std::io::{IsTerminal, stdout};

use mete_base::letters;

/// The columns of a terminal that does not tell how many it has.
const USUAL: u16 = 80;

/// The columns that results may take; `None` for any number, because results go into a file or a pipe and
/// `COLUMNS` sets no limit.
pub fn columns() -> Option<u16> {
    let asked =
        std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).filter(|&some| some > 0);
    if stdout().is_terminal() { Some(own_columns().or(asked).unwrap_or(USUAL)) } else { asked }
}

/// The columns that the terminal tells.
fn own_columns() -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(stdout()).ok()?;
    // A serial line answers 0, which is no width.
    Some(size.ws_col).filter(|&columns| columns > 0)
}

/// Replaces every letter that controls a terminal, reverses the direction of writing or is invisible. Ends of
/// lines and tabs stay. Other users choose the names of programs, threads, files and events, and so could
/// control the terminal.
pub fn harmless(text: &str) -> String {
    let letters = text.chars().map(|letter| match letter {
        '\n' | '\t' => letter,
        _ => letters::shown(letter),
    });
    letters.collect()
}

/// Breaks lines that are too wide for the terminal. The rest of a line stands below, under the last of its
/// columns, which begins after the last gap of two blanks or more.
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
    // Beside a wide head, too little room would be left: then the rest begins at the left.
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
