// Chapter 9. Exercise 9.4: a file that is whole, whatever happens.
//
// Replace what `file` holds. The program may be killed and the power may fail at any moment: afterwards `file` must
// hold all of the old bytes or all of the new ones. When my_replace has returned, it must hold the new ones, and no
// other file may be left. After a power failure, a file that was not flushed holds any part of what was written to it,
// and names that were changed since the directory was flushed are the old or the new ones.
// Grade it:  apps/run exercise 9.4
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
  disk.write(file + ".new", bytes);
  disk.write(file, bytes);  // YOUR CODE: a program that is killed here leaves half a file
}
