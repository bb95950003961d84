// SPDX-License-Identifier: Apache-2.0
// Goal: a step is the framework's where it has some, and an execution elsewhere. Method: hand-made
// events of both.
#include "aggregator/derive/steps.h"

#include <gmock/gmock.h>

#include <optional>

#include "aggregator/derive/derive_fixture.h"

namespace neurontrace {
namespace {

class StepsTest : public DeriveTest {
 protected:
  std::vector<Step> Find() {
    std::vector<Step> done;
    std::optional<ExecutionFinder> executions;
    std::optional<StepFinder> steps;
    std::vector<Execution> over;
    Read(
        [&](const TimelineReader& reader) {
          executions.emplace(reader.streams(), fields_);
          steps.emplace(reader.streams(), fields_);
        },
        [&](const TimelineBatch& batch) {
          over.clear();
          executions->Take(batch, over);
          steps->Take(batch, over, done);
        });
    over.clear();
    executions->Finish(over);
    steps->Take({}, over, done);
    steps->Finish(done);
    counts_ = steps->counts();
    return done;
  }
  void FrameworkStep(uint32_t stream, const std::string& category, const std::string& name,
                     uint64_t start_ns, uint64_t length_ns) {
    script(stream).Complete(
        category, start_ns, 0, 7,
        {{"name", name, KeyScope::kTop}, {"dur_ns", length_ns, KeyScope::kTop}});
  }

  // JAX's: the number is an argument, in its JSON a text.
  void NumberedStep(uint32_t stream, const std::string& category, EventScript::Value number,
                    uint64_t start_ns, uint64_t length_ns) {
    script(stream).Complete(category, start_ns, 0, 7,
                            {{"name", std::string("train"), KeyScope::kTop},
                             {"dur_ns", length_ns, KeyScope::kTop},
                             {"step_num", std::move(number)}});
  }

  ShapeFieldTable fields_;
  StepCounts counts_;
};

TEST_F(StepsTest, EachExecutionIsOneWithoutAFramework) {
  const uint32_t core = AddStream(Core("i-a", 1, 0));
  Running(core, 40, 0, kBase, kBase + 100);
  Running(core, 41, 0, kBase + 200, kBase + 320);
  const auto steps = Find();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].source, StepSource::kExecution);
  EXPECT_EQ(steps[1].number, 1u);
  EXPECT_EQ(steps[1].exec_id, 41u);
  EXPECT_EQ(steps[1].end_ns - steps[1].start_ns, 120u);
}

TEST_F(StepsTest, TheFrameworksStepsCountTheExecutionsOfTheirWorkerAlone) {
  const uint32_t framework = AddStream(Framework("i-a", 1));
  const uint32_t core = AddStream(Core("i-a", 1, 0));
  const uint32_t second = AddStream(Core("i-a", 1, 1));
  const uint32_t other = AddStream(Core("i-a", 2, 0));
  FrameworkStep(framework, "user_annotation", "ProfilerStep#7", kBase, 100);
  FrameworkStep(framework, "user_annotation", "ProfilerStep#8", kBase + 100, 100);
  FrameworkStep(framework, "gpu_user_annotation", "ProfilerStep#8", kBase + 99, 102);
  FrameworkStep(framework, "user_annotation", "ProfilerStep#x", kBase + 100, 100);
  Running(core, 1, 0, kBase + 10, kBase + 40);
  Running(second, 1, 1, kBase + 20, kBase + 40);
  Running(core, 2, 0, kBase + 100, kBase + 250);  // at the border: of the second
  Running(core, 3, 0, kBase + 300, kBase + 310);  // in none
  Running(other, 1, 0, kBase + 10, kBase + 40);
  const auto steps = Find();
  ASSERT_EQ(steps.size(), 3u);
  std::vector<const Step*> own;
  for (const Step& step : steps) {
    if (step.source == StepSource::kFramework) own.push_back(&step);
  }
  ASSERT_EQ(own.size(), 2u);
  EXPECT_EQ(own[0]->number, 7u);
  EXPECT_EQ(own[0]->executions, 2u);
  EXPECT_EQ(own[0]->device_busy_ns, 50u);
  EXPECT_EQ(own[1]->number, 8u);
  EXPECT_EQ(own[1]->executions, 1u);
  EXPECT_EQ(counts_.outside, 1u);
  EXPECT_EQ(counts_.execution, 1u) << "the other worker's";
}

