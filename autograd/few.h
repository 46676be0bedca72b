// Chapter 2. Few: the inputs and outputs of a node, which mostly are so few that they fit into the node itself.
#pragma once

#include <array>
#include <memory>

namespace orrery {

/// A list whose length is set once. Up to `inside` elements are part of the list itself: most nodes have so few inputs
/// and outputs that they take one allocation in all.
template <class T, size_t inside> class Few {
 public:
  /// Makes the list n new elements long.
  void resize(size_t n) {
    clear();
    if (n > inside) many_ = std::make_unique<T[]>(n);
    size_ = n;
  }
  void clear() {
    for (T& element : *this) element = T();
    many_.reset();
    size_ = 0;
  }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return many_ ? many_.get() : few_.data(); }
  T* end() { return begin() + size_; }
  const T* begin() const { return many_ ? many_.get() : few_.data(); }
  const T* end() const { return begin() + size_; }
  T& operator[](size_t i) { return begin()[i]; }
  const T& operator[](size_t i) const { return begin()[i]; }

 private:
  std::array<T, inside> few_{};
  std::unique_ptr<T[]> many_;
  size_t size_ = 0;
};

}  // namespace orrery
