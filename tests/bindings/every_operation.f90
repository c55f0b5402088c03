! SPDX-License-Identifier: Apache-2.0
! Every operation of hvd.f90, on any number of ranks.
program every_operation
    use hvd
    use, intrinsic :: iso_c_binding
    implicit none
    integer :: r, n, k, set, last
    real(4), target :: x(2, 3), y(2, 3), s(6)
    real(8) :: z(2, 2, 2), w(2, 2, 2)
    real(4), allocatable, target :: all(:, :, :)
    integer(8), allocatable, target :: to(:), from(:), counts(:), splits(:)
    integer(4) :: whole(1), result(1)
    integer(8) :: handle, pair(2)
    integer(4) :: members(64)
    character(kind=c_char) :: text(4096)
    integer(8), target :: shape(1), indices(1)
    character(len=:), allocatable, target :: name
    type(hvd_request), target :: request
    type(hvd_tensor) :: tensor
    type(c_ptr) :: requests(1)
    real(4), pointer :: got(:)

    call must(hvd_init(), "init")
    r = hvd_rank()
    n = hvd_size()
    x = reshape([(real(r + k, 4), k=0, 5)], [2, 3])
    do k = 1, 2
        y = -1
        if (k == 1) call must(hvd_allreduce(x, y, HVD_AVERAGE), "allreduce")
        if (k == 2) call must(hvd_allreduce(x, y), "the default")
        call equal(y(2, 3), real((n - 1) / 2.0 + 5, 4), "allreduce")
    end do
    z = r
    call must(hvd_allreduce(z, w, HVD_MAX), "allreduce real64")
    call equal(real(w(2, 2, 2), 4), real(n - 1, 4), "max")
    whole = r + 1
    call must(hvd_allreduce(whole, result, HVD_SUM), "allreduce int32")
    call equal(real(result(1), 4), real(n * (n + 1) / 2, 4), "sum")
    y = x
    call must(hvd_broadcast(y, n - 1), "broadcast")
    call equal(y(1, 1), real(n - 1, 4), "broadcast")
    allocate (all(2, 3, n), to(n), from(n), counts(n), splits(n))
    call must(hvd_allgather(x, all), "allgather")
    call equal(all(1, 1, n), real(n - 1, 4), "allgather")
    call must(hvd_gather(x, all, 0), "gather")
    call must(hvd_reduce(x, y, HVD_SUM, n - 1), "reduce")
    if (r == n - 1) call equal(y(1, 1), real(n * (n - 1) / 2, 4), "reduce")
    call must(hvd_reduce(x, y, root=n - 1), "reduce")
    if (r == n - 1) call equal(y(1, 1), real((n - 1) / 2.0, 4), "reduce")
    call must(hvd_reducescatter(x, s), "reducescatter")
    if (r == 0) call equal(s(1), real((n - 1) / 2.0, 4), "reducescatter")
    call must(hvd_reducescatter(x, s, HVD_MIN), "reducescatter")
    to = [(int(10 * r + k, 8), k=0, n - 1)]
    call must(hvd_alltoall(to, from), "alltoall")
    call equal(real(from(n), 4), real(10 * (n - 1) + r, 4), "alltoall")
    splits = 1
    call must(hvd_alltoallv(c_loc(to), splits, c_loc(from), int(n, 8), counts, &
                            HVD_INT64), "alltoallv")
    call equal(real(counts(1), 4), 1.0, "alltoallv")
    call must(hvd_allgatherv(c_loc(x), int(r + 1, 8), c_loc(all), &
                             int(6 * n, 8), counts, HVD_FLOAT32), "allgatherv")
    call equal(real(counts(n), 4), real(n, 4), "allgatherv")

    call must(hvd_allreduce_async(hvd_c_name("x"), c_loc(x), c_loc(y), 6_8, &
                                  HVD_FLOAT32, HVD_SUM, handle), "async")
    if (hvd_poll(handle) < 0) error stop "poll"
    if (hvd_wait_for(handle, 60000000000_8) /= 1) error stop "wait_for"
    call must(hvd_wait(handle), "wait")
    call must(hvd_broadcast_async(hvd_c_name("b"), c_loc(y), 6_8, HVD_FLOAT32, &
                                  0, handle), "broadcast_async")
    call must(hvd_wait(handle), "wait")
    call must(hvd_allgather_async(hvd_c_name("g"), c_loc(x), int(r + 1, 8), &
                                  HVD_FLOAT32, handle), "allgather_async")
    tensor%size = int(c_sizeof(tensor), 4)
    call must(hvd_wait_output(handle, tensor), "wait_output")
    call equal(real(tensor%shape(1), 4), real(n * (n + 1) / 2, 4), "output")
    call c_f_pointer(tensor%data, got, [tensor%shape(1)])
    call equal(got(1), 0.0, "output")
    call hvd_free(tensor%data)
    call must(hvd_reducescatter_async(hvd_c_name("rs"), c_loc(x), 6_8, &
                                      HVD_FLOAT32, HVD_SUM, handle), "rs")
    call must(hvd_wait_output(handle, tensor), "wait_output")
    call hvd_free(tensor%data)
    indices = r
    call must(hvd_sparse_allreduce_async(hvd_c_name("sp"), indices, c_loc(x), &
                                         1_8, 6_8, HVD_FLOAT32, HVD_SUM, &
                                         pair), "sparse")
    do k = 1, 2
        call must(hvd_wait_output(pair(k), tensor), "sparse")
        call hvd_free(tensor%data)
    end do

    ! A request with options, alone and as a group.
    call hvd_request_init(request, c_sizeof(request))
    name = hvd_c_name("full")
    shape = 6
    request%dtype = HVD_FLOAT32
    request%ndim = 1
    request%shape = c_loc(shape)
    request%name = c_loc(name)
    request%input = c_loc(x)
    request%output = c_loc(y)
    if (request%op /= HVD_AVERAGE) error stop "default op"
    request%op = HVD_SUM
    request%prescale = 2
    request%compression = HVD_COMPRESSION_BF16
    call must(hvd_submit(request, handle), "submit")
    call must(hvd_wait(handle), "wait")
    call equal(y(1, 1), real(n * (n - 1), 4), "prescale")
    requests(1) = c_loc(request)
    call must(hvd_submit_group(c_null_ptr, requests, 1, pair), "group")
    call must(hvd_wait(pair(1)), "group")

    ! Each rank sends its k-th element to rank k; no splits: equal parts.
    call must(hvd_alltoall_async(hvd_c_name("a"), c_loc(to), int(n, 8), splits, &
                                 HVD_INT64, handle), "alltoall_async")
    tensor%size = int(c_sizeof(tensor))
    call must(hvd_wait_output(handle, tensor), "alltoall_async")
    call equal(real(tensor%shape(1), 4), real(n, 4), "alltoall_async")
    call hvd_free(tensor%data)
    call must(hvd_alltoall_async(hvd_c_name("a"), c_loc(to), int(n, 8), &
                                 dtype=HVD_INT64, handle=handle), "no splits")
    call must(hvd_wait_output(handle, tensor), "no splits")
    call hvd_free(tensor%data)
    y = 1
    s = 1
    call must(hvd_grouped_allreduce_async( &
              hvd_c_name("pair"), 2, [c_loc(y), c_loc(s)], &
              [c_loc(y), c_loc(s)], [6_8, 6_8], HVD_FLOAT32, HVD_SUM, pair), &
              "grouped")
    call must(hvd_wait(pair(1)), "grouped")
    call must(hvd_wait(pair(2)), "grouped")
    call equal(y(2, 3) + s(6), real(2 * n, 4), "grouped")
    if (hvd_process_set_ranks(0, members, 64) /= n) error stop "ranks"
    if (members(n) /= n - 1) error stop "ranks"
    if (hvd_process_set_ids(members, 64) /= 1) error stop "ids"
    if (members(1) /= 0) error stop "ids"
    if (hvd_dtype_size(HVD_FLOAT64) /= 8) error stop "dtype_size"
    call must(hvd_metrics_text(text, 4096_8), "metrics")
    if (text(1) /= "#") error stop "metrics"

    if (n > 1) then
        set = hvd_add_process_set([0], 1)
        call must(set, "process set")
        if (hvd_process_set_size(set) /= 1) error stop "size"
        call must(hvd_remove_process_set(set), "remove")
        request%root = 99
        request%kind = HVD_BROADCAST_KIND
        request%prescale = 1
        if (hvd_submit(request, handle) /= HVD_ERR_ARGUMENT) error stop "no error"
        if (index(hvd_error_text(), "root 99") == 0) error stop "text"
    end if
    call strategies
    call must(hvd_barrier(), "barrier")
    call must(hvd_join(last), "join")
    call must(hvd_shutdown(), "shutdown")
    call must(hvd_init_ranks([r], 1), "init of a list")
    if (hvd_size() /= 1 .or. hvd_rank() /= 0) error stop "init of a list"
    call must(hvd_shutdown(), "shutdown of a list")
    print "(a, i0, a, i0, a)", "rank ", r, " of ", n, ": every operation"

