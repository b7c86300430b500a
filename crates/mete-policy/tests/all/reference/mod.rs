//! Virtual-time round robin as its paper describes it, written without regard for speed: virtual
//! times are fractions, the queue is a sorted list, and everything is computed anew when it is needed.
//!
//! Differences from the paper are those that the policy documents. QVT is the clients' mean virtual time, by
//! share, also after a client has left. A counter that neighbours restrict takes the virtual time with it. A
//! quantum is charged when it is given, but a client that arrives meanwhile sees the virtual time of that
//! moment.

use std::collections::BTreeMap;

/// A fraction with a positive denominator.
#[derive(Clone, Copy, Debug)]
pub struct Fraction(pub i128, pub i128);

impl std::ops::Sub for Fraction {
    type Output = Fraction;

    fn sub(self, other: Fraction) -> Fraction {
        Fraction(self.0 * other.1 - other.0 * self.1, self.1 * other.1)
    }
}

impl Fraction {
    pub fn is_below(self, other: Fraction) -> bool {
        self.0 * other.1 < other.0 * self.1
    }
}

#[derive(Clone, Debug)]
pub struct Client {
    pub id: u32,
    pub share: i128,
    pub counter: i128,
    /// Service in this cycle according to its virtual time: virtual time × share.
    pub had_ns: i128,
    pub busy: bool,
}

#[derive(Clone, Copy, Debug)]
struct Left {
    cycle: i128,
    due_ns: i128,
    share: i128,
}

type Key = (i128, u32);

/// The model. Quanta of `quantum_ns`.
pub struct Model {
    pub quantum_ns: i128,
    pub queue: Vec<Client>,
    pub cycle: i128,
    current: Option<(Key, i128)>,
    left: BTreeMap<u32, Left>,
}

fn key(client: &Client) -> Key {
    (-client.share, client.id)
}

fn ceil_div(dividend: i128, divisor: i128) -> i128 {
    dividend.div_euclid(divisor) + i128::from(dividend.rem_euclid(divisor) > 0)
}

impl Model {
    pub fn new(quantum_ns: u64) -> Model {
        Model { quantum_ns: quantum_ns.into(), queue: vec![], cycle: 1, current: None, left: BTreeMap::new() }
    }

    fn total(&self) -> i128 {
        self.queue.iter().map(|client| client.share).sum()
    }

    fn due_ns(&self, client: &Client) -> i128 {
        client.share * self.quantum_ns - client.had_ns
    }

    /// QVT in cycles.
    pub fn queue_virtual_time(&self) -> Fraction {
        let had: i128 = self.queue.iter().map(|client| client.had_ns).sum();
        Fraction(had, self.total() * self.quantum_ns)
    }

    /// VFT in cycles.
    pub fn virtual_finishing_time(&self, client: &Client) -> Fraction {
        Fraction(client.had_ns + self.quantum_ns, client.share * self.quantum_ns)
    }

    /// VFT(t) − QVT(t + Q) < Q / S (paper, §3.1).
    fn inequality(&self, client: &Client) -> bool {
        let Fraction(had, whole) = self.queue_virtual_time();
        let after = Fraction(had + self.quantum_ns, whole);
        (self.virtual_finishing_time(client) - after).is_below(Fraction(1, client.share))
    }

    /// The client that runs next; it is charged a quantum.
    pub fn pick(&mut self) -> Option<u32> {
        let index = self.next()?;
        let quantum_ns = self.quantum_ns;
        let client = &mut self.queue[index];
        client.counter -= 1;
        client.had_ns += quantum_ns;
        client.busy = true;
        self.current = Some((key(client), client.counter));
        Some(client.id)
    }

    fn next(&mut self) -> Option<usize> {
        if let Some((current, counter)) = self.current {
            let behind = self.queue.iter().position(|client| !client.busy && key(client) > current);
            if let Some(index) = behind {
                let client = &self.queue[index];
                if client.counter > counter || (client.counter > 0 && self.inequality(client)) {
                    return Some(index);
                }
            }
        }
        let head = self.queue.iter().position(|client| !client.busy)?;
        if self.queue[head].counter == 0 {
            self.new_cycle();
        }
        Some(head)
    }

    fn new_cycle(&mut self) {
        self.cycle += 1;
        let quantum_ns = self.quantum_ns;
        for client in &mut self.queue {
            let used_ns = client.counter * quantum_ns - (client.share * quantum_ns - client.had_ns);
            client.counter = client.share + client.counter.min(client.share);
            client.had_ns = client.share * quantum_ns - (client.counter * quantum_ns - used_ns);
        }
    }

