// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/execution_coverage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

constexpr CaptureBegin kBegin{.first_execution = 10, .last_execution = 29};

CaptureWorkerStatus Recorded() {
  return {.first_execution = 10,
          .highest_first_execution = 10,
          .lowest_newest_execution = 30,
          .newest_execution = 31};
}

TEST(ExecutionCoverage, AllCoresFromFirstToLastNeedNoText) {
  EXPECT_EQ(DescribeLateCores(kBegin, Recorded()), "");
  EXPECT_EQ(DescribeEarlyEnd(kBegin, Recorded()), "");
}

TEST(ExecutionCoverage, LateCoreIsNotHiddenByItsNeighbour) {
  CaptureWorkerStatus status = Recorded();
  status.highest_first_execution = 11;
  EXPECT_EQ(DescribeLateCores(kBegin, status),
            "its cores began at executions 10 to 11, not all at 10");
  status.first_execution = 11;
  EXPECT_EQ(DescribeLateCores(kBegin, status), "its cores began at execution 11, not 10");
  status.joined_late = true;
  EXPECT_EQ(DescribeLateCores(kBegin, status), "");
  status.cores_without_execution = 2;
  EXPECT_EQ(DescribeLateCores(kBegin, status),
            "2 of its cores recorded none of the executions from 10 on");
}

TEST(ExecutionCoverage, UnknownBeginningIsNotTakenForPunctual) {
  CaptureWorkerStatus status = Recorded();
  status.highest_first_execution = 0;
  EXPECT_THAT(DescribeLateCores(kBegin, status), HasSubstr("not all known"));
}

TEST(ExecutionCoverage, CoreThatStopsEarlyIsNotHiddenByItsNeighbour) {
  CaptureWorkerStatus status = Recorded();
  status.lowest_newest_execution = 29;
  EXPECT_EQ(DescribeEarlyEnd(kBegin, status), "");
  status.lowest_newest_execution = 15;
  EXPECT_EQ(DescribeEarlyEnd(kBegin, status),
            "not all of its cores reached execution 29: the newest was 15 on one of them");
  status.lowest_newest_execution = 0;
  EXPECT_EQ(DescribeEarlyEnd(kBegin, status),
            "it is not known that all of its cores reached execution 29");
}

TEST(ExecutionCoverage, IsNotAskedOfOthers) {
  CaptureWorkerStatus status = Recorded();
  status.highest_first_execution = 0;
  status.lowest_newest_execution = 0;
  for (const CaptureBegin& by_time : {CaptureBegin{}, CaptureBegin{.reference_ns = 1}}) {
    EXPECT_EQ(DescribeLateCores(by_time, status), "");
    EXPECT_EQ(DescribeEarlyEnd(by_time, status), "");
  }
  status.framework = true;
  EXPECT_EQ(DescribeLateCores(kBegin, status) + DescribeEarlyEnd(kBegin, status), "");
  status = {.newest_execution = 9};
  EXPECT_EQ(DescribeLateCores(kBegin, status) + DescribeEarlyEnd(kBegin, status), "");
}

}  // namespace
}  // namespace neurontrace
