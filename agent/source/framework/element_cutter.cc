// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/element_cutter.h"

#include <array>
#include <cstring>

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
  if (state_ == State::kStart) {
    ASSIGN_OR_RETURN(std::optional<char> first, SkipSpace());
    // The mark may have arrived in pieces.
    while (first == kByteOrderMark[0] && end_ - begin_ < kByteOrderMark.size()) {
      ASSIGN_OR_RETURN(const bool more, Refill());
      if (!more) break;
    }
    if (first == kByteOrderMark[0] && end_ - begin_ >= kByteOrderMark.size() &&
        std::string_view(&window_[begin_], kByteOrderMark.size()) == kByteOrderMark) {
      begin_ += kByteOrderMark.size();
      ASSIGN_OR_RETURN(first, SkipSpace());
    }
    if (!first) return Finish(Kind::kTruncated);
    if (first != '{' && first != '[') return Finish(Kind::kMalformed);
    root_is_array_ = first == '[';
    state_ = root_is_array_ ? State::kElements : State::kMembers;
    ++begin_;
  }
  while (state_ != State::kDone) {
    const State before = state_;
    ASSIGN_OR_RETURN(Piece piece, before == State::kElements ? NextElement() : NextMember());
    if (state_ == before || state_ == State::kDone) return piece;
  }
  return Finish(last_);
}

absl::StatusOr<ElementCutter::Piece> ElementCutter::NextMember() {
  ASSIGN_OR_RETURN(std::optional<char> c, SkipSpace());
  while (c == ',') {
    ++begin_;
    ASSIGN_OR_RETURN(c, SkipSpace());
  }
  if (!c) return Finish(Kind::kTruncated);
  if (c == '}') {
    ++begin_;
    return Finish(Kind::kEnd);
  }
  if (c != '"') return Finish(Kind::kMalformed);
  ASSIGN_OR_RETURN(const bool has_key, FindValueEnd());
  if (!has_key) return Finish(Kind::kTruncated);
  if (oversized_) return Finish(Kind::kMalformed);
  key_.assign(&window_[begin_ + 1], value_end_ - begin_ - 2);
  begin_ = value_end_;
  ASSIGN_OR_RETURN(c, SkipSpace());
  if (!c) return Finish(Kind::kTruncated);
  if (c != ':') return Finish(Kind::kMalformed);
  ++begin_;
  ASSIGN_OR_RETURN(c, SkipSpace());
  if (c == '[' && key_ == options_.array_key) {
    ++begin_;
    state_ = State::kElements;
    return Piece{};
  }
  if (!c) return Finish(Kind::kTruncated);
  ASSIGN_OR_RETURN(const bool has_value, FindValueEnd());
  if (!has_value) return Finish(Kind::kTruncated);
  if (!oversized_ && value_end_ == begin_) return Finish(Kind::kMalformed);
  Piece piece{oversized_ ? Kind::kOversized : Kind::kMember, key_, {}};
  if (!oversized_) piece.text = {&window_[begin_], value_end_ - begin_};
  begin_ = value_end_;
  return piece;
}

absl::StatusOr<ElementCutter::Piece> ElementCutter::NextElement() {
  ASSIGN_OR_RETURN(std::optional<char> c, SkipSpace());
  while (c == ',') {
    ++begin_;
    ASSIGN_OR_RETURN(c, SkipSpace());
  }
  if (!c) {
    // Chrome's array form may be left open, so that a program can be killed while it writes.
    return Finish(root_is_array_ ? Kind::kEnd : Kind::kTruncated);
  }
  if (c == ']') {
    ++begin_;
    if (root_is_array_) return Finish(Kind::kEnd);
    state_ = State::kMembers;
    return Piece{};
  }
  ASSIGN_OR_RETURN(const bool complete, FindValueEnd());
  if (!complete) return Finish(Kind::kTruncated);
  if (!oversized_ && value_end_ == begin_) return Finish(Kind::kMalformed);
  Piece piece{oversized_ ? Kind::kOversized : Kind::kElement, {}, {}};
  if (!oversized_) piece.text = {&window_[begin_], value_end_ - begin_};
  begin_ = value_end_;
  return piece;
}

absl::StatusOr<bool> ElementCutter::FindValueEnd() {
  scan_ = begin_;
  value_begin_ = position();
  depth_ = 0;
  in_string_ = escaped_ = oversized_ = false;
  for (;;) {
    if (ScanValue()) {
      oversized_ = oversized_ || value_end_ - begin_ > options_.piece_bytes_max;
      return true;
    }
    if (oversized_ || scan_ - begin_ > options_.piece_bytes_max) {
      oversized_ = true;  // From here on only brackets and quotes are followed.
      begin_ = scan_;
    }
    ASSIGN_OR_RETURN(const bool more, Refill());
    if (more) continue;
    // A number may be the last thing in a file that was cut.
    return false;
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

absl::StatusOr<std::optional<char>> ElementCutter::SkipSpace() {
  for (;;) {
    while (begin_ < end_ && IsSpace(window_[begin_])) ++begin_;
    if (begin_ < end_) return window_[begin_];
    scan_ = begin_;
    ASSIGN_OR_RETURN(const bool more, Refill());
    if (!more) return std::nullopt;
  }
}

absl::StatusOr<bool> ElementCutter::Refill() {
  // The kept part moves to the front; it grows only with an element that is longer than the window.
  if (begin_ > 0) {
    memmove(window_.data(), &window_[begin_], end_ - begin_);
    discarded_ += begin_;
    scan_ -= begin_;
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ + kPaddingBytes == window_.size()) window_.resize(2 * window_.size());
  ASSIGN_OR_RETURN(const size_t n, input_(&window_[end_], window_.size() - kPaddingBytes - end_));
  end_ += n;
  return n > 0;
}

ElementCutter::Piece ElementCutter::Finish(Kind kind) {
  state_ = State::kDone;
  last_ = kind;
  return {kind, {}, {}};
}

}  // namespace neurontrace
