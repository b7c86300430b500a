/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Probes for C and C++ programs (C11, C++17; gcc and clang).
 *
 *	METE_EVENT(request, METE_ACCESS);
 *	METE_EVENT(service, METE_PHASE);
 *	METE_EVENT(queue_length, METE_SAMPLED);
 *
 *	METE_SAMPLE(queue_length, waiting);
 *	METE_PROBE(request, mete_domain_of_process(client), 1);
 *	struct mete_phase phase = METE_ENTER(service);
 *	...
 *	METE_EXIT(service, phase, mete_domain_of_process(client));
 *
 * An event is defined once, at file scope; other files declare it by METE_EVENT_EXTERN(request). A probe that
 * is off is a five-byte no-op. Its arguments are evaluated only while it is on.
 *
 * Link with -lmete_probe. If METE_OPTIONAL is defined before this file is included, the program also runs
 * without the library: its probes stay off, unless LD_PRELOAD brings the library. (An optional static library
 * needs -Wl,-u,mete_register, because weak references load nothing from it.)
 */
#ifndef METE_H
#define METE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef METE_OPTIONAL
#define METE_IMPORT_ extern __attribute__((weak))
#define METE_IS_LINKED_ (mete_register != 0)
#else
#define METE_IMPORT_ extern
#define METE_IS_LINKED_ 1
#endif

/* The correspondent of an event that has none. */
#define METE_NO_DOMAIN 0xffff

enum mete_kind {
	METE_ACCESS = 0, /* each occurrence counts one, or the number that the probe gives */
	METE_PHASE = 1, /* entry and exit: the delta is charged at the exit */
	METE_SAMPLED = 2, /* the present value of something */
};

struct mete_event {
	const char *name;
	uint16_t kind;
	uint16_t id; /* the library writes it */
	bool enabled; /* the library writes it */
};

struct mete_site {
	const void *code;
	const void *target;
	struct mete_event *event;
};

/* What METE_ENTER returns. */
struct mete_phase {
	uint64_t value;
	bool is_logged;
};

METE_IMPORT_ void mete_register(const struct mete_site *sites, const struct mete_site *sites_end,
				struct mete_event *const *events, struct mete_event *const *events_end);
METE_IMPORT_ void mete_unregister(struct mete_event *const *events);
METE_IMPORT_ void mete_note_event(struct mete_event *event, uint16_t correspondent, uint64_t counter);
METE_IMPORT_ bool mete_enter_event(struct mete_event *event);
METE_IMPORT_ void mete_exit_event(struct mete_event *event, uint16_t correspondent, uint64_t delta);
METE_IMPORT_ uint64_t mete_now(void);

/* Sets the calling thread's accounting domain. */
METE_IMPORT_ void mete_set_domain(uint16_t domain);
/* Sets the accounting domain of all threads that have none of their own. */
METE_IMPORT_ void mete_set_process_domain(uint16_t domain);
/* The domain of another process as the scheduler publishes it, or METE_NO_DOMAIN. */
METE_IMPORT_ uint16_t mete_domain_of_process(uint32_t pid);

#ifdef METE_OPTIONAL
static inline void mete_set_domain_if_linked_(uint16_t domain)
{
	if (METE_IS_LINKED_)
		mete_set_domain(domain);
}

static inline void mete_set_process_domain_if_linked_(uint16_t domain)
{
	if (METE_IS_LINKED_)
		mete_set_process_domain(domain);
}

static inline uint16_t mete_domain_of_process_if_linked_(uint32_t pid)
{
	return METE_IS_LINKED_ ? mete_domain_of_process(pid) : METE_NO_DOMAIN;
}

#define mete_set_domain mete_set_domain_if_linked_
#define mete_set_process_domain mete_set_process_domain_if_linked_
#define mete_domain_of_process mete_domain_of_process_if_linked_
#endif

/* The flag R, retain: only its section's bounds refer to a record. Older assemblers do not know the flag. */
#if defined(__clang__) ? __clang_major__ >= 13 : __GNUC__ >= 11
#define METE_RETAIN_ "R"
#else
#define METE_RETAIN_ ""
#endif

#define METE_HIDDEN_ __attribute__((visibility("hidden")))

#define METE_EVENT_EXTERN(name_) METE_EXTERN_ METE_HIDDEN_ struct mete_event mete_event_##name_

