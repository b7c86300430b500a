//! One source's logs while they are read: where reading stands, and what was lost.

use mete_log::{Cursor, Row};

use super::completeness::FileCount;
use crate::configure::{Configuration, Layout};
use crate::sources::{EventUse, Meaning, Source, SourceError};

/// How an event's rows are to be taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub meaning: Meaning,
    /// Occurrences that a row stands for.
    pub occurrences: u64,
    /// Its tally, if it has one.
    pub tally: usize,
}

/// One file on one processor.
struct Feed {
    processor: usize,
    cursor: Cursor,
    count: FileCount,
    reported: FileCount,
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
        source: Box<dyn Source>,
        domains: usize,
        layout: Layout,
        mut tally_of: impl FnMut(&EventUse) -> usize,
    ) -> Result<Stream, SourceError> {
        let configuration = Configuration::apply_to(&*source, domains, layout)?;
        let mut uses = vec![None; source.shape().events()];
        for event in source.events() {
            let tally = tally_of(event);
            let occurrences = u64::from(event.threshold.max(1));
            uses[usize::from(event.event)] = Some(Use { meaning: event.meaning, occurrences, tally });
        }
        let processors = 0..source.processors();
        let feeds = processors.flat_map(|processor| {
            let source = &*source;
            configuration.files.iter().map(move |file| Feed {
                processor,
                cursor: Cursor::new(source.area(processor), file.file, file.control),
                count: FileCount {
                    source: source.label().to_owned(),
                    file: file.name.clone(),
                    processor,
                    ..FileCount::default()
                },
                reported: FileCount::default(),
            })
        });
        let feeds = feeds.collect();
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
        for feed in &mut self.feeds {
            let (processor, uses) = (feed.processor, &self.uses);
            let area = self.source.area(processor);
            let polled = feed.cursor.poll_rows(area, |rows| {
                for row in rows.iter() {
                    let event = usize::from(row.event.unwrap_or_default());
                    if let Some(&Some(meaning)) = uses.get(event) {
                        each(processor, meaning, row);
                    }
                }
            });
            match polled {
                Ok(poll) => feed.count.add(poll),
                Err(_) => feed.count.garbled += 1,
            }
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
                ..now.clone()
            };
            feed.reported = now.clone();
            newly
        })
    }
}
