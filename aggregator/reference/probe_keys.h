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
#include "lib/trace/clock_limits.h"

namespace neurontrace {

// The keys of the agents that are connected, one for each control call, and what they were used
// for. Any thread.
class ProbeKeys {
 public:
  struct Given {
    uint64_t key_id = 0;
    ProbeKey key{};
  };
  enum class Verdict : uint8_t {
    kGenuine,
    kMalformed,   // no question
    kUnknownKey,  // of nobody who is connected
    kForged,      // the code is not the key's
    kReplayed,    // it was here before, or is too old to know
    kTooMany,     // more than limits::kProbesPerSecondMax, or too many that were none
  };

  // `random` outlives this; calls may come from any thread.
  explicit ProbeKeys(Random& random) : random_(random) {}

  // A new key; nullopt when there are as many as there may be.
  std::optional<Given> Give();
  void TakeBack(uint64_t key_id);

  // Judges a packet that came at `now_ns`, which does not go back; kGenuine once for each question,
  // which is then in `question`.
  Verdict Check(std::string_view packet, uint64_t now_ns, ProbeQuestion& question);
  // nullopt when the key was taken back meanwhile.
  std::optional<ProbePacket> Encode(const ProbeAnswer& answer);

 private:
  // So many a second on average, and so many at once.
  template <uint32_t kPerSecond, uint32_t kAtOnce>
  class Allowance {
   public:
    bool HasSome(uint64_t now_ns) const { return due_ns_ <= now_ns + (kAtOnce - 1) * kEachNs; }
    void Take(uint64_t now_ns) { due_ns_ = std::max(due_ns_, now_ns) + kEachNs; }

   private:
    static constexpr uint64_t kEachNs = 1'000'000'000 / kPerSecond;
    uint64_t due_ns_ = 0;  // when all of it is there again
  };
  struct Known {
    ProbeCipher cipher;
    ReplayWindow window;
    Allowance<limits::kProbesPerSecondMax, limits::kProbesAtOnceMax> answers;
    Allowance<limits::kProbeFailuresPerSecondMax, limits::kProbeFailuresAtOnceMax> failures;
  };

  static Verdict Judge(Known& known, std::string_view packet, uint64_t now_ns,
                       ProbeQuestion& question);

  Random& random_;
  Mutex mutex_;
  std::unordered_map<uint64_t, Known> keys_ NT_GUARDED_BY(mutex_);
};

}  // namespace neurontrace
