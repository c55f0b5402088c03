/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that becomes shorter while it is read. This program has a read of its
 * own, before the C library's, that can come to the end of a file early.
 */
#include "suite.h"

#include <sys/syscall.h>

#include "device.h"

/* Number of reads until all files end. Less than 0: files end where they really
 * end. */
static int until_end = -1;

/* The asm label replaces the linker's `read`, because headers may define read()
 * as inline. */
ssize_t read_some(int file, void *data, size_t bytes) __asm__("read")
    __attribute__((visibility("default")));

ssize_t read_some(int file, void *data, size_t bytes)
{
    if (until_end == 0)
        return 0;
    until_end -= until_end > 0;
    return syscall(SYS_read, file, data, bytes);
}

TEST(files_that_are_cut_while_they_are_read)
{
    struct device d = device_new();
    const char *path = device_file("");
    ipu_graph *loaded = NULL;
    char words[600];

    MUST(ipu_output(d.graph, "y", device_floats(&d, "x", 1, SHAPE(2))));
    MUST(ipu_graph_save(d.graph, path));
    until_end = 1; /* the head is there */
    ck_assert_int_eq(ipu_graph_load(path, &loaded), IPU_ERR_DATA);
    until_end = -1;
    snprintf(words, sizeof words, "%s: changed while it was read", path);
    ck_assert_str_eq(ipu_last_error(), words);
    ck_assert_ptr_null(loaded);
    MUST(ipu_graph_load(path, &loaded));
    ipu_graph_free(loaded);
    unlink(path);
    device_free(&d);
}

TEST_MAIN("device_file_changed")
