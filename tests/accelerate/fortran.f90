! SPDX-License-Identifier: Apache-2.0
! Collectives of Fortran, with mpif.h's and mpi_f08's names, in place and not,
! and requests.
program fortran
    use mpi
    implicit none
    integer, parameter :: n = 3000
    integer :: rank, ranks, ierr, request, wrong, i
    integer :: status(MPI_STATUS_SIZE)
    integer, allocatable :: counts(:), displs(:), all(:)
    double precision :: x(n), y(n), expected

    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
    allocate (counts(ranks), displs(ranks), all(3*ranks))
    wrong = 0
    expected = ranks*(ranks + 1)/2

    x = rank + 1
    call MPI_Allreduce(x, y, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
    wrong = wrong + count(y /= expected) + abs(ierr)
    call MPI_Allreduce(MPI_IN_PLACE, x, n, MPI_DOUBLE_PRECISION, MPI_SUM, &
                       MPI_COMM_WORLD, ierr)
    wrong = wrong + count(x /= expected)

    x = rank
    call MPI_Bcast(x, n, MPI_DOUBLE_PRECISION, ranks - 1, MPI_COMM_WORLD, ierr)
    wrong = wrong + count(x /= ranks - 1)

    x = rank + 1
    call MPI_Iallreduce(MPI_IN_PLACE, x, n, MPI_DOUBLE_PRECISION, MPI_MAX, &
                        MPI_COMM_WORLD, request, ierr)
    call MPI_Wait(request, status, ierr)
    wrong = wrong + count(x /= ranks)
    if (request /= MPI_REQUEST_NULL) wrong = wrong + 1

    counts = 2
    displs = [(3*i, i=0, ranks - 1)]
    all = -1
    all(3*rank + 1:3*rank + 2) = rank
    call MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts, displs, &
                        MPI_INTEGER, MPI_COMM_WORLD, ierr)
    do i = 0, ranks - 1
        if (any(all(3*i + 1:3*i + 3) /= [i, i, -1])) wrong = wrong + 1
    end do

    x(1:ranks) = rank
    call MPI_Alltoall(x, 1, MPI_DOUBLE_PRECISION, y, 1, MPI_DOUBLE_PRECISION, &
                      MPI_COMM_WORLD, ierr)
    wrong = wrong + count(y(1:ranks) /= [(i, i=0, ranks - 1)])
    call modern(wrong)

    call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, &
                       MPI_COMM_WORLD, ierr)
    if (rank == 0) print '(i0, a)', wrong, ' wrong'
    call MPI_Finalize(ierr)
    if (wrong /= 0) stop 1

contains

    subroutine modern(wrong)
        use mpi_f08, only: MPI_Comm_dup, MPI_Allreduce, MPI_Comm_free, MPI_Comm, &
                           world => MPI_COMM_WORLD, sum => MPI_SUM, &
                           double => MPI_DOUBLE_PRECISION, in_place => MPI_IN_PLACE
        integer, intent(inout) :: wrong
        type(MPI_Comm) :: comm
        double precision :: z(n)

        z = rank + 1
        call MPI_Comm_dup(world, comm)
        call MPI_Allreduce(in_place, z, n, double, sum, comm)
        call MPI_Comm_free(comm)
        wrong = wrong + count(z /= expected)
    end subroutine modern
end program fortran
