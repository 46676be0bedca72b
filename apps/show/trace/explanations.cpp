// Chapter 9. The steps of the paper's model, box by box.
#include "apps/show/trace/model_pass.h"

#include <array>
#include <sstream>

#include "core/error.h"

namespace orrery {
namespace {

// How often an operation occurs in a box tells what it is there for: the second product of an attention is A V.
struct Explanation {
  std::string_view part, operation;
  int occurrence;
  std::string_view values;  // inputs -> outputs
  std::string_view forward, backward;
};

constexpr std::string_view linear_backward = "dx = dy W, dW = dy^T x, db = sum of dy";
constexpr std::string_view moved_back = ": every number goes back to its place";  // after the gradient's name
constexpr std::string_view cut_into_heads = "[B, n, h d_k] as [B, n, h, d_k]";
constexpr std::string_view heads_first = "[B, n, h, d_k] to [B, h, n, d_k]";

// What self-attention and cross-attention have in common.
constexpr std::array attention_steps{
    Explanation{"attention", "reshape", 1, "Q -> Q", cut_into_heads, moved_back},
    Explanation{"attention", "permute", 1, "Q -> Q", heads_first, moved_back},
    Explanation{"attention", "reshape", 2, "K -> K", cut_into_heads, moved_back},
    Explanation{"attention", "permute", 2, "K -> K", heads_first, moved_back},
    Explanation{"attention", "reshape", 3, "V -> V", cut_into_heads, moved_back},
    Explanation{"attention", "permute", 3, "V -> V", heads_first, moved_back},
    Explanation{"attention", "matmul", 1, "Q K -> S", "S = Q K^T", "dQ = dS K, dK = dS^T Q"},
    Explanation{"attention", "scale", 1, "S -> Z", "Z = S / sqrt(d_k)", "dS = dZ / sqrt(d_k)"},
    Explanation{"attention", "masked_softmax", 1, "Z -> A", "A_j = exp Z_j / sum_l exp Z_l, l allowed",
                "dZ_j = A_j (dA_j - sum_l dA_l A_l)"},
    Explanation{"attention", "matmul", 2, "A V -> H", "H = A V, for each head", "dA = dH V^T, dV = A^T dH"},
    Explanation{"attention", "permute", 4, "H -> H", "[B, h, n, d_v] to [B, n, h, d_v]", moved_back},
    Explanation{"attention", "reshape", 4, "H -> x", "x = Concat(head_0, head_1, ...)", moved_back},
};

constexpr std::array other_steps{
    Explanation{"embed", "embedding_sum", 1, "W PE -> y", "y = sqrt(d_model) W[ids] + PE",
                "dW[id] = sqrt(d_model) sum of dy with that id"},
    Explanation{"self_attn", "linear", 1, "x W b -> QKV", "QKV = x W^T + b, W = [W^Q W^K W^V]",
                "dx = dQKV W, dW = dQKV^T x, db = sum of dQKV"},
    Explanation{"self_attn", "split", 1, "QKV -> Q KV", "Q | KV = QKV", "dQKV = dQ | dKV"},
    Explanation{"self_attn", "split", 2, "KV -> K V", "K | V = KV", "dKV = dK | dV"},
    Explanation{"self_attn", "linear", 2, "x W b -> y", "y = x W^T + b, W = W^O", linear_backward},
    Explanation{"multihead_attn", "linear", 1, "x W b -> Q", "Q = x W^T + b, rows W^Q of W",
                "dx = dQ W, dW = dQ^T x, db = sum of dQ"},
    Explanation{"multihead_attn", "linear", 2, "memory W b -> KV", "KV = memory W^T + b, rows W^K W^V of W",
                "dmemory = dKV W, dW = dKV^T memory, db = sum of dKV"},
    Explanation{"multihead_attn", "split", 1, "KV -> K V", "K | V = KV", "dKV = dK | dV"},
    Explanation{"multihead_attn", "linear", 3, "x W b -> y", "y = x W^T + b, W = W^O", linear_backward},
    Explanation{"norm", "residual_norm", 1, "x f w b -> y",
                "y = w n + b, n = (x + f - mean) / sigma, sigma = sqrt(var + eps)",
                "dx = df = (g - mean g - n mean(g n)) / sigma, g = dy w, dw = sum of dy n, db = sum of dy"},
    Explanation{"feed_forward", "linear_relu", 1, "x W b -> a", "a = max(0, x W^T + b), W = W_1",
                "dz = da if a > 0, else 0; dx = dz W, dW = dz^T x, db = sum of dz"},
    Explanation{"feed_forward", "linear", 1, "x W b -> y", "y = x W^T + b, W = W_2", linear_backward},
    Explanation{"generator", "linear", 1, "x W b -> logits", "logits = x W^T + b",
                "dx = dlogits W, dW = dlogits^T x, db = sum of dlogits"},
    Explanation{"loss", "cross_entropy", 1, "logits labels -> L", "L = mean of -log P[label], P = softmax(logits)",
                "dlogits = (P - onehot(label)) / T"},
};

// "encoder.layers.0.norm1" as {"encoder.layers.0", "norm1"}.
struct BoxName {
  std::string layer, part;
};
BoxName box_name(const std::string& id) {
  const size_t layers = id.find(".layers.");
  if (layers == id.npos) return {"", id};
  const size_t number_end = id.find('.', layers + std::string_view(".layers.").size());
  check(number_end != id.npos, "trace", id, " is not a part of a layer");
  return {id.substr(0, number_end), id.substr(number_end + 1)};
}

// The module and the operation tell the box: both linear maps of a feed-forward network share one.
std::string box_of(const TracedStep& step) {
  if (step.operation == "cross_entropy") return "loss";
  auto [layer, part] = box_name(step.module);
  if (layer.empty()) return part;
  part = part.substr(0, part.find('.'));  // "self_attn.out_proj"
  return layer + "." + (part.starts_with("linear") ? "feed_forward" : part);
}

const Explanation& explanation_of(const std::string& box, const std::string& operation, int occurrence) {
  std::string part = box_name(box).part;
  if (part.starts_with("norm")) part = "norm";
  if (part.ends_with("_embed")) part = "embed";
  const auto fits = [&](const Explanation& e, std::string_view name) {
    return e.part == name && e.operation == operation && e.occurrence == occurrence;
  };
  for (const Explanation& e : other_steps)
    if (fits(e, part)) return e;
  if (part.ends_with("_attn"))
    for (const Explanation& e : attention_steps)
      if (fits(e, "attention")) return e;
  fail("trace", "no explanation of ", operation, " number ", occurrence, " in ", box);
}

std::vector<std::string> names_in(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<std::string> result;
  for (std::string word; in >> word;) result.push_back(word);
  return result;
}

void name_values(std::vector<TracedValue>& values, std::string_view names, const std::string& start) {
  const std::vector<std::string> list = names_in(names);
  for (TracedValue& value : values) {
    check(value.index < list.size(), "trace", "no name for value ", value.index, " of '", names, "'");
    value.name = start + list[value.index];
  }
}

void apply_explanation(TracedStep& step, const Explanation& e) {
  const size_t arrow = e.values.find(" -> ");
  const std::string_view inputs = e.values.substr(0, arrow), outputs = e.values.substr(arrow + 4);
  step.equation = step.is_backward() ? e.backward : e.forward;
  if (step.equation == moved_back) step.equation = "d" + std::string(inputs) + std::string(moved_back);
  name_values(step.inputs, step.is_backward() ? outputs : inputs, step.is_backward() ? "d" : "");
  name_values(step.outputs, step.is_backward() ? inputs : outputs, step.is_backward() ? "d" : "");
}

// Where the model computes a box: the first line with `text` from the first line with `after` on.
struct Place {
  std::string_view part, title, path, after, text;
};
constexpr std::array places{
    Place{"src_embed", "Input embedding and positional encoding", "nn/models/transformer.cpp",
          "Variable Transformer::encode(", "embed(source"},
    Place{"tgt_embed", "Output embedding and positional encoding", "nn/models/transformer.cpp",
          "Variable Transformer::hidden(", "embed(target"},
    Place{"generator", "Linear: a score for each word", "nn/models/transformer.cpp", "Variable Transformer::logits(",
          "return generator("},
    Place{"loss", "Softmax and loss", "apps/show/trace/model_pass.cpp", "loss", "cross_entropy("},
    Place{"encoder.self_attn", "multi-head self-attention", "nn/attention/attention.cpp", "",
          "MultiHeadAttention::self_attention("},
    Place{"encoder.norm1", "add & norm after self-attention", "nn/models/stack.h", "with_attention(",
          "with_residual(x, norm1"},
    Place{"encoder.feed_forward", "feed forward", "nn/layers/feed_forward.h", "", "Variable operator()("},
    Place{"encoder.norm2", "add & norm after feed forward", "nn/models/stack.h", "with_attention(",
          "with_residual(attended, norm2"},
    Place{"decoder.self_attn", "masked multi-head self-attention", "nn/attention/attention.cpp", "",
          "MultiHeadAttention::self_attention("},
    Place{"decoder.norm1", "add & norm after self-attention", "nn/models/stack.h", "with_attentions(",
          "with_residual(x, norm1"},
    Place{"decoder.multihead_attn", "multi-head attention to the encoder", "nn/attention/attention.cpp", "",
          "MultiHeadAttention::cross_attention("},
    Place{"decoder.norm2", "add & norm after attention to the encoder", "nn/models/stack.h", "with_attentions(",
          "with_residual(after_self, norm2"},
    Place{"decoder.feed_forward", "feed forward", "nn/layers/feed_forward.h", "", "Variable operator()("},
    Place{"decoder.norm3", "add & norm after feed forward", "nn/models/stack.h", "with_attentions(",
          "with_residual(after_cross, norm3"},
};

}  // namespace

void explain(std::vector<TracedStep>& steps) {
  std::map<std::pair<std::string, std::string>, int> occurrences;
  std::map<i64, const Explanation*> of_forward;
  for (TracedStep& step : steps) {
    step.box = box_of(step);
    const Explanation*& e = of_forward[step.forward];
    if (!step.is_backward()) e = &explanation_of(step.box, step.operation, ++occurrences[{step.box, step.operation}]);
    apply_explanation(step, *e);
  }
}

TracedBox traced_box(const std::string& id) {
  const auto [layer, part] = box_name(id);
  const std::string stack = layer.substr(0, layer.find('.')), name = layer.empty() ? part : stack + "." + part;
  for (const Place& place : places) {
    if (place.part != name) continue;
    std::string title(place.title);
    if (!layer.empty()) {
      const i64 number = std::stoll(layer.substr(layer.rfind('.') + 1));
      title = (stack == "encoder" ? "Encoder layer " : "Decoder layer ") + std::to_string(number) + ": " + title;
    }
    return {id, title, find_source_line(std::string(place.path), place.after, place.text)};
  }
  fail("trace", "no box of Figure 1 is called ", id);
}

}  // namespace orrery
