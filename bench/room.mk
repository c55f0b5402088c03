# bench: measures collectives against MPI and against the machine.

CFLAGS_bench = -Ilibhvd/include -Ibench $(MPI_CFLAGS)
