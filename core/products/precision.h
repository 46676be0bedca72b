// Chapter 8. The precision of the factors of products: f32 as they are, or rounded to bf16.
#pragma once

#include <string>

namespace orrery {

/// Whether every product of f32, also attention's and Muon's, rounds its two factors to bf16, to nearest even; not
/// unless set. Sums and results stay f32, and so does all else: parameters, optimisers, norms, softmax, losses.
/// Products of f64 stay as they are. Error: BLAS computes the products, and it does so in f32.
void use_bf16(bool use);
bool uses_bf16();
/// The precision of the factors, as `--precision` and the files of trainings name it.
const char* precision_name(bool bf16);
/// What products in bf16 are computed by on this CPU: "AMX", "AVX512-BF16" or "f32 arithmetic"; and why, if the CPU's
/// instructions gave wrong products here.
std::string bf16_arithmetic();

/// How products are computed, as `--products` and `--precision` choose.
struct ProductOptions {
  bool by_blas = false, bf16 = false;
};
/// `use_blas` and `use_bf16` at once. Error: both are wanted.
void use_products(const ProductOptions& products);

namespace kernels {

/// How products read their factors: as they are, or rounded to bf16 (core/products/bf16.h; f32 only).
enum class Factors { exact, bf16 };

}  // namespace kernels
}  // namespace orrery
