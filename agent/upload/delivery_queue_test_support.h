// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "agent/upload/fake_node.h"

namespace neurontrace {

// Losses as the played aggregator counts them, by place and reason.
inline const std::pair<int, int> kDropped = {v1::LOSS_PLACE_SPOOL, v1::LOSS_REASON_OVERWRITTEN};
inline const std::pair<int, int> kDamaged = {v1::LOSS_PLACE_SPOOL, v1::LOSS_REASON_MALFORMED};

// Queue, spool and uploader of a fake node: its disk fails, fills up and crashes on command.
class DeliveryQueueTest : public ::testing::Test {
 protected:
  void Begin() { ASSERT_TRUE(node_.Begin()); }
  void Restart() {
    node_.Kill();
    node_.NewProcess();
    node_.disk.SetCrashLosesNothing(true);
    node_.disk.Crash();
    ASSERT_TRUE(node_.Begin());
  }
  void Connect() {
    node_.aggregator.budget = ~uint64_t{0};
    node_.uploader->SetEnabled(false);
    node_.Welcome();
  }
  void ProduceMany(const std::string& name, int chunks) {
    for (int i = 0; i < chunks; ++i) {
      node_.Produce(name);
      node_.Run(1'000'000);
    }
  }
  std::string SegmentPath(uint64_t segment) const {
    return std::string(FakeNode::kRoot) + "/" + node_.capture.ToString() + "/" +
           SegmentName(segment);
  }
  FakeNode node_;
};

}  // namespace neurontrace
