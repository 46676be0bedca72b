// Chapter 5. Part: copying the parts of a module.
#include "nn/part.h"

namespace orrery::nn {
namespace {

// The outermost parts of a module; parts inside them are copied along.
class PartCollector : public Visitor {
 public:
  std::vector<Replaceable*> parts;

 private:
  void on_parameter(const std::string&, Variable&) override {}
  bool enters(Replaceable& part) override {
    parts.push_back(&part);
    return false;
  }
};

std::vector<Replaceable*> parts_of(Module& module) {
  PartCollector collector;
  module.visit(collector);
  return std::move(collector.parts);
}

}  // namespace

void clone_parts(Module& from, Module& into) {
  const std::vector<Replaceable*> originals = parts_of(from), places = parts_of(into);
  check(originals.size() == places.size(), "clone", "the modules have ", originals.size(), " and ", places.size(),
        " parts");
  for (size_t i = 0; i < places.size(); ++i) places[i]->become_clone_of(*originals[i]);
}

}  // namespace orrery::nn
