/* SPDX-License-Identifier: Apache-2.0 */
/* A job names the ranks that an earlier job lost with its last world, which it
 * finds in the file of events. */
#include "estimator/elastic.h"

#include "folder.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>

#define NUMBERS "\"step\":7,\"epoch\":1,\"samples\":5,\"rows\":90,\"ranks\":"
#define EVENT(name) "{\"event\":\"" name "\"," NUMBERS "[4,5,6]"
#define LOST(ranks)                                                            \
    "{\"event\":\"loss\"," NUMBERS ranks ",\"lost\":" ranks                    \
    ",\"left\":0,\"reached\":7"

/* Expects an event for a file with this text; NULL: none. */
static void expect(const char *text, const char *event)
{
    json_t *json;
    char *found;

    file_write_text("events", text);
    json = elastic_describe_earlier("events");
    found = json ? json_dumps(json, JSON_COMPACT) : NULL;
    ck_assert_str_eq(found ? found : "none", event ? event : "none");
    free(found);
    json_decref(json);
}

TEST(a_job_that_has_ended_or_stopped_has_lost_nobody_more)
{
    expect("", NULL);
    expect(EVENT("start") "}\n" EVENT("end") "}\n", NULL);
    expect(EVENT("stop") "}\n", NULL);
    expect("something else\n[1]\n{\"event\":3}\n", NULL);
    ck_assert_ptr_null(elastic_describe_earlier("absent"));
}

TEST(all_ranks_of_the_last_event_are_lost)
{
    static const char *const names[] = {"start",   "resume", "commit",
                                        "restore", "join",   "anything"};
    char text[400];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(text, sizeof text,
                 EVENT("end") "}\n"
                              "{\"event\":\"%s\"," NUMBERS "[4,5,6]}\n",
                 names[i]);
        expect(text, LOST("[4,5,6]") "}");
    }
    /* A rank that dies while it writes leaves half of a line. */
    expect(EVENT("commit") "}\n{\"event\":\"end\",\"st", LOST("[4,5,6]") "}");
}

TEST(behind_a_loss_those_that_were_left_are)
{
    expect(EVENT("loss") ",\"lost\":[5],\"left\":2}\n", LOST("[4,6]") "}");
    expect(EVENT("loss") ",\"lost\":[5]}\n", LOST("[4,6]") "}");
    expect(EVENT("loss") ",\"lost\":[4,5,6],\"left\":0}\n", NULL);
    /* Two of the four ranks that are left had no number yet. */
    expect(EVENT("loss") ",\"lost\":[5],\"left\":4}\n",
           "{\"event\":\"loss\"," NUMBERS
           "[4,6],\"lost\":[4,6],\"left\":0,\"newcomers\":2,\"reached\":7}");
    /* No event has told any number. */
    expect("{\"event\":\"loss\"," NUMBERS
           "[],\"lost\":[],\"left\":3,\"newcomers\":2}\n",
           "{\"event\":\"loss\"," NUMBERS
           "[],\"lost\":[],\"left\":0,\"newcomers\":3,\"reached\":7}");
}

TEST(whoever_was_written_of_is_not_written_of_again)
{
    expect(EVENT("commit") "}\n" LOST("[4,5,6]") "}\n", NULL);
}

TEST_MAIN("models_events", .set_up = folder_enter, .tear_down = folder_remove)
