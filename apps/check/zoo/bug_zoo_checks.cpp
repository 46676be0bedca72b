// Chapter 7. The bug zoo: the mistakes that no gradient check shows, and the checks that find them.
//
// If the table of proofs has a row for the function, the mistake replaces it there too, to show that the row passes.
#include <cmath>
#include <iomanip>
#include <memory>
#include <sstream>
#include <vector>

#include "apps/check/zoo/bug_zoo.h"
#include "autograd/apply.h"
#include "autograd/check/proof_parts.h"
#include "autograd/elementwise.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "nn/check/leakcheck_models.h"
#include "nn/check/sample_rows.h"

// The programs of apps/book/bugs: their mistakes are the zoo's.
namespace orrery::bugs {

// Wrong only at a point without a derivative: no difference quotient shows that.
struct Relu {
  static constexpr std::string_view name = "relu";
  template <class T> T value(T x) const { return x < 0 ? T{0} : x; }
  template <class T> T derivative(T x) const { return x >= 0 ? T{1} : T{0}; }
};

namespace bug_2 {
#include "apps/book/bugs/2.cpp"
}
namespace bug_8 {
#include "apps/book/bugs/8.cpp"
}
namespace bug_12 {
#include "apps/book/bugs/12.cpp"
}
namespace bug_15 {
#include "apps/book/bugs/15.cpp"
}
namespace bug_17 {
#include "apps/book/bugs/17.cpp"
}
namespace bug_19 {
#include "apps/book/bugs/19.cpp"
}
namespace bug_30 {
#include "apps/book/bugs/30.cpp"
}
}  // namespace orrery::bugs

