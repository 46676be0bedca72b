// Chapter 7. The bug zoo: the list.
//
// Read next: apps/examples/ch7_decoder.cpp
#include "nn/bug_zoo.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "autograd/bug_zoo.h"
#include "autograd/samples.h"
#include "core/tensor_ops.h"
#include "nn/leakcheck_models.h"
#include "nn/samples.h"

namespace orrery::nn {
namespace {

using Leaves = std::vector<Variable>;

// The row of `table` with another function of the same leaves (inputs first, then parameters) in place of the right
// one.
template <class F>
Sample replaced(const std::vector<Sample>& table, const std::string& name, const std::string& variant, F wrong) {
  const auto row =
      std::find_if(table.begin(), table.end(), [&](const Sample& s) { return s.name == name && s.variant == variant; });
  check(row != table.end(), "bug_zoo", "there is no sample ", name, ", ", variant);
  Sample result = *row;
  result.build = [right = row->build, wrong](Dtype dtype) {
    Checkable checkable = right(dtype);
    Leaves leaves;
    for (const NamedParameter& leaf : checkable.leaves) leaves.push_back(leaf.value);
    checkable.output = [wrong, leaves] { return Variable(wrong(leaves)); };
    return checkable;
  };
  return result;
}

template <class F>
Sample operation(const std::string& name, const std::string& variant, F wrong) {
  return replaced(operation_samples(), name, variant, wrong);
}
template <class F>
Sample layer(const std::string& name, const std::string& variant, F wrong) {
  return replaced(module_samples(), name, variant, wrong);
}

Tensor ids(const Shape& shape, const std::vector<i32>& elements) { return Tensor::of<i32>(shape, elements); }

std::vector<Bug> wrong_normalisations() {
  return {
      {.name = "softmax-without-inner-product",
       .mistake = "Softmax's backward is dx = y dy: the inner product <dy, y> is missing.",
       .hint = "The outputs add up to 1. What must then come of a dy that is the same everywhere?",
       .samples = {operation("softmax", "rows",
                             [](const Leaves& x) { return bugs::softmax_without_inner_product(x[0]); })}},
      {.name = "layer-norm-without-mean-term",
       .mistake = "Layer norm's backward lacks the mean of dy w: it takes the mean of x for a constant.",
       .hint = "Add 1 to every x of a row: y stays. So the dx of a row must add up to what?",
       .samples = {operation(
                       "layer_norm", "root of variance plus eps",
                       [](const Leaves& x) { return bugs::layer_norm_without_mean_term(x[0], x[1], x[2], 1e-2); }),
                   layer("LayerNorm", "root of variance + eps",
                         [](const Leaves& x) { return bugs::layer_norm_without_mean_term(x[0], x[1], x[2], 1e-5); })}},
      {.name = "layer-norm-with-constant-deviation",
       .mistake = "Layer norm's backward takes the deviation of x for a constant.",
       .hint = "Double every x of a row: y hardly changes. So <dx, x> must be about what?",
       .samples = {operation(
           "layer_norm", "root of variance plus eps",
           [](const Leaves& x) { return bugs::layer_norm_with_constant_deviation(x[0], x[1], x[2], 1e-2); })}},
      {.name = "attention-scale-forward-only",
       .mistake = "Scores are divided by sqrt(d_k) forward; backward forgets it.",
       .hint = "A forgotten factor is the same in every coordinate: look at the ratio in the message.",
       .samples = {operation("attention", "everything",
                             [](const Leaves& x) {
                               return matmul(masked_softmax(bugs::scores_unscaled_in_backward(x[0], x[1]), Mask()),
                                             x[2]);
                             })}},
      {.name = "cross-entropy-divided-by-all-targets",
       .mistake = "The gradient is divided by the number of all targets, the loss by the number of those that count.",
       .hint = "Gradient and loss agree as long as there is no padding.",
       .samples = {operation("cross_entropy", "plain",
                             [targets = ids({2, 2}, {1, 0, -100, 3})](const Leaves& x) {
                               return bugs::cross_entropy_divided_by_all_targets(x[0], targets);
                             })}},
  };
}

std::vector<Bug> wrong_sums() {
  return {
      {.name = "bias-gradient-over-wrong-axis",
       .mistake = "The bias's gradient sums over the features instead of the positions.",
       .hint = "Where the number of positions equals the number of outputs, shapes do not tell.",
       .samples = {layer(
           "Linear", "",
           [](const Leaves& x) { return bugs::linear_with_bias_summed_over_wrong_axis(x[0], x[1], x[2]); })}},
      {.name = "broadcast-gradient-not-summed",
       .mistake = "A row that was added to every row gets the gradient of the first row alone.",
       .hint = "How often was the row used?",
       .samples = {operation("add", "broadcast row",
                             [](const Leaves& x) { return bugs::add_without_sum_over_broadcast(x[0], x[1]); })}},
      {.name = "matmul-without-transposes",
       .mistake = "The product's backward is da = dy b and db = a dy, without transposing.",
       .hint = "With square matrices shapes do not tell. Write out dL/da_ik for two by two.",
       .samples = {operation("matmul", "repeated input",
                             [](const Leaves& x) { return bugs::matmul_without_transposes(x[0], x[0]); })}},
      {.name = "embedding-gradient-overwritten",
       .mistake = "A token that occurs twice keeps only the gradient of its last place: '=' where '+=' belongs.",
       .hint = "Which sentence would show it, and which would not?",
       .samples = {operation("embedding", "repeated ids",
                             [i = ids({2, 3}, {1, 0, 1, 3, 1, 0})](const Leaves& x) {
                               return bugs::embedding_overwritten_on_repeats(x[0], i);
                             }),
                   layer("Embedding", "repeated ids",
                         [i = ids({2, 3}, {4, 0, 2, 2, 2, 1})](const Leaves& x) {
                           return bugs::embedding_overwritten_on_repeats(x[0], i);
                         })}},
      {.name = "shared-weight-counted-once",
       .mistake = "A weight that is used twice gets the gradient of its first use alone: the second use reads a copy.",
       .hint = "Embedding and generator share a matrix. Through how many paths does the loss depend on it?",
       .samples = {operation("matmul", "repeated input", [](const Leaves& x) { return matmul(x[0], detach(x[0])); }),
                   operation("mul", "repeated input", [](const Leaves& x) { return mul(x[0], detach(x[0])); })}},
  };
}

std::vector<Bug> wrong_elements() {
  const Draw draw{.seed = 5, .step = 1};
  return {
      {.name = "dropout-not-rescaled",
       .mistake = "Forward scales what it keeps by 1 / (1 - p); backward does not.",
       .hint = "Dropout is a linear map. What is the derivative of a linear map?",
       .samples = {operation(
           "dropout", "p 0.3",
           [draw](const Leaves& x) { return bugs::dropout_not_rescaled_in_backward(x[0], 0.3, draw); })}},
      {.name = "dropout-with-fresh-mask",
       .mistake = "Backward draws a new mask instead of forward's.",
       .hint = "Some coordinates have a gradient where y does not depend on x at all.",
       .samples = {operation(
           "dropout", "p 0.3",
           [draw](const Leaves& x) { return bugs::dropout_with_fresh_mask_in_backward(x[0], 0.3, draw); })}},
      {.name = "gelu-derivative-of-other-form",
       .mistake = "The value is the exact GELU, the derivative that of its tanh approximation.",
       .hint = "The error is about 0.001: too small for many a tolerance.",
       .samples = {operation("gelu", "[3, 4]",
                             [](const Leaves& x) { return bugs::gelu_with_derivative_of_tanh_form(x[0]); })}},
      {.name = "tanh-derivative-at-input",
       .mistake = "The derivative is written as 1 - x^2 where it is 1 - y^2.",
       .hint = "Which of the two, x or y, does the formula in the book mean?",
       .samples = {operation("tanh", "[3, 4]",
                             [](const Leaves& x) { return bugs::tanh_with_derivative_at_input(x[0]); })}},
  };
}

// Adds the two halves of a check that takes what it checks as an argument.
template <class Check, class Version>
Bug found_by(Bug bug, Check check, Version wrong, Version right) {
  bug.check = [=] { return check(wrong); };
  bug.check_right = [=] { return check(right); };
  return bug;
}

std::string leak_message(const LeakCheck& check) {
  const LeakReport report = leakcheck(check);
  return report.ok() ? "" : "leakcheck: " + report.message();
}

using Attention = AttentionResult (*)(const Variable&, const Variable&, const Variable&, const Mask&);
AttentionResult right_attention(const Variable& Q, const Variable& K, const Variable& V, const Mask& mask) {
  return attention(Q, K, V, mask);
}

// One query and two keys, d_k = 4: scores 2 ln 3 and 0, divided by sqrt(d_k) ln 3 and 0; weights 3/4 and 1/4.
std::string check_attention_value(Attention attend) {
  const Variable Q = constant(Tensor::of<double>({1, 1, 1, 4}, {2, 0, 0, 0}));
  const Variable K = constant(Tensor::of<double>({1, 1, 2, 4}, {std::log(3.0), 0, 0, 0, 0, 0, 0, 0}));
  const double weight = attend(Q, K, K, Mask()).weights.value().at(0);
  if (std::fabs(weight - 0.75) < 1e-12) return "";
  std::ostringstream text;
  text << "reference value: softmax(Q K^T / sqrt(d_k)) is " << weight << ", worked out by hand 0.75 (equation 1)";
  return text.str();
}

std::string check_causal_attention(Attention attend) {
  Rng rng(1);
  return leak_message({.name = "attention",
                       .input = randn({2, 4, 3}, rng, f64),
                       .output =
                           [=](const Tensor& x) {
                             const Variable heads = constant(x.reshape({2, 1, 4, 3}));
                             return attend(heads, heads, heads, Mask::causal()).output.value().reshape({2, 4, 3});
                           },
                       .may_move = within_sequence(true)});
}

std::string check_decoder(MaskFault fault) {
  Rng rng(1);
  const auto decoder = std::make_shared<Decoder>(1, false, LayerOptions{.d_model = 4, .num_heads = 2, .d_ff = 6}, rng);
  return leak_message(leakchecks(decoder, 4, fault)[0]);
}

// A training step reads target [B, T + 1] twice: cut into what the decoder reads, and what it must say, the token
// after.
using DecoderInput = Tensor (*)(const Tensor& target);
std::string check_shift(DecoderInput decoder_input) {
  Rng rng(1);
  const auto model = std::make_shared<Transformer>(TransformerConfig{.src_vocab_size = 5,
                                                                     .tgt_vocab_size = 5,
                                                                     .d_model = 4,
                                                                     .num_heads = 2,
                                                                     .num_encoder_layers = 1,
                                                                     .num_decoder_layers = 1,
                                                                     .d_ff = 6,
                                                                     .max_len = 5,
                                                                     .pad_id = -1},
                                                   rng);
  const Tensor source = randint(0, 5, {2, 3}, rng);
  return leak_message({.name = "training step",
                       .inputs = "target",
                       .outputs = "logits",
                       .input = randint(0, 5, {2, 5}, rng),
                       .output =
                           [=](const Tensor& target) {
                             Pass pass;
                             return (*model)(source, decoder_input(target), pass).value();
                           },
                       .may_move = within_sequence(true),
                       .vocabulary = 5});
}

using Activate = Variable (*)(const Variable&);
std::string check_relu_at_zero(Activate activate) {
  const Variable x = parameter(zeros({1}, f64));
  backward(activate(x));
  const double slope = x.gradient().item();
  return slope == 0 ? "" : "reference value: relu's derivative at exactly 0 is " + std::to_string(slope) + ", not 0";
}

using Maximum = Variable (*)(const Variable&, const Axes&, bool);
std::string check_max_of_ties(Maximum maximum) {
  const Variable x = parameter(full({2}, 1.0, f64));
  backward(maximum(x, {}, false));
  const double total = sum(x.gradient()).item();
  if (total == 1) return "";
  return "reference value: both numbers grow by h, so max grows by h; but their gradients add up to " +
         std::to_string(total) + ", not 1";
}

std::vector<Bug> found_without_derivatives() {
  return {
      found_by({.name = "attention-without-scale",
                .mistake = "Scores are not divided by sqrt(d_k), neither forward nor backward.",
                .hint = "The derivative is right: it is that of another function. What knows the right value?"},
               check_attention_value, Attention{bugs::attention_without_scale}, Attention{right_attention}),
      found_by({.name = "mask-after-softmax",
                .mistake = "Masked weights are set to 0 after the softmax: hidden keys still count in its denominator.",
                .hint = "Do the weights of a row still add up to 1? What would have to know of the hidden keys?"},
               check_causal_attention, Attention{bugs::attention_masked_after_softmax}, Attention{right_attention}),
      found_by({.name = "masked-scores-set-to-zero",
                .mistake = "Masked scores are multiplied by 0 before the softmax, where -infinity belongs.",
                .hint = "What is e^0?"},
               check_causal_attention, Attention{bugs::attention_with_masked_scores_of_zero},
               Attention{right_attention}),
      found_by({.name = "causal-mask-one-too-wide",
                .mistake = "Position i sees positions up to i + 1: the triangle is off by one.",
                .hint = "Training would look too good to be true. Which single pair of positions shows it?"},
               check_decoder, MaskFault::causal, MaskFault::none),
      found_by({.name = "padding-mask-one-too-long",
                .mistake = "The first padded position of each row counts as a token.",
                .hint = "What a sentence means must not depend on how far its neighbours made it be filled up."},
               check_decoder, MaskFault::padding, MaskFault::none),
      found_by({.name = "target-not-shifted",
                .mistake = "The decoder reads the very token it is to say: its input is not shifted by one.",
                .hint = "The loss falls to 0 within a few steps, and greedy decoding writes nonsense."},
               check_shift, DecoderInput{[](const Tensor& target) { return slice(target, 1, 1); }},
               DecoderInput{[](const Tensor& target) { return slice(target, 1, 0, -1); }}),
      found_by({.name = "relu-derivative-at-zero",
                .mistake = "relu's derivative is 1 where x >= 0, not only where x > 0.",
                .hint = "No difference quotient decides it. But how often is a number exactly 0 behind a mask?"},
               check_relu_at_zero, Activate{bugs::relu_with_derivative_at_zero}, Activate{relu}),
      found_by({.name = "max-gradient-to-all-ties",
                .mistake = "Where several elements are the largest, each gets the whole gradient.",
                .hint = "At a tie no derivative exists, so gradcheck keeps away. Move all of them at once."},
               check_max_of_ties, Maximum{bugs::max_with_whole_gradient_to_all_ties}, Maximum{orrery::max}),
  };
}

}  // namespace

const std::vector<Bug>& bug_zoo() {
  static const std::vector<Bug> all = [] {
    std::vector<Bug> bugs;
    for (std::vector<Bug> (*part)() : {wrong_normalisations, wrong_sums, wrong_elements, found_without_derivatives}) {
      for (Bug& bug : part()) bugs.push_back(std::move(bug));
    }
    return bugs;
  }();
  return all;
}

}  // namespace orrery::nn
