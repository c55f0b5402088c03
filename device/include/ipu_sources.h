/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_sources.h - each builder tells where it is called: failures and reports
 * then name the line. ipu.h includes it, unless IPU_NO_SOURCES is defined,
 * after all that declares a builder.
 */
#ifndef IPU_H
#include "ipu.h"
#elif !defined(IPU_SOURCES_H)
#define IPU_SOURCES_H

#define IPU_HERE(graph) ipu_at(graph, __FILE__, __LINE__)
#define ipu_map(graph, ...) ipu_map(IPU_HERE(graph), __VA_ARGS__)
#define ipu_available_memory_proportion(graph, ...)                            \
    ipu_available_memory_proportion(IPU_HERE(graph), __VA_ARGS__)
#define ipu_input(graph, ...) ipu_input(IPU_HERE(graph), __VA_ARGS__)
#define ipu_variable(graph, ...) ipu_variable(IPU_HERE(graph), __VA_ARGS__)
#define ipu_conv2d(graph, ...) ipu_conv2d(IPU_HERE(graph), __VA_ARGS__)
#define ipu_max_pool2d(graph, ...) ipu_max_pool2d(IPU_HERE(graph), __VA_ARGS__)
#define ipu_avg_pool2d(graph, ...) ipu_avg_pool2d(IPU_HERE(graph), __VA_ARGS__)
#define ipu_max_pool2d_with(graph, ...)                                        \
    ipu_max_pool2d_with(IPU_HERE(graph), __VA_ARGS__)
#define ipu_avg_pool2d_with(graph, ...)                                        \
    ipu_avg_pool2d_with(IPU_HERE(graph), __VA_ARGS__)
#define ipu_matmul(graph, ...) ipu_matmul(IPU_HERE(graph), __VA_ARGS__)
#define ipu_batch_matmul(graph, ...)                                           \
    ipu_batch_matmul(IPU_HERE(graph), __VA_ARGS__)
#define ipu_attention(graph, ...) ipu_attention(IPU_HERE(graph), __VA_ARGS__)
#define ipu_bias_add(graph, ...) ipu_bias_add(IPU_HERE(graph), __VA_ARGS__)
#define ipu_relu(graph, ...) ipu_relu(IPU_HERE(graph), __VA_ARGS__)
#define ipu_reshape(graph, ...) ipu_reshape(IPU_HERE(graph), __VA_ARGS__)
#define ipu_transpose(graph, ...) ipu_transpose(IPU_HERE(graph), __VA_ARGS__)
#define ipu_slice(graph, ...) ipu_slice(IPU_HERE(graph), __VA_ARGS__)
#define ipu_pad(graph, ...) ipu_pad(IPU_HERE(graph), __VA_ARGS__)
#define ipu_concat(graph, ...) ipu_concat(IPU_HERE(graph), __VA_ARGS__)
#define ipu_softmax(graph, ...) ipu_softmax(IPU_HERE(graph), __VA_ARGS__)
#define ipu_log_softmax(graph, ...)                                            \
    ipu_log_softmax(IPU_HERE(graph), __VA_ARGS__)
#define ipu_softmax_cross_entropy(graph, ...)                                  \
    ipu_softmax_cross_entropy(IPU_HERE(graph), __VA_ARGS__)
#define ipu_mean_squared_error(graph, ...)                                     \
    ipu_mean_squared_error(IPU_HERE(graph), __VA_ARGS__)
#define ipu_layer_norm(graph, ...) ipu_layer_norm(IPU_HERE(graph), __VA_ARGS__)
#define ipu_group_norm(graph, ...) ipu_group_norm(IPU_HERE(graph), __VA_ARGS__)
#define ipu_batch_norm(graph, ...) ipu_batch_norm(IPU_HERE(graph), __VA_ARGS__)
#define ipu_synchronised_batch_norm(graph, ...)                                \
    ipu_synchronised_batch_norm(IPU_HERE(graph), __VA_ARGS__)
#define ipu_batch_norm_inference(graph, ...)                                   \
    ipu_batch_norm_inference(IPU_HERE(graph), __VA_ARGS__)
#define ipu_gather(graph, ...) ipu_gather(IPU_HERE(graph), __VA_ARGS__)
#define ipu_embedding(graph, ...) ipu_embedding(IPU_HERE(graph), __VA_ARGS__)
#define ipu_scatter_add(graph, ...)                                            \
    ipu_scatter_add(IPU_HERE(graph), __VA_ARGS__)
