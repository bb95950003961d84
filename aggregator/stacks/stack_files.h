// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/store/artifact_store.h"
#include "lib/base/event_loop.h"
#include "lib/base/task_runner.h"
#include "lib/trace/ids.h"
#include "neurontrace/v1/stacks.pb.h"

namespace neurontrace {

// Keeps reports of stacks: StackFiles in production, a list in tests.
class StackReportStore {
 public:
  using Done = std::function<void(const absl::Status&)>;
  virtual ~StackReportStore() = default;
  // Stores a report in its capture. Does not wait; calls `done` on the coordinator's sequence.
  virtual void Store(const CaptureId& capture, const v1::StacksReport& report, Done done) = 0;
  // Returns the stored reports of a capture, the newest first, at most limits::kStacksReportsShown.
  // Waits for the disk. Fails with DATA_LOSS if one cannot be read.
  virtual absl::StatusOr<std::vector<v1::StacksReport>> Load(const CaptureId& capture) = 0;
};

// Keeps them as artifacts stacks/TIME/merged.json, in proto3's JSON with the names of the .proto
// file. Any thread.
// thread: stacks: writes merged stacks into the store
class StackFiles final : public StackReportStore {
 public:
  // `agent_id` is named as the origin of the artifacts. All references outlive this.
  StackFiles(ArtifactStore& artifacts, std::string agent_id, TaskRunner& sequence);
  // Writes what waits, and joins the thread.
  ~StackFiles() override;

  void Store(const CaptureId& capture, const v1::StacksReport& report, Done done) override;
  absl::StatusOr<std::vector<v1::StacksReport>> Load(const CaptureId& capture) override;

 private:
  absl::Status Write(const CaptureId& capture, const v1::StacksReport& report);

  ArtifactStore& artifacts_;
  const std::string agent_id_;
  TaskRunner& sequence_;
  EventLoop loop_;
  std::thread thread_;
};

}  // namespace neurontrace
