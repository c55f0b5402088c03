/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd.hpp - hvd for C++17, header only: the element type chooses the dtype,
 * failures are exceptions, and destructors end what constructors began.
 *
 *     hvd::World world;
 *     std::vector<float> gradient = ...;
 *     auto handle = hvd::allreduce_async("w", gradient.data(), gradient.data(),
 *                                        gradient.size(), hvd::average);
 *     ...
 *     handle.wait();
 *
 * Buffers are pointers and counts of elements, borrowed until the wait, as in
 * hvd.h, which says what each operation does and which statuses there are.
 * Reductions average unless another operation is given. The last argument of an
 * operation says on which process set it runs and with which priority:
 *
 *     hvd::ProcessSet even({0, 2});
 *     hvd::allreduce(in, out, count, hvd::sum, even);
 *     hvd::broadcast_async("b", x, count, 2, {even, 5});
 */
#ifndef HVD_HPP
#define HVD_HPP

#include <hvd.h>
#include <hvd_cluster.h>
#include <hvd_elastic.h>
#include <hvd_strategy.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/* This function is declared in hvd_mpi.h, which needs mpi.h. */
extern "C" int hvd_init_fint(std::int32_t comm);

namespace hvd {

/* A status below 0, with the library's text. */
class Error : public std::runtime_error {
public:
    explicit Error(int status)
        : std::runtime_error(hvd_last_error()), status_(status)
    {
    }
    Error(int status, const char *text)
        : std::runtime_error(text), status_(status)
    {
    }
    int status() const noexcept { return status_; }

private:
    int status_;
};

inline int check(int status)
{
    if (status < 0)
        throw Error(status);
    return status;
}

/* 16-bit floats are bits here: C++17 has no such types. */
struct float16 {
    std::uint16_t bits;
};
struct bfloat16 {
    std::uint16_t bits;
};

template <class T> struct dtype_of;
#define HVD_HPP_DTYPE(type, number)                                            \
    template <> struct dtype_of<type> {                                        \
        static constexpr hvd_dtype value = number;                             \
    };
HVD_HPP_DTYPE(std::uint8_t, HVD_UINT8)
HVD_HPP_DTYPE(std::int8_t, HVD_INT8)
HVD_HPP_DTYPE(std::uint16_t, HVD_UINT16)
HVD_HPP_DTYPE(std::int16_t, HVD_INT16)
HVD_HPP_DTYPE(std::int32_t, HVD_INT32)
HVD_HPP_DTYPE(std::int64_t, HVD_INT64)
HVD_HPP_DTYPE(float16, HVD_FLOAT16)
HVD_HPP_DTYPE(float, HVD_FLOAT32)
HVD_HPP_DTYPE(double, HVD_FLOAT64)
HVD_HPP_DTYPE(bool, HVD_BOOL)
HVD_HPP_DTYPE(bfloat16, HVD_BFLOAT16)
#undef HVD_HPP_DTYPE

constexpr hvd_op average = HVD_AVERAGE, sum = HVD_SUM, adasum = HVD_ADASUM,
                 min = HVD_MIN, max = HVD_MAX, product = HVD_PRODUCT;

class Cluster;

/* Calls hvd_init, and hvd_shutdown at the end of its scope. */
class World {
public:
    World() { check(hvd_init()); }
    /* Starts on some of the ranks that mpirun started. */
    static World of(const std::vector<std::int32_t> &ranks)
    {
        check(hvd_init_ranks(ranks.data(),
                             static_cast<std::int32_t>(ranks.size())));
        return World(); /* finds the library initialised */
    }
    explicit World(const std::vector<std::vector<std::int32_t>> &process_sets)
    {
        std::vector<std::int32_t> sizes, ranks;
        hvd_options options;

        for (const auto &set : process_sets) {
            sizes.push_back(static_cast<std::int32_t>(set.size()));
            ranks.insert(ranks.end(), set.begin(), set.end());
        }
        hvd_options_init(&options, sizeof options);
        options.nprocess_sets = static_cast<std::int32_t>(sizes.size());
        options.process_set_sizes = sizes.data();
        options.process_set_ranks = ranks.data();
        check(hvd_init_with(&options));
    }
    /* Starts on the ranks of a communicator: World(comm), where comm is an
     * MPI_Comm and the program includes mpi.h. It is copied. */
    template <class Comm> explicit World(Comm *comm)
    {
        check(hvd_init_fint(MPI_Comm_c2f(comm)));
    }
    /* Starts as the task of a cluster that it says this process is, without
     * MPI. */
    explicit World(const Cluster &cluster);
    World(const World &) = delete;
    World &operator=(const World &) = delete;
    ~World() { hvd_shutdown(); }
};

inline int rank() { return check(hvd_rank()); }
inline int size() { return check(hvd_size()); }

/* Memory that collectives work on fastest. */
template <class T> class Buffer {
public:
    explicit Buffer(std::size_t count)
        : data_(static_cast<T *>(hvd_malloc(count * sizeof(T)))), count_(count)
    {
        if (!data_)
            throw std::bad_alloc();
    }
    T *data() noexcept { return data_.get(); }
    const T *data() const noexcept { return data_.get(); }
    std::size_t size() const noexcept { return count_; }
    T &operator[](std::size_t i) { return data_.get()[i]; }
    const T &operator[](std::size_t i) const { return data_.get()[i]; }
    T *begin() noexcept { return data(); }
    T *end() noexcept { return data() + count_; }

private:
    struct Free {
        void operator()(T *memory) const { hvd_free(memory); }
    };
    std::unique_ptr<T, Free> data_;
    std::size_t count_;
};

/* A result whose size only the library knows. */
template <class T> class Output {
public:
    explicit Output(const hvd_tensor &tensor)
        : data_(static_cast<T *>(tensor.data)),
          shape_(tensor.shape, tensor.shape + tensor.ndim)
    {
    }
    const T *data() const noexcept { return data_.get(); }
    const std::vector<std::int64_t> &shape() const noexcept { return shape_; }
    std::size_t size() const
    {
        std::size_t count = 1;
        for (auto extent : shape_)
            count *= static_cast<std::size_t>(extent);
        return count;
    }
    const T &operator[](std::size_t i) const { return data_.get()[i]; }

private:
    struct Free {
        void operator()(T *memory) const { hvd_free(memory); }
    };
    std::unique_ptr<T, Free> data_;
    std::vector<std::int64_t> shape_;
};

/* A request under way. Its buffers must live until wait. A handle that is
 * dropped earlier waits first, and ignores the status. */
class Handle {
public:
    Handle() = default;
    explicit Handle(hvd_handle handle) : handle_(handle) {}
    Handle(Handle &&other) noexcept : handle_(std::exchange(other.handle_, 0)) {}
    Handle &operator=(Handle &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Handle()
    {
        if (handle_)
            hvd_wait(handle_);
    }
    bool poll() const { return check(hvd_poll(handle_)) == 1; }
    /* Waits for at most that long; returns whether the request is done. */
    bool wait_for(std::chrono::nanoseconds limit) const
    {
        return check(hvd_wait_for(handle_, limit.count())) == 1;
    }
    void wait() { check(hvd_wait(std::exchange(handle_, 0))); }

protected:
    hvd_handle handle_ = 0;
};

/* A request under way that has an output. */
template <class T> class OutputHandle : public Handle {
public:
    using Handle::Handle;
    Output<T> get()
    {
        hvd_tensor tensor;
        tensor.size = sizeof tensor;
        check(hvd_wait_output(std::exchange(handle_, 0), &tensor));
        return Output<T>(tensor);
    }
};

/* A process set, which stays until remove. */
class ProcessSet {
public:
    explicit ProcessSet(const std::vector<std::int32_t> &ranks)
        : id_(check(hvd_add_process_set(
              ranks.data(), static_cast<std::int32_t>(ranks.size()))))
    {
    }
    int id() const noexcept { return id_; }
    int rank() const { return check(hvd_process_set_rank(id_)); }
    int size() const { return check(hvd_process_set_size(id_)); }
    bool included() const { return check(hvd_process_set_included(id_)) == 1; }
    void remove() { check(hvd_remove_process_set(id_)); }

private:
    int id_;
};

/* The process set and the priority of an operation: hvd_request's fields of
 * these names. */
struct Options {
    std::int32_t process_set = 0; /* all ranks */
    std::int32_t priority = 0;

