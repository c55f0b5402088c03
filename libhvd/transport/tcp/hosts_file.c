/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tcp/hosts_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/status.h"
#include "transport/transport.h"

#define BLANKS " \t\r\n"

static char file[512]; /* a path; "": none */

int hvd__hosts_file_use(const char *path)
{
    FILE *stream;

    snprintf(file, sizeof file, "%s", path);
    if (!*file)
        return HVD_OK;
    stream = fopen(file, "re");
    if (!stream)
        return hvd__fail(HVD_ERR_CONFIG, "HVD_HOSTS_FILE='%s': %s", file,
                         strerror(errno));
    fclose(stream);
    return HVD_OK;
}

/* Returns the address of a line that has this name, or NULL. Writes into it. */
static const char *read_line(char *line, const char *name, size_t length)
{
    char *rest = NULL, *word;
    const char *address;

    line[strcspn(line, "#")] = '\0';
    address = strtok_r(line, BLANKS, &rest);
    while (address && (word = strtok_r(NULL, BLANKS, &rest)))
        if (strlen(word) == length && strncasecmp(word, name, length) == 0)
            return address;
    return NULL;
}

/* Writes the address that the file has for a name, and the port. */
static bool find_name(FILE *stream, const char *name, const char *port,
                      char *bytes, size_t size)
{
    const char *address = NULL;
    char *line = NULL;
    size_t room = 0;

    while (!address && getline(&line, &room, stream) >= 0)
        address = read_line(line, name, (size_t)(port - name));
    if (address)
        snprintf(bytes, size, strchr(address, ':') ? "[%s]%s" : "%s%s", address,
                 port);
    free(line);
    return address;
}

const char *hvd__hosts_file_find(const char *address, char *bytes, size_t size)
{
    const char *port = strrchr(address, ':');
    FILE *stream = *file && port ? fopen(file, "re") : NULL;
    bool found;

    if (!stream)
        return address;
    found = find_name(stream, address, port, bytes, size);
    fclose(stream);
    return found ? bytes : address;
}
