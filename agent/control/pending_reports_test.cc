// SPDX-License-Identifier: Apache-2.0
#include "agent/control/pending_reports.h"

#include <gtest/gtest.h>

#include "agent/control/control_session_fixture.h"
#include "agent/control/control_stream.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {
namespace {

TEST(PendingReports, WorkerThatComesAndGoesHasOnePlaceInTheQueue) {
  WorkerInfo flapping;
  flapping.identity.pid = 1;
  WorkerInfo other;
  other.identity.pid = 2;
  PendingReports pending;
  pending.Put(flapping);
  pending.Put(other);
  for (int i = 0; i < 1'000; ++i) {
    pending.Put(WorkerGone{flapping.identity});
    pending.Put(flapping);
  }
  EXPECT_EQ(pending.size(), 2u);
  // A place that it had left would be used again.
  EXPECT_EQ(Words(*pending.Take()), "worker 2 ");
  EXPECT_EQ(Words(*pending.Take()), "worker 1 ");
  EXPECT_FALSE(pending.Take().has_value());
}

}  // namespace
}  // namespace neurontrace
