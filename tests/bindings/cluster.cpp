/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.cpp - starts as a task of a cluster that the program gives. */
#include <hvd.hpp>

#include <cstdio>
#include <cstdlib>

int main()
{
    const auto cluster = hvd::Cluster::from_environment().value();
    unsetenv("TF_CONFIG"); /* the library must be told by the argument */
    hvd::World world(cluster);
    const float own = static_cast<float>(hvd::rank() + 1);
    float total = 0;

    hvd::allreduce(&own, &total, 1, hvd::sum);
    if (hvd::size() != 2 || hvd::rank() != cluster.rank() || total != 3.0F)
        return 1;
    std::puts("every task");
    return 0;
}
