// Chapter 8. The gated recurrent unit over all positions of a sequence, as one operation.
//
//   a_t = W_x x_t + b_x      given for all positions: one product computes them, since no a_t depends on a state
//   b_t = W h_{t-1} + b      one product for each position, for all rows of the batch
//   r_t = sigmoid(a_r + b_r)                 dh_t    = dy_t + what position t + 1 left
//   z_t = sigmoid(a_z + b_z)                 dn_t    = dh_t (1 - z_t) (1 - n_t^2)        through tanh
//   n_t = tanh(a_n + r_t b_n)                dz_t    = dh_t (h_{t-1} - n_t) z_t (1 - z_t)
//   h_t = (1 - z_t) n_t + z_t h_{t-1}        dr_t    = dn_t b_n r_t (1 - r_t)
//                                            da_t    = [dr_t | dz_t | dn_t],    db_t = [dr_t | dz_t | dn_t r_t]
//                                            dh_{t-1} gets dh_t z_t + db_t W
//   dW = sum over t of db_t^T h_{t-1}, and db = sum over t of db_t: one product and one sum for all positions
// This is the unit of Cho et al. 2014 ("Learning Phrase Representations using RNN Encoder-Decoder", section 2.3) with
// PyTorch's reset gate: r_t multiplies b_n, after the product, so that one product serves all three gates.
// Beyond the padding length of a row, the state stays as it is, and all derivatives there are 0.
// Memory: r_t, z_t, b_n and n_t, four numbers for each number of the result; backward overwrites them with db_t.
// Shapes: gates a [B, T, 3 H], h0 [B, H], W [3 H, H], b [3 H], states [B, T, H].
#include "autograd/ops/fused/gru.h"

#include "autograd/apply.h"
#include "autograd/ops/fused/gru_rows.h"
#include "autograd/ops/fused/linear/linear_rows.h"
#include "core/kernels/reduce.h"
#include "core/mask.h"

namespace orrery {
using namespace kernels;
namespace {

struct Gru {
  static constexpr std::string_view name = "gru";
  enum Input : size_t { of_gates, of_h0, of_W, of_b };

  Mask mask;
  bool reverse;
  bool recorded;  // backward may follow, so every step has to be kept
  i64 B = 0, steps = 0, H = 0;
  Saved h0{}, W{}, y{};
  Tensor kept{};  // [B, T, 4 H]: r, z, b_n, n. Belongs to this operation alone: backward overwrites it

  // The position that step number `s` computes.
  i64 position(i64 s) const { return reverse ? steps - 1 - s : s; }

  Tensor forward(const Tensor& gates, const Tensor& initial, const Tensor& weight, const Tensor& bias) {
    read_sizes(gates, initial, weight, bias);
    h0 = initial.defined() ? initial : zeros({B, H}, gates.dtype());
    W = weight;
    const i64 slots = recorded ? steps : 1, stride = 4 * H;
    kept = Tensor::empty({B, slots, stride}, gates.dtype());
    Tensor states = Tensor::empty({B, steps, H}, gates.dtype());
    dispatch_floating(gates.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const T* a = gates.data<T>();
      T *all = states.write<T>(), *keep = kept.write<T>();
      const Mat<const T> matrix(weight.data<T>(), 3 * H, H);
      for (i64 s = 0; s < steps; ++s) {
        const i64 at = position(s), slot = recorded ? at : 0;
        const Mat<const T> before =
            s == 0 ? Mat<const T>(h0.get().data<T>(), B, H) : Mat<const T>(all + position(s - 1) * H, B, H, steps * H);
        const Mat<T> b(keep + slot * stride, B, 3 * H, slots * stride);
        linear_rows<T>(before, matrix, data_or_null<T>(bias), b);
        for_rows(B, gru_unit_cost * H, [=, this](i64 row) {
          const T* from = before.data + row * before.stride;
          T *to = all + (row * steps + at) * H, *kept_row = b.data + row * b.stride;
          if (at < mask.length(row, steps))
            gru_row(H, a + (row * steps + at) * 3 * H, kept_row, kept_row + 3 * H, from, to);
          else
            std::copy_n(from, H, to);
        });
      }
    });
    y = states;
    return states;
  }

  void backward(const Tensor& dy, Grads& dx) {
    Tensor da = Tensor::empty({B, steps, 3 * H}, dy.dtype()), dh = zeros({B, H}, dy.dtype());
    Tensor before = Tensor::empty({B, steps, H}, dy.dtype());  // h_{t-1} at every position
    dispatch_floating(dy.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const T *first = h0.get().data<T>(), *states = y.get().data<T>(), *from = dy.data<T>();
      const Mat<const T> matrix(W.get().data<T>(), 3 * H, H);
      T *b = kept.write<T>(), *a = da.write<T>(), *d = dh.write<T>(), *h = before.write<T>();
      const i64 stride = 4 * H;
      for (i64 s = steps - 1; s >= 0; --s) {
        const i64 at = position(s);
        for_rows(B, gru_unit_cost * H, [=, this](i64 row) {
          const i64 place = row * steps + at;
          T *db = b + place * stride, *dh_row = d + row * H;
          std::copy_n(s == 0 ? first + row * H : states + (row * steps + position(s - 1)) * H, H, h + place * H);
          add_to(H, from + place * H, dh_row);
          if (at < mask.length(row, steps)) {
            gru_derivative_row(H, h + place * H, db + 3 * H, db, a + place * 3 * H, dh_row);
          } else {
            std::fill_n(db, 3 * H, T{0});
            std::fill_n(a + place * 3 * H, 3 * H, T{0});
          }
        });
        if (s > 0 || dx.wanted(of_h0))
          gemm<T>(Mat<const T>(b + at * stride, B, 3 * H, steps * stride), matrix, Mat<T>(d, B, H), Trans::none, true);
      }
      const Mat<const T> db(b, B * steps, 3 * H, stride);
      add_weight_gradient<T>(dx, of_W, db, Mat<const T>(h, B * steps, H));
      if (dx.wanted(of_b)) dx.add(of_b, column_sums(db));
    });
    if (dx.wanted(of_h0)) dx.add(of_h0, std::move(dh));
    if (dx.wanted(of_gates)) dx.add(of_gates, std::move(da));
  }

 private:
  // Checks the inputs, and sets the sizes.
  void read_sizes(const Tensor& gates, const Tensor& initial, const Tensor& weight, const Tensor& bias) {
    check(gates.rank() == 3, name, "the gates need shape [B, T, 3 H], have ", gates.shape());
    const i64 columns = gates.size(2);
    B = gates.size(0);
    steps = gates.size(1);
    H = columns / 3;
    check(columns % 3 == 0, name, "the gates need 3 H columns, have ", columns);
    check(!initial.defined() || initial.shape() == Shape{B, H}, name, "the first state needs shape ", Shape{B, H},
          ", has ", initial.shape());
    check(weight.shape() == Shape{3 * H, H}, name, "the weight needs shape ", Shape{3 * H, H}, ", has ",
          weight.shape());
    check(!bias.defined() || bias.shape() == Shape{3 * H}, name, "the bias needs shape ", Shape{3 * H}, ", has ",
          bias.shape());
    mask.check_padding_fits(B, steps);
  }
};

}  // namespace

Variable gru(const Variable& gates, const Variable& h0, const Variable& W, const Variable& b, const Mask& mask,
             bool reverse) {
  return apply(Gru{mask, reverse, tape::records(std::array{&gates, &h0, &W, &b})}, gates, h0, W, b);
}

}  // namespace orrery
