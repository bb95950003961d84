// SPDX-License-Identifier: Apache-2.0
// Goal: a verdict about the host's code gets the annotated range of the program that it is in, and
// only from what workers of its job annotate. Method: annotations of workers in a store in memory,
// and verdicts as the rule makes them.
#include "aggregator/view/verdict_annotations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "aggregator/timeline/store_chunk_source.h"
#include "aggregator/view/stored_capture_test_support.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMillisecondNs = 1'000'000;
constexpr uint64_t kStepNs = 100 * kMillisecondNs;
constexpr uint64_t kSteps = 10;

class VerdictAnnotationsTest : public StoredCaptureFixture {
 protected:
  static StreamIdentity StreamOf(uint32_t pid, StreamKind kind) {
    StreamIdentity stream = TestStream(kind == StreamKind::kNeuronCore ? 0 : limits::kNoNcIdx);
    stream.worker.pid = pid;
    stream.kind = kind;
    if (kind == StreamKind::kAnnotation) stream.name = "annotations";
    return stream;
  }
  // A range of a worker's thread.
  void Range(const std::string& name, uint64_t start_ns, uint64_t end_ns) {
    ++tracking_id_;
    script_.Span("annotation", start_ns, end_ns, tracking_id_, 7, {{"name", name, KeyScope::kTop}});
  }
  // A worker of the job, whose steps have a range `loading` of this length among others.
  void StoreWorker(uint32_t pid, uint64_t loading_ns, const std::string& loading = "load") {
    script_.Span("nc_exec_running", kStoredNs, kStoredNs + kMillisecondNs, ++tracking_id_);
    StoreOnlyChunk(StreamOf(pid, StreamKind::kNeuronCore));
    for (uint64_t i = 0; i < kSteps; ++i) {
      const uint64_t begin_ns = kStoredNs + i * kStepNs;
      // Peers wait in "backward" for as long as the slow worker loads.
      const uint64_t loaded_ns = begin_ns + kMillisecondNs + loading_ns;
      Range("step " + std::to_string(i), begin_ns, begin_ns + kStepNs);
      Range("forward", begin_ns + kMillisecondNs, loaded_ns + 5 * kMillisecondNs);
      Range(loading, begin_ns + kMillisecondNs, loaded_ns);
      Range("backward", loaded_ns + 5 * kMillisecondNs, begin_ns + kStepNs - kMillisecondNs);
    }
    StoreOnlyChunk(StreamOf(pid, StreamKind::kAnnotation));
  }
  v1::Verdict MakeVerdict(uint32_t pid, v1::VerdictKind kind = v1::VERDICT_KIND_HOST_CODE) {
    v1::Verdict verdict;
    verdict.set_kind(kind);
    v1::InsightCore& core = *verdict.add_suspects();
    core.set_instance_id(TestStream(0).worker.instance_id);
    core.set_pid(pid);
    verdict.set_since_ns(kStoredNs);
    verdict.set_until_ns(kStoredNs + kSteps * kStepNs);
    verdict.set_total_cost_ns(kSteps * 28 * kMillisecondNs);
    return verdict;
  }
  // Returns the sentence about the verdict.
  std::string Describe(const v1::Verdict& verdict) {
    report_.Clear();
    *report_.add_verdicts() = verdict;
    StoreChunkSource source(store_->OpenSnapshot(record_.id), record_);
    auto capture = source.Describe();
    EXPECT_TRUE(capture.ok()) << capture.status();
    const CaptureLayout layout = CaptureLayout::Make(record_, *std::move(capture), {});
    const absl::Status status = DescribeAnnotations(source, layout, nullptr, report_);
    EXPECT_TRUE(status.ok()) << status;
    return report_.verdicts(0).annotation();
  }

  v1::InsightReport report_;
  uint64_t tracking_id_ = 0;
};

TEST_F(VerdictAnnotationsTest, NamesTheRangeWithTheExcess) {
  for (uint32_t pid = 1; pid <= 4; ++pid)
    StoreWorker(pid, pid == 2 ? 31 * kMillisecondNs : 3 * kMillisecondNs);
  EXPECT_EQ(Describe(MakeVerdict(2)),
            "in the annotated range 'load': 310 ms, and 30 ms at the median of 3 workers");
  EXPECT_EQ(report_.warnings_size(), 0);
}

TEST_F(VerdictAnnotationsTest, ARangeThatPeersLackTakesThemNoTime) {
  for (uint32_t pid = 1; pid <= 4; ++pid) {
    StoreWorker(pid, pid == 2 ? 31 * kMillisecondNs : 3 * kMillisecondNs,
                pid == 2 ? "save\x01" : "load");
  }
  EXPECT_THAT(Describe(MakeVerdict(2)), HasSubstr("310 ms, and 0 us at the median"));
}

TEST_F(VerdictAnnotationsTest, OnlyTheTimeOfTheVerdictCounts) {
  for (uint32_t pid = 1; pid <= 4; ++pid)
    StoreWorker(pid, pid == 2 ? 31 * kMillisecondNs : 3 * kMillisecondNs);
  v1::Verdict verdict = MakeVerdict(2);
  verdict.set_since_ns(kStoredNs + 4 * kStepNs + 11 * kMillisecondNs);  // within the range
  verdict.set_until_ns(kStoredNs + 6 * kStepNs);
  verdict.set_total_cost_ns(28 * kMillisecondNs);
  EXPECT_THAT(Describe(verdict), HasSubstr("'load': 52 ms, and 3 ms at"));
}

TEST_F(VerdictAnnotationsTest, ReportsThatNoRangeExplainsTheCost) {
  for (uint32_t pid = 1; pid <= 4; ++pid) StoreWorker(pid, 3 * kMillisecondNs);
  EXPECT_EQ(Describe(MakeVerdict(2)), "no annotated range has half of it, compared with 3 workers");
}

TEST_F(VerdictAnnotationsTest, TimeOutsideOfInnerRangesIsThatOfTheStep) {
  for (uint32_t pid = 1; pid <= 4; ++pid) {
    script_.Span("nc_exec_running", kStoredNs, kStoredNs + kMillisecondNs, ++tracking_id_);
    StoreOnlyChunk(StreamOf(pid, StreamKind::kNeuronCore));
    for (uint64_t i = 0; i < kSteps; ++i) {
      const uint64_t begin_ns = kStoredNs + i * kStepNs;
      Range("step " + std::to_string(i), begin_ns, begin_ns + 90 * kMillisecondNs);
      Range("forward", begin_ns, begin_ns + (pid == 2 ? 40 : 70) * kMillisecondNs);
    }
    StoreOnlyChunk(StreamOf(pid, StreamKind::kAnnotation));
  }
  EXPECT_THAT(Describe(MakeVerdict(2)), HasSubstr("'step': 500 ms, and 200 ms at"));
}

TEST_F(VerdictAnnotationsTest, ComparesOnlyWithEnoughPeersAndOnlyCodeOfTheHost) {
  for (uint32_t pid = 1; pid <= 3; ++pid)
    StoreWorker(pid, pid == 2 ? 31 * kMillisecondNs : 3 * kMillisecondNs);
  EXPECT_EQ(Describe(MakeVerdict(2)), "") << "two peers";
  StoreWorker(4, 3 * kMillisecondNs);
  EXPECT_NE(Describe(MakeVerdict(2)), "");
  EXPECT_EQ(Describe(MakeVerdict(5)), "") << "a suspect without annotations";
  EXPECT_EQ(Describe(MakeVerdict(2, v1::VERDICT_KIND_SLOW_CORE)), "");
}

}  // namespace
}  // namespace neurontrace
