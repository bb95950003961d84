// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/element_cutter.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/status.h"

namespace neurontrace {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// What a character does to a scan outside strings.
enum class Role : uint8_t { kPlain, kQuote, kOpen, kClose, kDelimiter };

constexpr std::array<Role, 256> MakeRoles() {
  std::array<Role, 256> roles{};
  roles['"'] = Role::kQuote;
  roles['{'] = roles['['] = Role::kOpen;
  roles['}'] = roles[']'] = Role::kClose;
  roles[','] = roles[':'] = Role::kDelimiter;
  roles[' '] = roles['\n'] = roles['\r'] = roles['\t'] = Role::kDelimiter;
  return roles;
}
constexpr std::array<Role, 256> kRoles = MakeRoles();

}  // namespace

ElementCutter::ElementCutter(Input input, const Options& options)
    : input_(std::move(input)), options_(options), window_(options.window_bytes + kPaddingBytes) {}

absl::StatusOr<ElementCutter::Piece> ElementCutter::Next() {
  input_asked_ = false;
  while (state_ != State::kDone) {
    ASSIGN_OR_RETURN(const Supply supply, in_value_                 ? FindValueEnd()
                                          : state_ == State::kStart ? SkipMark()
                                                                    : SkipSpace());
    if (supply == Supply::kNotYet) return Piece{};
    if (supply == Supply::kEnd) {
      // Chrome's array form may be left open, so that a program can be killed while it writes.
      const bool may_end = root_is_array_ && !in_value_;
      return Finish(may_end ? Kind::kEnd : Kind::kTruncated);
    }
    const Piece piece = in_value_ ? TakeValue() : TakeCharacter(window_[begin_]);
    if (piece.kind != Kind::kNotYet) return piece;
  }
  return Finish(last_);
}

ElementCutter::Piece ElementCutter::TakeCharacter(char c) {
  switch (state_) {
    case State::kKey:
      if (c == '"') return BeginValue();
      if (c != '}') return Finish(Kind::kMalformed);
      ++begin_;
      return Finish(Kind::kEnd);
    case State::kColon:
      if (c != ':') return Finish(Kind::kMalformed);
      state_ = State::kMember;
      break;
    case State::kMember:
      if (c != '[' || key_ != options_.array_key) return BeginValue();
      state_ = State::kElement;
      break;
    case State::kElement:
      if (c != ']') return BeginValue();
      if (root_is_array_) {
        ++begin_;
        return Finish(Kind::kEnd);
      }
      state_ = State::kKey;
      break;
    default:
      if (c != '{' && c != '[') return Finish(Kind::kMalformed);
      root_is_array_ = c == '[';
      state_ = root_is_array_ ? State::kElement : State::kKey;
  }
  ++begin_;
  return {};
}

ElementCutter::Piece ElementCutter::TakeValue() {
  const std::string_view text(&window_[begin_], value_end_ - begin_);
  if (oversized_ ? state_ == State::kKey : text.empty()) return Finish(Kind::kMalformed);
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
  }
  if (oversized_) piece.kind = Kind::kOversized;
  return piece;
}

ElementCutter::Piece ElementCutter::BeginValue() {
  in_value_ = true;
  scan_ = begin_;
  value_begin_ = position();
  depth_ = 0;
  in_string_ = escaped_ = oversized_ = false;
  return {};
}

absl::StatusOr<ElementCutter::Supply> ElementCutter::FindValueEnd() {
  for (;;) {
    if (ScanValue()) {
      oversized_ = oversized_ || value_end_ - begin_ > options_.piece_bytes_max;
      return Supply::kHere;
    }
    if (oversized_ || scan_ - begin_ > options_.piece_bytes_max) {
      oversized_ = true;  // From here on only brackets and quotes are followed.
      begin_ = scan_;
    }
    // A number may be the last thing in a file that was cut.
    ASSIGN_OR_RETURN(const Supply supply, Refill());
    if (supply != Supply::kHere) return supply;
  }
}

// Goes on at scan_ until the value's end or the window's.
bool ElementCutter::ScanValue() {
  const char* const data = window_.data();
  size_t at = scan_;
  const auto done = [&](size_t end) {
    value_end_ = scan_ = end;
    return true;
  };
  // Not by begin_, which moves along with a value that is passed over.
  const auto begins = [&] { return discarded_ + at == value_begin_; };
  while (at < end_) {
    if (in_string_) {
      if (escaped_) {
        escaped_ = false;
        ++at;
        continue;
      }
      while (at < end_ && data[at] != '"' && data[at] != '\\') ++at;
      if (at == end_) break;
      if (data[at++] == '\\') {
        escaped_ = true;
        continue;
      }
      in_string_ = false;
      if (depth_ == 0) return done(at);
      continue;
    }
    const Role role = kRoles[static_cast<unsigned char>(data[at])];
    switch (role) {
      case Role::kPlain:
        break;
      case Role::kQuote:
        if (depth_ == 0 && !begins()) return done(at);
        in_string_ = true;
        break;
      case Role::kOpen:
        if (depth_ == 0 && !begins()) return done(at);
        ++depth_;
        break;
      case Role::kClose:
        if (depth_ == 0) return done(at);
        if (--depth_ == 0) return done(at + 1);
        break;
      case Role::kDelimiter:
        if (depth_ == 0) return done(at);
        break;
    }
    ++at;
  }
  scan_ = at;
  return false;
}

absl::StatusOr<ElementCutter::Supply> ElementCutter::SkipSpace() {
  // Writers differ in where they put commas, and in whether there is one after the last part.
  const bool skips_commas = state_ == State::kKey || state_ == State::kElement;
  for (;;) {
    while (begin_ < end_ &&
           (IsSpace(window_[begin_]) || (skips_commas && window_[begin_] == ','))) {
      ++begin_;
    }
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
    end_ -= begin_;
    begin_ = 0;
  }
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

ElementCutter::Piece ElementCutter::Finish(Kind kind) {
  state_ = State::kDone;
  last_ = kind;
  return {kind, {}, {}};
}

}  // namespace neurontrace