    Options() = default;
    Options(const ProcessSet &set, std::int32_t priority = 0)
        : process_set(set.id()), priority(priority)
    {
    }
    static Options urgent(std::int32_t priority)
    {
        Options options;
        options.priority = priority;
        return options;
    }
    bool is_default() const { return process_set == 0 && priority == 0; }
};

/* Submits a request with every option; shape and name must live until
 * submit. */
template <class T>
hvd_request request(hvd_kind kind, const char *name, const T *in, T *out,
                    const std::vector<std::int64_t> &shape)
{
    hvd_request request;
    hvd_request_init(&request, sizeof request);
    request.kind = kind;
    request.name = name;
    request.dtype = dtype_of<T>::value;
    request.input = in;
    request.output = out;
    request.ndim = static_cast<std::int32_t>(shape.size());
    request.shape = shape.data();
    return request;
}

inline Handle submit(const hvd_request &request)
{
    hvd_handle handle;
    check(hvd_submit(&request, &handle));
    return Handle(handle);
}

template <class T> OutputHandle<T> submit_output(const hvd_request &request)
{
    hvd_handle handle;
    check(hvd_submit(&request, &handle));
    return OutputHandle<T>(handle);
}

/* Submits a group, all or nothing. */
inline std::vector<Handle> submit_group(const char *name,
                                        const std::vector<hvd_request> &requests)
{
    std::vector<const hvd_request *> pointers;
    std::vector<hvd_handle> numbers(requests.size());
    std::vector<Handle> handles;

    for (const auto &one : requests)
        pointers.push_back(&one);
    check(hvd_submit_group(name, pointers.data(),
                           static_cast<std::int32_t>(requests.size()),
                           numbers.data()));
    for (auto number : numbers)
        handles.emplace_back(number);
    return handles;
}

namespace detail {

/* Fills a request of one dimension, as the short forms below make it. */
template <class T>
hvd_request fill(hvd_kind kind, const char *name, const T *in, T *out,
                 const std::int64_t *count, const Options &options)
{
    hvd_request request;
    hvd_request_init(&request, sizeof request);
    request.kind = kind;
    request.name = name;
    request.dtype = dtype_of<T>::value;
    request.input = in;
    request.output = out;
    request.ndim = 1;
    request.shape = count;
    request.process_set = options.process_set;
    request.priority = options.priority;
    return request;
}

/* Runs a request whose result belongs in the program's memory: without an
 * output the library would allocate one, and the result would be lost. */
inline void run_into(hvd_request &request, bool is_empty)
{
    char nowhere;
    if (!request.output && !is_empty)
        throw Error(HVD_ERR_ARGUMENT, "the output is NULL");
    if (!request.output)
        request.output = &nowhere;
    submit(request).wait();
}

/* Runs a gather or an alltoall to which all ranks give the same count; plain is
 * the call without options. */
template <class T>
void run_even(hvd_kind kind,
              int (*plain)(const void *, void *, std::int64_t, hvd_dtype),
              const T *in, T *out, std::int64_t count, const Options &options)
{
    if (options.is_default()) {
        check(plain(in, out, count, dtype_of<T>::value));
        return;
    }
    auto request = fill(kind, nullptr, in, out, &count, options);
    run_into(request, count == 0);
}

/* Runs a request in which each rank has its own number of rows, and out holds
 * capacity elements. Without a capacity all ranks would have the same
 * number. */
template <class T>
void run_varying(hvd_request &request, T *out, std::int64_t capacity)
{
    T nowhere;
    hvd_handle handle;
    hvd_tensor tensor;

    if (capacity > 0 && !out)
        throw Error(HVD_ERR_ARGUMENT, "the output is NULL");
    request.output = capacity > 0 ? out : &nowhere;
    request.capacity = capacity > 0 ? capacity : 1;
    check(hvd_submit(&request, &handle));
    tensor.size = sizeof tensor;
    check(hvd_wait_output(handle, &tensor));
    if (tensor.shape[0] > capacity)
        throw Error(HVD_ERR_ARGUMENT, "the output has room for no element");
}

} // namespace detail

template <class T>
void allreduce(const T *in, T *out, std::int64_t count, hvd_op op = average,
               const Options &options = {})
{
    if (options.is_default()) {
        check(hvd_allreduce(in, out, count, dtype_of<T>::value, op));
        return;
    }
    auto request =
        detail::fill(HVD_ALLREDUCE, nullptr, in, out, &count, options);
    request.op = op;
    submit(request).wait();
}

template <class T>
Handle allreduce_async(const char *name, const T *in, T *out,
                       std::int64_t count, hvd_op op = average,
                       const Options &options = {})
{
    auto request = detail::fill(HVD_ALLREDUCE, name, in, out, &count, options);
    request.op = op;
    return submit(request);
}

/* root, here and below, is a rank of the world, on a process set too. */
template <class T>
void broadcast(T *buffer, std::int64_t count, int root,
               const Options &options = {})
{
    if (options.is_default()) {
        check(hvd_broadcast(buffer, count, dtype_of<T>::value, root));
        return;
    }
    auto request = detail::fill<T>(HVD_BROADCAST, nullptr, nullptr, buffer,
                                   &count, options);
    request.root = root;
    submit(request).wait();
}

template <class T>
Handle broadcast_async(const char *name, T *buffer, std::int64_t count,
                       int root, const Options &options = {})
{
    auto request = detail::fill<T>(HVD_BROADCAST, name, nullptr, buffer,
                                   &count, options);
    request.root = root;
    return submit(request);
}

template <class T>
void allgather(const T *in, T *out, std::int64_t count,
               const Options &options = {})
{
    detail::run_even(HVD_ALLGATHER, hvd_allgather, in, out, count, options);
}

/* counts has one element for each rank of the process set. */
template <class T>
void allgatherv(const T *in, std::int64_t count, T *out, std::int64_t capacity,
                std::int64_t *counts, const Options &options = {})
{
    if (options.is_default()) {
        check(hvd_allgatherv(in, count, out, capacity, counts,
                             dtype_of<T>::value));
        return;
    }
    auto request =
        detail::fill(HVD_ALLGATHER, nullptr, in, out, &count, options);
    request.counts = counts;
    detail::run_varying(request, out, capacity);
}

template <class T>
OutputHandle<T> allgather_async(const char *name, const T *in,
                                std::int64_t count,
                                const Options &options = {})
{
    return submit_output<T>(detail::fill<T>(HVD_ALLGATHER, name, in, nullptr,
                                            &count, options));
}

template <class T>
void gather(const T *in, T *out, std::int64_t count, int root,
            const Options &options = {})
{
    if (options.is_default()) {
        check(hvd_gather(in, out, count, dtype_of<T>::value, root));
        return;
    }
    auto request = detail::fill(HVD_GATHER, nullptr, in, out, &count, options);
    request.root = root;
    detail::run_into(request, count == 0 || rank() != root);
}

template <class T>
void reduce(const T *in, T *out, std::int64_t count, hvd_op op, int root,
            const Options &options = {})
{
    if (options.is_default()) {
        check(hvd_reduce(in, out, count, dtype_of<T>::value, op, root));
        return;
    }
    auto request = detail::fill(HVD_REDUCE, nullptr, in, out, &count, options);
    request.op = op;
    request.root = root;
    submit(request).wait();
}

template <class T>
void reducescatter(const T *in, T *out, std::int64_t count,
                   hvd_op op = average, const Options &options = {})
{
    if (options.is_default()) {
        check(hvd_reducescatter(in, out, count, dtype_of<T>::value, op));
        return;
    }
    auto request =
        detail::fill(HVD_REDUCESCATTER, nullptr, in, out, &count, options);
    request.op = op;
    detail::run_into(request, count <= check(hvd_process_set_rank(
                                           options.process_set)));
}

template <class T>
OutputHandle<T> reducescatter_async(const char *name, const T *in,
                                    std::int64_t count, hvd_op op = average,
                                    const Options &options = {})
{
    auto request = detail::fill<T>(HVD_REDUCESCATTER, name, in, nullptr,
                                   &count, options);
    request.op = op;
    return submit_output<T>(request);
}

template <class T>
void alltoall(const T *in, T *out, std::int64_t count,
              const Options &options = {})
{
    detail::run_even(HVD_ALLTOALL, hvd_alltoall, in, out, count, options);
}

/* splits and counts have one element for each rank of the process set. */
template <class T>
void alltoallv(const T *in, const std::int64_t *splits, T *out,
               std::int64_t capacity, std::int64_t *counts,
               const Options &options = {})
{
    if (options.is_default()) {
        check(hvd_alltoallv(in, splits, out, capacity, counts,
                            dtype_of<T>::value));
        return;
    }
    int members = check(hvd_process_set_size(options.process_set));
    std::int64_t count = 0;
    for (int i = 0; i < members; i++)
        count += splits[i];
    auto request =
        detail::fill(HVD_ALLTOALL, nullptr, in, out, &count, options);
    request.splits = splits;
    request.counts = counts;
    detail::run_varying(request, out, capacity);
}

template <class T>
OutputHandle<T> alltoall_async(const char *name, const T *in,
                               std::int64_t count,
                               const std::int64_t *splits = nullptr,
                               const Options &options = {})
{
    auto request = detail::fill<T>(HVD_ALLTOALL, name, in, nullptr, &count,
                                   options);
    request.splits = splits;
    return submit_output<T>(request);
}

/* The indices and rows of all ranks; rows of one index are to be added up. */
template <class T>
std::pair<Output<std::int64_t>, Output<T>>
sparse_allreduce(const char *name, const std::int64_t *indices, const T *rows,
                 std::int64_t n, std::int64_t width, hvd_op op = average)
{
    hvd_handle handles[2];
    check(hvd_sparse_allreduce_async(name, indices, rows, n, width,
                                     dtype_of<T>::value, op, handles));
    auto first = OutputHandle<std::int64_t>(handles[0]).get();
    return {std::move(first), OutputHandle<T>(handles[1]).get()};
}

inline void barrier(const Options &options = {})
{
    hvd_request request;
    hvd_request_init(&request, sizeof request);
    request.kind = HVD_BARRIER;
    request.process_set = options.process_set;
    request.priority = options.priority;
    submit(request).wait();
}

/* ------------------------------------------------------ hvd_elastic.h */

/* Adds a piece to the state of the training. memory is borrowed until
 * state_unregister. */
template <class T>
void state_register(const std::string &name, T *memory, std::size_t count,
                    bool per_rank = false)
{
    static_assert(std::is_trivially_copyable<T>::value,
                  "a piece of the state is copied by its bytes");
    check(hvd_state_register(name.c_str(), memory, count * sizeof(T),
                                    per_rank ? HVD_STATE_PER_RANK : 0));
}

inline void state_unregister(const std::string &name)
{
    check(hvd_state_unregister(name.c_str()));
}

inline void state_sync(int root = 0)
{
    check(hvd_state_sync(root));
}

/* Returns true if processes have been let in. */
inline bool commit()
{
    return check(hvd_commit()) > 0;
}

inline void commit_start()
{
    check(hvd_commit_start());
}

inline void commit_wait()
{
    check(hvd_commit_wait());
}

/* Returns whether there is a commit. */
inline bool restore()
{
    return check(hvd_restore()) > 0;
}

/* Asks for a rank to be left out of the next world. */
inline void exclude(int rank)
{
    check(hvd_exclude(rank));
}

/* Has spares wait for the end of the job. */
inline void dismiss_spares()
{
    check(hvd_dismiss_spares());
}

/* Calls a function about ranks that keep the others waiting, in commits, as long
 * as it lives. An exception of the function ends the program. */
class StragglerListener {
public:
    explicit StragglerListener(
        std::function<void(const hvd_straggler &)> function)
        : function_(std::move(function))
    {
        check(hvd_on_straggler(call, this));
    }
    StragglerListener(const StragglerListener &) = delete;
    StragglerListener &operator=(const StragglerListener &) = delete;
    ~StragglerListener() { hvd_off_straggler(call, this); }

private:
    static void call(void *self, const hvd_straggler *straggler) noexcept
    {
        static_cast<StragglerListener *>(self)->function_(*straggler);
    }
    std::function<void(const hvd_straggler &)> function_;
};

/* Returns the rank that joined last. */
inline int join(const Options &options = {})
{
    std::int32_t last = -1;
    hvd_request request;
    hvd_request_init(&request, sizeof request);
    request.kind = HVD_JOIN;
    request.output = &last;
    request.process_set = options.process_set;
    submit(request).wait();
    return last;
}

/*
 * Variables that are the same on all ranks, their gradients averaged as they
 * become ready, and an optimizer that is applied to the averages:
 * hvd_strategy.h. If an exception destroys it, this rank abandons the step, so
 * that the others are told instead of waiting.
 */
class Strategy {
public:
    /* Returns the defaults, to be changed and given to the constructor. */
    static hvd_strategy_options options()
    {
        hvd_strategy_options options;
        hvd_strategy_options_init(&options, sizeof options);
        return options;
    }
    explicit Strategy(const hvd_strategy_options &options = Strategy::options())
        : exceptions_(std::uncaught_exceptions())
    {
        check_status(hvd_strategy_new(&options, &strategy_));
    }
    Strategy(Strategy &&other) noexcept
        : strategy_(std::exchange(other.strategy_, nullptr)),
          exceptions_(other.exceptions_)
    {
    }
    Strategy &operator=(Strategy &&) = delete;
    ~Strategy()
    {
        if (strategy_ && std::uncaught_exceptions() > exceptions_)
            hvd_strategy_abandon(strategy_, "an exception");
        hvd_strategy_free(strategy_);
    }

