// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace neurontrace {

// Aborts with the text of a promise that the tested class has broken, which the fuzzer reports as a
// crash; unlike assert it is compiled into every build. For fuzzers that take steps rather than
// bytes.
inline void CheckPromise(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "violated requirement: %s\n", what);
  std::abort();
}

// Cuts values out of a fuzzer's input. Past the end every value is zero or empty, so a step never
// has to check. `data` is not owned.
class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size) : left_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return left_.empty(); }
  uint8_t Byte() {
    if (left_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(left_.front());
    left_.remove_prefix(1);
    return byte;
  }
  // Returns a number of any magnitude from two bytes: the low six bits of the first are the shift
  // of the second, and its bit 64 negates the result. Small inputs thus reach the ends of a range.
  uint64_t Number() {
    const uint8_t shift = Byte();
    const uint64_t value = uint64_t{Byte()} << (shift % 64);
    return (shift & 64) != 0 ? 0 - value : value;
  }
  // Returns up to `bytes` bytes of the input.
  std::string_view Text(size_t bytes) {
    const std::string_view text = left_.substr(0, bytes);
    left_.remove_prefix(text.size());
    return text;
  }

 private:
  std::string_view left_;
};

}  // namespace neurontrace
