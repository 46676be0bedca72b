// Chapter 5. Part: a place in a layer where a user puts a module of their own.
//
// A layer says what it asks of a part, an interface such as nn::Attention; whatever derives from it can be put there:
//   layer.self_attn = MyAttention(64, 4, rng);
// The part owns it as a value: it moves with the layer, is visited under the part's name, and is copied by `clone` if
// it has a `clone()` of its own. One virtual call is made for each layer, not for each element.
// Serves: nn/layers/linear.h
#pragma once

#include <concepts>
#include <memory>
#include <utility>

#include "nn/module.h"

namespace orrery::nn {

/// What every part has in common: it stands for the module that it holds.
class Replaceable : public Module {
 public:
  /// The module that is visited and shown in its place; null if there is none.
  virtual Module* module() = 0;
  /// Becomes a copy of `other`, a part of the same type. Errors: what stands there has no `clone()`.
  virtual void become_clone_of(Replaceable& other) = 0;
  void visit(Visitor& v) override {
    if (Module* const inner = module()) inner->visit(v);
  }
};

/// Holds any module that derives from `Interface`, or nothing.
template <class Interface>
class Part : public Replaceable {
 public:
  Part() = default;
  template <std::derived_from<Interface> M>
  Part(M module) : clone_(&clone_of<M>), module_(std::make_unique<M>(std::move(module))) {}

  explicit operator bool() const { return module_ != nullptr; }
  const Interface& operator*() const { return *module_; }
  Interface* operator->() { return module_.get(); }
  const Interface* operator->() const { return module_.get(); }
  /// Calls what it holds.
  template <class... X>
  decltype(auto) operator()(X&&... x) const {
    return (*std::as_const(module_))(std::forward<X>(x)...);
  }
  /// What it holds, if that is an M; else null.
  template <class M>
  M* get_if() const {
    return dynamic_cast<M*>(module_.get());
  }
  /// What it holds, which must be an M.
  template <class M>
  M& as() const {
    M* const module = get_if<M>();
    check(module != nullptr, "part", "holds ", module_ ? type_name(*module_) : "nothing", ", not what was asked for");
    return *module;
  }

  Module* module() override { return module_.get(); }
  Part clone() const {
    Part copy;
    if (module_) copy.module_ = clone_(*module_), copy.clone_ = clone_;
    return copy;
  }
  void become_clone_of(Replaceable& other) override { *this = dynamic_cast<Part&>(other).clone(); }

 private:
  template <class M>
  static std::unique_ptr<Interface> clone_of(Interface& module) {
    if constexpr (requires(M & m) {
                    { m.clone() } -> std::same_as<M>;
                  })
      return std::make_unique<M>(static_cast<M&>(module).clone());
    else
      fail("clone", type_name(module), " has no clone()");
  }

  std::unique_ptr<Interface> (*clone_)(Interface&) = nullptr;
  std::unique_ptr<Interface> module_;  // the last to move: what is assigned may stand inside what it replaces
};

/// Puts copies of the parts of `from` into `into`, a module built alike.
void clone_parts(Module& from, Module& into);

/// For the `clone` of a module: `copy`, built like `original` from other numbers, with its parts, dtype and values.
template <class M>
M cloned(M& original, M copy) {
  clone_parts(original, copy);
  const Parameters parameters = original.parameters();
  if (!parameters.empty()) to(copy, parameters.front().value.dtype());
  copy_parameters(original, copy);
  return copy;
}

}  // namespace orrery::nn
