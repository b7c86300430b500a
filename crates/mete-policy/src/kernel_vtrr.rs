//! Distributed group virtual-time round robin as it runs inside the kernel: the C of `kernel/`, compiled
//! natively (D12).
//!
//! The same calls give the same decisions as [`DistributedVtrr`](crate::DistributedVtrr)
//! (`tests/all/vtrr_kernel.rs`), so what the tests say of that policy holds for the kernel's as well. Its costs
//! and its fairness are those of its twin, too. One thing is this side's alone: the processor on which a
//! client wakes. Inside the kernel, `mete-ext` leaves that to the kernel, which looks for one that is idle.

use alloc::vec;
use alloc::vec::Vec;

use crate::{
    Causes, ClientId, Decision, DomainIndex, Event, Grant, Nanoseconds, Observation, Policy, ProcessorId,
    Setup, Share, Stop,
};

/// The state of the C code. Only that code knows what is in it.
#[repr(C)]
struct State {
    opaque: [u8; 0],
}

// The functions of `kernel/dvtrr_native.c`. Each but the first takes a state that `mete_dvtrr_begin` made.
unsafe extern "C" {
    safe fn mete_dvtrr_bytes(clients: u32, domains: u32, processors: u32) -> u64;
    fn mete_dvtrr_begin(state: *mut State, clients: u32, domains: u32, processors: u32, quantum_ns: u64);
    fn mete_dvtrr_add_domain(state: *mut State, domain: u32, parent: u32, share: u32);
    fn mete_dvtrr_remove_domain(state: *mut State, domain: u32);
    fn mete_dvtrr_set_domain_share(state: *mut State, domain: u32, share: u32);
    fn mete_dvtrr_add(state: *mut State, client: u32, domain: u32, share: u32);
    fn mete_dvtrr_remove(state: *mut State, client: u32);
    fn mete_dvtrr_set_share(state: *mut State, client: u32, share: u32);
    fn mete_dvtrr_set_allowed(state: *mut State, client: u32, processors: u64);
    fn mete_dvtrr_hasten(state: *mut State, client: u32) -> u32;
    fn mete_dvtrr_is_next(state: *mut State, client: u32) -> u32;
    fn mete_dvtrr_expect(state: *mut State, client: u32, event: u32, port: u32);
    fn mete_dvtrr_wake(state: *mut State, client: u32) -> u32;
    fn mete_dvtrr_pick(state: *mut State, processor: u32) -> u32;
    fn mete_dvtrr_is_ahead(state: *mut State, client: u32) -> u32;
    fn mete_dvtrr_keeps(state: *const State, processor: u32) -> u32;
    fn mete_dvtrr_goes_ahead(state: *const State, client: u32) -> u32;
    fn mete_dvtrr_ran(state: *mut State, client: u32, ran_ns: u64, stop: u32);
}

/// `DVTRR_NONE` of `kernel/dvtrr_state.h`.
const NONE: u32 = u32::MAX;

/// The policy that runs inside the kernel.
pub struct KernelVtrr {
    /// The C code's state: as many bytes as `mete_dvtrr_bytes` demands, with the alignment that it needs.
    memory: Vec<u64>,
    quantum_ns: Nanoseconds,
}

impl KernelVtrr {
    /// A policy without clients, and with no domain except the root.
    #[must_use]
    pub fn new(setup: &Setup) -> KernelVtrr {
        // The longest quantum of vtrr: a share's worth of them fits 64 bits.
        let quantum_ns = setup.quantum_ns.clamp(Nanoseconds::new(1), crate::vtrr::MAX_QUANTUM_NS);
        let (domains, processors) = (setup.domains.max(1).into(), setup.processors.max(1).into());
        let bytes = mete_dvtrr_bytes(setup.clients, domains, processors);
        let words = bytes.div_ceil(size_of::<u64>() as u64) as usize;
        let mut policy = KernelVtrr { memory: vec![0; words], quantum_ns };
        // SAFETY: the memory is zero, aligned to 8 bytes, and as large as the function above says for these
        // numbers.
        unsafe { mete_dvtrr_begin(policy.state(), setup.clients, domains, processors, quantum_ns.get()) };
        policy
    }

    /// As [`DistributedVtrr::hasten`](crate::DistributedVtrr::hasten).
    pub fn hasten(&mut self, client: ClientId) -> bool {
        // SAFETY: as for the calls of the policy below.
        unsafe { mete_dvtrr_hasten(self.state(), client.get()) != 0 }
    }

    /// Whether a client that waits runs next on its processor, because it is the only one that waits there,
    /// or that goes ahead: the kernel may be told of that at once. It is only said where it is certain.
    pub fn is_next(&mut self, client: ClientId) -> bool {
        // SAFETY: as for the calls of the policy below.
        unsafe { mete_dvtrr_is_next(self.state(), client.get()) != 0 }
    }

