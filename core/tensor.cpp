// Chapter 1. Tensor: ownership, views and conversion.
#include "core/tensor.h"

#include <cstring>
#include <new>

#include "core/machine/memory.h"
#include "core/machine/parallel.h"

namespace orrery {
namespace {
void check_exists(const Tensor& x) { check(x.defined(), "tensor", "is not defined"); }
}  // namespace

Tensor::Storage::Storage(i64 bytes) : memory(allocate(static_cast<size_t>(bytes))) {}
Tensor::Storage::~Storage() { deallocate(memory); }

Tensor Tensor::empty(const Shape& shape, Dtype dtype) {
  Tensor result;
  result.shape_ = shape;
  result.count_ = shape.count();
  result.dtype_ = dtype;
  i64 bytes = 0;
  const bool sizes_known = std::all_of(shape.begin(), shape.end(), [](i64 size) { return size >= 0; });
  check(sizes_known && !__builtin_mul_overflow(result.count_, bytes_of(dtype), &bytes), "tensor", "cannot have shape ",
        shape);
  // A single number is part of the storage: one allocation instead of two.
  struct Number : Storage {
    Number() { memory = element; }
    ~Number() { memory = nullptr; }
    alignas(i64) std::byte element[sizeof(i64)];
  };
  try {
    if (result.count_ == 1)
      result.storage_ = std::make_shared<Number>();
    else
      result.storage_ = std::make_shared<Storage>(bytes);
  } catch (const MemoryLimitReached&) {
    fail("tensor", "shape ", shape, " of ", dtype, " takes ", bytes, " bytes, more than is left of the ",
         memory_counters().limit_bytes, " bytes that tensors may take (limit_memory, --max-memory)");
  } catch (const std::bad_alloc&) {
    fail("tensor", "shape ", shape, " of ", dtype, " takes ", bytes, " bytes, more than the system can provide");
  }
  return result;
}

Tensor Tensor::outline(const Shape& shape, Dtype dtype) {
  Tensor result;
  result.shape_ = shape;
  result.count_ = shape.count();
  result.dtype_ = dtype;
  result.storage_ = std::make_shared<Storage>();
  return result;
}

template <HasDtype T> Tensor Tensor::of(const Shape& shape, const std::vector<T>& elements) {
  Tensor result = empty(shape, dtype_of<T>);
  check(result.count() == static_cast<i64>(elements.size()), "tensor", "shape ", shape, " needs ", result.count(),
        " elements, got ", elements.size());
  std::copy(elements.begin(), elements.end(), result.write<T>());
  return result;
}
template Tensor Tensor::of(const Shape&, const std::vector<float>&);
template Tensor Tensor::of(const Shape&, const std::vector<double>&);
template Tensor Tensor::of(const Shape&, const std::vector<i32>&);

void* Tensor::address(Dtype expected) const {
  check_exists(*this);
  check(dtype_ == expected, "tensor", "holds ", dtype_, ", was read as ", expected);
  check(storage_->memory != nullptr || count_ == 0, "tensor", "is an outline: it has a shape, but no elements");
  return static_cast<std::byte*>(storage_->memory) + offset_ * bytes_of(dtype_);
}

u64& Tensor::storage_version() {
  check_exists(*this);
  return storage_->version;
}

double Tensor::at(i64 i) const {
  check_exists(*this);
  check(i >= 0 && i < count_, "tensor", "element ", i, " is out of range for shape ", shape_);
  return dispatch(dtype_, [&](auto t) { return static_cast<double>(data<decltype(t)>()[i]); });
}

double Tensor::item() const {
  check_defined(*this, "item");
  check(count_ == 1, "item", "needs exactly one element, has shape ", shape_);
  return at(0);
}

void Tensor::set(i64 i, double value) {
  check_exists(*this);
  check(i >= 0 && i < count_, "tensor", "element ", i, " is out of range for shape ", shape_);
  check_fits(value, dtype_);
  dispatch(dtype_, [&](auto t) { write<decltype(t)>()[i] = static_cast<decltype(t)>(value); });
}

i64 Tensor::position(std::initializer_list<i64> index) const {
  check_exists(*this);
  check(static_cast<int>(index.size()) == rank(), "tensor", "an element of shape ", shape_, " needs ", rank(),
        " indices, got ", index.size());
  i64 result = 0;
  int axis = 0;
  for (const i64 i : index) {
    const i64 size = shape_[axis];
    check(i >= -size && i < size, "tensor", "index ", i, " is out of range for axis ", axis, " of shape ", shape_);
    result = result * size + (i < 0 ? i + size : i);
    ++axis;
  }
  return result;
}

Tensor Tensor::reshape(const Shape& shape) const {
  check_defined(*this, "reshape");
  Tensor result = *this;
  result.shape_ = infer(shape, count_, "reshape");
  check(result.shape_.count() == count_, "reshape", "cannot make ", result.shape_, " of ", shape_);
  return result;
}

Tensor Tensor::rows(i64 begin, i64 end) const {
  check(defined() && rank() >= 1, "rows", "needs at least one axis");
  check(begin >= 0 && begin <= end && end <= size(0), "rows", "[", begin, ", ", end, ") is out of range for ", shape_);
  Tensor result = *this;
  const i64 row = size(0) == 0 ? 0 : count_ / size(0);
  result.shape_ = shape_.with(0, end - begin);
  result.count_ = row * (end - begin);
  result.offset_ += row * begin;
  return result;
}

Tensor Tensor::clone() const {
  Tensor result = empty(shape_, dtype_);
  const i64 size = bytes_of(dtype_);
  dispatch(dtype_, [&](auto t) {
    using T = decltype(t);
    const T* from = data<T>();
    T* to = result.write<T>();
    parallel_for(count_, 4 * elementwise_grain, [=](i64 begin, i64 end) {
      std::memcpy(to + begin, from + begin, static_cast<size_t>((end - begin) * size));
    });
  });
  return result;
}

Tensor Tensor::to(Dtype dtype) const {
  check_defined(*this, "to");
  if (dtype == dtype_) return *this;
  for (i64 i = 0; dtype == Dtype::i32 && i < count_; ++i) check_fits(at(i), dtype);
  Tensor result = empty(shape_, dtype);
  dispatch(dtype_, [&](auto from_type) {
    dispatch(dtype, [&](auto to_type) {
      const auto* from = data<decltype(from_type)>();
      auto* to = result.write<decltype(to_type)>();
      parallel_for(count_, elementwise_grain, [=](i64 begin, i64 end) {
        for (i64 i = begin; i < end; ++i) to[i] = static_cast<decltype(to_type)>(from[i]);
      });
    });
  });
  return result;
}

const void* address_of(const Tensor& x) {
  if (!x.defined()) return nullptr;
  return dispatch(x.dtype(), [&](auto t) { return static_cast<const void*>(x.data<decltype(t)>()); });
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  return dispatch(a.dtype(), [&](auto t) {
    using T = decltype(t);
    return std::memcmp(a.data<T>(), b.data<T>(), static_cast<size_t>(a.bytes())) == 0;
  });
}

}  // namespace orrery
