// SPDX-License-Identifier: Apache-2.0
// Tests standing exports that do not find something: over a store in memory, with exports that give
// the answers of the test. They are made one after the other, and once the last one is requested
// the results of those before are counted: no test waits for time.
#include "aggregator/exports/standing_exports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <string>
#include <vector>

#include "aggregator/aggregator_test_support.h"
#include "aggregator/store/store_test_support.h"

namespace neurontrace {
namespace {

constexpr uint64_t kStandingSecondNs = 1'000'000'000;

// Finds the bucket of one capture alone.
class FakeExporter : public CaptureExporter {
 public:
  explicit FakeExporter(const CaptureId& last) : last_(last) {}

  absl::Status ExportCapture(const CaptureRecord& record, const v1::ExportRequest&,
                             const ExportWriter&) override {
    if (record.id != last_) return absl::NotFoundError("the bucket is not there");
    reached_.set_value();
    return absl::OkStatus();
  }
  void AwaitLast() { reached_.get_future().wait(); }

 private:
  const CaptureId last_;
  std::promise<void> reached_;
};

class StandingExportsTest : public ::testing::Test {
 protected:
  // Offers captures that ended one after the other, and runs until the export of `last`.
  void RunUntil(uint8_t last, const std::vector<uint8_t>& captures) {
    FakeExporter exporter(TestCaptureId(last));
    auto rules = StandingExports::ReadRules(
        {"{name = \"all\", to = \"" + directory_.path() + "/out\"}"}, roots_);
    ASSERT_TRUE(rules.ok()) << rules.status();
    StandingExports exports({*store_, registry_, clock_, random_, exporter, *audit_},
                            directory_.path() + "/standing", *std::move(rules));
    for (const uint8_t n : captures) {
      clock_.AdvanceNs(kStandingSecondNs);
      CaptureRecord record = TestCapture(n);
      record.state = CaptureState::kComplete;
      record.ended_realtime_ns = clock_.RealtimeNs();
      record.workers.resize(1);
      record.workers[0].state = CaptureWorkerState::kComplete;
      record.workers[0].worker = TestStream(0).worker;
      if (n != kDeleted) {
        ASSERT_TRUE(store_->captures().Put(record, true).ok());
      }
      exports.OnCaptureEnded(record);
    }
    clock_.AdvanceNs(3'600 * kStandingSecondNs);
    exports.Begin();
    exporter.AwaitLast();
    exports.End();
    listed_ = exports.List();
  }
  double Counter(const std::string& name) const {
    return ValuesOf(registry_, "neurontrace_aggregator_standing_exports_" + name).at("");
  }

  std::vector<std::string> Audited() const {
    std::ifstream file(directory_.path() + "/audit.log");
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  static constexpr uint8_t kDeleted = 9;

  const TemporaryDirectory directory_;
  const std::unique_ptr<Store> store_ = Store::Open("/store", {.in_memory = true}).value();
  const ExportRoots roots_{{{.path = directory_.path()}}};
  prometheus::Registry registry_;
  FakeClock clock_;
  const std::unique_ptr<AuditLog> audit_ =
      AuditLog::Open(directory_.path() + "/audit.log", clock_).value();
  SeededRandom random_{1};
  v1::ListStandingExportsReply listed_;  // after the end
};

TEST_F(StandingExportsTest, RetriesFilesNotFoundByVolume) {
  RunUntil(2, {1, 2});
  EXPECT_EQ(Counter("failed_total"), 0);
  EXPECT_EQ(Counter("retried_total"), 1);
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  EXPECT_THAT(
      Audited(),
      ::testing::IsSupersetOf(
          {AllOf(HasSubstr("\"export.begin\",\"caller\":\"standing export all\""),
                 HasSubstr(TestCaptureId(1).ToString())),
           AllOf(HasSubstr("\"export\",\"caller\":\"standing export all\""),
                 HasSubstr("\"outcome\":\"failed\",\"reason\":\"the bucket is not there\"")),
           AllOf(HasSubstr("\"export\""), HasSubstr("\"outcome\":\"done\""))}));
}

TEST_F(StandingExportsTest, ListsRulesWithTheirResults) {
  RunUntil(2, {1, 2});
  ASSERT_EQ(listed_.exports_size(), 1);
  const v1::StandingExport& rule = listed_.exports(0);
  EXPECT_EQ(rule.name(), "all");
  EXPECT_EQ(rule.to(), directory_.path() + "/out");
  EXPECT_THAT(rule.formats(), ::testing::ElementsAre("perfetto"));
  EXPECT_TRUE(rule.incomplete());
  EXPECT_EQ(rule.pending(), 1u) << "the first one is retried";
  EXPECT_EQ(rule.done(), 1u);
  EXPECT_EQ(rule.running_capture(), "");
  EXPECT_EQ(rule.last_capture(), TestCaptureId(2).ToString());
  EXPECT_EQ(rule.last_problem(), "");
}

TEST_F(StandingExportsTest, DropsExportOfDeletedCapture) {
  RunUntil(2, {kDeleted, 2});
  EXPECT_EQ(Counter("abandoned_total"), 1);
  EXPECT_EQ(Counter("failed_total"), 0);
  EXPECT_EQ(Counter("retried_total"), 0);
}

}  // namespace
}  // namespace neurontrace
