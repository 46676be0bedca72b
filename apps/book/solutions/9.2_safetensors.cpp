// Chapter 9. Solution of exercise 9.2: a safetensors file of your own.
//
// Return the bytes of a file that holds these tensors of f32, in the order of the map, without metadata: eight bytes
// with the length N of the header, the lowest first; N bytes of JSON, with spaces behind it until the data begin at a
// multiple of 8; then the numbers as they are in memory. An entry has dtype, shape and data_offsets, in this order; the
// text shows such a header. Names need no escapes.
#include <map>
#include <sstream>
#include <string>

#include "core/tensor_ops.h"

using namespace orrery;

std::string my_file(const std::map<std::string, Tensor>& tensors) {
  std::ostringstream header;
  std::string data, separator = "{";
  for (const auto& [name, x] : tensors) {
    header << separator << '"' << name << "\":{\"dtype\":\"F32\",\"shape\":[";
    separator = ",";
    for (int axis = 0; axis < x.rank(); ++axis) header << (axis == 0 ? "" : ",") << x.size(axis);
    header << "],\"data_offsets\":[" << data.size() << ',';
    data.append(reinterpret_cast<const char*>(x.data<float>()), static_cast<size_t>(x.bytes()));
    header << data.size() << "]}";
  }
  std::string text = (tensors.empty() ? "{" : header.str()) + "}", file;
  text.resize((text.size() + 7) / 8 * 8, ' ');
  for (int i = 0; i < 8; ++i) file += static_cast<char>(u64{text.size()} >> 8 * i & 0xFF);
  return file + text + data;
}
