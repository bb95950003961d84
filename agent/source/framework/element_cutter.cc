// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/element_cutter.h"

#include <algorithm>
#include <cstring>

#include "lib/base/status.h"

// How it works: Next advances a state machine over the top-level structure (State) and hands each
// value to JsonStructure, which follows it byte by byte to its end. If a byte is not allowed, a
// search begins (Search): FindStart looks for a place that looks like an element or the array's
// key, scans from there, and accepts what holds together. All state is kept between calls, so that
// pieces of the input may end anywhere. The cost is linear in the input; see FindStart.
namespace neurontrace {
namespace {

// UTF-8's, which some editors and writers put first.
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
// How many bytes a long search keeps before its current place; also how far LooksLikeStart looks.
constexpr size_t kBytesBeforeSearch = 256;
// How many closing brackets, from the last one backwards, are tried as the end of the array.
constexpr size_t kArrayEndsTried = 64;

// The white space of JSON (RFC 8259, section 2).
bool IsBlank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Includes N and I, as the JSON writers of Python and C++ may write NaN and Infinity.
bool CanBeginValue(char c) {
  return std::string_view("{[\"-0123456789tfnNI").find(c) != std::string_view::npos;
}

// Returns the key as it is spelled in the file, if it needs no escapes.
std::string Quoted(std::string_view key) { return std::string("\"").append(key).append("\""); }

}  // namespace

ElementCutter::ElementCutter(Input input, const Options& options)
    : input_(std::move(input)),
      options_(options),
      quoted_array_key_(Quoted(options.array_key)),
      quoted_element_key_(Quoted(options.element_key)),
      window_(options.window_bytes + kPaddingBytes) {}

absl::StatusOr<ElementCutter::Piece> ElementCutter::Next() {
  input_asked_ = false;
  // One question to the input for each call bounds the work and lets the caller do other things.
  while (state_ != State::kDone) {
    ASSIGN_OR_RETURN(const Supply supply, Advance());
    if (supply == Supply::kNotYet) return Piece{};
    const Piece piece = supply == Supply::kEnd     ? EndOfInput()
                        : search_ != Search::kNone ? EndSearch(search_at_)
                        : in_value_                ? TakeValue()
                                                   : HandleCharacter(window_[begin_]);
    if (piece.kind != Kind::kNotYet) return piece;
  }
  return Finish(last_);
}

absl::StatusOr<ElementCutter::Supply> ElementCutter::Advance() {
  if (search_ != Search::kNone) return FindStart();
  if (in_value_) return FindValueEnd();
  return state_ == State::kStart ? SkipMark() : SkipSpace();
}

ElementCutter::Piece ElementCutter::EndOfInput() {
  // Only what may follow the top-level value is left.
  if (state_ == State::kBehind) {
    if (search_ != Search::kNone) bytes_behind_ += discarded_ + end_ - search_from_;
    begin_ = end_;
    return Finish(Kind::kEnd);
  }
  // The last element is not complete; one inside it may be sound.
  if (search_ == Search::kNone && BeginSearchAtInner()) return {};
  if (search_ == Search::kDamagedMember) {
    // All elements have been read, and what the damaged members said is not known.
    if (has_array_) {
      damage_position_ = std::min(damage_position_, discarded_ + end_);
      const Piece piece = EndSearch(end_);
      Finish(Kind::kEnd);
      return piece;
    }
    return Finish(Kind::kMalformed);
  }
  if (search_ != Search::kNone) {
    if (const auto array_end = FindArrayEnd()) return EndSearch(*array_end);
    const bool is_far = discarded_ + end_ - search_from_ > options_.piece_bytes_max;
    if (search_ == Search::kDamagedElement || root_is_array_ || !key_is_element_ || is_far ||
        window_[FromSearch()] != ':') {
      return Finish(Kind::kTruncated);
    }
    // The bracket that ends the array is missing: what was taken for an element is a key.
    begin_ = FromSearch() + 1;
    search_ = Search::kNone;
    state_ = State::kMember;
    return {};
  }
  // The array form of Chrome's Trace Event Format may be left open, so that a program can be killed
  // while it writes.
  const bool can_end = root_is_array_ && !in_value_;
  return Finish(can_end ? Kind::kEnd : Kind::kTruncated);
}

ElementCutter::Piece ElementCutter::HandleCharacter(char c) {
  switch (state_) {
    case State::kKey:
      if (c == '"') return BeginValue();
      if (c == '{' && has_array_) {
        // A bracket too many has ended the array.
        damage_position_ = position();
        state_ = State::kElement;
        return {Kind::kStray, {}, {}};
      }
      if (c != '}') {
        BeginSearch(Search::kDamagedMember, begin_);
        return {};
      }
      if (!std::exchange(is_nested_, false)) return CloseRoot();
      break;
    case State::kColon:
      if (c != ':') {
        BeginSearch(Search::kDamagedMember, begin_);
        return {};
      }
      state_ = State::kMember;
      break;
    case State::kMember:
      if (key_ != options_.array_key ||
          (c != '[' && (c != '{' || is_nested_ || !options_.can_nest))) {
        return BeginValue();
      }
      has_array_ = has_array_ || c == '[';
      is_nested_ = is_nested_ || c == '{';
      state_ = c == '[' ? State::kElement : State::kKey;
      break;
    case State::kElement:
      if (c != ']' && !CanBeginValue(c)) {
        BeginSearch(Search::kStray, begin_);
        return {};
      }
      if (c != ']') return BeginValue();
      if (root_is_array_) return CloseRoot();
      state_ = State::kKey;
      break;
    case State::kBehind:
      // Another trace follows, whose base and ranks may differ, so its events are not mixed with
      // these.
      if (c == '{' || c == '[') return Finish(Kind::kEnd);
      BeginSearch(Search::kStray, begin_);
      return {};
    default:
      if (c != '{' && c != '[') return Finish(Kind::kMalformed);
      root_is_array_ = has_array_ = c == '[';
      state_ = root_is_array_ ? State::kElement : State::kKey;
  }
  ++begin_;
  return {};
}

ElementCutter::Piece ElementCutter::TakeValue() {
  // Views of the piece point into the window, which moves with the next call at the earliest.
  const std::string_view text(&window_[begin_], value_end_ - begin_);
  if (oversized_ && state_ == State::kKey) return Finish(Kind::kMalformed);
  in_value_ = false;
  begin_ = value_end_;
  if (state_ == State::kKey) {
    key_ = text.substr(1, text.size() - 2);
    state_ = State::kColon;
    return {};
  }
  Piece piece{Kind::kElement, {}, oversized_ ? std::string_view() : text};
  if (state_ == State::kMember) {
    piece.kind = Kind::kMember;
    piece.key = key_;
    state_ = State::kKey;
  } else {
    // A string between elements may turn out to be a key; see EndOfInput.
    key_is_element_ = piece.text.starts_with('"');
    if (key_is_element_) key_ = text.substr(1, text.size() - 2);
  }
  if (oversized_) piece.kind = Kind::kOversized;
  return piece;
}

// Text that looks like the end may be part of a name whose quotation marks are not escaped. What
// follows decides, in kBehind.
ElementCutter::Piece ElementCutter::CloseRoot() {
  is_closed_ = true;
  state_ = State::kBehind;
  ++begin_;
  return {};
}

// The key of elements is looked for only in elements: it tells where one inside another begins.
ElementCutter::Piece ElementCutter::BeginValue() {
  in_value_ = true;
  scan_ = begin_;
  value_begin_ = position();
  structure_.BeginValue(state_ == State::kElement ? options_.element_key : std::string_view());
  oversized_ = false;
  return {};
}

absl::StatusOr<ElementCutter::Supply> ElementCutter::FindValueEnd() {
  for (;;) {
    switch (structure_.Scan(window_.data(), scan_, end_)) {
      case JsonStructure::Outcome::kEnd:
        // Too long, with another element inside: more probably a missing bracket than a real
        // element.
        if (scan_ - begin_ > options_.piece_bytes_max && BeginSearchAtInner()) return FindStart();
        value_end_ = scan_;
        oversized_ = oversized_ || value_end_ - begin_ > options_.piece_bytes_max;
        return Supply::kHere;
      case JsonStructure::Outcome::kDamaged: {
        if (BeginSearchAtInner()) return FindStart();
        const uint64_t scanned = discarded_ + scan_ - value_begin_;
        const size_t from = scanned > options_.piece_bytes_max
                                ? scan_
                                : begin_ + static_cast<size_t>(structure_.token_begin());
        BeginSearch(state_ == State::kElement ? Search::kDamagedElement : Search::kDamagedMember,
                    from);
        damage_position_ = discarded_ + scan_;
        return FindStart();
      }
      case JsonStructure::Outcome::kMore:
        break;
    }
    if (oversized_ || scan_ - begin_ > options_.piece_bytes_max) {
      if (BeginSearchAtInner()) return FindStart();
      oversized_ = true;  // From here on only the structure is followed.
      begin_ = scan_;
    }
    // A number may be the last token of a file that was cut, so its end needs one more byte or the
    // end of the input.
    ASSIGN_OR_RETURN(const Supply supply, Refill());
    if (supply != Supply::kHere) return supply;
  }
}

// Where the search began, or what is left of what lies behind.
size_t ElementCutter::FromSearch() const {
  return search_from_ > discarded_ + begin_ ? static_cast<size_t>(search_from_ - discarded_)
                                            : begin_;
}

void ElementCutter::BeginSearch(Search search, size_t from) {
  search_ = search;
  search_at_ = from;
  search_from_ = damage_position_ = discarded_ + from;
  trusted_start_.reset();
  in_value_ = testing_ = false;
}

bool ElementCutter::BeginSearchAtInner() {
  // An oversized value is not kept, so there is nothing to go back to.
  if (!in_value_ || oversized_ || state_ != State::kElement || !structure_.inner_begin()) {
    return false;
  }
  // However the bytes arrive: by then the value is not yet too long to be kept.
  if (structure_.inner_key_end() >= options_.piece_bytes_max) return false;
  BeginSearch(Search::kDamagedElement, begin_ + static_cast<size_t>(*structure_.inner_begin()));
  trusted_start_ = search_from_;
  return true;
}

// Each candidate is scanned once, and the inside of a refused one holds no candidates, so the
// search is linear in the input.
absl::StatusOr<ElementCutter::Supply> ElementCutter::FindStart() {
  for (;;) {
    while (testing_ || MoveToCandidate()) {
      const Answer answer = window_[search_at_] == '"' ? TestMember() : TestElement();
      if (answer == Answer::kYes) return Supply::kHere;
      if (answer == Answer::kNotYet) break;
    }
    // FindArrayEnd looks that far back from the end of the input.
    const size_t kept = std::max(kBytesBeforeSearch, options_.piece_bytes_max);
    if (search_at_ - begin_ > kept) begin_ = search_at_ - kept;
    ASSIGN_OR_RETURN(const Supply supply, Refill());
    if (supply == Supply::kEnd && !testing_ && search_at_ == end_) return supply;
    if (supply == Supply::kNotYet) return supply;
  }
}

// To the next byte at which a start may stand; false at the end of the window.
bool ElementCutter::MoveToCandidate() {
  std::string_view firsts = "{";
  // Once there was an array, a bracket too many may have ended it.
  if (search_ == Search::kDamagedMember) firsts = has_array_ ? "\"{" : "\"";
  const std::string_view text(&window_[search_at_], end_ - search_at_);
  search_at_ += std::min(text.find_first_of(firsts), text.size());
  return search_at_ < end_;
}

// Tests for the key of the array of elements, followed by a colon.
ElementCutter::Answer ElementCutter::TestMember() {
  const std::string_view text(&window_[search_at_], end_ - search_at_);
  const std::string_view key(quoted_array_key_);
  const size_t longest = key.size() + kBytesBeforeSearch;
  size_t behind = key.size();
  while (behind < std::min(longest, text.size()) && IsBlank(text[behind])) ++behind;
  const bool is_short = behind >= text.size() && behind < longest;
  if (is_short && !input_ended_ && key.starts_with(text.substr(0, key.size()))) {
    return Answer::kNotYet;
  }
  if (!text.starts_with(key) || behind >= text.size() || text[behind] != ':') {
    ++search_at_;
    return Answer::kNo;
  }
  state_ = State::kKey;
  return Answer::kYes;
}

// Tests for an object that has the key of elements, at a place where objects of a list may be; or
// for one that is itself damaged.
ElementCutter::Answer ElementCutter::TestElement() {
  if (!testing_) {
    const size_t longest = kBytesBeforeSearch + quoted_element_key_.size();
    if (end_ - search_at_ < longest && !input_ended_) return Answer::kNotYet;
    if (!LooksLikeStart(search_at_)) {
      ++search_at_;
      return Answer::kNo;
    }
    testing_ = true;
    scan_ = search_at_;
    structure_.BeginValue(options_.element_key);
  }
  const size_t longest_end = search_at_ + options_.piece_bytes_max + 1;
  const JsonStructure::Outcome outcome =
      structure_.Scan(window_.data(), scan_, std::min(end_, longest_end));
  const bool is_long = scan_ == longest_end;
  if (outcome == JsonStructure::Outcome::kMore && !is_long && !input_ended_) {
    return Answer::kNotYet;
  }
  testing_ = false;
  const bool is_damaged = outcome == JsonStructure::Outcome::kDamaged && structure_.has_member();
  if (structure_.has_key() || is_damaged) {
    state_ = State::kElement;
    return Answer::kYes;
  }
  search_at_ = std::max(scan_, search_at_ + 1);
  return Answer::kNo;
}

// Tests for an opening brace and a quotation mark, after a comma or at the beginning of a line; or
// for the key of elements right after the brace. Cheap, to keep most braces from being scanned.
bool ElementCutter::LooksLikeStart(size_t at) const {
  size_t behind = at + 1;
  const size_t last = std::min(end_, at + kBytesBeforeSearch);
  while (behind < last && IsBlank(window_[behind])) ++behind;
  if (behind >= last || window_[behind] != '"') return false;
  // Between elements nothing else begins with a brace.
  if (search_ == Search::kStray || discarded_ + at == trusted_start_) return true;
  const std::string_view text(&window_[behind], end_ - behind);
  if (text.starts_with(quoted_element_key_)) return true;
  // Not further back than is kept.
  const size_t first = std::max(FromSearch(), at - std::min(at, kBytesBeforeSearch));
  while (at > first && IsBlank(window_[at - 1]) && window_[at - 1] != '\n') --at;
  return at > first && (window_[at - 1] == ',' || window_[at - 1] == '\n');
}

// Returns the bracket behind the damage after which the rest of the file is sound. Of the last
// kArrayEndsTried brackets, the earliest that qualifies is taken.
std::optional<size_t> ElementCutter::FindArrayEnd() const {
  const size_t first = std::max(FromSearch(), end_ - std::min(end_, options_.piece_bytes_max));
  const std::string_view text(&window_[first], end_ - first);
  std::optional<size_t> found;
  size_t at = text.rfind(']');
  for (size_t tried = 0; at != std::string_view::npos && tried < kArrayEndsTried; ++tried) {
    size_t end = at + 1;
    bool is_sound = root_is_array_;
    if (!root_is_array_) {
      JsonStructure rest;
      rest.BeginAfterMember();
      is_sound = rest.Scan(text.data(), end, text.size()) == JsonStructure::Outcome::kEnd;
    }
    while (is_sound && end < text.size()) is_sound = IsBlank(text[end]) && ++end > 0;
    if (is_sound) found = first + at;
    at = at == 0 ? std::string_view::npos : text.rfind(']', at - 1);
  }
  return found;
}

// Continues at `at`.
ElementCutter::Piece ElementCutter::EndSearch(size_t at) {
  Piece piece{Kind::kDamaged, {}, {}};
  if (search_ == Search::kStray) piece.kind = Kind::kStray;
  is_closed_ = false;
  if (search_ == Search::kDamagedMember) {
    piece.key = key_.empty() ? std::string_view("?") : std::string_view(key_);
  } else {
    state_ = State::kElement;
    key_is_element_ = false;
  }
  search_ = Search::kNone;
  begin_ = at;
  return piece;
}

absl::StatusOr<ElementCutter::Supply> ElementCutter::SkipSpace() {
  // Writers differ in where they put commas, and in whether there is one after the last part.
  const bool skips_commas = state_ == State::kKey || state_ == State::kElement;
  const auto is_skipped = [&](char c) {
    // Files are filled up with NUL.
    return IsBlank(c) || (skips_commas && c == ',') || (state_ == State::kBehind && c == '\0');
  };
  for (;;) {
    while (begin_ < end_ && is_skipped(window_[begin_])) ++begin_;
    if (begin_ < end_) return Supply::kHere;
    ASSIGN_OR_RETURN(const Supply supply, Refill());
    if (supply != Supply::kHere) return supply;
  }
}

// And the blanks around it. The mark may arrive in pieces.
absl::StatusOr<ElementCutter::Supply> ElementCutter::SkipMark() {
  ASSIGN_OR_RETURN(Supply supply, SkipSpace());
  if (supply != Supply::kHere) return supply;
  while (window_[begin_] == kByteOrderMark[0] && end_ - begin_ < kByteOrderMark.size()) {
    ASSIGN_OR_RETURN(supply, Refill());
    if (supply == Supply::kNotYet) return supply;
    if (supply == Supply::kEnd) break;
  }
  state_ = State::kRoot;
  if (std::string_view(&window_[begin_], end_ - begin_).starts_with(kByteOrderMark)) {
    begin_ += kByteOrderMark.size();
  }
  return SkipSpace();
}

absl::StatusOr<ElementCutter::Supply> ElementCutter::Refill() {
  if (input_ended_) return Supply::kEnd;
  if (std::exchange(input_asked_, true)) return Supply::kNotYet;
  // The kept part moves to the front; it grows only with an element that is longer than the window.
  if (begin_ > 0) {
    memmove(window_.data(), &window_[begin_], end_ - begin_);
    discarded_ += begin_;
    scan_ = std::max(scan_, begin_) - begin_;
    search_at_ = std::max(search_at_, begin_) - begin_;
    end_ -= begin_;
    begin_ = 0;
  }
  // Doubles, so that a long element is copied a bounded number of times.
  if (end_ + kPaddingBytes == window_.size()) window_.resize(2 * window_.size());
  const size_t room = window_.size() - kPaddingBytes - end_;
  ASSIGN_OR_RETURN(const std::optional<size_t> n,
                   input_(&window_[end_], std::min(room, kWindowBytes)));
  if (!n) return Supply::kNotYet;
  input_ended_ = *n == 0;
  if (input_ended_) return Supply::kEnd;
  end_ += *n;
  return Supply::kHere;
}

absl::StatusOr<bool> ElementCutter::Drain() {
  input_asked_ = false;
  if (begin_ < end_) {
    drained_.append(&window_[begin_], end_ - begin_);
    has_elements_behind_ =
        has_elements_behind_ || drained_.find(quoted_element_key_) != std::string::npos;
    drained_.erase(0, drained_.size() - std::min(drained_.size(), quoted_element_key_.size() - 1));
  }
  // Only bytes that are neither blanks nor padding count.
  for (; begin_ < end_; ++begin_) {
    bytes_behind_ += !IsBlank(window_[begin_]) && window_[begin_] != '\0';
  }
  ASSIGN_OR_RETURN(const Supply supply, Refill());
  return supply == Supply::kEnd;
}

ElementCutter::Piece ElementCutter::Finish(Kind kind) {
  state_ = State::kDone;
  last_ = kind;
  return {kind, {}, {}};
}

}  // namespace neurontrace
