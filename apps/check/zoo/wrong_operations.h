// Chapter 6. The bug zoo, operations: classic mistakes, each in the smallest wrong struct that makes it.
//
// apps/check/zoo/bug_zoo.h lists them with an explanation and a hint. To hunt for them yourself, begin with
// apps/book/bugs/README.md, and read no further here: names and structs say what is wrong.
#pragma once

#include "autograd/ops/attention.h"
#include "core/mask.h"
#include "core/tensor_ops.h"

namespace orrery::bugs {

// Wrong backwards: the value is right, the derivative is not.
Variable softmax_without_inner_product(const Variable& x);
Variable layer_norm_without_mean_term(const Variable& x, const Variable& weight, const Variable& bias, double eps);
Variable layer_norm_with_constant_deviation(const Variable& x, const Variable& weight, const Variable& bias,
                                            double eps);
/// Q K^T / sqrt(d_k), as `attention` makes its scores.
Variable scores_unscaled_in_backward(const Variable& Q, const Variable& K);
/// x W^T + b.
Variable linear_with_bias_summed_over_wrong_axis(const Variable& x, const Variable& weight, const Variable& bias);
Variable matmul_without_transposes(const Variable& a, const Variable& b);
Variable embedding_overwritten_on_repeats(const Variable& weight, const Tensor& ids);
Variable dropout_not_rescaled_in_backward(const Variable& x, double p, const Draw& draw);
Variable dropout_with_fresh_mask_in_backward(const Variable& x, double p, const Draw& draw);
Variable cross_entropy_divided_by_all_targets(const Variable& logits, const Tensor& targets);
Variable add_without_sum_over_broadcast(const Variable& a, const Variable& b);
Variable gelu_with_derivative_of_tanh_form(const Variable& x);
Variable tanh_with_derivative_at_input(const Variable& x);

// Wrong only at points without a derivative: no difference quotient shows that.
Variable relu_with_derivative_at_zero(const Variable& x);
Variable max_with_whole_gradient_to_all_ties(const Variable& x, const Axes& axes, bool keep_axes);

// Wrong values with right derivatives.
AttentionResult attention_without_scale(const Variable& Q, const Variable& K, const Variable& V, const Mask& mask);
AttentionResult attention_masked_after_softmax(const Variable& Q, const Variable& K, const Variable& V,
                                               const Mask& mask);
AttentionResult attention_with_masked_scores_of_zero(const Variable& Q, const Variable& K, const Variable& V,
                                                     const Mask& mask);

// Right in f64, wrong in f32 (apps/check/zoo/wrong_operations_f32.cpp): gradcheck works in f64, and the proof compares
// the two.
/// No gradient beyond |x| = 1.5.
Variable tanh_saturated_early_in_f32(const Variable& x);
/// x W^T + b, with the gradient of b negated.
Variable linear_with_negated_bias_in_f32(const Variable& x, const Variable& weight, const Variable& bias);

// Right as long as somebody else holds the output: backward reads what it has just written over.
Variable softmax_over_its_output(const Variable& x);

}  // namespace orrery::bugs
