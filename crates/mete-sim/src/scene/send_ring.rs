//! A guest's ring of packets to send, as far as the guest hears what became of them.
//!
//! The guest has to give back the memory of packets that are sent, so the driver answers each packet. The
//! guest says in the ring which answer shall raise an event. It looks at the ring at each event and after
//! each packet that it puts in.

/// Which answer shall raise an event in the guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TellSent {
    /// None.
    #[default]
    Never,
    /// The one in the middle of all packets that are under way when the guest looks. So the guest hears of at
    /// least one packet, and of few if there are many. Xen's network frontend of Linux 2.6.18 does so
    /// (`network_tx_buf_gc`: `rsp_event`).
    Middle,
    /// The n-th answer from the moment when the guest looks. The free drivers for Windows (GPLPV) use the
    /// 64th.
    After(u64),
}

/// Counts the packets that a guest has asked to be sent, those that were sent, and which one raises an event.
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
    /// The guest puts a packet in, and looks.
    pub(super) fn ask(&mut self, tell: TellSent) {
        self.asked += 1;
        self.look(tell);
    }

    /// A packet is sent. `true`: it raises an event.
    pub(super) fn sent(&mut self) -> bool {
        self.sent += 1;
        // Equal, not greater: an event is raised once, until the guest looks again.
        self.sent == self.tell_at
    }

    /// The guest looks at its ring, as it does at every event of its network device.
    pub(super) fn look(&mut self, tell: TellSent) {
        let ahead = match tell {
            TellSent::Never => return,
            // At least one ahead, so that the guest hears of something.
            TellSent::Middle => self.asked.saturating_sub(self.sent) / 2 + 1,
            TellSent::After(packets) => packets.max(1),
        };
        self.tell_at = self.sent + ahead;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(ring: &mut SendRing, count: usize) -> Vec<bool> {
        (0..count).map(|_| ring.sent()).collect()
    }

    #[test]
    fn a_guest_hears_of_the_packet_in_the_middle_of_what_is_under_way_when_it_looks() {
        let mut ring = SendRing::default();
        (0..8).for_each(|_| ring.ask(TellSent::Middle));
        assert_eq!(heard(&mut ring, 6), [false, false, false, false, true, false]);
        ring.look(TellSent::Middle);
        assert_eq!(heard(&mut ring, 2), [false, true], "of the second of two");
        ring.ask(TellSent::Middle);
        assert_eq!(heard(&mut ring, 1), [true], "of one alone");
    }

    #[test]
    fn a_guest_that_wants_to_hear_of_every_third_looks_three_ahead() {
        let mut ring = SendRing::default();
        (0..5).for_each(|_| ring.ask(TellSent::After(3)));
        assert_eq!(heard(&mut ring, 5), [false, false, true, false, false]);
        ring.look(TellSent::After(3));
        (0..3).for_each(|_| ring.asked += 1);
        assert_eq!(heard(&mut ring, 3), [false, false, true]);
    }
}
