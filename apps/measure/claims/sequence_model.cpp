// Chapter 9. The tiny model for experiments.
#include "apps/measure/claims/sequence_model.h"

#include <cmath>

#include "autograd/ops/arithmetic.h"

namespace orrery::claims {

SequenceModel::SequenceModel(const SequenceModelConfig& config, Rng& rng)
    : mask(config.mask),
      embedding(config.symbols, config.layer.d_model, rng),
      encoder(config.num_layers, config.layer.norm_first, config.layer, rng),
      generator(config.layer.d_model, config.symbols, rng) {
  if (config.order == Order::sinusoidal)
    positions.emplace(nn::Positions::sinusoidal, config.max_len, config.layer.d_model, rng);
  if (config.order == Order::learned)
    positions.emplace(nn::Positions::learned, config.max_len, config.layer.d_model, rng);
  name_parameters();
}

Variable SequenceModel::operator()(const Tensor& ids, nn::Pass& pass) const {
  const Variable x = embedding(ids) * std::sqrt(static_cast<double>(embedding.weight.size(1)));
  return generator(encoder(positions ? (*positions)(x) : x, mask, pass));
}

void SequenceModel::visit(nn::Visitor& v) {
  v("embedding", embedding);
  v("positions", positions);
  v("encoder", encoder);
  v("generator", generator);
}

}  // namespace orrery::claims
