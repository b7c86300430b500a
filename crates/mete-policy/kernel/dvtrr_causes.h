/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* What wakes clients: the twin of the causes in src/distributed/boosting.rs. */
#ifndef METE_DVTRR_CAUSES_H
#define METE_DVTRR_CAUSES_H

/* How many causes there are. A power of two. */
#define DVTRR_CAUSES 8

/*
 * What wakes a client: another one, where no event was seen; a completed read or write of a block; a packet, by its port; another
 * interrupt, as that of a timer.
 */
#define DVTRR_BY_CLIENT 0
#define DVTRR_BY_INTERRUPT 1
#define DVTRR_BY_BLOCK 2
#define DVTRR_BY_PORT 3
/* The ports of packets are divided among what is left of the causes. */
#define DVTRR_PORTS 5

static __always_inline __u32 dvtrr_by_port(__u16 port)
{
	return DVTRR_BY_PORT + port % DVTRR_PORTS;
}

#endif
