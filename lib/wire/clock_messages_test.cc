// SPDX-License-Identifier: Apache-2.0
// What an aggregator and an agent take from each other about clocks.
#include "lib/wire/clock_messages.h"

#include <gtest/gtest.h>

#include "lib/trace/clock_evidence_codec.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

TEST(ClockMessages, CarryWhoseClocks) {
  v1::ClockHello message;
  ToProto(ClockIdentity{"agent-1", "i-1", "boot-1"}, &message);
  const auto identity = FromProto(message);
  ASSERT_TRUE(identity.ok());
  EXPECT_EQ(identity->agent_id, "agent-1");
  EXPECT_EQ(identity->instance_id, "i-1");
  EXPECT_EQ(identity->boot_id, "boot-1");
}

TEST(ClockMessages, RefuseNobodysClocks) {
  v1::ClockHello message;
  ToProto(ClockIdentity{"agent-1", "i-1", "boot-1"}, &message);
  v1::ClockHello bad = message;
  bad.clear_boot_id();
  EXPECT_TRUE(absl::IsInvalidArgument(FromProto(bad).status()));
  bad = message;
  bad.set_instance_id(std::string(limits::kIdentityStringBytesMax + 1, 'x'));
  EXPECT_TRUE(absl::IsInvalidArgument(FromProto(bad).status()));
  bad = message;
  bad.set_agent_id("agent\n1");
  EXPECT_EQ(FromProto(bad).status().message(), "clock_hello.agent_id has a control character");
}

TEST(ClockMessages, TakeABatchThatMakesSense) {
  ClockEvidence evidence;
  evidence.events = {{ClockEventKind::kPause, 1, 2, 0}};
  v1::ClockEvidenceBatch message;
  message.set_number(3);
  message.set_age_ns(5);
  message.set_observations(EncodeClockEvidence(evidence));
  const auto batch = FromProto(message);
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(batch->number, 3u);
  EXPECT_EQ(batch->age_ns, 5u);
  EXPECT_EQ(batch->observations, message.observations());
  v1::ClockEvidenceBatch bad = message;
  bad.set_number(0);
  EXPECT_TRUE(absl::IsInvalidArgument(FromProto(bad).status()));
  bad = message;
  bad.set_observations("nonsense");
  EXPECT_TRUE(absl::IsInvalidArgument(FromProto(bad).status()));
}

TEST(ClockMessages, CarryAccess) {
  ProbeGrant grant{.udp_port = 9'400, .key_id = ~uint64_t{0}};
  grant.key[31] = 7;
  v1::ProbeAccess message;
  ToProto(grant, &message);
  const auto back = FromProto(message);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->udp_port, 9'400);
  EXPECT_EQ(back->key_id, ~uint64_t{0});
  EXPECT_EQ(back->key, grant.key);
  v1::ProbeAccess bad = message;
  bad.set_udp_port(65'536);
  EXPECT_TRUE(absl::IsInvalidArgument(FromProto(bad).status()));
  bad = message;
  bad.set_key("short");
  EXPECT_TRUE(absl::IsInvalidArgument(FromProto(bad).status()));
}

}  // namespace
}  // namespace neurontrace
