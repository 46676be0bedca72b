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

// A tensor of a file, and the part of the model's memory that it is for.
struct Stored {
  std::string name, own_name;  // in files of the family, and the model's
  Tensor value;                // a parameter or buffer, or some of its rows
  const void* identity;        // what has several names has one identity
  bool transposed = false;
  i64 first_row = 0, rows_of_all = 0;  // which rows of what has its own name, if files hold it in parts

  Shape shape() const { return transposed ? Shape{value.size(1), value.size(0)} : value.shape(); }
  // Integers have no precision to lose: a token id that was stored as a float is a mistake.
  bool takes(const Tensor& x) const {
    const bool same_kind = x.dtype() == value.dtype() || (is_floating(x.dtype()) && is_floating(value.dtype()));
    return x.shape() == shape() && same_kind;
  }
  // From the layout in memory to that in files, or back.
  Tensor turned(const Tensor& x) const { return transposed ? permute(x, {1, 0}) : x; }
};

// What files of the module's family hold, in the order of `visit`.
class StoredTensors : public Visitor {
 public:
  StoredTensors(const Family& family, std::string prefix) : family_(family), prefix_(std::move(prefix)) {}
  std::vector<Stored> list;
  std::set<std::string> derived;

 private:
  void add(const std::string& path, const Tensor& value, const void* identity) {
    const NameOnDisk on_disk = family_.on_disk(path);
    const i64 parts = std::ssize(on_disk.names);
    if (parts == 1) {
      list.push_back(
          {prefix_ + on_disk.names[0], prefix_ + path, value, identity, on_disk.transposed && value.rank() == 2});
      return;
    }
    check(value.rank() > 0 && value.size(0) % parts == 0, "names on disk", path, " of shape ", value.shape(),
          " has no ", parts, " equal parts");
    const i64 rows = value.size(0) / parts;
    for (i64 i = 0; i < parts; ++i) {
      const Tensor part = value.rows(i * rows, (i + 1) * rows);
      list.push_back({prefix_ + on_disk.names[static_cast<size_t>(i)], prefix_ + path, part, address_of(part), false,
                      i * rows, value.size(0)});
    }
  }
  void on_parameter(const std::string& path, Variable& p) override { add(path, p.value(), p.node().get()); }
  void on_buffer(const std::string& path, Tensor& b) override { add(path, b, address_of(b)); }
  void on_derived(const std::string& path, Tensor&) override {
    derived.insert(prefix_ + family_.on_disk(path).names[0]);
  }
  const Family& family_;
  std::string prefix_;
};

StoredTensors stored_tensors(Module& module, const std::string& prefix = {}) {
  StoredTensors stored(family(module.family()), prefix);
  module.visit(stored);
  return stored;
}

// A file may also have the model's own names and layout, as those of trainings do.
void take_own_names(std::vector<Stored>& parameters, TensorMap& tensors) {
  std::set<std::string> taken;
  for (Stored& p : parameters) {
    const auto own = tensors.find(p.own_name);
    if (tensors.contains(p.name) || own == tensors.end()) continue;
    const Tensor& all = own->second;
    if (p.rows_of_all > 0 && (all.rank() == 0 || all.size(0) != p.rows_of_all)) continue;  // it is left over
    tensors[p.name] = p.rows_of_all > 0 ? all.rows(p.first_row, p.first_row + p.value.size(0)) : all;
    p.transposed = false;
    taken.insert(p.own_name);
  }
  for (const std::string& name : taken) tensors.erase(name);
}

// Some programs store all weights as [out, in], as files of trainings do. The first one that is not square decides for
// all. Error: none decides, and nothing but the prefix says what file it is: it may be a training's or a model's.
void find_layout(std::vector<Stored>& parameters, const TensorMap& tensors, const std::string& operation,
                 const std::string& prefix) {
  const Stored* square = nullptr;
  for (const Stored& p : parameters) {
    const auto found = tensors.find(p.name);
    if (!p.transposed || found == tensors.end()) continue;
    const bool as_in_memory = found->second.shape() == p.value.shape(), as_on_disk = found->second.shape() == p.shape();
    if (as_in_memory && as_on_disk) square = &p;
    if (as_in_memory == as_on_disk) continue;
    if (as_in_memory)
      for (Stored& each : parameters) each.transposed = false;
    return;
  }
  check(!square || prefix.empty(), operation, square ? square->name : "",
        " is square, and no other weight of the file shows whether its rows are outputs or inputs");
}

// What fits is left in `parameters` and `tensors`. Error, unless the load is partial: anything does not.
Loaded leave_what_fits(std::vector<Stored>& parameters, TensorMap& tensors, const std::string& operation,
                       const LoadOptions& options) {
  Loaded result;
  std::vector<std::string> misshapen;
  std::set<std::string> own;
  TensorMap fitting;
  std::vector<Stored> found;
  for (const Stored& p : parameters) {
    own.insert(p.name);
    const auto there = tensors.find(p.name);
    if (there == tensors.end()) {
      result.missing.push_back(p.name);
    } else if (!p.takes(there->second)) {
      std::ostringstream text;
      text << p.name << " is " << there->second.dtype() << ' ' << there->second.shape() << " in the file, "
           << p.value.dtype() << ' ' << p.shape() << " in the model";
      misshapen.push_back(text.str());
      if (options.partial) result.missing.push_back(p.name);
    } else {
      fitting[p.name] = there->second;
      found.push_back(p);
    }
  }
  for (const auto& [name, tensor] : tensors)
    if (!fitting.contains(name) && name.starts_with(options.prefix) && (options.partial || !own.contains(name)))
      result.left_over.push_back(name);
  std::vector<std::string> unexpected;
  for (const std::string& name : result.left_over) unexpected.push_back(printable(name));
  const bool fits = options.partial ? !found.empty() || parameters.empty()
                                    : result.missing.empty() && unexpected.empty() && misshapen.empty();
  check(fits, operation, options.partial ? "nothing in the file fits the model" : "the file does not fit the model",
        listed(result.missing, "missing"), listed(unexpected, "unexpected"),
        listed(misshapen, "of another shape or dtype"));
  parameters = std::move(found);
  tensors = std::move(fitting);
  return result;
}

