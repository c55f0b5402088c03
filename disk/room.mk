# SPDX-License-Identifier: Apache-2.0
# disk: how files that a user names are opened, written and replaced. Needs
# nothing but libc. Both libraries contain it, hidden, and so do programs that
# link neither of their archives.

DISK_SRC := $(wildcard disk/*.c)
DISK_OBJ := $(DISK_SRC:%.c=$(B)/obj/%.o)
CFLAGS_disk := -I.
