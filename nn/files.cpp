// Chapter 9. Models in files: comparing what a file holds with what a model needs.
//
// Read next: nn/proof.cpp
#include "nn/files.h"

#include <map>
#include <sstream>

#include "core/safetensors_header.h"
#include "core/tensor_ops.h"

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

void check_fits(const Parameters& parameters, const TensorMap& tensors, const std::string& operation) {
  std::vector<std::string> missing, unexpected, misshapen;
  TensorMap left = tensors;
  for (const NamedParameter& p : parameters) {
    const auto found = tensors.find(p.name);
    left.erase(p.name);
    if (found == tensors.end()) {
      missing.push_back(p.name);
    } else if (found->second.shape() != p.value.shape() || !is_floating(found->second.dtype())) {
      std::ostringstream text;
      text << p.name << " is " << found->second.dtype() << ' ' << found->second.shape() << " in the file, "
           << p.value.dtype() << ' ' << p.value.shape() << " in the model";
      misshapen.push_back(text.str());
    }
  }
  for (const auto& [name, tensor] : left) unexpected.push_back(printable(name));
  check(missing.empty() && unexpected.empty() && misshapen.empty(), operation, "the file does not fit the model",
        listed(missing, "missing"), listed(unexpected, "unexpected"), listed(misshapen, "of another shape"));
}

// Names of one parameter must stand for the same numbers.
void check_tied(const Parameters& parameters, const TensorMap& tensors, const std::string& operation) {
  std::map<const Node*, std::string> first_name;
  for (const NamedParameter& p : parameters) {
    const std::string& first = first_name.emplace(p.value.node().get(), p.name).first->second;
    check(same_bits(tensors.at(first), tensors.at(p.name)), operation, first, " and ", p.name,
          " are one parameter in the model, and differ in the file");
  }
}

}  // namespace

void save(Module& module, const std::string& path, const Metadata& metadata) {
  TensorMap tensors;
  for (const NamedParameter& p : module.named_parameters()) {
    check(tensors.emplace(p.name, p.value.value()).second, "save", "two parameters are named ", p.name);
  }
  write_safetensors(path, tensors, metadata);
}

Metadata load(Module& module, const std::string& path) {
  const std::string operation = "load " + path;
  TensorFile file = read_safetensors(path);
  Parameters parameters = module.named_parameters();
  check_fits(parameters, file.tensors, operation);
  check_tied(parameters, file.tensors, operation);
  for (NamedParameter& p : parameters) copy_into(p.value.mutable_value(), file.tensors.at(p.name).to(p.value.dtype()));
  return std::move(file.metadata);
}

}  // namespace orrery::nn
