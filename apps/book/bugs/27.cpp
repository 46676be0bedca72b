// Chapter 5. Bug 27: Adam for several numbers.
//
// Adam moves a row of numbers p, all in one step, against their gradients g.
// Its symptoms:  apps/run gradcheck --bug 27
// Grade it:  apps/run exercise bug.27
#include <cmath>
#include <vector>

#include "core/tensor_ops.h"

using namespace orrery;

struct MyAdam {
  std::vector<double> m, v;
  int t = 0;
  double move(size_t i, double g, int steps) {
    m[i] = 0.9 * m[i] + 0.1 * g;
    v[i] = 0.999 * v[i] + 0.001 * g * g;
    const double m_hat = m[i] / (1 - std::pow(0.9, steps)), v_hat = v[i] / (1 - std::pow(0.999, steps));
    return m_hat / (std::sqrt(v_hat) + 1e-8);
  }
  void step(std::vector<double>& p, const std::vector<double>& g, double rate) {
    m.resize(p.size());
    v.resize(p.size());
    for (size_t i = 0; i < p.size(); ++i) p[i] -= rate * move(i, g[i], ++t);
  }
};
