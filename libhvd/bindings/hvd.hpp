/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd.hpp - hvd for C++17, header only: the element type chooses the dtype,
 * failures are exceptions, what is begun is ended.
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
 */
#ifndef HVD_HPP
#define HVD_HPP

#include <hvd.h>
#include <hvd_strategy.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace hvd {

/* A status below 0, with the library's text. */
class Error : public std::runtime_error {
public:
    explicit Error(int status)
        : std::runtime_error(hvd_last_error()), status_(status)
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

/* 16-bit floats as bits: C++17 has no such types. */
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

/* hvd_init, and hvd_shutdown at the end of its scope. */
class World {
public:
    World() { check(hvd_init()); }
    /* Of some of the ranks that mpirun started. */
    static World of(const std::vector<std::int32_t> &ranks)
    {
        check(hvd_init_ranks(ranks.data(),
                             static_cast<std::int32_t>(ranks.size())));
        return World(); /* which finds it initialised */
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

/* A result whose size only the library knew. */
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

/* A request under way. Its buffers must live until wait; a handle that is
 * dropped before waits first, and ignores how it ended. */
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
    void wait() { check(hvd_wait(std::exchange(handle_, 0))); }

protected:
    hvd_handle handle_ = 0;
};

/* ... that has an output. */
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

/* A request with every option; shape and name must live until submit. */
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

/* All or nothing. */
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

template <class T>
void allreduce(const T *in, T *out, std::int64_t count, hvd_op op = average)
{
    check(hvd_allreduce(in, out, count, dtype_of<T>::value, op));
}

template <class T>
Handle allreduce_async(const char *name, const T *in, T *out,
                       std::int64_t count, hvd_op op = average)
{
    hvd_handle handle;
    check(hvd_allreduce_async(name, in, out, count, dtype_of<T>::value, op,
                              &handle));
    return Handle(handle);
}

template <class T> void broadcast(T *buffer, std::int64_t count, int root)
{
    check(hvd_broadcast(buffer, count, dtype_of<T>::value, root));
}

template <class T>
Handle broadcast_async(const char *name, T *buffer, std::int64_t count,
                       int root)
{
    hvd_handle handle;
    check(hvd_broadcast_async(name, buffer, count, dtype_of<T>::value, root,
                              &handle));
    return Handle(handle);
}

template <class T> void allgather(const T *in, T *out, std::int64_t count)
{
    check(hvd_allgather(in, out, count, dtype_of<T>::value));
}

template <class T>
void allgatherv(const T *in, std::int64_t count, T *out, std::int64_t capacity,
                std::int64_t *counts)
{
    check(hvd_allgatherv(in, count, out, capacity, counts,
                         dtype_of<T>::value));
}

template <class T>
OutputHandle<T> allgather_async(const char *name, const T *in,
                                std::int64_t count)
{
    hvd_handle handle;
    check(hvd_allgather_async(name, in, count, dtype_of<T>::value, &handle));
    return OutputHandle<T>(handle);
}

template <class T>
void gather(const T *in, T *out, std::int64_t count, int root)
{
    check(hvd_gather(in, out, count, dtype_of<T>::value, root));
}

template <class T>
void reduce(const T *in, T *out, std::int64_t count, hvd_op op, int root)
{
    check(hvd_reduce(in, out, count, dtype_of<T>::value, op, root));
}

template <class T>
void reducescatter(const T *in, T *out, std::int64_t count, hvd_op op)
{
    check(hvd_reducescatter(in, out, count, dtype_of<T>::value, op));
}

template <class T>
OutputHandle<T> reducescatter_async(const char *name, const T *in,
                                    std::int64_t count, hvd_op op)
{
    hvd_handle handle;
    check(hvd_reducescatter_async(name, in, count, dtype_of<T>::value, op,
                                  &handle));
    return OutputHandle<T>(handle);
}

template <class T> void alltoall(const T *in, T *out, std::int64_t count)
{
    check(hvd_alltoall(in, out, count, dtype_of<T>::value));
}

template <class T>
void alltoallv(const T *in, const std::int64_t *splits, T *out,
               std::int64_t capacity, std::int64_t *counts)
{
    check(hvd_alltoallv(in, splits, out, capacity, counts,
                        dtype_of<T>::value));
}

template <class T>
OutputHandle<T> alltoall_async(const char *name, const T *in,
                               std::int64_t count,
                               const std::int64_t *splits = nullptr)
{
    hvd_handle handle;
    check(hvd_alltoall_async(name, in, count, splits, dtype_of<T>::value,
                             &handle));
    return OutputHandle<T>(handle);
}

/* Indices and rows of all ranks; those of one index are to be added up. */
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

inline void barrier() { check(hvd_barrier()); }

/* The rank that joined last. */
inline int join()
{
    int last;
    check(hvd_join(&last));
    return last;
}

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

/*
 * Variables that are the same on all ranks, their gradients averaged as they
 * become ready, an optimizer that is applied to the averages: hvd_strategy.h.
 * If it goes because of an exception, this rank abandons the step, so that the
 * others are told instead of waiting.
 */
class Strategy {
public:
    /* The defaults, to be changed and given to the constructor. */
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

    /* The number of the variable, whose value is borrowed. */
    int add(const std::string &name, float *value,
            const std::vector<std::int64_t> &shape)
    {
        return check_status(
            hvd_strategy_add(strategy_, name.c_str(), value,
                             static_cast<std::int32_t>(shape.size()),
                             shape.data()));
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
    void step() { check_status(hvd_strategy_step(strategy_)); }
    void check() { check_status(hvd_strategy_check(strategy_)); }
    /* No more data here: all ranks get what the rank that joins last has, which
     * is returned. */
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
    /* false: of another optimizer, whose state has begun anew. */
    bool load(const std::string &path)
    {
        return check_status(hvd_strategy_load(strategy_, path.c_str())) == 1;
    }
    void set_learning_rate(double rate)
    {
        check_status(hvd_strategy_set_learning_rate(strategy_, rate));
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
    int exceptions_; /* under way when it was made */
};

} // namespace hvd

#endif
