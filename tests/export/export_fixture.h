// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "aggregator/export/exporter.h"
#include "aggregator/timeline/event_script.h"
#include "aggregator/timeline/fake_chunk_source.h"
#include "lib/trace/host_samples.h"
#include "lib/trace/limits.h"
#include "lib/validate/trace_validator.h"

namespace neurontrace {

// Files in memory; beyond `bytes_max` of all together the receiver has left.
class StringFiles : public OutputFiles {
 public:
  absl::StatusOr<std::unique_ptr<OutputFile>> Open(std::string_view name) override {
    EXPECT_TRUE(IsOutputName(name)) << name;
    const auto [at, is_new] = files.try_emplace(std::string(name));
    EXPECT_TRUE(is_new) << name;
    ++open_files;
    return std::make_unique<File>(*this, at->second);
  }

  // The bytes of an export of one file.
  const std::string& text() const {
    EXPECT_EQ(files.size(), 1u);
    EXPECT_EQ(open_files, 0u);
    static const std::string kNone;
    return files.empty() ? kNone : files.begin()->second;
  }

  std::map<std::string, std::string> files;
  size_t open_files = 0;
  size_t bytes = 0;
  size_t bytes_max = SIZE_MAX;

 private:
  class File : public OutputFile {
   public:
    File(StringFiles& files, std::string& text) : files_(files), text_(text) {}
    absl::Status Write(std::string_view bytes) override {
      EXPECT_FALSE(is_closed_);
      if (files_.bytes + bytes.size() > files_.bytes_max) {
        return absl::UnavailableError("the receiver left");
      }
      files_.bytes += bytes.size();
      text_ += bytes;
      return absl::OkStatus();
    }
    absl::Status Close() override {
      EXPECT_FALSE(is_closed_);
      is_closed_ = true;
      --files_.open_files;
      return absl::OkStatus();
    }

   private:
    StringFiles& files_;
    std::string& text_;
    bool is_closed_ = false;
  };
};

// What `neurontrace validate --strict` makes of it.
inline TraceReport ExpectSound(std::string_view trace) {
  auto report = ValidateTrace([&trace](char* out, size_t max) -> absl::StatusOr<size_t> {
    const size_t count = std::min(max, trace.size());
    std::memcpy(out, trace.data(), count);
    trace.remove_prefix(count);
    return count;
  });
  EXPECT_TRUE(report.ok()) << report.status();
  for (const TraceFinding& finding : report->findings.findings()) {
    ADD_FAILURE() << InfoOf(finding.check).name << ": " << finding.words;
  }
  return *std::move(report);
}

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
  // What a process annotates: a range with one inside it on thread 7, and a mark on thread 8.
  uint32_t AddAnnotations(const std::string& instance, uint32_t pid) {
    StreamIdentity identity = Core(instance, pid, limits::kNoNcIdx);
    identity.kind = StreamKind::kAnnotation;
    identity.name = "annotations";
    const uint32_t stream = source_.AddStream(identity);
    const auto named = [](const char* name) {
      return EventScript::Attribute{"name", std::string(name), KeyScope::kTop};
    };
    script_.Add("annotation", Phase::kBegin, kBase, 1, 7, {named("step 3")});
    script_.Add("phase", Phase::kBegin, kBase + 10, 2, 7,
                {named("forward"), {"domain", std::string("train")}, {"payload", uint64_t{3}}});
    script_.Add("phase", Phase::kEnd, kBase + 60, 2, 7);
    script_.Add("annotation", Phase::kInstant, kBase + 70, 0, 8, {named("loss")});
    script_.Add("annotation", Phase::kEnd, kBase + 90, 1, 7);
    Close(stream);
    return stream;
  }
  // The sampler of an instance's host; one second of it, with one processor.
  uint32_t AddHost(const std::string& instance) {
    StreamIdentity identity = Core(instance, 0, limits::kNoNcIdx);
    identity.kind = StreamKind::kHost;
    const uint32_t stream = source_.AddStream(identity);
    for (const char* cpu : {"0", "average"}) {
      script_.Add(std::string(kHostCpuEventType), Phase::kCounter, kBase, 0, 0,
                  {{std::string(kHostCpuIdKey), std::string(cpu)},
                   {std::string(kHostUtilPercentKey), 12.5},
                   {std::string(kHostDurationNsKey), uint64_t{1'000'000'000}}});
    }
    script_.Add(std::string(kHostMemoryEventType), Phase::kCounter, kBase + 1'000'000'000, 0, 0,
                {{std::string(kHostUsedBytesKey), uint64_t{1'024}},
                 {std::string(kHostUsedPercentKey), 50.0},
                 {std::string(kHostTotalBytesKey), uint64_t{2'048}}});
    Close(stream);
    return stream;
  }
  void Close(uint32_t stream) { source_.AddChunk(stream, builder_); }
  // One span of this name.
  void Close(uint32_t stream, const std::string& name) {
    script_.Span(name, kBase, kBase + 10, 1);
    Close(stream);
  }

  std::string Export(std::string_view format, ExportRequest request = {}) {
    StringFiles files;
    auto summary = ExportCapture(source_, **FindExportFormat(format), request, files, {});
    EXPECT_TRUE(summary.ok()) << summary.status();
    if (summary.ok()) {
      summary_ = *std::move(summary);
      EXPECT_EQ(summary_.progress.bytes_written, files.bytes);
    }
    return files.text();
  }
  std::string ExportError(std::string_view format, const ExportRequest& request) {
    StringFiles files;
    const auto summary = ExportCapture(source_, **FindExportFormat(format), request, files, {});
    EXPECT_FALSE(summary.ok());
    return std::string(summary.status().message());
  }

  FakeChunkSource source_;
  EventChunkBuilder builder_;
  EventScript script_{builder_};
  ExportSummary summary_;
};

}  // namespace neurontrace
