/* SPDX-License-Identifier: Apache-2.0 */
/*
 * note.c - looks for the note "hvd" in the file of a program. libhvd.a puts it
 * there (core/world/world.c), so that it is known of a process from its first
 * moment, before hvd_init, whether it will be a rank. A file that is no
 * program, or ends too soon, has no note.
 */
#include "chaos/note.h"

#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Programs have about ten segments, and less than a kilobyte of notes. */
enum { MOST_SEGMENTS = 64, MOST_BYTES = 4096 };

static bool read_at(int fd, void *to, size_t bytes, ElfW(Off) at)
{
    return pread(fd, to, bytes, (off_t)at) == (ssize_t)bytes;
}

static size_t padded(size_t bytes)
{
    return (bytes + 3) & ~(size_t)3;
}

/* Returns whether one of the notes has libhvd's name. */
static bool is_among(const char *notes, size_t bytes)
{
    size_t at = 0;

    while (at + sizeof(ElfW(Nhdr)) <= bytes) {
        ElfW(Nhdr) note;

        memcpy(&note, notes + at, sizeof note);
        at += sizeof note;
        if (note.n_namesz == sizeof "hvd" && at + sizeof "hvd" <= bytes &&
            memcmp(notes + at, "hvd", sizeof "hvd") == 0)
            return true;
        at += padded(note.n_namesz) + padded(note.n_descsz);
    }
    return false;
}

static bool has_note(int fd, const ElfW(Phdr) * segment)
{
    char notes[MOST_BYTES];
    const size_t bytes =
        segment->p_filesz < sizeof notes ? segment->p_filesz : sizeof notes;

    return segment->p_type == PT_NOTE &&
           read_at(fd, notes, bytes, segment->p_offset) &&
           is_among(notes, bytes);
}

static bool is_in_file(int fd)
{
    ElfW(Ehdr) head;
    ElfW(Phdr) segments[MOST_SEGMENTS];
    bool found = false;

    if (!read_at(fd, &head, sizeof head, 0) ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_phentsize != sizeof *segments || head.e_phnum > MOST_SEGMENTS ||
        !read_at(fd, segments, head.e_phnum * sizeof *segments, head.e_phoff))
        return false;
    for (int i = 0; i < head.e_phnum; i++)
        found |= has_note(fd, &segments[i]);
    return found;
}

bool note_is_in_program(pid_t pid)
{
    char path[32];
    bool found;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    found = is_in_file(fd);
    close(fd);
    return found;
}
