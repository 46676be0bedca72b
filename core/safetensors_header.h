// Chapter 9. The header of a safetensors file: from text to checked entries.
//
// The JSON is read event by event into exactly the structure the format allows; the first thing that does not belong
// there ends the reading. So a hostile header can neither nest deeply nor grow in memory.
// Read next: core/safetensors_header.cpp
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/shape.h"

namespace orrery {

/// Where one tensor's elements stand: bytes [begin, end) after the header.
struct TensorEntry {
  std::string name;
  Dtype dtype = f32;
  Shape shape;
  u64 begin = 0, end = 0;
};

/// A parsed header. Entries are in the order of their offsets.
struct TensorHeader {
  std::vector<TensorEntry> entries;
  std::map<std::string, std::string> metadata;
};

/// The name of a dtype in files: "F32", "F64", "I32".
std::string_view file_dtype(Dtype dtype);

/// Parses the header `text`, followed by `data_bytes` bytes of elements. Errors, of `operation`: anything but the
/// structure that the format describes; names that appear twice; offsets that leave a gap, overlap, do not fit shape
/// and dtype, or do not end with the file.
TensorHeader parse_header(std::string_view text, u64 data_bytes, const std::string& operation);

/// `name` in quotes for a message: control characters replaced, long names cut.
std::string printable(std::string_view name);

}  // namespace orrery
