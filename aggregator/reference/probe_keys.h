// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "lib/base/mutex.h"
#include "lib/base/random.h"
#include "lib/clock/probe_packet.h"
#include "lib/clock/replay_window.h"
#include "lib/trace/clock_limits.h"

namespace neurontrace {

// The keys of connected agents, one for each clock report call, with the limits on their use.
// Probes are packets that anybody can send, so only authentic ones are answered
// (docs/formats/probe.md). Any thread. ClockGateway gives a key at the beginning of a call and
// takes it back at the end; ProbeResponder checks packets with it.
class ProbeKeys {
 public:
  // A new key. `key_id` is sent in the clear, `key` only over the call's own connection.
  struct Given {
    uint64_t key_id = 0;
    ProbeKey key{};
  };
  // The result of checking a packet.
  enum class Verdict : uint8_t {
    kGenuine,
    kMalformed,   // not a question
    kUnknownKey,  // of no connected agent
    kForged,      // its authentication code does not match the key
    kReplayed,    // seen before, or too old to tell
    kTooMany,     // above limits::kProbesPerSecondMax, or too many invalid ones
  };

  // `random` must outlive this.
  explicit ProbeKeys(Random& random) : random_(random) {}

  // Returns a new key; nullopt at the limit. The limit is two for each of limits::kAgentsMax
  // agents. Ids and keys come from `random`, so they cannot be guessed.
  std::optional<Given> Give();
  // Forgets a key when its call ends. Does nothing for an unknown id. Packets with this key are
  // unknown from then on.
  void Revoke(uint64_t key_id);

  // Judges a packet that arrived at `now_ns`, which must not go back. Returns kGenuine once for
  // each question and then sets `question`. `now_ns` is of a clock that nobody sets. Any other
  // verdict leaves `question` unchanged. A packet that fails uses up the failures of its key.
  Verdict Check(std::string_view packet, uint64_t now_ns, ProbeQuestion& question);
  // Authenticates an answer; nullopt if the key was taken back in between. Seals it with the key of
  // its key_id.
  std::optional<ProbePacket> Encode(const ProbeAnswer& answer);

 private:
  // A token bucket: kPerSecond on average, kAtOnce in a burst. The state is one number: the time at
  // which an unused bucket would be full again (the generic cell rate algorithm).
  template <uint32_t kPerSecond, uint32_t kAtOnce>
  class Allowance {
   public:
    // Returns whether one more is allowed now. Changes nothing.
    bool HasSome(uint64_t now_ns) const { return due_ns_ <= now_ns + (kAtOnce - 1) * kEachNs; }
    // Uses one. Called only after HasSome.
    void Take(uint64_t now_ns) { due_ns_ = std::max(due_ns_, now_ns) + kEachNs; }

   private:
    static constexpr uint64_t kEachNs = 1'000'000'000 / kPerSecond;
    uint64_t due_ns_ = 0;  // when all of it is available again
  };
  // One connected agent.
  struct Known {
    // Stateful: one packet at a time.
    ProbeCipher cipher;
    ReplayWindow window;
    // Limits the answers to authentic packets.
    Allowance<limits::kProbesPerSecondMax, limits::kProbesAtOnceMax> answers;
    // Limits the cryptography that invalid packets can cause.
    Allowance<limits::kProbeFailuresPerSecondMax, limits::kProbeFailuresAtOnceMax> failures;
  };

  // Judges a packet of a known key, under the lock.
  static Verdict Judge(Known& known, std::string_view packet, uint64_t now_ns,
                       ProbeQuestion& question);

  Random& random_;
  // Held for the whole check of a packet, including its cryptography.
  Mutex mutex_;
  std::unordered_map<uint64_t, Known> keys_ NT_GUARDED_BY(mutex_);
};

}  // namespace neurontrace
