// Chapter 9. Grades exercise 9.4.

struct Killed : std::runtime_error {
  Killed() : std::runtime_error("killed") {}
};

// A disk on which the program is killed after a number of events. It knows what may stand there afterwards.
class SimulatedDisk : public Disk {
 public:
  SimulatedDisk(const std::string& file, const std::string& bytes, int events) : events_(events) {
    files_.push_back({bytes, {bytes}});
    names_.push_back({{file, 0}});
  }
  void write(const std::string& file, const std::string& bytes) override {
    Names names = names_.back();
    if (!names.contains(file)) {
      names[file] = files_.size();
      files_.push_back({"", {""}});
      names_.push_back(names);
    }
    for (const std::string& part : {std::string(), bytes.substr(0, bytes.size() / 2), bytes}) {
      event();
      File& open = files_[names.at(file)];
      open.bytes = part;
      open.possible.insert(part);
    }
    event();
  }
  void flush(const std::string& file) override {
    event();
    File& open = at(file);
    open.possible = {open.bytes};
  }
  void rename(const std::string& from, const std::string& to) override {
    event();
    at(from);
    Names names = names_.back();
    names[to] = names.at(from);
    names.erase(from);
    names_.push_back(names);
    event();
  }
  void flush_directory() override {
    event();
    names_.erase(names_.begin(), names_.end() - 1);
  }

  /// What `file` may hold after a power failure; "(nothing)" where the name may be gone.
  std::set<std::string> after_power_failure(const std::string& file) const {
    std::set<std::string> all;
    for (const Names& names : names_) {
      if (!names.contains(file)) all.insert("(nothing)");
      if (names.contains(file))
        all.insert(files_[names.at(file)].possible.begin(), files_[names.at(file)].possible.end());
    }
    return all;
  }
  /// What it holds now.
  std::string now(const std::string& file) const {
    const Names& names = names_.back();
    return names.contains(file) ? files_[names.at(file)].bytes : "(nothing)";
  }
  size_t files() const { return names_.back().size(); }

 private:
  struct File {
    std::string bytes;
    std::set<std::string> possible;  // after a power failure
  };
  using Names = std::map<std::string, size_t>;

  void event() {
    if (events_-- == 0) throw Killed();
  }
  File& at(const std::string& file) {
    check(names_.back().contains(file), "the disk", "there is no file ", file);
    return files_[names_.back().at(file)];
  }

  int events_;
  std::vector<File> files_;
  std::vector<Names> names_;  // since the directory was flushed; the last are those of now
};

void grade(Grader& g) {
  const std::string file = "model", before = "old weights", after = "newer weights";
  constexpr int many = 1000;
  // Asks of the disk after the program was killed at every event; says what was found first.
  const auto at_every_event = [&](const auto& found) {
    for (int events = 0; events < many; ++events) {
      SimulatedDisk disk(file, before, events);
      bool killed = false;
      try {
        my_replace(disk, file, after);
      } catch (const Killed&) { killed = true; }
      for (const std::string& bytes : found(disk))
        check(bytes == before || bytes == after, "after event " + std::to_string(events), file, " holds '", bytes, "'");
      if (!killed) return true;
    }
    return false;
  };
  const auto finished = [&](const auto& right) {
    SimulatedDisk disk(file, before, many);
    my_replace(disk, file, after);
    return right(disk);
  };
  g.check(
      "the new bytes stand there at the end",
      [&] { return finished([&](auto& disk) { return disk.now(file) == after; }); },
      "What must the file be called at the end?");
  g.check(
      "killed at any moment",
      [&] { return at_every_event([&](const SimulatedDisk& disk) { return std::set<std::string>{disk.now(file)}; }); },
      "The old bytes must stay until all of the new ones stand somewhere else.");
  g.check(
      "power failure at any moment",
      [&] { return at_every_event([&](const SimulatedDisk& disk) { return disk.after_power_failure(file); }); },
      "A name may reach the disk before the bytes that it stands for.");
  g.check(
      "power failure after the end",
      [&] {
        return finished([&](auto& disk) { return disk.after_power_failure(file) == std::set<std::string>{after}; });
      },
      "Bytes and names are safe only after they have been flushed.");
  g.check(
      "no other file is left", [&] { return finished([](auto& disk) { return disk.files() == 1; }); },
      "What became of the file that you wrote to?");
}