    /* Returns the number of the variable, whose value is borrowed. */
    int add(const std::string &name, float *value,
            const std::vector<std::int64_t> &shape)
    {
        return check_status(
            hvd_strategy_add(strategy_, name.c_str(), value,
                             static_cast<std::int32_t>(shape.size()),
                             shape.data()));
    }
    /* Returns the number of the sparse variable, [rows, width], whose value is
     * borrowed. */
    int add_sparse(const std::string &name, float *value, std::int64_t rows,
                   std::int64_t width)
    {
        return check_status(hvd_strategy_add_sparse(strategy_, name.c_str(),
                                                    value, rows, width));
    }
    /* Returns the number of the statistic; value and mean are borrowed. */
    int add_statistic(const std::string &name, float *value, float *mean,
                      const std::vector<std::int64_t> &shape)
    {
        return check_status(
            hvd_strategy_add_statistic(strategy_, name.c_str(), value, mean,
                                       static_cast<std::int32_t>(shape.size()),
                                       shape.data()));
    }
    void read_statistics()
    {
        check_status(hvd_strategy_read_statistics(strategy_));
    }
    void start() { check_status(hvd_strategy_start(strategy_)); }
    float *gradient(int variable)
    {
        float *gradient = hvd_strategy_gradient(strategy_, variable);
        if (!gradient)
            throw Error(HVD_ERR_ARGUMENT);
        return gradient;
    }
    void ready(int variable)
    {
        check_status(hvd_strategy_ready(strategy_, variable));
    }
    /* Hands over n rows of a sparse variable; both arrays are copied. */
    void ready_rows(int variable, const std::int64_t *indices,
                    const float *rows, std::int64_t n, std::int64_t width)
    {
        check_status(hvd_strategy_ready_rows(strategy_, variable, indices,
                                             rows, n, width));
    }
    /* Gets rows of a sparse variable from the parameter servers. */
    void read_rows(int variable, const std::int64_t *indices, std::int64_t n)
    {
        check_status(hvd_strategy_read_rows(strategy_, variable, indices, n));
    }
    void step() { check_status(hvd_strategy_step(strategy_)); }
    void check() { check_status(hvd_strategy_check(strategy_)); }
    /* Says that this rank has no more data: all ranks get what the rank that
     * joins last has, which is returned. */
    int join()
    {
        int last;
        check_status(hvd_strategy_join(strategy_, &last));
        return last;
    }
    void save(const std::string &path)
    {
        check_status(hvd_strategy_save(strategy_, path.c_str()));
    }
    /* Returns false if the file is of another optimizer; then the state begins
     * anew. */
    bool load(const std::string &path)
    {
        return check_status(hvd_strategy_load(strategy_, path.c_str())) == 1;
    }
    /* Describes the tensors of the optimizer's state, by number. */
    std::vector<hvd_strategy_tensor> state() const
    {
        std::vector<hvd_strategy_tensor> tensors(static_cast<std::size_t>(
            check_status(hvd_strategy_state_count(strategy_))));
        for (std::size_t i = 0; i < tensors.size(); i++) {
            tensors[i].size = sizeof tensors[i];
            check_status(hvd_strategy_state_info(
                strategy_, static_cast<std::int32_t>(i), &tensors[i]));
        }
        return tensors;
    }
    /* Copies the state to the places, one for each tensor; a null one is not
     * wanted. */
    void read_state(const std::vector<void *> &places)
    {
        if (places.size() != state().size())
            throw Error(HVD_ERR_ARGUMENT,
                        "there are not as many places as tensors");
        check_status(hvd_strategy_read_state(strategy_, places.data()));
    }
    /* Has all ranks go on from rank 0's variables and rank 0's tensors, one for
     * each of state(); without them the optimizer begins anew. */
    void write_state(std::vector<const void *> tensors = {})
    {
        const bool anew = tensors.empty();
        const std::size_t count = state().size();

        /* Where their number is wrong all of them are missing, which fails on
         * all ranks. */
        if (tensors.size() != count)
            tensors.assign(count, nullptr);
        check_status(hvd_strategy_write_state(
            strategy_, anew ? nullptr : tensors.data()));
    }
    void set_learning_rate(double rate)
    {
        check_status(hvd_strategy_set_learning_rate(strategy_, rate));
    }
    void set_momentum(double momentum)
    {
        check_status(hvd_strategy_set_momentum(strategy_, momentum));
    }
    hvd_strategy_stats stats() const
    {
        hvd_strategy_stats stats{};
        stats.size = sizeof stats;
        check_status(hvd_strategy_get_stats(strategy_, &stats));
        return stats;
    }

private:
    static int check_status(int status) { return hvd::check(status); }

