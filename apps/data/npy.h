// Chapter 9. NumPy's files: one array of numbers with its shape (numpy.lib.format, versions 1 to 3).
#pragma once

#include <string>

#include "core/tensor.h"

namespace orrery {

/// Little-endian numbers in C order: f4 as f32, f8 as f64, i4 as i32, i8 as i32, which they must fit. Errors of
/// "read PATH": other numbers or another order, which are named; more than six axes; a file that is damaged, cut off or
/// too long; those of InputFile.
Tensor read_npy(const std::string& path);
/// Writes f32 as f4, f64 as f8, i32 as i4, for numpy.load. Errors: those of replace_file.
void write_npy(const std::string& path, const Tensor& x);

}  // namespace orrery
