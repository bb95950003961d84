// SPDX-License-Identifier: Apache-2.0
// Packets say what the peer with the key said, and nothing else gets through.
#include "lib/clock/probe_packet.h"

#include <gtest/gtest.h>

#include <string>

namespace neurontrace {
namespace {

constexpr ProbeQuestion kQuestion{.key_id = 0x0123456789abcdef, .sequence = 42};
constexpr ProbeAnswer kAnswer{.key_id = 0x0123456789abcdef,
                              .sequence = 42,
                              .reference_receive_ns = 1'700'000'000'123'456'789,
                              .reference_send_ns = 1'700'000'000'123'460'000,
                              .reference_epoch = 7};

std::string_view View(const ProbePacket& packet) {
  return {reinterpret_cast<const char*>(packet.data()), packet.size()};
}

ProbeKey KeyOf(uint64_t seed) {
  SeededRandom random(seed);
  return MakeProbeKey(random);
}

TEST(ProbePacket, CarriesQuestionAndAnswer) {
  ProbeCipher agent(KeyOf(1));
  ProbeCipher aggregator(KeyOf(1));
  const ProbePacket question = agent.Encode(kQuestion);
  EXPECT_EQ(KeyIdOfQuestion(View(question)), kQuestion.key_id);
  EXPECT_EQ(aggregator.DecodeQuestion(View(question)), kQuestion);
  const ProbePacket answer = aggregator.Encode(kAnswer);
  EXPECT_EQ(agent.DecodeAnswer(View(answer)), kAnswer);
}

TEST(ProbePacket, HasTheCodeOfItsFirst48Bytes) {
  // RFC 2104 with SHA-256 over the packet, made with Python's hmac: the format must not change.
  ProbeKey key;
  for (size_t i = 0; i < key.size(); ++i) key[i] = static_cast<uint8_t>(i);
  ProbeCipher cipher(key);
  const ProbePacket packet = cipher.Encode(kAnswer);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const uint8_t byte : packet) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  EXPECT_EQ(hex,
            "4e54504201020000efcdab89674523012a0000000000000015cd853dfe9c9717a0d9853dfe9c9717070000"
            "0000000000803908072b0648f1f35770ccd51488bf");
}

TEST(ProbePacket, RefusesEveryChangedBit) {
  ProbeCipher cipher(KeyOf(1));
  const ProbePacket question = cipher.Encode(kQuestion);
  const ProbePacket answer = cipher.Encode(kAnswer);
  for (size_t bit = 0; bit < kProbePacketBytes * 8; ++bit) {
    ProbePacket changed = question;
    changed[bit / 8] ^= static_cast<uint8_t>(1 << (bit % 8));
    EXPECT_EQ(cipher.DecodeQuestion(View(changed)), std::nullopt) << "bit " << bit;
    changed = answer;
    changed[bit / 8] ^= static_cast<uint8_t>(1 << (bit % 8));
    EXPECT_EQ(cipher.DecodeAnswer(View(changed)), std::nullopt) << "bit " << bit;
  }
}

TEST(ProbePacket, RefusesOtherKeysKindsAndLengths) {
  ProbeCipher cipher(KeyOf(1));
  ProbeCipher other(KeyOf(2));
  const ProbePacket question = cipher.Encode(kQuestion);
  const ProbePacket answer = cipher.Encode(kAnswer);
  EXPECT_EQ(other.DecodeQuestion(View(question)), std::nullopt);
  EXPECT_EQ(cipher.DecodeQuestion(View(answer)), std::nullopt);
  EXPECT_EQ(cipher.DecodeAnswer(View(question)), std::nullopt);
  EXPECT_EQ(KeyIdOfQuestion(View(answer)), std::nullopt);
  const std::string text(View(question));
  for (size_t bytes = 0; bytes < text.size(); ++bytes) {
    EXPECT_EQ(cipher.DecodeQuestion(text.substr(0, bytes)), std::nullopt);
    EXPECT_EQ(KeyIdOfQuestion(text.substr(0, bytes)), std::nullopt);
  }
  EXPECT_EQ(cipher.DecodeQuestion(text + "x"), std::nullopt);
}

}  // namespace
}  // namespace neurontrace
