//! Requests are answered by the thread that does the program's work, between two steps of it. So nothing
//! changes behind its back, and there is no lock.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use crate::file::{Refusal, Store};

/// A request, and where the answer goes.
pub struct Request {
    /// The file.
    pub path: String,
    /// What is to be set; `None` if it is read.
    pub value: Option<String>,
    answer: SyncSender<Result<String, Refusal>>,
}

impl Request {
    /// Answers it. The process that asked may have ended.
    pub fn answer(&self, answer: Result<String, Refusal>) {
        let _ = self.answer.send(answer);
    }
}

/// The files' side: it asks, and waits for the answer.
pub struct Asker(Sender<Request>);

/// The program's side, where requests are answered. Dropped, it refuses all that is asked from then on.
pub struct Desk(Receiver<Request>);

/// Both sides.
pub fn desk() -> (Asker, Desk) {
    let (ask, asked) = channel();
    (Asker(ask), Desk(asked))
}

impl Asker {
    fn ask(&self, path: &str, value: Option<&str>) -> Result<String, Refusal> {
        // With room for the one answer, so that the program never waits for the process that asks.
        let (answer, answered) = sync_channel(1);
        let request = Request { path: path.to_owned(), value: value.map(str::to_owned), answer };
        self.0.send(request).map_err(|_| Refusal::over())?;
        // The program may end while the request waits; then no answer comes.
        answered.recv().unwrap_or_else(|_| Err(Refusal::over()))
    }
}

impl Store for Asker {
    fn read(&self, path: &str) -> Result<String, Refusal> {
        self.ask(path, None)
    }

    fn write(&self, path: &str, value: &str) -> Result<(), Refusal> {
        self.ask(path, Some(value)).map(drop)
    }
}

impl Desk {
    /// Answers requests for this long, and those that are there already in any case.
    pub fn serve(&self, time: Duration, mut answer: impl FnMut(&Request) -> Result<String, Refusal>) {
        let end = Instant::now() + time;
        loop {
            match self.0.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(request) => request.answer(answer(&request)),
                Err(RecvTimeoutError::Timeout) => return,
                // No file can ask any more, so this is only a pause.
                Err(RecvTimeoutError::Disconnected) => {
                    return std::thread::sleep(end.saturating_duration_since(Instant::now()));
                }
            }
        }
    }
}
