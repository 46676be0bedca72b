// Chapter 5. Part: a member of a layer that can be replaced by a module of your own.
//
// The part names an interface, such as nn::Attention. Any module that derives from this interface can be assigned:
//   layer.self_attn = MyAttention(64, 4, rng);
// The part owns the module: it moves with the layer, is visited under the part's name, and is copied by `clone` if it
// has a `clone()` of its own. This costs one virtual call for each layer, not for each element.
#pragma once

#include <concepts>
#include <memory>
#include <utility>

#include "nn/module.h"

namespace orrery::nn {

/// The base of all parts: a module that stands for the one it holds.
class Replaceable : public Module {
 public:
  /// The module that is visited and printed instead of the part; null if there is none.
  virtual Module* module() = 0;
  /// Becomes a copy of `other`, a part of the same type. Errors: the module of `other` has no `clone()`.
  virtual void become_clone_of(Replaceable& other) = 0;
  void visit(Visitor& v) override {
    if (Module* const inner = module()) inner->visit(v);
  }
};

/// Holds any module that derives from `Interface`, or nothing.
template <class Interface> class Part : public Replaceable {
 public:
  Part() = default;
  template <std::derived_from<Interface> M>
  Part(M module) : clone_(&clone_of<M>), module_(std::make_unique<M>(std::move(module))) {}

  explicit operator bool() const { return module_ != nullptr; }
  /// The module; the part must hold one.
  const Interface& operator*() const { return *module_; }
  Interface* operator->() { return module_.get(); }
  const Interface* operator->() const { return module_.get(); }
  /// Calls the module; the part must hold one.
  template <class... X> decltype(auto) operator()(X&&... x) const {
    return std::as_const(*module_)(std::forward<X>(x)...);
  }
  /// The module, if it is an M; else null.
  template <class M> M* get_if() const { return dynamic_cast<M*>(module_.get()); }
  /// The module as an M. Error: the part holds another module, or none.
  template <class M> M& as() const {
    M* const module = get_if<M>();
    check(module != nullptr, "part", "holds ", module_ ? type_name(*module_) : "nothing", ", not ",
          type_name(typeid(M)));
    return *module;
  }

  Module* module() override { return module_.get(); }
  /// Error: the module has no clone().
  Part clone() const {
    Part copy;
    if (module_) {
      copy.module_ = clone_(*module_);
      copy.clone_ = clone_;
    }
    return copy;
  }
  void become_clone_of(Replaceable& other) override { *this = dynamic_cast<Part&>(other).clone(); }

 private:
  template <class M> static std::unique_ptr<Interface> clone_of(Interface& module) {
    if constexpr (requires(M & m) {
                    { m.clone() } -> std::same_as<M>;
                  }) {
      auto copy = std::make_unique<M>(static_cast<M&>(module).clone());
      freeze_like(module, *copy);
      return copy;
    } else {
      fail("clone", type_name(module), " has no clone()");
    }
  }

  std::unique_ptr<Interface> (*clone_)(Interface&) = nullptr;
  // Declared last, so that it is move-assigned last: the new module may be a part of the old one, which must live until
  // then, as in part = std::move(part.as<LowRank>().base).
  std::unique_ptr<Interface> module_;
};

/// Replaces the parts of `into` by copies of those of `from`. Both modules must be built in the same way.
void clone_parts(Module& from, Module& into);

/// For the `clone` of a module: gives `copy`, which was built in the same way, the parts, ties, dtype and values of
/// `original`, freezes the same parameters, and returns it. Everything else, such as a Dropout's p or a norm's eps,
/// stays as it was built.
template <class M> M cloned(M& original, M copy) {
  clone_parts(original, copy);
  tie_like(original, copy);
  const Parameters parameters = original.parameters();
  if (!parameters.empty()) to(copy, parameters.front().value.dtype());
  copy_parameters(original, copy);
  freeze_like(original, copy);
  copy.name_parameters();
  return copy;
}

}  // namespace orrery::nn
