// SPDX-License-Identifier: Apache-2.0
#include "agent/delivery_metrics.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <ctime>
#include <map>
#include <string>
#include <utility>

#include "agent/source/chunk_sink.h"
#include "agent/source/source_metrics.h"
#include "agent/source/stream_writer.h"
#include "agent/upload/delivery_queue.h"
#include "agent/upload/fake_aggregator.h"
#include "agent/upload/uploader.h"
#include "lib/base/clock.h"
#include "lib/base/fake_task_runner.h"
#include "lib/base/random.h"
#include "lib/trace/chunk_header.h"
#include "lib/trace/ids.h"
#include "lib/trace/loss.h"
#include "lib/trace/stream_cursor.h"
#include "lib/wire/test_certificates.h"

namespace neurontrace {
namespace {

class DeliveryMetricsTest : public ::testing::Test {
 protected:
  void Submit(uint64_t sequence, uint32_t events) {
    Chunk chunk;
    chunk.header.capture_id = capture_;
    chunk.header.stream.agent_id = "a";
    chunk.header.stream.worker.instance_id = "i";
    chunk.header.stream.kind = StreamKind::kFramework;
    chunk.header.stream.name = "s";
    chunk.header.sequence = sequence;
    chunk.header.event_count = events;
    chunk.columns = std::string(200, 'c');
    queue_.Submit(std::move(chunk), [](const ChunkSink::Receipt&) {});
  }

  prometheus::MetricFamily FamilyOf(const std::string& name) const {
    for (auto& family : registry_.Collect()) {
      if (family.name == name) return family;
    }
    return {};
  }

  // "place: reason" to the number.
  std::map<std::string, double> Losses(
      const std::string& metric_name = "neurontrace_agent_losses_total") const {
    std::map<std::string, double> losses;
    for (const auto& metric : FamilyOf(metric_name).metric) {
      std::map<std::string, std::string> labels;
      for (const auto& label : metric.label) labels[label.name] = label.value;
      EXPECT_EQ(labels.at("instance_id"), "i-1");
      losses[labels.at("place") + ": " + labels.at("reason")] = metric.counter.value;
    }
    return losses;
  }

  prometheus::ClientMetric::Histogram AckTimesNow() const {
    return FamilyOf("neurontrace_agent_acknowledge_seconds").metric.at(0).histogram;
  }