#define ipu_scatter(graph, ...) ipu_scatter(IPU_HERE(graph), __VA_ARGS__)
#define ipu_dynamic_update(graph, ...)                                         \
    ipu_dynamic_update(IPU_HERE(graph), __VA_ARGS__)
#define ipu_argmax(graph, ...) ipu_argmax(IPU_HERE(graph), __VA_ARGS__)
#define ipu_one_hot(graph, ...) ipu_one_hot(IPU_HERE(graph), __VA_ARGS__)
#define ipu_cast(graph, ...) ipu_cast(IPU_HERE(graph), __VA_ARGS__)
#define ipu_constant(graph, ...) ipu_constant(IPU_HERE(graph), __VA_ARGS__)
#define ipu_fill(graph, ...) ipu_fill(IPU_HERE(graph), __VA_ARGS__)
#define ipu_counter(graph, ...) ipu_counter(IPU_HERE(graph), __VA_ARGS__)
#define ipu_dropout(graph, ...) ipu_dropout(IPU_HERE(graph), __VA_ARGS__)
#define ipu_random_uniform(graph, ...)                                         \
    ipu_random_uniform(IPU_HERE(graph), __VA_ARGS__)
#define ipu_random_normal(graph, ...)                                          \
    ipu_random_normal(IPU_HERE(graph), __VA_ARGS__)
#define ipu_reduce_sum(graph, ...) ipu_reduce_sum(IPU_HERE(graph), __VA_ARGS__)
#define ipu_add(graph, ...) ipu_add(IPU_HERE(graph), __VA_ARGS__)
#define ipu_subtract(graph, ...) ipu_subtract(IPU_HERE(graph), __VA_ARGS__)
#define ipu_multiply(graph, ...) ipu_multiply(IPU_HERE(graph), __VA_ARGS__)
#define ipu_divide(graph, ...) ipu_divide(IPU_HERE(graph), __VA_ARGS__)
#define ipu_maximum(graph, ...) ipu_maximum(IPU_HERE(graph), __VA_ARGS__)
#define ipu_minimum(graph, ...) ipu_minimum(IPU_HERE(graph), __VA_ARGS__)
#define ipu_power(graph, ...) ipu_power(IPU_HERE(graph), __VA_ARGS__)
#define ipu_equal(graph, ...) ipu_equal(IPU_HERE(graph), __VA_ARGS__)
#define ipu_not_equal(graph, ...) ipu_not_equal(IPU_HERE(graph), __VA_ARGS__)
#define ipu_less(graph, ...) ipu_less(IPU_HERE(graph), __VA_ARGS__)
#define ipu_less_equal(graph, ...) ipu_less_equal(IPU_HERE(graph), __VA_ARGS__)
#define ipu_greater(graph, ...) ipu_greater(IPU_HERE(graph), __VA_ARGS__)
#define ipu_greater_equal(graph, ...)                                          \
    ipu_greater_equal(IPU_HERE(graph), __VA_ARGS__)
#define ipu_select(graph, ...) ipu_select(IPU_HERE(graph), __VA_ARGS__)
#define ipu_broadcast(graph, ...) ipu_broadcast(IPU_HERE(graph), __VA_ARGS__)
#define ipu_negate(graph, ...) ipu_negate(IPU_HERE(graph), __VA_ARGS__)
#define ipu_abs(graph, ...) ipu_abs(IPU_HERE(graph), __VA_ARGS__)
#define ipu_square(graph, ...) ipu_square(IPU_HERE(graph), __VA_ARGS__)
#define ipu_exp(graph, ...) ipu_exp(IPU_HERE(graph), __VA_ARGS__)
#define ipu_log(graph, ...) ipu_log(IPU_HERE(graph), __VA_ARGS__)
#define ipu_sqrt(graph, ...) ipu_sqrt(IPU_HERE(graph), __VA_ARGS__)
#define ipu_rsqrt(graph, ...) ipu_rsqrt(IPU_HERE(graph), __VA_ARGS__)
#define ipu_scale(graph, ...) ipu_scale(IPU_HERE(graph), __VA_ARGS__)
#define ipu_tanh(graph, ...) ipu_tanh(IPU_HERE(graph), __VA_ARGS__)
#define ipu_sigmoid(graph, ...) ipu_sigmoid(IPU_HERE(graph), __VA_ARGS__)
#define ipu_gelu(graph, ...) ipu_gelu(IPU_HERE(graph), __VA_ARGS__)
#define ipu_gelu_tanh(graph, ...) ipu_gelu_tanh(IPU_HERE(graph), __VA_ARGS__)
#define ipu_silu(graph, ...) ipu_silu(IPU_HERE(graph), __VA_ARGS__)
#define ipu_sum(graph, ...) ipu_sum(IPU_HERE(graph), __VA_ARGS__)
#define ipu_mean(graph, ...) ipu_mean(IPU_HERE(graph), __VA_ARGS__)
#define ipu_max(graph, ...) ipu_max(IPU_HERE(graph), __VA_ARGS__)
#define ipu_gradients(graph, ...) ipu_gradients(IPU_HERE(graph), __VA_ARGS__)
#define ipu_assign(graph, ...) ipu_assign(IPU_HERE(graph), __VA_ARGS__)
#define ipu_output(graph, ...) ipu_output(IPU_HERE(graph), __VA_ARGS__)
#define ipu_host_call(graph, ...) ipu_host_call(IPU_HERE(graph), __VA_ARGS__)
#define ipu_infeed_dequeue(graph, ...)                                         \
    ipu_infeed_dequeue(IPU_HERE(graph), __VA_ARGS__)
