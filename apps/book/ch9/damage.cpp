// Chapter 9. What a crash may leave, and what is found when it happened.
// Question: how often is a file lost if the program dies while it writes, and is damage always noticed?
// Answer: written in place, the file is lost at every byte but the last. Written beside it and renamed, the old model
//   stands until the new one is whole. Every cut and every flipped bit of a file is an error when it is read.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "core/files/safetensors.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

const std::filesystem::path folder =
    std::filesystem::temp_directory_path() / ("orrery_ch9_damage_" + std::to_string(::getpid()));

std::string read_all(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}
void write_all(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

// 1 for the old model, 2 for the new one, 0 for an error.
int model_in(const std::string& path) {
  try {
    return static_cast<int>(read_safetensors(path).tensors.at("weight").at(0));
  } catch (const Error&) { return 0; }
}

}  // namespace

int main() {
  std::filesystem::create_directory(folder);
  const std::string path = folder / "model.safetensors", beside = path + ".tmp";
  write_safetensors(path, {{"weight", full({8}, 2.0)}});
  const std::string new_bytes = read_all(path);
  write_safetensors(path, {{"weight", full({8}, 1.0)}});
  const std::string old_bytes = read_all(path);
  const size_t size = new_bytes.size();

  int lost_in_place = 0, kept_in_place = 0, lost = 0, kept = 0, cuts = 0, flips = 0;
  for (size_t written = 0; written < size; ++written) {  // the program dies after this many bytes
    write_all(path, new_bytes.substr(0, written));
    lost_in_place += model_in(path) == 0;
    kept_in_place += model_in(path) == 1;
  }
  write_all(path, old_bytes);
  for (size_t written = 0; written < size; ++written) {
    write_all(beside, new_bytes.substr(0, written));
    lost += model_in(path) == 0;
    kept += model_in(path) == 1;
  }
  write_all(beside, new_bytes);
  std::filesystem::rename(beside, path);
  const bool replaced = model_in(path) == 2;

  for (size_t left = 0; left < size; ++left) {
    write_all(path, new_bytes.substr(0, left));
    cuts += model_in(path) == 0;
  }
  for (size_t bit = 0; bit < 8 * size; ++bit) {
    std::string bytes = new_bytes;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    write_all(path, bytes);
    flips += model_in(path) == 0;
  }
  std::filesystem::remove_all(folder);
  const int n = static_cast<int>(size);
  std::cout << "a file of " << n << " bytes; the program dies after 0 to " << n - 1 << " of them\n"
            << "  written in place:            lost " << lost_in_place << " times, the old model kept " << kept_in_place
            << " times\n"
            << "  written beside, then renamed: lost " << lost << " times, the old model kept " << kept << " times\n"
            << "cuts found: " << cuts << " of " << n << "\nflipped bits found: " << flips << " of " << 8 * n << '\n';
  return lost_in_place == n && kept_in_place == 0 && kept == n && replaced && cuts == n && flips == 8 * n ? 0 : 1;
}
