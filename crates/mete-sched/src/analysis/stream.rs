//! The logs of one source while they are read: how far they were read, and what was lost.

use mete_log::{Area, Cursor, EventId, NO_DOMAIN, Row, Stamp};

use super::completeness::FileCount;
use crate::configure::{Configuration, Layout, LogFile};
use crate::sources::{Claims, EventUse, Meaning, Source, SourceError};

/// How the rows of an event are taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowUse {
    pub meaning: Meaning,
    /// The number of occurrences that a row stands for.
    pub occurrences: u64,
    /// The number of rows that this row stands for. In a file of totals: all rows that are newer than the
    /// last one read. Of wake-ups: all rows of the poll that are equal.
    pub rows: u64,
    /// The index of the event's tally.
    pub tally: usize,
}

/// The file of one event, or the domains' files of its totals, on one processor.
struct Feed {
    processor: usize,
    logs: FeedLogs,
    count: FileCount,
}

/// How the files of a feed are read.
enum FeedLogs {
    Rows(Cursor),
    Counted(Cursor),
    Totals(Vec<TotalFile>),
}

/// Counts of equal rows that have one word each: most of the thousands of wake-ups in a poll are between a
/// few pairs of domains.
struct WordCounts([(u64, u64); WORD_COUNTS]);

/// A power of two, so that a mask selects the place.
const WORD_COUNTS: usize = 64;

impl Default for WordCounts {
    fn default() -> WordCounts {
        WordCounts([(0, 0); WORD_COUNTS])
    }
}

impl WordCounts {
    /// Counts a word. If another word has its place, that word is handed out first: its count, and the word.
    #[inline]
    fn count(&mut self, word: u64, hand_out: &mut impl FnMut(u64, u64)) {
        // The domain is in the bits from 16, the correspondent in those from 32; the second shift mixes the
        // two. The mask keeps the index in range.
        let place = &mut self.0[((word >> 16) ^ (word >> 29)) as usize & (WORD_COUNTS - 1)];
        // A place that was never used has the word 0 and the count 0, so it needs no mark of its own.
        if place.0 != word {
            if place.1 > 0 {
                hand_out(place.1, place.0);
            }
            *place = (word, 0);
        }
        place.1 += 1;
    }

    /// Hands out all counts that are left.
    fn hand_out(&self, hand_out: &mut impl FnMut(u64, u64)) {
        self.0.iter().filter(|(_, times)| *times > 0).for_each(|&(word, times)| hand_out(times, word));
    }
}

/// A file whose newest row contains everything.
struct TotalFile {
    cursor: Cursor,
    /// In a file that adds: the sum as of the last poll.
    sum: u64,
}

impl FeedLogs {
    fn new(cursor: Cursor, file: &LogFile) -> FeedLogs {
        match file {
            LogFile { is_total: true, .. } => FeedLogs::Totals(vec![TotalFile { cursor, sum: 0 }]),
            LogFile { is_counted: true, .. } => FeedLogs::Counted(cursor),
            _ => FeedLogs::Rows(cursor),
        }
    }

    /// Reads what is new. Hands out each row with the number of rows that it stands for.
    fn poll(
        &mut self,
        area: Area<'_>,
        offset_ns: i64,
        count: &mut FileCount,
        each: &mut impl FnMut(u64, Row),
    ) {
        match self {
            FeedLogs::Rows(cursor) => {
                let polled = cursor.poll(area, |row| each(1, row));
                count.take(polled);
            }
            FeedLogs::Counted(cursor) => {
                // On the stack, because a poll allocates nothing.
                let (control, mut counts) = (cursor.control(), WordCounts::default());
                let mut hand_out = |times, word| each(times, Row::decode(control, &[word]));
                let polled = cursor.poll_rows(area, |rows| {
                    rows.words().iter().for_each(|&word| counts.count(word, &mut hand_out));
                });
                counts.hand_out(&mut hand_out);
                count.take(polled);
            }
            FeedLogs::Totals(totals) => {
                totals.iter_mut().for_each(|total| total.poll(area, offset_ns, count, each));
            }
        }
    }
}