    hvd_strategy *strategy_ = nullptr;
    int exceptions_; /* exceptions under way when it was made */
};

/* Which tasks train together, where they are, and which of them this process is:
 * hvd_cluster.h. */
class Cluster {
public:
    struct Task {
        hvd_role role;
        std::int32_t index;
    };
    Cluster() { check(hvd_cluster_new(&cluster_)); }
    /* Read the value of a TF_CONFIG. flags: 0 or HVD_CLUSTER_NO_TASK. */
    static Cluster parse(const std::string &text, std::int32_t flags = 0)
    {
        hvd_cluster *cluster;
        check(hvd_cluster_parse(text.data(),
                                static_cast<std::int64_t>(text.size()), flags,
                                &cluster));
        return Cluster(cluster);
    }
    static Cluster load(const std::string &path, std::int32_t flags = 0)
    {
        hvd_cluster *cluster;
        check(hvd_cluster_load(path.c_str(), flags, &cluster));
        return Cluster(cluster);
    }
    /* Returns nothing if TF_CONFIG is not set. */
    static std::optional<Cluster> from_environment()
    {
        hvd_cluster *cluster;
        if (check(hvd_cluster_from_environment(&cluster)) == 0)
            return std::nullopt;
        return Cluster(cluster);
    }
    Cluster(Cluster &&other) noexcept
        : cluster_(std::exchange(other.cluster_, nullptr))
    {
    }
    Cluster &operator=(Cluster &&other) noexcept
    {
        std::swap(cluster_, other.cluster_);
        return *this;
    }
    ~Cluster() { hvd_cluster_free(cluster_); }

