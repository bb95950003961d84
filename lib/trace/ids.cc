// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/ids.h"

#include <cstring>

#include "lib/base/clean_text.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Crockford's base 32: without I, L, O and U, which people misread.
constexpr char kAlphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

// Returns the value of a digit, in either case, or -1.
int DigitOf(char c) {
  if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  const char* at = c == '\0' ? nullptr : std::strchr(kAlphabet, c);
  return at == nullptr ? -1 : static_cast<int>(at - kAlphabet);
}

}  // namespace

CaptureId CaptureId::Make(const Clock& clock, Random& random) {
  CaptureId id;
  const uint64_t ms = clock.RealtimeNs() / 1'000'000;
  // Big endian, so that the order of bytes, and of keys in a store, is that of time.
  for (int i = 0; i < 6; ++i) id.bytes_[i] = static_cast<uint8_t>(ms >> (8 * (5 - i)));
  const uint64_t a = random.Next64();
  const uint64_t b = random.Next64();
  std::memcpy(&id.bytes_[6], &a, 8);
  std::memcpy(&id.bytes_[14], &b, 2);
  return id;
}

absl::StatusOr<CaptureId> CaptureId::Parse(std::string_view text) {
  // 26 digits of 5 bits are 130 bits; the first digit has only three of them.
  if (text.size() != kTextLength || DigitOf(text[0]) > 7) {
    return InvalidArgument("'{}' is not a capture id of 26 characters", text.substr(0, 64));
  }
  CaptureId id;
  unsigned __int128 value = 0;
  for (const char c : text) {
    const int digit = DigitOf(c);
    if (digit < 0) return InvalidArgument("'{}' is not a capture id: unexpected '{}'", text, c);
    value = (value << 5) | static_cast<unsigned>(digit);
  }
  for (int i = 15; i >= 0; --i, value >>= 8) id.bytes_[i] = static_cast<uint8_t>(value);
  return id;
}

absl::StatusOr<CaptureId> CaptureId::FromBytes(std::string_view bytes) {
  if (bytes.size() != kBytes) {
    return InvalidArgument("a capture id has 16 bytes, not {}", bytes.size());
  }
  CaptureId id;
  std::memcpy(id.bytes_.data(), bytes.data(), kBytes);
  return id;
}

// The first six bytes are the time in milliseconds, see Make.
uint64_t CaptureId::CreatedRealtimeNs() const {
  uint64_t ms = 0;
  for (int i = 0; i < 6; ++i) ms = ms << 8 | bytes_[i];
  return ms * 1'000'000;
}

std::string CaptureId::ToString() const {
  unsigned __int128 value = 0;
  for (const uint8_t byte : bytes_) value = (value << 8) | byte;
  std::string text(kTextLength, '0');
  for (int i = kTextLength - 1; i >= 0; --i, value >>= 5)
    text[i] = kAlphabet[static_cast<unsigned>(value) & 31];
  return text;
}

std::string ToString(const WorkerIdentity& worker) {
  std::string text = fmt::format("{} pid {}", worker.instance_id, worker.pid);
  if (!worker.container_id.empty()) {
    text += fmt::format(" container {}", CleanText(worker.container_id, 12));
  }
  return text;
}

std::string ToString(const StreamIdentity& stream) {
  // The stream of a framework file belongs to an instance: its worker has no process id.
  if (stream.kind == StreamKind::kFramework) {
    return fmt::format("{} {}", stream.worker.instance_id, stream.name);
  }
  if (stream.kind == StreamKind::kHost) return stream.worker.instance_id + " host";
  if (stream.kind == StreamKind::kAnnotation) return ToString(stream.worker) + " annotations";
  if (stream.nc_idx == limits::kNoNcIdx) return ToString(stream.worker);
  return fmt::format("{} nc {}", ToString(stream.worker), stream.nc_idx);
}

}  // namespace neurontrace
