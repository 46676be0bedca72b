// Chapter 5. Dropout: noise that keeps units from relying on one another.
//
// Paper, section 5.4: "We apply dropout to the output of each sub-layer, before it is added to the sub-layer input and
// normalized. In addition, we apply dropout to the sums of the embeddings and the positional encodings in both the
// encoder and decoder stacks."
//   y_i = x_i m_i, with m_i = 0 with probability p, else 1 / (1 - p)        dx_i = dy_i m_i
// m is a function of the Draw and of the element's position (core/random.h), so backward draws it again instead
// of storing it.
#include "autograd/ops/dropout.h"

#include "autograd/apply.h"
#include "autograd/ops/row_dropout.h"

namespace orrery {
using namespace kernels;
namespace {

struct Dropout {
  static constexpr std::string_view name = "dropout";
  RowDropout dropout;  // forward and backward are the same linear map

  Tensor forward(const Tensor& x) {
    check_defined(x, name);
    dropout.check_usable(name);
    return dropout.p == 0 ? x : dropout.applied(x, Tensor::empty(x.shape(), x.dtype()));
  }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, dropout.p == 0 ? dy : dropout.applied(dy, dx.reuse(dy))); }
};

}  // namespace

Variable dropout(const Variable& x, double p, const Draw& draw) { return apply(Dropout{{p, draw}}, x); }

}  // namespace orrery
