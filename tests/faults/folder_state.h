// Chapter 9. The files of a folder by name and contents: read, and put back.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "tests/core/temporary_folder.h"

namespace orrery::faults {

/// The contents of the files in a folder, by their names.
using FolderState = std::map<std::string, std::string>;
inline FolderState state_of(const TemporaryFolder& folder) {
  FolderState state;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    if (entry.is_regular_file()) state[entry.path().filename()] = contents(entry.path());
  return state;
}
inline void put(const FolderState& state, const TemporaryFolder& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    if (entry.is_regular_file()) std::filesystem::remove(entry.path());
  for (const auto& [name, text] : state) set_contents(folder / name, text);
}

}  // namespace orrery::faults
