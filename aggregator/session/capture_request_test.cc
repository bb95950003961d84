// SPDX-License-Identifier: Apache-2.0
// What is put into a capture's spec, and which are refused, with what there is beside them.
#include "aggregator/session/capture_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/trace/event_filter.h"
#include "lib/trace/framework_limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CaptureRequestTest : public ::testing::Test {
 protected:
  CaptureRequestTest() {
    AgentInfo info{.protocol_version = kProtocolVersion, .agent_id = "a", .instance_id = "i-a"};
    EXPECT_TRUE(registry_.Connect(info, 1, 0).ok());
    Put(1, "llama", {"cc_running", "nc_exec_running", "nrt_tensor_read", "nrt_tensor_free"});
    Put(2, "gpt", {"kmgr_exec_core"});
  }
  void Put(uint32_t pid, const std::string& job, std::vector<std::string> types) {
    EXPECT_TRUE(registry_
                    .PutWorker("a", {.identity = {.instance_id = "i-a", .pid = pid},
                                     .job = job,
                                     .event_types = std::move(types)})
                    .ok());
  }
  // A capture that is running.
  CaptureId Runs(const CaptureSpec& spec, CaptureState state = CaptureState::kRecording) {
    records_.push_back({.id = CaptureId::Make(clock_, random_), .spec = spec, .state = state});
    return records_.back().id;
  }
  absl::StatusOr<CaptureSpec> Complete(const CaptureSpec& spec) {
    CaptureContext capture_context{.registry = registry_};
    for (const CaptureRecord& record : records_) capture_context.running.push_back(&record);
    return CompleteSpec(spec, capture_context);
  }
  std::string RefusalReason(const CaptureSpec& spec, absl::StatusCode code) {
    const auto completed = Complete(spec);
    EXPECT_EQ(completed.status().code(), code) << completed.status();
    return std::string(completed.status().message());
  }
  std::string InvalidReason(const CaptureSpec& spec) {
    return RefusalReason(spec, absl::StatusCode::kInvalidArgument);
  }

  FakeClock clock_;
  SeededRandom random_{1};
  AgentRegistry registry_;
  std::vector<CaptureRecord> records_;
};

TEST_F(CaptureRequestTest, LeavesOutTheNoiseOfAllocationsUnlessAsked) {
  EXPECT_EQ(Complete({})->filter.event_types, DefaultEventFilter());
  EXPECT_TRUE(Complete({.filter = {.all_events = true}})->filter.event_types.empty());
  EXPECT_THAT(Complete({.filter = {.event_types = {"cc_running"}}})->filter.event_types,
              ElementsAre("cc_running"));
}

TEST_F(CaptureRequestTest, AnUnknownEventTypeIsRefusedWithTheNearest) {
  EXPECT_EQ(
      InvalidReason({.filter = {.event_types = {"hardware", "^cc_runing"}}}),
      "unknown event type 'cc_runing' (did you mean 'cc_running'?); the runtimes of the selected "
      "workers provide cc_running, kmgr_exec_core, nc_exec_running, nrt_tensor_free, "
      "nrt_tensor_read");
  // Groups, and the names of the documentation.
  EXPECT_TRUE(Complete({.filter = {.event_types = {"software", "cc_exec", "^tensor_read"}}}).ok());
}

TEST_F(CaptureRequestTest, OnlySelectedWorkersDefineKnownTypes) {
  EXPECT_TRUE(
      Complete({.selection = {.job = "gpt"}, .filter = {.event_types = {"kmgr_exec_core"}}}).ok());
  EXPECT_THAT(
      InvalidReason({.selection = {.job = "gpt"}, .filter = {.event_types = {"cc_running"}}}),
      HasSubstr("cc_running"));
  Put(3, "unknown", {});
  EXPECT_TRUE(
      Complete({.selection = {.job = "unknown"}, .filter = {.event_types = {"whatever"}}}).ok());
}

