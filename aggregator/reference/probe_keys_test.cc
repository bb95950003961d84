// SPDX-License-Identifier: Apache-2.0
// Only what a connected agent asked is answered, and once.
#include "aggregator/reference/probe_keys.h"

#include <gtest/gtest.h>

#include "aggregator/reference/reference_timescale.h"
#include "clock/fake_host_clocks.h"

namespace neurontrace {
namespace {

using Verdict = ProbeKeys::Verdict;

std::string_view View(const ProbePacket& packet) {
  return {reinterpret_cast<const char*>(packet.data()), packet.size()};
}

class ProbeKeysTest : public testing::Test {
 protected:
  Verdict Check(const ProbePacket& packet) { return keys_.Check(View(packet), question_); }

  SeededRandom random_{1};
  ProbeKeys keys_{random_};
  ProbeKeys::Given given_ = *keys_.Give();
  ProbeCipher agent_{given_.key};
  ProbeQuestion question_;
};

TEST_F(ProbeKeysTest, TakesAQuestionOnce) {
  const ProbePacket packet = agent_.Encode(ProbeQuestion{given_.key_id, 5});
  EXPECT_EQ(Check(packet), Verdict::kGenuine);
  EXPECT_EQ(question_.sequence, 5u);
  EXPECT_EQ(Check(packet), Verdict::kReplayed);
  const auto answer = keys_.Encode(ProbeAnswer{.key_id = given_.key_id, .sequence = 5});
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(agent_.DecodeAnswer(View(*answer)).has_value());
}

TEST_F(ProbeKeysTest, RefusesWhatAnAgentDidNotAsk) {
  EXPECT_EQ(keys_.Check("GET / HTTP/1.1", question_), Verdict::kMalformed);
  const ProbePacket unknown = agent_.Encode(ProbeQuestion{given_.key_id + 1, 1});
  EXPECT_EQ(Check(unknown), Verdict::kUnknownKey);
  ProbeCipher other(MakeProbeKey(random_));
  EXPECT_EQ(Check(other.Encode(ProbeQuestion{given_.key_id, 1})), Verdict::kForged);
  // A forged one uses no number up.
  EXPECT_EQ(Check(agent_.Encode(ProbeQuestion{given_.key_id, 1})), Verdict::kGenuine);
  const ProbePacket own_answer = *keys_.Encode(ProbeAnswer{.key_id = given_.key_id});
  EXPECT_EQ(Check(own_answer), Verdict::kMalformed) << "an answer sent back is no question";
}

TEST_F(ProbeKeysTest, ForgetsAKeyThatIsTakenBack) {
  keys_.TakeBack(given_.key_id);
  EXPECT_EQ(Check(agent_.Encode(ProbeQuestion{given_.key_id, 1})), Verdict::kUnknownKey);
  EXPECT_FALSE(keys_.Encode(ProbeAnswer{.key_id = given_.key_id}));
}

TEST_F(ProbeKeysTest, KeepsTheNumbersOfAgentsApart) {
  const ProbeKeys::Given second = *keys_.Give();
  EXPECT_NE(second.key_id, given_.key_id);
  EXPECT_NE(second.key, given_.key);
  ProbeCipher other(second.key);
  EXPECT_EQ(Check(agent_.Encode(ProbeQuestion{given_.key_id, 9})), Verdict::kGenuine);
  EXPECT_EQ(Check(other.Encode(ProbeQuestion{second.key_id, 9})), Verdict::kGenuine);
}

TEST(ReferenceTimescale, IsRawAndAnOffset) {
  FakeHostClocks clocks;
  const ReferenceTimescale timescale(clocks, 3, 1'000);
  EXPECT_EQ(timescale.epoch(), 3u);
  EXPECT_EQ(timescale.NowNs(), clocks.RawNs() + 1'000);
  clocks.StepRealtimeNs(1'000'000);
  clocks.AdvanceNs(500);
  EXPECT_EQ(timescale.NowNs(), clocks.RawNs() + 1'000);
  EXPECT_EQ(timescale.FromRaw(7), 1'007u);
}

TEST(RawOrigin, IsTheSameForAsLongAsThisMachineRuns) {
  EXPECT_FALSE(RawOrigin().empty());
  EXPECT_EQ(RawOrigin(), RawOrigin());
}

}  // namespace
}  // namespace neurontrace
