/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Events of C and C++ programs into the buffers of the recorder that has started them (C11, C++17; gcc and clang).
 *
 *	mete schema generate c stopwatch > stopwatch.h
 *
 *	#include <mete_recorder.h>
 *	#include "stopwatch.h"
 *
 *	mete_log_START(watch, pid, value);
 *
 *	mete record --schema stopwatch -o trace -- ./program
 *
 * Nothing is linked. If no recorder has started the program, or the event is off, a call is a load and a branch.
 * With METE_DISABLE a call is nothing. src/invitation.rs describes what a recorder hands over.
 */
#ifndef METE_RECORDER_H
#define METE_RECORDER_H

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/types.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#ifndef METE_DISABLE

#define METE_TRACE_PUBLISH(p, v) __atomic_store_n((__u64 *)(p), (v), __ATOMIC_RELEASE)
#include "mete_trace.h"

#define METE_INVITATION_VARIABLE "METE_RECORDER"
#define METE_INVITATION_MAGIC 0x01564e494554454dull /* "METEINV", 1 */
#define METE_INVITATION_BYTES 20480
#define METE_INVITATION_MAX_EVENTS 1024

struct mete_invited {
	__u64 fingerprint;
	__u32 number;
	__u32 is_on;
};

struct mete_invitation {
	__u64 magic;
	__u32 processors;
	__u32 size_log2;
	__u32 clock; /* 0 the processor's counter, 1 CLOCK_MONOTONIC */
	__u32 count;
	struct mete_invited events[METE_INVITATION_MAX_EVENTS];
};

METE_TRACE_ASSERT_(sizeof(struct mete_invited) == 16, "layout of an invitation");
METE_TRACE_ASSERT_(__builtin_offsetof(struct mete_invitation, events) == 24, "layout of an invitation");
METE_TRACE_ASSERT_(sizeof(struct mete_invitation) <= METE_INVITATION_BYTES, "layout of an invitation");

