// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/stacks_codec.h"

#include <gtest/gtest.h>

#include <string>

#include "lib/trace/stacks_limits.h"
#include "lib/wire/wire_test_support.h"

namespace neurontrace {
namespace {

WorkerStacks SomeStacks() {
  return {.capture_id = SomeCapture(),
          .collection = 3,
          .worker = {.instance_id = "i-1", .boot_id = "boot", .pid = 7, .start_time_ticks = 9},
          .outcome = StacksOutcome::kTaken,
          .threads = {{.name = "main",
                       .os_thread_id = 7,
                       .holds_gil = true,
                       .frames = {{"<module>", "train.py", 3}, {"step", "train.py", 9}}}},
          .left_out = 2,
          .kernel_threads = {{7, "python", "S", "futex_wait_queue", 202},
                             {8, "nrt", "D", "", KernelThread::kUnreadable}},
          .kernel_threads_left_out = 1};
}

TEST(StacksCodec, KeepsEverything) {
  v1::WorkerStacks message;
  ToProto(SomeStacks(), &message);
  const auto read = FromProto(message);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->capture_id, SomeCapture());
  EXPECT_EQ(read->collection, 3u);
  EXPECT_EQ(read->worker, SomeStacks().worker);
  EXPECT_EQ(read->outcome, StacksOutcome::kTaken);
  EXPECT_EQ(read->threads, SomeStacks().threads);
  EXPECT_EQ(read->left_out, 2u);
  EXPECT_EQ(read->kernel_threads, SomeStacks().kernel_threads);
  EXPECT_EQ(read->kernel_threads_left_out, 1u);
}

TEST(StacksCodec, RefusesWhatIsBeyondALimit) {
  const auto code_of = [](auto change) {
    v1::WorkerStacks message;
    ToProto(SomeStacks(), &message);
    change(message);
    return FromProto(message).status().code();
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code_of([](v1::WorkerStacks&) {}), absl::StatusCode::kOk);
  EXPECT_EQ(code_of([](v1::WorkerStacks& m) { m.set_capture_id("short"); }), kInvalid);
  EXPECT_EQ(code_of([](v1::WorkerStacks& m) { m.set_outcome(v1::STACKS_OUTCOME_UNSPECIFIED); }),
            kInvalid);
  EXPECT_EQ(code_of([](v1::WorkerStacks& m) { m.set_outcome(static_cast<v1::StacksOutcome>(99)); }),
            kInvalid);
  EXPECT_EQ(code_of([](v1::WorkerStacks& m) {
              m.mutable_threads(0)->mutable_frames(0)->set_function(
                  std::string(limits::kStackNameBytesMax + 1, 'f'));
            }),
            kInvalid);
  EXPECT_EQ(code_of([](v1::WorkerStacks& m) {
              for (size_t i = 0; i <= limits::kStackThreadsMax; ++i) m.add_threads();
            }),
            kInvalid);
  EXPECT_EQ(code_of([](v1::WorkerStacks& m) {
              for (size_t i = 0; i <= limits::kStackFramesMax; ++i) {
                m.mutable_threads(0)->add_frames();
              }
            }),
            kInvalid);
  EXPECT_EQ(code_of([](v1::WorkerStacks& m) {
              for (size_t i = 0; i <= limits::kKernelThreadsMax; ++i) m.add_kernel_threads();
            }),
            kInvalid);
  EXPECT_EQ(code_of([](v1::WorkerStacks& m) {
              for (int i = 0; i < 200; ++i) {
                v1::StackThread& thread = *m.add_threads();
                for (int j = 0; j < 100; ++j) {
                  thread.add_frames()->set_function(std::string(100, 'f'));
                }
              }
            }),
            kInvalid);
}

TEST(StacksCodec, LimitsAnOrder) {
  v1::CollectStacksOrder message;
  ToProto(StacksOrder{SomeCapture(), 5, {SomeStacks().worker}}, &message);
  const auto order = FromProto(message);
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_EQ(order->collection, 5u);
  ASSERT_EQ(order->workers.size(), 1u);
  EXPECT_EQ(order->workers[0], SomeStacks().worker);
  const v1::WorkerIdentity worker = message.workers(0);
  for (size_t i = 0; i < limits::kStacksWorkersMax; ++i) *message.add_workers() = worker;
  EXPECT_EQ(FromProto(message).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace neurontrace
