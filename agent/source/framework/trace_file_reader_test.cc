// SPDX-License-Identifier: Apache-2.0
// Whole files: both time forms give the same events, plain or compressed, whole or cut; and the
// real traces of eight ranks where they are at hand.
#include "agent/source/framework/trace_file_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "agent/source/framework/framework_capture.h"
#include "agent/source/framework/trace_file_scan.h"
#include "lib/trace/framework_limits.h"
#include "lib/trace/framework_mapping.h"
#include "lib/trace/limits.h"
#include "lib/trace/remark.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kBaseNs = 1'711'964'646'000'000'000;

struct Row {
  std::string type;
  std::string name;
  Phase phase;
  uint64_t timestamp_ns;
  uint64_t dur_ns;
  uint64_t span = 0;  // tracking_id
  friend bool operator==(const Row&, const Row&) = default;
};

struct FileContent {
  std::vector<Row> rows;
  std::vector<Loss> losses;
  std::vector<std::string> anomalies;
  std::vector<std::string> damage;
  TraceFileFacts facts;
  uint64_t position = 0;
};

absl::StatusOr<TraceFile> Open(const std::string& path, const std::string& root = "") {
  return TraceFile::Open(path, root);
}

FileContent ReadAll(const std::string& path, uint64_t first_element = 0) {
  FileContent content;
  const auto file = Open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  const auto kind =
      IsFrameworkMappingName(path) ? ContentKind::kMapping : ContentKind::kTraceEventJson;
  TraceFileScan scan(*file->Reread(), kind);
  for (;;) {
    const auto done = scan.Step(1000);
    EXPECT_TRUE(done.ok()) << done.status();
    if (*done) break;
  }
  content.facts = scan.facts();
  const auto reader =
      std::make_unique<TraceFileReader>(*file->Reread(), content.facts, first_element);
  for (;;) {
    const EventReader::Kind kind = reader->Next();
    for (const auto& anomaly : reader->anomalies()) {
      content.anomalies.push_back(
          fmt::format("{} {}", FindRemarkKind(anomaly.kind)->name, anomaly.detail));
    }
    if (kind == EventReader::Kind::kEnd) break;
    if (kind == EventReader::Kind::kLoss) {
      content.losses.push_back(reader->loss());
      continue;
    }
    if (kind == EventReader::Kind::kDamage) content.damage.push_back(reader->damage());
    if (kind != EventReader::Kind::kEvent) continue;
    const FrameworkEvent& event = reader->event();
    Row row{std::string(event.shape.event_type), "", event.shape.phase,
            event.fields.timestamp_ns,           0,  event.fields.tracking_id};
    for (size_t i = 0; i < event.values.size(); ++i) {
      if (event.shape.keys[i].name == "name" && event.shape.keys[i].scope == KeyScope::kTop) {
        row.name = event.values[i].text;
      }
      if (event.shape.keys[i].name == "dur_ns") row.dur_ns = event.values[i].bits;
    }
    content.rows.push_back(std::move(row));
  }
  content.position = reader->position();
  EXPECT_EQ(reader->Next(), EventReader::Kind::kEnd);
  for (;;) {
    const auto done = reader->Drain();
    if (!done.ok() || *done) break;
  }
  if (!content.facts.is_refused) {
    EXPECT_EQ(reader->content_mark(), content.facts.content_mark);
  }
  return content;
}

class TraceFileReaderTest : public ::testing::Test {
 protected:
  TraceFileReaderTest() {
    std::string pattern = ::testing::TempDir() + "trace_file_reader_XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~TraceFileReaderTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, std::string_view text) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::string WriteGzip(const std::string& name, std::string_view text, const char* mode = "wb") {
    const std::string path = folder_ + "/" + name;
    gzFile file = gzopen(path.c_str(), mode);
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
    return path;
  }

  std::string folder_;
};

// The same 300 events in the older form (epoch microseconds) and in the newer one (a base that
// comes after the events, fractional microseconds).
std::string Kineto(bool with_base, std::string_view tail = "}") {
  std::string text = R"({"schemaVersion":1,"distributedInfo":{"backend":"nccl","rank":5,)"
                     R"("world_size":8},"traceEvents":[)";
  for (uint64_t i = 0; i < 300; ++i) {
    const uint64_t ns = 4'462'233'412'125 + i * 1'001;
    const uint64_t shown = with_base ? ns : kBaseNs + ns;
    text += fmt::format(
        R"({}{{"ph":"X","cat":"cpu_op","name":"op{}","pid":7,"tid":9,"ts":{}.{:03},"dur":{}.5}})",
        i == 0 ? "" : ",", i, shown / 1000, shown % 1000, i);
  }
  text += "]";
  if (with_base) text += fmt::format(R"(,"baseTimeNanoseconds": {})", kBaseNs);
  return text.append(tail);
}

