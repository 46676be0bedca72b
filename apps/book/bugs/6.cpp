// Chapter 5. Bug 6: an embedding.
//
// Row ids[i] of the weight [vocabulary, D] for each token i; ids is i32 [B, T]. copy_into(a, b) writes b to a.
// Its symptoms:  apps/run gradcheck --bug 6
// Grade it:  apps/run exercise bug.6
#include "autograd/apply.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

struct Embedding {
  static constexpr std::string_view name = "embedding";
  Tensor ids;
  Tensor forward(const Tensor& weight) { return orrery::embedding(constant(weight), ids).value(); }
  void backward(const Tensor& dy, Grads& dx) {
    const i64 D = dy.size(-1);
    Tensor g = zeros(dx.shape(0), dx.dtype(0));
    const Tensor rows = dy.reshape({ids.count(), D});
    for (i64 i = 0; i < ids.count(); ++i) {
      Tensor row = g.rows(ids.data<i32>()[i], ids.data<i32>()[i] + 1);
      copy_into(row, rows.rows(i, i + 1));
    }
    dx.add(0, g);
  }
};

Variable my_embedding(const Variable& weight, const Tensor& ids) { return apply(Embedding{ids}, weight); }
