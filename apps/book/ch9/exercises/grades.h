// Chapter 9. Grades the exercises of this chapter: each part asks about the exercise of its number, EXERCISE, whose
// file was read before.
#if EXERCISE == 1  // CRC32C by hand

void grade(Grader& g) {
  const auto hex = [](u32 x) {
    std::ostringstream text;
    text << std::hex << x;
    return text.str();
  };
  const auto ask = [&](const std::string& question, const std::string& bytes, u32 expected, const std::string& hint) {
    g.check(question, hint, [&] {
      const u32 checksum = my_crc32c(bytes);
      check(checksum == expected, "the checksum", "is ", hex(checksum), ", should be ", hex(expected));
      return true;
    });
  };
  ask("no bytes", "", 0, "32 ones, each flipped.");
  g.check("one zero byte and two differ", "What does the remainder begin as, so that zeros before a message count?",
          [] { return my_crc32c(std::string(1, '\0')) != my_crc32c(std::string(2, '\0')); });
  ask("one zero byte", std::string(1, '\0'), 0x527D5351,
      "After each step to the right that pushes out a 1, the divisor is subtracted. In which order do its bits stand?");
  ask("\"123456789\"", "123456789", 0xE3069283,
      "A byte is subtracted from the lowest eight bits, then eight steps follow.");
  ask("32 zero bytes", std::string(32, '\0'), 0x8A9136AA, "This is a test of RFC 3720. Where do the first ones go?");
  ask("32 bytes of ones", std::string(32, '\xFF'), 0x62A8AB43, "A char may be negative: make it unsigned first.");
  g.check("every flipped bit of nine bytes changes it", "Does every bit of every byte reach the remainder?", [] {
    const std::string message = "123456789";
    for (size_t bit = 0; bit < 8 * message.size(); ++bit) {
      std::string damaged = message;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      if (my_crc32c(damaged) == my_crc32c(message)) return false;
    }
    return true;
  });
}

#elif EXERCISE == 2  // a safetensors file of your own

using Tensors = std::map<std::string, Tensor>;

struct FileParts {
  std::string header, data;
  size_t begin;  // of the data
};

// The file that the student writes, as its first eight bytes cut it.
FileParts parts_of_file(const Tensors& tensors) {
  const std::string file = my_file(tensors);
  check(file.size() >= 8, "the file", "has only ", file.size(), " bytes");
  u64 length = 0;
  for (size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(file[i]);
  check(length <= file.size() - 8, "the file", "has ", file.size(), " bytes, and a header of ", length);
  const size_t begin = 8 + static_cast<size_t>(length);
  return FileParts{file.substr(8, begin - 8), file.substr(begin), begin};
}

std::string without_spaces(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  return text;
}

void grade_header(Grader& g, const std::string& question, const Tensors& tensors, const std::string& expected,
                  const std::string& hint) {
  g.check(question, hint, [&] {
    const std::string header = without_spaces(parts_of_file(tensors).header);
    check(header == expected, "the header", "is ", header);
    return true;
  });
}

void grade(Grader& g) {
  const Tensors one{{"x", Tensor::of<float>({1}, {7})}};
  const Tensors two{{"bias", Tensor::of<float>({2}, {0.5F, -1})},
                    {"weight", Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6})}};
  const Tensors empty_first{{"a", zeros({0})}, {"b", Tensor::of<float>({1}, {1})}};
  g.check("the first eight bytes hold the length of the header",
          "The length is that of the JSON and its spaces alone, and its lowest byte comes first.", [&] {
            const std::string header =
                parts_of_file(one).header;  // spaces may stand behind the JSON, and not before it
            return header.starts_with("{") && without_spaces(header).ends_with("}");
          });
  grade_header(g, "the header of one tensor", one, R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
               "dtype, shape and data_offsets, in this order. Offsets count bytes, and begin at 0 behind the header.");
  grade_header(g, "the header of two tensors", two,
               R"({"bias":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
               R"("weight":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]}})",
               "Each tensor begins where the one before it ends.");
  g.check("the data begin at a multiple of 8", "How many spaces are missing? The length counts them.",
          [&] { return parts_of_file(one).begin % 8 == 0 && parts_of_file(two).begin % 8 == 0; });
  grade_header(g, "the header where the first tensor holds no numbers", empty_first,
               R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)"
               R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
               "A comma stands before every entry but the first. How do you know which entry is the first?");
  g.check("the numbers", "Four bytes for each number, in the order of the header, and nothing between or behind them.",
          [&] {
            const std::string data = parts_of_file(two).data;
            std::string expected;
            for (const auto& [name, x] : two)
              expected.append(reinterpret_cast<const char*>(x.data<float>()), static_cast<size_t>(x.bytes()));
            check(data.size() == expected.size(), "the data", "have ", data.size(), " bytes, not ", expected.size());
            return data == expected;
          });
}

