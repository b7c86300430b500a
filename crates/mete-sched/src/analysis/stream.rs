//! One source's logs while they are read: where reading stands, and what was lost.

use mete_log::{Area, Cursor, NO_DOMAIN, Row, Stamp};

use super::completeness::FileCount;
use crate::configure::{Configuration, Layout, LogFile};
use crate::sources::{Claims, EventUse, Meaning, Source, SourceError};

/// How an event's rows are to be taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub meaning: Meaning,
    /// Occurrences that a row stands for.
    pub occurrences: u64,
    /// Rows that this one stands for: of a file of totals, all that are newer than the last one seen; of wake-ups, those
    /// of the poll that are like it.
    pub rows: u64,
    /// Its tally, if it has one.
    pub tally: usize,
}

/// One event's file, or the domains' files of its totals, on one processor.
struct Feed {
    processor: usize,
    logs: Logs,
    count: FileCount,
    reported: FileCount,
}

enum Logs {
    Rows(Cursor),
    Counted(Cursor),
    Totals(Vec<Total>),
}

/// Rows of one word that are alike, counted: of thousands of wake-ups in a poll most are of a few pairs of domains.
struct Likes([(u64, u64); LIKES]);

/// A power of two.
const LIKES: usize = 64;

impl Default for Likes {
    fn default() -> Likes {
        Likes([(0, 0); LIKES])
    }
}

impl Likes {
    /// Counts a word. Another one in its place is handed out: how often, and the word.
    #[inline]
    fn count(&mut self, word: u64, hand_out: &mut impl FnMut(u64, u64)) {
        // Domain and correspondent, as a row has them.
        let place = &mut self.0[((word >> 16) ^ (word >> 29)) as usize & (LIKES - 1)];
        if place.0 != word {
            if place.1 > 0 {
                hand_out(place.1, place.0);
            }
            *place = (word, 0);
        }
        place.1 += 1;
    }

    /// What is left.
    fn hand_out(&self, hand_out: &mut impl FnMut(u64, u64)) {
        self.0.iter().filter(|(_, times)| *times > 0).for_each(|&(word, times)| hand_out(times, word));
    }
}

/// A file whose newest row has everything.
struct Total {
    cursor: Cursor,
    /// The sum as of the last poll, in a file that adds.
    sum: u64,
}

impl Logs {
    fn new(cursor: Cursor, file: &LogFile) -> Logs {
        match file {
            LogFile { is_total: true, .. } => Logs::Totals(vec![Total { cursor, sum: 0 }]),
            LogFile { is_counted: true, .. } => Logs::Counted(cursor),
            _ => Logs::Rows(cursor),
        }
    }

    /// Reads what is new and hands it out, each row with the number of rows that it stands for.
    fn poll(
        &mut self,
        area: Area<'_>,
        offset_ns: i64,
        count: &mut FileCount,
        each: &mut impl FnMut(u64, Row),
    ) {
        match self {
            Logs::Rows(cursor) => {
                let polled = cursor.poll_rows(area, |rows| rows.iter().for_each(|row| each(1, row)));
                count.take(polled);
            }
            Logs::Counted(cursor) => {
                let (control, mut likes) = (cursor.control(), Likes::default());
                let mut hand_out = |times, word| each(times, Row::decode(control, &[word]));
                let polled = cursor.poll_rows(area, |rows| {
                    rows.words().iter().for_each(|&word| likes.count(word, &mut hand_out));
                });
                likes.hand_out(&mut hand_out);
                count.take(polled);
            }
            Logs::Totals(totals) => {
                totals.iter_mut().for_each(|total| total.poll(area, offset_ns, count, each));
            }
        }
    }
}

impl Total {
    fn poll(
        &mut self,
        area: Area<'_>,
        offset_ns: i64,
        count: &mut FileCount,
        each: &mut impl FnMut(u64, Row),
    ) {
        let polled = self.cursor.poll_newest(area);
        if let Ok((poll, Some(row))) = polled {
            let row = self.since_last(row);
            each(poll.rows, self.with_moment(row, offset_ns));
        }
        count.take(polled.map(|(poll, _)| poll));
    }

    fn since_last(&mut self, row: Row) -> Row {
        if !self.cursor.control().is_adding() {
            return row;
        }
        let sum = row.counter.unwrap_or(0);
        let before = std::mem::replace(&mut self.sum, sum);
        Row { counter: Some(sum.wrapping_sub(before)), ..row }
    }

    /// A run queue's clock is not the one that everything else is told by.
    fn with_moment(&self, row: Row, offset_ns: i64) -> Row {
        match row.stamp {
            Some(stamp) if self.cursor.control().stamp() == Stamp::RunQueue => {
                Row { stamp: Some(stamp.saturating_add_signed(offset_ns)), ..row }
            }
            _ => row,
        }
    }
}