TEST_F(CaptureRequestTest, TypesOfFrameworksAreInNoList) {
  EXPECT_TRUE(Complete({.filter = {.event_types = {"aten::mm"}}}).ok());
  EXPECT_FALSE(
      Complete({.filter = {.event_types = {"aten::mm"}, .include_framework = false}}).ok());
}

TEST_F(CaptureRequestTest, ExecutionsAloneBeginTogether) {
  EXPECT_TRUE(Complete({.conditions = {.executions = 10}})->conditions.at_next_execution);
  EXPECT_FALSE(Complete({.conditions = {.at_execution = 5, .executions = 10}})
                   ->conditions.at_next_execution);
}

TEST_F(CaptureRequestTest, RejectsContradictoryRequest) {
  EXPECT_THAT(InvalidReason({.timing = {.last_ns = 1}}), HasSubstr("last_ns"));
  EXPECT_THAT(InvalidReason({.mode = CaptureMode::kContinuous}), HasSubstr("retention"));
  EXPECT_THAT(InvalidReason({.filter = {.include_neuron = false, .include_framework = false}}),
              HasSubstr("excludes both"));
  EXPECT_FALSE(
      Complete({.mode = CaptureMode::kFlightRecorder, .filter = {.include_neuron = false}}).ok());
}

TEST_F(CaptureRequestTest, OneStandingCaptureOfAKindForAWorker) {
  const CaptureId first =
      Runs({.mode = CaptureMode::kFlightRecorder, .selection = {.job = "llama"}});
  const auto refused = [&](const CaptureSpec& spec) {
    return RefusalReason(spec, absl::StatusCode::kFailedPrecondition);
  };
  EXPECT_THAT(refused({.mode = CaptureMode::kFlightRecorder}), HasSubstr(first.ToString()));
  EXPECT_THAT(refused({.mode = CaptureMode::kFlightRecorder, .selection = {.job = "llama"}}),
              HasSubstr("for job llama"));
  EXPECT_TRUE(Complete({.mode = CaptureMode::kFlightRecorder, .selection = {.job = "gpt"}}).ok());
  EXPECT_TRUE(Complete({.mode = CaptureMode::kContinuous, .retention = {.duration_ns = 1}}).ok());
  EXPECT_TRUE(Complete({.selection = {.job = "llama"}}).ok());
  records_[0].state = CaptureState::kStopping;
  EXPECT_TRUE(Complete({.mode = CaptureMode::kFlightRecorder, .selection = {.job = "llama"}}).ok());
}

TEST_F(CaptureRequestTest, DifferingSelectionsCannotOverlap) {
  EXPECT_TRUE(CanOverlap({}, {.selection = {.job = "a"}}));
  EXPECT_FALSE(CanOverlap({.selection = {.job = "b"}}, {.selection = {.job = "a"}}));
  EXPECT_FALSE(CanOverlap({.selection = {.instance_ids = {"i"}}},
                          {.selection = {.instance_ids = {"j", "k"}}}));
  EXPECT_TRUE(CanOverlap({.selection = {.instance_ids = {"i", "j"}}},
                         {.selection = {.instance_ids = {"j"}}}));
  EXPECT_FALSE(CanOverlap({.selection = {.worker_gids = {{0, 3}}}},
                          {.selection = {.worker_gids = {{4, 7}}}}));
  EXPECT_TRUE(CanOverlap({.selection = {.worker_gids = {{0, 4}}}},
                         {.selection = {.worker_gids = {{4, 7}}}}));
  EXPECT_FALSE(CanOverlap({.selection = {.job_facts = {{"pod", "x"}}}},
                          {.selection = {.job_facts = {{"pod", "y"}}}}));
}

