//! How evenly a service is divided.

/// Jain's fairness index of service per share (Jain, Chiu and Hawe, 1984): (Σx)² / (n Σx²). It goes from 1/n,
/// where one client has everything, to 1, where each client has exactly its share. `None` without clients, or
/// if no client had anything. Clients with a share of 0 are left out.
///
/// ```
/// use mete_sim::metrics::jain;
///
/// assert_eq!(jain([(10, 1), (20, 2)]), Some(1.0));
/// assert_eq!(jain([(10, 1), (0, 1)]), Some(0.5));
/// ```
pub fn jain(service_and_share: impl IntoIterator<Item = (u64, u32)>) -> Option<f64> {
    let (mut clients, mut sum, mut squares) = (0u32, 0.0, 0.0);
    for (service, share) in service_and_share.into_iter().filter(|&(_, share)| share > 0) {
        let part = service as f64 / f64::from(share);
        clients += 1;
        sum += part;
        squares += part * part;
    }
    (squares > 0.0).then(|| sum * sum / (f64::from(clients) * squares))
}

#[cfg(test)]
mod tests {
    use super::jain;

    #[test]
    fn no_clients_and_no_service_have_no_index() {
        assert_eq!(jain([]), None);
        assert_eq!(jain([(0, 1), (0, 7)]), None);
        assert_eq!(jain([(5, 0)]), None);
    }

    #[test]
    fn one_client_of_four_that_has_everything_gives_a_quarter() {
        assert_eq!(jain([(0, 3), (0, 1), (9, 3), (0, 2)]), Some(0.25));
    }
}
