// SPDX-License-Identifier: Apache-2.0
#include "aggregator/session/late_captures.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// Returns a capture that ended without its only agent. Ids of higher numbers sort behind.
std::unique_ptr<TrackedCapture> EndedWithoutItsAgent(uint32_t number) {
  std::string bytes(CaptureId::kBytes, '\0');
  bytes[bytes.size() - 2] = static_cast<char>(number >> 8);
  bytes.back() = static_cast<char>(number);
  CaptureRecord record;
  record.id = CaptureId::FromBytes(bytes).value();
  record.state = CaptureState::kIncomplete;
  const std::string agent = std::to_string(number);
  record.agents.push_back({.agent_id = agent, .instance_id = agent, .vanished = true});
  return std::make_unique<TrackedCapture>(CaptureSession(std::move(record), SessionTime{}));
}

TEST(LateCapturesTest, OldestOnesDoNotWaitBeyondTheLimitHoweverManyComeAtOnce) {
  constexpr uint32_t kBeyond = 3;
  LateCaptures late;
  for (uint32_t i = 1; i <= limits::kLateCapturesMax + kBeyond; ++i) {
    late.Keep(EndedWithoutItsAgent(i));
  }
  uint32_t number = 0;
  for (const auto& [id, capture] : late.captures()) {
    EXPECT_EQ(capture->session.IsOpen(), ++number > kBeyond) << number;
    EXPECT_EQ(capture->unsaved, number <= kBeyond) << number;
  }
  EXPECT_EQ(number, limits::kLateCapturesMax + kBeyond);
}

}  // namespace
}  // namespace neurontrace