#elif EXERCISE == 3  // a training that resumes

constexpr int before = 4, after = 4;  // steps, before the state is taken and after it is resumed

void make_steps(MyTraining& training, int steps) {
  for (int i = 0; i < steps; ++i) training.step();
}

Tensor weight_of(MyTraining& training) { return training.layer.weight.value().clone(); }

// What `look` finds in a training that resumes another, which makes `more` steps after its state was taken.
template <class Look> auto look_at_resumed(int more, const Look& look) {
  MyTraining first, second;
  make_steps(first, before);
  const MyState state = my_state(first);
  make_steps(first, more);
  my_resume(second, state);
  return look(second);
}

Tensor weight_after_more_steps(MyTraining& training) {
  make_steps(training, after);
  return weight_of(training);
}

void grade(Grader& g) {
  MyTraining whole;
  make_steps(whole, before);
  const Tensor halfway = weight_of(whole);
  const double position = static_cast<double>(whole.data.position());
  const Tensor at_the_end = weight_after_more_steps(whole);
  g.equal("the parameters", {halfway, 0},
          "Is every parameter in the state, and does load_state get Adam's tensors alone, under Adam's names?",
          [] { return look_at_resumed(0, weight_of); });
  g.equal("the rate", {optim::noam(before, 4, 6), 0}, "The rate is a function of one number.",
          [] { return look_at_resumed(0, [](MyTraining& training) { return training.rate(); }); });
  g.equal("the place in the random numbers", {position, 0},
          "Rng(seed, position) makes a generator that goes on where another was.", [] {
            return look_at_resumed(0,
                                   [](MyTraining& training) { return static_cast<double>(training.data.position()); });
          });
  g.equal("four steps, and four more after resuming", {at_the_end, 0},
          "What else does an update need besides the gradient and the rate?",
          [] { return look_at_resumed(0, weight_after_more_steps); });
  g.equal("a state stays what it was while the training goes on", {halfway, 0},
          "A tensor that is copied with = shares its memory.", [] { return look_at_resumed(3, weight_of); });
  g.equal("the same, after four more steps", {at_the_end, 0}, "Does the optimiser's state have memory of its own?",
          [] { return look_at_resumed(3, weight_after_more_steps); });
}

#elif EXERCISE == 4  // a file that is whole, whatever happens

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
  g.check("the new bytes stand there at the end", "What must the file be called at the end?",
          [&] { return finished([&](auto& disk) { return disk.now(file) == after; }); });
  g.check("killed at any moment", "The old bytes must stay until all of the new ones stand somewhere else.", [&] {
    return at_every_event([&](const SimulatedDisk& disk) { return std::set<std::string>{disk.now(file)}; });
  });
  g.check("power failure at any moment", "A name may reach the disk before the bytes that it stands for.",
          [&] { return at_every_event([&](const SimulatedDisk& disk) { return disk.after_power_failure(file); }); });
  g.check("power failure after the end", "Bytes and names are safe only after they have been flushed.", [&] {
    return finished([&](auto& disk) { return disk.after_power_failure(file) == std::set<std::string>{after}; });
  });
  g.check("no other file is left", "What became of the file that you wrote to?",
          [&] { return finished([](auto& disk) { return disk.files() == 1; }); });
}

#endif
