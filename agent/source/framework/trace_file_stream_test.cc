// SPDX-License-Identifier: Apache-2.0
// A step is a bounded piece of work whatever the file is like: files that hold much and give little
// take as many steps as their size asks for.
#include "agent/source/framework/trace_file_stream.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "agent/source/recording_sink.h"
#include "lib/base/clock.h"

namespace neurontrace {
namespace {

constexpr size_t kBytes = size_t{2} << 20;
constexpr size_t kStepBytesMax = size_t{1} << 20;

// At least kBytes of `text` over and over.
std::string Repeated(std::string_view text) {
  std::string many(text);
  while (many.size() < kBytes) many += many;
  return many;
}

struct Outcome {
  uint64_t scan_steps = 0;
  uint64_t read_steps = 0;
  TraceFileFacts facts;
  StreamWriter::Counts counts;
};

class TraceFileStreamTest : public ::testing::Test {
 protected:
  TraceFileStreamTest() {
    std::string pattern = ::testing::TempDir() + "trace_file_stream_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ + "/a.trace.json.gz";
  }
  ~TraceFileStreamTest() override { std::filesystem::remove_all(folder_); }

  // Appends one gzip member to the file.
  void Append(std::string_view text) {
    gzFile file = gzopen(path_.c_str(), "ab1");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
  }
  void Write(std::string_view head, std::string_view middle, std::string_view tail) {
    std::filesystem::remove(path_);
    Append(std::string(head) + Repeated(middle) + std::string(tail));
  }

  Outcome Run(uint64_t first_element = 0) {
    Outcome outcome;
    TraceFileStream stream(path_);
    for (; stream.state() == TraceFileStream::State::kScanning; ++outcome.scan_steps) {
      stream.Step(shapes_);
    }
    outcome.facts = stream.facts();
    StreamIdentity identity{.kind = StreamKind::kFramework, .name = "a.trace.json.gz"};
    stream.Read(std::make_unique<StreamWriter>(CaptureId(), identity, clock_, sink_, metrics_),
                first_element);
    for (; stream.state() == TraceFileStream::State::kReading; ++outcome.read_steps) {
      stream.Step(shapes_);
    }
    outcome.counts = stream.counts();
    return outcome;
  }

  FakeClock clock_;
  RecordingSink sink_;
  AgentSourceMetrics metrics_;
  ShapeCache shapes_;
  std::string folder_;
  std::string path_;
};

TEST_F(TraceFileStreamTest, StepsAreBoundedWithoutEvents) {
  const struct {
    std::string_view head, middle, tail;
    uint64_t events, lost;
  } kFiles[] = {
      {R"({"traceEvents":[)", " ", R"({"ph":"i","ts":1}]})", 1, 0},
      {R"({"traceEvents":[)", ",", R"({"ph":"i","ts":1}]})", 1, 0},
      {R"({"traceEvents":[)", "{},", R"({"ph":"i","ts":1}]})", 1, 0},
      {R"({"traceEvents":[")", "x", R"(",{"ph":"i","ts":1}]})", 1, 1},
      {R"({"traceEvents":[{"ph":"5"x)", "x", R"("},{"ph":"i","ts":1}]})", 1, 1},
      {R"({"traceEvents":[{"ph":"5"x)", R"(,{"a":1})", R"(},{"ph":"i","ts":1}]})", 1, 1},
      {R"({"traceEvents":[{"ph":"5"x)", R"(,{"a":[)", R"(},{"ph":"i","ts":1}]})", 1, 1'025},
      {R"({"traceEvents":[{"ph":"i","ts":1}]} )", "x", "", 1, 0},
      {R"({"a":1,)", R"("traceEvents":[],)", R"("traceEvents":[{"ph":"i","ts":1}]})", 1, 0},
      {"{", R"("a":1,)", R"("traceEvents":[{"ph":"i","ts":1}]})", 1, 0},
      {R"({"traceEvents":[{"ph":"i","ts":1}])", "\n", "}", 1, 0},
      {R"({"traceEvents":[{"ph":"i","ts":1}],"a")", " ", ":1}", 1, 0},
      {"", " ", R"([{"ph":"i","ts":1}])", 1, 0},
  };
  for (const auto& file : kFiles) {
    SCOPED_TRACE(file.head);
    SCOPED_TRACE(file.middle);
    Write(file.head, file.middle, file.tail);
    const Outcome outcome = Run();
    EXPECT_TRUE(outcome.facts.complete) << outcome.facts.problem;
    EXPECT_EQ(outcome.counts.read, file.events);
    EXPECT_EQ(outcome.counts.lost, file.lost);
    EXPECT_GE(outcome.scan_steps, kBytes / kStepBytesMax);
    EXPECT_GE(outcome.read_steps, kBytes / kStepBytesMax);
  }
}

TEST_F(TraceFileStreamTest, StepsAreBoundedWhileSkippingStoredElements) {
  const std::string_view element = R"({"ph":"i","ts":1},)";
  const uint64_t stored = Repeated(element).size() / element.size();
  Write("[", element, R"({"ph":"i","ts":2}])");
  const Outcome outcome = Run(stored);
  EXPECT_EQ(outcome.counts.read, 1u);
  EXPECT_GE(outcome.read_steps, stored / 1'000);
}

TEST_F(TraceFileStreamTest, StepsAreBoundedByBytesWhereElementsAreLong) {
  const std::string element = R"({"ph":"i","ts":1,"args":[)" + std::string(200'000, '1') + "]},";
  Write("[", element, R"({"ph":"i","ts":2}])");
  const Outcome outcome = Run();
  EXPECT_GE(outcome.scan_steps, kBytes / kStepBytesMax);
  EXPECT_GE(outcome.read_steps, kBytes / kStepBytesMax);
}

TEST_F(TraceFileStreamTest, StepsAreBoundedInEmptyGzipMembers) {
  Append("");
  std::stringstream member;
  member << std::ifstream(path_, std::ios::binary).rdbuf();
  std::ofstream(path_, std::ios::binary) << Repeated(member.str());
  Append(R"([{"ph":"i","ts":1}])");
  const Outcome outcome = Run();
  EXPECT_TRUE(outcome.facts.complete) << outcome.facts.problem;
  EXPECT_EQ(outcome.counts.read, 1u);
  EXPECT_GE(outcome.scan_steps, kBytes / kStepBytesMax);
  EXPECT_GE(outcome.read_steps, kBytes / kStepBytesMax);
}

}  // namespace
}  // namespace neurontrace
