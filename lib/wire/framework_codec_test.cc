// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/framework_codec.h"

#include <gtest/gtest.h>

#include <string>

#include "lib/trace/framework_limits.h"
#include "lib/wire/conversions.h"
#include "lib/wire/wire_test_support.h"

namespace neurontrace {
namespace {

FrameworkTrace SomeTrace(FrameworkTraceState state) {
  return {SomeWorker(), "pytorch", state, "its profiler was in use"};
}

TEST(FrameworkCodec, ReadsBackOrdersAndOutcomes) {
  CaptureSpec spec;
  spec.filter.frameworks = {"pytorch"};
  spec.filter.framework_first_step = 4711;
  spec.filter.framework_steps = 5;
  spec.filter.framework_stacks = true;
  v1::CaptureSpec sent;
  ToProto(spec, &sent);
  const auto back = FromProto(sent);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, spec);

  CaptureWorkerStatus status{SomeCapture(), SomeWorker(), CaptureWorkerState::kComplete};
  status.framework = true;
  for (int state = 1; state <= static_cast<int>(FrameworkTraceState::kFailed); ++state) {
    status.framework_traces.push_back(SomeTrace(static_cast<FrameworkTraceState>(state)));
  }
  v1::CaptureWorkerStatus message;
  ToProto(status, &message);
  const auto received = FromProto(message);
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_EQ(*received, status);
}

TEST(FrameworkCodec, RefusesWhatExceedsALimit) {
  CaptureSpec value;
  v1::CaptureSpec steps;
  steps.set_framework_steps(limits::kFrameworkStepsMax + 1);
  EXPECT_FALSE(FrameworksFromProto(steps, value).ok());
  v1::CaptureSpec names;
  for (size_t i = 0; i <= limits::kFrameworksPerCaptureMax; ++i) names.add_frameworks("a");
  EXPECT_FALSE(FrameworksFromProto(names, value).ok());
  v1::CaptureSpec control;
  control.add_frameworks("a\nb");
  EXPECT_FALSE(FrameworksFromProto(control, value).ok());
}

TEST(FrameworkCodec, RefusesUnknownStatesAndTooManyOutcomes) {
  v1::CaptureWorkerStatus message;
  AddFrameworkTraces({SomeTrace(FrameworkTraceState::kBusy)}, &message);
  EXPECT_TRUE(FrameworkTracesOf(message).ok());
  message.mutable_framework_traces(0)->set_state(v1::FRAMEWORK_TRACE_STATE_UNSPECIFIED);
  EXPECT_FALSE(FrameworkTracesOf(message).ok());
  message.mutable_framework_traces(0)->set_state(static_cast<v1::FrameworkTraceState>(10));
  EXPECT_FALSE(FrameworkTracesOf(message).ok());
  // The writer keeps to the limit.
  v1::CaptureWorkerStatus many;
  const std::vector<FrameworkTrace> traces(limits::kFrameworkTracesMax + 5,
                                           SomeTrace(FrameworkTraceState::kBusy));
  AddFrameworkTraces(traces, &many);
  EXPECT_TRUE(FrameworkTracesOf(many).ok());
  *many.add_framework_traces() = many.framework_traces(0);
  EXPECT_FALSE(FrameworkTracesOf(many).ok());
}

}  // namespace
}  // namespace neurontrace
