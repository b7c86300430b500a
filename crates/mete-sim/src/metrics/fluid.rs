//! The ideal that service is compared with: a server that divides itself without limit (generalised processor
//! sharing; Parekh and Gallager, 1993; the fluid system of the VTRR paper, §2.1).
//!
//! Every client that is ready or runs is served at once, by its share. A virtual time V advances by the
//! machine's capacity over the sum of the shares that compete, and a client that competes is due its share of
//! V's advance. With domains, each domain has a virtual time of its own, fed by what its share is due of its
//! parent's. The capacity is that of all processors, or of as many as there are clients to run.
//!
//! V is an integer, in 2⁻⁶⁰ ns for each unit of share. A division loses less than that, so a million events
//! cost the largest share less than 2⁻²⁰ ns. A call takes time in the depth of domains, not in the number of
//! clients.

use mete_policy::{ClientId, DomainIndex, Nanoseconds, Share};

/// The bits of a nanosecond's fraction. The length of a run times its processors fits into 64 bits.
const FRACTION_BITS: u32 = 60;

/// A group of clients and of groups; the first one is the root.
#[derive(Clone, Copy, Default)]
struct Group {
    parent: usize,
    share: u64,
    /// The sum of the shares that compete in it; 0 while no member competes.
    competing: u64,
    /// V.
    served: u128,
    /// The parent's V when this V was last brought up to date; for the root, the capacity since the
    /// beginning.
    seen: u128,
}

#[derive(Clone, Copy, Default)]
struct Member {
    group: usize,
    share: u64,
    is_active: bool,
    /// What it was due until V was `seen`.
    due: u128,
    seen: u128,
}

/// What each client would have had under the fluid server.
#[derive(Default)]
pub struct Fluid {
    processors: u64,
    groups: Vec<Group>,
    members: Vec<Member>,
    active: u64,
    capacity: u128,
    now_ns: Nanoseconds,
    /// Room for a path up to the root.
    path: Vec<usize>,
}

impl Fluid {
    /// A server with this number of processors, at time 0, without clients.
    pub fn new(processors: u16) -> Fluid {
        let (processors, groups) = (processors.into(), vec![Group { share: 1, ..Group::default() }]);
        Fluid { processors, groups, path: Vec::with_capacity(1), ..Fluid::default() }
    }

    /// Adds a domain. Domains are numbered from 1 on, in the order in which they are added; a parent comes
    /// before its children.
    pub fn add_domain(&mut self, parent: DomainIndex, share: Share) {
        let parent = parent.index().min(self.groups.len() - 1);
        self.groups.push(Group { parent, share: share.get().into(), ..Group::default() });
        self.path.reserve(self.groups.len());
    }

    /// Adds a client that waits. Clients are numbered in the order in which they are added.
    pub fn add(&mut self, domain: DomainIndex, share: Share) {
        let group = domain.index().min(self.groups.len() - 1);
        self.members.push(Member { group, share: share.get().into(), ..Member::default() });
    }

    /// A client competes from now on.
    pub fn activate(&mut self, client: ClientId, now_ns: Nanoseconds) {
        self.change(client, now_ns, true);
    }

    /// A client no longer competes.
    pub fn deactivate(&mut self, client: ClientId, now_ns: Nanoseconds) {
        self.change(client, now_ns, false);
    }

    /// A client's share changes.
    pub fn set_share(&mut self, client: ClientId, share: Share, now_ns: Nanoseconds) {
        let is_active = self.members.get(client.index()).is_some_and(|member| member.is_active);
        // What the client is due until now is due by its old share.
        self.deactivate(client, now_ns);
        if let Some(member) = self.members.get_mut(client.index()) {
            member.share = share.get().into();
        }
        if is_active {
            self.activate(client, now_ns);
        }
    }

