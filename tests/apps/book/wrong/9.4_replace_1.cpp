// Chapter 9. A wrong answer to exercise 9.4: renamed before the bytes are flushed.
// Expect: FAILED  power failure at any moment
#include <string>

#include "core/tensor_ops.h"

using namespace orrery;

struct Disk {
  virtual ~Disk() = default;
  /// Makes the file, or empties it if there is one; then writes the bytes.
  virtual void write(const std::string& file, const std::string& bytes) = 0;
  /// What was written to the file is safe from now on.
  virtual void flush(const std::string& file) = 0;
  /// The file `from` is called `to`; what was called so before is gone.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  /// The names of the files are safe from now on.
  virtual void flush_directory() = 0;
};

void my_replace(Disk& disk, const std::string& file, const std::string& bytes) {
  const std::string beside = file + ".tmp";
  disk.write(beside, bytes);
  disk.rename(beside, file);  // the only moment in which `file` changes
  disk.flush_directory();
}