std::string Document(std::string_view head, const std::vector<std::string>& elements) {
  return fmt::format(R"({{{}"traceEvents":[{}]}})", head, fmt::join(elements, ",\n"));
}

TEST_F(TraceFileReaderTest, EventsWithoutATimeAreLossesOfTheirOwnReason) {
  const FileContent content = ReadAll(
      Write("a.json",
            Document(R"("distributedInfo":{"rank":"3","world_size":"8"},)",
                     {R"({"ph":"M","name":"process_name","pid":1,"args":{"name":"python"}})",
                      R"({"ph":"X","name":"first","pid":1,"ts":1790000000000000,"dur":10})",
                      R"({"ph":"X","name":"no_ts","pid":1,"dur":10})",
                      R"({"ph":"X","name":"kernel_2","pid":0,"ts":0.0,"dur":0.0})",
                      R"({"ph":"f","id":2,"name":"ac2g","pid":0,"ts":0.0})",
                      R"({"ph":"X","name":"huge","ts":18446744073709551,"dur":10})",
                      R"({"ph":"M","name":"thread_name","pid":1,"args":{"name":"main"}})",
                      R"({"ph":"X","name":"minus_one","pid":1,"ts":1790000000000020,"dur":-1})"})));
  EXPECT_EQ(content.facts.rank, 3);
  EXPECT_EQ(content.facts.world_size, 8);
  ASSERT_EQ(content.rows.size(), 4u);
  for (const Row& row : content.rows) EXPECT_GE(row.timestamp_ns, 1'790'000'000'000'000'000u);
  ASSERT_EQ(content.losses.size(), 4u);
  for (const Loss& loss : content.losses) {
    EXPECT_EQ(loss.place, LossPlace::kDecode);
    EXPECT_EQ(loss.reason, LossReason::kNoTime);
    EXPECT_EQ(loss.events, 1u);
    EXPECT_EQ(loss.first_timestamp_ns, 0u);
  }
  EXPECT_THAT(content.losses[1].detail, HasSubstr("element 3 (kernel_2), to byte"));
  EXPECT_THAT(
      content.anomalies,
      ElementsAre(HasSubstr("no_time element 2 (no_ts): it has no \"ts\""),
                  HasSubstr("no_time element 3 (kernel_2): \"ts\" is 0.0, which is too far"),
                  HasSubstr("no_time element 4 (ac2g)"), HasSubstr("no_time element 5 (huge)"),
                  HasSubstr("odd_duration element 7 (minus_one)")));
}

TEST_F(TraceFileReaderTest, PairsSpanEndsEquallyAfterAnyRestart) {
  const std::string path =
      Write("a.json",
            "[\n,"
            R"({"ph":"B","name":"outer","cat":"step","pid":5,"tid":11,"ts":1790000000000000},)"
            R"({"ph":"B","name":"inner","cat":"step","pid":5,"tid":11,"ts":1790000000000010},)"
            R"({"ph":"b","name":"request","cat":"req","id":1,"ts":1790000000000010},)"
            R"({"ph":"E","pid":5,"tid":11,"ts":1790000000000040},)"
            R"({"ph":"B","name":"never_ends","pid":5,"tid":12,"ts":1790000000000030},)"
            R"({"ph":"e","name":"request","cat":"req","id":1,"ts":1790000000000050},)"
            R"({"ph":"E","name":"never_began","pid":5,"tid":13,"ts":1790000000000035},)"
            R"({"ph":"E","name":"outer","cat":"step","pid":5,"tid":11,"ts":1790000000000100}])");
  const FileContent whole = ReadAll(path);
  ASSERT_EQ(whole.rows.size(), 8u);
  std::vector<uint64_t> spans;
  for (const Row& row : whole.rows) spans.push_back(row.span);
  EXPECT_THAT(spans, ElementsAre(1, 2, 3, 2, 5, 3, 7, 1));
  EXPECT_EQ(whole.rows[3].type, "step");
  EXPECT_THAT(whole.anomalies, ElementsAre("end_without_begin element 6 (never_began)"));
  for (uint64_t first = 0; first <= 8; ++first) {
    const FileContent rest = ReadAll(path, first);
    EXPECT_EQ(rest.rows,
              std::vector(whole.rows.begin() + static_cast<ptrdiff_t>(first), whole.rows.end()));
    EXPECT_EQ(rest.anomalies, whole.anomalies) << "of the whole file";
  }
}

