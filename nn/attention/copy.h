// Chapter 7. Copy: the next word, written from the vocabulary or copied from the source.
//
// See, Liu, Manning 2017, "Get To The Point: Summarization with Pointer-Generator Networks" (arXiv 1704.04368): such a
// network "can copy words from the source text via pointing, [...] while retaining the ability to produce novel words
// through the generator". With what a decoder says of a position, h, and the memory of the source x (section 2.2):
//   a_i = softmax over i of (q k_i / sqrt(d_model) + f [x_{i-1} = y])     q = h W^Q, k_i = memory_i W^K
//   p_gen = s(h w + b)                                                                                          (8)
//   P(w) = p_gen P_vocab(w) + (1 - p_gen) sum over the i with x_i = w of a_i                                    (9)
// There, p_gen reads the decoder's state, what it attends to and its input; h has seen all three. Nor is the vocabulary
// extended, since pieces spell every word. a is an attention of one head, for this alone, with a bias f = h u + c on
// what follows the token y that the position reads: so a word of several pieces, or several words, are copied from one
// end to the other. (CopyNet, Gu et al. 2016, also tells its decoder where the source has the word that it wrote last.)
// The result is logits like any others: log(P + 1e-20). In f32, P may round to 0, of which the logarithm would be
// -infinity; beside a P of 1e-12 the 1e-20 is less than rounding. If all of a source is padding, nothing is copied, and
// P sums to p_gen. A training holds several tensors of the logits' size: head and loss are not one operation here.
// Shapes: h [B, T, d_model], logits [B, T, K], tokens y i32 [B, T], source x i32 [B, S], memory and keys
// [B, S, d_model].
#pragma once

#include <cmath>

#include "autograd/ops/activation.h"
#include "autograd/ops/arithmetic.h"
#include "autograd/ops/attention.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/layout.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/softmax.h"
#include "core/choosing.h"
#include "core/tensor_ops.h"
#include "nn/attention/attention_interface.h"
#include "nn/layers/linear.h"

namespace orrery::nn {

/// What can be copied.
struct CopySource {
  Tensor ids;      // i32 [B, S]
  Variable keys;   // [B, S, d_model]
  Tensor lengths;  // i32 [B]: what comes later is padding

  /// For generation: sequence i becomes what sequence `chosen[i]` was.
  void choose(std::span<const i64> chosen) {
    ids = chosen_rows(ids, chosen);
    keys = constant(chosen_rows(keys.value(), chosen));
    lengths = chosen_rows(lengths, chosen);
  }
};

struct Copy : Module {
  Linear query, key;    // from d_model to d_model
  Linear gate, follow;  // from d_model to 1

  Copy(i64 d_model, Rng& rng, const LinearOptions& options = {})
      : query(d_model, d_model, rng, options),
        key(d_model, d_model, rng, {.bias = false, .init = options.init}),  // one would change all scores alike
        gate(d_model, 1, rng, options),
        follow(d_model, 1, rng, options) {}

  /// What can be copied from a source. The memory's padding must be harmless (nn/layers/padding.h). Errors: the source
  /// is not defined, or does not fit the memory; the mask hides more than padding.
  CopySource read(const Tensor& source, const Variable& memory, const Mask& mask) const {
    check(source.defined(), "copy", "needs the source, whose words it copies");
    const auto [B, S] = dims<2>(source, "copy");
    const Shape of_memory = memory.shape();
    check(of_memory == Shape{B, S, query.weight.size(1)}, "copy", "a source of shape ", source.shape(),
          " does not fit a memory of shape ", of_memory);
    check(mask.is_padding(), "copy", "words that a mask hides would be copied: it may only be padding");
    Tensor lengths = Tensor::empty({B}, Dtype::i32);
    for (i64 b = 0; b < B; ++b) lengths.write<i32>()[b] = static_cast<i32>(mask.length(b, S));
    return {source, key(memory), lengths};
  }

  /// The logarithm of P, [B, T, K], from the logits of P_vocab. Error: an id of the source is not in the vocabulary.
  Variable operator()(const Variable& h, const Variable& logits, const CopySource& from, const Tensor& tokens) const {
    const auto [B, T, d_model] = dims<3>(h.value(), "copy");
    const i64 S = from.ids.size(1);
    const Tensor before = concat({full({B, 1}, -1, Dtype::i32), slice(from.ids, 1, 0, S - 1)}, 1);  // x_{i-1}
    const Tensor follows = (tokens.reshape({B, T, 1}) == before.reshape({B, 1, S})).to(h.dtype());
    const Variable scores =
        matmul(query(h), from.keys, Trans::b) * (1 / std::sqrt(static_cast<double>(d_model))) + follow(h) * follows;
    const Variable a = reshape(masked_softmax(reshape(scores, {B, 1, T, S}), Mask::padding(from.lengths)), {B, T, S});
    const Variable p_gen = sigmoid(gate(h));  // [B, T, 1]
    const Tensor ids = broadcast_to(from.ids.reshape({B, 1, S}), {B, T, S});
    return log(scatter(p_gen * softmax(logits), -1, ids, (1 - p_gen) * a, true) + 1e-20);
  }
  void visit(Visitor& v) override {
    v("query", query);
    v("key", key);
    v("gate", gate);
    v("follow", follow);
  }
};

}  // namespace orrery::nn
