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

// Finds where the tokens of a JSON text begin: its structural characters, the opening quotes of its
// strings, and the first characters of its numbers and literals. Uses the first stage of simdjson
// (Langdale and Lemire, "Parsing Gigabytes of JSON per Second", 2019), which selects the widest
// instructions of the processor at run time.
//
// Only the first stage, rather than simdjson's On Demand interface on top of it: On Demand refuses
// a truncated text as a whole, while what precedes the cut is wanted here, and its second stage is
// compiled for the build's baseline processor
// (docs/decisions/0007-simdjson-finds-tokens-our-cursor-reads-them.md).
//
// Not a parser: the caller checks whether the tokens make sense. Used by one thread at a time.
class JsonIndex {
 public:
  // A text must be followed by this many zero bytes.
  static constexpr size_t kPaddingBytes = 64;

  struct Fault {
    size_t offset = 0;
    std::string what;
  };

  JsonIndex();
  ~JsonIndex();

  // Indexes text[0, size). Bytes that are not UTF-8 are first replaced by '?' in place, as one
  // string in Latin-1 must not cost a whole document; `repaired_bytes` counts them. A text that
  // ends within a string, or has a bare control character in one, is indexed up to that string, and
  // `fault` has the reason. A backslash outside strings also ends the index where it would make the
  // strings behind it uncertain; elsewhere it is part of a token, for the caller to refuse. Fails
  // with INVALID_ARGUMENT only for a text that is empty or beyond the limit, and with
  // RESOURCE_EXHAUSTED without memory.
  absl::Status Build(char* text, size_t size);

  // Offsets in ascending order; in memory followed by one more entry, the end of what was indexed,
  // where the text has a zero byte.
  std::span<const uint32_t> tokens() const { return tokens_; }
  const std::optional<Fault>& fault() const { return fault_; }
  uint64_t repaired_bytes() const { return repaired_bytes_; }

 private:
  struct Stage;

  // Provides memory for a text of this size. Fails with RESOURCE_EXHAUSTED.
  absl::Status Reserve(size_t size);

  std::unique_ptr<Stage> stage_;
  std::span<const uint32_t> tokens_;
  std::optional<Fault> fault_;
  uint64_t repaired_bytes_ = 0;
};

}  // namespace neurontrace
