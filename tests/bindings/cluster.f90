! SPDX-License-Identifier: Apache-2.0
! cluster.f90 - starts as a task of a cluster that the program describes, at the
! addresses that are its arguments: INDEX ADDRESS...
program cluster_of_fortran
    use, intrinsic :: iso_c_binding
    use hvd
    implicit none
    type(c_ptr) :: cluster, other
    character(len=64) :: argument
    real(4) :: own(1), total(1)
    integer :: i, n, task

    n = command_argument_count() - 1
    call get_command_argument(1, argument)
    read (argument, *) task
    call must(hvd_cluster_new(cluster))
    do i = 1, n
        call get_command_argument(i + 1, argument)
        if (hvd_cluster_add(cluster, HVD_ROLE_WORKER, argument) /= i - 1) &
            error stop hvd_error_text()
    end do
    call must(hvd_cluster_set_task(cluster, HVD_ROLE_WORKER, &
                                   int(task, c_int32_t)))
    call must(hvd_cluster_check_allreduce(cluster))
    if (hvd_cluster_size(cluster) /= n .or. &
        hvd_cluster_count(cluster, HVD_ROLE_WORKER) /= n .or. &
        hvd_cluster_rank(cluster) /= task .or. &
        hvd_cluster_is_chief(cluster) /= merge(1, 0, task == 0)) &
        error stop "questions"
    call must(hvd_init_cluster(cluster))
    call hvd_cluster_free(cluster)
    own = real(hvd_rank() + 1, 4)
    call must(hvd_allreduce(own, total, HVD_SUM))
    if (hvd_size() /= n .or. hvd_rank() /= task .or. &
        nint(total(1)) /= n * (n + 1) / 2) error stop "sum"

    ! Texts and files.
    call must(hvd_cluster_parse('{"cluster":{"worker":["a:1","b:2"]}}', &
                                HVD_CLUSTER_NO_TASK, other))
    if (hvd_cluster_size(other) /= 2) error stop "parse"
    call hvd_cluster_free(other)
    if (hvd_cluster_parse("{", HVD_CLUSTER_NO_TASK, other) >= 0) &
        error stop "parse"
    if (hvd_cluster_load("missing.json", 0, other) >= 0) error stop "load"
    if (index_of("missing.json") == 0) error stop "load: message"
    if (hvd_cluster_from_environment(other) /= 0) error stop "environment"
    call must(hvd_shutdown())
    print '(a)', "every task"

contains

    integer function index_of(word)
        character(len=*), intent(in) :: word

        index_of = index(hvd_error_text(), word)
    end function

    subroutine must(status)
        integer, intent(in) :: status

        if (status < 0) error stop hvd_error_text()
    end subroutine
end program
