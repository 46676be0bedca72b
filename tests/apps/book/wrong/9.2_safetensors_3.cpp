// Chapter 9. A wrong answer to exercise 9.2: no spaces follow the header.
// Expect: FAILED  the data begin at a multiple of 8
#include <map>
#include <sstream>
#include <string>

#include "core/tensor_ops.h"

using namespace orrery;

std::string my_file(const std::map<std::string, Tensor>& tensors) {
  std::ostringstream header;
  std::string data;
  for (const auto& [name, x] : tensors) {
    header << (data.empty() ? "{" : ",") << '"' << name << "\":{\"dtype\":\"F32\",\"shape\":[";
    for (int axis = 0; axis < x.rank(); ++axis) header << (axis == 0 ? "" : ",") << x.size(axis);
    header << "],\"data_offsets\":[" << data.size() << ',';
    data.append(reinterpret_cast<const char*>(x.data<float>()), static_cast<size_t>(x.bytes()));
    header << data.size() << "]}";
  }
  std::string text = header.str() + "}", file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(u64{text.size()} >> 8 * i & 0xFF);
  return file + text + data;
}
