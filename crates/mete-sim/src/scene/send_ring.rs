//! A guest's ring of packets to send, as far as it hears what became of them.
//!
//! The guest has to give back the memory of what is sent, so the driver answers each packet; and the guest
//! says in the ring by which answer it wants an event: by that in the middle of all that is under way when
//! it looks, so that it hears of at least one, and of few of many. That is what Xen's network frontend does
//! of Linux 2.6.18 (`network_tx_buf_gc`: `rsp_event`) and the backend follows (`make_tx_response`).

/// Counts what a guest has asked to be sent, what was, and when it wants to hear of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendRing {
    asked: u64,
    sent: u64,
    tell_at: u64,
}

impl Default for SendRing {
    fn default() -> SendRing {
        SendRing { asked: 0, sent: 0, tell_at: 1 }
    }
}

impl SendRing {
    /// The guest puts a packet in.
    pub(super) fn ask(&mut self) {
        self.asked += 1;
    }

    /// A packet is sent. `true`: the guest wants to hear of that.
    pub(super) fn sent(&mut self) -> bool {
        self.sent += 1;
        self.sent == self.tell_at
    }

    /// The guest looks at its ring, which it does at every event of its network device.
    pub(super) fn look(&mut self) {
        self.tell_at = self.sent + self.asked.saturating_sub(self.sent) / 2 + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::SendRing;

    #[test]
    fn a_guest_hears_of_the_packet_in_the_middle_of_what_is_under_way_when_it_looks() {
        let mut ring = SendRing::default();
        (0..8).for_each(|_| ring.ask());
        let heard = |ring: &mut SendRing, count: usize| (0..count).map(|_| ring.sent()).collect::<Vec<_>>();
        assert_eq!(heard(&mut ring, 2), [true, false]);
        ring.look();
        assert_eq!(heard(&mut ring, 6), [false, false, false, true, false, false]);
        ring.look();
        ring.ask();
        assert_eq!(heard(&mut ring, 1), [true]);
    }
}
