// Chapter 8. The order of a sum decides its bits.
// Question: why must the number of threads not decide how a sum is cut?
// Answer: every addition rounds, so another order gives other bits. Cut into as many pieces as there are threads, one
//   sum has four values for one to four threads. Cut into chunks of fixed length it has one, whoever computes them.
#include <bit>
#include <iomanip>
#include <iostream>
#include <set>
#include <vector>

#include "core/kernels/reduce.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

constexpr i64 n = 100'000;

float sum_in_order(const float* x, i64 begin, i64 end) {
  float total = 0;
  for (i64 i = begin; i < end; ++i) total += x[i];
  return total;
}

// A piece for each thread; the pieces are added in order.
float cut_by_threads(const float* x, i64 threads) {
  float total = 0;
  for (i64 t = 0; t < threads; ++t) total += sum_in_order(x, n * t / threads, n * (t + 1) / threads);
  return total;
}

// Chunks of a fixed length. Thread t computes chunks t, t + threads, ...; all are added in the order of the chunks.
float cut_by_shape(const float* x, i64 threads) {
  constexpr i64 length = 1000, chunks = n / length;
  std::vector<float> sums(chunks);
  for (i64 t = 0; t < threads; ++t)
    for (i64 c = t; c < chunks; c += threads)
      sums[static_cast<size_t>(c)] = sum_in_order(x, c * length, (c + 1) * length);
  return sum_in_order(sums.data(), 0, chunks);
}

void print(float sum) {
  std::cout << std::fixed << std::setprecision(6) << std::setw(11) << sum << "  " << std::hex << std::bit_cast<u32>(sum)
            << std::dec;
}

}  // namespace

int main() {
  const float large = 16777216, one = 1;  // 2^24: floats beyond it are 2 apart
  std::cout << std::fixed << std::setprecision(0) << "(2^24 + 1) + 1 = " << (large + one) + one
            << ",  2^24 + (1 + 1) = " << large + (one + one) << '\n';

  Tensor x = Tensor::empty({n}, f32);  // 1, 1/2, 1/3, ..., 1/n
  double exact = 0;
  for (i64 i = 0; i < n; ++i) x.write<float>()[i] = 1 / static_cast<float>(i + 1);
  for (i64 i = n; i-- > 0;) exact += static_cast<double>(x.data<float>()[i]);
  std::set<float> by_threads, by_shape, by_library;
  std::cout << "threads  a piece each         chunks of 1000       the library\n";
  for (i64 t = 1; t <= 4; ++t) {
    set_threads(static_cast<int>(t));
    const float a = cut_by_threads(x.data<float>(), t), b = cut_by_shape(x.data<float>(), t),
                c = sum(x).data<float>()[0];
    by_threads.insert(a);
    by_shape.insert(b);
    by_library.insert(c);
    std::cout << "   " << t << "  ";
    for (const float total : {a, b, c}) print(total);
    std::cout << '\n';
  }
  std::cout << "exactly " << std::setprecision(6) << exact << '\n';

  constexpr i64 many = 20'000'000;
  float counter = 0;
  for (i64 i = 0; i < many; ++i) counter += one;
  const double counted = kernels::parallel_sum<float>(many, [](i64) { return 1.0F; });
  std::cout << std::setprecision(0) << many << " ones: one float counts to " << counter << ", the library to "
            << counted << '\n';
  return by_threads.size() == 4 && by_shape.size() == 1 && by_library.size() == 1 && counted == many ? 0 : 1;
}