TEST_F(StepsTest, AStepMayBeWrittenAsABeginAndAnEndAndNeedsALength) {
  const uint32_t framework = AddStream(Framework("i-a", 1));
  const uint32_t core = AddStream(Core("i-a", 1, 0));
  const EventScript::Attribute name{"name", "ProfilerStep#7", KeyScope::kTop};
  script(framework).Add("user_annotation", Phase::kBegin, kBase, 1, 7, {name});
  script(framework).Add("user_annotation", Phase::kEnd, kBase + 100, 1, 7);
  script(framework).Complete("user_annotation", kBase + 200, 0, 7,
                             {{"name", "ProfilerStep#8", KeyScope::kTop},
                              {"dur_ns", uint64_t{0}, KeyScope::kTop},
                              {std::string(kDurationMadeUpKey), "negative", KeyScope::kTop}});
  Running(core, 1, 0, kBase + 10, kBase + 40);
  const auto steps = Find();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].number, 7u);
  EXPECT_EQ(steps[0].executions, 1u);
  EXPECT_EQ(steps[0].end_ns - steps[0].start_ns, 100u);
}

TEST_F(StepsTest, AnnotatedRangesAreStepsByNameCategoryOrPayload) {
  StreamIdentity identity = Core("i-a", 1, 0);
  identity.kind = StreamKind::kAnnotation;
  identity.nc_idx = limits::kNoNcIdx;
  identity.name = "annotations";
  const uint32_t annotations = AddStream(std::move(identity));
  const uint32_t core = AddStream(Core("i-a", 1, 0));
  const auto range = [&](uint64_t id, const std::string& category, const std::string& name,
                         EventScript::Attributes more = {}) {
    more.push_back({"name", name, KeyScope::kTop});
    script(annotations).Add(category, Phase::kBegin, kBase + 100 * id, id, 7, more);
    script(annotations).Add(category, Phase::kEnd, kBase + 100 * id + 90, id, 7);
  };
  range(1, "annotation", "step 7");
  range(2, "step", "train", {{"payload", uint64_t{8}}});
  range(3, "annotation", "step", {{"payload", uint64_t{9}}});
  range(4, "annotation", "forward", {{"payload", uint64_t{10}}});
  Running(core, 1, 0, kBase + 110, kBase + 140);
  const auto steps = Find();
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].number, 7u);
  EXPECT_EQ(steps[0].executions, 1u);
  EXPECT_EQ(steps[1].number, 8u);
  EXPECT_EQ(steps[2].number, 9u);
}

TEST_F(StepsTest, AmbiguousProcessIdHasNoSteps) {
  const uint32_t framework = AddStream(Framework("i-a", 7));
  const uint32_t core = AddStream(Core("i-a", 7, 0));
  StreamIdentity contained = Core("i-a", 7, 0);
  contained.worker.container_id = "another";
  const uint32_t other = AddStream(std::move(contained));
  FrameworkStep(framework, "user_annotation", "ProfilerStep#7", kBase, 100);
  Running(core, 1, 0, kBase + 10, kBase + 40);
  Running(other, 1, 0, kBase + 20, kBase + 40);
  const auto steps = Find();
  ASSERT_EQ(steps.size(), 3u);
  for (const Step& step : steps) {
    const bool is_frameworks = step.source == StepSource::kFramework;
    EXPECT_EQ(step.executions, is_frameworks ? 0u : 1u);
  }
  EXPECT_EQ(counts_.ambiguous, 1u);
  EXPECT_EQ(counts_.execution, 2u);
  EXPECT_EQ(counts_.outside, 0u);
}

