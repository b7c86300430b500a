//! What clients can have on several processors, by their shares.

#![allow(dead_code, reason = "each test file uses a part")]

/// The part of one processor that each client can have at most: a client that would have more than one has one, and
/// the others share the rest.
pub fn feasible(shares: &[u32], processors: u16) -> Vec<f64> {
    let mut parts = vec![0.0; shares.len()];
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by_key(|&client| std::cmp::Reverse(shares[client]));
    let mut left = f64::from(processors);
    let mut rest: f64 = shares.iter().map(|&share| f64::from(share)).sum();
    for client in order {
        let share = f64::from(shares[client]);
        parts[client] = (left * share / rest).min(1.0);
        left -= parts[client];
        rest -= share;
    }
    parts
}
