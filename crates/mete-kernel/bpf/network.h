/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Who sent the packet that is being delivered. What a task sends over the loopback device is delivered
 * in a soft interrupt: mostly in the middle of its own system call, but at times by another task's or
 * by a thread of the kernel. So each packet's sender is remembered until it is delivered:
 *
 *   net_dev_queue       a packet goes to the device   its sender, by the packet's address
 *   netif_receive_skb   it is delivered               the sender is the cause of what follows
 *   napi_poll           a round of delivery is over   nobody is
 *
 * What a socket sends later, when an acknowledgement or a timer lets it, is sent in a soft interrupt,
 * too, by the task that used the socket last.
 */
#ifndef METE_NETWORK_H
#define METE_NETWORK_H

#include "context.h"

#define IFF_LOOPBACK 8
#define NOBODY 0ull

/*
 * A table whose places are chosen by address; what comes later to a place is what stands there. One
 * word holds the low 48 bits of an address and a domain, so that it is read and written whole.
 */
#define PLACES 4096
#define BOUND 0xffffull

__u64 sender_of_packet[PLACES] SEC(".bss.packets");
__u64 sender_of_socket[PLACES] SEC(".bss.sockets");

/* Structures begin on cache lines, and neighbours are some hundred bytes apart. */
static __always_inline volatile __u64 *place_of(__u64 *table, __u64 address)
{
	return &table[(address >> 6 ^ address >> 18) & (PLACES - 1)];
}

static __always_inline __u64 entry_for(__u64 address, __u16 domain)
{
	return address << 16 | domain;
}

static __always_inline _Bool is_entry_for(__u64 entry, __u64 address)
{
	return address && (entry & ~BOUND) == address << 16;
}

/* What each processor delivers: a packet's entry, or NOBODY. */
struct delivery {
	__u64 entry;
	__u64 address; /* for address_of alone */
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

/* The verifier lets no program do sums with a pointer, but with a number that lay in a map. Soft
 * interrupts are off where packets are sent and delivered: nothing comes in between. */
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
	owner = place_of(sender_of_socket, socket);
	if (context_of(ctx, task) == OF_TASK) {
		__u16 domain = domain_of(table, task);

		if (socket)
			*owner = entry_for(socket, domain);
		*place_of(sender_of_packet, packet) = entry_for(packet, domain);
	} else {
		__u64 entry = *owner;
		_Bool is_known = is_entry_for(entry, socket);

		*place_of(sender_of_packet, packet) = is_known ? entry_for(packet, entry & BOUND) : NOBODY;
	}
	return 0;
}

SEC("tp_btf/netif_receive_skb")
int on_receive(__u64 *ctx)
{
	struct sk_buff *received = (void *)ctx[0];
	struct delivery *here = delivery_here();
	volatile __u64 *place;
	__u64 entry, packet;

	if (!here)
		return 0;
	packet = address_of(here, received);
	place = place_of(sender_of_packet, packet);
	entry = *place;
	if (!is_loopback(received) || !is_entry_for(entry, packet)) {
		here->entry = NOBODY;
		return 0;
	}
	here->entry = entry;
	*place = NOBODY;
	return 0;
}

SEC("tp_btf/napi_poll")
int on_delivered(__u64 *ctx)
{
	struct delivery *here = delivery_here();

	if (here)
		here->entry = NOBODY;
	return 0;
}

#endif
