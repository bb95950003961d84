// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"

namespace neurontrace {

// Where the tokens of a JSON text begin: its structural characters, the opening quotes of its
// strings, and the first characters of its numbers and literals; found by simdjson's first stage,
// which picks the widest instructions of the processor at run time.
//
// The first stage alone, rather than simdjson's On Demand interface on top of it, because On Demand
// refuses a text that is cut off as a whole (what came before the cut is wanted here), and because
// its second stage is compiled for the build's baseline processor: docs/decisions/0007.
//
// Not a parser: whether the tokens make sense is for the caller to check. One thread at a time.
class JsonIndex {
 public:
  // A text must be followed by this many bytes of zero.
  static constexpr size_t kPaddingBytes = 64;

  struct Fault {
    size_t offset = 0;
    std::string what;
  };

  JsonIndex();
  ~JsonIndex();

  // Indexes text[0, size). Bytes that are not UTF-8 are first replaced by '?' in place, as one
  // string in Latin-1 must not cost a whole document; `repaired_bytes` counts them. A text that
  // ends within a string, or holds a bare control character in one, is indexed up to that string;
  // `fault` then tells. INVALID_ARGUMENT only for a text beyond the limit or empty,
  // RESOURCE_EXHAUSTED without memory.
  absl::Status Build(char* text, size_t size);

  // Ascending; followed in memory by one further entry, the end of what was indexed, where the text
  // holds a zero byte.
  std::span<const uint32_t> tokens() const { return tokens_; }
  const std::optional<Fault>& fault() const { return fault_; }
  uint64_t repaired_bytes() const { return repaired_bytes_; }

 private:
  struct Stage;

  absl::Status Reserve(size_t size);

  std::unique_ptr<Stage> stage_;
  std::span<const uint32_t> tokens_;
  std::optional<Fault> fault_;
  uint64_t repaired_bytes_ = 0;
};

}  // namespace neurontrace