TEST_F(CaptureRequestTest, ASnapshotTakesTheFlightRecorderThatFits) {
  const auto refused = [&](const CaptureSpec& spec) {
    return RefusalReason(spec, absl::StatusCode::kFailedPrecondition);
  };
  const CaptureSpec snapshot = {.mode = CaptureMode::kSnapshot, .timing = {.last_ns = 5}};
  EXPECT_THAT(refused(snapshot), HasSubstr("flight-recorder on"));
  const CaptureId llama = Runs({.mode = CaptureMode::kFlightRecorder,
                                .selection = {.job = "llama"},
                                .filter = {.event_types = {"hardware"}},
                                .retention = {.ring_events_per_core = 2'048}});
  const CaptureSpec taken = *Complete(snapshot);
  EXPECT_EQ(taken.timing.flight_recorder, llama);
  EXPECT_EQ(taken.selection.job, "llama");
  EXPECT_EQ(taken.retention.ring_events_per_core, 2'048u);
  EXPECT_THAT(taken.filter.event_types, ElementsAre("hardware"));
  EXPECT_FALSE(taken.filter.include_framework);
  const CaptureId gpt = Runs({.mode = CaptureMode::kFlightRecorder, .selection = {.job = "gpt"}});
  EXPECT_THAT(refused(snapshot), HasSubstr("2 flight recorders match"));
  EXPECT_EQ(Complete({.mode = CaptureMode::kSnapshot, .selection = {.job = "gpt"}})
                ->timing.flight_recorder,
            gpt);
  EXPECT_THAT(refused({.mode = CaptureMode::kSnapshot, .selection = {.job = "other"}}),
              HasSubstr("for the selected workers"));
  EXPECT_EQ(Complete({.mode = CaptureMode::kSnapshot, .timing = {.flight_recorder = llama}})
                ->selection.job,
            "llama");
  records_[0].state = CaptureState::kArming;
  EXPECT_THAT(refused({.mode = CaptureMode::kSnapshot, .timing = {.flight_recorder = llama}}),
              HasSubstr("is arming, so its rings are not held"));
}

TEST_F(CaptureRequestTest, FrameworksAreKnownAndTheirTracesHaveAnEnd) {
  const CaptureSpec good{.filter = {.frameworks = {"pytorch"}},
                         .timing = {.duration_ns = 1'000'000'000}};
  EXPECT_TRUE(Complete(good).ok());
  CaptureSpec spec = good;
  spec.filter.frameworks = {"tensorflow"};
  EXPECT_THAT(InvalidReason(spec), HasSubstr("known are pytorch, xla"));
  spec.filter.frameworks = {"pytorch", "pytorch"};
  EXPECT_THAT(InvalidReason(spec), HasSubstr("twice"));
  spec = good;
  spec.timing.duration_ns = 0;
  EXPECT_THAT(InvalidReason(spec), HasSubstr("cannot be stopped early"));
  spec.filter.framework_steps = 5;
  EXPECT_TRUE(Complete(spec).ok());
  spec.filter.include_framework = false;
  EXPECT_THAT(InvalidReason(spec), HasSubstr("includes framework files"));
  spec = good;
  spec.filter.frameworks.clear();
  spec.filter.framework_first_step = 7;
  EXPECT_THAT(InvalidReason(spec), HasSubstr("name it"));
}

TEST_F(CaptureRequestTest, XlaRecordsByTimeAndNotForLong) {
  CaptureSpec spec{.filter = {.frameworks = {"pytorch", "xla"}},
                   .timing = {.duration_ns = limits::kXlaDurationNsMax}};
  EXPECT_TRUE(Complete(spec).ok());
  ++spec.timing.duration_ns;
  EXPECT_THAT(InvalidReason(spec), HasSubstr("at most 60 s"));
  spec.timing.duration_ns = 1'000'000'000;
  spec.filter.framework_steps = 5;
  EXPECT_THAT(InvalidReason(spec), HasSubstr("xla records by time"));
  spec.filter.frameworks = {"pytorch"};
  EXPECT_TRUE(Complete(spec).ok());
}

}  // namespace
}  // namespace neurontrace
