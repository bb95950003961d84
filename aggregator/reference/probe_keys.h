// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/random.h"
#include "clock/probe_packet.h"

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
  };

  // `random` outlives this; calls may come from any thread.
  explicit ProbeKeys(Random& random) : random_(random) {}

  // A new key; nullopt when there are as many as there may be.
  std::optional<Given> Give();
  void TakeBack(uint64_t key_id);

  // Judges a packet; kGenuine once for each question, which is then in `question`.
  Verdict Check(std::string_view packet, ProbeQuestion& question);
  // nullopt when the key was taken back meanwhile.
  std::optional<ProbePacket> Encode(const ProbeAnswer& answer);

 private:
  struct Known {
    ProbeCipher cipher;
    ReplayWindow window;
  };

  Random& random_;
  std::mutex mutex_;
  std::unordered_map<uint64_t, Known> keys_;  // guarded by mutex_
};

}  // namespace neurontrace
