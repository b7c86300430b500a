//! What people should know of programs, each once.

use std::collections::BTreeSet;
use std::sync::Mutex;

use super::lock;

/// What threads have to say, and what they have said.
#[derive(Default)]
pub struct News(Mutex<Told>);

#[derive(Default)]
struct Told {
    all: BTreeSet<String>,
    new: Vec<String>,
}

impl News {
    /// Says it, unless it was said.
    pub fn tell(&self, text: String) {
        let mut told = lock(&self.0);
        if told.all.insert(text.clone()) {
            told.new.push(text);
        }
    }

    /// What has come since this was called last.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.0).new)
    }
}
