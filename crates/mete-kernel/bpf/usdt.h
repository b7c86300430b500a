/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Values of static probes, by a header of the loader library. What that header needs of the system's headers
 * is defined here, because those are not installed on machines where people do not compile.
 */
#ifndef METE_USDT_H
#define METE_USDT_H

/* linux/errno.h is an empty file here, which the compiler finds before that of the system. */
#define bool _Bool
#define ENOENT 2
#define ESRCH 3
#define EINVAL 22

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_ANY = 0,
};

#ifdef __TARGET_ARCH_x86
/* The registers as programs on functions get them, by the names that the kernel promises to keep. */
struct pt_regs {
	unsigned long r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8;
	unsigned long rax, rcx, rdx, rsi, rdi, orig_rax, rip, cs, eflags, rsp, ss;
};
#endif

#include <bpf/usdt.bpf.h>

/* 0 where the authors of the program have left out this value at one of the probe's places. */
static __always_inline __u64 mete_static_argument(void *ctx, __u64 nth)
{
	long value = 0;

	bpf_usdt_arg(ctx, nth, &value);
	return value;
}

#define METE_STATIC_ARGUMENT(ctx, n) mete_static_argument(ctx, n)

#endif