    /// A domain's share changes; the root has no share.
    pub fn set_domain_share(&mut self, domain: DomainIndex, share: Share, now_ns: Nanoseconds) {
        let index = domain.index();
        if index == 0 || index >= self.groups.len() {
            return;
        }
        self.pass_to(index, now_ns);
        let Group { parent, share: before, competing, .. } = self.groups[index];
        self.groups[index].share = share.get().into();
        // An empty domain does not compete in its parent.
        if competing > 0 {
            let all = &mut self.groups[parent].competing;
            *all = *all - before + u64::from(share.get());
        }
    }

    /// The service that a client had minus the service that it was due, to the nearest nanosecond: below 0,
    /// it should have had more.
    pub fn error_ns(&mut self, client: ClientId, had_ns: i64, now_ns: Nanoseconds) -> i64 {
        let due = self.due(client, now_ns) as i128;
        let error = (i128::from(had_ns) << FRACTION_BITS) - due;
        // Half a nanosecond is added before the fraction is cut off: so it is rounded.
        ((error + (1 << (FRACTION_BITS - 1))) >> FRACTION_BITS) as i64
    }

    /// Forgets what all clients were due. Clients that compete go on competing.
    pub fn forget(&mut self, now_ns: Nanoseconds) {
        for client in 0..self.members.len() {
            self.due(ClientId::at(client), now_ns);
            self.members[client].due = 0;
        }
    }

    fn due(&mut self, client: ClientId, now_ns: Nanoseconds) -> u128 {
        let Some(&Member { group, is_active, .. }) = self.members.get(client.index()) else { return 0 };
        if is_active {
            self.pass_to(group, now_ns);
        }
        let served = self.groups[group].served;
        let member = &mut self.members[client.index()];
        if is_active {
            member.due += u128::from(member.share) * (served - member.seen);
        }
        member.seen = served;
        member.due
    }

    fn change(&mut self, client: ClientId, now_ns: Nanoseconds, is_active: bool) {
        let Some(&Member { group, share, is_active: was_active, .. }) = self.members.get(client.index())
        else {
            return;
        };
        if was_active == is_active {
            return;
        }
        // What clients are due up to now is due by the old set of competitors.
        self.pass_to(group, now_ns);
        self.due(client, now_ns);
        self.members[client.index()].is_active = is_active;
        if is_active {
            self.active += 1;
            self.join(group, share);
        } else {
            self.active -= 1;
            self.leave(group, share);
        }
    }

    /// A share competes in a group, and with its first share the group competes in its parent.
    fn join(&mut self, mut group: usize, mut share: u64) {
        loop {
            let was_empty = self.groups[group].competing == 0;
            self.groups[group].competing += share;
            if !was_empty || group == 0 {
                return;
            }
            Group { parent: group, share, .. } = self.groups[group];
        }
    }

    fn leave(&mut self, mut group: usize, mut share: u64) {
        loop {
            self.groups[group].competing -= share;
            if self.groups[group].competing > 0 || group == 0 {
                return;
            }
            Group { parent: group, share, .. } = self.groups[group];
        }
    }

    /// Brings V of a group, and of all groups above it, up to the present: from the root down.
    fn pass_to(&mut self, group: usize, now_ns: Nanoseconds) {
        let passed_ns = now_ns.saturating_sub(self.now_ns);
        self.now_ns += passed_ns;
        // A client cannot run on two processors at once, so processors beyond the active clients add nothing.
        let capacity_ns = u128::from(passed_ns) * u128::from(self.processors.min(self.active));
        self.capacity += capacity_ns << FRACTION_BITS;
        let mut path = std::mem::take(&mut self.path);
        let mut at = group;
        while at != 0 {
            path.push(at);
            at = self.groups[at].parent;
        }
        let mut above = self.groups[0].pass_to(self.capacity);
        while let Some(below) = path.pop() {
            above = self.groups[below].pass_to(above);
        }
        self.path = path;
    }
}

impl Group {
    /// V, when the parent's is `above`.
    fn pass_to(&mut self, above: u128) -> u128 {
        let advance = above - self.seen;
        self.seen = above;
        if self.competing > 0 && advance > 0 {
            // The groups are due no more than the whole capacity, so the product fits as the capacity does.
            self.served += advance * u128::from(self.share) / u128::from(self.competing);
        }
        self.served
    }
}