// As in one file of several processes.
TEST_F(StepsTest, StepsThatBeginTogetherComeInTheOrderOfTheirNumbersAndEnds) {
  const uint32_t framework = AddStream(Framework("i-a", 0));
  constexpr uint64_t kProcesses = 64;
  for (uint64_t pid = 1; pid <= kProcesses; ++pid) {
    const uint64_t place = pid * 37 % kProcesses;
    script(framework).Complete(
        "user_annotation", kBase, 0, 7,
        {{"name", "ProfilerStep#" + std::to_string(place / 8), KeyScope::kTop},
         {"pid", pid, KeyScope::kTop},
         {"dur_ns", 100 + place % 8, KeyScope::kTop}});
  }
  const auto steps = Find();
  ASSERT_EQ(steps.size(), kProcesses);
  for (uint64_t i = 0; i < kProcesses; ++i) {
    EXPECT_EQ(steps[i].number, i / 8);
    EXPECT_EQ(steps[i].end_ns, kBase + 100 + i % 8);
  }
}

TEST_F(StepsTest, FrameworkStepWaitsForItsExecutions) {
  const uint32_t framework = AddStream(Framework("i-a", 1));
  const uint32_t core = AddStream(Core("i-a", 1, 0));
  FrameworkStep(framework, "user_annotation", "ProfilerStep#1", kBase, 10 * kMs);
  Running(core, 1, 0, kBase + 9 * kMs, kBase + 900 * kMs);
  for (uint64_t i = 0; i < 100; ++i) {
    script(core).Instant("tick", kBase + (1 + i) * 100 * kMs);
  }
  const auto steps = Find();
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].executions, 1u);
}

// A step over all of the capture keeps no other from being given out, and is found for what began
// outside of every other, so far as it is looked for.
TEST_F(StepsTest, AStepOverTheWholeCaptureBlocksNoOther) {
  const uint32_t framework = AddStream(Framework("i-a", 1));
  const uint32_t core = AddStream(Core("i-a", 1, 0));
  constexpr uint64_t kSteps = 400;
  constexpr uint64_t kStepNs = 100 * kMs;
  FrameworkStep(framework, "user_annotation", "ProfilerStep#0", kBase, 2 * kSteps * kStepNs);
  for (uint64_t i = 1; i <= kSteps; ++i) {
    const uint64_t at = kBase + i * kStepNs;
    FrameworkStep(framework, "user_annotation", "ProfilerStep#" + std::to_string(i), at,
                  kStepNs / 2);
    Running(core, 2 * i, 0, at + 10, at + 20);
    Running(core, 2 * i + 1, 0, at + kStepNs - 20, at + kStepNs - 10);  // after the step
  }
  const auto steps = Find();
  ASSERT_EQ(steps.size(), kSteps + 1);
  EXPECT_EQ(steps[kSteps / 2].number, kSteps / 2 + 1) << "the short steps come before the long one";
  for (const Step& step : steps) {
    EXPECT_EQ(step.executions, step.number == 0 ? kSteps : 1u) << step.number;
  }
  EXPECT_EQ(counts_.outside, 0u);
}

