// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/clock_evidence_rows.h"

#include <utility>

#include "aggregator/store/keys.h"
#include "aggregator/store/stored_message.h"
#include "lib/base/crc32c.h"
#include "lib/base/status.h"
#include "lib/trace/clock_evidence_codec.h"

namespace neurontrace {
namespace {

// Appends the lowest `bytes` bytes of `value`, the most significant first, so that keys sort by
// number.
void AppendBigEndian(std::string& out, uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) out.push_back(static_cast<char>(value >> (8 * i)));
}

// Reads at most eight bytes; longer input would lose its beginning.
uint64_t ReadBigEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (const char byte : bytes) value = (value << 8) | static_cast<uint8_t>(byte);
  return value;
}

// Removes a string and its length from the front of `key`; nullopt if `key` is too short.
std::optional<std::string> TakeString(std::string_view& key) {
  if (key.size() < 2) return std::nullopt;
  const auto bytes = static_cast<size_t>(ReadBigEndian(key.substr(0, 2)));
  if (key.size() < 2 + bytes) return std::nullopt;
  std::string text(key.substr(2, bytes));
  key.remove_prefix(2 + bytes);
  return text;
}

}  // namespace

std::string EvidencePrefix(const HostBoot& host) {
  // The form of a length and a string is the same as in keys of workers.
  return keys::WorkerPrefix(host.instance_id) + keys::WorkerPrefix(host.boot_id);
}

std::string EvidenceAt(const HostBoot& host, uint64_t measured_realtime_ns) {
  std::string key = EvidencePrefix(host);
  AppendBigEndian(key, measured_realtime_ns, 8);
  return key;
}

std::string EvidenceKey(const ClockEvidenceBatch& batch) {
  std::string key = EvidenceAt(batch.host, batch.measured_realtime_ns);
  AppendBigEndian(key, Crc32c(batch.observations.data(), batch.observations.size()), 4);
  return key;
}

// Checks the form of the whole key: two strings, then exactly the time and the checksum.
std::optional<HostBoot> HostOfEvidenceKey(std::string_view key) {
  auto instance_id = TakeString(key);
  auto boot_id = instance_id ? TakeString(key) : std::nullopt;
  if (!boot_id || key.size() != kEvidenceKeyTailBytes) return std::nullopt;
  return HostBoot{*std::move(instance_id), *std::move(boot_id)};
}

uint64_t MeasuredOfEvidenceKey(std::string_view key) {
  return ReadBigEndian(key.substr(key.size() - kEvidenceKeyTailBytes, 8));
}

bool IsClockEvidence(std::string_view key, std::string_view value) {
  return HostOfEvidenceKey(key).has_value() && DecodeClockEvidence(value).ok();
}

std::string EpochKey(uint32_t number) {
  std::string key(kEpochKeyPrefix);
  AppendBigEndian(key, number, 4);
  return key;
}

std::string EncodeEpoch(const ReferenceEpoch& epoch) {
  v1::StoredEpoch message;
  message.set_number(epoch.number);
  message.set_raw_origin(CleanStored(epoch.raw_origin));
  message.set_offset_ns(epoch.offset_ns);
  message.set_begun_realtime_ns(epoch.begun_realtime_ns);
  return EncodeStored(std::move(message));
}

absl::StatusOr<ReferenceEpoch> DecodeEpoch(std::string_view value) {
  return DecodeStored<v1::StoredEpoch>(
      "a reference epoch", value,
      [](const v1::StoredEpoch& message) -> absl::StatusOr<ReferenceEpoch> {
        return ReferenceEpoch{.number = message.number(),
                              .raw_origin = CleanStored(message.raw_origin()),
                              .offset_ns = message.offset_ns(),
                              .begun_realtime_ns = message.begun_realtime_ns()};
      });
}

// The number is in the key, too, and survives damage of the value.
std::optional<std::string> SalvageEpoch(std::string_view key, std::string_view value) {
  if (key.size() != kEpochKeyPrefix.size() + 4) return std::nullopt;
  if (DecodeEpoch(value).ok()) return std::string(value);
  return EncodeEpoch(
      {.number = static_cast<uint32_t>(ReadBigEndian(key.substr(kEpochKeyPrefix.size())))});
}

}  // namespace neurontrace
