// SPDX-License-Identifier: LGPL-2.1-or-later
/* Addresses and connections (net.h). */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "qcu-library/nccl/net.h"

#define CONNECT_MS 60000
/* Seconds until a machine that does not answer any more is given up. */
#define IDLE  20
#define EVERY 5
#define TIMES 4

bool qccl_net_alone(void)
{
	const char *e = getenv("NCCL_P2P_DISABLE");

	return e && strtol(e, NULL, 10) == 1;
}

/* Whether an interface is one of NVIDIA's list: names' beginnings with commas between them; "=" in
 * front: whole names; "^" in front: all others. */
static bool is_listed(const char *list, const char *name)
{
	bool others = *list == '^', whole;

	list += others;
	whole = *list == '=';
	list += whole;
	while (*list) {
		size_t n = strcspn(list, ",");

		if (n && !strncmp(list, name, n) && (!whole || !name[n]))
			return !others;
		list += n + (list[n] == ',');
	}
	return others;
}

/* False: this address is of no use to other machines. */
static bool take_interface_address(const struct sockaddr *from, struct qccl_address *a)
{
	const struct sockaddr_in6 *in6 = (const void *)from;
	const struct sockaddr_in *in = (const void *)from;

	memset(a, 0, sizeof(*a));
	if (from->sa_family == AF_INET) {
		a->family = 4;
		memcpy(a->ip, &in->sin_addr, sizeof(in->sin_addr));
		return true;
	}
	if (IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
		return false;
	a->family = 6;
	memcpy(a->ip, &in6->sin6_addr, sizeof(in6->sin6_addr));
	return true;
}

static bool find_interface_address(const struct ifaddrs *all, const char *list, int family,
				   bool loopback, struct qccl_address *a)
{
	for (const struct ifaddrs *i = all; i; i = i->ifa_next)
		if (i->ifa_addr && i->ifa_addr->sa_family == family && (i->ifa_flags & IFF_UP) &&
		    loopback == !!(i->ifa_flags & IFF_LOOPBACK) &&
		    (!list || is_listed(list, i->ifa_name)) &&
		    take_interface_address(i->ifa_addr, a))
			return true;
	return false;
}

bool qccl_net_choose(struct qccl_address *a, bool loopback)
{
	const char *list = getenv("NCCL_SOCKET_IFNAME"), *family = getenv("NCCL_SOCKET_FAMILY");
	bool four = !family || strcmp(family, "AF_INET6") != 0;
	bool six = !family || strcmp(family, "AF_INET") != 0;
	struct ifaddrs *all;
	bool found = false;

	memset(a, 0, sizeof(*a));
	if (list && !*list)
		list = NULL;
	if (getifaddrs(&all))
		return false;
	for (int lo = 0; !found && lo <= (loopback || list); lo++)
		found = (four && find_interface_address(all, list, AF_INET, lo, a)) ||
			(six && find_interface_address(all, list, AF_INET6, lo, a));
	freeifaddrs(all);
	return found;
}

static socklen_t to_system(const struct qccl_address *a, struct sockaddr_storage *to)
{
	struct sockaddr_in6 *in6 = (void *)to;
	struct sockaddr_in *in = (void *)to;

	memset(to, 0, sizeof(*to));
	if (a->family == 4) {
		in->sin_family = AF_INET;
		in->sin_port = htons(a->port);
		memcpy(&in->sin_addr, a->ip, sizeof(in->sin_addr));
		return sizeof(*in);
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(a->port);
	memcpy(&in6->sin6_addr, a->ip, sizeof(in6->sin6_addr));
	return sizeof(*in6);
}

static int make_socket(const struct qccl_address *a)
{
	if (a->family != 4 && a->family != 6) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	return socket(a->family == 4 ? AF_INET : AF_INET6,
		      SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

int qccl_net_give_up(int fd)
{
	int err = errno;

	close(fd);
	errno = err;
	return -1;
}

int qccl_net_listen(struct qccl_address *a)
{
	struct sockaddr_storage s;
	socklen_t len = sizeof(s);
	int fd = make_socket(a);

	a->port = 0;
	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&s, to_system(a, &s)) || listen(fd, 128) ||
	    getsockname(fd, (struct sockaddr *)&s, &len))
		return qccl_net_give_up(fd);
	a->port = ntohs(a->family == 4 ? ((struct sockaddr_in *)&s)->sin_port
				       : ((struct sockaddr_in6 *)&s)->sin6_port);
	return fd;
}

void qccl_net_prepare(int fd)
{
	static const struct {
		int level, name, value;
	} set[] = {
		{IPPROTO_TCP, TCP_NODELAY, 1},
		{SOL_SOCKET, SO_KEEPALIVE, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, IDLE},
		{IPPROTO_TCP, TCP_KEEPINTVL, EVERY},
		{IPPROTO_TCP, TCP_KEEPCNT, TIMES},
		{IPPROTO_TCP, TCP_USER_TIMEOUT, (IDLE + EVERY * TIMES) * 1000},
	};

	for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++)
		(void)setsockopt(fd, set[i].level, set[i].name, &set[i].value,
				 sizeof(set[i].value));
}

int qccl_net_connect(const struct qccl_address *a)
{
	struct sockaddr_storage s;
	socklen_t len = sizeof(int);
	struct pollfd p;
	int err = 0, fd = make_socket(a), ready;

	if (fd < 0)
		return -1;
	if (connect(fd, (struct sockaddr *)&s, to_system(a, &s)) && errno != EINPROGRESS)
		return qccl_net_give_up(fd);
	p = (struct pollfd){.fd = fd, .events = POLLOUT};
	do
		ready = poll(&p, 1, CONNECT_MS);
	while (ready < 0 && errno == EINTR);
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len))
		err = errno;
	if (!ready)
		err = ETIMEDOUT;
	if (err) {
		errno = err;
		return qccl_net_give_up(fd);
	}
	qccl_net_prepare(fd);
	return fd;
}
