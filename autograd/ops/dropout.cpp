// Chapter 5. Dropout: noise that keeps units from relying on one another.
//
// Paper, section 5.4: "We apply dropout to the output of each sub-layer, before it is added to the sub-layer input and
// normalized. In addition, we apply dropout to the sums of the embeddings and the positional encodings."
//   y_i = x_i m_i / (1 - p), with m_i = 0 with probability p, else 1        dx_i = dy_i m_i / (1 - p)
// The mask is a function of the draw's name and the position (core/random.h): backward draws it again instead of
// storing it.
// Read next: nn/dropout.h
#include "autograd/apply.h"
#include "autograd/ops.h"
#include "core/elementwise.h"

namespace orrery {
namespace {

// x with the draw's mask applied; forward and backward are this same linear map.
Tensor masked(const Tensor& x, double p, const Draw& draw) {
  Tensor y = Tensor::empty(x.shape(), x.dtype());
  const i64 columns = x.rank() == 0 ? 1 : x.size(-1), rows = columns == 0 ? 0 : x.count() / columns;
  const i64 blocks = (columns + decisions_per_block - 1) / decisions_per_block;  // a row
  dispatch_floating(x.dtype(), "dropout", [&](auto t) {
    using T = decltype(t);
    const T* in = x.data<T>();
    T* out = y.write<T>();
    for_rows(rows, columns, [=, below = keep_below(p), factor = static_cast<T>(keep_scale(p))](i64 row) {
      for (i64 block = 0; block < blocks; ++block) {
        const std::array<u16, 8> bits = decisions(draw, static_cast<u64>(row * blocks + block));
        const i64 first = block * decisions_per_block, n = std::min(decisions_per_block, columns - first);
        for (i64 i = 0; i < n; ++i) {
          const i64 at = row * columns + first + i;
          out[at] = bits[static_cast<size_t>(i)] < below ? in[at] * factor : T{0};
        }
      }
    });
  });
  return y;
}

struct Dropout {
  static constexpr std::string_view name = "dropout";
  double p;
  Draw draw;
  Tensor forward(const Tensor& x) {
    check(p >= 0 && p <= 1, name, "needs a probability in [0, 1], got ", p);
    return p == 0 ? x : masked(x, p, draw);
  }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, p == 0 ? dy : masked(dy, p, draw)); }
};

}  // namespace

Variable dropout(const Variable& x, double p, const Draw& draw) { return apply(Dropout{p, draw}, x); }

}  // namespace orrery
