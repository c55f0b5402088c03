! SPDX-License-Identifier: Apache-2.0
!
! hvd.f90 - hvd for Fortran 2018: compile it with your program's compiler.
!
!     use hvd
!     ierr = hvd_init()
!     ierr = hvd_allreduce(x, y)                    ! the average; any rank
!     ierr = hvd_allreduce(x, y, HVD_SUM)
!     ierr = hvd_reduce(x, y, root=0)
!     if (ierr < 0) print *, hvd_error_text()
!
! The module has the functions of hvd.h by their C names (addresses by c_loc),
! except those for names of constants, hvd_init_with, hvd_get_metrics and
! compressors of the program's own. It also has generic
! hvd_allreduce, hvd_broadcast, hvd_reduce, hvd_allgather, hvd_gather,
! hvd_reducescatter and hvd_alltoall for contiguous arrays of real32, real64,
! int32 and int64 whose sizes are the arrays' own. Strategies are those of
! hvd_strategy.h, with contiguous arrays of real32 as variables:
!
!     type(hvd_strategy_options) :: options
!     type(c_ptr) :: strategy
!     real, target :: w(2, 3)
!     real, pointer :: gradient(:, :)
!
!     call hvd_strategy_options_init(options, c_sizeof(options))
!     ierr = hvd_strategy_new(options, strategy)
!     number = hvd_strategy_add(strategy, "w", w)
!     ierr = hvd_strategy_start(strategy)
!     call c_f_pointer(hvd_strategy_gradient(strategy, number), gradient, &
!                      shape(w))
!     gradient = ...
!     ierr = hvd_strategy_ready(strategy, number)
!     ierr = hvd_strategy_step(strategy)
!     call hvd_strategy_free(strategy)
!
! A description of a cluster (hvd_cluster.h) is a type(c_ptr), too:
!
!     ierr = hvd_cluster_new(cluster)
!     index = hvd_cluster_add(cluster, HVD_ROLE_WORKER, "node1:3737")
!     index = hvd_cluster_add(cluster, HVD_ROLE_WORKER, "node2:3737")
!     ierr = hvd_cluster_set_task(cluster, HVD_ROLE_WORKER, 0)
!     ierr = hvd_init_cluster(cluster)
!     call hvd_cluster_free(cluster)
!
! The state of a training that survives the loss of ranks is that of
! hvd_elastic.h. Functions that the library calls are bind(C), and their context
! is an address:
!
!     real, target :: w(2, 3)
!     integer(c_int64_t), target :: step
!
!     ierr = hvd_state_register("weights", c_loc(w), c_sizeof(w))
!     ierr = hvd_state_register("step", c_loc(step), c_sizeof(step))
!     ierr = hvd_on_reset(c_funloc(scale), c_null_ptr)
!     ierr = hvd_elastic_run(c_funloc(train), c_null_ptr)
!
!     integer(c_int) function train(context) bind(C)
!         type(c_ptr), value :: context
!     integer(c_int) function scale(context, reset) bind(C)
!         type(c_ptr), value :: context
!         type(hvd_reset), intent(in) :: reset
!
! Ranks and process sets count from 0, as everywhere in MPI.
!
module hvd
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env, only: real32, real64, int32, int64
    implicit none
    private

    integer(c_int), parameter, public :: &
        HVD_UINT8 = 0, HVD_INT8 = 1, HVD_UINT16 = 2, HVD_INT16 = 3, &
        HVD_INT32 = 4, HVD_INT64 = 5, HVD_FLOAT16 = 6, HVD_FLOAT32 = 7, &
        HVD_FLOAT64 = 8, HVD_BOOL = 9, HVD_BFLOAT16 = 10
    integer(c_int), parameter, public :: &
        HVD_AVERAGE = 0, HVD_SUM = 1, HVD_ADASUM = 2, HVD_MIN = 3, &
        HVD_MAX = 4, HVD_PRODUCT = 5
    ! The kinds of hvd_request end in _KIND, since names ignore case.
    integer(c_int), parameter, public :: &
        HVD_ALLREDUCE_KIND = 0, HVD_ALLGATHER_KIND = 1, &
        HVD_BROADCAST_KIND = 2, HVD_JOIN_KIND = 3, HVD_ALLTOALL_KIND = 5, &
        HVD_BARRIER_KIND = 6, HVD_REDUCESCATTER_KIND = 7, &
        HVD_GATHER_KIND = 8, HVD_REDUCE_KIND = 9
    ! The optimizers of hvd_strategy_options.
    integer(c_int), parameter, public :: &
        HVD_SGD = 0, HVD_MOMENTUM = 1, HVD_ADAM = 2, HVD_NO_OPTIMIZER = 3, &
        HVD_NESTEROV = 4, HVD_ADAMW = 5, HVD_LAMB = 6, HVD_LION = 7, &
        HVD_RMSPROP = 8, HVD_ADAGRAD = 9, HVD_ADADELTA = 10, HVD_LARS = 11
    integer(c_int), parameter, public :: &
        HVD_COMPRESSION_NONE = 0, HVD_COMPRESSION_FP16 = 1, &
        HVD_COMPRESSION_BF16 = 2, HVD_COMPRESSION_TOPK = 3

    integer(c_int32_t), parameter, public :: &
        HVD_ROLE_CHIEF = 0, HVD_ROLE_WORKER = 1, HVD_ROLE_PS = 2, &
        HVD_ROLE_EVALUATOR = 3
    ! The flag of hvd_cluster_parse and hvd_cluster_load.
    integer(c_int32_t), parameter, public :: HVD_CLUSTER_NO_TASK = 1

    ! The flag of hvd_state_register, and the reasons of hvd_lost_rank.
    integer(c_int32_t), parameter, public :: HVD_STATE_PER_RANK = 1
    integer(c_int32_t), parameter, public :: &
        HVD_LOST_ENDED = 1, HVD_LOST_FROZEN = 2, HVD_LOST_CUT_OFF = 3, &
        HVD_LOST_ABSENT = 4, HVD_LOST_EXCLUDED = 5

    ! The flags of hvd_request and hvd_strategy_options.
    integer(c_int), parameter, public :: HVD_AVERAGE_CONTRIBUTORS = 1
    integer(c_int), parameter, public :: &
        HVD_ERR_ARGUMENT = -1, HVD_ERR_UNSUPPORTED = -2, &
        HVD_ERR_DUPLICATE = -3, HVD_ERR_MISMATCH = -4, HVD_ERR_PEER = -5, &
        HVD_ERR_HANDLE = -6, HVD_ERR_MEMORY = -7, HVD_ERR_JOINED = -8, &
        HVD_ERR_PROCESS_SET = -9, HVD_ERR_INCONSISTENT = -10, &
        HVD_ERR_FILE = -11, HVD_ERR_NOT_INITIALIZED = -20, &
        HVD_ERR_SHUTDOWN = -21, HVD_ERR_CONFIG = -22, HVD_ERR_LAUNCH = -23, &
        HVD_ERR_MPI = -24, HVD_ERR_INTERNAL = -25, HVD_ERR_LOST = -26, &
        HVD_ERR_STALLED = -27

    ! This type is hvd.h's; fill it with
    ! hvd_request_init(request, c_sizeof(request)).
    type, bind(C), public :: hvd_request
        integer(c_int32_t) :: size, kind, dtype, op, root, ndim
        type(c_ptr) :: shape, name, input, output
        real(c_double) :: prescale, postscale
        type(c_funptr) :: callback
        type(c_ptr) :: callback_context
        integer(c_int32_t) :: process_set, priority, flags, compression
        integer(c_int64_t) :: capacity
        type(c_ptr) :: splits, counts
    end type

    type, bind(C), public :: hvd_tensor
        integer(c_int32_t) :: size, dtype, ndim, reserved
        integer(c_int64_t) :: shape(16)
        type(c_ptr) :: data
    end type

    ! This type is hvd_strategy.h's; fill it with hvd_strategy_options_init.
    type, bind(C), public :: hvd_strategy_options
        integer(c_int32_t) :: size, optimizer
        real(c_double) :: learning_rate, momentum, beta1, beta2, epsilon
        integer(c_int32_t) :: serial, compression
        type(c_funptr) :: updated
        type(c_ptr) :: context
        integer(c_int32_t) :: check_every, op, flags, reserved
        integer(c_int32_t) :: kind, servers, mode, backups, staleness, placement
        integer(c_int64_t) :: part_bytes
        real(c_double) :: rho, weight_decay, trust
        integer(c_int32_t) :: centered, elastic
    end type

    ! Set size to c_sizeof(stats) for hvd_strategy_get_stats.
    type, bind(C), public :: hvd_strategy_stats
        integer(c_int32_t) :: size, variables
        integer(c_int64_t) :: steps, gradients, bytes
        real(c_double) :: wait_seconds, update_seconds
        integer(c_int64_t) :: early, dropped, updates, ahead
    end type

    ! Set size to c_sizeof(info) for hvd_strategy_state_info.
    type, bind(C), public :: hvd_strategy_tensor
        integer(c_int32_t) :: size, variable, dtype, ndim
        integer(c_int64_t) :: shape(16), count
        character(kind=c_char) :: name(256)
    end type

    type, bind(C), public :: hvd_recovery
        integer(c_int32_t) :: size, generation, old_rank, old_size, nlost, &
            njoined
    end type

    type, bind(C), public :: hvd_lost_rank
        integer(c_int32_t) :: rank, reason
    end type

    ! Set size to c_sizeof(info) for hvd_state_get_info.
    type, bind(C), public :: hvd_state_info
        integer(c_int32_t) :: size, pieces
        integer(c_int64_t) :: bytes, commit, commits, restores
        real(c_double) :: copy_seconds, wait_seconds
    end type

    ! The functions of hvd_on_reset and hvd_on_straggler get these.
    type, bind(C), public :: hvd_reset
        integer(c_int32_t) :: size, old_rank, old_size, rank, new_size, &
            restored
        integer(c_int64_t) :: commit
    end type

    type, bind(C), public :: hvd_straggler
        integer(c_int32_t) :: size, rank
        real(c_double) :: seconds, busy, median
    end type

    public :: hvd_error_text, hvd_c_name
    public :: hvd_recover, hvd_grow, hvd_last_recovery, hvd_lost_ranks, &
        hvd_joiners, hvd_state_register, hvd_state_unregister, hvd_commit, &
        hvd_commit_start, hvd_commit_wait, hvd_restore, hvd_state_sync, &
        hvd_state_get_info, hvd_on_reset, hvd_off_reset, hvd_elastic_run, &
        hvd_on_straggler, hvd_off_straggler, hvd_exclude, hvd_dismiss_spares
    public :: hvd_strategy_options_init, hvd_strategy_options_set_optimizer, &
        hvd_strategy_new, hvd_strategy_free, &
        hvd_strategy_add, hvd_strategy_add_sparse, hvd_strategy_start, &
        hvd_strategy_gradient, hvd_strategy_ready, hvd_strategy_ready_rows, &
        hvd_strategy_read_rows, &
        hvd_strategy_step, hvd_strategy_abandon, &
        hvd_strategy_check, hvd_strategy_join, hvd_strategy_save, &
        hvd_strategy_load, hvd_strategy_set_learning_rate, &
        hvd_strategy_set_momentum, &
        hvd_strategy_state_count, hvd_strategy_state_info, &
        hvd_strategy_read_state, hvd_strategy_write_state, &
        hvd_strategy_get_stats, hvd_shard, hvd_shuffle
    public :: hvd_cluster_new, hvd_cluster_parse, hvd_cluster_load, &
        hvd_cluster_from_environment, hvd_cluster_add, hvd_cluster_set_task, &
        hvd_cluster_count, hvd_cluster_size, hvd_cluster_rank, &
        hvd_cluster_is_chief, hvd_cluster_check_allreduce, &
        hvd_cluster_rank_servers, hvd_init_cluster, hvd_cluster_free
    public :: hvd_init, hvd_shutdown, hvd_is_initialized, hvd_check, hvd_rank, &
        hvd_size, hvd_local_rank, hvd_local_size, hvd_cross_rank, hvd_cross_size, &
        hvd_init_fint, hvd_init_ranks, hvd_barrier, hvd_join, hvd_poll, hvd_wait, &
        hvd_wait_for, hvd_wait_output, hvd_submit, hvd_run, &
        hvd_submit_group, hvd_add_process_set, &
        hvd_remove_process_set, hvd_process_set_rank, hvd_process_set_size, &
        hvd_process_set_included, hvd_number_of_process_sets, hvd_allgatherv, &
        hvd_alltoallv, hvd_allreduce_async, hvd_broadcast_async, &
        hvd_allgather_async, hvd_reducescatter_async, &
        hvd_sparse_allreduce_async, hvd_completion_fd, hvd_start_timeline, &
        hvd_stop_timeline, hvd_alltoall_async, hvd_grouped_allreduce_async, &
        hvd_process_set_ids, hvd_process_set_ranks, hvd_dtype_size, &
        hvd_metrics_text
    public :: hvd_request_init, hvd_malloc, hvd_free
    public :: hvd_allreduce, hvd_broadcast, hvd_allgather, hvd_gather, &
        hvd_reduce, hvd_reducescatter, hvd_alltoall

    interface
        integer(c_int) function hvd_init() bind(C, name="hvd_init")
            import
        end function
        integer(c_int) function hvd_shutdown() bind(C, name="hvd_shutdown")
            import
        end function
        integer(c_int) function hvd_is_initialized() bind(C, &
            name="hvd_is_initialized")
            import
        end function
        integer(c_int) function hvd_check() bind(C, name="hvd_check")
            import
        end function
        integer(c_int) function hvd_rank() bind(C, name="hvd_rank")
            import
        end function
        integer(c_int) function hvd_size() bind(C, name="hvd_size")
            import
        end function
        integer(c_int) function hvd_local_rank() bind(C, name="hvd_local_rank")
            import
        end function
        integer(c_int) function hvd_local_size() bind(C, name="hvd_local_size")
            import
        end function
        integer(c_int) function hvd_cross_rank() bind(C, name="hvd_cross_rank")
            import
        end function
        integer(c_int) function hvd_cross_size() bind(C, name="hvd_cross_size")
            import
        end function
        integer(c_int) function hvd_init_fint(comm) bind(C, &
            name="hvd_init_fint")
            import
            integer(c_int), value :: comm
        end function
        integer(c_int) function hvd_init_ranks(ranks, n) bind(C, &
            name="hvd_init_ranks")
            import
            integer(c_int32_t), intent(in) :: ranks(*)
            integer(c_int32_t), value :: n
        end function
        integer(c_int) function hvd_barrier() bind(C, name="hvd_barrier")
            import
        end function
        integer(c_int) function hvd_join(last) bind(C, name="hvd_join")
            import
            integer(c_int), intent(out) :: last
        end function
        integer(c_int) function hvd_poll(handle) bind(C, name="hvd_poll")
            import
            integer(c_int64_t), value :: handle
        end function
        integer(c_int) function hvd_wait(handle) bind(C, name="hvd_wait")
            import
            integer(c_int64_t), value :: handle
        end function
        integer(c_int) function hvd_wait_for(handle, limit_ns) bind(C, &
            name="hvd_wait_for")
            import
            integer(c_int64_t), value :: handle, limit_ns
        end function
        integer(c_int) function hvd_wait_output(handle, output) bind(C, &
            name="hvd_wait_output")
            import
            integer(c_int64_t), value :: handle
            type(hvd_tensor), intent(inout) :: output
        end function
        integer(c_int) function hvd_submit(request, handle) bind(C, &
            name="hvd_submit")
            import
            type(hvd_request), intent(in) :: request
            integer(c_int64_t), intent(out) :: handle
        end function
        integer(c_int) function hvd_run(request, handle) bind(C, &
            name="hvd_run")
            import
            type(hvd_request), intent(in) :: request
            integer(c_int64_t), intent(out) :: handle
        end function
        integer(c_int) function hvd_submit_group(name, requests, n, &
            handles) bind(C, name="hvd_submit_group")
            import
            type(c_ptr), value :: name
            type(c_ptr), intent(in) :: requests(*)
            integer(c_int), value :: n
            integer(c_int64_t), intent(out) :: handles(*)
        end function
        integer(c_int) function hvd_add_process_set(ranks, n) bind(C, &
            name="hvd_add_process_set")
            import
            integer(c_int32_t), intent(in) :: ranks(*)
            integer(c_int), value :: n
        end function
        integer(c_int) function hvd_remove_process_set(process_set) bind(C, &
            name="hvd_remove_process_set")
            import
            integer(c_int), value :: process_set
        end function
        integer(c_int) function hvd_process_set_rank(process_set) bind(C, &
            name="hvd_process_set_rank")
            import
            integer(c_int), value :: process_set
        end function
        integer(c_int) function hvd_process_set_size(process_set) bind(C, &
            name="hvd_process_set_size")
            import
            integer(c_int), value :: process_set
        end function
        integer(c_int) function hvd_process_set_included(process_set) bind(C, &
            name="hvd_process_set_included")
            import
            integer(c_int), value :: process_set
        end function
        integer(c_int) function hvd_number_of_process_sets() bind(C, &
            name="hvd_number_of_process_sets")
            import
        end function
        integer(c_int) function hvd_allreduce_c(in, out, count, dtype, &
            op) bind(C, name="hvd_allreduce")
            import
            type(c_ptr), value :: in
            type(c_ptr), value :: out
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype
            integer(c_int), value :: op
        end function
        integer(c_int) function hvd_broadcast_c(buffer, count, dtype, &
            root) bind(C, name="hvd_broadcast")
            import
            type(c_ptr), value :: buffer
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype
            integer(c_int), value :: root
        end function
        integer(c_int) function hvd_allgather_c(in, out, count, &
            dtype) bind(C, name="hvd_allgather")
            import
            type(c_ptr), value :: in
            type(c_ptr), value :: out
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype
        end function
        integer(c_int) function hvd_allgatherv(in, count, out, capacity, &
            counts, dtype) bind(C, name="hvd_allgatherv")
            import
            type(c_ptr), value :: in
            integer(c_int64_t), value :: count
            type(c_ptr), value :: out
            integer(c_int64_t), value :: capacity
            integer(c_int64_t), intent(out) :: counts(*)
            integer(c_int), value :: dtype
        end function
        integer(c_int) function hvd_gather_c(in, out, count, dtype, &
            root) bind(C, name="hvd_gather")
            import
            type(c_ptr), value :: in
            type(c_ptr), value :: out
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype
            integer(c_int), value :: root
        end function
        integer(c_int) function hvd_reduce_c(in, out, count, dtype, op, &
            root) bind(C, name="hvd_reduce")
            import
            type(c_ptr), value :: in
            type(c_ptr), value :: out
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype
            integer(c_int), value :: op
            integer(c_int), value :: root
        end function
        integer(c_int) function hvd_reducescatter_c(in, out, count, dtype, &
            op) bind(C, name="hvd_reducescatter")
            import
            type(c_ptr), value :: in
            type(c_ptr), value :: out
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype
            integer(c_int), value :: op
        end function
        integer(c_int) function hvd_alltoall_c(in, out, count, dtype) bind(C, &
            name="hvd_alltoall")
            import
            type(c_ptr), value :: in
            type(c_ptr), value :: out
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype
        end function
        integer(c_int) function hvd_alltoallv(in, splits, out, capacity, &
            counts, dtype) bind(C, name="hvd_alltoallv")
            import
            type(c_ptr), value :: in
            integer(c_int64_t), intent(in) :: splits(*)
            type(c_ptr), value :: out
            integer(c_int64_t), value :: capacity
            integer(c_int64_t), intent(out) :: counts(*)
            integer(c_int), value :: dtype
        end function
        integer(c_int) function hvd_allreduce_async(name, in, out, count, &
            dtype, op, handle) bind(C, name="hvd_allreduce_async")
            import
            character(kind=c_char), intent(in) :: name(*)
            type(c_ptr), value :: in
            type(c_ptr), value :: out
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype
            integer(c_int), value :: op
            integer(c_int64_t), intent(out) :: handle
        end function
        integer(c_int) function hvd_broadcast_async(name, buffer, count, &
            dtype, root, handle) bind(C, name="hvd_broadcast_async")
            import
            character(kind=c_char), intent(in) :: name(*)
            type(c_ptr), value :: buffer
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype
            integer(c_int), value :: root
            integer(c_int64_t), intent(out) :: handle
        end function
        integer(c_int) function hvd_allgather_async(name, in, count, dtype, &
            handle) bind(C, name="hvd_allgather_async")
            import
            character(kind=c_char), intent(in) :: name(*)
            type(c_ptr), value :: in
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype
            integer(c_int64_t), intent(out) :: handle
        end function
        integer(c_int) function hvd_reducescatter_async(name, in, count, &
            dtype, op, handle) bind(C, name="hvd_reducescatter_async")
            import
            character(kind=c_char), intent(in) :: name(*)
            type(c_ptr), value :: in
            integer(c_int64_t), value :: count
            integer(c_int), value :: dtype
            integer(c_int), value :: op
            integer(c_int64_t), intent(out) :: handle
        end function
        integer(c_int) function hvd_sparse_allreduce_async(name, indices, &
            rows, n, width, dtype, op, handles) bind(C, &
            name="hvd_sparse_allreduce_async")
            import
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int64_t), intent(in) :: indices(*)
            type(c_ptr), value :: rows
            integer(c_int64_t), value :: n
            integer(c_int64_t), value :: width
            integer(c_int), value :: dtype
            integer(c_int), value :: op
            integer(c_int64_t), intent(out) :: handles(*)
        end function
        integer(c_int) function hvd_alltoall_async(name, in, count, splits, &
            dtype, handle) bind(C, name="hvd_alltoall_async")
            import
            character(kind=c_char), intent(in) :: name(*)
            type(c_ptr), value :: in
            integer(c_int64_t), value :: count
            integer(c_int64_t), intent(in), optional :: splits(*)
            integer(c_int), value :: dtype
            integer(c_int64_t), intent(out) :: handle
        end function
        integer(c_int) function hvd_grouped_allreduce_async(name, n, in, out, &
            counts, dtype, op, handles) bind(C, &
            name="hvd_grouped_allreduce_async")
            import
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int), value :: n
            type(c_ptr), intent(in) :: in(*)
            type(c_ptr), intent(in) :: out(*)
            integer(c_int64_t), intent(in) :: counts(*)
            integer(c_int), value :: dtype
            integer(c_int), value :: op
            integer(c_int64_t), intent(out) :: handles(*)
        end function
        integer(c_int) function hvd_process_set_ids(ids, n) bind(C, &
            name="hvd_process_set_ids")
            import
            integer(c_int32_t), intent(out) :: ids(*)
            integer(c_int), value :: n
        end function
        integer(c_int) function hvd_process_set_ranks(process_set, ranks, n) &
            bind(C, name="hvd_process_set_ranks")
            import
            integer(c_int), value :: process_set
            integer(c_int32_t), intent(out) :: ranks(*)
            integer(c_int), value :: n
        end function
        integer(c_int) function hvd_dtype_size(dtype) bind(C, &
            name="hvd_dtype_size")
            import
            integer(c_int), value :: dtype
        end function
        integer(c_int) function hvd_metrics_text(text, size) bind(C, &
            name="hvd_metrics_text")
            import
            character(kind=c_char), intent(out) :: text(*)
            integer(c_int64_t), value :: size
        end function
        integer(c_int) function hvd_completion_fd() bind(C, &
            name="hvd_completion_fd")
            import
        end function
        integer(c_int) function hvd_start_timeline(path) bind(C, &
            name="hvd_start_timeline")
            import
            character(kind=c_char), intent(in) :: path(*)
        end function
        integer(c_int) function hvd_stop_timeline() bind(C, &
            name="hvd_stop_timeline")
            import
        end function
        subroutine hvd_request_init(request, size) bind(C)
            import
            type(hvd_request), intent(out) :: request
            integer(c_size_t), value :: size
        end subroutine
        type(c_ptr) function hvd_malloc(bytes) bind(C)
            import
            integer(c_size_t), value :: bytes
        end function
        subroutine hvd_free(memory) bind(C)
            import
            type(c_ptr), value :: memory
        end subroutine
        subroutine hvd_strategy_options_init(options, size) bind(C)
            import
            type(hvd_strategy_options), intent(out) :: options
            integer(c_size_t), value :: size
        end subroutine
        integer(c_int) function hvd_strategy_options_set_optimizer( &
            options, optimizer) bind(C)
            import
            type(hvd_strategy_options), intent(inout) :: options
            integer(c_int32_t), value :: optimizer
        end function
        integer(c_int) function hvd_strategy_new(options, strategy) bind(C)
            import
            type(hvd_strategy_options), intent(in) :: options
            type(c_ptr), intent(out) :: strategy
        end function
        subroutine hvd_strategy_free(strategy) bind(C)
            import
            type(c_ptr), value :: strategy
        end subroutine
        integer(c_int) function hvd_strategy_add_c(strategy, name, values, ndim, &
            extents) bind(C, name="hvd_strategy_add")
            import
            type(c_ptr), value :: strategy
            character(kind=c_char), intent(in) :: name(*)
            type(c_ptr), value :: values
            integer(c_int32_t), value :: ndim
            integer(c_int64_t), intent(in) :: extents(*)
        end function
        integer(c_int) function hvd_strategy_add_sparse_c(strategy, name, &
            values, rows, width) bind(C, name="hvd_strategy_add_sparse")
            import
            type(c_ptr), value :: strategy
            character(kind=c_char), intent(in) :: name(*)
            type(c_ptr), value :: values
            integer(c_int64_t), value :: rows, width
        end function
        ! Indices count from 0; rows are (width, n).
        integer(c_int) function hvd_strategy_ready_rows(strategy, variable, &
            indices, rows, n, width) bind(C)
            import
            type(c_ptr), value :: strategy
            integer(c_int32_t), value :: variable
            integer(c_int64_t), intent(in) :: indices(*)
            real(c_float), intent(in) :: rows(*)
            integer(c_int64_t), value :: n, width
        end function
        integer(c_int) function hvd_strategy_read_rows(strategy, variable, &
            indices, n) bind(C)
            import
            type(c_ptr), value :: strategy
            integer(c_int32_t), value :: variable
            integer(c_int64_t), intent(in) :: indices(*)
            integer(c_int64_t), value :: n
        end function
        type(c_ptr) function hvd_strategy_gradient(strategy, variable) bind(C)
            import
            type(c_ptr), value :: strategy
            integer(c_int32_t), value :: variable
        end function
        integer(c_int) function hvd_strategy_ready(strategy, variable) bind(C)
            import
            type(c_ptr), value :: strategy
            integer(c_int32_t), value :: variable
        end function
        integer(c_int) function hvd_strategy_join(strategy, last) bind(C)
            import
            type(c_ptr), value :: strategy
            integer(c_int), intent(out) :: last
        end function
        integer(c_int) function hvd_strategy_set_learning_rate(strategy, &
            rate) bind(C)
            import
            type(c_ptr), value :: strategy
            real(c_double), value :: rate
        end function
        integer(c_int) function hvd_strategy_set_momentum(strategy, &
            momentum) bind(C)
            import
            type(c_ptr), value :: strategy
            real(c_double), value :: momentum
        end function
        integer(c_int) function hvd_strategy_state_count(strategy) bind(C)
            import
            type(c_ptr), value :: strategy
        end function
        integer(c_int) function hvd_strategy_state_info(strategy, number, &
            info) bind(C)
            import
            type(c_ptr), value :: strategy
            integer(c_int32_t), value :: number
            type(hvd_strategy_tensor), intent(inout) :: info
        end function
        ! places: the address of an array for each tensor of the state.
        integer(c_int) function hvd_strategy_read_state(strategy, places) &
            bind(C)
            import
            type(c_ptr), value :: strategy
            type(c_ptr), intent(in) :: places(*)
        end function
        ! Without tensors on rank 0 the optimizer begins anew.
        integer(c_int) function hvd_strategy_write_state(strategy, tensors) &
            bind(C)
            import
            type(c_ptr), value :: strategy
            type(c_ptr), intent(in), optional :: tensors(*)
        end function
        integer(c_int) function hvd_strategy_get_stats(strategy, stats) bind(C)
            import
            type(c_ptr), value :: strategy
            type(hvd_strategy_stats), intent(inout) :: stats
        end function
        integer(c_int) function hvd_shard(n, rank, size, first, stride, &
            count) bind(C)
            import
            integer(c_int64_t), value :: n
            integer(c_int), value :: rank, size
            integer(c_int64_t), intent(out) :: first, stride, count
        end function
        integer(c_int) function hvd_shuffle(n, seed, epoch, indices) bind(C)
            import
            integer(c_int64_t), value :: n, seed, epoch
            integer(c_int64_t), intent(out) :: indices(*)
        end function
        type(c_ptr) function hvd_last_error_c() bind(C, name="hvd_last_error")
            import
        end function
        integer(c_size_t) function c_strlen(text) bind(C, name="strlen")
            import
            type(c_ptr), value :: text
        end function
    end interface

    ! Each function has an interface of its own: where several share an abstract
    ! one, gfortran 12 forgets the value attribute at all references but the
    ! first.
    interface
        integer(c_int) function hvd_strategy_start(strategy) bind(C, &
            name="hvd_strategy_start")
            import
            type(c_ptr), value :: strategy
        end function
        integer(c_int) function hvd_strategy_step(strategy) bind(C, &
            name="hvd_strategy_step")
            import
            type(c_ptr), value :: strategy
        end function
        integer(c_int) function hvd_strategy_check(strategy) bind(C, &
            name="hvd_strategy_check")
            import
            type(c_ptr), value :: strategy
        end function
        integer(c_int) function hvd_strategy_abandon_c(strategy, text) &
            bind(C, name="hvd_strategy_abandon")
            import
            type(c_ptr), value :: strategy
            character(kind=c_char), intent(in) :: text(*)
        end function
        integer(c_int) function hvd_strategy_save_c(strategy, text) &
            bind(C, name="hvd_strategy_save")
            import
            type(c_ptr), value :: strategy
            character(kind=c_char), intent(in) :: text(*)
        end function
        integer(c_int) function hvd_strategy_load_c(strategy, text) &
            bind(C, name="hvd_strategy_load")
            import
            type(c_ptr), value :: strategy
            character(kind=c_char), intent(in) :: text(*)
        end function
    end interface

    interface
        integer(c_int) function hvd_recover(recovery, size) bind(C, &
            name="hvd_recover")
            import
            type(hvd_recovery), intent(out) :: recovery
            integer(c_size_t), value :: size
        end function
        integer(c_int) function hvd_grow(recovery, size) bind(C, &
            name="hvd_grow")
            import
            type(hvd_recovery), intent(out) :: recovery
            integer(c_size_t), value :: size
        end function
        integer(c_int) function hvd_last_recovery(recovery, size) bind(C, &
            name="hvd_last_recovery")
            import
            type(hvd_recovery), intent(out) :: recovery
            integer(c_size_t), value :: size
        end function
        integer(c_int) function hvd_lost_ranks(lost, max) bind(C, &
            name="hvd_lost_ranks")
            import
            type(hvd_lost_rank), intent(out) :: lost(*)
            integer(c_int32_t), value :: max
        end function
        integer(c_int) function hvd_joiners() bind(C, &
            name="hvd_joiners")
            import
        end function
        integer(c_int) function hvd_state_register_c(name, memory, bytes, flags) bind(C, &
            name="hvd_state_register")
            import
            character(kind=c_char), intent(in) :: name(*)
            type(c_ptr), value :: memory
            integer(c_size_t), value :: bytes
            integer(c_int32_t), value :: flags
        end function
        integer(c_int) function hvd_state_unregister_c(name) bind(C, &
            name="hvd_state_unregister")
            import
            character(kind=c_char), intent(in) :: name(*)
        end function
        integer(c_int) function hvd_commit() bind(C, &
            name="hvd_commit")
            import
        end function
        integer(c_int) function hvd_commit_start() bind(C, &
            name="hvd_commit_start")
            import
        end function
        integer(c_int) function hvd_commit_wait() bind(C, &
            name="hvd_commit_wait")
            import
        end function
        integer(c_int) function hvd_restore() bind(C, &
            name="hvd_restore")
            import
        end function
        integer(c_int) function hvd_state_sync(root) bind(C, &
            name="hvd_state_sync")
            import
            integer(c_int), value :: root
        end function
        integer(c_int) function hvd_state_get_info(info) bind(C, &
            name="hvd_state_get_info")
            import
            type(hvd_state_info), intent(inout) :: info
        end function
        integer(c_int) function hvd_on_reset(function, context) bind(C, &
            name="hvd_on_reset")
            import
            type(c_funptr), value :: function
            type(c_ptr), value :: context
        end function
        integer(c_int) function hvd_off_reset(function, context) bind(C, &
            name="hvd_off_reset")
            import
            type(c_funptr), value :: function
            type(c_ptr), value :: context
        end function
        integer(c_int) function hvd_elastic_run(train, context) bind(C, &
            name="hvd_elastic_run")
            import
            type(c_funptr), value :: train
            type(c_ptr), value :: context
        end function
        integer(c_int) function hvd_on_straggler(function, context) bind(C, &
            name="hvd_on_straggler")
            import
            type(c_funptr), value :: function
            type(c_ptr), value :: context
        end function
        integer(c_int) function hvd_off_straggler(function, context) bind(C, &
            name="hvd_off_straggler")
            import
            type(c_funptr), value :: function
            type(c_ptr), value :: context
        end function
        integer(c_int) function hvd_exclude(rank) bind(C, &
            name="hvd_exclude")
            import
            integer(c_int), value :: rank
        end function
        integer(c_int) function hvd_dismiss_spares() bind(C, &
            name="hvd_dismiss_spares")
            import
        end function
    end interface

    interface
        integer(c_int) function hvd_cluster_new(cluster) bind(C, &
            name="hvd_cluster_new")
            import
            type(c_ptr), intent(out) :: cluster
        end function
        integer(c_int) function hvd_cluster_from_environment(cluster) bind(C, &
            name="hvd_cluster_from_environment")
            import
            type(c_ptr), intent(out) :: cluster
        end function
        integer(c_int) function hvd_cluster_size(cluster) bind(C, &
            name="hvd_cluster_size")
            import
            type(c_ptr), value :: cluster
        end function
        integer(c_int) function hvd_cluster_rank(cluster) bind(C, &
            name="hvd_cluster_rank")
            import
            type(c_ptr), value :: cluster
        end function
        integer(c_int) function hvd_cluster_is_chief(cluster) bind(C, &
            name="hvd_cluster_is_chief")
            import
            type(c_ptr), value :: cluster
        end function
        integer(c_int) function hvd_cluster_rank_servers(cluster) bind(C, &
            name="hvd_cluster_rank_servers")
            import
            type(c_ptr), value :: cluster
        end function
        integer(c_int) function hvd_cluster_check_allreduce(cluster) bind(C, &
            name="hvd_cluster_check_allreduce")
            import
            type(c_ptr), value :: cluster
        end function
        integer(c_int) function hvd_init_cluster(cluster) bind(C, &
            name="hvd_init_cluster")
            import
            type(c_ptr), value :: cluster
        end function
        integer(c_int) function hvd_cluster_parse_c(text, bytes, flags, &
            cluster) bind(C, name="hvd_cluster_parse")
            import
            character(kind=c_char), intent(in) :: text(*)
            integer(c_int64_t), value :: bytes
            integer(c_int32_t), value :: flags
            type(c_ptr), intent(out) :: cluster
        end function
        integer(c_int) function hvd_cluster_load_c(path, flags, &
            cluster) bind(C, name="hvd_cluster_load")
            import
            character(kind=c_char), intent(in) :: path(*)
            integer(c_int32_t), value :: flags
            type(c_ptr), intent(out) :: cluster
        end function
        integer(c_int) function hvd_cluster_add_c(cluster, role, &
            address) bind(C, name="hvd_cluster_add")
            import
            type(c_ptr), value :: cluster
            integer(c_int32_t), value :: role
            character(kind=c_char), intent(in) :: address(*)
        end function
        integer(c_int) function hvd_cluster_set_task(cluster, role, &
            index) bind(C, name="hvd_cluster_set_task")
            import
            type(c_ptr), value :: cluster
            integer(c_int32_t), value :: role, index
        end function
        integer(c_int) function hvd_cluster_count(cluster, role) bind(C, &
            name="hvd_cluster_count")
            import
            type(c_ptr), value :: cluster
            integer(c_int32_t), value :: role
        end function
        subroutine hvd_cluster_free(cluster) bind(C, &
            name="hvd_cluster_free")
            import
            type(c_ptr), value :: cluster
        end subroutine
    end interface

    interface hvd_allreduce
        procedure allreduce_r4
        procedure allreduce_r8
        procedure allreduce_i4
        procedure allreduce_i8
    end interface
    interface hvd_broadcast
        procedure broadcast_r4
        procedure broadcast_r8
        procedure broadcast_i4
        procedure broadcast_i8
    end interface
    interface hvd_allgather
        procedure allgather_r4
        procedure allgather_r8
        procedure allgather_i4
        procedure allgather_i8
    end interface
    interface hvd_gather
        procedure gather_r4
        procedure gather_r8
        procedure gather_i4
        procedure gather_i8
    end interface
    interface hvd_reduce
        procedure reduce_r4
        procedure reduce_r8
        procedure reduce_i4
        procedure reduce_i8
    end interface
    interface hvd_reducescatter
        procedure reducescatter_r4
        procedure reducescatter_r8
        procedure reducescatter_i4
        procedure reducescatter_i8
    end interface
    interface hvd_alltoall
        procedure alltoall_r4
        procedure alltoall_r8
        procedure alltoall_i4
        procedure alltoall_i8
    end interface

