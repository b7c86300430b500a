/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * The numbers that the programs and the Rust code of this crate share. They are written here and nowhere
 * else: shared.bpf.c puts these types into the type information of an object, and build.rs generates the
 * Rust constants from it. An enumeration that is new needs a member in shared.bpf.c, too.
 */
#ifndef METE_SHARED_H
#define METE_SHARED_H

/* The events of the kernel component. src/characteristic.rs says what their rows hold. */
enum mete_event {
	METE_SERVICE_TIME = 0,
	METE_IPC_SEND = 1,
	METE_IPC_RECEIVE = 2,
	METE_MEMORY = 3,
	METE_RUN_QUEUE = 4,
	METE_COUNTERS = 8, /* the first performance counter; the others follow */
};

enum mete_limit {
	COUNTERS = 16, /* performance counters that can be open at a time */
	MAX_RULES = 1024,
	MAX_TOKENS = 32768, /* of all patterns together */
	MAX_CLASSES = 256, /* of all patterns together */
	MATCH_STEPS = 65536, /* a pattern that takes more steps selects nothing */
	COMM_BYTES = 16, /* of the name of a task, with the zero at its end */
};

/* In an entry of the table from pid to domain. */
enum mete_binding {
	BOUND_BY_CGROUP = 0x8000, /* the domain comes from a cgroup of the task */
};

/* What a rule compares. */
enum rule_kind {
	RULE_PROCESS = 1,
	RULE_CHILDREN = 2,
	RULE_USER = 3,
	RULE_COMM = 4,
	RULE_PROGRAM = 5,
};

/* The tokens of a pattern. In a path, only TOKEN_BYTE and TOKEN_DEEP take a slash. */
enum token_kind {
	TOKEN_BYTE = 0, /* this byte */
	TOKEN_ANY = 1, /* one byte */
	TOKEN_CLASS = 2, /* one byte of this class */
	TOKEN_STAR = 3, /* any number of bytes */
	TOKEN_DEEP = 4, /* any number of bytes, in a path slashes included */
};

/* What a process that no rule selects has a domain of its own by; 0 where it has none. */
enum by_kind {
	BY_PROGRAM = 1, /* the name of its first thread */
	BY_USER = 2,
};

/* What stands in the rows of the bench. */
enum bench_row_entry {
	BENCH_EVENT = 0,
	BENCH_DOMAIN = 1,
	BENCH_CORRESPONDENT = 2,
};

#endif