namespace orrery::nn {
namespace {

using Leaves = std::vector<Variable>;

// Adds a check of the wrong version and of the right one.
template <class Check, class Version> Bug with_check(Bug bug, Check check, Version wrong, Version right) {
  bug.check = [=] { return check(wrong); };
  bug.check_right = [=] { return check(right); };
  return bug;
}

// The same for a check that is a leak check: check(version) is what to move, and where to.
template <class Check, class Version> Bug with_leak_check(Bug bug, Check check, Version wrong, Version right) {
  const auto message = [=](Version version) {
    const LeakReport report = leakcheck(check(version));
    return report.ok() ? "" : "leakcheck: " + report.message();
  };
  bug.leaks = [=] { return leakcheck(check(wrong)); };
  return with_check(std::move(bug), message, wrong, right);
}

using AttentionFunction = AttentionResult (*)(const Variable&, const Variable&, const Variable&, const Mask&);
AttentionResult right_attention(const Variable& Q, const Variable& K, const Variable& V, const Mask& mask) {
  return attention(Q, K, V, mask);
}

// One query and two keys, d_k = 4. The scores are 2 ln 3 and 0; divided by sqrt(d_k), ln 3 and 0. So the weights are
// 3/4 and 1/4.
std::string check_attention_value(AttentionFunction attend) {
  const Variable Q = constant(Tensor::of<double>({1, 1, 1, 4}, {2, 0, 0, 0}));
  const Variable K = constant(Tensor::of<double>({1, 1, 2, 4}, {std::log(3.0), 0, 0, 0, 0, 0, 0, 0}));
  const double weight = attend(Q, K, K, Mask()).weights.value().at(0);
  if (std::fabs(weight - 0.75) < 1e-12) return "";
  std::ostringstream text;
  text << "reference value: the weight of the first of two keys is " << weight
       << "; computed by hand from equation 1 it is 0.75";
  return text.str();
}

LeakCheck attention_with(AttentionFunction attend, const Mask& mask) {
  Rng rng(1);
  return {.name = "attention",
          .input = randn({2, 4, 3}, rng, f64),
          .output =
              [=](const Tensor& x) {
                const Variable heads = constant(x.reshape({2, 1, 4, 3}));
                return attend(heads, heads, heads, mask).output.value().reshape({2, 4, 3});
              },
          .may_move = within_sequence(true)};
}
LeakCheck causal_attention(AttentionFunction attend) { return attention_with(attend, Mask::causal()); }

// The same with a flag for the causal mask, and padding beside it.
AttentionResult flagged_attention(const Variable& Q, const Variable& K, const Variable& V, const Mask& mask) {
  return bugs::bug_30::my_attention(Q, K, V, mask, true);
}
AttentionResult both_hide(const Variable& Q, const Variable& K, const Variable& V, const Mask& mask) {
  return attention(Q, K, V, mask & Mask::causal());
}
LeakCheck padded_attention(AttentionFunction attend) {
  return attention_with(attend, Mask::padding(std::vector<i32>{4, 3}));
}

using CausalMask = Mask (*)(i64 T);
LeakCheck attention_behind(CausalMask mask) { return attention_with(right_attention, mask(4)); }

// The weights of the first query of the leak check above, which sees one key, and what they add up to.
std::string first_weights(AttentionFunction attend) {
  const Variable heads = constant(causal_attention(attend).input.reshape({2, 1, 4, 3}));
  const Tensor weights = attend(heads, heads, heads, Mask::causal()).weights.value();
  std::ostringstream text;
  text << std::fixed << std::setprecision(4) << "the weights of position 0 of row 0:";
  double total = 0;
  for (i64 key = 0; key < weights.size(-1); ++key) {
    text << ' ' << weights.at(key);
    total += weights.at(key);
  }
  text << ", which add up to " << total;
  return text.str();
}

LeakCheck decoder_with(MaskFault fault) {
  Rng rng(1);
  const auto decoder = std::make_shared<Decoder>(1, false, LayerOptions{.d_model = 4, .num_heads = 2, .d_ff = 6}, rng);
  return leakchecks(decoder, 4, fault)[0];
}

// A training step uses target [B, T + 1] twice: without its last token as the decoder's input, and without its first
// token as the labels.
using DecoderInput = Tensor (*)(const Tensor& target);
LeakCheck training_step(DecoderInput decoder_input) {
  Rng rng(1);
  const auto model = std::make_shared<Transformer>(TransformerConfig{.src_vocab_size = 5,
                                                                     .tgt_vocab_size = 5,
                                                                     .layer = {.d_model = 4, .num_heads = 2, .d_ff = 6},
                                                                     .num_encoder_layers = 1,
                                                                     .num_decoder_layers = 1,
                                                                     .max_len = 5,
                                                                     .pad_id = -1},
                                                   rng);
  const Tensor source = randint(0, 5, {2, 3}, rng);
  return {.name = "training step",
          .inputs = "target",
          .outputs = "logits",
          .input = randint(0, 5, {2, 5}, rng),
          .output =
              [=](const Tensor& target) {
                Pass pass;
                return (*model)(source, decoder_input(target), pass).value();
              },
          .may_move = within_sequence(true),
          .vocabulary = 5};
}

using Activate = Variable (*)(const Variable&);
Variable wrong_relu(const Variable& x) { return elementwise(bugs::Relu{}, x); }
std::string check_relu_at_zero(Activate activate) {
  const Variable x = parameter(zeros({1}, f64));
  backward(activate(x));
  const double slope = x.gradient().item();
  if (slope == 0) return "";
  return "reference value: at one x, where difference quotients do not decide, the derivative is " +
         std::to_string(slope) + ", not 0";
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

std::vector<Sample> masked_attention(AttentionFunction wrong) {
  const Mask padded = Mask::causal() & Mask::padding(Tensor::of<i32>({2}, {3, 2}));
  return operation_rows("attention", {"causal and padding"},
                        [=](const Leaves& x) { return wrong(x[0], x[1], x[2], padded).output; });
}

std::string message_of(const ProofPart& part) { return part.ok ? "" : "proof, " + part.name + ": " + part.detail; }

std::string check_change_in_place(Activate f) {
  return message_of(parts::prove_changed(sample_of("exp", f, {{3}}), 1));
}

// 2 x, whose backward is wrong in every `wrong`th call, and never if `wrong` is 0.
struct CountedDouble {
  static constexpr std::string_view name = "double";
  std::shared_ptr<i64> calls;
  i64 wrong;
  Tensor forward(const Tensor& x) { return x * 2.0; }
  void backward(const Tensor& dy, Grads& dx) {
    const bool is_wrong = wrong > 0 && ++*calls % wrong == 0;
    dx.add(0, dy * (is_wrong ? 2.002 : 2.0));
  }
};

std::string check_many_calls(i64 wrong) {
  const CountedDouble counted{std::make_shared<i64>(0), wrong};
  const auto f = [counted](const Variable& x) { return apply(counted, x); };
  return message_of(parts::prove_repeatable(sample_of("double", f, {{3}}), 1));
}

std::vector<Bug> wrong_attention_weights() {
  return {
      with_check({.name = "attention-without-scale",
                  .mistake = "Scores are not divided by sqrt(d_k), neither forward nor backward.",
                  .hint = "ln(0.9 / 0.1) is how many times ln(0.75 / 0.25)? And how long are the queries and keys?",
                  .samples = operation_rows(
                      "attention", {"everything", "more keys than queries", "one query, one key"},
                      [](const Leaves& x) { return bugs::bug_15::my_attention(x[0], x[1], x[2], Mask()).output; }),
                  .leaks = [] { return leakcheck(causal_attention(bugs::bug_15::my_attention)); }},
                 check_attention_value, AttentionFunction{bugs::bug_15::my_attention},
                 AttentionFunction{right_attention}),
      with_leak_check(
          {.name = "mask-after-softmax",
           .mistake = "Masked weights are set to 0 after the softmax: hidden keys still count in its denominator.",
           .hint = "What the weights lack to 1 has gone to the hidden keys. In which sum do these still count?",
           .samples = masked_attention(bugs::bug_2::my_attention),
           .numbers = [] { return first_weights(bugs::bug_2::my_attention); }},
          causal_attention, AttentionFunction{bugs::bug_2::my_attention}, AttentionFunction{right_attention}),
      with_leak_check({.name = "masked-scores-set-to-zero",
                       .mistake = "Masked scores are multiplied by 0 before the softmax, where -infinity belongs.",
                       .hint = "What is e^0?",
                       .samples = masked_attention(bugs::bug_19::my_attention),
                       .numbers = [] { return first_weights(bugs::bug_19::my_attention); }},
                      causal_attention, AttentionFunction{bugs::bug_19::my_attention},
                      AttentionFunction{right_attention}),
  };
}

// What a position may see.
std::vector<Bug> wrong_masks_and_inputs() {
  return {
      with_leak_check({.name = "causal-mask-one-too-wide",
                       .mistake = "Position i sees positions up to i + 1: the triangle is off by one.",
                       .hint = "Training would look too good to be true. Which single pair of positions shows it?"},
                      attention_behind, CausalMask{bugs::bug_12::causal_mask},
                      CausalMask{[](i64) { return Mask::causal(); }}),
      with_leak_check(
          {.name = "causal-flag-ignored-beside-a-mask",
           .mistake = "The causal flag counts only if no mask is given: with padding, every query sees what follows.",
           .hint = "Without padding nothing leaks. So what does the padding change besides what it hides?",
           .numbers =
               [] { return "without padding: " + leakcheck(attention_with(flagged_attention, Mask())).message(); }},
          padded_attention, AttentionFunction{flagged_attention}, AttentionFunction{both_hide}),
      with_leak_check({.name = "padding-mask-one-too-long",
                       .mistake = "The first padded position of each row counts as a token.",
                       .hint = "The result for a sentence must not depend on how much padding its batch gives it."},
                      decoder_with, MaskFault::padding, MaskFault::none),
      with_leak_check({.name = "target-not-shifted",
                       .mistake = "The decoder reads the token it must predict: its input is not shifted by one.",
                       .hint = "The loss falls to 0 within a few steps, and greedy decoding writes nonsense."},
                      training_step, DecoderInput{[](const Tensor& target) { return slice(target, 1, 1); }},
                      DecoderInput{[](const Tensor& target) { return slice(target, 1, 0, -1); }}),
  };
}

// Derivatives at single points, which no difference quotient decides.
std::vector<Bug> wrong_at_kinks() {
  return {
      with_check({.name = "relu-derivative-at-zero",
                  .mistake = "relu's derivative is 1 where x >= 0, not only where x > 0.",
                  .hint = "No difference quotient decides it. But how often is a masked number exactly 0?",
                  .samples = operation_rows("relu", {}, [](const Leaves& x) { return wrong_relu(x[0]); })},
                 check_relu_at_zero, Activate{wrong_relu}, Activate{relu}),
      with_check(
          {.name = "max-gradient-to-all-ties",
           .mistake = "If several elements are the largest, each gets the whole gradient.",
           .hint = "Two equal numbers get 2 in all, and k of them would get k. Does backward know how many there are?",
           .samples = operation_rows("max", {"last axis"},
                                     [](const Leaves& x) { return bugs::bug_17::my_max(x[0], {-1}, false); })},
          check_max_of_ties, Maximum{bugs::bug_17::my_max}, Maximum{orrery::max}),
  };
}

// What shows only after several calls, or if something changes in between.
std::vector<Bug> wrong_over_time() {
  return {
      with_check({.name = "output-kept-as-tensor",
                  .mistake = "Backward's input is kept as a Tensor, not as a Saved: a change to it goes unnoticed.",
                  .hint = "An optimiser, or a user, writes to a tensor between forward and backward.",
                  .samples = operation_rows("exp", {}, [](const Leaves& x) { return bugs::bug_8::my_exp(x[0]); })},
                 check_change_in_place, Activate{bugs::bug_8::my_exp}, Activate{exp}),
      with_check({.name = "wrong-in-every-50th-call",
                  .mistake = "Every 50th backward is wrong by one part in a thousand.",
                  .hint = "How often must backward be repeated to find it?"},
                 check_many_calls, i64{50}, i64{0}),
  };
}

}  // namespace

std::vector<Bug> bugs_found_without_derivatives() {
  return joined({wrong_attention_weights(), wrong_masks_and_inputs(), wrong_at_kinks(), wrong_over_time()});
}

}  // namespace orrery::nn
