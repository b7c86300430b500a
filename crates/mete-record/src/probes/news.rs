//! What people should know of programs, each sentence once.

use std::collections::BTreeSet;
use std::sync::Mutex;

use super::lock;

/// Sentences that threads have for people.
#[derive(Default)]
pub struct News(Mutex<Sentences>);

#[derive(Default)]
struct Sentences {
    all: BTreeSet<String>,
    new: Vec<String>,
}

impl News {
    /// Adds a sentence, unless it was added before.
    pub fn tell(&self, text: String) {
        let mut told = lock(&self.0);
        if told.all.insert(text.clone()) {
            told.new.push(text);
        }
    }

    /// The sentences that were added since the last call.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.0).new)
    }
}
