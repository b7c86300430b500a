//! What clients can have on several processors, by their shares.

/// The part of one processor that each client can have at most: a client that would have more than one has
/// one, and the others share the rest.
pub fn feasible(shares: &[u32], processors: u16) -> Vec<f64> {
    divided(shares, &vec![1.0; shares.len()], processors.into())
}

/// What members have of so many processors, by their shares, where each can use so much at most.
pub fn divided(shares: &[u32], most: &[f64], processors: f64) -> Vec<f64> {
    let mut parts = vec![0.0; shares.len()];
    let mut order: Vec<usize> = (0..shares.len()).collect();
    // Those that reach the most that they can use come first.
    order.sort_by(|&one, &other| {
        let reached = |member: usize| most[member] / f64::from(shares[member]);
        reached(one).total_cmp(&reached(other))
    });
    let mut left = processors;
    let mut rest: f64 = shares.iter().map(|&share| f64::from(share)).sum();
    for member in order {
        let share = f64::from(shares[member]);
        parts[member] = (left * share / rest).min(most[member]);
        left -= parts[member];
        rest -= share;
    }
    parts
}