TEST_F(StepsTest, LimitsStepsSearchedPerExecution) {
  const uint32_t framework = AddStream(Framework("i-a", 1));
  const uint32_t core = AddStream(Core("i-a", 1, 0));
  FrameworkStep(framework, "user_annotation", "ProfilerStep#0", kBase, 1'000 * kMs);
  for (uint64_t i = 1; i <= StepFinder::kOverlapMax; ++i) {
    FrameworkStep(framework, "user_annotation", "ProfilerStep#" + std::to_string(i), kBase + 10 * i,
                  5);
  }
  Running(core, 1, 0, kBase + 10 * StepFinder::kOverlapMax - 5,
          kBase + 10 * StepFinder::kOverlapMax);  // kOverlapMax - 1 have begun since
  Running(core, 2, 0, kBase + 5'000, kBase + 5'100);
  const auto steps = Find();
  ASSERT_EQ(steps.size(), StepFinder::kOverlapMax + 1);
  EXPECT_EQ(steps.front().number, 0u);
  EXPECT_EQ(steps.front().executions, 1u);
  EXPECT_EQ(counts_.outside, 1u);
}

TEST_F(StepsTest, KnowsTheNamesOfSteps) {
  EXPECT_EQ(ProfilerStepNumber("ProfilerStep#12"), 12u);
  EXPECT_EQ(ProfilerStepNumber("ProfilerStep#"), std::nullopt);
  EXPECT_EQ(ProfilerStepNumber("ProfilerStep#1 "), std::nullopt);
  EXPECT_EQ(ProfilerStepNumber("ProfilerStep#99999999999999999999"), std::nullopt);
  EXPECT_EQ(ProfilerStepNumber("step 1"), std::nullopt);
}

TEST_F(StepsTest, KnowsTheNamesOfAnnotatedSteps) {
  for (const char* name : {"step 12", "Step#12", "STEP_12", "step: 12", "step12"}) {
    EXPECT_EQ(AnnotatedStepNumber(name, "annotation", std::nullopt), 12u) << name;
  }
  for (const char* name : {"step", "step 12 of 20", "steps 12", "stepping", "", "forward"}) {
    EXPECT_EQ(AnnotatedStepNumber(name, "annotation", std::nullopt), std::nullopt) << name;
  }
  EXPECT_EQ(AnnotatedStepNumber("step", "annotation", 3), 3u);
  EXPECT_EQ(AnnotatedStepNumber("train", "Step", 3), 3u);
  EXPECT_EQ(AnnotatedStepNumber("train", "annotation", 3), std::nullopt);
  EXPECT_EQ(AnnotatedStepNumber("step 12", "annotation", 3), 12u) << "the name's number is exact";
}

TEST_F(StepsTest, AnArgumentStepNumIsOneToo) {
  const uint32_t framework = AddStream(Framework("i-a", 1));
  const uint32_t core = AddStream(Core("i-a", 1, 0));
  NumberedStep(framework, "xla_host", uint64_t{41}, kBase, 100);
  NumberedStep(framework, "", std::string("42"), kBase + 100, 100);
  NumberedStep(framework, "xla_device", uint64_t{42}, kBase + 110, 80);
  NumberedStep(framework, "", std::string("last"), kBase + 100, 100);
  Running(core, 1, 0, kBase + 110, kBase + 150);
  const auto steps = Find();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].number, 41u);
  EXPECT_EQ(steps[0].executions, 0u);
  EXPECT_EQ(steps[1].number, 42u);
  EXPECT_EQ(steps[1].executions, 1u);
}

// Where its steps stand among the executions is not known: each execution stays a step.
TEST_F(StepsTest, AFileWithATimeOfItsOwnHasStepsWithoutExecutions) {
  const uint32_t framework = AddStream(Framework("i-a", 1));
  const uint32_t core = AddStream(Core("i-a", 1, 0));
  source_.stream(framework).clock_domain = ClockDomain::kOwn;
  NumberedStep(framework, "", std::string("1"), 1'000'000, 100);
  Running(core, 1, 0, kBase, kBase + 50);
  const auto steps = Find();
  ASSERT_EQ(steps.size(), 2u);
  for (const Step& step : steps) {
    const bool is_frameworks = step.source == StepSource::kFramework;
    EXPECT_EQ(step.executions, is_frameworks ? 0u : 1u);
    EXPECT_EQ(step.end_ns - step.start_ns, is_frameworks ? 100u : 50u);
  }
  EXPECT_EQ(counts_.own_time, 1u);
  EXPECT_EQ(counts_.outside, 0u);
}

}  // namespace
}  // namespace neurontrace
