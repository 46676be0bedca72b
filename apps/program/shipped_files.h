// Chapter 9. Where the files stand that come with the program: texts to learn from, pages, and its own sources.
//
// An installed program, in PREFIX/bin, has them in PREFIX/share/orrery, wherever PREFIX was moved to. One in a build
// folder reads them where they are written, in the sources.
#pragma once

#include <filesystem>
#include <string>

namespace orrery {

/// The path of a file or folder that comes with the program; `name` is its path from the root of the repository, such
/// as "apps/data/speed.json".
std::string shipped_path(const std::string& name);
/// The text of such a file. Error: it cannot be read.
std::string shipped_text(const std::string& name);

/// The rule behind it, a separate function so that it can be tested: the folder of these files for a program that
/// stands at `program`. The path "" means that the system does not tell.
std::filesystem::path shipped_folder(const std::filesystem::path& program);

}  // namespace orrery