contains

    ! A variable that all ranks pull at, more often on higher ranks.
    subroutine strategies
        real(4), target, save :: v(2, 3), scalar, table(2, 4)
        real(4), pointer :: gradient(:, :), slope
        type(hvd_strategy_options) :: options
        type(hvd_strategy_stats) :: stats
        type(hvd_strategy_tensor) :: info
        integer(c_int64_t), target :: updates(2)
        type(c_ptr) :: strategy
        integer(8) :: first, stride, count, order(5)
        integer :: a, b, step, unit
        real(4) :: want
        character(len=80) :: path

        call hvd_strategy_options_init(options, c_sizeof(options))
        if (options%optimizer /= HVD_ADAM) error stop "default optimizer"
        if (options%op /= HVD_AVERAGE) error stop "default op"
        options%optimizer = HVD_SGD
        options%learning_rate = 0.5d0
        options%flags = HVD_AVERAGE_CONTRIBUTORS
        call must(hvd_strategy_new(options, strategy), "strategy_new")
        v = real(r, 4)
        scalar = 0
        a = hvd_strategy_add(strategy, "v", v)
        b = hvd_strategy_add(strategy, "scalar", scalar)
        if (a /= 0 .or. b /= 1) error stop "strategy_add"
        call must(hvd_strategy_start(strategy), "strategy_start")
        call c_f_pointer(hvd_strategy_gradient(strategy, a), gradient, [2, 3])
        call c_f_pointer(hvd_strategy_gradient(strategy, b), slope)
        want = 0
        do step = 0, r
            gradient = 0
            gradient(2, 3) = real(r + 1, 4)
            slope = 1
            call must(hvd_strategy_ready(strategy, b), "ready")
            call must(hvd_strategy_ready(strategy, a), "ready")
            call must(hvd_strategy_step(strategy), "step")
        end do
        do step = 0, n - 1 ! the mean of the ranks that still have data
            want = want - 0.5 * real(step + n + 1, 4) / 2
        end do
        call must(hvd_strategy_join(strategy, last), "strategy_join")
        if (last /= n - 1) error stop "strategy_join"
        call equal(v(2, 3), want, "joined")
        call equal(v(1, 1), 0.0, "joined")
        call equal(scalar, -0.5 * real(n, 4), "joined")
        call must(hvd_strategy_check(strategy), "strategy_check")
        ! A compiler may treat the first reference otherwise than the next.
        call must(hvd_strategy_check(strategy), "strategy_check again")
        path = "every_operation.state"
        call get_environment_variable("STATE", path)
        if (r == 0) call must(hvd_strategy_save(strategy, path), "save")
        v = 99
        call must(hvd_strategy_load(strategy, path), "load")
        call equal(v(2, 3), want, "load")
        if (r == 0) then
            open (newunit=unit, file=path)
            close (unit, status="delete")
        end if
        call must(hvd_strategy_set_learning_rate(strategy, 0.25d0), "rate")
        if (hvd_strategy_set_momentum(strategy, 0.5d0) >= 0) &
            error stop "sgd has no momentum"
        stats%size = int(c_sizeof(stats), 4)
        call must(hvd_strategy_get_stats(strategy, stats), "stats")
        if (stats%steps /= r + 1 .or. stats%variables /= 2) error stop "stats"
        if (hvd_strategy_state_count(strategy) /= 2) error stop "state_count"
        info%size = int(c_sizeof(info), 4)
        call must(hvd_strategy_state_info(strategy, 1, info), "state_info")
        if (info%variable /= 1 .or. info%count /= 1 .or. info%name(7) /= "/") &
            error stop "state_info"
        call must(hvd_strategy_read_state(strategy, [c_loc(updates(1)), &
                                                     c_loc(updates(2))]), "read_state")
        if (any(updates /= n)) error stop "read_state"
        v(2, 3) = r
        updates = 7 + r
        call must(hvd_strategy_write_state(strategy, [c_loc(updates(1)), &
                                                      c_loc(updates(2))]), "write_state")
        call equal(v(2, 3), 0.0, "write_state")
        call must(hvd_strategy_read_state(strategy, [c_loc(updates(1)), &
                                                     c_null_ptr]), "read_state")
        if (updates(1) /= 7 .or. updates(2) /= 7 + r) error stop "write_state"
        call must(hvd_strategy_write_state(strategy), "write_state anew")
        call must(hvd_strategy_read_state(strategy, [c_loc(updates(1)), &
                                                     c_null_ptr]), "read_state")
        if (updates(1) /= 0) error stop "write_state anew"
        call must(hvd_strategy_abandon(strategy, "no data"), "abandon")
        call hvd_strategy_free(strategy)

        call must(hvd_strategy_new(options, strategy), "strategy_new")
        table = 1
        a = hvd_strategy_add_sparse(strategy, "table", table)
        if (a /= 0) error stop "strategy_add_sparse"
        call must(hvd_strategy_start(strategy), "strategy_start")
        call must(hvd_strategy_ready_rows(strategy, a, [3_8, 0_8, 3_8], &
                                          [1.0, 2.0, 5.0, 0.0, 1.0, 0.0], &
                                          3_8, 2_8), "ready_rows")
        call must(hvd_strategy_step(strategy), "step")
        call must(hvd_strategy_read_rows(strategy, a, [3_8], 1_8), "read_rows")
        call equal(table(1, 4), 0.0, "rows")
        call equal(table(2, 4), 0.0, "rows")
        call equal(table(1, 1), -1.5, "rows")
        call equal(table(1, 2), 1.0, "rows")
        call hvd_strategy_free(strategy)
        call must(hvd_shard(5_8, r, n, first, stride, count), "shard")
        if (first /= r .or. stride /= n) error stop "shard"
        call must(hvd_shuffle(5_8, 1_8, 2_8, order), "shuffle")
        if (sum(order) /= 10) error stop "shuffle"
    end subroutine

    subroutine must(status, what)
        integer, intent(in) :: status
        character(len=*), intent(in) :: what

        if (status >= 0) return
        print *, what, ": ", hvd_error_text()
        error stop 1
    end subroutine

    subroutine equal(value, want, what)
        real(4), intent(in) :: value, want
        character(len=*), intent(in) :: what

        if (abs(value - want) <= 1e-6 * abs(want)) return
        print *, what, ": ", value, " is not ", want
        error stop 1
    end subroutine
end program