impl TotalFile {
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
        // Wrapping, because the producer's sum wraps; the difference is right all the same.
        Row { counter: Some(sum.wrapping_sub(before)), ..row }
    }

    /// Converts a stamp of the run queue's clock to the monotonic clock, by which everything else is timed.
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
    /// How rows are taken, by event number.
    uses: Vec<Option<RowUse>>,
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
            uses[event.event.index()] = Some(RowUse { meaning: event.meaning, occurrences, rows: 1, tally });
        }
        let mut feeds = Vec::new();
        for processor in 0..source.processors() {
            add_feeds(&mut feeds, &*source, processor, &configuration.files);
        }
        // Last: the logs are laid out, and every row that comes has a feed that reads it.
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

    /// Hands out every new row with its processor and the way in which it is taken.
    pub fn poll(&mut self, mut each: impl FnMut(usize, RowUse, Row)) {
        let claims = self.source.claims();
        let offset_ns = self.source.run_queue_offset_ns().unwrap_or(0);
        for feed in &mut self.feeds {
            let (processor, uses) = (feed.processor, &self.uses);
            let mut disregarded = 0;
            feed.logs.poll(self.source.area(processor), offset_ns, &mut feed.count, &mut |rows, row| {
                let event = row.event.map_or(0, EventId::index);
                if claims.is_some_and(|claims| !counts(claims, &row)) {
                    disregarded += rows;
                // The event number comes from the component, so it may be any number.
                } else if let Some(&Some(of)) = uses.get(event) {
                    each(processor, RowUse { rows, ..of }, row);
                }
            });
            feed.count.disregarded += disregarded;
        }
    }

    /// The counts since the beginning.
    pub fn counts(&self) -> impl Iterator<Item = FileCount> {
        self.feeds.iter().map(|feed| feed.count.clone())
    }
}

/// Adds feeds for the files of one processor. The files with the totals of one event are one feed.
fn add_feeds(feeds: &mut Vec<Feed>, source: &dyn Source, processor: usize, files: &[LogFile]) {
    for file in files {
        let cursor = Cursor::new(source.area(processor), file.file, file.control);
        // The domains' files of one event follow one another, so it is enough to look at the last feed.
        let last =
            feeds.last_mut().filter(|last| (last.processor, &last.count.file) == (processor, &file.name));
        if let Some(Feed { logs: FeedLogs::Totals(totals), .. }) = last.filter(|_| file.is_total) {
            totals.push(TotalFile { cursor, sum: 0 });
            continue;
        }
        let (label, name) = (source.label().to_owned(), file.name.clone());
        let count = FileCount { source: label, file: name, processor, ..FileCount::default() };
        let logs = FeedLogs::new(cursor, file);
        feeds.push(Feed { processor, logs, count });
    }
}

/// Whether a component may say what this row says.
fn counts(claims: &Claims, row: &Row) -> bool {
    claims.allow(row.domain.unwrap_or_default(), row.correspondent.unwrap_or(NO_DOMAIN))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn log_16_rows_that_are_alike_are_counted_together_and_none_is_left_out() {
        let (mut counts, mut handed_out, mut expected) =
            (WordCounts::default(), BTreeMap::new(), BTreeMap::<u64, u64>::new());
        let mut hand_out = |times, word| *handed_out.entry(word).or_insert(0) += times;
        // There are more pairs of domains than places. Some pairs are frequent. The first pair is all zero.
        for nth in 0..40_000u64 {
            let (domain, correspondent) = (nth % 7 * (nth % 40), nth % 3 * (nth % 90));
            let word = domain << 16 | correspondent << 32;
            *expected.entry(word).or_default() += 1;
            counts.count(word, &mut hand_out);
        }
        counts.hand_out(&mut hand_out);
        assert!(expected.len() > WORD_COUNTS);
        assert_eq!(handed_out, expected);
    }
}
