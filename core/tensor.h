// Chapter 1. Tensor: memory with a shape and an element type, and nothing else.
//
// Elements are stored contiguously in row-major order: element (i, j) of an [m, n] tensor has index i * n + j.
// Copying a Tensor shares its memory; `clone()` copies the elements. `reshape` and slices along axis 0 are views: they
// share the memory, too. The memory counts its changes (its version), so autograd notices when a tensor that it saved
// has been overwritten.
// Read next: core/tensor_ops.h
#pragma once

#include <atomic>
#include <concepts>
#include <initializer_list>
#include <memory>
#include <ostream>
#include <ranges>
#include <vector>

#include "core/shape.h"

namespace orrery {

/// The types of elements.
template <class T>
concept HasDtype = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, i32>;

/// A contiguous array of known shape and dtype. It shares its memory with its copies and views.
class Tensor {
 public:
  /// An undefined tensor: `defined()` is false. It stands for something optional that is missing, such as a bias.
  Tensor() = default;
  /// A tensor of this shape whose elements are not initialised.
  static Tensor empty(const Shape& shape, Dtype dtype = f32);
  /// A tensor that has a shape, but no memory: for counting what a model would need. Reading its elements, or writing
  /// them, is an error.
  static Tensor outline(const Shape& shape, Dtype dtype = f32);
  /// A tensor with the given elements, in row-major order; T is float, double or i32.
  template <HasDtype T> static Tensor of(const Shape& shape, const std::vector<T>& elements);
  /// The same from any range: f32 from floats, f64 from doubles, i32 from whole numbers, which must fit.
  template <std::ranges::input_range R> static Tensor of(const Shape& shape, const R& elements) {
    using Element = std::ranges::range_value_t<R>;
    static_assert(HasDtype<Element> || std::is_integral_v<Element>, "elements are float, double or whole numbers");
    std::vector<std::conditional_t<std::is_floating_point_v<Element>, Element, i32>> list;
    for (const Element element : elements) {
      if constexpr (!std::is_floating_point_v<Element>) check_fits(static_cast<double>(element), Dtype::i32);
      list.push_back(static_cast<typename decltype(list)::value_type>(element));
    }
    return of(shape, list);
  }

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  Dtype dtype() const { return dtype_; }
  int rank() const { return shape_.rank(); }
  i64 size(int axis) const { return shape_[axis]; }
  i64 count() const { return count_; }
  i64 bytes() const { return count_ * bytes_of(dtype_); }

  /// The elements, for reading. T must be the tensor's element type.
  template <class T> const T* data() const { return static_cast<const T*>(address(dtype_of<T>)); }
  /// The elements, for writing. Each call counts as one change of the memory.
  template <class T> T* write() {
    ++storage_version();
    return static_cast<T*>(address(dtype_of<T>));
  }
  /// Element number `i` in row-major order as a double, whatever the dtype. For printing and tests; kernels use `data`.
  double at(i64 i) const;
  /// Element (i, j, ...) as a double, whatever the dtype; negative indices count from the end. Can be assigned to:
  /// x(0, -1) = 2.5, or += -= *= /=. For examples and tests; kernels use `data` and `write`.
  /// Errors: a number of indices other than the number of axes; an index out of range.
  template <std::convertible_to<i64>... Index> double operator()(Index... index) const {
    return at(position({static_cast<i64>(index)...}));
  }
  template <std::convertible_to<i64>... Index> auto operator()(Index... index) {
    return Element{*this, position({static_cast<i64>(index)...})};
  }
  /// What x(i, j) returns if x may be changed: a reference to the element.
  struct Element {
    Tensor& tensor;
    i64 position;
    Element(Tensor& tensor, i64 position) : tensor(tensor), position(position) {}
    Element(const Element&) = default;
    operator double() const { return tensor.at(position); }
    void operator=(const Element& other) const { *this = static_cast<double>(other); }
    void operator=(double value) const { tensor.set(position, value); }
    void operator+=(double value) const { tensor.set(position, tensor.at(position) + value); }
    void operator-=(double value) const { tensor.set(position, tensor.at(position) - value); }
    void operator*=(double value) const { tensor.set(position, tensor.at(position) * value); }
    void operator/=(double value) const { tensor.set(position, tensor.at(position) / value); }
  };
  /// Sets element number `i` in row-major order; counts as one change of the memory.
  void set(i64 i, double value);
  /// All elements in row-major order as numbers of type T, whatever the dtype: x.to_vector<float>().
  template <class T = double> std::vector<T> to_vector() const {
    std::vector<T> elements(static_cast<size_t>(count_));
    for (i64 i = 0; i < count_; ++i) elements[static_cast<size_t>(i)] = static_cast<T>(at(i));
    return elements;
  }
  /// The element of a tensor that has exactly one.
  double item() const;

