// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/keys.h"

namespace neurontrace::keys {
namespace {

// Appends all bytes of `value`, the most significant first, so that keys sort by number.
template <typename T>
void PutBigEndian(std::string& out, T value) {
  for (int shift = static_cast<int>(sizeof(T)) * 8 - 8; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>((value >> shift) & 0xff));
  }
}

// Requires sizeof(T) bytes; callers have checked the length of the key.
template <typename T>
T GetBigEndian(std::string_view bytes) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>((value << 8) | static_cast<uint8_t>(bytes[i]));
  }
  return value;
}

// Identity strings are at most limits::kIdentityStringBytesMax long, which a u16 holds.
void PutShortString(std::string& out, std::string_view text) {
  PutBigEndian<uint16_t>(out, static_cast<uint16_t>(text.size()));
  out.append(text);
}

// Parsing decides by length alone, as each family has keys of one form.
constexpr size_t kStreamKeyBytes = CaptureId::kBytes + 4;
constexpr size_t kBehindCaptureBytesMax = 4 + 8 + 8;  // of ChunkIndex

}  // namespace

std::string Capture(const CaptureId& capture) { return std::string(capture.bytes()); }

std::string Stream(const CaptureId& capture, uint32_t stream) {
  std::string key(capture.bytes());
  PutBigEndian(key, stream);
  return key;
}

std::string Chunk(const CaptureId& capture, uint32_t stream, uint64_t sequence) {
  std::string key = Stream(capture, stream);
  PutBigEndian(key, sequence);
  return key;
}

std::string ChunkIndex(const CaptureId& capture, uint32_t stream, uint64_t last_timestamp_ns,
                       uint64_t sequence) {
  std::string key = Stream(capture, stream);
  PutBigEndian(key, last_timestamp_ns);
  PutBigEndian(key, sequence);
  return key;
}

std::string Worker(const WorkerIdentity& worker) {
  std::string key = WorkerPrefix(worker.instance_id);
  PutShortString(key, worker.boot_id);
  PutBigEndian(key, worker.pid);
  PutBigEndian(key, worker.start_time_ticks);
  PutShortString(key, worker.container_id);
  return key;
}

std::string WorkerPrefix(std::string_view instance_id) {
  std::string key;
  PutShortString(key, instance_id);
  return key;
}

std::string ClockModelVersion(const CaptureId& capture, uint32_t version) {
  return Stream(capture, version);  // the same form
}

std::string ClockModel(const CaptureId& capture, uint32_t version, uint32_t row) {
  std::string key = ClockModelVersion(capture, version);
  PutBigEndian(key, row);
  return key;
}

std::string Digest(const CaptureId& capture, uint32_t stream, uint8_t level, uint64_t first) {
  std::string key = Stream(capture, stream);
  PutBigEndian(key, level);
  PutBigEndian(key, first);
  return key;
}

// Adds one to the prefix as a number, without its trailing 0xff bytes.
std::string PrefixEnd(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<uint8_t>(end.back()) == 0xff) end.pop_back();
  if (end.empty()) return std::string(prefix) + std::string(kBehindCaptureBytesMax + 1, '\xff');
  // The last byte is below 0xff here, so it does not overflow.
  end.back() = static_cast<char>(static_cast<uint8_t>(end.back()) + 1);
  return end;
}

// FromBytes cannot fail here, as the length is right.
std::optional<StreamKey> ParseStream(std::string_view key) {
  if (key.size() != kStreamKeyBytes) return std::nullopt;
  return StreamKey{*CaptureId::FromBytes(key.substr(0, CaptureId::kBytes)),
                   GetBigEndian<uint32_t>(key.substr(CaptureId::kBytes))};
}

std::optional<ChunkKey> ParseChunk(std::string_view key) {
  if (key.size() != kStreamKeyBytes + 8) return std::nullopt;
  const auto stream = ParseStream(key.substr(0, kStreamKeyBytes));
  return ChunkKey{stream->capture, stream->stream,
                  GetBigEndian<uint64_t>(key.substr(kStreamKeyBytes))};
}

std::optional<ChunkIndexKey> ParseChunkIndex(std::string_view key) {
  if (key.size() != kStreamKeyBytes + 16) return std::nullopt;
  const auto stream = ParseStream(key.substr(0, kStreamKeyBytes));
  return ChunkIndexKey{stream->capture, stream->stream,
                       GetBigEndian<uint64_t>(key.substr(kStreamKeyBytes)),
                       GetBigEndian<uint64_t>(key.substr(kStreamKeyBytes + 8))};
}

std::optional<ClockModelKey> ParseClockModel(std::string_view key) {
  if (key.size() != kStreamKeyBytes + 4) return std::nullopt;
  const auto version = ParseStream(key.substr(0, kStreamKeyBytes));
  return ClockModelKey{version->capture, version->stream,
                       GetBigEndian<uint32_t>(key.substr(kStreamKeyBytes))};
}

std::optional<DigestKey> ParseDigest(std::string_view key) {
  if (key.size() != kStreamKeyBytes + 9) return std::nullopt;
  const auto stream = ParseStream(key.substr(0, kStreamKeyBytes));
  return DigestKey{stream->capture, stream->stream,
                   GetBigEndian<uint8_t>(key.substr(kStreamKeyBytes)),
                   GetBigEndian<uint64_t>(key.substr(kStreamKeyBytes + 1))};
}

}  // namespace neurontrace::keys