#define METE_EVENT(name_, kind_)                                                  \
	METE_EVENT_EXTERN(name_);                                                 \
	__asm__(".pushsection mete_events, \"aw" METE_RETAIN_ "\", @progbits\n\t" \
		".balign 8\n\t"                                                   \
		".quad mete_event_" #name_ "\n\t"                                 \
		".popsection");                                                   \
	__attribute__((used)) struct mete_event mete_event_##name_ = { #name_, kind_, 0xffff, false }

#ifdef __cplusplus
#define METE_EXTERN_ extern "C"
#else
#define METE_EXTERN_ extern
#endif

#if defined(__x86_64__) && !defined(__ILP32__) && !defined(METE_FLAG_CHECK)

/*
 * The no-op can begin at the offsets 0 to 3 of an aligned word, so only the offsets 4 to 7 need padding. The
 * flag "?" puts the record into the linker group of the code around it, which an inline function has, so that
 * both are kept or dropped together.
 */
#define METE_SITE_(name_, log_)                                                        \
	__asm__ goto(".p2align 3, , 4\n"                                               \
		     "881: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n\t"                     \
		     ".pushsection mete_sites, \"aw?" METE_RETAIN_ "\", @progbits\n\t" \
		     ".balign 8\n\t"                                                   \
		     ".quad 881b, %l[" #log_ "], mete_event_" #name_ "\n\t"            \
		     ".popsection"                                                     \
		     :                                                                 \
		     :                                                                 \
		     :                                                                 \
		     : log_)
#define METE_WHEN_ON_(name_, ...)               \
	__extension__({                         \
		__label__ mete_log_, mete_end_; \
		METE_SITE_(name_, mete_log_);   \
		goto mete_end_;                 \
mete_log_:                                      \
		METE_COLD_                      \
		__VA_ARGS__;                    \
mete_end_:;                                     \
	})
#ifdef __clang__
#define METE_COLD_ ;
#else
#define METE_COLD_ __attribute__((cold));
#endif

#else

#define METE_WHEN_ON_(name_, ...)                                                     \
	do {                                                                          \
		if (__atomic_load_n(&mete_event_##name_.enabled, __ATOMIC_RELAXED)) { \
			__VA_ARGS__;                                                  \
		}                                                                     \
	} while (0)

#endif

/* Logs an access: the domain at the other end, and how much. */
#define METE_PROBE(name_, correspondent_, counter_) \
	METE_WHEN_ON_(name_, mete_note_event(&mete_event_##name_, (correspondent_), (counter_)))

/* Logs the present value of something. */
#define METE_SAMPLE(name_, value_) METE_PROBE(name_, METE_NO_DOMAIN, (value_))

/* Enters a phase of use, measured by the processor's counter or by a value of the caller. */
#define METE_ENTER(name_) METE_ENTER_VALUE(name_, mete_now())
#define METE_ENTER_VALUE(name_, value_)                                                             \
	__extension__({                                                                             \
		struct mete_phase mete_phase_ = { 0, false };                                       \
		METE_WHEN_ON_(name_, mete_phase_.is_logged = mete_enter_event(&mete_event_##name_); \
			      if (mete_phase_.is_logged) mete_phase_.value = (value_));             \
		mete_phase_;                                                                        \
	})

/* Exits from the phase: charges the delta, unless the event was off at the entry. */
#define METE_EXIT(name_, phase_, correspondent_) METE_EXIT_VALUE(name_, phase_, correspondent_, mete_now())
#define METE_EXIT_VALUE(name_, phase_, correspondent_, value_)                                              \
	METE_WHEN_ON_(name_, if ((phase_).is_logged) mete_exit_event(&mete_event_##name_, (correspondent_), \
								     (value_) - (phase_).value))

/* The bounds of the two sections in this program or shared object. */
extern METE_HIDDEN_ __attribute__((weak)) const struct mete_site __start_mete_sites[];
extern METE_HIDDEN_ __attribute__((weak)) const struct mete_site __stop_mete_sites[];
extern METE_HIDDEN_ __attribute__((weak)) struct mete_event *const __start_mete_events[];
extern METE_HIDDEN_ __attribute__((weak)) struct mete_event *const __stop_mete_events[];

static __attribute__((constructor, used)) void mete_construct_(void)
{
	if (METE_IS_LINKED_ && __start_mete_events)
		mete_register(__start_mete_sites, __stop_mete_sites, __start_mete_events, __stop_mete_events);
}

static __attribute__((destructor, used)) void mete_destroy_(void)
{
	if (METE_IS_LINKED_ && __start_mete_events)
		mete_unregister(__start_mete_events);
}

#ifdef __cplusplus
}
#endif

#endif