TEST_F(TraceFileReaderTest, TheBaseIsReadOrTheFileRefused) {
  const std::vector<std::string> event = {R"({"ph":"i","name":"op","ts":1.5})"};
  for (const char* base : {"1790000000000000000", "1.79e18", "1.79e+18", "1790000000000000000.0",
                           "\"1790000000000000000\"", "\"1.79e18\""}) {
    const FileContent content = ReadAll(
        Write("a.json", Document(fmt::format(R"("baseTimeNanoseconds":{},)", base), event)));
    ASSERT_EQ(content.rows.size(), 1u) << base;
    EXPECT_EQ(content.rows[0].timestamp_ns, 1'790'000'000'000'001'500u) << base;
  }
  for (const char* base :
       {"\"\"", "\"today\"", "true", "{}", "[1]", "-5", "1.79e19", "99999999999999999999"}) {
    const FileContent content = ReadAll(
        Write("a.json", Document(fmt::format(R"("baseTimeNanoseconds":{},)", base), event)));
    EXPECT_TRUE(content.facts.is_refused) << base;
    EXPECT_THAT(content.rows, IsEmpty()) << base;
    ASSERT_EQ(content.losses.size(), 1u) << base;
    EXPECT_THAT(content.losses[0].detail, HasSubstr("\"baseTimeNanoseconds\" is ")) << base;
  }
  EXPECT_FALSE(
      ReadAll(Write("a.json", Document(R"("baseTimeNanoseconds":null,)", event))).facts.is_refused);
}

TEST_F(TraceFileReaderTest, ARankIsANumberOrItsText) {
  struct Case {
    const char* info;
    std::optional<int64_t> rank;
    std::optional<int64_t> world_size;
    const char* problem;
  };
  const Case cases[] = {
      {R"({})", {}, {}, ""},
      {R"({"backend":"nccl"})", {}, {}, ""},
      {R"({"rank":3,"world_size":8})", 3, 8, ""},
      {R"({"rank":"3","world_size":"8"})", 3, 8, ""},
      {R"({"rank":3.0,"world_size":8})", 3, 8, ""},
      {R"({"rank":0})", 0, {}, ""},
      {R"({"rank":null,"world_size":8})", {}, 8, ""},
      {R"({"rank":-1,"world_size":-1})", {}, {}, ""},
      {R"({"rank":"-1"})", {}, {}, ""},
      {R"({"rank":-2,"world_size":8})", {}, 8, "rank is -2"},
      {R"({"rank":"three","world_size":8})", {}, 8, "rank is \"three\""},
      {R"({"rank":3.5,"world_size":[8]})", {}, {}, "rank is 3.5, world_size is ["},
      {R"({"rank":8,"world_size":8})", {}, {}, "rank is 8, but world_size is 8"},
      {R"({"rank":99999999999999999999})", {}, {}, "rank is 99999999999999999999"},
  };
  for (const Case& one : cases) {
    const FileContent content =
        ReadAll(Write("a.json", Document(fmt::format(R"("distributedInfo":{},)", one.info), {})));
    EXPECT_EQ(content.facts.rank, one.rank) << one.info;
    EXPECT_EQ(content.facts.world_size, one.world_size) << one.info;
    EXPECT_THAT(content.facts.rank_problem, HasSubstr(one.problem)) << one.info;
    EXPECT_EQ(content.facts.rank_problem.empty(), std::string_view(one.problem).empty())
        << one.info;
  }
}

