// SPDX-License-Identifier: Apache-2.0
// Goal: the Parquet tables hold what the capture does, in the vendor's columns, and split where
// requested. Method: captures in memory, exported, and read back through Arrow.
#include <arrow/array.h>
#include <arrow/scalar.h>
#include <arrow/table.h>
#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <optional>

#include "aggregator/export/parquet/table_schema.h"
#include "aggregator/export/parquet/table_writer.h"
#include "lib/trace/framework_mapping.h"
#include "tests/export/export_fixture.h"
#include "tests/export/parquet_tables.h"

namespace neurontrace {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

class ParquetTest : public ExportFixture {
 protected:
  std::shared_ptr<arrow::Table> ExportTable(const TableSpec& table, ExportRequest request = {}) {
    ExportAll(std::move(request));
    const auto at = files_.files.find(std::string(table.name) + ".parquet");
    EXPECT_NE(at, files_.files.end()) << table.name;
    return at == files_.files.end() ? nullptr : ReadTable(at->second);
  }
  void ExportAll(ExportRequest request = {}) {
    files_ = {};
    auto summary = ExportCapture(source_, **FindExportFormat("parquet"), request, files_, {});
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_EQ(files_.open_files, 0u);
    EXPECT_EQ(summary->progress.bytes_written, files_.bytes);
    summary_ = *std::move(summary);
  }
  StringFiles files_;
};

TEST_F(ParquetTest, EveryTableHasTheColumnsOfItsSchema) {
  for (const TableSpec* spec : AllTables()) {
    StringFiles files;
    uint64_t bytes = 0;
    TableWriter table(files, *spec, 0, bytes);
    for (const ColumnSpec& column : spec->columns) {
      switch (column.type) {
        case ColumnType::kInt64:
          table.Int(1);
          break;
        case ColumnType::kUint64:
          table.Uint(UINT64_MAX);
          break;
        case ColumnType::kFloat:
        case ColumnType::kDouble:
          table.Real(0.5);
          break;
        case ColumnType::kBool:
          table.Bool(true);
          break;
        case ColumnType::kText:
          table.Text("x");
          break;
        case ColumnType::kTextList:
          table.Texts(std::vector<std::string>{"x", "y"});
          break;
        case ColumnType::kInt64List:
          table.Ints(std::vector<int64_t>{1, 2});
          break;
      }
    }
    ASSERT_TRUE(table.EndRow().ok()) << spec->name;
    ASSERT_TRUE(table.Finish().ok());
    EXPECT_EQ(files.bytes, bytes);
    const auto read = ReadTable(files.files.at(std::string(spec->name) + ".parquet"));
    ASSERT_EQ(read->num_columns(), static_cast<int>(spec->columns.size()));
    for (size_t i = 0; i < spec->columns.size(); ++i) {
      const auto& field = *read->schema()->field(static_cast<int>(i));
      EXPECT_EQ(field.name(), spec->columns[i].name);
      EXPECT_EQ(field.nullable(), !spec->columns[i].is_required) << field.name();
    }
  }
}

TEST_F(ParquetTest, AMistakeInARowIsAnError) {
  StringFiles files;
  uint64_t bytes = 0;
  TableWriter few(files, kWarning, 0, bytes);
  EXPECT_EQ(few.Text("alone").EndRow().code(), absl::StatusCode::kInternal);
  TableWriter other(files, kWarning, 0, bytes);
  EXPECT_EQ(other.Int(1).Text("x").EndRow().code(), absl::StatusCode::kInternal);
  TableWriter many(files, kWarning, 0, bytes);
  EXPECT_EQ(many.Text("x").Text("x").Null().EndRow().code(), absl::StatusCode::kInternal);
  TableWriter null(files, kWarning, 0, bytes);
  EXPECT_EQ(null.Text("x").Null().EndRow().code(), absl::StatusCode::kInternal);
}

TEST_F(ParquetTest, WritesASpanInTheVendorsColumns) {
  const uint32_t stream = AddCore("i-0f20", 1113579, 3, 35);
  script_.Start("nc_exec_running", kBase, 1, 7,
                {{"device_core_idx", uint64_t{4}},
                 {"exec_id", uint64_t{9}},
                 {"nc_timestamp_ns", uint64_t{1000}},
                 {"model_name", std::string("llama")}},
                3377699720529031);
  script_.Stop("nc_exec_running", kBase + 80, 1, 7, {{"nc_timestamp_ns", uint64_t{1080}}});
  Close(stream);
  const auto events = ExportTable(kSystemProfileEvents);
  ASSERT_EQ(events->num_rows(), 1);
  EXPECT_EQ(Cell(*events, "id"), "0");
  EXPECT_EQ(Cell(*events, "name"), "nc_exec_running");
  EXPECT_EQ(Cell(*events, "start_ts"), fmt::format("{}", kBase));
  EXPECT_EQ(Cell(*events, "end_ts"), fmt::format("{}", kBase + 80));
  EXPECT_EQ(Cell(*events, "duration_ns"), "80");
  EXPECT_EQ(Cell(*events, "trace_event_source"), "neuron_hw");
  EXPECT_EQ(Cell(*events, "instance_id"), "i-0f20");
  EXPECT_EQ(Cell(*events, "process_id"), "1113579");
  EXPECT_EQ(Cell(*events, "thread_id"), "7");
  EXPECT_EQ(Cell(*events, "nc_idx"), "3");
  EXPECT_EQ(Cell(*events, "pcore_idx"), "4");
  EXPECT_EQ(Cell(*events, "worker_gid"), "35");
  EXPECT_EQ(Cell(*events, "nt_event_id"), "3377699720529031");
  EXPECT_EQ(Cell(*events, "nt_exec_id"), "9");
  EXPECT_EQ(Cell(*events, "nt_clock_bound_ns"), "null");
  EXPECT_EQ(Cell(*events, "extra_attributes_json"),
            R"({"device_core_idx":4,"exec_id":9,"nc_start_timestamp_ns":1000,)"
            R"("model_name":"llama","nc_stop_timestamp_ns":1080})");
}

TEST_F(ParquetTest, AnnotationsAreEventsOfTheirThread) {
  AddAnnotations("i-a", 4711);
  const auto events = ExportTable(kSystemProfileEvents);
  ASSERT_EQ(events->num_rows(), 3);
  EXPECT_EQ(Cell(*events, "name", 0), "step 3");
  EXPECT_EQ(Cell(*events, "name", 1), "forward");
  EXPECT_EQ(Cell(*events, "duration_ns", 1), "50");
  EXPECT_EQ(Cell(*events, "trace_event_source", 1), "annotation");
  EXPECT_EQ(Cell(*events, "nt_category", 1), "phase");
  EXPECT_EQ(Cell(*events, "process_id", 1), "4711");
  EXPECT_EQ(Cell(*events, "thread_id", 1), "7");
  EXPECT_EQ(Cell(*events, "nc_idx", 1), "null");
  EXPECT_EQ(Cell(*events, "name", 2), "loss");
  EXPECT_EQ(Cell(*events, "thread_id", 2), "8");
}

TEST_F(ParquetTest, TablesWithoutRowsAreNotThere) {
  Close(AddCore("i-a", 1, 0, 0), "nrt_execute");
  ExportAll();
  EXPECT_THAT(files_.files, Contains(Key("SystemProfileEvents.parquet")));
  EXPECT_THAT(files_.files, Contains(Key("SchemaFields.parquet")));
  EXPECT_THAT(files_.files, Contains(Key("SystemProfileMetadata.parquet")));
  EXPECT_THAT(files_.files, Not(Contains(Key("CpuUsage.parquet"))));
  EXPECT_THAT(files_.files, Not(Contains(Key("DeviceProfileList.parquet"))));
  EXPECT_THAT(files_.files, Not(Contains(Key("Flow.parquet"))));
}

TEST_F(ParquetTest, SurvivesAnyTextAndNumber) {
  const uint32_t stream = AddCore("i-\"a\\\xff", 1, 0, 0);
  script_.Span("quote\" \xff\xc3\xa9 \n", kBase, kBase, UINT64_MAX, UINT64_MAX,
               {{"exec_id", uint64_t{UINT64_MAX}},
                {"device_core_idx", uint64_t{UINT64_MAX}},
                {"low", int64_t{INT64_MIN}},
                {"text", std::string("\x01\xff")},
                {"nc_idx", std::string("x"), KeyScope::kTop}});
  Close(stream);
  const auto events = ExportTable(kSystemProfileEvents);
  EXPECT_EQ(Cell(*events, "name"), "quote\" \xef\xbf\xbd\xc3\xa9 \n");
  EXPECT_EQ(Cell(*events, "instance_id"), "i-\"a\\\xef\xbf\xbd");
  EXPECT_EQ(Cell(*events, "thread_id"), "null");
  EXPECT_EQ(Cell(*events, "pcore_idx"), "null");
  EXPECT_EQ(Cell(*events, "nt_exec_id"), "18446744073709551615");
  EXPECT_THAT(Cell(*events, "extra_attributes_json"), HasSubstr("\"low\":-9223372036854775808"));
}

TEST_F(ParquetTest, OpenSpansAndLostStartsAreMarked) {
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  script_.Stop("nrt_execute", kBase, 5);
  script_.Start("nrt_load", kBase + 10, 6);
  script_.Instant("mark", kBase + 20);
  Close(stream);
  const auto events = ExportTable(kSystemProfileEvents);
  ASSERT_EQ(events->num_rows(), 3);
  EXPECT_EQ(Cell(*events, "nt_is_start_lost", 0), "true");
  EXPECT_EQ(Cell(*events, "nt_is_open", 1), "true");
  EXPECT_EQ(Cell(*events, "nt_is_instant", 2), "true");
  EXPECT_EQ(Cell(*events, "duration_ns", 2), "0");
}

TEST_F(ParquetTest, AStopInALaterChunkBringsItsAttributes) {
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  script_.Start("nrt_execute", kBase, 5, 7, {{"rc", uint64_t{1}}});
  Close(stream);
  script_.Stop("nrt_execute", kBase + 90, 5, 7, {{"rc", uint64_t{2}}});
  Close(stream);
  const auto events = ExportTable(kSystemProfileEvents);
  ASSERT_EQ(events->num_rows(), 1);
  EXPECT_EQ(Cell(*events, "end_ts"), fmt::format("{}", kBase + 90));
  EXPECT_EQ(Cell(*events, "extra_attributes_json"), R"({"rc":1,"stop_rc":2})");
}

TEST_F(ParquetTest, SpansOfBareStopsStandWhereTheyStop) {
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  script_.Start("crossing", kBase, 5, 7);
  Close(stream);
  script_.Stop("crossing", kBase + 90, 5, 7);
  Close(stream);
  script_.Span("after", kBase + 100, kBase + 110, 6);
  Close(stream);
  const auto events = ExportTable(kSystemProfileEvents);
  ASSERT_EQ(events->num_rows(), 2);
  EXPECT_EQ(Cell(*events, "name"), "crossing");
  EXPECT_EQ(Cell(*events, "id"), "0");
  EXPECT_THAT(summary_.warnings, ::testing::IsEmpty());
}

TEST_F(ParquetTest, FlowsGoFromThePreparationToTheDevice) {
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  script_.Span("kbl_exec_pre", kBase, kBase + 10, 1, 7, {{"exec_id", uint64_t{4}}});
  script_.Span("nc_exec_running", kBase + 25, kBase + 90, 2, 7, {{"exec_id", uint64_t{4}}});
  script_.Span("nc_exec_running", kBase + 26, kBase + 90, 3, 7, {{"exec_id", uint64_t{5}}});
  Close(stream);
  const auto flows = ExportTable(kFlow);
  ASSERT_EQ(flows->num_rows(), 1);
  EXPECT_EQ(Cell(*flows, "in_id"), "0");
  EXPECT_EQ(Cell(*flows, "out_id"), "1");
  EXPECT_EQ(Cell(*flows, "in_table"), "SystemProfileEvents");
  EXPECT_EQ(Cell(*flows, "dependency_type"), "exec_id");
  EXPECT_EQ(Cell(*flows, "gap_time"), "15");
  ExportAll({.no_flows = true});
  EXPECT_THAT(files_.files, Not(Contains(Key("Flow.parquet"))));
}

TEST_F(ParquetTest, FlowsAreTheChainsThatAllFormatsHave) {
  const uint32_t file = AddFile("i-a", "rank0.json");
  const auto operation = [&](const char* name, uint64_t number, uint64_t at, uint64_t length) {
    script_.Complete("cpu_op", kBase + at, 0, 7,
                     {{"name", std::string(name), KeyScope::kTop},
                      {"dur_ns", length, KeyScope::kTop},
                      {"pid", uint64_t{1}, KeyScope::kTop},
                      {"Sequence number", number}});
  };
  operation("submits", 5, 0, 10);
  operation("holds", 6, 20, 200);
  Close(file);
  script_.Add(std::string(kFrameworkMappingEventType), Phase::kMetadata, kBase - 1'000'000, 0, 0,
              {{std::string(kMappingSequenceKey), std::string("[5]")}}, 0, 70);
  Close(AddFile("i-a", "framework_mapping_20251121_101530_042.json"));
  const uint32_t core = AddCore("i-a", 1, 0, 0);
  const auto call = [&](const char* name, uint64_t at, uint64_t end, uint64_t thread,
                        std::optional<uint64_t> sequence) {
    script_.Start(name, kBase + at, at, thread, {}, 0, sequence);
    script_.Stop(name, kBase + end, at, thread, {}, 0, {});
  };
  call("nrta_execute_schedule", 30, 40, 9, 70);
  script_.Start("nrt_execute", kBase + 50, 1, 7, {}, 0, 71);
  script_.Span("kbl_exec_pre", kBase + 55, kBase + 60, 2, 7, {{"exec_id", uint64_t{4}}});
  script_.Span("nc_exec_running", kBase + 65, kBase + 80, 3, 7, {{"exec_id", uint64_t{4}}});
  script_.Span("nc_exec_running", kBase + 66, kBase + 81, 4, 7, {{"exec_id", uint64_t{4}}});
  script_.Stop("nrt_execute", kBase + 100, 1, 7);
  call("nrt_tensor_read", 110, 120, 7, 71);
  Close(core);

  const auto events = ExportTable(kSystemProfileEvents);
  const auto flows = ExportTable(kFlow);
  const auto name = [&](const char* column, int64_t row) {
    return Cell(*events, "name", std::stoll(Cell(*flows, column, row)));
  };
  std::vector<std::string> found;
  for (int64_t row = 0; row < flows->num_rows(); ++row) {
    found.push_back(fmt::format("{}: {} -> {} {}", Cell(*flows, "dependency_type", row),
                                name("in_id", row), name("out_id", row),
                                Cell(*flows, "gap_time", row)));
  }
  EXPECT_THAT(found, UnorderedElementsAre("framework_call: submits -> nrta_execute_schedule 20",
                                          "framework_call: holds -> nrt_execute -170",
                                          "framework_call: holds -> nrt_tensor_read -110",
                                          "nrta_seq_id: nrt_execute -> nrt_tensor_read 10",
                                          "exec_id: nrt_execute -> kbl_exec_pre -45",
                                          "exec_id: kbl_exec_pre -> nc_exec_running 5",
                                          "exec_id: kbl_exec_pre -> nc_exec_running 6"));
  ASSERT_EQ(events->num_rows(), 8) << "a mapping is no event";
  EXPECT_EQ(Cell(*events, "start_ts", 0), fmt::format("{}", kBase));
  EXPECT_THAT(Cell(*events, "flow_id", 3), HasSubstr("nrta:71"));
  EXPECT_THAT(Cell(*events, "flow_id", 3), HasSubstr("call:2"));
}

TEST_F(ParquetTest, ArrowsOfFrameworksGoBetweenTheSpansThatTheyLieIn) {
  const uint32_t stream = AddFile("i-a", "rank0.json");
  const auto span = [&](const char* name, uint64_t at, uint64_t length, uint64_t tid) {
    script_.Complete("cpu_op", kBase + at, 0, tid,
                     {{"name", std::string(name), KeyScope::kTop},
                      {"dur_ns", length, KeyScope::kTop},
                      {"pid", uint64_t{12}, KeyScope::kTop}});
  };
  const auto point = [&](Phase phase, uint64_t at, uint64_t tid) {
    script_.Add("ac2g", phase, kBase + at, 0, tid,
                {{"flow_id", uint64_t{3}, KeyScope::kTop}, {"pid", uint64_t{12}, KeyScope::kTop}});
  };
  span("step", 0, 100, 1);
  span("launch", 10, 5, 1);
  point(Phase::kFlowStart, 10, 1);
  span("kernel", 40, 20, 2);
  point(Phase::kFlowEnd, 40, 2);
  Close(stream);
  const auto flows = ExportTable(kFlow);
  ASSERT_EQ(flows->num_rows(), 1);
  EXPECT_EQ(Cell(*flows, "in_id"), "1");
  EXPECT_EQ(Cell(*flows, "out_id"), "2");
  EXPECT_EQ(Cell(*flows, "gap_time"), "25");
  const auto events = ReadTable(files_.files.at("SystemProfileEvents.parquet"));
  EXPECT_EQ(Cell(*events, "name", 1), "launch");
  EXPECT_EQ(Cell(*events, "process_id", 1), "12");
  EXPECT_EQ(Cell(*events, "nt_category", 1), "cpu_op");
  EXPECT_EQ(Cell(*events, "trace_event_source", 1), "framework");
}

TEST_F(ParquetTest, HasHostSamplesAndLosses) {
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  source_.stream(stream).losses.push_back({.place = LossPlace::kRuntimeRing,
                                           .reason = LossReason::kOverwritten,
                                           .events = 17,
                                           .detail = "the ring was full"});
  Close(stream, "nrt_execute");
  AddHost("i-a");
  const auto cpu = ExportTable(kCpuUsage);
  ASSERT_EQ(cpu->num_rows(), 2);
  EXPECT_EQ(Cell(*cpu, "timestamp"), fmt::format("{}", kBase));
  EXPECT_EQ(Cell(*cpu, "util_percent", 1), "12.5");
  EXPECT_EQ(Cell(*cpu, "cpu_id", 1), "average");
  EXPECT_EQ(Cell(*cpu, "ultraserver_id", 1), "null");
  const auto memory = ReadTable(files_.files.at("HostMemUsage.parquet"));
  EXPECT_EQ(Cell(*memory, "used_bytes"), "1024");
  EXPECT_EQ(Cell(*memory, "used_percent"), "50");
  const auto warnings = ReadTable(files_.files.at("Warning.parquet"));
  EXPECT_THAT(Cell(*warnings, "message"), HasSubstr("17 trace events"));
  EXPECT_EQ(Cell(*warnings, "category"), "Missing Data");
  const auto losses = ReadTable(files_.files.at("NtLosses.parquet"));
  EXPECT_EQ(Cell(*losses, "events"), "17");
  EXPECT_EQ(Cell(*losses, "place"), "runtime ring");
  const auto clocks = ReadTable(files_.files.at("NtClocks.parquet"));
  EXPECT_EQ(Cell(*clocks, "is_known"), "false");
}

TEST_F(ParquetTest, ListsDeviceProfiles) {
  Close(AddCore("i-a", 1, 0, 0), "nrt_execute");
  ExportRequest request;
  request.device_profiles = {{.name = "i-a_pid_1_nc_3_session_2",
                              .instance_id = "i-a",
                              .process_id = 1,
                              .nc_id = 3,
                              .session_id = 2,
                              .path = "i-a_pid_1/profile_nc_3_session_2.ntff"},
                             {.name = "i-b_pid_4_abc_instid_0_vnc_1", .process_id = 4}};
  const auto profiles = ExportTable(kDeviceProfileList, request);
  ASSERT_EQ(profiles->num_rows(), 2);
  EXPECT_EQ(Cell(*profiles, "device_profile_name"), "i-a_pid_1_nc_3_session_2");
  EXPECT_EQ(Cell(*profiles, "instance_id"), "i-a");
  EXPECT_EQ(Cell(*profiles, "process_id"), "1");
  EXPECT_EQ(Cell(*profiles, "nc_id"), "3");
  EXPECT_EQ(Cell(*profiles, "session_id"), "2");
  EXPECT_EQ(Cell(*profiles, "session_id", 1), "null");
  EXPECT_EQ(Cell(*profiles, "model_id"), "null");
  EXPECT_EQ(Cell(*profiles, "nt_path"), "i-a_pid_1/profile_nc_3_session_2.ntff");
}

TEST_F(ParquetTest, SamplesOfHostsThatCannotBeReadAreCountedOnce) {
  Close(AddCore("i-a", 1, 0, 0), "nrt_execute");
  source_.Lose(AddHost("i-b"), 0);
  const auto warnings = ExportTable(kWarning);
  EXPECT_EQ(summary_.counts.unreadable_chunks, 1u);
  ASSERT_EQ(warnings->num_rows(), 1);
  EXPECT_THAT(Cell(*warnings, "message"), HasSubstr("i-b host cannot be read"));
}

TEST_F(ParquetTest, DescribesItself) {
  Close(AddCore("i-a", 1, 0, 0), "nrt_execute");
  const auto schema = ExportTable(kSchemaFields);
  size_t columns = 0;
  for (const TableSpec* table : AllTables()) columns += table->columns.size();
  EXPECT_EQ(schema->num_rows(), static_cast<int64_t>(columns));
  EXPECT_EQ(Cell(*schema, "table_name"), "SystemProfileEvents");
  EXPECT_EQ(Cell(*schema, "field_name"), "id");
  EXPECT_EQ(Cell(*schema, "field_format"), "int64");
  const auto& metadata = *schema->schema()->metadata();
  EXPECT_EQ(*metadata.Get("profile_schema_version"), "7.4.0");
}

TEST_F(ParquetTest, ThePageHasEveryColumn) {
  std::ifstream file(NT_DOCS_DIR "/formats/parquet.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  for (const TableSpec* table : AllTables()) {
    size_t at = page.find(fmt::format("\n## {}\n", table->name));
    ASSERT_NE(at, std::string::npos) << table->name;
    for (const ColumnSpec& column : table->columns) {
      at = page.find(fmt::format("\n| `{}` |", column.name), at);
      ASSERT_NE(at, std::string::npos) << table->name << "." << column.name;
    }
  }
}

TEST_F(ParquetTest, ARowHasItsClockAndBound) {
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  AddCore("i-b", 1, 0, 1);
  Close(stream, "nrt_execute");
  Close(1, "nrt_execute");
  CaptureClocks clocks;
  const ClockMap map = *ClockMap::FromPieces(
      {{.raw_begin_ns = kBase, .reference_begin_ns = kBase + 500, .error_bound_ns = 70}});
  clocks.instances.push_back(
      {.instance_id = "i-a", .boot_id = "boot", .realtime = map, .offset_ns = 500, .bound_ns = 70});
  clocks.maps.Set(Core("i-a", 1, 0).worker, ClockDomain::kHostRealtime, map);
  const auto events = ExportTable(kSystemProfileEvents, {.clocks = &clocks});
  ASSERT_EQ(events->num_rows(), 2);
  EXPECT_EQ(Cell(*events, "instance_id", 1), "i-a");
  EXPECT_EQ(Cell(*events, "start_ts", 1), fmt::format("{}", kBase + 500));
  EXPECT_EQ(Cell(*events, "nt_raw_start_ts", 1), fmt::format("{}", kBase));
  EXPECT_EQ(Cell(*events, "nt_clock", 1), "host");
  EXPECT_EQ(Cell(*events, "nt_clock_bound_ns", 1), "70");
  EXPECT_EQ(Cell(*events, "nt_clock", 0), "null");
  EXPECT_EQ(Cell(*events, "nt_clock_bound_ns", 0), "null");
  const auto known = ReadTable(files_.files.at("NtClocks.parquet"));
  EXPECT_EQ(Cell(*known, "bound_ns"), "70");
  EXPECT_EQ(Cell(*known, "is_known", 1), "false");
}

TEST_F(ParquetTest, SplitsATableAtItsSizeAndLosesNothing) {
  constexpr uint64_t kSpans = 40'000;
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  for (uint64_t i = 0; i < kSpans; ++i) {
    script_.Span("nrt_execute", kBase + i * 100, kBase + i * 100 + 50, i + 1, 7,
                 {{"handle", i * 0x9e3779b97f4a7c15u}});
    if (i % 2'000 == 1'999) Close(stream);
  }
  constexpr uint64_t kFileBytes = 300'000;
  ExportAll({.max_file_bytes = kFileBytes});
  EXPECT_THAT(files_.files, Not(Contains(Key("SystemProfileEvents.parquet"))));
  uint64_t next_id = 0;
  for (size_t part = 0; next_id < kSpans; ++part) {
    const auto at = files_.files.find(fmt::format("SystemProfileEvents_{}.parquet", part));
    ASSERT_NE(at, files_.files.end()) << part;
    EXPECT_LT(at->second.size(), kFileBytes * 3 / 2);
    const auto events = ReadTable(at->second);
    for (int64_t row = 0; row < events->num_rows(); row += 997) {
      const uint64_t id = next_id + static_cast<uint64_t>(row);
      EXPECT_EQ(Cell(*events, "id", row), fmt::format("{}", id));
      EXPECT_EQ(Cell(*events, "start_ts", row), fmt::format("{}", kBase + id * 100));
    }
    next_id += static_cast<uint64_t>(events->num_rows());
    EXPECT_TRUE(part > 0 || next_id < kSpans);
  }
  EXPECT_EQ(next_id, kSpans);
}

TEST_F(ParquetTest, RejectsUnsupportedOptions) {
  EXPECT_THAT(ExportError("parquet", {.compression = ExportCompression::kGzip}),
              HasSubstr("already compressed"));
  EXPECT_THAT(ExportError("parquet", {.primary_group = {"instance_id"}}), HasSubstr("SQL"));
}

}  // namespace
}  // namespace neurontrace
