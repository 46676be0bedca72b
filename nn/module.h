// Chapter 5. Module: a layer as a plain value that can name its parts.
//
// `visit` names every parameter, buffer and child module once. Everything else is built on it: the list of parameters
// for an optimiser, counts, conversion to f64, files, and errors that say where. What files of PyTorch or of GPT-2 call
// the same things is a table of nn/files/names.cpp.
//   struct FeedForward : Module {
//     Linear linear1, linear2;
//     void visit(Visitor& v) override { v("linear1", linear1); v("linear2", linear2); }
//   };
// What a layer needs and does not learn is a buffer, a Tensor that `visit` names: v("mean", mean). Files hold it with
// the parameters. `v.derived("table", table)` says of one that it is computed again, so that files need not hold it.
// A Module can be moved but not copied. A copy would share its weights with the original, so two layers that look
// independent would learn the same.
// Read next: nn/pass.h
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

#include "autograd/variable.h"

namespace orrery::nn {

class Module;
class Replaceable;

/// `visit` calls this for each part. Undefined parts (such as a bias that is switched off) are skipped.
class Visitor {
 public:
  virtual ~Visitor() = default;
  /// Error: it is defined and no parameter.
  void operator()(std::string_view name, Variable& parameter);
  void operator()(std::string_view name, Tensor& buffer);
  /// A buffer that the constructor computes from its arguments, such as the filters of a mel spectrogram. `save` does
  /// not write it, and `load` passes over it; otherwise it is like any other buffer.
  void derived(std::string_view name, Tensor& buffer);
  void operator()(std::string_view name, Module& child);
  template <class M> void operator()(std::string_view name, std::vector<M>& children) {
    for (size_t i = 0; i < children.size(); ++i) (*this)(std::string(name) + "." + std::to_string(i), children[i]);
  }
  template <class M> void operator()(std::string_view name, std::optional<M>& child) {
    if (child) (*this)(name, *child);
  }
  /// A child whose parts stand under this module's own name, without a prefix.
  void inlined(Module& child);

 protected:
  virtual void on_parameter(const std::string& path, Variable& parameter) = 0;
  virtual void on_buffer(const std::string&, Tensor&) {}
  virtual void on_derived(const std::string& path, Tensor& buffer) { on_buffer(path, buffer); }
  virtual void enter(const std::string& path, Module& child);
  virtual void leave() {}
  /// False for a part (nn/part.h) whose inside is not to be visited.
  virtual bool enters(Replaceable&) { return true; }

 private:
  std::string path_of(std::string_view name) const;
  Module* visited(Module& child);
  void walk(Module& module, const std::string& prefix);
  std::string prefix_;
};

/// The base of every layer.
class Module {
 public:
  Module() = default;
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;
  virtual ~Module() = default;

  /// Names each parameter, buffer and child once.
  virtual void visit(Visitor& visitor) = 0;
  /// The family of models whose names files use for these: a table of nn/files/names.h.
  virtual std::string_view family() const { return "pytorch"; }

  /// Every parameter once, in the order of `visit`. A tied parameter (one that is used in several places) has its first
  /// name only. Also gives its name to each parameter that has none yet, for error messages.
  Parameters parameters();
  /// Names every parameter as seen from this module. A model calls this at the end of its construction. The names of
  /// its parts then become full ones, such as "encoder.layers.0.norm1.weight".
  void name_parameters();
  /// Every name with its parameter, a tied parameter under each of its names. Buffers are not included.
  Parameters named_parameters();
  /// A tensor that a module needs and does not learn, of any dtype. If it is floating, it is converted with the
  /// parameters. Files hold it unless it is derived.
  struct NamedBuffer {
    std::string name;
    Tensor value;
    bool derived = false;
  };
  std::vector<NamedBuffer> buffers();
  /// The number of elements of all parameters. A tied parameter counts once.
  i64 parameter_count();
};

/// "orrery::nn::EncoderLayer" as "EncoderLayer".
std::string type_name(const Module& module);
std::string type_name(const std::type_info& type);
/// Converts every parameter and buffer in place; tied parameters stay tied. Gradients are forgotten, and an optimiser
/// that was made before must be made again.
void to(Module& module, Dtype dtype);
/// From now on the parameters of the module stay as they are: operations take them for constants, so that backward
/// computes nothing for them, and nothing at all before the first parameter that still learns. Optimisers skip them,
/// those that exist already too. Names, counts and files stay as they are; a copy is frozen like the original. A tied
/// parameter is frozen wherever it is used. Gradients of parameters that are frozen or unfrozen here are dropped.
///   nn::freeze(model), nn::unfreeze(model.final_norm);
void freeze(Module& module);
void unfreeze(Module& module);
/// Freezes the parameters of `copy` that are frozen in `original`, which has the same names in the same order, and
/// unfreezes the others. Errors, before anything changes: a count or a name differs.
void freeze_like(Module& original, Module& copy);
/// Ties the parameters of `copy` as those of `original` are, which has the same names in the same order.
void tie_like(Module& original, Module& copy);
/// Copies the values of all parameters and buffers of `from` to those of the same names in `into`, converted to their
/// dtypes. Errors: a count, a name or a shape differs; parameters that are tied in `into` differ in `from`. After an
/// error some may already be copied.
void copy_parameters(Module& from, Module& into);
/// Prints the tree of parts with shapes and counts.
std::ostream& operator<<(std::ostream& out, Module& module);

}  // namespace orrery::nn
