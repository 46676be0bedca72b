// Chapter 9. A layer on its way through a file, for its proof.
//
// Serves: autograd/check/proof.h
#include "nn/check/proof.h"

#include <limits>

#include "nn/files/files.h"

namespace orrery::nn {

void shake(Module& module, Rng& rng) {
  for (NamedParameter& p : module.parameters()) {
    add_in_place(p.value.mutable_value(), randn(p.value.shape(), rng) * 0.2);
  }
}

void save_and_load(Module& module, const std::string& path) {
  save(module, path);
  for (NamedParameter& p : module.parameters()) fill(p.value.mutable_value(), std::numeric_limits<double>::quiet_NaN());
  load(module, path);
}

}  // namespace orrery::nn
