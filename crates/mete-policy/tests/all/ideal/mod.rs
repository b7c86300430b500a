//! One processor with a policy, and in parallel the ideal server, which gives every runnable client its share
//! at every instant (VTRR paper, §2.1). The difference is the service-time error, in quanta.

use mete_policy::{Nanoseconds, Setup, Share, Stop};

use crate::common::plain::Policy;

/// Divisible by the shares that exact tests use.
pub const QUANTUM_NS: u64 = 1_000_000;
/// The error that floating-point sums of a few thousand terms may have.
pub const EPSILON: f64 = 1e-6;

pub fn setup(clients: u32) -> Setup {
    Setup { quantum_ns: Nanoseconds::new(QUANTUM_NS), ..Setup::for_clients(clients) }
}

pub fn share(weight: u32) -> Share {
    Share::new(weight).expect("a test's share is in range")
}

#[derive(Clone, Copy, Default)]
struct Book {
    share: u32,
    runnable: bool,
    got: f64,
    ideal: f64,
}

/// A policy and its books.
pub struct Bench<P> {
    pub policy: P,
    pub now: u64,
    books: Vec<Book>,
}

impl<P: Policy> Bench<P> {
    /// Clients of these shares, all awake.
    pub fn new(policy: P, shares: &[u32]) -> Bench<P> {
        let mut bench = Bench { policy, now: 0, books: vec![Book::default(); shares.len()] };
        for (client, &share) in (0..).zip(shares) {
            bench.add(client, share);
            bench.wake(client);
        }
        bench
    }

    /// Adds a client, asleep.
    pub fn add(&mut self, client: u32, weight: u32) {
        self.policy.add(client, 0, share(weight), self.now);
        self.books.resize(self.books.len().max(client as usize + 1), Book::default());
        self.books[client as usize] = Book { share: weight, ..Book::default() };
    }

    /// Wakes a client; its books begin anew.
    pub fn wake(&mut self, client: u32) {
        let _ = self.policy.wake(client, self.now);
        let book = &mut self.books[client as usize];
        *book = Book { share: book.share, runnable: true, ..Book::default() };
    }

    pub fn remove(&mut self, client: u32) {
        self.policy.remove(client, self.now);
        self.books[client as usize] = Book::default();
    }

    pub fn set_share(&mut self, client: u32, weight: u32) {
        self.policy.set_share(client, share(weight), self.now);
        self.books[client as usize].share = weight;
    }

    /// Lets the next client run for this part of its slice, in 1/256, and stop.
    pub fn run(&mut self, used: u8, stop: Stop) -> Option<u32> {
        self.run_and_stop(used, |_, _| stop)
    }

    /// The same, with a stop that depends on the client that ran and on its error then.
    pub fn run_and_stop(&mut self, used: u8, stop: impl FnOnce(u32, f64) -> Stop) -> Option<u32> {
        let decision = self.policy.pick(0, self.now)?;
        let client = decision.client;
        let ran_ns = decision.slice_ns * (u64::from(used) + 1) / 256;
        self.now += ran_ns;
        self.serve(client, ran_ns as f64 / QUANTUM_NS as f64);
        let stop = stop(client, self.error(client));
        self.policy.ran(client, ran_ns, stop, self.now);
        self.books[client as usize].runnable = stop != Stop::Blocked;
        Some(client)
    }

    /// Runs that number of whole quanta; answers which clients ran.
    pub fn quanta(&mut self, number: usize) -> Vec<u32> {
        (0..number).map_while(|_| self.run(255, Stop::Expired)).collect()
    }

    fn serve(&mut self, client: u32, quanta: f64) {
        let runnable = || self.books.iter().filter(|book| book.runnable);
        let shares: f64 = runnable().map(|book| f64::from(book.share)).sum();
        for book in self.books.iter_mut().filter(|book| book.runnable) {
            book.ideal += quanta * f64::from(book.share) / shares;
        }
        self.books[client as usize].got += quanta;
    }

    pub fn is_runnable(&self, client: u32) -> bool {
        self.books.get(client as usize).is_some_and(|book| book.runnable)
    }

    pub fn share_of(&self, client: u32) -> u32 {
        self.books[client as usize].share
    }

    /// The service that the client has had since its last wake-up, in quanta.
    pub fn got(&self, client: u32) -> f64 {
        self.books[client as usize].got
    }

    /// The service that it has had beyond the ideal, in quanta.
    pub fn error(&self, client: u32) -> f64 {
        let book = self.books[client as usize];
        book.got - book.ideal
    }

    /// The least and the greatest error of the runnable clients.
    pub fn errors(&self) -> (f64, f64) {
        let errors =
            (0..).zip(&self.books).filter(|(_, book)| book.runnable).map(|(client, _)| self.error(client));
        errors.fold((0.0, 0.0), |(least, most): (f64, f64), error| (least.min(error), most.max(error)))
    }
}