    fn state(&mut self) -> *mut State {
        self.memory.as_mut_ptr().cast()
    }
}

/// The number of `enum dvtrr_stop` in `kernel/dvtrr_state.h`.
fn stop_number(stop: Stop) -> u32 {
    match stop {
        Stop::Expired => 0,
        Stop::Preempted => 1,
        Stop::Yielded => 2,
        Stop::Blocked => 3,
    }
}

/// The number of `enum dvtrr_event` in `kernel/dvtrr_causes.h`, and the port of a packet.
fn event_numbers(event: Event) -> (u32, u32) {
    match event {
        Event::Other => (1, 0),
        Event::Block(_) => (2, 0),
        Event::Packet { port } => (3, port.into()),
    }
}

// SAFETY, for every call below: `new` has made the state in memory that this policy owns and never moves,
// `&mut self` is the only way to it, and the C code checks each number that it is given against the
// dimensions in the state.
impl Policy for KernelVtrr {
    fn name(&self) -> &'static str {
        "distributed-vtrr-kernel"
    }

    fn add_domain(&mut self, domain: DomainIndex, parent: DomainIndex, share: Share) {
        // SAFETY: see above.
        unsafe { mete_dvtrr_add_domain(self.state(), domain.get().into(), parent.get().into(), share.get()) };
    }

    fn remove_domain(&mut self, domain: DomainIndex) {
        // SAFETY: see above.
        unsafe { mete_dvtrr_remove_domain(self.state(), domain.get().into()) };
    }

    fn set_domain_share(&mut self, domain: DomainIndex, share: Share, _now: Nanoseconds) {
        // SAFETY: see above.
        unsafe { mete_dvtrr_set_domain_share(self.state(), domain.get().into(), share.get()) };
    }

    fn add(&mut self, client: ClientId, domain: DomainIndex, share: Share, _now: Nanoseconds) {
        // SAFETY: see above.
        unsafe { mete_dvtrr_add(self.state(), client.get(), domain.get().into(), share.get()) };
    }

    fn remove(&mut self, client: ClientId, _now: Nanoseconds) {
        // SAFETY: see above.
        unsafe { mete_dvtrr_remove(self.state(), client.get()) };
    }

    fn set_share(&mut self, client: ClientId, share: Share, _now: Nanoseconds) {
        // SAFETY: see above.
        unsafe { mete_dvtrr_set_share(self.state(), client.get(), share.get()) };
    }

    fn set_allowed(&mut self, client: ClientId, processors: u64) {
        // SAFETY: as above.
        unsafe { mete_dvtrr_set_allowed(self.state(), client.get(), processors) };
    }

    fn knows_bounds(&self) -> bool {
        true
    }

    fn wake(&mut self, client: ClientId, _now: Nanoseconds) -> Option<ProcessorId> {
        // SAFETY: see above.
        let processor = unsafe { mete_dvtrr_wake(self.state(), client.get()) };
        (processor != NONE).then_some(ProcessorId::new(processor as u16))
    }

    fn pick(&mut self, processor: ProcessorId, _now: Nanoseconds) -> Option<Decision> {
        // SAFETY: see above.
        let number = unsafe { mete_dvtrr_pick(self.state(), processor.get().into()) };
        let client = Some(number).filter(|&number| number != NONE).map(ClientId::new)?;
        // SAFETY: see above.
        let is_ahead = unsafe { mete_dvtrr_is_ahead(self.state(), client.get()) } != 0;
        let grant = if is_ahead { Grant::PartialBoost } else { Grant::Share };
        Some(Decision { client, slice_ns: self.quantum_ns, grant })
    }

    fn keeps(&self, processor: ProcessorId) -> bool {
        // SAFETY: as above, and this only reads.
        unsafe { mete_dvtrr_keeps(self.memory.as_ptr().cast(), processor.get().into()) != 0 }
    }

    fn goes_ahead(&self, client: ClientId) -> Causes {
        // SAFETY: as above, and this only reads.
        let causes = unsafe { mete_dvtrr_goes_ahead(self.memory.as_ptr().cast(), client.get()) };
        Causes::from_bits(causes as u8)
    }

    fn ran(&mut self, client: ClientId, ran_ns: Nanoseconds, stop: Stop, _now: Nanoseconds) {
        // SAFETY: see above.
        unsafe { mete_dvtrr_ran(self.state(), client.get(), ran_ns.get(), stop_number(stop)) };
    }

    fn observe(&mut self, observation: Observation, _now: Nanoseconds) -> Option<ProcessorId> {
        if let Observation::EventPending { client, event } = observation {
            let (number, port) = event_numbers(event);
            // SAFETY: as above.
            unsafe { mete_dvtrr_expect(self.state(), client.get(), number, port) };
        }
        None
    }
}
