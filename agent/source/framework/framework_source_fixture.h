// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/source/framework/framework_source.h"
#include "agent/source/recording_sink.h"
#include "lib/base/fake_task_runner.h"

namespace neurontrace {

inline constexpr uint64_t kMs = 1'000'000;

inline std::string TraceText(int first, int count, std::string_view tail = "]}", int rank = 3) {
  std::string text =
      fmt::format(R"({{"distributedInfo":{{"rank":{},"world_size":8}},"traceEvents":[)", rank);
  for (int i = first; i < first + count; ++i) {
    text += fmt::format(R"({}{{"ph":"X","cat":"op","name":"n{}","ts":{},"dur":1}})",
                        i == first ? "" : ",", i, i + 1);
  }
  return text.append(tail);
}

class FrameworkListener final : public SourceListener {
 public:
  void OnWorker(const WorkerInfo&) override {}
  void OnWorkerGone(const WorkerIdentity&) override {}
  void OnCaptureWorker(const CaptureWorkerStatus& status) override { statuses.push_back(status); }
  std::vector<CaptureWorkerStatus> statuses;
};

// The workers that a capture has on this node.
class FakeParticipants final : public CaptureParticipants {
 public:
  bool Records(const CaptureId&) const override { return !workers.empty(); }
  std::vector<WorkerIdentity> WorkersOf(const CaptureId&) const override { return workers; }
  std::vector<WorkerIdentity> workers;
};

class FrameworkSourceTest : public ::testing::Test {
 protected:
  FrameworkSourceTest() {
    std::string pattern = ::testing::TempDir() + "framework_source_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    watched_ = folder_ + "/watched";
    std::filesystem::create_directory(watched_);
    spec_.filter.include_framework = true;
  }
  ~FrameworkSourceTest() override { std::filesystem::remove_all(folder_); }

  // `at_s`: seconds of the file's time of change after the clock's.
  std::string Write(const std::string& path, std::string_view text, int64_t at_s = 0) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
    const int64_t seconds = static_cast<int64_t>(clock_.RealtimeNs() / 1'000'000'000) + at_s;
    const timespec times[2] = {{seconds, 0}, {seconds, 0}};
    EXPECT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
    return path;
  }
  void MakeSource(std::vector<std::string> files, bool watch = false) {
    source_ = std::make_unique<FrameworkSource>(
        FrameworkFiles{"agent", "i-1", "boot", std::move(files), watch ? watched_ : ""}, clock_,
        runner_, sink_, listener_, metrics_, participants_);
  }
  void Start(std::vector<StreamCursor> cursors = {}) {
    if (capture_.empty()) capture_ = CaptureId::Make(clock_, random_);
    source_->ApplyOrder(SourceOrder::Start(capture_, spec_, cursors));
  }
  void Pass(uint64_t ms) { runner_.AdvanceNs(ms * kMs); }
  // "name sequence events" of each chunk.
  std::vector<std::string> Chunks() const {
    std::vector<std::string> lines;
    for (const auto& entry : sink_.entries) {
      const ChunkHeader& header = entry.chunk.header;
      lines.push_back(fmt::format("{} {} {}{}", header.stream.name, header.sequence,
                                  header.event_count, header.end_of_stream ? " end" : ""));
    }
    return lines;
  }
  // Returns the count of a remark in the last status; 0 without one.
  uint64_t Remarked(RemarkKind kind) const {
    for (const Remark& remark : status().remarks) {
      if (remark.kind == kind) return remark.count;
    }
    return 0;
  }
  std::string DetailsOf(RemarkKind kind) const {
    std::string text;
    for (const Remark& remark : status().remarks) {
      if (remark.kind != kind) continue;
      for (const std::string& detail : remark.details) text += detail + "\n";
    }
    return text;
  }
  CaptureWorkerStatus status() const {
    return listener_.statuses.empty() ? CaptureWorkerStatus() : listener_.statuses.back();
  }

  FakeClock clock_;
  FakeTaskRunner runner_{clock_};
  SeededRandom random_{9};
  std::string folder_;
  std::string watched_;
  CaptureId capture_;
  CaptureSpec spec_;
  RecordingSink sink_;
  FrameworkListener listener_;
  FakeParticipants participants_;
  AgentSourceMetrics metrics_;
  std::unique_ptr<FrameworkSource> source_;
};

}  // namespace neurontrace
