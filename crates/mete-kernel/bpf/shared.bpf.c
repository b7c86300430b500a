// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/*
 * An object that is never loaded. Its type information is what the Rust side of shared.h, and of the maps
 * and globals of record.bpf.h, is generated from.
 */
#include "record.bpf.h"
#include "shared.h"

/* Type information has only the types of variables: so each shared enumeration is the type of a member. */
struct shared_types {
	enum mete_event event;
	enum mete_limit limit;
	enum mete_binding binding;
	enum rule_kind rule_kind;
	enum token_kind token_kind;
	enum by_kind by_kind;
	enum bench_row_entry bench_row_entry;
	enum mete_recording_limit recording_limit;
} shared_types;
