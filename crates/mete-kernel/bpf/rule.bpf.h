/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Rules by which a process belongs to a domain: by its number, its parent, its user, its name or its program.
 * The scheduler writes them in order (src/kernel/select.rs); the first rule that selects a process counts.
 * src/glob.rs matches patterns by the same steps.
 */
#ifndef METE_RULE_H
#define METE_RULE_H

#include "domain.bpf.h"

struct rule {
	__u16 kind; /* enum rule_kind */
	__u16 domain;
	__u32 number; /* of the process, the parent or the user; or the index of the pattern's first token */
	__u32 end; /* the index after the pattern's last token */
};

struct token {
	__u8 kind; /* enum token_kind */
	__u8 value; /* the byte, or the number of the class */
};

struct class
{
	__u8 has[32]; /* bit n: byte n is in the class */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_RULES);
	__type(key, __u32);
	__type(value, struct rule);
} rules SEC(".maps");

struct pattern_tokens {
	struct token token[MAX_TOKENS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pattern_tokens);
} tokens SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_CLASSES);
	__type(key, __u32);
	__type(value, struct class);
} classes SEC(".maps");

/* What the scheduler writes for the programs. */
struct selecting {
	__u32 rules; /* the number of rules */
	__u32 has_program; /* whether one of them asks for the program */
	__u32 own; /* the scheduler's process, which only a rule with its number selects */
	__u32 by; /* enum by_kind, or 0 */
	__u32 next; /* the domain for the next new kind of process */
	__u32 end; /* the domain after the last one that may be given out */
	__u32 refused; /* how often there was no domain left */
} selecting SEC(".bss.selecting");

/* The text of a process: its path, which is written from the end, room for one name more, and its name. */
#define PATH_BYTES 4096
#define NAME_BYTES 256
#define TEXT_BYTES 8192
#define COMM_AT (PATH_BYTES + NAME_BYTES)

/* The properties of a process that rules compare. */
struct subject {
	__u32 pid;
	__u32 parent;
	__u32 user;
	__u32 is_kernel;
	__u32 comm_end;
	__u32 path_at;
	__u32 domain; /* the answer; 0 for none */
};

/* A position in the text and in the pattern. */
struct match_position {
	__u32 text;
	__u32 token;
};

#define NOWHERE 0xffffffff

struct pattern_match {
	struct match_position at;
	struct match_position end;
	struct match_position star; /* where matching goes on when the last `*` takes one byte more */
	struct match_position deep; /* the same of the last `**` */
	__u32 is_path;
	__u32 is_match;
};

/*
 * The way up from a file to the scheduler's root directory or, if that is not on the way, to the root of all
 * that is mounted where the file is. /proc/PID/exe names files in the same way.
 */
struct climb {
	struct dentry *dentry;
	struct mount *mount;
	__u32 at; /* where the path begins so far */
};

/* A kind of process: the name, or the user in the first bytes. See enum by_kind. */
struct by_key {
	char byte[COMM_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct by_key);
	__type(value, __u16);
} domain_by SEC(".maps");

/*
 * What the programs remember between the steps, and the name and the path meanwhile. Only tasks run these
 * programs, one at a time on a processor. All this is not on the stack, because the verifier would follow
 * each value there through each step.
 */
