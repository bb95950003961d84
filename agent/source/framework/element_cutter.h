// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/source/framework/json_structure.h"
#include "lib/trace/limits.h"

namespace neurontrace {

// Cuts a Chrome-style trace file into its parts while it streams by: each member of the top-level
// object, and each element of its "traceEvents" array (of a mapping file: "data"), or of a
// top-level array, as raw JSON text. Memory is one window, grown at most to a few times the longest
// element allowed. It looks at the structure only: what lies inside an element is for the JSON
// parser to judge. Where the structure is broken, by a quotation mark too many or a bracket that is
// missing, it finds the next element by what elements look like, so that only the damaged one is
// lost. A call is a bounded piece of work, whatever the file is like. One thread at a time.
class ElementCutter {
 public:
  // Fills a buffer and returns how many bytes; 0 at the end, nothing where none came yet.
  using Input = std::function<absl::StatusOr<std::optional<size_t>>(char* out, size_t size)>;

  enum class Kind : uint8_t {
    kNotYet,     // no piece is whole yet: to be called again
    kMember,     // `key` (raw, between its quotes) and `text`
    kElement,    // `text`
    kOversized,  // an element or a member longer than allowed, passed over; `key` is empty if the
                 // former
    kDamaged,    // the same, where the structure is broken: damage_position()
    kStray,      // bytes between elements that belong to none, passed over
    kEnd,        // the top-level value is complete and no element follows that belongs to it, or a
                 // top-level array ends after an element
    kTruncated,  // the file ends in the middle
    kMalformed,  // no such structure from here on
  };
  struct Piece {
    Kind kind = Kind::kNotYet;
    std::string_view key;
    std::string_view text;
  };

  // After a piece's text at least this many bytes can be read (simdjson wants it).
  static constexpr size_t kPaddingBytes = 64;

  static constexpr size_t kWindowBytes = 256u << 10;

  struct Options {
    size_t window_bytes = kWindowBytes;  // at first
    size_t piece_bytes_max = limits::kFrameworkEventBytesMax;
    std::string_view array_key = "traceEvents";  // outlives the cutter, as does
    std::string_view element_key = "ph";         // what elements are known by behind damage
    bool may_nest = true;  // the array may be a member of that name of an object of that name
  };

  explicit ElementCutter(Input input) : ElementCutter(std::move(input), Options()) {}
  ElementCutter(Input input, const Options& options);

  // The next piece; its views hold until the next call. Asks the input once at most, for
  // kWindowBytes at most, and says kNotYet where that does not do. After kEnd, kTruncated and
  // kMalformed the same comes again. An error is the input's own.
  absl::StatusOr<Piece> Next();

  // After kEnd: reads what is left of the input, a call at a time, and returns true at its end.
  absl::StatusOr<bool> Drain();
  // Bytes behind the top-level value that are neither blanks nor NUL, and whether elements seem to
  // be among them, as in a second trace.
  uint64_t bytes_behind() const { return bytes_behind_; }
  bool has_elements_behind() const { return has_elements_behind_; }

  // Bytes of the input before the end of the last piece, or of what was passed over since.
  uint64_t position() const { return discarded_ + begin_; }
  // Of the last kDamaged or kStray: the first byte that cannot stand where it does.
  uint64_t damage_position() const { return damage_position_; }
  // Whether there was an array of elements so far.
  bool has_array() const { return has_array_; }
  // Whether the top-level value has ended with its bracket.
  bool is_closed() const { return is_closed_; }
  // Largest size the window had.
  size_t window_bytes_max() const { return window_.size(); }

 private:
  // What is to come; or, with in_value_, what it stands in.
  enum class State : uint8_t {
    kStart,
    kRoot,  // no byte order mark any more
    kKey,   // of a member, or the end of its object
    kColon,
    kMember,   // its value
    kElement,  // or the end of its array
    kBehind,   // blanks, as the top-level value has ended; or what shows that it has not
    kDone,
  };
  enum class Supply : uint8_t { kHere, kNotYet, kEnd };
  // What is searched for the next start of something sound.
  enum class Search : uint8_t { kNone, kDamagedElement, kStray, kDamagedMember };
  enum class Answer : uint8_t { kYes, kNo, kNotYet };

  absl::StatusOr<Supply> Advance();
  absl::StatusOr<Supply> Refill();
  absl::StatusOr<Supply> SkipMark();
  absl::StatusOr<Supply> SkipSpace();
  // Where the value ends that began at begin_: sets value_end_, or oversized_ when it had to be
  // passed over; or begins a search.
  absl::StatusOr<Supply> FindValueEnd();
  // What is at hand; kNotYet if that is no piece.
  Piece TakeCharacter(char c);
  Piece TakeValue();
  Piece BeginValue();
  Piece CloseRoot();
  Piece EndOfInput();
  Piece Finish(Kind kind);

  size_t FromSearch() const;
  void BeginSearch(Search search, size_t from);
  // In the middle of an element: another one inside it shows that a bracket is missing before that
  // one. Begins a search there.
  bool BeginSearchAtInner();
  // Sets search_at_ to the start that it finds.
  absl::StatusOr<Supply> FindStart();
  bool MoveToCandidate();
  Answer TestElement();
  Answer TestMember();
  bool LooksLikeStart(size_t at) const;
  std::optional<size_t> FindArrayEnd() const;
  Piece EndSearch(size_t at);

  Input input_;
  Options options_;
  const std::string quoted_array_key_;
  const std::string quoted_element_key_;
  std::vector<char> window_;
  size_t begin_ = 0;  // what is not consumed yet is [begin_, end_)
  size_t end_ = 0;
  uint64_t discarded_ = 0;  // bytes before the window

  bool input_asked_ = false;  // in this call
  bool input_ended_ = false;
  uint64_t bytes_behind_ = 0;
  bool has_elements_behind_ = false;
  std::string drained_;  // the latest bytes that were drained

  State state_ = State::kStart;
  bool in_value_ = false;
  Kind last_ = Kind::kEnd;
  bool root_is_array_ = false;
  bool is_nested_ = false;  // in an object that stands where the array of elements should
  bool has_array_ = false;
  bool is_closed_ = false;
  std::string key_;
  bool key_is_element_ = false;  // key_ is the text of the last element

  // Of the value being scanned, or of the candidate of a search.
  JsonStructure structure_;
  uint64_t value_begin_ = 0;  // in the input
  size_t scan_ = 0;
  size_t value_end_ = 0;
  bool oversized_ = false;

  Search search_ = Search::kNone;
  uint64_t search_from_ = 0;               // in the input
  std::optional<uint64_t> trusted_start_;  // a candidate, in the input, whatever stands before it
  size_t search_at_ = 0;
  bool testing_ = false;  // the candidate at search_at_ up to scan_
  uint64_t damage_position_ = 0;
};

}  // namespace neurontrace
