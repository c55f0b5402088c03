! SPDX-License-Identifier: Apache-2.0
!
! elastic.f90 - trains through the death of its last rank (hvd_elastic.h). Prints
! "rank R did every elastic" when all was as it should be.
!
module training
    use, intrinsic :: iso_c_binding
    use hvd
    implicit none
    integer, parameter :: steps = 30
    integer(c_int64_t), target :: step = 0, own = 0
    real(c_float), target :: w(2, 3) = 0
    integer :: resets = 0, process = -1, nprocesses = 0

    interface
        integer(c_int) function c_raise(number) bind(C, name="raise")
            import
            integer(c_int), value :: number
        end function
    end interface
contains
    integer(c_int) function train(context) bind(C)
        type(c_ptr), value :: context
        real(c_float) :: sums(2, 3)

        if (c_associated(context)) error stop "context"
        do while (step < steps)
            if (step == 12 .and. nprocesses > 1 .and. &
                process == nprocesses - 1) train = c_raise(9)
            sums = real(step)
            train = hvd_allreduce(sums, sums)
            if (train < 0) return
            w = w + sums
            step = step + 1
            own = own + 1 + process
            if (mod(step, 10_c_int64_t) == 0) train = hvd_commit()
            if (train < 0) return
        end do
        train = 0
    end function

    integer(c_int) function see_reset(context, reset) bind(C)
        type(c_ptr), value :: context
        type(hvd_reset), intent(in) :: reset
        integer(c_int64_t), pointer :: seen

        call c_f_pointer(context, seen)
        if (seen /= 10 .or. reset%restored /= 1) error stop "reset"
        if (reset%old_rank /= process .or. reset%old_size /= nprocesses) &
            error stop "reset: before"
        if (reset%rank /= hvd_rank() .or. reset%new_size /= nprocesses - 1) &
            error stop "reset: now"
        resets = resets + 1
        see_reset = 0
    end function

    subroutine see_straggler(context, straggler) bind(C)
        type(c_ptr), value :: context
        type(hvd_straggler), intent(in) :: straggler

        if (c_associated(context) .or. straggler%rank < 0) &
            error stop "straggler"
    end subroutine
end module

program elastic
    use, intrinsic :: iso_c_binding
    use training
    implicit none
    type(hvd_recovery) :: how
    type(hvd_lost_rank) :: lost(4)
    type(hvd_state_info) :: info
    integer :: lost_here

    call must(hvd_init(), "init")
    process = hvd_rank()
    nprocesses = hvd_size()
    lost_here = merge(1, 0, nprocesses > 1)
    call must(hvd_state_register("w", c_loc(w), c_sizeof(w)), "register")
    call must(hvd_state_register("step", c_loc(step), c_sizeof(step)), &
              "register")
    call must(hvd_state_register("own", c_loc(own), c_sizeof(own), &
                                 HVD_STATE_PER_RANK), "register")
    if (hvd_state_register("w", c_loc(w), c_sizeof(w)) /= HVD_ERR_ARGUMENT) &
        error stop "registered twice"
    call must(hvd_on_reset(c_funloc(see_reset), c_loc(step)), "on_reset")
    call must(hvd_on_straggler(c_funloc(see_straggler), c_null_ptr), &
              "on_straggler")
    call must(hvd_elastic_run(c_funloc(train), c_null_ptr), "elastic_run")
    if (step /= steps .or. any(w /= steps*(steps - 1)/2)) error stop "w"
    if (resets /= lost_here) error stop "resets"
    call check_world()
    info%size = int(c_sizeof(info))
    call must(hvd_state_get_info(info), "info")
    if (info%pieces /= 3 .or. info%restores /= lost_here) error stop "info"
    if (info%bytes /= c_sizeof(w) + 16) error stop "info: bytes"
    call check_commits()
    call must(hvd_off_straggler(c_funloc(see_straggler), c_null_ptr), &
              "off_straggler")
    call must(hvd_off_reset(c_funloc(see_reset), c_loc(step)), "off_reset")
    if (hvd_off_reset(c_funloc(see_reset), c_loc(step)) /= HVD_ERR_ARGUMENT) &
        error stop "taken back twice"
    call must(hvd_state_unregister("own"), "unregister")
    print "(a, i0, a)", "rank ", hvd_rank(), " did every elastic"
    call must(hvd_shutdown(), "shutdown")
contains
    subroutine check_world()
        call must(hvd_last_recovery(how, c_sizeof(how)), "last_recovery")
        if (how%nlost /= lost_here .or. how%njoined /= 0) error stop "nlost"
        if (hvd_lost_ranks(lost, 4) /= lost_here) error stop "lost_ranks"
        if (lost_here == 1) then
            if (lost(1)%rank /= nprocesses - 1 .or. &
                lost(1)%reason /= HVD_LOST_ENDED) error stop "lost"
            if (how%old_size /= nprocesses) error stop "old_size"
        end if
        if (hvd_joiners() /= 0) error stop "joiners"
        call must(hvd_grow(how, c_sizeof(how)), "grow")
        call must(hvd_dismiss_spares(), "dismiss_spares")
        if (hvd_exclude(nprocesses) >= 0) error stop "exclude"
    end subroutine

    subroutine check_commits()
        call must(hvd_commit_start(), "commit_start")
        call must(hvd_commit_wait(), "commit_wait")
        w = -1
        own = -1
        if (hvd_restore() /= 1) error stop "restore"
        if (any(w < 0) .or. own /= steps*(1 + process)) error stop "restored"
        w = hvd_rank()
        call must(hvd_state_sync(0), "state_sync")
        if (any(w /= 0)) error stop "synced"
    end subroutine

    subroutine must(status, what)
        integer, intent(in) :: status
        character(len=*), intent(in) :: what

        if (status >= 0) return
        print *, what, ": ", hvd_error_text()
        error stop 1
    end subroutine
end program
