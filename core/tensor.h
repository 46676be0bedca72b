// Chapter 1. Tensor: memory with a shape and an element type, and nothing else.
//
// Elements lie one after another, last axis fastest: element (i, j) of [m, n] is at i * n + j. Tensors are always
// contiguous; copying a Tensor shares the memory, `clone()` copies it. `reshape` and slices along axis 0 are views of
// the same memory. The memory counts how often it was changed (its version), so that autograd notices when a value it
// saved was overwritten.
// Read next: core/tensor_ops.h
#pragma once

#include <concepts>
#include <initializer_list>
#include <memory>
#include <ostream>
#include <vector>

#include "core/shape.h"

namespace orrery {

/// A contiguous array of known shape and dtype, sharing its memory with its copies and views.
class Tensor {
 public:
  /// No tensor at all: `defined()` is false. Used for what is optional, such as a missing bias or gradient.
  Tensor() = default;
  /// Memory for `shape`, its contents undefined.
  static Tensor empty(const Shape& shape, Dtype dtype = f32);
  /// A tensor of the given elements in row order; T is float, double or i32.
  template <class T>
  static Tensor of(const Shape& shape, const std::vector<T>& elements);

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  Dtype dtype() const { return dtype_; }
  int rank() const { return shape_.rank(); }
  i64 size(int axis) const { return shape_[axis]; }
  i64 count() const { return count_; }
  i64 bytes() const { return count_ * bytes_of(dtype_); }

  /// The elements, to read. T must be the tensor's element type.
  template <class T>
  const T* data() const {
    return static_cast<const T*>(address(dtype_of<T>));
  }
  /// The elements, to change: counts as one change of the memory.
  template <class T>
  T* write() {
    ++storage_version();
    return static_cast<T*>(address(dtype_of<T>));
  }
  /// Element number `i` in row order as a double, whatever the dtype. For printing and tests; kernels use `data`.
  double at(i64 i) const;
  /// Element (i, j, ...), one index for each axis; a negative index counts from the end. Reads as a double, whatever the
  /// dtype, and can be assigned to: x(0, -1) = 2.5. For examples and tests; kernels use `data` and `write`.
  /// Errors: another number of indices than axes; an index out of range.
  template <std::convertible_to<i64>... Index>
  double operator()(Index... index) const {
    return at(position({static_cast<i64>(index)...}));
  }
  template <std::convertible_to<i64>... Index>
  auto operator()(Index... index) {
    return Element{*this, position({static_cast<i64>(index)...})};
  }
  /// What x(i, j) of a tensor that may be changed stands for.
  struct Element {
    Tensor& tensor;
    i64 position;
    operator double() const { return tensor.at(position); }
    void operator=(double value) const { tensor.set(position, value); }
  };
  /// Sets element number `i` in row order: one change of the memory.
  void set(i64 i, double value);
  /// The only element of a tensor that has one.
  double item() const;

  /// The same elements under another shape of equal count; one size may be -1.
  Tensor reshape(const Shape& shape) const;
  /// Rows [begin, end) along axis 0, a view.
  Tensor rows(i64 begin, i64 end) const;
  Tensor clone() const;
  /// Converted to `dtype`; the tensor itself when it has that dtype already.
  Tensor to(Dtype dtype) const;

  /// How often the memory was changed since it was made, by any tensor that shares it.
  u64 version() const {
    check(defined(), "tensor", "is not defined");
    return storage_->version;
  }
  /// True when no other tensor shares the memory.
  bool sole_owner() const { return storage_.use_count() == 1; }
  bool shares_memory_with(const Tensor& other) const { return storage_ && storage_ == other.storage_; }

 private:
  struct Storage {
    explicit Storage(i64 bytes);
    ~Storage();
    Storage(const Storage&) = delete;
    Storage& operator=(const Storage&) = delete;
    void* memory;
    u64 version = 0;
  };

  /// The place in row order of the element with these indices.
  i64 position(std::initializer_list<i64> index) const;
  void* address(Dtype expected) const;
  u64& storage_version();

  std::shared_ptr<Storage> storage_;
  Shape shape_;
  i64 count_ = 0;
  i64 offset_ = 0;  // in elements
  Dtype dtype_ = f32;
};

/// Checks the rank and names the axes:  const auto [B, T, D] = dims<3>(x, "x");
template <int N>
std::array<i64, N> dims(const Tensor& x, std::string_view name) {
  check(x.defined(), name, "is not defined");
  check(x.rank() == N, name, "needs ", N, " axes, has shape ", x.shape());
  std::array<i64, N> sizes{};
  std::copy(x.shape().begin(), x.shape().end(), sizes.begin());
  return sizes;
}

/// The elements of a tensor that may be left out, null if it was.
template <class T>
const T* data_or_null(const Tensor& x) {
  return x.defined() ? x.data<T>() : nullptr;
}

/// True when shape, dtype and every bit are equal.
bool same_bits(const Tensor& a, const Tensor& b);

/// Rows of numbers in brackets, long axes shortened, then shape and dtype.
std::ostream& operator<<(std::ostream& out, const Tensor& x);

}  // namespace orrery
