// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/decode/layout_predictor.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <utility>

#include "agent/source/neuron/decode/json_text.h"

// Eight bytes are looked at in one word, by the tests of Anderson, "Bit Twiddling Hacks"
// ("Determine if a word has a zero byte", "… a byte less than n"). Each sets the high bit of bytes
// that it finds, and is exact up to the first of them; the bits of later bytes are not used.
namespace neurontrace {
namespace {

using json_text_internal::EightDigits;
using json_text_internal::Load8;

constexpr uint64_t kLowBits = 0x0101010101010101;
constexpr uint64_t kHighBits = 0x8080808080808080;
constexpr uint64_t kQuotes = kLowBits * '"';
constexpr uint64_t kColons = kLowBits * ':';
constexpr uint64_t kBackslashes = kLowBits * '\\';
constexpr uint64_t kZeroDigits = kLowBits * '0';

// Longer strings are left to the full decoder.
constexpr size_t kStringBytesMax = 1'024;
// The shortest text of a double has at most 24 characters.
constexpr size_t kDoubleBytesMax = 32;
// How far Predict reads to tell layouts apart.
constexpr int kHeadWords = 8;
constexpr int kHeadQuotes = 8;
// So that no event has more steps than Step can number.
static_assert(limits::kAttributesPerEventMax + kFieldCount <= UINT8_MAX);
static_assert(LayoutPredictor::kTextBytesMax <= UINT16_MAX);

// Both texts are read up to 8 bytes beyond.
inline bool SameBytes(const char* a, const char* b, size_t size) {
  if (size < 8) {
    return size == 0 || (Load8(a) ^ Load8(b)) << (64 - 8 * size) == 0;
  }
  // The last word overlaps the one before it.
  for (size_t i = 0; i + 8 < size; i += 8) {
    if (Load8(a + i) != Load8(b + i)) return false;
  }
  return Load8(a + size - 8) == Load8(b + size - 8);
}

// The bytes of the word that are no digits.
inline uint64_t FindNonDigits(uint64_t word) {
  const uint64_t digits = word ^ kZeroDigits;
  return ((digits + kLowBits * (0x7f - 9)) | digits) & kHighBits;
}

// Returns how many of the next eight bytes are digits before the first other one.
inline unsigned CountDigits(uint64_t word) { return std::countr_zero(FindNonDigits(word)) / 8; }

// Returns the number that the first `count` bytes of the word spell. Requires 1 to 8 of them.
inline uint64_t ParseDigits(uint64_t word, unsigned count) {
  return EightDigits(word << (64 - 8 * count));
}

// Reads a number as ParseCanonicalUint does, and returns its end; nullptr if it has another
// spelling. Reads up to 24 bytes.
inline const char* ReadUint(const char* at, uint64_t& value) {
  static constexpr uint64_t kPowersOfTen[] = {1,       10,        100,        1'000,      10'000,
                                              100'000, 1'000'000, 10'000'000, 100'000'000};
  uint64_t word = Load8(at);
  unsigned count = CountDigits(word);
  if (count == 0 || (*at == '0' && count > 1)) return nullptr;
  uint64_t number = ParseDigits(word, count);
  at += count;
  if (count == 8) {
    word = Load8(at);
    count = CountDigits(word);
    if (count > 0) number = number * kPowersOfTen[count] + ParseDigits(word, count);
    at += count;
    if (count == 8) {
      word = Load8(at);
      count = CountDigits(word);
      // 2^64 has 20 digits.
      if (count > 4) return nullptr;
      if (count > 0 && (__builtin_mul_overflow(number, kPowersOfTen[count], &number) ||
                        __builtin_add_overflow(number, ParseDigits(word, count), &number))) {
        return nullptr;
      }
      at += count;
    }
  }
  value = number;
  return at;
}

// Reads a number as ParseCanonicalInt does. The least int64_t is left to the full decoder.
inline const char* ReadInt(const char* at, int64_t& value) {
  const bool negative = *at == '-';
  uint64_t magnitude = 0;
  at = ReadUint(at + negative, magnitude);
  if (at == nullptr || magnitude > uint64_t{INT64_MAX} || (negative && magnitude == 0)) {
    return nullptr;
  }
  value = negative ? -static_cast<int64_t>(magnitude) : static_cast<int64_t>(magnitude);
  return at;
}

inline const char* ReadDouble(const char* at, uint64_t& bits) {
  constexpr std::string_view kNumberCharacters = "0123456789.-+eE";
  size_t size = 0;
  while (size < kDoubleBytesMax && kNumberCharacters.find(at[size]) != std::string_view::npos) {
    ++size;
  }
  return ClassifyNumber(at, size, bits) == ValueType::kDouble ? at + size : nullptr;
}

inline const char* ReadBool(const char* at, uint64_t& bits) {
  bits = std::memcmp(at, "true", 4) == 0 ? 1 : 0;
  if (bits == 1) return at + 4;
  return std::memcmp(at, "false", 5) == 0 ? at + 5 : nullptr;
}

// The bytes of the word that are a quote, a backslash, a control character or not ASCII.
inline uint64_t FindUnusual(uint64_t word) {
  const uint64_t quotes = word ^ kQuotes;
  const uint64_t backslashes = word ^ kBackslashes;
  return (((quotes - kLowBits) & ~quotes) | ((backslashes - kLowBits) & ~backslashes) |
          ((word - kLowBits * ' ') & ~word) | word) &
         kHighBits;
}

// Returns the next quote if only printable ASCII without backslashes precedes it; else nullptr.
inline const char* FindClosingQuote(const char* at) {
  for (const char* const end = at + kStringBytesMax; at < end; at += 8) {
    if (const uint64_t unusual = FindUnusual(Load8(at)); unusual != 0) {
      at += std::countr_zero(unusual) / 8;
      return *at == '"' ? at : nullptr;
    }
  }
  return nullptr;
}

// By Field; the two without a member are value kinds of their own.
constexpr uint64_t EventFields::*kFieldMembers[kFieldCount] = {&EventFields::id,
                                                               &EventFields::nc_local_id,
                                                               &EventFields::tracking_id,
                                                               &EventFields::thread_id,
                                                               nullptr,
                                                               &EventFields::nrta_seq_id,
                                                               nullptr,
                                                               &EventFields::timestamp_ns};

}  // namespace

const char* LayoutPredictor::ReadString(LastText& last, const char* at, std::string_view& text) {
  size_t bytes = last.bytes;
  // A text that was read before is known to be usual.
  if (bytes == 0 || at[bytes] != '"' || !SameBytes(at, last.text.data(), bytes)) {
    const char* const end = FindClosingQuote(at);
    if (end == nullptr) return nullptr;
    bytes = end - at;
    last.bytes = bytes <= kLastTextBytesMax ? bytes : 0;
    std::memcpy(last.text.data(), at, last.bytes);
  }
  text = {at, bytes};
  return at + bytes;
}

inline const char* LayoutPredictor::ReadValue(Layout& layout, const Step& step, const char* at) {
  switch (step.kind) {
    case ValueKind::kField:
      return ReadUint(at, prediction_.event.fields.*kFieldMembers[step.slot]);
    case ValueKind::kWorkerGid:
      return ReadInt(at, prediction_.event.fields.worker_gid);
    case ValueKind::kNcIdx: {
      uint64_t core = 0;
      at = ReadUint(at, core);
      if (core >= limits::kCoresPerWorkerMax) return nullptr;
      prediction_.event.nc_idx = static_cast<uint32_t>(core);
      return at;
    }
    case ValueKind::kUint:
      return ReadUint(at, layout.values[step.slot].bits);
    case ValueKind::kInt: {
      int64_t number = 0;
      if (*at != '-') return nullptr;  // it would be unsigned
      at = ReadInt(at, number);
      layout.values[step.slot].bits = static_cast<uint64_t>(number);
      return at;
    }
    case ValueKind::kDouble:
      return ReadDouble(at, layout.values[step.slot].bits);
    case ValueKind::kBool:
      return ReadBool(at, layout.values[step.slot].bits);
    case ValueKind::kString:
      return ReadString(layout.last_texts[step.last_text], at, layout.values[step.slot].text);
    case ValueKind::kEnd:
      break;
  }
  return at;
}

// Values of an attempt that fails halfway are overwritten by the next one, or reset here.
const char* LayoutPredictor::ReadEvent(Layout& layout, const char* at) {
  prediction_.event.nc_idx = limits::kNoNcIdx;
  prediction_.event.fields = {};
  const char* literal = layout.literals.data();
  for (const Step& step : layout.steps) {
    if (!SameBytes(at, literal, step.literal_bytes)) return nullptr;
    literal += step.literal_bytes;
    at = ReadValue(layout, step, at + step.literal_bytes);
    if (at == nullptr) return nullptr;
  }
  return at;
}

uint64_t LayoutPredictor::HeadHash(const char* at) {
  uint64_t hash = 0;
  int quotes = 0;
  for (int i = 0; i < kHeadWords; ++i, at += 8) {
    uint64_t word = Load8(at);
    // Exact for every byte, unlike the other tests, as all quotes are counted.
    const uint64_t other = word ^ kQuotes;
    uint64_t quote = ~(((other & ~kHighBits) + ~kHighBits) | other) & kHighBits;
    const int before = quotes;
    quotes += std::popcount(quote);
    for (int n = before + 1; n < kHeadQuotes && quote != 0; ++n) quote &= quote - 1;
    const uint64_t colons = word ^ kColons;
    const uint64_t number =
        (colons - kLowBits) & ~colons & kHighBits & ~FindNonDigits(Load8(at + 1));
    const uint64_t end = quote | number;
    if (end != 0) word &= (end & -end) - 1;  // what precedes the first one
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
    if (end != 0) break;
  }
  return hash;
}

void LayoutPredictor::Follow(Layout& layout) {
  if (previous_ != nullptr && previous_->followed_by[0] != &layout) {
    previous_->followed_by[1] = std::exchange(previous_->followed_by[0], &layout);
  }
  previous_ = &layout;
}

const LayoutPredictor::Prediction* LayoutPredictor::Take(Layout& layout, const char* at,
                                                         const char* end) {
  Follow(layout);
  prediction_.event.shape = layout.shape;
  prediction_.event.values = layout.values;
  prediction_.bytes = static_cast<uint32_t>(end - at);
  prediction_.tokens = layout.tokens;
  return &prediction_;
}

const LayoutPredictor::Prediction* LayoutPredictor::Predict(const char* at) {
  std::array<Layout*, 2> guesses{};
  if (previous_ != nullptr) guesses = previous_->followed_by;
  for (Layout* const guess : guesses) {
    if (guess == nullptr) break;
    if (const char* const end = ReadEvent(*guess, at)) return Take(*guess, at, end);
  }
  const uint64_t head = HeadHash(at);
  auto& ways = by_head_[head % kHeads];
  for (size_t i = 0; i < kWays && ways[i] != nullptr; ++i) {
    Layout& layout = *ways[i];
    if (layout.head != head || &layout == guesses[0] || &layout == guesses[1]) continue;
    const char* const end = ReadEvent(layout, at);
    if (end == nullptr) continue;
    if (i > 0) std::swap(ways[i], ways[i - 1]);
    return Take(layout, at, end);
  }
  return nullptr;
}

void LayoutPredictor::Learn(std::string_view text, uint32_t tokens, std::span<const Place> places,
                            const NrtEvent& event) {
  assert(event.shape->generation == generation_);
  assert(text.size() >= 2 && text.front() == '{' && text.back() == '}');
  if (learned_left_ == 0 || text.size() > kTextBytesMax) return;
  --learned_left_;  // also if it fails, as the time is spent
  if (layouts_.size() == kLayoutsMax) Forget();

  auto layout = std::make_unique<Layout>();
  layout->shape = event.shape;
  layout->tokens = tokens;
  layout->values.resize(event.values.size());
  prediction_.event = {};
  const char* at = text.data();  // behind the last value
  const auto add = [&layout, &at](const char* value, ValueKind kind, uint8_t slot) {
    assert(value > at);
    layout->literals.append(at, value);
    layout->steps.push_back({.literal_bytes = static_cast<uint16_t>(value - at),
                             .kind = kind,
                             .slot = slot,
                             .last_text = static_cast<uint8_t>(layout->last_texts.size())});
    if (kind == ValueKind::kString) layout->last_texts.emplace_back();
  };
  for (const Place& place : places) {
    add(place.at, place.kind, place.slot);
    at = ReadValue(*layout, layout->steps.back(), place.at);
    if (at == nullptr) return;
  }
  add(text.data() + text.size(), ValueKind::kEnd, 0);
  const auto not_ascii = [](char c) { return static_cast<unsigned char>(c) >= 0x80; };
  if (std::ranges::any_of(layout->literals, not_ascii)) return;
  assert(layout->literals.find('\0') ==
         std::string::npos);  // so that no match passes the text's end
  const auto same_value = [](const AttributeValue& a, const AttributeValue& b) {
    return a.bits == b.bits && a.text == b.text;
  };
  if (prediction_.event.nc_idx != event.nc_idx || prediction_.event.fields != event.fields ||
      !std::ranges::equal(layout->values, event.values, same_value)) {
    return;
  }
  layout->literals.append(sizeof(uint64_t), '\0');
  layout->head = HeadHash(text.data());
  auto& ways = by_head_[layout->head % kHeads];
  std::move_backward(ways.begin(), ways.end() - 1, ways.end());
  ways[0] = layout.get();
  Follow(*layout);
  layouts_.push_back(std::move(layout));
}

void LayoutPredictor::Forget() {
  layouts_.clear();
  by_head_.fill({});
  previous_ = nullptr;
}

}  // namespace neurontrace