contains

    ! Returns this thread's last failure in full.
    function hvd_error_text() result(text)
        character(len=:), allocatable :: text
        character(kind=c_char), pointer :: chars(:)
        type(c_ptr) :: address
        integer :: i

        address = hvd_last_error_c()
        call c_f_pointer(address, chars, [c_strlen(address)])
        allocate (character(len=size(chars)) :: text)
        do i = 1, size(chars)
            text(i:i) = chars(i)
        end do
    end function

    ! Returns a name for the asynchronous calls.
    ! memory: c_loc of the piece; bytes: its c_sizeof. flags: none.
    integer(c_int) function hvd_state_register(name, memory, bytes, flags)
        character(len=*), intent(in) :: name
        type(c_ptr), intent(in) :: memory
        integer(c_size_t), intent(in) :: bytes
        integer(c_int32_t), intent(in), optional :: flags
        integer(c_int32_t) :: given

        given = 0
        if (present(flags)) given = flags
        hvd_state_register = hvd_state_register_c(hvd_c_name(name), memory, &
                                                  bytes, given)
    end function

    integer(c_int) function hvd_state_unregister(name)
        character(len=*), intent(in) :: name

        hvd_state_unregister = hvd_state_unregister_c(hvd_c_name(name))
    end function

    pure function hvd_c_name(name) result(text)
        character(len=*), intent(in) :: name
        character(len=len_trim(name) + 1, kind=c_char) :: text

        text = trim(name)//c_null_char
    end function

    ! Returns the number of the variable, whose value is borrowed until
    ! hvd_strategy_free: an array that keeps its place, such as one with save,
    ! of a module or allocated. C sees its shape with the last dimension first.
    integer(c_int) function hvd_strategy_add(strategy, name, value) &
        result(number)
        type(c_ptr), intent(in) :: strategy
        character(len=*), intent(in) :: name
        real(real32), contiguous, target, intent(inout) :: value(..)
        integer(c_int64_t) :: extents(15)
        integer :: i

        do i = 1, rank(value)
            extents(i) = size(value, rank(value) + 1 - i, int64)
        end do
        number = hvd_strategy_add_c(strategy, hvd_c_name(name), c_loc(value), &
                                    int(rank(value), c_int32_t), extents)
    end function

    ! Does the same for a sparse variable, (width, rows).
    integer(c_int) function hvd_strategy_add_sparse(strategy, name, value) &
        result(number)
        type(c_ptr), intent(in) :: strategy
        character(len=*), intent(in) :: name
        real(real32), contiguous, target, intent(inout) :: value(:, :)

        number = hvd_strategy_add_sparse_c(strategy, hvd_c_name(name), &
                                           c_loc(value), size(value, 2, int64), &
                                           size(value, 1, int64))
    end function

    ! A rank that cannot make a step calls this instead of hvd_strategy_step.
    integer(c_int) function hvd_strategy_abandon(strategy, reason) &
        result(status)
        type(c_ptr), intent(in) :: strategy
        character(len=*), intent(in) :: reason

        status = hvd_strategy_abandon_c(strategy, hvd_c_name(reason))
    end function

    integer(c_int) function hvd_strategy_save(strategy, path) result(status)
        type(c_ptr), intent(in) :: strategy
        character(len=*), intent(in) :: path

        status = hvd_strategy_save_c(strategy, hvd_c_name(path))
    end function

    ! The path of rank 0 counts.
    integer(c_int) function hvd_strategy_load(strategy, path) result(status)
        type(c_ptr), intent(in) :: strategy
        character(len=*), intent(in) :: path

        status = hvd_strategy_load_c(strategy, hvd_c_name(path))
    end function

    integer(c_int) function hvd_cluster_parse(text, flags, cluster) &
        result(status)
        character(len=*), intent(in) :: text
        integer(c_int32_t), intent(in) :: flags
        type(c_ptr), intent(out) :: cluster

        status = hvd_cluster_parse_c(text, len(text, c_int64_t), flags, cluster)
    end function

    integer(c_int) function hvd_cluster_load(path, flags, cluster) &
        result(status)
        character(len=*), intent(in) :: path
        integer(c_int32_t), intent(in) :: flags
        type(c_ptr), intent(out) :: cluster

        status = hvd_cluster_load_c(hvd_c_name(path), flags, cluster)
    end function

    ! Returns the index of the task.
    integer(c_int) function hvd_cluster_add(cluster, role, address) &
        result(index)
        type(c_ptr), intent(in) :: cluster
        integer(c_int32_t), intent(in) :: role
        character(len=*), intent(in) :: address

        index = hvd_cluster_add_c(cluster, role, hvd_c_name(address))
    end function

    ! The average is the default, as in every language.
    pure integer(c_int) function op_of(op)
        integer, intent(in), optional :: op

        op_of = HVD_AVERAGE
        if (present(op)) op_of = op
    end function

    integer(c_int) function allreduce_r4(in, out, op) result(status)
        real(real32), contiguous, target, intent(in) :: in(..)
        real(real32), contiguous, target, intent(inout) :: out(..)
        integer, intent(in), optional :: op

        status = hvd_allreduce_c(c_loc(in), c_loc(out), size(in, kind=int64), &
                          HVD_FLOAT32, op_of(op))
    end function

    integer(c_int) function allreduce_r8(in, out, op) result(status)
        real(real64), contiguous, target, intent(in) :: in(..)
        real(real64), contiguous, target, intent(inout) :: out(..)
        integer, intent(in), optional :: op

        status = hvd_allreduce_c(c_loc(in), c_loc(out), size(in, kind=int64), &
                          HVD_FLOAT64, op_of(op))
    end function

    integer(c_int) function allreduce_i4(in, out, op) result(status)
        integer(int32), contiguous, target, intent(in) :: in(..)
        integer(int32), contiguous, target, intent(inout) :: out(..)
        integer, intent(in), optional :: op

        status = hvd_allreduce_c(c_loc(in), c_loc(out), size(in, kind=int64), &
                          HVD_INT32, op_of(op))
    end function

    integer(c_int) function allreduce_i8(in, out, op) result(status)
        integer(int64), contiguous, target, intent(in) :: in(..)
        integer(int64), contiguous, target, intent(inout) :: out(..)
        integer, intent(in), optional :: op

        status = hvd_allreduce_c(c_loc(in), c_loc(out), size(in, kind=int64), &
                          HVD_INT64, op_of(op))
    end function

    integer(c_int) function broadcast_r4(buffer, root) result(status)
        real(real32), contiguous, target, intent(inout) :: buffer(..)
        integer, intent(in) :: root

        status = hvd_broadcast_c(c_loc(buffer), size(buffer, kind=int64), &
                                 HVD_FLOAT32, root)
    end function

    integer(c_int) function broadcast_r8(buffer, root) result(status)
        real(real64), contiguous, target, intent(inout) :: buffer(..)
        integer, intent(in) :: root

        status = hvd_broadcast_c(c_loc(buffer), size(buffer, kind=int64), &
                                 HVD_FLOAT64, root)
    end function

    integer(c_int) function broadcast_i4(buffer, root) result(status)
        integer(int32), contiguous, target, intent(inout) :: buffer(..)
        integer, intent(in) :: root

        status = hvd_broadcast_c(c_loc(buffer), size(buffer, kind=int64), &
                                 HVD_INT32, root)
    end function

    integer(c_int) function broadcast_i8(buffer, root) result(status)
        integer(int64), contiguous, target, intent(inout) :: buffer(..)
        integer, intent(in) :: root

        status = hvd_broadcast_c(c_loc(buffer), size(buffer, kind=int64), &
                                 HVD_INT64, root)
    end function

    integer(c_int) function allgather_r4(in, out) result(status)
        real(real32), contiguous, target, intent(in) :: in(..)
        real(real32), contiguous, target, intent(inout) :: out(..)

        status = hvd_allgather_c(c_loc(in), c_loc(out), size(in, kind=int64), &
                          HVD_FLOAT32)
    end function

    integer(c_int) function allgather_r8(in, out) result(status)
        real(real64), contiguous, target, intent(in) :: in(..)
        real(real64), contiguous, target, intent(inout) :: out(..)

        status = hvd_allgather_c(c_loc(in), c_loc(out), size(in, kind=int64), &
                          HVD_FLOAT64)
    end function

    integer(c_int) function allgather_i4(in, out) result(status)
        integer(int32), contiguous, target, intent(in) :: in(..)
        integer(int32), contiguous, target, intent(inout) :: out(..)

        status = hvd_allgather_c(c_loc(in), c_loc(out), size(in, kind=int64), &
                          HVD_INT32)
    end function

    integer(c_int) function allgather_i8(in, out) result(status)
        integer(int64), contiguous, target, intent(in) :: in(..)
        integer(int64), contiguous, target, intent(inout) :: out(..)

        status = hvd_allgather_c(c_loc(in), c_loc(out), size(in, kind=int64), &
                          HVD_INT64)
    end function

    integer(c_int) function gather_r4(in, out, root) result(status)
        real(real32), contiguous, target, intent(in) :: in(..)
        real(real32), contiguous, target, intent(inout) :: out(..)
        integer, intent(in) :: root

        status = hvd_gather_c(c_loc(in), c_loc(out), size(in, kind=int64), &
                          HVD_FLOAT32, root)
    end function

    integer(c_int) function gather_r8(in, out, root) result(status)
        real(real64), contiguous, target, intent(in) :: in(..)
        real(real64), contiguous, target, intent(inout) :: out(..)
        integer, intent(in) :: root

        status = hvd_gather_c(c_loc(in), c_loc(out), size(in, kind=int64), &
                          HVD_FLOAT64, root)
    end function

    integer(c_int) function gather_i4(in, out, root) result(status)
        integer(int32), contiguous, target, intent(in) :: in(..)
        integer(int32), contiguous, target, intent(inout) :: out(..)
        integer, intent(in) :: root

        status = hvd_gather_c(c_loc(in), c_loc(out), size(in, kind=int64), &
                          HVD_INT32, root)
    end function

    integer(c_int) function gather_i8(in, out, root) result(status)
        integer(int64), contiguous, target, intent(in) :: in(..)
        integer(int64), contiguous, target, intent(inout) :: out(..)
        integer, intent(in) :: root

        status = hvd_gather_c(c_loc(in), c_loc(out), size(in, kind=int64), &
                          HVD_INT64, root)
    end function

    integer(c_int) function reduce_r4(in, out, op, root) result(status)
        real(real32), contiguous, target, intent(in) :: in(..)
        real(real32), contiguous, target, intent(inout) :: out(..)
        integer, intent(in), optional :: op
        integer, intent(in) :: root

        status = hvd_reduce_c(c_loc(in), c_loc(out), size(in, kind=int64), &
                          HVD_FLOAT32, op_of(op), root)
    end function

    integer(c_int) function reduce_r8(in, out, op, root) result(status)
        real(real64), contiguous, target, intent(in) :: in(..)
        real(real64), contiguous, target, intent(inout) :: out(..)
        integer, intent(in), optional :: op
        integer, intent(in) :: root

        status = hvd_reduce_c(c_loc(in), c_loc(out), size(in, kind=int64), &
                          HVD_FLOAT64, op_of(op), root)
    end function

    integer(c_int) function reduce_i4(in, out, op, root) result(status)
        integer(int32), contiguous, target, intent(in) :: in(..)
        integer(int32), contiguous, target, intent(inout) :: out(..)
        integer, intent(in), optional :: op
        integer, intent(in) :: root

        status = hvd_reduce_c(c_loc(in), c_loc(out), size(in, kind=int64), &
                          HVD_INT32, op_of(op), root)
    end function

    integer(c_int) function reduce_i8(in, out, op, root) result(status)
        integer(int64), contiguous, target, intent(in) :: in(..)
        integer(int64), contiguous, target, intent(inout) :: out(..)
        integer, intent(in), optional :: op
        integer, intent(in) :: root

        status = hvd_reduce_c(c_loc(in), c_loc(out), size(in, kind=int64), &
                          HVD_INT64, op_of(op), root)
    end function

    integer(c_int) function reducescatter_r4(in, out, op) result(status)
        real(real32), contiguous, target, intent(in) :: in(..)
        real(real32), contiguous, target, intent(inout) :: out(..)
        integer, intent(in), optional :: op

        status = hvd_reducescatter_c(c_loc(in), c_loc(out), size(in, kind=int64), &
                          HVD_FLOAT32, op_of(op))
    end function

    integer(c_int) function reducescatter_r8(in, out, op) result(status)
        real(real64), contiguous, target, intent(in) :: in(..)
        real(real64), contiguous, target, intent(inout) :: out(..)
        integer, intent(in), optional :: op

        status = hvd_reducescatter_c(c_loc(in), c_loc(out), size(in, kind=int64), &
                          HVD_FLOAT64, op_of(op))
    end function

    integer(c_int) function reducescatter_i4(in, out, op) result(status)
        integer(int32), contiguous, target, intent(in) :: in(..)
        integer(int32), contiguous, target, intent(inout) :: out(..)
        integer, intent(in), optional :: op

        status = hvd_reducescatter_c(c_loc(in), c_loc(out), size(in, kind=int64), &
                          HVD_INT32, op_of(op))
    end function

    integer(c_int) function reducescatter_i8(in, out, op) result(status)
        integer(int64), contiguous, target, intent(in) :: in(..)
        integer(int64), contiguous, target, intent(inout) :: out(..)
        integer, intent(in), optional :: op

        status = hvd_reducescatter_c(c_loc(in), c_loc(out), size(in, kind=int64), &
                          HVD_INT64, op_of(op))
    end function

    integer(c_int) function alltoall_r4(in, out) result(status)
        real(real32), contiguous, target, intent(in) :: in(..)
        real(real32), contiguous, target, intent(inout) :: out(..)

        status = hvd_alltoall_c(c_loc(in), c_loc(out), size(in, kind=int64), &
                          HVD_FLOAT32)
    end function

    integer(c_int) function alltoall_r8(in, out) result(status)
        real(real64), contiguous, target, intent(in) :: in(..)
        real(real64), contiguous, target, intent(inout) :: out(..)

        status = hvd_alltoall_c(c_loc(in), c_loc(out), size(in, kind=int64), &
                          HVD_FLOAT64)
    end function

    integer(c_int) function alltoall_i4(in, out) result(status)
        integer(int32), contiguous, target, intent(in) :: in(..)
        integer(int32), contiguous, target, intent(inout) :: out(..)

        status = hvd_alltoall_c(c_loc(in), c_loc(out), size(in, kind=int64), &
                          HVD_INT32)
    end function

    integer(c_int) function alltoall_i8(in, out) result(status)
        integer(int64), contiguous, target, intent(in) :: in(..)
        integer(int64), contiguous, target, intent(inout) :: out(..)

        status = hvd_alltoall_c(c_loc(in), c_loc(out), size(in, kind=int64), &
                          HVD_INT64)
    end function
end module hvd
