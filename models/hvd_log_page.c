/* SPDX-License-Identifier: Apache-2.0 */
/* hvd_log_page - makes the page of a log again (docs/LOGS.md): of a training
 * that still runs, was killed, or did not make one. */
#include "options/line.h"
#include "output/problem.h"

#include <hvd_log.h>

enum { MOST_FOLDERS = 1000 };

struct words {
    const char *folders[MOST_FOLDERS];
    int count;
};

static int take(void *context, int key, const char *value)
{
    struct words *w = context;

    (void)key;
    if (w->count == MOST_FOLDERS)
        return problem_set("there are more than %d folders", MOST_FOLDERS);
    w->folders[w->count++] = value;
    return 0;
}

int main(int argc, char **argv)
{
    static const struct argp_option table[] = {LINE_ROWS, {0}};
    static struct words words;
    const struct line line = {
        .program = "hvd-log-page",
        .doc = "Make the page log.html of the logs in each FOLDER, from its "
               "log.jsonl.",
        .table = table,
        .take = take,
        .context = &words,
        .words = "FOLDER..."};
    int outcome = line_parse(&line, argc, argv), status = 0;

    if (outcome == LINE_RUN && words.count == 0)
        outcome = problem_set("no folder was given; see --help");
    if (outcome != LINE_RUN)
        return line_settle(&line, outcome);
    for (int i = 0; i < words.count && status >= 0; i++) {
        status = hvd_log_page(words.folders[i]);
        if (status >= 0)
            printf("%s/log.html\n", words.folders[i]);
    }
    return line_end(&line, status);
}
