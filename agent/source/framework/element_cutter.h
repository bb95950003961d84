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
// top-level array, as raw JSON text. It follows the structure only and leaves the inside of
// elements to the JSON parser. Memory is one window, which grows at most to a few times the longest
// element allowed.
//
// If the structure is broken, by a quotation mark too many or a missing bracket, it finds the next
// element by what elements look like, so that only the damaged one is lost. Profilers do write such
// files: names with unescaped quotation marks, and processes that were killed. Each call is a
// bounded piece of work, whatever the file holds. Used by one thread at a time. Used for the first
// reading by TraceFileScan and for the second by TraceFileReader; both must cut in the same way,
// since positions are numbers of elements.
class ElementCutter {
 public:
  // Fills a buffer and returns the number of bytes: 0 at the end, nothing if none are available
  // yet. Called from within Next and Drain only.
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
  // What Next found. `text` and `key` are views into the window.
  struct Piece {
    Kind kind = Kind::kNotYet;
    std::string_view key;
    std::string_view text;
  };

  // At least this many bytes can be read after a piece's text, as simdjson requires.
  static constexpr size_t kPaddingBytes = 64;

  static constexpr size_t kWindowBytes = 256u << 10;

  struct Options {
    // Bytes of the window at first, and of the longest piece that is given out.
    size_t window_bytes = kWindowBytes;  // at first
    size_t piece_bytes_max = limits::kFrameworkEventBytesMax;
    std::string_view array_key = "traceEvents";  // outlives the cutter, as does
    std::string_view element_key = "ph";         // what elements are known by behind damage
    bool can_nest = true;  // the array may be a member of that name of an object of that name
  };

  explicit ElementCutter(Input input) : ElementCutter(std::move(input), Options()) {}
  ElementCutter(Input input, const Options& options);

  // Returns the next piece; its views are valid until the next call. Asks the input at most once,
  // for at most kWindowBytes, and returns kNotYet if that is not enough. After kEnd, kTruncated and
  // kMalformed the same is returned again. Fails only with the input's own errors.
  absl::StatusOr<Piece> Next();

  // Reads the rest of the input, a part with each call, and returns true at its end. Called after
  // kEnd.
  absl::StatusOr<bool> Drain();
  // Return the number of bytes after the top-level value that are neither blanks nor NUL, and
  // whether they seem to contain elements, as a second trace would. Valid once Drain has returned
  // true.
  uint64_t bytes_behind() const { return bytes_behind_; }
  bool has_elements_behind() const { return has_elements_behind_; }

  // Returns the bytes of the input before the end of the last piece, or of what has been passed
  // over since.
  uint64_t position() const { return discarded_ + begin_; }
  // Returns the position of the first byte that is wrong, of the last kDamaged or kStray.
  uint64_t damage_position() const { return damage_position_; }
  // Returns whether an array of elements has begun.
  bool has_array() const { return has_array_; }
  // Returns whether the top-level value has ended with its bracket.
  bool is_closed() const { return is_closed_; }
  // Returns the largest size the window had.
  size_t window_bytes_max() const { return window_.size(); }

 private:
  // What is expected next. With in_value_: the kind of value that is being scanned.
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
  // Whether the window has what is needed; kNotYet: the input was asked in this call already.
  enum class Supply : uint8_t { kHere, kNotYet, kEnd };
  // What is searched for the next start of something sound.
  enum class Search : uint8_t { kNone, kDamagedElement, kStray, kDamagedMember };
  enum class Answer : uint8_t { kYes, kNo, kNotYet };

  // Brings begin_ to something that can be handled; the functions below are its parts.
  absl::StatusOr<Supply> Advance();
  // Reads more of the input into the window, at most once in a call of Next or Drain.
  absl::StatusOr<Supply> Refill();
  // Skip a byte order mark, and what may be between tokens.
  absl::StatusOr<Supply> SkipMark();
  absl::StatusOr<Supply> SkipSpace();
  // Finds the end of the value that began at begin_: sets value_end_, or oversized_ if the value is
  // being passed over; or begins a search.
  absl::StatusOr<Supply> FindValueEnd();
  // Each handles what is at hand; kNotYet means that it completes no piece. HandleCharacter handles
  // the one at begin_ and TakeValue a complete value; the others begin a value, or end the
  // top-level value or the input.
  Piece HandleCharacter(char c);
  Piece TakeValue();
  Piece BeginValue();
  Piece CloseRoot();
  Piece EndOfInput();
  // Returns a piece of this kind now and with each later call.
  Piece Finish(Kind kind);

  // Returns the place in the window where the search began.
  size_t FromSearch() const;
  // Starts to look for something sound from `from` on, which is an index into the window.
  void BeginSearch(Search search, size_t from);
  // Begins a search in the middle of an element, and returns true if an element inside it shows
  // that a bracket is missing before the inner one.
  bool BeginSearchAtInner();
  // Searches for the next start of something sound, and sets search_at_ to it.
  absl::StatusOr<Supply> FindStart();
  // Parts of FindStart: each candidate is tested by scanning it. MoveToCandidate moves search_at_
  // to the next byte that may start an element or a member.
  bool MoveToCandidate();
  // Each tests the candidate at search_at_; kNotYet: more of the input is needed.
  Answer TestElement();
  Answer TestMember();
  // Tests cheaply whether a candidate is worth a scan.
  bool LooksLikeStart(size_t at) const;
  std::optional<size_t> FindArrayEnd() const;
  // Returns the piece for what was passed over; cutting continues at `at`.
  Piece EndSearch(size_t at);

  Input input_;
  Options options_;
  const std::string quoted_array_key_;
  const std::string quoted_element_key_;
  // Followed by kPaddingBytes that may be read and have any value.
  std::vector<char> window_;
  size_t begin_ = 0;  // the bytes not consumed yet are [begin_, end_)
  size_t end_ = 0;
  // Positions in the input are this plus an index into the window.
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
  // See EndOfInput: such a string may turn out to be a key behind an array that was not closed.
  bool key_is_element_ = false;  // key_ is the text of the last element

  // Of the value being scanned, or of the candidate of a search. Kept between calls, so that a long
  // value is scanned once although it arrives in pieces.
  JsonStructure structure_;
  uint64_t value_begin_ = 0;  // in the input
  size_t scan_ = 0;
  size_t value_end_ = 0;
  bool oversized_ = false;

  Search search_ = Search::kNone;
  uint64_t search_from_ = 0;               // in the input
  std::optional<uint64_t> trusted_start_;  // a candidate, in the input, whatever precedes it
  size_t search_at_ = 0;
  bool testing_ = false;  // the candidate at search_at_ up to scan_
  uint64_t damage_position_ = 0;
};

}  // namespace neurontrace
