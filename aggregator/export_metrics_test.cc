// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export_metrics.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace neurontrace {
namespace {

class ExportMetricsTest : public ::testing::Test {
 protected:
  double BytesOf(const std::string& format) const {
    for (const auto& family : registry_.Collect()) {
      if (family.name != "neurontrace_aggregator_export_bytes_total") continue;
      for (const auto& metric : family.metric) {
        if (metric.label.at(0).value == format) return metric.counter.value;
      }
    }
    return -1;
  }
  prometheus::ClientMetric::Histogram Seconds() const {
    for (const auto& family : registry_.Collect()) {
      if (family.name == "neurontrace_aggregator_export_seconds") {
        return family.metric.at(0).histogram;
      }
    }
    return {};
  }
  using Reasons = std::map<std::string, double>;
  Reasons Failed() const {
    Reasons failed;
    for (const auto& family : registry_.Collect()) {
      if (family.name != "neurontrace_aggregator_exports_failed_total") continue;
      for (const auto& metric : family.metric) {
        failed[metric.label.at(0).value] = metric.counter.value;
      }
    }
    return failed;
  }
  static v1::ExportReply Progress(uint64_t bytes) {
    v1::ExportReply reply;
    reply.mutable_progress()->set_bytes_written(bytes);
    return reply;
  }

  prometheus::Registry registry_;
  ExportMetrics metrics_{registry_};
  FakeClock clock_;
  v1::ExportRequest request_;
};

TEST_F(ExportMetricsTest, CountsBytesAsTheyAreWrittenAndTheTimeAtTheEnd) {
  request_.set_format(v1::EXPORT_FORMAT_EVENTS);
  EXPECT_EQ(BytesOf("events"), 0);
  {
    ExportMetrics::Meter meter(metrics_, clock_, request_);
    meter.Look(Progress(100));
    v1::ExportReply data;
    data.set_data("not counted by its size, as it may be compressed or held");
    meter.Look(data);
    EXPECT_EQ(BytesOf("events"), 100);
    meter.Look(Progress(90));  // begins a file anew: what was counted stays
    EXPECT_EQ(BytesOf("events"), 100);
    v1::ExportReply done;
    done.mutable_done()->mutable_total()->set_bytes_written(250);
    meter.Look(done);
    clock_.AdvanceNs(7'000'000'000);
    EXPECT_EQ(Seconds().sample_count, 0u);
  }
  EXPECT_EQ(BytesOf("events"), 250);
  EXPECT_EQ(Seconds().sample_count, 1u);
  EXPECT_DOUBLE_EQ(Seconds().sample_sum, 7);
}

TEST_F(ExportMetricsTest, FailuresAreToldApartByWhoHasToDoSomething) {
  EXPECT_EQ(
      Failed(),
      (Reasons{
          {"cancelled", 0}, {"destination", 0}, {"invalid", 0}, {"not_found", 0}, {"store", 0}}));
  metrics_.CountFailed(absl::CancelledError("the reader went away"), false);
  metrics_.CountFailed(absl::CancelledError("the aggregator ends"), true);
  metrics_.CountFailed(absl::InvalidArgumentError("no such format"), true);
  metrics_.CountFailed(absl::FailedPreconditionError("below none of the roots"), false);
  metrics_.CountFailed(absl::NotFoundError("no capture"), false);
  metrics_.CountFailed(absl::NotFoundError("no bucket"), true);
  metrics_.CountFailed(absl::ResourceExhaustedError("no space left"), true);
  metrics_.CountFailed(absl::FailedPreconditionError("HTTP 403"), true);
  metrics_.CountFailed(absl::UnavailableError("the disk does not answer"), false);
  metrics_.CountFailed(absl::DataLossError("damaged"), true);
  EXPECT_EQ(
      Failed(),
      (Reasons{
          {"cancelled", 2}, {"destination", 3}, {"invalid", 2}, {"not_found", 1}, {"store", 2}}));
}

TEST_F(ExportMetricsTest, SeveralFormatsHaveOneSum) {
  request_.set_format(v1::EXPORT_FORMAT_EVENTS);
  request_.add_more_formats(v1::EXPORT_FORMAT_JSON);
  ExportMetrics::Meter(metrics_, clock_, request_).Look(Progress(10));
  EXPECT_EQ(BytesOf("several"), 10);
  EXPECT_EQ(BytesOf("events"), 0);
}

}  // namespace
}  // namespace neurontrace
