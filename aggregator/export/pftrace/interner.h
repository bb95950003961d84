// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"

namespace neurontrace {

// The texts that a packet sequence refers to by number (interned data of Perfetto), and those that
// the file does not contain yet. Numbers are valid until Reset. Used by one thread at a time.
class Interner {
 public:
  // Beyond either limit is_full() asks for a new start of the sequence: readers hold all texts in
  // memory.
  static constexpr size_t kTextsMax = 65'536;
  static constexpr size_t kTextBytesMax = size_t{8} << 20;

  // Each returns the number of a text of its kind. Kinds are numbered separately, as in the format.
  uint32_t Category(std::string_view text);
  uint32_t EventName(std::string_view text);
  uint32_t AnnotationName(std::string_view text);
  uint32_t StringValue(std::string_view text);

  // Checked between events only, because a reset in the middle of one would invalidate its numbers.
  bool is_full() const { return texts_ >= kTextsMax || text_bytes_ >= kTextBytesMax; }
  // Returns whether pending() has anything: the fields of an InternedData message with everything
  // new since ClearPending. It must be written before any event that uses the new numbers.
  bool has_pending() const { return !pending_.empty(); }
  std::string_view pending() const { return pending_; }
  void ClearPending() { pending_.clear(); }

  // Forgets everything. Numbers kept elsewhere are invalid once the generation has changed.
  void Reset();
  uint64_t generation() const { return generation_; }

 private:
  using Table = absl::flat_hash_map<std::string, uint32_t>;
  // Returns the text's number in the table; a new text also goes into pending_.
  uint32_t Intern(Table& table, uint32_t field, std::string_view text);

  Table categories_;
  Table event_names_;
  Table annotation_names_;
  Table string_values_;
  // Serialised, and not in the file yet.
  std::string pending_;
  // Counts and bytes of all four tables together.
  size_t texts_ = 0;
  size_t text_bytes_ = 0;
  uint64_t generation_ = 1;
};

}  // namespace neurontrace
