/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_table.c - prints the table of ipu-bench networks.
 */
#include "ipu/net_table.h"

#include "ipu/net.h"

static void put_network(struct table *t, const struct net_case *net,
                        const struct net_result *r)
{
    table_text(t, net->name);
    table_text(t, net->task);
    table_text(t, net->chip ? net->chip : net->system);
    table_number(t, r->ipus);
    table_number(t, net->size.batch);
    table_number(t, (double)r->cycles);
    table_number(t, r->samples_per_second);
    table_number(t, r->tflops);
    table_number(t, 100 * r->utilisation);
    table_number(t, 100 * r->compute);
    table_number(t, 100 * r->waiting);
    table_number(t, 100 * r->exchange);
    table_number(t, 100 * r->sync);
    table_number(t, 100 * r->outside);
    table_number(t, (double)r->tile_bytes / 1024);
    table_text(t, r->fits ? "yes" : "no");
    table_number(t, 100 * r->estimated);
    table_number_if(t, net->published > 0, net->published);
    table_number_if(t, net->published > 0,
                    r->samples_per_second / net->published);
}

int net_table(enum table_format format)
{
    static const struct table_column columns[] = {
        {"network", -22, 0},  {"task", -9, 0},    {"system", -9, 0},
        {"ipus", 4, 0},       {"batch", 5, 0},    {"cycles", 9, 0},
        {"samples/s", 10, 1}, {"TFLOPS", 6, 1},   {"percent", 7, 1},
        {"compute", 7, 1},    {"waiting", 7, 1},  {"exchange", 8, 1},
        {"sync", 5, 1},       {"outside", 7, 1},  {"tile_KiB", 8, 0},
        {"fits", -4, 0},      {"estimate", 8, 1}, {"published", 9, 0},
        {"ratio", 5, 2}};
    struct table table;
    int status = IPU_OK;

    table_begin(&table, stdout, format,
                "whole networks: modelled; cycles of a mini-batch in a stage, "
                "TFLOPS of an IPU, shares in percent",
                columns, sizeof columns / sizeof *columns);
    for (const struct net_case *net = net_cases; net->name && status >= 0;
         net++) {
        struct net_result result;

        status = net_model(net, &result);
        if (status >= 0)
            put_network(&table, net, &result);
    }
    table_note(&table, "published: Graphcore's performance results, and "
                       "ByteMLPerf's of a C600; the model does not see them");
    table_note(&table, "fits: beside code, which equal steps share where it "
                       "would be too much otherwise");
    table_end(&table);
    return status;
}
