/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One process for each GPU, forked before any of them uses CUDA. The first one's id reaches the
 * others by pipes. */
#ifndef PROCESSES_H
#define PROCESSES_H

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ranks.h"

struct family {
	int ranks, rank;
	int pipe[MOST_RANKS][2]; /* what each rank reads */
	pid_t pid[MOST_RANKS];	 /* in the parent */
};

/* The parent must not use CUDA: a child looks how many GPUs there are. */
static inline int count_in_child(void)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(gpu_count());
	REQUIRE(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) > 0,
		"status %x", status);
	return WEXITSTATUS(status);
}

/* True in a child, which has a rank; false in the parent. */
static inline bool fork_family(struct family *f, int ranks)
{
	f->ranks = ranks;
	for (int r = 0; r < ranks; r++)
		REQUIRE(!pipe(f->pipe[r]), "pipe");
	for (int r = 0; r < ranks; r++) {
		f->pid[r] = fork();
		REQUIRE(f->pid[r] >= 0, "fork");
		f->rank = r;
		if (!f->pid[r])
			return true;
	}
	return false;
}

static inline void tell_rank(const struct family *f, int rank, const void *what, size_t size)
{
	REQUIRE(write(f->pipe[rank][1], what, size) == (ssize_t)size, "write");
}

static inline void hear_rank(const struct family *f, void *what, size_t size)
{
	REQUIRE(read(f->pipe[f->rank][0], what, size) == (ssize_t)size, "read");
}

/* The parent's end: every child must have ended well, or by `signal` if it is the last one. */
static inline void end_family(const struct family *f, int signal_of_last)
{
	for (int r = 0; r < f->ranks; r++) {
		int status;

		REQUIRE(waitpid(f->pid[r], &status, 0) == f->pid[r], "waitpid");
		if (signal_of_last && r == f->ranks - 1)
			REQUIRE(WIFSIGNALED(status) && WTERMSIG(status) == signal_of_last,
				"rank %d: status %x", r, status);
		else
			REQUIRE(!status, "rank %d: status %x", r, status);
	}
}

static inline ncclUniqueId share_id(const struct family *f)
{
	ncclUniqueId id;

	if (!f->rank) {
		NC(ncclGetUniqueId(&id));
		for (int r = 1; r < f->ranks; r++)
			tell_rank(f, r, &id, sizeof(id));
	} else {
		hear_rank(f, &id, sizeof(id));
	}
	return id;
}

/* This process's rank alone. */
static inline struct team join_team(const struct family *f, const ncclUniqueId *id, size_t room)
{
	struct team t;

	memset(&t, 0, sizeof(t));
	t.ranks = f->ranks;
	t.count = 1;
	t.member[0].rank = t.member[0].device = f->rank;
	CHECK(cudaSetDevice(f->rank));
	NC(ncclCommInitRank(&t.member[0].comm, f->ranks, *id, f->rank));
	equip(&t, room);
	return t;
}

#endif