#ifdef __cplusplus
extern "C" {
#else
/* Strict C hides these declarations. */
extern int sched_getcpu(void);
extern int clock_gettime(int clock, struct timespec *time);
extern long syscall(long number, ...);
#endif

/* CLOCK_MONOTONIC. */
#define METE_RECORDER_CLOCK 1

enum { METE_RECORDER_UNKNOWN, METE_RECORDER_NONE, METE_RECORDER_JOINED };

/* One variable for the program, however many of its files include this one. */
struct mete_recorder {
	int state; /* while a thread joins: the number of its process, negative */
	const struct mete_invitation *invitation;
	char *buffers;
};

__attribute__((weak)) struct mete_recorder mete_recorder = { METE_RECORDER_UNKNOWN, 0, 0 };

/* The entry of an event that no recorder records: it is off. */
__attribute__((weak)) struct mete_invited mete_uninvited = { 0, 0, 0 };

static inline __u64 mete_area_bytes(const struct mete_invitation *invitation)
{
	return METE_TRACE_AREA_BYTES(1ull << invitation->size_log2);
}

/*
 * Whether a file is one that a recorder makes: in memory, of this size, which can no longer change. A program that touches a
 * mapping whose file was cut is killed.
 */
static inline int mete_recorder_is_memory(int file, __u64 bytes)
{
	const long tmpfs = 0x01021994;
	const int get_seals =
		1034; /* F_GET_SEALS, F_SEAL_SEAL, _SHRINK and _GROW: the libc names them only for GNU. */
	const int seals = 1 | 2 | 4;
	struct statfs system;
	struct stat found;
	int present;

	if (fstatfs(file, &system) || (long)system.f_type != tmpfs)
		return 0;
	present = fcntl(file, get_seals);
	if (present < 0 || (present & seals) != seals)
		return 0;
	/* Read after the seals: from here on the size cannot change. */
	return !fstat(file, &found) && S_ISREG(found.st_mode) && (__u64)found.st_size == bytes;
}

/* A shared mapping of an inherited file, or null. */
static inline void *mete_recorder_map(int file, __u64 bytes, int access)
{
	void *mapped;

	if (!mete_recorder_is_memory(file, bytes))
		return 0;
	mapped = mmap(0, bytes, access, MAP_SHARED, file, 0);
	return mapped == MAP_FAILED ? 0 : mapped;
}

static inline int mete_recorder_join(void)
{
	const char *files = getenv(METE_INVITATION_VARIABLE);
	const struct mete_invitation *invitation;
	char *buffers;
	char *end;
	long file;

	if (!files)
		return METE_RECORDER_NONE;
	file = strtol(files, &end, 10);
	if (*end != ',')
		return METE_RECORDER_NONE;
	invitation = (const struct mete_invitation *)mete_recorder_map((int)file, METE_INVITATION_BYTES,
								       PROT_READ);
	if (!invitation)
		return METE_RECORDER_NONE;
	if (__atomic_load_n(&invitation->magic, __ATOMIC_ACQUIRE) != METE_INVITATION_MAGIC ||
	    invitation->size_log2 < 16 || invitation->size_log2 > 30 || invitation->processors - 1 > 4095)
		return METE_RECORDER_NONE;
	buffers = (char *)mete_recorder_map((int)strtol(end + 1, 0, 10),
					    invitation->processors * mete_area_bytes(invitation),
					    PROT_READ | PROT_WRITE);
	/* By now the number may stand for another file, and nothing must be written into that one. */
	if (!buffers || ((struct mete_trace_area *)buffers)->magic != METE_TRACE_MAGIC)
		return METE_RECORDER_NONE;
	mete_recorder.invitation = invitation;
	mete_recorder.buffers = buffers;
	return METE_RECORDER_JOINED;
}

/*
 * The first thread joins. The others wait for it, so that no event is dropped in the meantime. A process that was
 * forked while a thread joined does not have that thread, and would wait forever. So it joins itself.
 */
static inline int mete_recorder_joined(void)
{
	int own = -(int)getpid();
	int state;

	while ((state = __atomic_load_n(&mete_recorder.state, __ATOMIC_ACQUIRE)) <= METE_RECORDER_UNKNOWN) {
		if (state == own)
			sched_yield();
		else if (__atomic_compare_exchange_n(&mete_recorder.state, &state, own, 0, __ATOMIC_ACQUIRE,
						     __ATOMIC_ACQUIRE))
			__atomic_store_n(&mete_recorder.state, mete_recorder_join(), __ATOMIC_RELEASE);
	}
	return state;
}

static __attribute__((noinline, cold, unused)) struct mete_invited *mete_recorder_find(__u64 fingerprint)
{
	const struct mete_invitation *invitation;

	if (mete_recorder_joined() != METE_RECORDER_JOINED)
		return &mete_uninvited;
	invitation = mete_recorder.invitation;
	for (__u32 at = 0; at < invitation->count && at < METE_INVITATION_MAX_EVENTS; at++) {
		if (invitation->events[at].fingerprint == fingerprint)
			return (struct mete_invited *)&invitation->events[at];
	}
	return &mete_uninvited;
}

static inline __u64 mete_recorder_clock(void)
{
	struct timespec now;

#if defined(__x86_64__)
	if (mete_recorder.invitation->clock == 0)
		return __builtin_ia32_rdtsc();
#endif
	clock_gettime(METE_RECORDER_CLOCK, &now);
	return (__u64)now.tv_sec * 1000000000 + (__u64)now.tv_nsec;
}

/* Writes a record of `bytes` bytes into the buffer of this processor. */
static inline void mete_recorder_write(__u32 number, const char *record, __u32 bytes)
{
	const struct mete_invitation *invitation = mete_recorder.invitation;
	__u64 processor = (__u32)sched_getcpu() % invitation->processors;
	__u32 data_bytes = 1u << invitation->size_log2;
	struct mete_trace_area *area =
		(struct mete_trace_area *)(mete_recorder.buffers + processor * mete_area_bytes(invitation));
	struct mete_trace_place place;
	__u64 *to = mete_trace_reserve(area, data_bytes, bytes, &place, mete_recorder_clock());

	if (!to)
		return;
	for (__u32 at = METE_TRACE_RECORD_HEADER_BYTES; at < bytes; at += 8)
		__builtin_memcpy((char *)to + at, record + at, 8);
	mete_trace_commit(to, number, bytes, &place);
	if (place.at_mark) {
		__atomic_fetch_add(&area->calls, 1, __ATOMIC_RELEASE);
		syscall(SYS_futex, &area->calls, FUTEX_WAKE, 1);
	}
}

#ifdef __cplusplus
}
#endif

/* The generated calls hand over a record by this macro. */
#define METE_EMIT_EVENT(event, record, bytes)                                                    \
	do {                                                                                     \
		static struct mete_invited *invited_;                                            \
		struct mete_invited *found_ = __atomic_load_n(&invited_, __ATOMIC_RELAXED);      \
                                                                                                 \
		if (!found_) {                                                                   \
			found_ = mete_recorder_find(METE_FINGERPRINT_##event);                   \
			__atomic_store_n(&invited_, found_, __ATOMIC_RELEASE);                   \
		}                                                                                \
		if (__builtin_expect(__atomic_load_n(&found_->is_on, __ATOMIC_RELAXED) != 0, 0)) \
			mete_recorder_write(found_->number, (const char *)(record), (bytes));    \
	} while (0)

#endif

#endif
