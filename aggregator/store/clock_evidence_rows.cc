// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/clock_evidence_rows.h"

#include <utility>

#include "aggregator/store/keys.h"
#include "aggregator/store/stored_bytes.h"
#include "base/crc32c.h"
#include "base/status.h"
#include "trace/clock_evidence_codec.h"

namespace neurontrace {
namespace {

constexpr uint64_t kEpochVersion = 1;

void AppendBigEndian(std::string& out, uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) out.push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t ReadBigEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (const char byte : bytes) value = (value << 8) | static_cast<uint8_t>(byte);
  return value;
}

// Takes a string with its length off the front.
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
  StoredBytesWriter out(kEpochVersion);
  out.Uint(epoch.number);
  out.String(epoch.raw_origin);
  out.Uint(epoch.offset_ns);
  out.Uint(epoch.begun_realtime_ns);
  return out.Take();
}

absl::StatusOr<ReferenceEpoch> DecodeEpoch(std::string_view value) {
  StoredBytesReader in(value);
  const uint64_t version = in.Uint();
  ReferenceEpoch epoch;
  epoch.number = in.Uint32();
  epoch.raw_origin = in.String();
  epoch.offset_ns = in.Uint();
  epoch.begun_realtime_ns = in.Uint();
  if (version != kEpochVersion || !in.Finished()) return DataLoss("a reference epoch does not fit");
  return epoch;
}

std::optional<std::string> SalvageEpoch(std::string_view key, std::string_view value) {
  if (key.size() != kEpochKeyPrefix.size() + 4) return std::nullopt;
  if (DecodeEpoch(value).ok()) return std::string(value);
  return EncodeEpoch(
      {.number = static_cast<uint32_t>(ReadBigEndian(key.substr(kEpochKeyPrefix.size())))});
}

}  // namespace neurontrace
