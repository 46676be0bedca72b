// Chapter 7. LayerOptions: checking its fields.
#include "nn/models/layer_options.h"

#include "nn/models/config_rules.h"

namespace orrery::nn {

void LayerOptions::validate(std::string_view operation) const {
  using config_json::check_positive, config_json::check_probability;
  check_positive(operation, "d_model", d_model);
  check_positive(operation, "num_heads", num_heads);
  check_positive(operation, "d_ff", d_ff);
  check(d_k >= 0 && d_v >= 0, operation, "d_k and d_v must be positive, or 0 for d_model / num_heads, not ", d_k,
        " and ", d_v);
  check((d_k > 0 && d_v > 0) || d_model % num_heads == 0, operation, "d_model (", d_model,
        ") is not a multiple of num_heads (", num_heads, "); give d_k and d_v");
  check(layer_norm_eps > 0 && layer_norm_eps < 1, operation, "layer_norm_eps must be in (0, 1), not ", layer_norm_eps);
  check_probability(operation, "dropout", dropout);
  check_probability(operation, "attention_dropout", attention_dropout.value_or(dropout));
  check_probability(operation, "activation_dropout", activation_dropout.value_or(dropout));
}

}  // namespace orrery::nn
