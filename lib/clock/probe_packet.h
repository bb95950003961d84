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

// The packets of clock probes over UDP: a question, and an answer of the same length. Both carry a
// code that only who has the key of the connection can make; an agent gets that key through its
// control call. docs/formats/probe.md has the bytes.
namespace neurontrace {

inline constexpr size_t kProbePacketBytes = 64;
inline constexpr size_t kProbeKeyBytes = 32;
using ProbePacket = std::array<uint8_t, kProbePacketBytes>;
using ProbeKey = std::array<uint8_t, kProbeKeyBytes>;

ProbeKey MakeProbeKey(Random& random);

struct ProbeQuestion {
  uint64_t key_id = 0;    // names the key; says nothing about it
  uint64_t sequence = 0;  // each once a key, rising
  friend bool operator==(const ProbeQuestion&, const ProbeQuestion&) = default;
};
struct ProbeAnswer {
  uint64_t key_id = 0;
  uint64_t sequence = 0;  // of the question
  uint64_t reference_receive_ns = 0;
  uint64_t reference_send_ns = 0;
  uint32_t reference_epoch = 0;
  friend bool operator==(const ProbeAnswer&, const ProbeAnswer&) = default;
};

// Makes and checks the codes of one key: HMAC-SHA-256, cut to 128 bits. One thread.
class ProbeCipher {
 public:
  explicit ProbeCipher(const ProbeKey& key);
  ~ProbeCipher();
  ProbeCipher(ProbeCipher&&) noexcept;
  ProbeCipher& operator=(ProbeCipher&&) noexcept;

  ProbePacket Encode(const ProbeQuestion& question);
  ProbePacket Encode(const ProbeAnswer& answer);
  // nullopt for anything that was not made with this key, or is no question.
  std::optional<ProbeQuestion> DecodeQuestion(std::string_view packet);
  std::optional<ProbeAnswer> DecodeAnswer(std::string_view packet);

 private:
  struct FreeContext {
    void operator()(evp_mac_ctx_st* context) const;
  };
  void Seal(ProbePacket& packet);
  bool IsGenuine(std::string_view packet);

  std::unique_ptr<evp_mac_ctx_st, FreeContext> context_;
};

// The key that a packet of a stranger says it was made with, to be looked up and then asked;
// nullopt for what is no question.
std::optional<uint64_t> KeyIdOfQuestion(std::string_view packet);

// Which sequence numbers of a key have been: each is new once, in whatever order they come, and
// what lies kWidth behind the highest counts as having been. A plain value.
class ReplayWindow {
 public:
  static constexpr uint64_t kWidth = 64;
  // True the first time.
  bool TakeNew(uint64_t sequence);

 private:
  uint64_t highest_ = 0;
  uint64_t seen_ = 0;  // bit i: highest_ - i has been
};

}  // namespace neurontrace
