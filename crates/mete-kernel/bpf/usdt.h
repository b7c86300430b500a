/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Values of static probes, by the loader library's own header. What that takes from the system's headers stands here:
 * those are not installed where nobody compiles.
 */
#ifndef METE_USDT_H
#define METE_USDT_H

/* linux/errno.h is found as an empty file, before the system's. */
#define bool _Bool
#define ENOENT 2
#define ESRCH 3
#define EINVAL 22

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_ANY = 0,
};

#ifdef __TARGET_ARCH_x86
/* As programs on functions get them, by the names that are the kernel's promise to programs. */
struct pt_regs {
	unsigned long r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8;
	unsigned long rax, rcx, rdx, rsi, rdi, orig_rax, rip, cs, eflags, rsp, ss;
};
#endif

#include <bpf/usdt.bpf.h>

/* 0 where the program's authors have left out a value at one of the probe's places. */
static __always_inline __u64 mete_static_argument(void *ctx, __u64 nth)
{
	long value = 0;

	bpf_usdt_arg(ctx, nth, &value);
	return value;
}

#define METE_STATIC_ARGUMENT(ctx, n) mete_static_argument(ctx, n)

#endif
