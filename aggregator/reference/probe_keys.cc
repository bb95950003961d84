// SPDX-License-Identifier: Apache-2.0
#include "aggregator/reference/probe_keys.h"

#include "trace/limits.h"

namespace neurontrace {
namespace {

// While an agent connects anew it has two.
constexpr size_t kKeysMax = 2 * size_t{limits::kAgentsMax};

}  // namespace

std::optional<ProbeKeys::Given> ProbeKeys::Give() {
  Given given{.key_id = random_.Next64(), .key = MakeProbeKey(random_)};
  const std::lock_guard lock(mutex_);
  if (keys_.size() >= kKeysMax) return std::nullopt;
  while (keys_.contains(given.key_id)) given.key_id = random_.Next64();
  keys_.emplace(given.key_id, Known{.cipher = ProbeCipher(given.key), .window = {}});
  return given;
}

void ProbeKeys::TakeBack(uint64_t key_id) {
  const std::lock_guard lock(mutex_);
  keys_.erase(key_id);
}

ProbeKeys::Verdict ProbeKeys::Check(std::string_view packet, ProbeQuestion& question) {
  const std::optional<uint64_t> key_id = KeyIdOfQuestion(packet);
  if (!key_id) return Verdict::kMalformed;
  const std::lock_guard lock(mutex_);
  const auto known = keys_.find(*key_id);
  if (known == keys_.end()) return Verdict::kUnknownKey;
  const auto genuine = known->second.cipher.DecodeQuestion(packet);
  if (!genuine) return Verdict::kForged;
  if (!known->second.window.TakeNew(genuine->sequence)) return Verdict::kReplayed;
  question = *genuine;
  return Verdict::kGenuine;
}

std::optional<ProbePacket> ProbeKeys::Encode(const ProbeAnswer& answer) {
  const std::lock_guard lock(mutex_);
  const auto known = keys_.find(answer.key_id);
  if (known == keys_.end()) return std::nullopt;
  return known->second.cipher.Encode(answer);
}

}  // namespace neurontrace