/// See the [module](self).
pub(super) struct Stream {
    source: Box<dyn Source>,
    feeds: Vec<Feed>,
    /// By event number.
    uses: Vec<Option<Use>>,
}

impl Stream {
    /// Configures a source's logs and begins to read them.
    pub fn open(
        mut source: Box<dyn Source>,
        domains: usize,
        layout: Layout,
        mut tally_of: impl FnMut(&EventUse) -> usize,
    ) -> Result<Stream, SourceError> {
        let configuration = Configuration::apply_to(&*source, domains, layout)?;
        let mut uses = vec![None; source.shape().events()];
        for event in source.events() {
            let tally = tally_of(event);
            let occurrences = u64::from(event.threshold.max(1));
            uses[usize::from(event.event)] =
                Some(Use { meaning: event.meaning, occurrences, rows: 1, tally });
        }
        let mut feeds = Vec::new();
        for processor in 0..source.processors() {
            add_feeds(&mut feeds, &*source, processor, &configuration.files);
        }
        source.begin()?;
        source.take_stock()?;
        Ok(Stream { source, feeds, uses })
    }

    pub fn source(&self) -> &dyn Source {
        &*self.source
    }

    pub fn source_mut(&mut self) -> &mut dyn Source {
        &mut *self.source
    }

    /// Hands out every new row with its processor and use.
    pub fn poll(&mut self, mut each: impl FnMut(usize, Use, Row)) {
        let claims = self.source.claims();
        let offset_ns = self.source.run_queue_offset_ns().unwrap_or(0);
        for feed in &mut self.feeds {
            let (processor, uses) = (feed.processor, &self.uses);
            let mut disregarded = 0;
            feed.logs.poll(self.source.area(processor), offset_ns, &mut feed.count, &mut |rows, row| {
                let event = usize::from(row.event.unwrap_or_default());
                if claims.is_some_and(|claims| !counts(claims, &row)) {
                    disregarded += rows;
                } else if let Some(&Some(of)) = uses.get(event) {
                    each(processor, Use { rows, ..of }, row);
                }
            });
            feed.count.disregarded += disregarded;
        }
    }

    /// Counts since the beginning.
    pub fn counts(&self) -> impl Iterator<Item = FileCount> {
        self.feeds.iter().map(|feed| feed.count.clone())
    }

    /// Counts since the last call.
    pub fn new_counts(&mut self) -> impl Iterator<Item = FileCount> {
        self.feeds.iter_mut().map(|feed| {
            let (now, before) = (&feed.count, &feed.reported);
            let newly = FileCount {
                rows: now.rows - before.rows,
                overwritten: now.overwritten - before.overwritten,
                refused: now.refused - before.refused,
                garbled: now.garbled - before.garbled,
                disregarded: now.disregarded - before.disregarded,
                ..now.clone()
            };
            feed.reported = now.clone();
            newly
        })
    }
}

/// One processor's files; those of one event's totals are one feed.
fn add_feeds(feeds: &mut Vec<Feed>, source: &dyn Source, processor: usize, files: &[LogFile]) {
    for file in files {
        let cursor = Cursor::new(source.area(processor), file.file, file.control);
        let last =
            feeds.last_mut().filter(|last| (last.processor, &last.count.file) == (processor, &file.name));
        if let Some(Feed { logs: Logs::Totals(totals), .. }) = last.filter(|_| file.is_total) {
            totals.push(Total { cursor, sum: 0 });
            continue;
        }
        let (label, name) = (source.label().to_owned(), file.name.clone());
        let count = FileCount { source: label, file: name, processor, ..FileCount::default() };
        let logs = Logs::new(cursor, file);
        feeds.push(Feed { processor, logs, count, reported: FileCount::default() });
    }
}

/// Whether a component may say what a row says.
fn counts(claims: &Claims, row: &Row) -> bool {
    claims.allow(row.domain.unwrap_or_default(), row.correspondent.unwrap_or(NO_DOMAIN))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn log_16_rows_that_are_alike_are_counted_together_and_none_is_left_out() {
        let (mut likes, mut handed_out, mut expected) =
            (Likes::default(), BTreeMap::new(), BTreeMap::<u64, u64>::new());
        let mut hand_out = |times, word| *handed_out.entry(word).or_insert(0) += times;
        // More pairs of domains than there are places, some of them often, the first one being all zero.
        for nth in 0..40_000u64 {
            let (domain, correspondent) = (nth % 7 * (nth % 40), nth % 3 * (nth % 90));
            let word = domain << 16 | correspondent << 32;
            *expected.entry(word).or_default() += 1;
            likes.count(word, &mut hand_out);
        }
        likes.hand_out(&mut hand_out);
        assert!(expected.len() > LIKES);
        assert_eq!(handed_out, expected);
    }
}
