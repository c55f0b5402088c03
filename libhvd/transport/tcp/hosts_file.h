/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hosts_file.h - the file of HVD_HOSTS_FILE, which says where the hosts of a
 * cluster are. It has the form of /etc/hosts, and counts before that. It is
 * read at each lookup: a host may be somewhere else than before.
 */
#ifndef HVD_TRANSPORT_TCP_HOSTS_FILE_H
#define HVD_TRANSPORT_TCP_HOSTS_FILE_H

#include <stddef.h>

/* Returns "host:port" with what the file says in place of the host, in bytes;
 * or address itself, if the file does not name the host. */
const char *hvd__hosts_file_find(const char *address, char *bytes, size_t size);

#endif
