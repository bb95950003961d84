// SPDX-License-Identifier: Apache-2.0
// Goal: NtVerdicts has one row for each verdict and refusal, in its columns' types. Method: a job
// in memory with and without a slow rank, exported, and read back through Arrow.
#include <arrow/array.h>
#include <arrow/table.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/export/parquet_tables.h"
#include "tests/export/straggler_fixture.h"

namespace neurontrace {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;

class ParquetVerdictsTest : public StragglerFixture {
 protected:
  void ExportAll(const ExportRequest& request = {}) {
    files_ = {};
    const auto summary = ExportCapture(source_, **FindExportFormat("parquet"), request, files_, {});
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_EQ(summary->progress.bytes_written, files_.bytes);
  }
  std::shared_ptr<arrow::Table> Table(const std::string& name) {
    return ReadTable(files_.files.at(name + ".parquet"));
  }
  static std::vector<int64_t> Ranks(const arrow::Table& table, int64_t row) {
    const auto column = table.GetColumnByName("worker_gids");
    const auto& lists = static_cast<const arrow::ListArray&>(*column->chunk(0));
    const auto& values = static_cast<const arrow::Int64Array&>(*lists.values());
    std::vector<int64_t> ranks;
    for (int64_t i = lists.value_offset(row); i < lists.value_offset(row + 1); ++i) {
      ranks.push_back(values.Value(i));
    }
    return ranks;
  }
  StringFiles files_;
};

TEST_F(ParquetVerdictsTest, TheSlowRankIsARow) {
  AddJob(kSlow);
  ExportAll();
  const auto verdicts = Table("NtVerdicts");
  ASSERT_EQ(verdicts->num_rows(), 1);
  EXPECT_EQ(Cell(*verdicts, "is_refusal"), "false");
  EXPECT_EQ(Cell(*verdicts, "kind"), "slow-core");
  EXPECT_EQ(Cell(*verdicts, "reason"), "null");
  EXPECT_THAT(Ranks(*verdicts, 0), ElementsAre(kSlow));
  EXPECT_EQ(Cell(*verdicts, "cores"), "1");
  EXPECT_EQ(Cell(*verdicts, "instance_id"), InstanceOf(kSlow));
  EXPECT_EQ(Cell(*verdicts, "phase"), "device");
  EXPECT_EQ(Cell(*verdicts, "peers"), "7");
  EXPECT_EQ(Cell(*verdicts, "step_ns"), fmt::format("{}", kStepNs));
  EXPECT_THAT(Cell(*verdicts, "suspects"), HasSubstr(fmt::format("pid {} nc 0", 100 + kSlow)));
  for (const char* column : {"ratio", "z", "since_ts", "until_ts", "text", "ruled_out"}) {
    EXPECT_NE(Cell(*verdicts, column), "null") << column;
  }
  EXPECT_EQ(Cell(*verdicts, "missing"), "null");
}

TEST_F(ParquetVerdictsTest, WithoutASlowRankOnlyTheMetadataHasTheAnswer) {
  AddJob(std::nullopt);
  ExportAll();
  EXPECT_THAT(files_.files, Not(Contains(Key("NtVerdicts.parquet"))));
  EXPECT_THAT(Cell(*Table("SystemProfileMetadata"), "nt_judged"), HasSubstr("Nobody to name"));
}

TEST_F(ParquetVerdictsTest, ARankThatLostEventsIsRefused) {
  AddJob(kSlow);
  source_.stream(kSlow).losses = {{LossPlace::kRuntimeRing, LossReason::kOverwritten, 12, false,
                                   kBase + kStepNs, kBase + kExecutions * kStepNs, "test"}};
  ExportAll();
  const auto refusals = Table("NtVerdicts");
  ASSERT_GE(refusals->num_rows(), 1);
  EXPECT_THAT(Ranks(*refusals, 0), ElementsAre(kSlow));
  EXPECT_EQ(Cell(*refusals, "reason"), "losses");
  for (int64_t row = 0; row < refusals->num_rows(); ++row) {
    EXPECT_EQ(Cell(*refusals, "is_refusal", row), "true");
    EXPECT_EQ(Cell(*refusals, "kind", row), "null");
    EXPECT_NE(Cell(*refusals, "reason", row), "null");
    EXPECT_NE(Cell(*refusals, "missing", row), "null");
    EXPECT_EQ(Cell(*refusals, "phase", row), "null");
  }
}

TEST_F(ParquetVerdictsTest, AnExportThatLeavesOutEventsJudgesNothing) {
  AddJob(kSlow);
  ExportRequest request;
  request.filter.event_types = *EventFilter::Parse({"nrt_execute"});
  ExportAll(request);
  EXPECT_THAT(files_.files, Not(Contains(Key("NtVerdicts.parquet"))));
  EXPECT_THAT(Cell(*Table("SystemProfileMetadata"), "nt_judged"), HasSubstr("--event-type"));
}

}  // namespace
}  // namespace neurontrace