TEST_F(TraceFileReaderTest, BothTimeFormsGiveTheSameEvents) {
  const FileContent old_form = ReadAll(Write("old.pt.trace.json", Kineto(false)));
  const FileContent new_form = ReadAll(Write("new.pt.trace.json", Kineto(true)));
  ASSERT_EQ(new_form.rows.size(), 300u);
  EXPECT_EQ(new_form.rows[299], (Row{"cpu_op", "op299", Phase::kComplete,
                                     kBaseNs + 4'462'233'412'125 + 299 * 1'001, 299'500}));
  EXPECT_EQ(old_form.rows, new_form.rows);
  EXPECT_TRUE(new_form.facts.complete);
  EXPECT_EQ(new_form.facts.base_time_ns, kBaseNs);
  EXPECT_EQ(old_form.facts.base_time_ns, 0u);
  EXPECT_EQ(old_form.facts.first_time_ns, new_form.facts.first_time_ns);
  EXPECT_EQ(new_form.facts.rank, 5);
  EXPECT_EQ(new_form.facts.world_size, 8);
  EXPECT_TRUE(new_form.losses.empty());
}

TEST_F(TraceFileReaderTest, CompressedFilesReadAlikeInOneMemberOrSeveral) {
  const std::string text = Kineto(true);
  const FileContent plain = ReadAll(Write("a.json", text));
  EXPECT_EQ(ReadAll(WriteGzip("a.json.gz", text)).rows, plain.rows);
  WriteGzip("b.json.gz", std::string_view(text).substr(0, 777));
  const std::string path = WriteGzip("b.json.gz", std::string_view(text).substr(777), "ab");
  std::ofstream(path, std::ios::binary | std::ios::app) << "garbage after the last member";
  const FileContent appended = ReadAll(path);
  EXPECT_EQ(appended.rows, plain.rows);
  EXPECT_TRUE(appended.facts.complete);
}

TEST_F(TraceFileReaderTest, CutFilesKeepWhatIsWholeAndCountTheRest) {
  const std::string text = Kineto(false);
  const FileContent cut = ReadAll(Write("cut.json", text.substr(0, text.size() / 2)));
  EXPECT_FALSE(cut.facts.complete);
  EXPECT_THAT(cut.facts.problem, HasSubstr("is truncated"));
  EXPECT_GT(cut.rows.size(), 100u);
  EXPECT_LT(cut.rows.size(), 200u);
  ASSERT_EQ(cut.losses.size(), 1u);
  EXPECT_EQ(cut.losses[0].place, LossPlace::kDecode);
  EXPECT_EQ(cut.losses[0].reason, LossReason::kMalformed);
  EXPECT_TRUE(cut.losses[0].events_unknown);

  const std::string gzip = WriteGzip("cut.json.gz", text);
  std::filesystem::resize_file(gzip, std::filesystem::file_size(gzip) / 2);
  const FileContent cut_gzip = ReadAll(gzip);
  EXPECT_FALSE(cut_gzip.facts.complete);
  EXPECT_GT(cut_gzip.rows.size(), 10u);
  ASSERT_EQ(cut_gzip.losses.size(), 1u);
  EXPECT_THAT(cut_gzip.losses[0].detail, HasSubstr("gzip"));
}

TEST_F(TraceFileReaderTest, BrokenElementsAreCountedAndPassedOver) {
  const std::string big(limits::kFrameworkEventBytesMax, 'x');
  const FileContent content =
      ReadAll(Write("broken.json", R"({"traceEvents":[{"ph":"i","ts":1,"name":"a"},{"ph":nope},)"
                                   R"({"ph":"i","ts":2,"name":")" +
                                       big +
                                       R"("},{},)"
                                       R"({"ph":"i","ts":3,"name":"b"},{ }],"deviceProperties":")" +
                                       big + R"("} trailing)"));
  EXPECT_THAT(content.rows, ElementsAre(Row{"i", "a", Phase::kInstant, 1000, 0},
                                        Row{"i", "b", Phase::kInstant, 3000, 0}));
  ASSERT_EQ(content.losses.size(), 2u);
  EXPECT_EQ(content.losses[0].reason, LossReason::kMalformed);
  EXPECT_EQ(content.losses[0].events, 1u);
  EXPECT_EQ(content.losses[1].reason, LossReason::kLimit);
  EXPECT_EQ(content.position, 6u);
  EXPECT_TRUE(content.facts.complete);
}

TEST_F(TraceFileReaderTest, ReportsNulBetweenElementsAndContinues) {
  using namespace std::string_view_literals;
  const FileContent content =
      ReadAll(Write("nul.json", R"([{"ph":"i","ts":1},)"
                                "\n\0"
                                R"({"ph":"i","ts":2},{"ph":"i","ts":3}])"sv));
  EXPECT_EQ(content.rows.size(), 3u);
  EXPECT_TRUE(content.losses.empty());
  EXPECT_THAT(content.damage, ElementsAre(HasSubstr("after element 0: bytes 20 to 21")));
}