  FakeClock clock_;
  FakeTaskRunner runner_{clock_};
  SeededRandom random_{7};
  CaptureId capture_ = CaptureId::Make(clock_, random_);
  FakeUploadAggregator aggregator_{runner_};
  DeliveryQueue queue_{nullptr, 10'000};
  Uploader uploader_{queue_, aggregator_.connector(), runner_, clock_, random_};
  AgentSourceMetrics sources_;
  prometheus::Registry registry_;
};

TEST_F(DeliveryMetricsTest, ExportsLossesByPlaceAndReasonFromStart) {
  DeliveryMetrics metrics(registry_, {{"instance_id", "i-1"}},
                          {sources_, queue_, uploader_, nullptr}, {});
  EXPECT_EQ(Losses().size(), 15u);
  for (const auto& [name, events] : Losses()) EXPECT_EQ(events, 0) << name;

  sources_.losses_by_place.Add(LossPlace::kRuntimeRing, LossReason::kOverwritten, 5);
  aggregator_.refuses = [](const ChunkHeader& header) { return header.event_count == 3; };
  uploader_.SetEnabled(true);
  Submit(0, 3);
  Submit(1, 4);
  runner_.RunUntilIdle();
  metrics.Publish();
  EXPECT_EQ(Losses().at("runtime ring: overwritten"), 5);
  EXPECT_EQ(Losses().at("wire refusal: refused"), 3);
  EXPECT_EQ(Losses().at("spool: overwritten"), 0);
  EXPECT_EQ(queue_.counters().events_lost, 3u);
}

// A worker that is killed is told apart from what somebody has to repair.
TEST_F(DeliveryMetricsTest, LossesOfUnknownSizeHavePlaceAndReasonToo) {
  constexpr char kName[] = "neurontrace_agent_losses_of_unknown_size_total";
  DeliveryMetrics metrics(registry_, {{"instance_id", "i-1"}},
                          {sources_, queue_, uploader_, nullptr}, {});
  EXPECT_EQ(Losses(kName).at("runtime ring: unknown"), 0);
  EXPECT_EQ(Losses(kName).at("decode: malformed"), 0);
  StreamIdentity stream;
  stream.agent_id = "a";
  StreamWriter writer(capture_, stream, clock_, queue_, sources_);
  writer.AddLoss(
      1,
      {.place = LossPlace::kRuntimeRing, .reason = LossReason::kUnknown, .events_unknown = true});
  metrics.Publish();
  EXPECT_EQ(Losses(kName).at("runtime ring: unknown"), 1);
  EXPECT_EQ(Losses(kName).at("decode: malformed"), 0);
  EXPECT_EQ(Losses().at("runtime ring: unknown"), 0) << "whose number is known";
}

TEST_F(DeliveryMetricsTest, AcknowledgementsAreTimedFromTheSendingOfThisCall) {
  DeliveryMetrics metrics(registry_, {}, {sources_, queue_, uploader_, nullptr}, {});
  uploader_.SetEnabled(true);
  Submit(0, 1);
  clock_.AdvanceNs(300'000'000);
  runner_.RunUntilIdle();
  metrics.Publish();
  metrics.Publish();  // nothing is counted twice
  EXPECT_EQ(AckTimesNow().sample_count, 1u);
  EXPECT_NEAR(AckTimesNow().sample_sum, 0.3, 1e-9);

  // Nobody hears what is sent for an hour; then the call is restarted.
  aggregator_.is_cut_off = [] { return true; };
  Submit(1, 1);
  runner_.RunUntilIdle();
  clock_.AdvanceNs(3'600'000'000'000);
  uploader_.SetEnabled(false);
  aggregator_.is_cut_off = nullptr;
  uploader_.SetEnabled(true);
  runner_.RunUntilIdle();
  metrics.Publish();
  EXPECT_EQ(queue_.counters().chunks_stored, 2u);
  EXPECT_EQ(AckTimesNow().sample_count, 2u);
  EXPECT_NEAR(AckTimesNow().sample_sum, 0.3, 0.1);
}

TEST_F(DeliveryMetricsTest, DoesNotTimeChunksStoredBeforeWelcome) {
  DeliveryMetrics metrics(registry_, {}, {sources_, queue_, uploader_, nullptr}, {});
  Submit(0, 1);
  StreamCursor cursor;
  cursor.stream = {
      .agent_id = "a", .worker = {.instance_id = "i"}, .kind = StreamKind::kFramework, .name = "s"};
  cursor.next_sequence = 1;
  uploader_.HandleCursors(capture_, {cursor});
  metrics.Publish();
  EXPECT_EQ(queue_.counters().chunks_stored, 1u);
  EXPECT_EQ(AckTimesNow().sample_count, 0u);
}

TEST_F(DeliveryMetricsTest, ExportsCertificateExpiryWhileCertificateExists) {
  constexpr char kName[] = "neurontrace_agent_certificate_expiry_seconds";
  constexpr int kTurns = 10;
  TestCertificates certificates;
  certificates.Issue("agent", {.valid_until_s = 1'000});
  DeliveryMetrics metrics(registry_, {}, {sources_, queue_, uploader_, nullptr},
                          {.ca = certificates.ca(), .cert = certificates.cert("agent")});
  metrics.Publish();
  EXPECT_EQ(FamilyOf("neurontrace_agent_authority_expiry_seconds").metric.size(), 1u);
  const auto now = static_cast<double>(std::time(nullptr));
  ASSERT_EQ(FamilyOf(kName).metric.size(), 1u);
  EXPECT_NEAR(FamilyOf(kName).metric[0].gauge.value, now + 1'000, 30);
  // Over, and said all the same.
  certificates.Issue("agent", {.valid_until_s = -1'000});
  for (int i = 0; i < kTurns; ++i) metrics.Publish();
  EXPECT_NEAR(FamilyOf(kName).metric[0].gauge.value, now - 1'000, 30);
  certificates.Write("agent.pem", "no certificate");
  for (int i = 0; i < kTurns; ++i) metrics.Publish();
  EXPECT_TRUE(FamilyOf(kName).metric.empty());
}

}  // namespace
}  // namespace neurontrace
