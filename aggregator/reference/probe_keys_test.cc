// SPDX-License-Identifier: Apache-2.0
// Only what a connected agent asked is answered, and once.
#include "aggregator/reference/probe_keys.h"

#include <gtest/gtest.h>

#include "aggregator/reference/reference_timescale.h"
#include "lib/clock/fake_host_clocks.h"

namespace neurontrace {
namespace {

using Verdict = ProbeKeys::Verdict;

std::string_view View(const ProbePacket& packet) {
  return {reinterpret_cast<const char*>(packet.data()), packet.size()};
}

class ProbeKeysTest : public testing::Test {
 protected:
  Verdict Check(const ProbePacket& packet) { return keys_.Check(View(packet), now_ns_, question_); }

  SeededRandom random_{1};
  ProbeKeys keys_{random_};
  ProbeKeys::Given given_ = *keys_.Give();
  ProbeCipher agent_{given_.key};
  ProbeQuestion question_;
  uint64_t now_ns_ = 1'000'000'000'000;
};

TEST_F(ProbeKeysTest, AcceptsEachProbeOnce) {
  const ProbePacket packet = agent_.Encode(ProbeQuestion{given_.key_id, 5});
  EXPECT_EQ(Check(packet), Verdict::kGenuine);
  EXPECT_EQ(question_.sequence, 5u);
  EXPECT_EQ(Check(packet), Verdict::kReplayed);
  const auto answer = keys_.Encode(ProbeAnswer{.key_id = given_.key_id, .sequence = 5});
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(agent_.DecodeAnswer(View(*answer)).has_value());
}

TEST_F(ProbeKeysTest, RejectsUnknownProbes) {
  EXPECT_EQ(keys_.Check("GET / HTTP/1.1", now_ns_, question_), Verdict::kMalformed);
  const ProbePacket unknown = agent_.Encode(ProbeQuestion{given_.key_id + 1, 1});
  EXPECT_EQ(Check(unknown), Verdict::kUnknownKey);
  ProbeCipher other(MakeProbeKey(random_));
  EXPECT_EQ(Check(other.Encode(ProbeQuestion{given_.key_id, 1})), Verdict::kForged);
  // A forged one uses no number up.
  EXPECT_EQ(Check(agent_.Encode(ProbeQuestion{given_.key_id, 1})), Verdict::kGenuine);
  const ProbePacket own_answer = *keys_.Encode(ProbeAnswer{.key_id = given_.key_id});
  EXPECT_EQ(Check(own_answer), Verdict::kMalformed) << "an answer is not a question";
}

TEST_F(ProbeKeysTest, ForgetsAKeyThatIsTakenBack) {
  keys_.Revoke(given_.key_id);
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

TEST_F(ProbeKeysTest, LimitsRepliesPerKey) {
  uint64_t sequence = 0;
  const auto answered = [&](uint32_t asked) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < asked; ++i) {
      count += Check(agent_.Encode(ProbeQuestion{given_.key_id, ++sequence})) == Verdict::kGenuine;
    }
    return count;
  };
  EXPECT_EQ(answered(1'000), limits::kProbesAtOnceMax);
  EXPECT_EQ(Check(agent_.Encode(ProbeQuestion{given_.key_id, ++sequence})), Verdict::kTooMany);
  const ProbeKeys::Given second = *keys_.Give();
  ProbeCipher other(second.key);
  EXPECT_EQ(Check(other.Encode(ProbeQuestion{second.key_id, 1})), Verdict::kGenuine);
  now_ns_ += 1'000'000'000;
  EXPECT_EQ(answered(200), limits::kProbesPerSecondMax);
}

TEST_F(ProbeKeysTest, AFloodThatNamesAKeyIsDroppedUnread) {
  ProbeCipher stranger(MakeProbeKey(random_));
  const ProbePacket forged = stranger.Encode(ProbeQuestion{given_.key_id, 1});
  for (uint32_t i = 0; i < limits::kProbeFailuresAtOnceMax; ++i) {
    ASSERT_EQ(Check(forged), Verdict::kForged);
  }
  EXPECT_EQ(Check(forged), Verdict::kTooMany);
  const ProbePacket genuine = agent_.Encode(ProbeQuestion{given_.key_id, 1});
  EXPECT_EQ(Check(genuine), Verdict::kTooMany) << "its signature was not checked";
  const ProbeKeys::Given second = *keys_.Give();
  ProbeCipher other(second.key);
  EXPECT_EQ(Check(other.Encode(ProbeQuestion{second.key_id, 1})), Verdict::kGenuine);
  now_ns_ += 2'000'000;
  EXPECT_EQ(Check(genuine), Verdict::kGenuine);
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
