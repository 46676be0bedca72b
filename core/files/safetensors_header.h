// Chapter 9. The header of a safetensors file: from text to checked entries.
//
// Hugging Face's specification (https://github.com/huggingface/safetensors#format): "The header data MUST begin with a
// `{` character", "Duplicate keys are disallowed", "The byte buffer needs to be entirely indexed, and cannot contain
// holes". The dtypes are those of its program (safetensors/src/tensor.rs there).
// The JSON is read event by event into exactly the structure that the format allows. Anything else is an error at once,
// so a hostile header can neither nest deeply nor take much memory.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/shape.h"

namespace orrery {

/// What files may hold: all dtypes of the format. Tensors in memory have fewer (core/dtype.h).
enum class FileDtype : u8 {
  F4,
  F6_E2M3,
  F6_E3M2,
  BOOL,
  U8,
  I8,
  F8_E5M2,
  F8_E4M3,
  F8_E8M0,
  F8_E4M3FNUZ,
  F8_E5M2FNUZ,
  U16,
  I16,
  F16,
  BF16,
  U32,
  I32,
  F32,
  C64,
  U64,
  I64,
  F64
};
std::string_view name_of(FileDtype dtype);
/// Bits of an element; several elements of less than 8 bits share their bytes.
i64 bits_of(FileDtype dtype);
/// Whether the elements are real numbers with a fraction, and not integers, truth values or complex numbers.
bool is_floating(FileDtype dtype);
/// The dtype in files of a tensor's dtype: F32, F64 or I32.
FileDtype file_dtype(Dtype dtype);

/// Where the elements of one tensor are: bytes [begin, end) after the header.
struct TensorEntry {
  std::string name;
  FileDtype dtype = FileDtype::F32;
  Shape shape;
  u64 begin = 0, end = 0;
};

/// A parsed header. Entries are in the order of their offsets.
struct TensorHeader {
  std::vector<TensorEntry> entries;
  std::map<std::string, std::string> metadata;
};

/// Small entries take more memory than they take in the file, and so does a text while it is parsed. The limits:
///   tensors                    1,024, or one for every 96 bytes of the file if that is more
///   keys of metadata           256
///   all names and texts,       128 KB and a sixth of what the elements take; a name counts twice
///   a number or run of blanks  the same
inline constexpr u64 most_small_tensors = 1024, bytes_for_tensor = 96, most_metadata_keys = 256,
                     most_small_token = 128 << 10;
/// The most bytes of names and texts, quotes left out, in a file with this many bytes of elements.
constexpr u64 longest_text(u64 data_bytes) { return most_small_token + data_bytes / 6; }

/// Parses the header `text`, followed by `data_bytes` bytes of elements. Errors, of `operation`: anything but the
/// structure that the format describes; names that appear twice; offsets that leave a gap, overlap, do not fit shape
/// and dtype, or do not end with the file; more than the limits above allow.
TensorHeader parse_header(std::string_view text, u64 data_bytes, const std::string& operation);

}  // namespace orrery
