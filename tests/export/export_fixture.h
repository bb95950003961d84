// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "aggregator/export/exporter.h"
#include "aggregator/timeline/event_script.h"
#include "aggregator/timeline/fake_chunk_source.h"
#include "trace/limits.h"

namespace neurontrace {

class StringSink : public ByteSink {
 public:
  absl::Status Write(std::string_view bytes) override {
    if (text.size() + bytes.size() > bytes_max) return absl::UnavailableError("the receiver left");
    text += bytes;
    return absl::OkStatus();
  }
  std::string text;
  size_t bytes_max = SIZE_MAX;
};

// A capture in memory and what it becomes.
class ExportFixture : public ::testing::Test {
 protected:
  static constexpr uint64_t kBase = 1'750'000'000'000'000'000u;

  static StreamIdentity Core(const std::string& instance, uint32_t pid, uint32_t nc_idx) {
    return {.agent_id = "agent-" + instance,
            .worker = {instance, "boot", pid, 1, ""},
            .kind = StreamKind::kNeuronCore,
            .nc_idx = nc_idx};
  }
  static RankEvidence Claim(int64_t gid) { return {RankSource::kCommunicator, gid, 64, "test"}; }
  // A gid below 0: not known.
  uint32_t AddCore(const std::string& instance, uint32_t pid, uint32_t nc_idx, int64_t gid) {
    if (gid < 0) return source_.AddStream(Core(instance, pid, nc_idx));
    return source_.AddStream(Core(instance, pid, nc_idx), {Claim(gid)});
  }
  uint32_t AddFile(const std::string& instance, const std::string& name) {
    StreamIdentity identity = Core(instance, 0, limits::kNoNcIdx);
    identity.kind = StreamKind::kFramework;
    identity.name = name;
    return source_.AddStream(identity);
  }
  void Close(uint32_t stream) { source_.AddChunk(stream, builder_); }
  // One span of this name.
  void Close(uint32_t stream, const std::string& name) {
    script_.Span(name, kBase, kBase + 10, 1);
    Close(stream);
  }

  std::string Export(std::string_view format, ExportRequest request = {}) {
    StringSink sink;
    auto summary = ExportCapture(source_, **FindExportFormat(format), request, sink, {});
    EXPECT_TRUE(summary.ok()) << summary.status();
    if (summary.ok()) {
      summary_ = *std::move(summary);
      EXPECT_EQ(summary_.progress.bytes_written, sink.text.size());
    }
    return sink.text;
  }
  std::string ExportError(std::string_view format, const ExportRequest& request) {
    StringSink sink;
    const auto summary = ExportCapture(source_, **FindExportFormat(format), request, sink, {});
    EXPECT_FALSE(summary.ok());
    return std::string(summary.status().message());
  }

  FakeChunkSource source_;
  EventChunkBuilder builder_;
  EventScript script_{builder_};
  ExportSummary summary_;
};

}  // namespace neurontrace
