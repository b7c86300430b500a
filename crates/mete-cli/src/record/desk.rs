//! Where the parameter files' requests are answered: in the thread that records, between two looks at it. So nothing
//! changes behind its back, and there is no lock.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use mete_parameters::{Refusal, Store};

/// A request, and where the answer goes.
pub struct Request {
    /// The file.
    pub path: String,
    /// What is to be set; `None` if it is read.
    pub value: Option<String>,
    answer: SyncSender<Result<String, Refusal>>,
}

impl Request {
    /// Answers it; whoever asked may be gone.
    pub fn answer(&self, answer: Result<String, Refusal>) {
        let _ = self.answer.send(answer);
    }
}

/// What the files ask.
pub struct Counter(Sender<Request>);

/// Where it is answered. Dropped, all that is asked from then on is refused.
pub struct Desk(Receiver<Request>);

/// Both sides.
pub fn desk() -> (Counter, Desk) {
    let (ask, asked) = channel();
    (Counter(ask), Desk(asked))
}

impl Counter {
    fn ask(&self, path: &str, value: Option<&str>) -> Result<String, Refusal> {
        let (answer, answered) = sync_channel(1);
        let request = Request { path: path.to_owned(), value: value.map(str::to_owned), answer };
        self.0.send(request).map_err(|_| Refusal::over())?;
        answered.recv().unwrap_or_else(|_| Err(Refusal::over()))
    }
}

impl Store for Counter {
    fn read(&self, path: &str) -> Result<String, Refusal> {
        self.ask(path, None)
    }

    fn write(&self, path: &str, value: &str) -> Result<(), Refusal> {
        self.ask(path, Some(value)).map(drop)
    }
}

impl Desk {
    /// Answers for so long.
    pub fn serve(&self, time: Duration, mut answer: impl FnMut(&Request) -> Result<String, Refusal>) {
        let end = Instant::now() + time;
        loop {
            match self.0.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(request) => request.answer(answer(&request)),
                Err(RecvTimeoutError::Timeout) => return,
                // Nobody can ask, so this is only a pause.
                Err(RecvTimeoutError::Disconnected) => {
                    return std::thread::sleep(end.saturating_duration_since(Instant::now()));
                }
            }
        }
    }
}
