/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The sender of the packet that is being delivered. A packet over the loopback device is delivered in a soft
 * interrupt: mostly in the middle of the sender's own system call, but at times in that of another task, or
 * in a thread of the kernel. So the programs remember the sender of each packet until it is delivered:
 *
 *   net_dev_queue       a packet goes to the device   note its sender, by the address of the packet
 *   netif_receive_skb   the packet is delivered       the sender is the cause of what follows
 *   napi_poll           a round of delivery is over   no task is the cause any more
 *
 * A socket may send more later, when an acknowledgement or a timer allows it. It does that in a soft
 * interrupt, too. The sender is then the task that used the socket last.
 */
#ifndef METE_NETWORK_H
#define METE_NETWORK_H

#include "context.h"

#define IFF_LOOPBACK 8
#define NO_SENDER 0ull

/*
 * Two tables whose slots are chosen by address; a later entry replaces the one before it in the same slot.
 * An entry is one word with the low 48 bits of an address and a domain, so that it is read and written whole.
 */
#define SENDER_SLOTS 4096
#define ENTRY_DOMAIN 0xffffull

__u64 sender_of_packet[SENDER_SLOTS] SEC(".bss.packets");
__u64 sender_of_socket[SENDER_SLOTS] SEC(".bss.sockets");

/*
 * Packets and sockets begin on cache lines, so the low 6 bits of their addresses are the same. Neighbours are
 * some hundred bytes apart.
 */
static __always_inline volatile __u64 *slot_of(__u64 *table, __u64 address)
{
	return &table[(address >> 6 ^ address >> 18) & (SENDER_SLOTS - 1)];
}

static __always_inline __u64 entry_for(__u64 address, __u16 domain)
{
	return address << 16 | domain;
}

static __always_inline _Bool is_entry_for(__u64 entry, __u64 address)
{
	return address && (entry & ~ENTRY_DOMAIN) == address << 16;
}

/* What each processor delivers: the entry of a packet, or NO_SENDER. */
struct delivery {
	__u64 entry;
	__u64 address; /* only for address_of */
	__u64 padding[6]; /* to a whole cache line */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct delivery);
} deliveries SEC(".maps");

static __always_inline struct delivery *delivery_here(void)
{
	__u32 processor = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&deliveries, &processor);
}

/*
 * The address as a number. The verifier forbids sums with a pointer, but allows them with a number that was
 * read from a map. Soft interrupts are off where packets are sent and delivered, so no other program of this
 * file writes between the store and the load.
 */
static __always_inline __u64 address_of(struct delivery *here, const void *object)
{
	*(volatile __u64 *)&here->address = (__u64)object;
	return *(volatile __u64 *)&here->address;
}

static __always_inline _Bool is_loopback(const struct sk_buff *packet)
{
	return packet->dev->flags & IFF_LOOPBACK;
}

SEC("tp_btf/net_dev_queue")
int on_send(__u64 *ctx)
{
	struct sk_buff *sent = (void *)ctx[0];
	struct task_struct *task = current_task();
	struct delivery *here = delivery_here();
	volatile __u16 *table = pid_table();
	volatile __u64 *owner;
	__u64 packet, socket;

	if (!table || !here || !is_loopback(sent))
		return 0;
	packet = address_of(here, sent);
	socket = address_of(here, sent->sk);
	owner = slot_of(sender_of_socket, socket);
	if (context_of(ctx, task) == OF_TASK) {
		__u16 domain = domain_of(table, task);

		if (socket)
			*owner = entry_for(socket, domain);
		*slot_of(sender_of_packet, packet) = entry_for(packet, domain);
	} else {
		__u64 entry = *owner;
		_Bool is_known = is_entry_for(entry, socket);

		*slot_of(sender_of_packet, packet) =
			is_known ? entry_for(packet, entry & ENTRY_DOMAIN) : NO_SENDER;
	}
	return 0;
}

SEC("tp_btf/netif_receive_skb")
int on_receive(__u64 *ctx)
{
	struct sk_buff *received = (void *)ctx[0];
	struct delivery *here = delivery_here();
	volatile __u64 *slot;
	__u64 entry, packet;

	if (!here)
		return 0;
	packet = address_of(here, received);
	slot = slot_of(sender_of_packet, packet);
	entry = *slot;
	if (!is_loopback(received) || !is_entry_for(entry, packet)) {
		here->entry = NO_SENDER;
		return 0;
	}
	here->entry = entry;
	/* The address may soon be that of another packet. */
	*slot = NO_SENDER;
	return 0;
}

SEC("tp_btf/napi_poll")
int on_delivered(__u64 *ctx)
{
	struct delivery *here = delivery_here();

	if (here)
		here->entry = NO_SENDER;
	return 0;
}

#endif
