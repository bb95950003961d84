// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/trigger_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

TriggerRule SomeRule() {
  TriggerRule rule;
  rule.name = "slow";
  rule.kind = TriggerKind::kSlowExecution;
  rule.job = "llama";
  rule.times_median = 2.5;
  rule.silent_ns = 1;
  rule.cool_down_ns = 2;
  rule.per_hour_max = 3;
  rule.last_ns = 4;
  rule.duration_ns = 5;
  return rule;
}

TEST(TriggerMessages, RuleRoundTrips) {
  v1::TriggerRule message;
  ToProto(SomeRule(), &message);
  const auto back = FromProto(message);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, SomeRule());
}

TEST(TriggerMessages, FiringRoundTrips) {
  const TriggerFired fired{.rule = "slow",
                           .cause = "nc 3: 91 ms, 2.6 times its median of 35 ms",
                           .job = "llama",
                           .worker = {.instance_id = "i-1", .pid = 7},
                           .host_realtime_ns = 9};
  v1::TriggerFired message;
  ToProto(fired, &message);
  const auto back = FromProto(message);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, fired);
}

TEST(TriggerMessages, HostileRulesAreRefused) {
  const auto refused = [](auto change) {
    v1::TriggerRule message;
    ToProto(SomeRule(), &message);
    change(message);
    return std::string(FromProto(message).status().message());
  };
  EXPECT_THAT(refused([](auto& m) { m.clear_name(); }), HasSubstr("trigger.name"));
  EXPECT_THAT(refused([](auto& m) { m.set_kind(static_cast<v1::TriggerKind>(99)); }),
              HasSubstr("trigger.kind"));
  EXPECT_THAT(
      refused([](auto& m) { m.set_times_median(std::numeric_limits<double>::quiet_NaN()); }),
      HasSubstr("trigger.times_median"));
}

}  // namespace
}  // namespace neurontrace