    pub fn ran(&mut self, id: u32, ran_ns: i128, blocked: bool, preempted: bool) {
        let quantum_ns = self.quantum_ns;
        let Some(index) = self.queue.iter().position(|client| client.id == id && client.busy) else { return };
        let client = &mut self.queue[index];
        client.busy = false;
        let mut due_ns = client.share * quantum_ns - client.had_ns + quantum_ns - ran_ns;
        if due_ns <= -quantum_ns {
            due_ns = -(-due_ns % quantum_ns);
        }
        client.had_ns = client.share * quantum_ns - due_ns;
        client.counter = ceil_div(due_ns, quantum_ns);
        let (key, counter) = (key(client), client.counter);
        if blocked {
            self.leave(id);
        } else if preempted && self.current.is_some_and(|current| current.0 == key && counter > current.1) {
            let before = index.checked_sub(1).map_or((i128::MIN, 0), |before| self::key(&self.queue[before]));
            self.current = Some((before, 0));
        }
    }

    pub fn leave(&mut self, id: u32) {
        let Some(index) = self.queue.iter().position(|client| client.id == id) else { return };
        let client = self.queue.remove(index);
        let left = Left { cycle: self.cycle, due_ns: self.due_ns(&client), share: client.share };
        self.left.insert(id, left);
    }

    pub fn forget(&mut self, id: u32) {
        self.leave(id);
        self.left.remove(&id);
    }

    /// `unused_ns`: what the clients that run have been charged and not used yet.
    pub fn enter(&mut self, id: u32, share: i128, unused_ns: i128) {
        if self.queue.is_empty() {
            self.cycle += 1;
            self.current = None;
        }
        let stayed_ns = self.due_if_stayed(id, share);
        let due_ns = self.due_on_arrival(share, stayed_ns, unused_ns);
        let had_ns = share * self.quantum_ns - due_ns;
        let counter = ceil_div(due_ns, self.quantum_ns);
        let client = Client { id, share, counter, had_ns, busy: false };
        let index = self.queue.partition_point(|other| key(other) < key(&client));
        self.queue.insert(index, client);
        self.restrict(index, stayed_ns);
    }

    /// S · Σdue / T, and no more than if it had stayed (paper, §3.2).
    fn due_on_arrival(&self, share: i128, stayed_ns: i128, unused_ns: i128) -> i128 {
        let whole_ns = share * self.quantum_ns;
        let charged_ns: i128 = self.queue.iter().map(|client| self.due_ns(client)).sum();
        let due_ns = charged_ns + unused_ns;
        let limit_ns = if self.queue.is_empty() { whole_ns } else { (share * due_ns).max(0) / self.total() };
        limit_ns.min(stayed_ns).min(whole_ns).max(1 - self.quantum_ns)
    }

    /// What would be due to a client if it had stayed and not run. Nothing limits a client that was never
    /// there.
    fn due_if_stayed(&self, id: u32, share: i128) -> i128 {
        let Some(left) = self.left.get(&id) else { return i128::from(i64::MAX) };
        let was_ns = if share < left.share { left.due_ns * share / left.share } else { left.due_ns };
        was_ns + (self.cycle - left.cycle) * share * self.quantum_ns
    }

    /// No larger than the counter before, no smaller than the one behind.
    fn restrict(&mut self, index: usize, stayed_ns: i128) {
        let largest = index.checked_sub(1).map(|before| self.queue[before].counter);
        let mut smallest = self.queue.get(index + 1).map_or(0, |client| client.counter);
        if let (Some((current, counter)), Some(behind)) = (self.current, self.queue.get(index + 1)) {
            let passed = key(&self.queue[index]) <= current;
            if passed && key(behind) > current && behind.counter > counter {
                smallest = behind.counter - 1;
            }
        }
        let quantum_ns = self.quantum_ns;
        let client = &mut self.queue[index];
        let counter = client.counter.min(largest.unwrap_or(i128::MAX)).max(smallest);
        if counter > client.counter {
            // Raised, but to no more than if it had stayed, as far as the counter allows that.
            let whole_ns = counter * quantum_ns;
            client.had_ns =
                client.share * quantum_ns - stayed_ns.min(whole_ns).max(whole_ns - quantum_ns + 1);
        } else {
            client.had_ns += (client.counter - counter) * quantum_ns;
        }
        client.counter = counter;
    }
}
