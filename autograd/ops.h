// Chapter 2. The catalogue: every differentiable operation.
//
// An operation has its declaration in a header named here, its formula, derivative and code in the .cpp of the same
// name, its samples in a file *samples.cpp of autograd/check/, and its row in `orrery gradcheck`. To add one: the
// README.md of the repository. In shapes, [...] stands for any axes.
#pragma once

// Arithmetic, and functions of single elements.
#include "autograd/ops/activation.h"   // tanh sigmoid relu gelu gelu_tanh silu softplus elu abs clamp sin cos glu
#include "autograd/ops/arithmetic.h"   // add sub mul div neg scale shift, and + - * /
#include "autograd/ops/elementwise.h"  // pow exp log sqrt

// Sums, products, and moving elements.
#include "autograd/ops/layout.h"  // reshape permute concat slice split split3 broadcast_to select where gather scatter
#include "autograd/ops/matmul.h"  // matmul
#include "autograd/ops/reduce.h"  // sum mean max min cumulative_sum variance normalize log_sum_exp

// What networks are made of.
#include "autograd/ops/attention.h"      // attention masked_softmax by_distance zero_padding
#include "autograd/ops/convolution.h"    // convolution
#include "autograd/ops/cross_entropy.h"  // cross_entropy mse bce_with_logits kl_divergence
#include "autograd/ops/dropout.h"        // dropout
#include "autograd/ops/embedding.h"      // embedding embedding_sum index_rows
#include "autograd/ops/layer_norm.h"     // layer_norm
#include "autograd/ops/rms_norm.h"       // rms_norm
#include "autograd/ops/rotary.h"         // rotary
#include "autograd/ops/softmax.h"        // softmax log_softmax

// Fused operations, which layers call. Each does in one pass what several of the operations above do. The composed
// forms are the ones to read; tests compare both.
#include "autograd/ops/fused/attention/packed_attention.h"   // packed_attention
#include "autograd/ops/fused/linear/feed_forward.h"          // gelu_feed_forward gelu_tanh_feed_forward
#include "autograd/ops/fused/linear/linear.h"                // linear linear_relu
#include "autograd/ops/fused/linear/linear_cross_entropy.h"  // linear_cross_entropy
#include "autograd/ops/fused/linear/residual.h"              // residual residual_norm
