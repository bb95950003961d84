// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "lib/base/random.h"

struct evp_mac_ctx_st;

namespace neurontrace {

// The packets of clock probes over UDP: a question, and an answer of the same length. Both carry a
// code that only a holder of the connection's key can make; an agent receives that key through its
// control call. docs/formats/probe.md describes the bytes.
inline constexpr size_t kProbePacketBytes = 64;
inline constexpr size_t kProbeKeyBytes = 32;
using ProbePacket = std::array<uint8_t, kProbePacketBytes>;
using ProbeKey = std::array<uint8_t, kProbeKeyBytes>;

// Returns a key of 32 random bytes. `random` must be fit for keys.
ProbeKey MakeProbeKey(Random& random);

// Sent by an agent to the aggregator's reference clock.
struct ProbeQuestion {
  uint64_t key_id = 0;  // names the key; says nothing about it
  // Rises with each question of a key; none is used twice.
  uint64_t sequence = 0;
  friend bool operator==(const ProbeQuestion&, const ProbeQuestion&) = default;
};
// Sent back for a question, with the times at which the reference received it and sent this, in ns
// of its raw clock.
struct ProbeAnswer {
  uint64_t key_id = 0;
  uint64_t sequence = 0;  // of the question
  uint64_t reference_receive_ns = 0;
  uint64_t reference_send_ns = 0;
  uint32_t reference_epoch = 0;
  friend bool operator==(const ProbeAnswer&, const ProbeAnswer&) = default;
};

// Makes and checks the codes of one key: HMAC-SHA-256 (RFC 2104), truncated to 128 bits.
// Authenticates packets and does not encrypt them. Aborts if OpenSSL cannot compute the code. One
// thread.
class ProbeCipher {
 public:
  explicit ProbeCipher(const ProbeKey& key);
  ~ProbeCipher();
  ProbeCipher(ProbeCipher&&) noexcept;
  ProbeCipher& operator=(ProbeCipher&&) noexcept;

  // Return the packet with its code.
  ProbePacket Encode(const ProbeQuestion& question);
  ProbePacket Encode(const ProbeAnswer& answer);
  // Return nullopt for a packet that was not made with this key, has another length or version, or
  // is of the other kind. No reason is given, as the sender may be anybody.
  std::optional<ProbeQuestion> DecodeQuestion(std::string_view packet);
  std::optional<ProbeAnswer> DecodeAnswer(std::string_view packet);

 private:
  // Frees OpenSSL's context.
  struct FreeContext {
    void operator()(evp_mac_ctx_st* context) const;
  };
  // Writes the code of the packet's first 48 bytes behind them.
  void Seal(ProbePacket& packet);
  // Returns whether the packet's code is the one that this key makes. Requires the right length.
  bool IsGenuine(std::string_view packet);

  std::unique_ptr<evp_mac_ctx_st, FreeContext> context_;
};

// Returns the key id of a question from an unknown sender, without checking its code: the caller
// looks up that key's cipher and then decodes. Returns nullopt if the packet is not a question.
std::optional<uint64_t> KeyIdOfQuestion(std::string_view packet);

}  // namespace neurontrace