// A tensor that a file of the family may repeat under a second name, such as the head of a model whose head is the
// embedding, is dropped unless the model has it. Error: the two differ.
void drop_copies(const Family& family, const std::string& prefix, const std::vector<Stored>& parameters,
                 TensorMap& tensors, const std::string& operation) {
  for (const NamePattern& row : family.patterns) {
    if (row.mark != NamePattern::copy) continue;
    const std::string name = prefix + std::string(row.on_disk[0]),
                      original = prefix + family.on_disk(std::string(row.in_memory)).names[0];
    const auto copy = tensors.find(name), first = tensors.find(original);
    const bool is_own =
        std::any_of(parameters.begin(), parameters.end(), [&](const Stored& p) { return p.name == name; });
    if (is_own || copy == tensors.end() || first == tensors.end() || !first->second.defined()) continue;
    check(same_bits(copy->second, first->second), operation, name, " and ", original,
          " are one parameter in the model, and differ in the file");
    tensors.erase(copy);
  }
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

TensorMap tensors_on_disk(Module& module) {
  TensorMap tensors;
  const Family& names = family(module.family());
  const std::vector<Stored> list = stored_tensors(module).list;
  const auto is_of_head = [&](const Stored& p) { return names.marks(p.name, NamePattern::head); };
  const std::string prefix(std::any_of(list.begin(), list.end(), is_of_head) ? names.prefix : "");
  for (const Stored& p : list)
    check(tensors.emplace((is_of_head(p) ? "" : prefix) + p.name, p.turned(p.value)).second, "save",
          "two parameters are named ", p.name);
  return tensors;
}

void save(Module& module, const std::string& path, const Metadata& metadata) {
  write_safetensors(path, tensors_on_disk(module), metadata);
}

u64 saved_bytes(Module& module) {
  u64 bytes = 0;
  for (const Stored& p : stored_tensors(module).list)
    bytes += static_cast<u64>(p.value.count() * bytes_of(p.value.dtype()));
  return bytes;
}

Loaded load(Module& module, const std::string& path, const LoadOptions& options) {
  const StoredTensors stored = stored_tensors(module, options.prefix);
  const Family& names = family(module.family());
  std::set<std::string> known = stored.derived;
  for (const Stored& p : stored.list) known.insert({p.name, p.own_name});
  for (const NamePattern& row : names.patterns)
    if (row.mark == NamePattern::copy) known.insert(options.prefix + std::string(row.on_disk[0]));
  TensorFile file = read_named(
      path, {.known = [&](const std::string& name) { return known.contains(name) || names.ignores(name); },
             .prefix = names.prefix,
             .ignored = [&](const std::string& name) { return stored.derived.contains(name) || names.ignores(name); }});
  Loaded result = load(module, std::move(file.tensors), "load " + path, options);
  result.metadata = std::move(file.metadata);
  return result;
}

Loaded load(Module& module, TensorMap tensors, const std::string& operation, const LoadOptions& options) {
  StoredTensors stored = stored_tensors(module, options.prefix);
  for (const std::string& name : stored.derived) tensors.erase(name);  // other programs may store them
  std::vector<Stored>& parameters = stored.list;
  drop_copies(family(module.family()), options.prefix, parameters, tensors, operation);
  take_own_names(parameters, tensors);
  find_layout(parameters, tensors, operation, options.prefix);
  const Loaded result = leave_what_fits(parameters, tensors, operation, options);
  check_tied(parameters, tensors, operation);
  std::vector<Tensor> values;  // all of them first: if memory runs out, the model is unchanged
  for (const Stored& p : parameters) values.push_back(p.turned(tensors.at(p.name)).to(p.value.dtype()));
  for (size_t i = 0; i < values.size(); ++i) copy_into(parameters[i].value, values[i]);
  return result;
}

void check_size(i64 numbers, const std::string& path) {
  constexpr i64 fewest_bytes = 2;  // of a number in a file: F16 and BF16 have two
  constexpr i64 few = 1 << 20;     // this many numbers do no harm, even if the file lacks them
  const i64 most = static_cast<i64>(bytes_of_model(path)) / fewest_bytes;
  check(numbers <= most + few, "load " + path, "is too small for the model it describes: that has ", numbers,
        " numbers, the file at most ", most);
}

void check_tables(double numbers, i64 max_len, const std::string& path) {
  constexpr double few_bytes = 1 << 28;  // tables of this size do no harm
  check(numbers * bytes_of(Dtype::f64) <= few_bytes + static_cast<double>(bytes_of_model(path)), "load " + path,
        "is too small for the model it describes, whose sequences have up to ", max_len, " tokens");
}

const std::string& config_text(const Metadata& metadata, const std::string& path) {
  const auto found = metadata.find(std::string(config_key));
  check(found != metadata.end(), "load " + path, "has no configuration");
  return found->second;
}

}  // namespace orrery::nn
