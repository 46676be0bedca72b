// Chapter 8. Convolution over positions: each output is a linear map of a few neighbouring inputs, one map everywhere.
//
//   y_t = b + sum_j W_j x_{t + j - left}       j = 0 ... width - 1; x is 0 outside of the sequence
//   dx_s = sum_j W_j^T dy_{s - j + left}       dW_j = sum_t dy_t x_{t + j - left}^T           db = sum_t dy_t
// To be computed by one product, the inputs are unfolded: row t of U holds the `width` inputs that y_t depends on, one
// after another. Then y = U W^T + b, dW = dy^T U, and dx adds up the parts of dU = dy W that belong to each input. U
// has `width` times the numbers of x, so it is made for a few sequences at a time, and again in backward.
// Inputs beyond the padding length of a row count as 0 and get the gradient 0, whatever they hold.
// Shapes: x [B, T, C_in], W [C_out, C_in, width] (PyTorch's), b [C_out], y [B, T + left + right - (width - 1), C_out].
#include "autograd/ops/convolution.h"

#include "autograd/apply.h"
#include "core/kernels/elementwise.h"
#include "core/kernels/reduce.h"
#include "core/mask.h"
#include "core/products/gemm.h"
#include "core/tensor_ops.h"

namespace orrery {
using namespace kernels;
namespace {

struct Convolution {
  static constexpr std::string_view name = "convolution";
  enum Input : size_t { of_x, of_W, of_b };

  ConvolutionPadding padding;
  Mask mask;
  i64 B = 0, in_steps = 0, C_in = 0, C_out = 0, width = 0, left = 0, steps = 0;
  Saved x{}, W{};

  Tensor forward(const Tensor& in, const Tensor& weight, const Tensor& bias) {
    read_sizes(in, weight, bias);
    x = in;
    W = weight;
    Tensor y = Tensor::empty({B, steps, C_out}, in.dtype());
    dispatch_floating(in.dtype(), name, [&](auto t) {
      using T = decltype(t);
      T* to = y.write<T>();
      const T* b = data_or_null<T>(bias);
      for_chunks([&](i64 begin, i64 end, Tensor& unfolded) {
        unfold<T>(begin, end, unfolded.write<T>());
        const Mat<const T> U(unfolded.data<T>(), unfolded.size(0), unfolded.size(1));
        const Mat<T> part(to + begin * steps * C_out, unfolded.size(0), C_out);
        const auto fill = [=, this](const Tile& tile) {
          for (i64 row = tile.row; row < tile.row_end; ++row)
            std::copy(b + tile.column, b + tile.column_end, part.data + row * C_out + tile.column);
        };
        gemm<T>(U, matrix<T>(), part, Trans::b, b ? TileWork(fill) : TileWork(), nullptr);
      });
    });
    return y;
  }

  void backward(const Tensor& dy, Grads& dx) {
    const Tensor rows = as_rows(dy);
    Tensor d = dx.wanted(of_x) ? Tensor::empty({B, in_steps, C_in}, dy.dtype()) : Tensor();
    dispatch_floating(dy.dtype(), name, [&](auto t) {
      using T = decltype(t);
      for_chunks([&](i64 begin, i64 end, Tensor& unfolded) {
        const Mat<const T> part(rows.data<T>() + begin * steps * C_out, unfolded.size(0), C_out);
        const Mat<T> U(unfolded.write<T>(), unfolded.size(0), unfolded.size(1));
        if (dx.wanted(of_W)) {
          unfold<T>(begin, end, U.data);
          const GradientBuffer into = dx.into(of_W);
          gemm<T>(part, U, Mat<T>(into.buffer.write<T>(), C_out, C_in * width), Trans::a, !into.is_new);
        }
        if (dx.wanted(of_x)) {
          gemm<T>(part, matrix<T>(), U);
          fold<T>(begin, end, U.data, d.write<T>());
        }
      });
    });
    if (dx.wanted(of_b)) dx.add(of_b, sum(rows, {0}));
    if (dx.wanted(of_x)) dx.add(of_x, std::move(d));
  }

 private:
  template <class T> Mat<const T> matrix() const { return {W.get().data<T>(), C_out, C_in * width}; }

