/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - the texts of statuses. */
#include <string.h>

#include "disk/disk.h"

const char *disk__text(int status)
{
    switch (status) {
    case DISK__NOT_REGULAR: return "it is no regular file";
    case DISK__LINK_TO_NOTHING: return "it is a symbolic link to nothing";
    case DISK__PRINTED_TO: return "it is the file that this program prints to";
    case DISK__NO_READER: return "it is a FIFO that nobody reads";
    case DISK__UNREAD: return "it is full, and nobody reads from it";
    default: return strerror(-status);
    }
}
