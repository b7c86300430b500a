/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The fields of a row, as an LTTng-UST tracepoint. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER mete_peer
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./row.h"

#if !defined(METE_PEER_ROW_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define METE_PEER_ROW_H

#include <stdint.h>
#include <lttng/tracepoint.h>

/* LTTng's field lists have no commas between them. */
/* clang-format off */
LTTNG_UST_TRACEPOINT_EVENT(
	mete_peer, row,
	LTTNG_UST_TP_ARGS(uint16_t, event, uint16_t, domain, uint16_t, correspondent, uint64_t, counter),
	LTTNG_UST_TP_FIELDS(
		lttng_ust_field_integer(uint16_t, event, event)
		lttng_ust_field_integer(uint16_t, domain, domain)
		lttng_ust_field_integer(uint16_t, correspondent, correspondent)
		lttng_ust_field_integer(uint64_t, counter, counter)))

#endif

#include <lttng/tracepoint-event.h>
