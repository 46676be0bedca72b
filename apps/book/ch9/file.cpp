// Chapter 9. A safetensors file, byte by byte.
// Question: what stands in a model's file, and what do its checksums find?
// Answer: eight bytes for the length of the header, the header as JSON, and the numbers as they stand in memory. One
//   checksum belongs to the header and one to each tensor, so a flipped bit is found wherever it is.
#include <unistd.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "apps/book/measured.h"
#include "core/files/crc32c.h"
#include "core/files/safetensors.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

std::string read_all(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void print_bytes(const std::string& bytes) {
  for (const char byte : bytes)
    std::cout << ' ' << std::hex << std::setw(2) << std::setfill('0') << int{static_cast<unsigned char>(byte)};
  std::cout << std::dec << std::setfill(' ');
}

// Why the file cannot be read; "" if it can.
std::string problem(const std::string& path) {
  try {
    read_safetensors(path);
    return "";
  } catch (const Error& error) { return error.rule(); }
}

}  // namespace

int main() {
  const std::string path = std::filesystem::temp_directory_path() / ("orrery_ch9_file_" + std::to_string(::getpid()));
  write_safetensors(path, {{"weight", Tensor::of<float>({1, 2}, {1, -2})}, {"bias", Tensor::of<float>({1}, {0.5})}},
                    {{"config", "a line"}});
  const std::string bytes = read_all(path);
  u64 length = 0;
  std::copy_n(bytes.data(), sizeof length, reinterpret_cast<char*>(&length));
  const size_t data = 8 + static_cast<size_t>(length);

  std::cout << bytes.size() << " bytes: 8 + " << length << " + " << bytes.size() - data << "\nbytes 0 to 7: ";
  print_bytes(bytes.substr(0, 8));
  std::string header = bytes.substr(8, length);
  for (size_t at = 0; (at = header.find("},", at)) != header.npos; at += 2) header.insert(at + 2, "\n");
  std::cout << "\n" << header << '\n';
  for (size_t at = data; at < bytes.size(); at += 4) {
    float x = 0;
    std::copy_n(bytes.data() + at, sizeof x, reinterpret_cast<char*>(&x));
    std::cout << "byte " << at - data << " of the data:";
    print_bytes(bytes.substr(at, 4));
    std::cout << "  " << x << '\n';
  }
  const std::string digits = "123456789";
  const u32 known = crc32c(std::as_bytes(std::span(digits)));
  std::cout << "CRC32C of \"123456789\": " << std::hex << known << std::dec << '\n';

  std::string damaged = bytes;
  damaged[data + 7] = static_cast<char>(damaged[data + 7] ^ 1);
  std::ofstream(path, std::ios::binary) << damaged;
  std::cout << "a flipped bit: " << problem(path) << '\n';
  const bool found = problem(path).find("checksum") != std::string::npos;

  const Tensor large = zeros({1 << 22});
  std::cout << "measured: a tensor of " << large.count() * bytes_of(f32) << " bytes: checksum "
            << book::shortest_ms([&] { crc32c(std::as_bytes(std::span(large.data<float>(), 1 << 22))); })
            << " ms, written and flushed " << book::shortest_ms([&] {
                 write_safetensors(path, {{"large", large}});
               })
            << " ms, read and checked " << book::shortest_ms([&] { read_safetensors(path); }) << " ms\n";
  std::filesystem::remove(path);
  return found && known == 0xE3069283 ? 0 : 1;
}
