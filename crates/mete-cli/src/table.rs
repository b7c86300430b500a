//! Tables that fit a terminal of 100 columns, and the numbers in them.

use std::time::Duration;

use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, TableComponent, Width, presets,
};

const COLUMNS: u16 = 100;
/// Where there is no figure.
pub const NOTHING: &str = "·";
/// Between columns.
const GAP: u16 = 2;

/// A table with a line under its head.
pub struct Table {
    table: comfy_table::Table,
    /// Letters of the longest word of each column that may take several lines.
    longest_words: Vec<Option<usize>>,
}

/// How a column is headed, and where its cells stand: numbers at the right.
#[derive(Clone, Copy)]
pub enum Head<'a> {
    /// Words, which may take several lines.
    Text(&'a str),
    /// Names, which may not.
    Name(&'a str),
    /// Numbers.
    Number(&'a str),
}

impl Table {
    /// An empty table.
    pub fn new<'a>(heads: impl IntoIterator<Item = Head<'a>>) -> Table {
        let heads: Vec<_> = heads.into_iter().collect();
        let mut table = comfy_table::Table::new();
        table.load_preset(presets::NOTHING).set_width(COLUMNS);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table
            .set_style(TableComponent::HeaderLines, '─')
            .set_style(TableComponent::MiddleHeaderIntersections, '─');
        table.set_header(heads.iter().map(cell_of_head));
        for (column, head) in table.column_iter_mut().zip(&heads) {
            column.set_padding((0, GAP));
            if matches!(head, Head::Number(_)) {
                column.set_cell_alignment(CellAlignment::Right);
            }
            if !matches!(head, Head::Text(_)) {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        let longest_words = heads.iter().map(|head| matches!(head, Head::Text(_)).then_some(0)).collect();
        Table { table, longest_words }
    }

    /// One more row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<_> = cells.into_iter().collect();
        for (longest, cell) in self.longest_words.iter_mut().zip(&cells) {
            let words = cell.split_whitespace().map(|word| word.chars().count());
            *longest = longest.map(|longest| words.fold(longest, usize::max));
        }
        self.table.add_row(cells);
    }

    /// Whether it has no row.
    pub fn is_empty(&self) -> bool {
        self.table.row_count() == 0
    }

    /// The text, without trailing blanks.
    pub fn text(mut self) -> String {
        self.keep_words_whole();
        let lines: Vec<_> = self.table.lines().map(|line| line.trim_end().to_owned()).collect();
        lines.join("\n")
    }

    /// A path that is broken cannot be pasted; a table that is too wide for once can be read.
    fn keep_words_whole(&mut self) {
        for (column, longest) in self.table.column_iter_mut().zip(&self.longest_words) {
            if let Some(letters) = longest {
                let width = Width::Fixed((letters + usize::from(GAP)).try_into().unwrap_or(u16::MAX));
                column.set_constraint(ColumnConstraint::LowerBoundary(width));
            }
        }
    }
}

fn cell_of_head(head: &Head<'_>) -> Cell {
    match head {
        Head::Text(text) | Head::Name(text) => Cell::new(text),
        Head::Number(text) => Cell::new(text).set_alignment(CellAlignment::Right),
    }
}

/// A name that is too long ends in `…`.
pub fn shorten(name: &str, letters: usize) -> String {
    if name.chars().count() <= letters {
        return name.to_owned();
    }
    name.chars().take(letters.saturating_sub(1)).chain(['…']).collect()
}

/// `title one, two`, in as many lines as it takes; names stay whole.
pub fn list(title: &str, names: &[String]) -> String {
    let mut text = title.to_owned();
    let mut column = title.chars().count();
    for (index, name) in names.iter().enumerate() {
        let word = format!(" {name}{}", if index + 1 < names.len() { "," } else { "" });
        let letters = word.chars().count();
        if column + letters > usize::from(COLUMNS) {
            text.push_str("\n ");
            column = 1;
        }
        text.push_str(&word);
        column += letters;
    }
    text
}

/// `1 thread`, `2 threads`.
pub fn number(number: u64, of: &str) -> String {
    format!("{} {of}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// `1,234,567`; nothing for 0, so that what matters stands out.
pub fn count(number: u64) -> String {
    if number == 0 { NOTHING.into() } else { grouped(number) }
}

/// `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// Nanoseconds as milliseconds.
pub fn milliseconds(ns: u64) -> String {
    let tenths = ns.saturating_add(50_000) / 100_000;
    if ns == 0 { NOTHING.into() } else { format!("{}.{}", grouped(tenths / 10), tenths % 10) }
}

/// A length of time, to the millisecond: a program may be over after a few.
pub fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}

/// Thousandths as percent.
pub fn percent(share: f64) -> String {
    if share == 0.0 { NOTHING.into() } else { format!("{:.1}", 100.0 * share) }
}

/// Bytes in the unit that leaves one to four digits.
pub fn bytes(number: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = (0..UNITS.len() - 1).find(|unit| number >> (10 * unit) < 10_240).unwrap_or(UNITS.len() - 1);
    format!("{} {}", number >> (10 * unit), UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_too_long_are_visibly_short() {
        assert_eq!((shorten("abc", 3), shorten("abcd", 3)), ("abc".into(), "ab…".into()));
    }

    #[test]
    fn numbers_read_at_a_glance() {
        assert_eq!(
            (grouped(0), grouped(999), grouped(1_234_567)),
            ("0".into(), "999".into(), "1,234,567".into())
        );
        assert_eq!((number(1, "thread"), number(2, "thread")), ("1 thread".into(), "2 threads".into()));
        assert_eq!(
            (milliseconds(1_250_000), milliseconds(1_249_999), count(0)),
            ("1.3".into(), "1.2".into(), "·".into())
        );
        assert_eq!(
            (bytes(10_239), bytes(10_240), bytes(5 << 30)),
            ("10239 B".into(), "10 KiB".into(), "5120 MiB".into())
        );
    }

    #[test]
    fn no_path_is_broken() {
        let mut table = Table::new([Head::Text("found"), Head::Text("needed for")]);
        let path = "/sys/bus/event_source/devices/kprobe/type";
        table.row([format!("there is no {path}"), "something that takes many words to say ".repeat(3)]);
        let text = table.text();
        assert!(text.contains(path) && text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }

    #[test]
    fn a_list_fits_100_columns_and_keeps_names_whole() {
        let names: Vec<_> = (0..40).map(|number| format!("a name {number}")).collect();
        let text = list("nothing was logged in:", &names);
        assert!(text.lines().count() > 1 && text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(names.iter().all(|name| text.contains(name.as_str())), "{text}");
        assert_eq!(list("in:", &names[..2]), "in: a name 0, a name 1");
    }

    #[test]
    fn a_table_fits_100_columns() {
        let mut table = Table::new([Head::Text("name"), Head::Number("n"), Head::Text("note")]);
        table.row(["a".repeat(30), "1".into(), "word ".repeat(40)]);
        let text = table.text();
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
}
