// SPDX-License-Identifier: Apache-2.0
#include "aggregator/reference/probe_keys.h"

#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// An agent that reconnects has two keys for a while.
constexpr size_t kKeysMax = 2 * size_t{limits::kAgentsMax};

}  // namespace

// Makes the key before it takes the lock, which it holds only to add it.
std::optional<ProbeKeys::Given> ProbeKeys::Give() {
  Given given{.key_id = random_.Next64(), .key = MakeProbeKey(random_)};
  const MutexLock lock(mutex_);
  if (keys_.size() >= kKeysMax) return std::nullopt;
  while (keys_.contains(given.key_id)) given.key_id = random_.Next64();
  keys_.emplace(given.key_id, Known{.cipher = ProbeCipher(given.key)});
  return given;
}

void ProbeKeys::Revoke(uint64_t key_id) {
  const MutexLock lock(mutex_);
  keys_.erase(key_id);
}

// The checks come in the order of their cost, so that a flood of packets is cheap to refuse.
ProbeKeys::Verdict ProbeKeys::Check(std::string_view packet, uint64_t now_ns,
                                    ProbeQuestion& question) {
  const std::optional<uint64_t> key_id = KeyIdOfQuestion(packet);
  if (!key_id) return Verdict::kMalformed;
  const MutexLock lock(mutex_);
  const auto known = keys_.find(*key_id);
  if (known == keys_.end()) return Verdict::kUnknownKey;
  // Limited by key and not by address, as anybody can write any address on a packet. Checked before
  // the cryptography, which is the expensive part.
  if (!known->second.failures.HasSome(now_ns)) return Verdict::kTooMany;
  const Verdict verdict = Judge(known->second, packet, now_ns, question);
  if (verdict != Verdict::kGenuine) known->second.failures.Take(now_ns);
  return verdict;
}

// The order matters: authenticity before replay before rate, so that a forged packet can use up
// neither the window nor the answers of an agent.
ProbeKeys::Verdict ProbeKeys::Judge(Known& known, std::string_view packet, uint64_t now_ns,
                                    ProbeQuestion& question) {
  const auto genuine = known.cipher.DecodeQuestion(packet);
  if (!genuine) return Verdict::kForged;
  // Only authentic packets enter the window; others could make it reject genuine ones.
  if (!known.window.TakeNew(genuine->sequence)) return Verdict::kReplayed;
  if (!known.answers.HasSome(now_ns)) return Verdict::kTooMany;
  known.answers.Take(now_ns);
  question = *genuine;
  return Verdict::kGenuine;
}

// A call may end between the check and the answer; then nobody waits for the answer.
std::optional<ProbePacket> ProbeKeys::Encode(const ProbeAnswer& answer) {
  const MutexLock lock(mutex_);
  const auto known = keys_.find(answer.key_id);
  if (known == keys_.end()) return std::nullopt;
  return known->second.cipher.Encode(answer);
}

}  // namespace neurontrace