struct scratch {
	struct subject subject;
	struct pattern_match match;
	struct climb climb;
	char text[TEXT_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

static __always_inline struct scratch *scratch_here(void)
{
	__u32 only = 0;

	return bpf_map_lookup_elem(&scratches, &only);
}

static __always_inline _Bool is_of_class(__u32 nth, __u8 byte)
{
	struct class *class = bpf_map_lookup_elem(&classes, &nth);

	return class && class->has[byte >> 3] & 1 << (byte & 7);
}

static __always_inline _Bool takes(struct token token, __u8 byte, _Bool is_path)
{
	if (token.kind == TOKEN_BYTE)
		return token.value == byte;
	if (is_path && byte == '/')
		return 0;
	return token.kind == TOKEN_ANY || is_of_class(token.value, byte);
}

/* Lets the last star take one byte more. Returns 0 if none can. */
static __always_inline _Bool give_more(struct scratch *scratch)
{
	struct pattern_match *m = &scratch->match;

	if (m->star.token != NOWHERE && m->star.text < m->end.text &&
	    !(m->is_path && scratch->text[m->star.text & (TEXT_BYTES - 1)] == '/')) {
		m->star.text++;
		m->at = m->star;
		return 1;
	}
	/* The `*` has met a slash or the end: only a `**` before it can help. */
	m->star.token = NOWHERE;
	if (m->deep.token == NOWHERE || m->deep.text >= m->end.text)
		return 0;
	m->deep.text++;
	m->at = m->deep;
	return 1;
}

static long match_step(__u64 nth, void *unused)
{
	__u32 only = 0;
	struct pattern_tokens *pattern = bpf_map_lookup_elem(&tokens, &only);
	struct scratch *scratch = scratch_here();
	struct token token;
	struct pattern_match *m;

	if (!pattern || !scratch)
		return 1;
	m = &scratch->match;
	if (m->at.token < m->end.token) {
		token = pattern->token[m->at.token & (MAX_TOKENS - 1)];
		if (token.kind >= TOKEN_STAR) {
			m->at.token++;
			if (token.kind == TOKEN_DEEP) {
				/* A `*` before this one need not take more: this one takes all. */
				m->deep = m->at;
				m->star.token = NOWHERE;
			} else {
				m->star = m->at;
			}
			return 0;
		}
		if (m->at.text < m->end.text &&
		    takes(token, scratch->text[m->at.text & (TEXT_BYTES - 1)], m->is_path)) {
			m->at.text++;
			m->at.token++;
			return 0;
		}
	} else if (m->at.text == m->end.text) {
		m->is_match = 1;
		return 1;
	}
	return !give_more(scratch);
}

static __always_inline _Bool matches(struct scratch *scratch, const struct rule *rule, __u32 at, __u32 end,
				     _Bool is_path)
{
	scratch->match = (struct pattern_match){
		.at = { at, rule->number },
		.end = { end, rule->end },
		.star = { 0, NOWHERE },
		.deep = { 0, NOWHERE },
		.is_path = is_path,
	};
	bpf_loop(MATCH_STEPS, match_step, 0, 0);
	return scratch->match.is_match;
}

static __always_inline _Bool selects(struct scratch *scratch, const struct rule *rule)
{
	struct subject *s = &scratch->subject;
	__u32 own = selecting.own;

	if (rule->kind == RULE_PROCESS)
		return s->pid == rule->number;
	if (s->pid == own)
		return 0;
	if (rule->kind == RULE_CHILDREN)
		return s->parent == rule->number;
	/* A rule with the name of a user or of a program does not mean threads of the kernel. */
	if (s->is_kernel)
		return 0;
	if (rule->kind == RULE_USER)
		return s->user == rule->number;
	if (rule->kind == RULE_COMM)
		return matches(scratch, rule, COMM_AT, s->comm_end, 0);
	if (rule->kind == RULE_PROGRAM)
		return s->path_at < PATH_BYTES && matches(scratch, rule, s->path_at, PATH_BYTES, 1);
	return 0;
}

static long ask_rule(__u64 nth, void *unused)
{
	struct scratch *scratch = scratch_here();
	__u32 at = nth;
	struct rule *rule = bpf_map_lookup_elem(&rules, &at);

	if (!scratch || !rule || !selects(scratch, rule))
		return 0;
	scratch->subject.domain = rule->domain;
	return 1;
}

#define MAX_COMPONENTS 1024

/* The scheduler's root directory. The scheduler's rules cannot name what is above it. */
struct {
	struct vfsmount *mnt;
	struct dentry *dentry;
} own_root SEC(".bss.root");

/* The scheduler runs this itself, before it writes rules. */
SEC("raw_tp")
int note_root(void *ctx)
{
	struct fs_struct *fs = current_task()->fs;

	return READ(own_root.mnt, fs->root.mnt) || READ(own_root.dentry, fs->root.dentry);
}

static __always_inline _Bool is_own_root(const struct climb *c)
{
	return c->dentry == own_root.dentry &&
	       (char *)c->mount + bpf_core_field_offset(struct mount, mnt) == (char *)own_root.mnt;
}

/* Goes from the root of a file system to the directory that it is mounted on; 1 at the topmost root. */
static __always_inline long leave_mount(struct climb *c)
{
	struct mount *above;

	if (READ(above, c->mount->mnt_parent) || above == c->mount)
		return 1;
	if (READ(c->dentry, c->mount->mnt_mountpoint))
		return 1;
	c->mount = above;
	return 0;
}

static long climb_step(__u64 nth, void *unused)
{
	struct scratch *scratch = scratch_here();
	struct dentry *above, *root;
	const unsigned char *name;
	struct climb *c;
	__u32 length;

	if (!scratch)
		return 1;
	c = &scratch->climb;
	if (is_own_root(c))
		return 1;
	if (READ(root, c->mount->mnt.mnt_root) || READ(above, c->dentry->d_parent))
		return 1;
	if (c->dentry == root)
		return leave_mount(c);
	if (above == c->dentry)
		return 1;
	if (READ(length, c->dentry->d_name.len) || READ(name, c->dentry->d_name.name) ||
	    length >= NAME_BYTES || c->at < length + 1) {
		/* A path that cannot be written whole counts as none. */
		c->at = PATH_BYTES;
		return 1;
	}
	c->at -= length;
	/* The verifier bounds each number by itself. For it, the name may end behind the path: there is room. */
	bpf_probe_read_kernel(&scratch->text[c->at & (PATH_BYTES - 1)], length & (NAME_BYTES - 1), name);
	c->at--;
	scratch->text[c->at & (PATH_BYTES - 1)] = '/';
	c->dentry = above;
	return 0;
}

/* Writes the path of a task's program. Returns where it begins; PATH_BYTES if there is none. */
static __always_inline __u32 write_path(struct scratch *scratch, struct task_struct *task)
{
	struct mm_struct *mm = task->mm;
	struct file *file = mm ? mm->exe_file : 0;

	if (!file)
		return PATH_BYTES;
	scratch->climb.dentry = file->f_path.dentry;
	scratch->climb.mount = (void *)((char *)file->f_path.mnt - bpf_core_field_offset(struct mount, mnt));
	scratch->climb.at = PATH_BYTES;
	bpf_loop(MAX_COMPONENTS, climb_step, 0, 0);
	return scratch->climb.at;
}

/* Writes a name. Returns where it ends. */
static __always_inline __u32 write_comm(struct scratch *scratch, const char *comm)
{
	long length = bpf_probe_read_kernel_str(&scratch->text[COMM_AT], COMM_BYTES, comm);

	return COMM_AT + (length > 0 ? length - 1 : 0);
}

/* The domain of the processes of one kind. The first process of a kind gets the next free domain. */
static __always_inline __u16 domain_by_kind(struct scratch *scratch, const struct subject *s)
{
	struct by_key key = {};
	__u16 *known, domain;
	__u32 own = selecting.own;

	if (s->is_kernel || s->pid == own)
		return 0;
	if (selecting.by == BY_USER)
		*(__u32 *)key.byte = s->user;
	else
		bpf_probe_read_kernel_str(key.byte, COMM_BYTES, &scratch->text[COMM_AT]);
	known = bpf_map_lookup_elem(&domain_by, &key);
	if (known)
		return *known;
	/* Two processors that see a new kind at the same time take two domains, of which one stays empty. */
	domain = selecting.next < selecting.end ? __sync_fetch_and_add(&selecting.next, 1) : selecting.end;
	if (domain >= selecting.end) {
		__sync_fetch_and_add(&selecting.refused, 1);
		return 0;
	}
	bpf_map_update_elem(&domain_by, &key, &domain, BPF_NOEXIST);
	/* Read back: another processor may have been first. */
	known = bpf_map_lookup_elem(&domain_by, &key);
	return known ? *known : 0;
}

/* The domain that the rules give to a process of this name; 0 for none. `task` is one of its threads. */
static __always_inline __u16 choose(struct task_struct *task, const char *comm)
{
	struct scratch *scratch = scratch_here();
	struct subject *s;

	if (!scratch || !(selecting.rules || selecting.by))
		return 0;
	s = &scratch->subject;
	s->pid = task->tgid;
	s->parent = task->real_parent->tgid;
	s->user = task->real_cred->euid.val;
	s->is_kernel = task->flags & PF_KTHREAD;
	s->comm_end = write_comm(scratch, comm);
	s->path_at = selecting.has_program ? write_path(scratch, task) : PATH_BYTES;
	s->domain = 0;
	bpf_loop(selecting.rules, ask_rule, 0, 0);
	return s->domain || !selecting.by ? s->domain : domain_by_kind(scratch, s);
}

#endif
