// Chapter 9. Grades exercise 9.1.

void grade(Grader& g) {
  const auto hex = [](u32 x) {
    std::ostringstream text;
    text << std::hex << x;
    return text.str();
  };
  const auto ask = [&](const std::string& question, const std::string& bytes, u32 expected, const std::string& hint) {
    g.check(
        question,
        [&] {
          const u32 checksum = my_crc32c(bytes);
          check(checksum == expected, "the checksum", "is ", hex(checksum), ", should be ", hex(expected));
          return true;
        },
        hint);
  };
  ask("no bytes", "", 0, "32 ones, each flipped.");
  ask("one zero byte", std::string(1, '\0'), 0x527D5351,
      "A zero byte is eight steps to the right; after each step that pushes out a 1, the divisor is subtracted.");
  ask("\"123456789\"", "123456789", 0xE3069283,
      "A byte is subtracted from the lowest eight bits, then eight steps follow.");
  ask("32 zero bytes", std::string(32, '\0'), 0x8A9136AA, "This is a test of RFC 3720. Where do the first ones go?");
  ask("32 bytes of ones", std::string(32, '\xFF'), 0x62A8AB43, "A char may be negative: make it unsigned first.");
  g.check(
      "every flipped bit of nine bytes changes it",
      [] {
        const std::string message = "123456789";
        for (size_t bit = 0; bit < 8 * message.size(); ++bit) {
          std::string damaged = message;
          damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
          if (my_crc32c(damaged) == my_crc32c(message)) return false;
        }
        return true;
      },
      "Does every bit of every byte reach the remainder?");
}
