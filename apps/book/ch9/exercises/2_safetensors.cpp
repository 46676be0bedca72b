// Chapter 9. Exercise 9.2: a safetensors file of your own.
//
// Return the bytes of a file that holds these tensors of f32, in the order of the map, without metadata: eight bytes
// with the length N of the header, the lowest first; N bytes of JSON, with spaces behind it until the data begin at a
// multiple of 8; then the numbers as they are in memory. An entry has dtype, shape and data_offsets, in this order; the
// text shows such a header. Names need no escapes.
// Grade it:  apps/run exercise 9.2
#include <map>
#include <sstream>
#include <string>

#include "core/tensor_ops.h"

using namespace orrery;

std::string my_file(const std::map<std::string, Tensor>& tensors) {
  std::ostringstream header;
  header << "{";
  for (const auto& [name, x] : tensors) {
    header << '"' << name << "\":{\"dtype\":\"F32\"}";  // YOUR CODE: and what else?
  }
  header << "}";
  return header.str();
}