    /* Returns the index of the new task. */
    int add(hvd_role role, const std::string &address)
    {
        return check(hvd_cluster_add(cluster_, role, address.c_str()));
    }
    void set_task(Task task)
    {
        check(hvd_cluster_set_task(cluster_, task.role, task.index));
    }
    int count(hvd_role role) const
    {
        return check(hvd_cluster_count(cluster_, role));
    }
    std::string address(Task task) const
    {
        const char *address =
            hvd_cluster_address(cluster_, task.role, task.index);
        if (!address)
            throw Error(HVD_ERR_ARGUMENT);
        return address;
    }
    Task task() const
    {
        Task task;
        check(hvd_cluster_task(cluster_, &task.role, &task.index));
        return task;
    }
    int size() const { return check(hvd_cluster_size(cluster_)); }
    int rank() const { return check(hvd_cluster_rank(cluster_)); }
    int rank(Task task) const
    {
        return check(hvd_cluster_rank_of(cluster_, task.role, task.index));
    }
    Task task(int rank) const
    {
        Task task;
        check(hvd_cluster_task_of(cluster_, rank, &task.role, &task.index));
        return task;
    }
    bool is_chief() const { return check(hvd_cluster_is_chief(cluster_)) == 1; }
    int rank_servers() { return check(hvd_cluster_rank_servers(cluster_)); }
    void check_allreduce() const
    {
        check(hvd_cluster_check_allreduce(cluster_));
    }
    /* Returns the text that all tasks share. */
    std::string text() const
    {
        return text_of([this](char *text, std::int64_t size) {
            return hvd_cluster_text(cluster_, text, size);
        });
    }
    /* Returns the TF_CONFIG of a task. */
    std::string tf_config(Task task) const
    {
        return text_of([this, task](char *text, std::int64_t size) {
            return hvd_cluster_tf_config(cluster_, task.role, task.index, text,
                                         size);
        });
    }
    std::uint64_t fingerprint() const
    {
        std::uint64_t fingerprint;
        check(hvd_cluster_fingerprint(cluster_, &fingerprint));
        return fingerprint;
    }
    /* Returns what C's functions take, borrowed. */
    const hvd_cluster *get() const noexcept { return cluster_; }

private:
    explicit Cluster(hvd_cluster *cluster) : cluster_(cluster) {}
    template <class Write> static std::string text_of(Write write)
    {
        std::string text(static_cast<std::size_t>(check(write(nullptr, 0))),
                         '\0');
        write(text.data(), static_cast<std::int64_t>(text.size()) + 1);
        return text;
    }

    hvd_cluster *cluster_ = nullptr;
};

inline World::World(const Cluster &cluster)
{
    check(hvd_init_cluster(cluster.get()));
}

} // namespace hvd

#endif