  // Calls body(begin, end, U) for groups of sequences [begin, end), where U is room for their unfolded inputs. A group
  // is as many sequences as fit into the cache that all cores share, but at least one. If there is no sequence, body is
  // called once with an empty group, so that backward writes the gradient 0 of W.
  template <class Body> void for_chunks(const Body& body) const {
    const i64 bytes = steps * C_in * width * bytes_of(x.get().dtype());
    const i64 chunk = std::clamp<i64>(shared_cache_bytes / std::max<i64>(1, bytes), 1, std::max<i64>(1, B));
    Tensor room = Tensor::empty({std::min(chunk, B) * steps, C_in * width}, x.get().dtype());
    i64 begin = 0;
    do {
      const i64 end = std::min(B, begin + chunk);
      Tensor unfolded = room.rows(0, (end - begin) * steps);
      body(begin, end, unfolded);
      begin = end;
    } while (begin < B);
  }

  // U[(b, t), (c, j)] = x[b, t + j - left, c] for the sequences [begin, end).
  template <class T> void unfold(i64 begin, i64 end, T* U) const {
    const T* from = x.get().data<T>();
    for_rows((end - begin) * steps, C_in * width, [=, this](i64 row) {
      const i64 b = begin + row / steps, first = row % steps - left, length = mask.length(b, in_steps);
      T* to = U + row * C_in * width;
      for (i64 j = 0; j < width; ++j) {
        const i64 s = first + j;
        const bool inside = s >= 0 && s < length;
        const T* at = from + (b * in_steps + (inside ? s : 0)) * C_in;
        for (i64 c = 0; c < C_in; ++c) to[c * width + j] = inside ? at[c] : T{0};
      }
    });
  }

  // dx[b, s, c] = sum over j of dU[(b, s - j + left), (c, j)].
  template <class T> void fold(i64 begin, i64 end, const T* dU, T* dx) const {
    for_rows((end - begin) * in_steps, C_in * width, [=, this](i64 row) {
      const i64 b = begin + row / in_steps, s = row % in_steps;
      T* to = dx + (b * in_steps + s) * C_in;
      std::fill_n(to, C_in, T{0});
      if (s >= mask.length(b, in_steps)) return;
      for (i64 j = 0; j < width; ++j) {
        const i64 t = s - j + left;
        if (t < 0 || t >= steps) continue;
        const T* from = dU + ((b - begin) * steps + t) * C_in * width + j;
        for (i64 c = 0; c < C_in; ++c) to[c] += from[c * width];
      }
    });
  }

  // Checks the inputs, and sets the sizes.
  void read_sizes(const Tensor& in, const Tensor& weight, const Tensor& bias) {
    check(in.rank() == 3, name, "x needs shape [B, T, C_in], has ", in.shape());
    check(weight.rank() == 3, name, "the weight needs shape [C_out, C_in, width], has ", weight.shape());
    B = in.size(0);
    in_steps = in.size(1);
    C_in = in.size(2);
    C_out = weight.size(0);
    width = weight.size(2);
    check(weight.size(1) == C_in, name, "the weight needs shape [C_out, ", C_in, ", width], has ", weight.shape());
    check(width >= 1, name, "the width must be at least 1, not ", width);
    check(padding != ConvolutionPadding::same || width % 2 == 1, name,
          "as many inputs before a position as after it need an odd width, not ", width);
    check(!bias.defined() || bias.shape() == Shape{C_out}, name, "the bias needs shape ", Shape{C_out}, ", has ",
          bias.shape());
    mask.check_padding_fits(B, in_steps);
    steps = in_steps;
    switch (padding) {
      case ConvolutionPadding::same: left = width / 2; break;
      case ConvolutionPadding::causal: left = width - 1; break;
      case ConvolutionPadding::none:
        left = 0;
        steps -= width - 1;
        break;
    }
    check(steps >= 0, name, "without padding, at least ", width - 1, " positions are needed, there are ", in_steps);
  }
};

}  // namespace

Variable convolution(const Variable& x, const Variable& weight, const Variable& bias, ConvolutionPadding padding,
                     const Mask& mask) {
  return apply(Convolution{padding, mask}, x, weight, bias);
}

}  // namespace orrery
