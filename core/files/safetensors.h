// Chapter 9. Tensors in files: the safetensors format, with checksums.
//
//   8 bytes    N, the header's length, little-endian
//   N bytes    JSON: {"weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
//                     "__metadata__": {...}}, then spaces
//   the rest   the tensors' elements, one after another without a gap, at the offsets given
// A file is hostile until every size, offset and sum in it has been checked; what is read never takes more memory than
// a small multiple of the file's size. The format has no checksums, so ours stand in its metadata, where other readers
// pass over them: "crc32c.tensors" lists one per tensor in the order of the offsets, "crc32c.header" covers the header,
// itself taken as zeros.
// Serves: nn/files/files.h
#pragma once

#include <functional>
#include <map>
#include <string>

#include "core/tensor.h"

namespace orrery {

using TensorMap = std::map<std::string, Tensor>;
using Metadata = std::map<std::string, std::string>;

/// What a file holds: tensors by name, and text by key.
struct TensorFile {
  TensorMap tensors;
  Metadata metadata;
};

/// Makes `path` a safetensors file of these tensors, or leaves it as it was (see `replace_file`). Errors, of operation
/// "write PATH": a tensor that is not defined or named "__metadata__"; a metadata key that starts with "crc32c."; text
/// that is not UTF-8; whatever the system reports.
void write_safetensors(const std::string& path, const TensorMap& tensors, const Metadata& metadata = {});

/// Reads the tensors whose names are `wanted`, all if it is not given: F32, F64 and I32 as they are, F16 and BF16 as
/// f32, which holds all their values. Files of other programs have no checksums; ours must have all of them, and right.
/// Errors, of operation "read PATH", are one line that says what is wrong; a wanted tensor of another dtype is one.
TensorFile read_safetensors(const std::string& path, const std::function<bool(const std::string& name)>& wanted = {});

/// The metadata alone; checks the header as `read_safetensors` does, and reads no tensor.
Metadata read_safetensors_metadata(const std::string& path);

}  // namespace orrery