  /// The same elements in another shape of the same count. One size may be -1: it is computed from the others.
  Tensor reshape(const Shape& shape) const;
  /// Rows [begin, end) along axis 0, as a view. Error: 0 <= begin <= end <= size(0) does not hold.
  Tensor rows(i64 begin, i64 end) const;
  Tensor clone() const;
  /// This tensor converted to `dtype`, or the tensor itself if it already has that dtype. To i32, fractions are cut
  /// off, and all numbers must fit.
  Tensor to(Dtype dtype) const;

  /// How often the memory has been changed so far, through any of the tensors that share it.
  u64 version() const {
    check(defined(), "tensor", "is not defined");
    return storage_->version;
  }
  /// True when no other tensor shares the memory, so it may be overwritten. If a tensor of another thread shared it
  /// before, that thread has finished reading.
  bool sole_owner() const {
    const bool sole = storage_.use_count() == 1;
    std::atomic_thread_fence(std::memory_order_acquire);
    return sole;
  }
  bool shares_memory_with(const Tensor& other) const { return storage_ && storage_ == other.storage_; }
  /// True when an element of this tensor is also one of `other`. Two views of one memory need not have any in common.
  bool overlaps(const Tensor& other) const {
    return shares_memory_with(other) &&
           std::max(offset_, other.offset_) < std::min(offset_ + count_, other.offset_ + other.count_);
  }

 private:
  struct Storage {
    Storage() = default;
    explicit Storage(i64 bytes);
    ~Storage();
    Storage(const Storage&) = delete;
    Storage& operator=(const Storage&) = delete;
    void* memory = nullptr;
    u64 version = 0;
  };

  /// The number, in row-major order, of the element with these indices.
  i64 position(std::initializer_list<i64> index) const;
  void* address(Dtype expected) const;
  u64& storage_version();

  std::shared_ptr<Storage> storage_;
  Shape shape_;
  i64 count_ = 0;
  i64 offset_ = 0;  // in elements
  Dtype dtype_ = f32;
};

/// Error of `operation`: x is not defined.
inline void check_defined(const Tensor& x, std::string_view operation) {
  check(x.defined(), operation, "the tensor is not defined");
}

/// The sizes of x, for naming them:  const auto [B, T, D] = dims<3>(x, "x");
/// Error, which begins with `name`: x does not have N axes.
template <int N> std::array<i64, N> dims(const Tensor& x, std::string_view name) {
  check(x.defined(), name, "is not defined");
  check(x.rank() == N, name, "needs ", N, " axes, has shape ", x.shape());
  std::array<i64, N> sizes{};
  std::copy(x.shape().begin(), x.shape().end(), sizes.begin());
  return sizes;
}

/// The elements of an optional tensor; null if it is undefined.
template <class T> const T* data_or_null(const Tensor& x) { return x.defined() ? x.data<T>() : nullptr; }

/// Where the elements of x begin in memory; null if x is not defined.
const void* address_of(const Tensor& x);

/// True when shape, dtype and every bit are equal.
bool same_bits(const Tensor& a, const Tensor& b);

/// Prints rows of numbers in brackets, with long axes shortened, then the shape and the dtype.
std::ostream& operator<<(std::ostream& out, const Tensor& x);

}  // namespace orrery