TEST_F(TraceFileReaderTest, ContinuesWherePreviousReadEnded) {
  const std::string path = Write("again.json", Kineto(true));
  const FileContent whole = ReadAll(path);
  const FileContent rest = ReadAll(path, 123);
  EXPECT_EQ(rest.rows, std::vector<Row>(whole.rows.begin() + 123, whole.rows.end()));
  EXPECT_EQ(rest.position, 300u);
}

TEST_F(TraceFileReaderTest, MetadataBeforeAnyTimeTakesTheFirstTimeOfTheFile) {
  const FileContent content = ReadAll(
      Write("meta.json", R"({"traceEvents":[{"ph":"M","name":"process_name"},{"ph":"i","ts":5}],)"
                         R"("baseTimeNanoseconds":"1700000000001000000"})"));
  ASSERT_EQ(content.rows.size(), 2u);
  EXPECT_EQ(content.rows[0].timestamp_ns, 1'700'000'000'001'005'000u);
  EXPECT_EQ(content.rows[1].timestamp_ns, 1'700'000'000'001'005'000u);
}

TEST_F(TraceFileReaderTest, RefusesNonRegularFile) {
  EXPECT_EQ(Open(folder_).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Open(folder_ + "/none").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(TraceFileReaderTest, NoLinkBelowAWatchedDirectoryIsFollowed) {
  const std::string secret = Write("secret.json", R"({"traceEvents":[]})");
  const std::string watched = folder_ + "/watched";
  std::filesystem::create_directories(watched + "/run");
  std::filesystem::copy_file(secret, watched + "/run/trace.json");
  std::filesystem::create_symlink(secret, watched + "/trace.json");
  std::filesystem::create_directory_symlink(folder_, watched + "/folder");
  EXPECT_TRUE(Open(watched + "/run/trace.json", watched).ok());
  EXPECT_TRUE(Open(watched + "/trace.json").ok()) << "the operator's own path";
  for (const std::string& path : {watched + "/trace.json", watched + "/folder/secret.json"}) {
    const absl::Status status = Open(path, watched).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_NE(status.message().find("symbolic links below"), std::string::npos) << status;
  }
  EXPECT_EQ(ListTraceFiles(watched).files.size(), 2u) << "the file, and the link for what it is";
}

TEST_F(TraceFileReaderTest, RefusesNonTraceAndNamesItsKind) {
  const std::map<std::string, std::string> reasons = {
      {"hello", "not a trace: not JSON: it begins with \"hello\""},
      {"<html><body>404 Not Found</body></html>", "not a trace: HTML or XML"},
      {"{a:1}", "not a trace: JSON without trace events"},
      {R"({"model_type":"llama","layers":[1,2]})",
       "not a trace: JSON without a list \"traceEvents\""},
      {R"({"traceEvents":7})", "\"traceEvents\" is not a list"},
      {R"({"traceEvents":{"traceEvents":{"traceEvents":[]}}})", "\"traceEvents\" is not a list"},
      {R"([{"a":1},{"b":2},3])", "not a trace: none of its 3 elements has a phase"},
      {"\x1f\x8b\x08 and so on", "not a trace: gzip data inside gzip data; decompress it once"},
  };
  for (const auto& [text, reason] : reasons) {
    const FileContent content = ReadAll(WriteGzip("other.json.gz", text));
    EXPECT_TRUE(content.facts.is_refused) << text;
    EXPECT_THAT(content.facts.problem, HasSubstr(reason)) << text;
    EXPECT_THAT(content.rows, ElementsAre()) << text;
    ASSERT_EQ(content.losses.size(), 1u) << text;
    EXPECT_TRUE(content.losses[0].events_unknown);
    EXPECT_THAT(content.losses[0].detail, HasSubstr(reason));
  }
}

TEST_F(TraceFileReaderTest, FileStillBeingWrittenIsIncomplete) {
  const std::map<std::string, std::string> reasons = {
      {"", "the file is empty"},
      {" \n", "the file is empty"},
      {"[", "the file ends before its first event"},
      {"[\n", "the file ends before its first event"},
      {"{\"traceEvents\":[", "is truncated"},
  };
  for (const auto& [text, reason] : reasons) {
    const FileContent content = ReadAll(Write("begun.json", text));
    EXPECT_FALSE(content.facts.complete) << text;
    EXPECT_FALSE(content.facts.is_refused) << text;
    EXPECT_THAT(content.facts.problem, HasSubstr(reason)) << text;
    ASSERT_EQ(content.losses.size(), 1u) << text;
    EXPECT_TRUE(content.losses[0].events_unknown);
  }
  for (const char* text : {"[]", R"({"traceEvents":[]})", "[{\"ph\":\"i\",\"ts\":1},"}) {
    const FileContent content = ReadAll(Write("sound.json", text));
    EXPECT_TRUE(content.facts.complete) << text << content.facts.problem;
    EXPECT_TRUE(content.losses.empty()) << text;
  }
}

TEST_F(TraceFileReaderTest, TraceEventsInsideTraceEventsAreRead) {
  const FileContent content = ReadAll(
      Write("nested.json", R"({"traceEvents":{"traceEvents":[{"ph":"i","ts":1}],"x":1},"y":2})"));
  EXPECT_TRUE(content.facts.complete) << content.facts.problem;
  EXPECT_EQ(content.rows.size(), 1u);
  EXPECT_TRUE(content.losses.empty());
}

TEST_F(TraceFileReaderTest, ControlCharactersInNamesAreKept) {
  using namespace std::string_view_literals;
  const FileContent content =
      ReadAll(Write("control.json",
                    "[{\"ph\":\"i\",\"ts\":1,\"name\":\"\x01S(1)\\u0001\"},"
                    "{\"ph\":\"i\",\"ts\":2,\"name\":\"tab\there\"},"
                    "{\"ph\":\"i\",\"ts\":3,\"name\":\"two\nlines\0\"}]"sv));
  EXPECT_TRUE(content.losses.empty());
  ASSERT_EQ(content.rows.size(), 3u);
  EXPECT_EQ(content.rows[0].name, "\x01S(1)\x01");
  EXPECT_EQ(content.rows[1].name, "tab\there");
  EXPECT_EQ(content.rows[2].name, "two\nlines\0"sv);
}

// Its sum differs, or a byte in the middle does: what comes before is good.
TEST_F(TraceFileReaderTest, DamagedGzipYieldsContentBeforeDamage) {
  std::string text = "[";
  for (int i = 0; i < 1'000; ++i) text += fmt::format("{{\"ph\":\"i\",\"ts\":{}}},\n", i + i * i);
  const std::string path = WriteGzip("sum.json.gz", text + "{}]");
  const uint64_t bytes = std::filesystem::file_size(path);
  for (const auto& [at, rows_min] : {std::pair(bytes - 8, 1'000u), std::pair(bytes / 2, 100u)}) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const char c = static_cast<char>(file.get() ^ 0xff);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(c).flush();
    const FileContent content = ReadAll(path);
    EXPECT_GE(content.rows.size(), rows_min);
    ASSERT_FALSE(content.losses.empty());
    EXPECT_TRUE(content.losses.back().events_unknown);
    EXPECT_THAT(content.losses.back().detail, HasSubstr("gzip data is damaged"));
  }
}

// Its rest is not read, and still two contents are not taken for one.
TEST_F(TraceFileReaderTest, DetectsNonTraceByContent) {
  const auto mark = [this](std::string_view text) {
    const TraceFileFacts facts = ReadAll(Write("page.json", text)).facts;
    EXPECT_TRUE(facts.is_refused);
    EXPECT_GT(facts.content_bytes, 0u);
    return facts.content_mark;
  };
  EXPECT_NE(mark("<html>a</html>"), 0u);
  EXPECT_NE(mark("<html>a</html>"), mark("<html>b</html>"));
}

TEST_F(TraceFileReaderTest, AnImpossibleBaseIsNotUsed) {
  for (const char* base : {"1790000000000000", "1790000000", "5"}) {
    const FileContent content = ReadAll(Write(
        "base.json",
        fmt::format(R"({{"baseTimeNanoseconds":{},"traceEvents":[{{"ph":"i","ts":7}}]}})", base)));
    EXPECT_TRUE(content.facts.has_own_time) << base;
    EXPECT_THAT(content.facts.base_description, HasSubstr(base));
    EXPECT_THAT(content.rows, ElementsAre(Row{"i", "", Phase::kInstant, 7'000, 0}));
  }
}

TEST_F(TraceFileReaderTest, AWorldOfMinusOneIsNoneAndContradictsARank) {
  const auto facts = [this](std::string_view info) {
    return ReadAll(Write("rank.json",
                         fmt::format(R"({{"distributedInfo":{},"traceEvents":[]}})", info)))
        .facts;
  };
  EXPECT_EQ(facts(R"({"rank":-1,"world_size":-1})").rank_problem, "");
  const TraceFileFacts anomalous = facts(R"({"rank":0,"world_size":-1})");
  EXPECT_FALSE(anomalous.rank);
  EXPECT_THAT(anomalous.rank_problem, HasSubstr("world_size is -1"));
}

TEST_F(TraceFileReaderTest, ReportsStrayBytes) {
  const FileContent content = ReadAll(Write(
      "stray.json", R"({"traceEvents":[{"ph":"i","ts":1}},{"ph":"i","ts":2}]} {"ph":"i","ts":3})"));
  EXPECT_EQ(content.rows.size(), 2u);
  ASSERT_EQ(content.losses.size(), 1u);
  EXPECT_TRUE(content.losses[0].events_unknown) << "an event behind the end";
  EXPECT_THAT(content.damage,
              ElementsAre("after element 0: bytes 33 to 35 are not part of an event"));
  EXPECT_EQ(content.facts.bytes_behind, 17u);
}

// The archive with the eight ranks' traces, unpacked into `folder`; empty where it is not at hand.
std::vector<std::string> UnpackRealTraces(const std::string& folder) {
  const char* const configured = getenv("NEURONTRACE_TEST_DATA");
  const std::filesystem::path data =
      configured != nullptr ? configured : NEURONTRACE_SOURCE_DIR "/../shared/data";
  const std::filesystem::path archive = data / "kineto-dlrm-8-ranks.tar.gz";
  if (!std::filesystem::exists(archive)) return {};
  const std::string command = fmt::format("tar -xzf '{}' -C '{}'", archive.string(), folder);
  if (system(command.c_str()) != 0) return {};
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

constexpr char kMappingName[] = "framework_mapping_20251121_101530_042.json";

std::string Entry(uint64_t id) {
  return fmt::format(R"({{"nrta_seq_id":{},"framework_op_exec_ids":[{{"seq_nr":{}}}]}})", id,
                     2 * id);
}

TEST_F(TraceFileReaderTest, EntriesOfMappingFilesHaveTheTimeOfTheirFile) {
  const std::string text =
      R"({"version": 1, "data": [)" + Entry(5) + ",\n" + Entry(6) + "], \"more\": 7}";
  const std::string path = Write(kMappingName, text);
  const timespec times[2] = {{1'763'700'000, 5}, {1'763'700'000, 5}};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  const FileContent content = ReadAll(path);
  EXPECT_TRUE(content.facts.complete);
  EXPECT_FALSE(content.facts.is_refused);
  EXPECT_EQ(content.facts.problem, "");
  EXPECT_EQ(content.facts.elements, 2u);
  const Row row{"neurontrace.framework_mapping", "", Phase::kMetadata, 1'763'700'000'000'000'005,
                0};
  EXPECT_THAT(content.rows, ElementsAre(row, row));
  EXPECT_TRUE(content.losses.empty());
  EXPECT_EQ(content.position, 2u);
  EXPECT_EQ(ReadAll(path, 1).rows.size(), 1u) << "continues behind the stored elements";
  EXPECT_EQ(ReadAll(WriteGzip(std::string(kMappingName) + ".gz", text)).rows.size(), 2u);
  EXPECT_THAT(ReadAll(Write("other.trace.json", text)).rows, ElementsAre())
      << "no mapping file by its name";
}

TEST_F(TraceFileReaderTest, SkipsMappingFileOfUnsupportedVersion) {
  const std::map<std::string, std::string> reasons = {
      {R"({"version": 2, "data": [)" + Entry(5) + "]}", "before byte 13: version 2 of mapping"},
      {R"({"data": [)" + Entry(5) + R"(], "version": "x"})", "version \"x\" of mapping"},
      {R"({"data": [)" + Entry(5) + "]}", "has no version"},
      {"[" + Entry(5) + "]", "has no version"},
      {R"({"version": 1, "data": {}})", "\"data\" is not a list"},
  };
  for (const auto& [text, reason] : reasons) {
    const FileContent content = ReadAll(Write(kMappingName, text));
    EXPECT_TRUE(content.facts.is_refused) << text;
    EXPECT_THAT(content.facts.problem, HasSubstr(reason));
    EXPECT_THAT(content.rows, ElementsAre()) << text;
    ASSERT_EQ(content.losses.size(), 1u) << text;
    EXPECT_TRUE(content.losses[0].events_unknown);
    EXPECT_THAT(content.losses[0].detail, HasSubstr(reason));
  }
}

TEST_F(TraceFileReaderTest, BrokenEntriesOfAMappingFileAreLossesWithTheirPlace) {
  const FileContent content = ReadAll(
      Write(kMappingName, R"({"version":"1","data":[7,)" + Entry(5) + R"(,{"nrta_seq_id":1}]})"));
  EXPECT_TRUE(content.facts.complete);
  EXPECT_EQ(content.rows.size(), 1u);
  ASSERT_EQ(content.losses.size(), 2u);
  EXPECT_EQ(content.losses[0].events, 1u);
  EXPECT_THAT(content.losses[0].detail, HasSubstr("element 0, to byte 24: not a mapping entry"));
  EXPECT_THAT(content.losses[1].detail, HasSubstr("element 2, to byte "));
  const FileContent cut =
      ReadAll(Write(kMappingName, R"({"version":1,"data":[)" + Entry(5) + R"(,{"nrta)"));
  EXPECT_FALSE(cut.facts.complete);
  EXPECT_EQ(cut.rows.size(), 1u);
  ASSERT_EQ(cut.losses.size(), 1u);
  EXPECT_THAT(cut.losses[0].detail, HasSubstr("is truncated"));
}

TEST_F(TraceFileReaderTest, CountsEntriesBeyondLimitAsLoss) {
  std::string text = R"({"version":1,"data":[)";
  for (uint64_t i = 0; i <= limits::kMappingEntriesMax; ++i) {
    text += R"({"nrta_seq_id":1,"framework_op_exec_ids":[]},)";
  }
  text.back() = ']';
  const FileContent content = ReadAll(WriteGzip(std::string(kMappingName) + ".gz", text + "}"));
  EXPECT_EQ(content.facts.elements, limits::kMappingEntriesMax + 1);
  EXPECT_THAT(content.facts.problem, HasSubstr("1048577 entries; only the first 1048576 are read"));
  EXPECT_EQ(content.rows.size(), limits::kMappingEntriesMax);
  ASSERT_EQ(content.losses.size(), 1u);
  EXPECT_EQ(content.losses[0].reason, LossReason::kLimit);
}

TEST_F(TraceFileReaderTest, ReadsTheRealTracesOfEightRanks) {
  const std::vector<std::string> paths = UnpackRealTraces(folder_);
  if (paths.empty()) {
    GTEST_SKIP() << "kineto-dlrm-8-ranks.tar.gz is not in $NEURONTRACE_TEST_DATA nor in "
                    "../shared/data beside the source tree";
  }
  ASSERT_EQ(paths.size(), 8u);
  for (size_t rank = 0; rank < paths.size(); ++rank) {
    SCOPED_TRACE(paths[rank]);
    const FileContent content = ReadAll(paths[rank]);
    EXPECT_TRUE(content.facts.complete) << content.facts.problem;
    EXPECT_EQ(content.facts.rank, static_cast<int64_t>(rank));
    EXPECT_EQ(content.facts.world_size, 8);
    EXPECT_TRUE(content.losses.empty());
    EXPECT_EQ(content.rows.size(), content.facts.elements);
    std::map<Phase, size_t> phases;
    for (const Row& row : content.rows) {
      ++phases[row.phase];
      EXPECT_GE(row.timestamp_ns, 1'694'128'201'000'000'000u);
      EXPECT_LT(row.timestamp_ns, 1'694'128'202'000'000'000u);
      EXPECT_EQ(row.timestamp_ns % 1000, 0u);
      EXPECT_NE(row.phase, Phase::kOther);
    }
    EXPECT_GT(phases[Phase::kComplete], 1'000u);
    EXPECT_GT(phases[Phase::kFlowEnd], phases[Phase::kFlowStart]) << "this set has orphan ends";
  }
}

}  // namespace
}  // namespace neurontrace
