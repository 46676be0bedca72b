// Chapter 9. Models in files: comparing what a file holds with what a model needs.
#include "nn/files/files.h"

#include <map>
#include <set>
#include <sstream>

#include "autograd/node.h"
#include "core/files/safetensors_header.h"
#include "core/files/shards.h"
#include "core/tensor_ops.h"
#include "nn/files/names.h"

namespace orrery::nn {
namespace {

// "; 7 missing: a, b, c, d, e, ..." or nothing for an empty list.
std::string listed(const std::vector<std::string>& items, std::string_view what) {
  constexpr size_t most = 5;
  if (items.empty()) return "";
  std::ostringstream text;
  text << "; " << items.size() << ' ' << what << ": ";
  for (size_t i = 0; i < std::min(most, items.size()); ++i) text << (i == 0 ? "" : ", ") << items[i];
  if (items.size() > most) text << ", ...";
  return text.str();
}

// A parameter or buffer as it is stored in files.
struct Stored {
  std::string name;
  Tensor value;          // the model's own
  const void* identity;  // what has several names has one identity
  bool transposed = false;

  Shape shape() const { return transposed ? Shape{value.size(1), value.size(0)} : value.shape(); }
  // Integers have no precision to lose: a token id that was stored as a float is a mistake.
  bool takes(Dtype dtype) const { return dtype == value.dtype() || (is_floating(dtype) && is_floating(value.dtype())); }
  // From the layout in memory to that in files, or back.
  Tensor turned(const Tensor& x) const { return transposed ? permute(x, {1, 0}) : x; }
};

class StoredParameters : public Visitor {
 public:
  std::vector<Stored> list;

 private:
  void on_parameter(const std::string& path, Variable& p) override {
    list.push_back({path, p.value(), p.node().get()});
  }
  void on_transposed(const std::string& path, Variable& p) override {
    list.push_back({path, p.value(), p.node().get(), true});
  }
  void on_buffer(const std::string& path, Tensor& b) override { list.push_back({path, b, address_of(b)}); }
  void on_derived(const std::string&, Tensor&) override {}
};

std::vector<Stored> stored_parameters(Module& module) {
  StoredParameters parameters;
  module.visit(parameters);
  return std::move(parameters.list);
}

void check_fits(const std::vector<Stored>& parameters, const TensorMap& tensors, const std::string& operation) {
  std::vector<std::string> missing, unexpected, misshapen;
  TensorMap left = tensors;
  for (const Stored& p : parameters) {
    const auto found = tensors.find(p.name);
    left.erase(p.name);
    if (found == tensors.end()) {
      missing.push_back(p.name);
    } else if (found->second.shape() != p.shape() || !p.takes(found->second.dtype())) {
      std::ostringstream text;
      text << p.name << " is " << found->second.dtype() << ' ' << found->second.shape() << " in the file, "
           << p.value.dtype() << ' ' << p.shape() << " in the model";
      misshapen.push_back(text.str());
    }
  }
  for (const auto& [name, tensor] : left) unexpected.push_back(printable(name));
  check(missing.empty() && unexpected.empty() && misshapen.empty(), operation, "the file does not fit the model",
        listed(missing, "missing"), listed(unexpected, "unexpected"), listed(misshapen, "of another shape or dtype"));
}

// Errors: a tied parameter, or a shared buffer, whose names stand for different numbers in the file.
void check_tied(const std::vector<Stored>& parameters, const TensorMap& tensors, const std::string& operation) {
  std::map<const void*, const Stored*> first_name;
  for (const Stored& p : parameters) {
    const Stored& first = *first_name.emplace(p.identity, &p).first->second;
    if (&first == &p || first.value.shape() != p.value.shape()) continue;
    check(same_bits(first.turned(tensors.at(first.name)), p.turned(tensors.at(p.name))), operation, first.name, " and ",
          p.name, " are one parameter in the model, and differ in the file");
  }
}

}  // namespace

void save(Module& module, const std::string& path, const Metadata& metadata) {
  TensorMap tensors;
  for (const Stored& p : stored_parameters(module)) {
    check(tensors.emplace(p.name, p.turned(p.value)).second, "save", "two parameters are named ", p.name);
  }
  write_safetensors(path, tensors, metadata);
}

u64 saved_bytes(Module& module) {
  u64 bytes = 0;
  for (const Stored& p : stored_parameters(module))
    bytes += static_cast<u64>(p.value.count() * bytes_of(p.value.dtype()));
  return bytes;
}

Metadata load(Module& module, const std::string& path) {
  std::set<std::string> own, derived;
  for (const NamedParameter& parameter : module.named_parameters()) own.insert(parameter.name);
  for (const Module::NamedBuffer& buffer : module.buffers()) {
    own.insert(buffer.name);
    if (buffer.derived) derived.insert(buffer.name);
  }
  TensorFile file = read_named(path, {.known = [&](const std::string& name) { return own.contains(name); },
                                      .ignored = [&](const std::string& name) { return derived.contains(name); }});
  load(module, file.tensors, "load " + path);
  return std::move(file.metadata);
}

void load(Module& module, const TensorMap& given, const std::string& operation, WeightLayout layout) {
  TensorMap tensors = given;
  for (const Module::NamedBuffer& buffer : module.buffers())
    if (buffer.derived) tensors.erase(buffer.name);  // other programs may store what is computed again here
  std::vector<Stored> parameters = stored_parameters(module);
  if (layout == WeightLayout::out_in)
    for (Stored& p : parameters) p.transposed = false;
  check_fits(parameters, tensors, operation);
  check_tied(parameters, tensors, operation);
  std::vector<Tensor> values;  // all of them first: if memory runs out, the model is unchanged
  for (const Stored& p : parameters) values.push_back(p.turned(tensors.at(p.name)).to(p.value.dtype()));
  for (size_t i = 0; i < values.size(); ++i) copy_into(parameters[i].value, values[i]);
}

void check_size(i64 numbers, const std::string& path) {
  constexpr i64 fewest_bytes = 2;  // of a number in a file: F16 and BF16 have two
  constexpr i64 few = 1 << 20;     // this many numbers do no harm, even if the file lacks them
  const i64 most = static_cast<i64>(bytes_of_model(path)) / fewest_bytes;
  check(numbers <= most + few, "load " + path, "is too small for the model it describes: that has ", numbers,
        " numbers, the file at most ", most);
}

void check_size(const TransformerConfig& config, const std::string& path) {
  check_size(config.parameter_count(), path);
  if (config.positions == Positions::learned) return;  // then the tables are parameters
  constexpr double few_bytes = 1 << 28;                // tables of this size do no harm
  // The tables of sinusoids, for source and target.
  const double tables =
      2.0 * bytes_of(Dtype::f64) * static_cast<double>(config.max_len) * static_cast<double>(config.layer.d_model);
  check(tables <= few_bytes + static_cast<double>(bytes_of_model(path)), "load " + path,
        "is too small for the model it describes, whose sequences have up to ", config.max_len, " tokens");
}

TransformerConfig config_of(const Metadata& metadata, const std::string& path) {
  const std::string operation = "load " + path;
  const auto found = metadata.find(std::string(config_key));
  check(found != metadata.end(), operation, "has no configuration");
  return within(operation, [&] { return transformer_config(found->second); });
}

Transformer load_transformer(const std::string& path, const TransformerConfig& config) {
  config.validate();
  check_size(config, path);
  Rng zeros = Rng::of_zeros();
  Transformer model(config, zeros);
  load(model, path);
  return model;
}

}  // namespace orrery::nn