#define ipu_outfeed_enqueue(graph, ...)                                        \
    ipu_outfeed_enqueue(IPU_HERE(graph), __VA_ARGS__)
#define ipu_repeat(graph, ...) ipu_repeat(IPU_HERE(graph), __VA_ARGS__)
#define ipu_while(graph, ...) ipu_while(IPU_HERE(graph), __VA_ARGS__)
#define ipu_remote_buffer_new(graph, ...)                                      \
    ipu_remote_buffer_new(IPU_HERE(graph), __VA_ARGS__)
#define ipu_remote_load(graph, ...)                                            \
    ipu_remote_load(IPU_HERE(graph), __VA_ARGS__)
#define ipu_remote_store(graph, ...)                                           \
    ipu_remote_store(IPU_HERE(graph), __VA_ARGS__)
#define ipu_host_receive(graph, ...)                                           \
    ipu_host_receive(IPU_HERE(graph), __VA_ARGS__)
#define ipu_sgd(graph, ...) ipu_sgd(IPU_HERE(graph), __VA_ARGS__)
#define ipu_adam(graph, ...) ipu_adam(IPU_HERE(graph), __VA_ARGS__)
#define ipu_adamw(graph, ...) ipu_adamw(IPU_HERE(graph), __VA_ARGS__)
#define ipu_cross_replica_sum(graph, ...)                                      \
    ipu_cross_replica_sum(IPU_HERE(graph), __VA_ARGS__)
#define ipu_cross_replica_mean(graph, ...)                                     \
    ipu_cross_replica_mean(IPU_HERE(graph), __VA_ARGS__)
#define ipu_cross_replica_gradients(graph, ...)                                \
    ipu_cross_replica_gradients(IPU_HERE(graph), __VA_ARGS__)
#define ipu_collective_mean(graph, ...)                                        \
    ipu_collective_mean(IPU_HERE(graph), __VA_ARGS__)
#define ipu_collective_sum(graph, ...)                                         \
    ipu_collective_sum(IPU_HERE(graph), __VA_ARGS__)
#define ipu_collective_broadcast(graph, ...)                                   \
    ipu_collective_broadcast(IPU_HERE(graph), __VA_ARGS__)
#define ipu_collective_gather(graph, ...)                                      \
    ipu_collective_gather(IPU_HERE(graph), __VA_ARGS__)
#define ipu_collective_all_to_all(graph, ...)                                  \
    ipu_collective_all_to_all(IPU_HERE(graph), __VA_ARGS__)
#define ipu_collective_batch_norm(graph, ...)                                  \
    ipu_collective_batch_norm(IPU_HERE(graph), __VA_ARGS__)
#define ipu_collective_gradients(graph, ...)                                   \
    ipu_collective_gradients(IPU_HERE(graph), __VA_ARGS__)
#define ipu_replica_index(graph) ipu_replica_index(IPU_HERE(graph))
#define ipu_lamb(graph, ...) ipu_lamb(IPU_HERE(graph), __VA_ARGS__)
#define ipu_rmsprop(graph, ...) ipu_rmsprop(IPU_HERE(graph), __VA_ARGS__)
#define ipu_adagrad(graph, ...) ipu_adagrad(IPU_HERE(graph), __VA_ARGS__)
#define ipu_adadelta(graph, ...) ipu_adadelta(IPU_HERE(graph), __VA_ARGS__)
#define ipu_lion(graph, ...) ipu_lion(IPU_HERE(graph), __VA_ARGS__)
#define ipu_lars(graph, ...) ipu_lars(IPU_HERE(graph), __VA_ARGS__)

#endif
