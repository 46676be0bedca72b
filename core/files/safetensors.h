// Chapter 9. Tensors in files: the safetensors format, with checksums.
//
// The format is Hugging Face's (https://github.com/huggingface/safetensors#format):
//   8 bytes    N, the header's length, little-endian
//   N bytes    JSON: {"weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
//                     "__metadata__": {...}}, then spaces
//   the rest   the tensors' elements, one after another without a gap, at the offsets given
// A file is not trusted until every size, offset and checksum in it has been checked. Reading F32, F64 and I32 takes at
// most one megabyte more than the file has bytes, the tensors included (tests/promises/scarce_memory_test.cpp).
// F16 and BF16 become f32, which takes twice their bytes; each tensor beyond 1,024 may take a kilobyte more.
// The format has no checksums. Ours are in its metadata, where other readers ignore them: "crc32c.tensors" lists one
// for each tensor in the order of the offsets; "crc32c.header" is that of the header, computed with its own digits set
// to zero.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/files/safetensors_header.h"
#include "core/tensor.h"

namespace orrery {

using TensorMap = std::map<std::string, Tensor>;
using Metadata = std::map<std::string, std::string>;

/// What a file holds: tensors by name, and text by key.
struct TensorFile {
  TensorMap tensors;
  Metadata metadata;
};

/// Makes `path` a safetensors file of these tensors, or leaves it as it was (see `replace_file`). Errors, which name
/// the operation "write PATH": a tensor that is undefined or named "__metadata__"; a metadata key that starts with
/// "crc32c."; text that is not UTF-8; more than the limits of `parse_header`; whatever the system reports.
void write_safetensors(const std::string& path, const TensorMap& tensors, const Metadata& metadata = {});

/// Reads the tensors whose names `chosen` accepts, or all of them without it. F32, F64 and I32 are read as they are;
/// F16 and BF16 become f32, which can hold all their values. Files of other programs have no checksums; a file that has
/// some must have all of them, and they must be right. `path` may also be a folder or an index of shards
/// (core/files/shards.h); each shard must then hold exactly the tensors that the index says, and of metadata with the
/// same key the first counts. Errors name the operation "read PATH" and say in one line what is wrong. A chosen tensor
/// of any other dtype is an error.
TensorFile read_safetensors(const std::string& path, const std::function<bool(const std::string& name)>& chosen = {});

/// One tensor of a file, without its elements. Checksums have eight digits.
struct TensorSummary {
  TensorEntry entry;
  std::string checksum;   ///< CRC32C of its bytes as they are
  std::string stored;     ///< the same as the file states it; "" if the file has no checksums
  std::string file = "";  ///< the path of the file that it is in
  bool damaged() const { return !stored.empty() && stored != checksum; }
};

/// A whole file, or all shards of a model, without the elements.
struct FileSummary {
  u64 bytes = 0, header_bytes = 0, files = 0;
  std::vector<TensorSummary> tensors;  ///< in the order of their offsets, file after file
  Metadata metadata;
};
/// Reads every byte of a file, of any dtypes, and keeps none. Damaged tensors are not an error here. Errors otherwise
/// as those of `read_safetensors`. Without checksums, which are "" then, it reads the headers alone.
FileSummary summarise_safetensors(const std::string& path, bool with_checksums = true);

/// The metadata alone; checks the headers as `read_safetensors` does, and reads no tensor.
Metadata read_safetensors_metadata(const std::string& path);

}  // namespace orrery
