// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "aggregator/triggers/trigger_captures.h"
#include "aggregator/triggers/trigger_engine.h"
#include "lib/base/fake_task_runner.h"
#include "lib/base/status.h"

namespace neurontrace {

// For tests: captures that begin at once and continue until the test ends them.
class FakeTriggerCaptures final : public TriggerCaptures {
 public:
  static constexpr uint64_t kSecondNs = 1'000'000'000;

  static CaptureId Id(uint8_t number) {
    std::string bytes(CaptureId::kBytes, '\0');
    bytes.back() = static_cast<char>(number);
    return *CaptureId::FromBytes(bytes);
  }

  absl::StatusOr<CaptureId> Start(const CaptureSpec& spec) override {
    if (!refusal.ok()) return refusal;
    if (spec.mode == CaptureMode::kSnapshot && !snapshot_refusal.ok()) return snapshot_refusal;
    started.push_back(spec);
    const CaptureId id = Id(static_cast<uint8_t>(started.size()));
    running.insert(id);
    return id;
  }
  bool IsRunning(const CaptureId& id) const override { return running.contains(id); }
  CaptureId FlightRecorderOf(const CaptureSpec& spec) const override {
    return flight_recorder_job == spec.selection.job ? flight_recorder : CaptureId();
  }
  CaptureId RecorderOf(const CaptureSpec&) const override { return recorder; }
  Continuous ContinuousOf(const CaptureSpec&) const override { return continuous; }

  void CollectStacks(const CaptureId& capture, const TriggerRule&, const std::string&,
                     std::vector<WorkerIdentity> workers) override {
    stacks.emplace_back(capture, std::move(workers));
  }

  // A good rule of the kind.
  static TriggerRule Rule(const std::string& name, TriggerKind kind = TriggerKind::kPost) {
    return {.name = name,
            .kind = kind,
            .cool_down_ns = 60 * kSecondNs,
            .per_hour_max = 3,
            .last_ns = 20 * kSecondNs,
            .duration_ns = 10 * kSecondNs};
  }
  static TriggerFired Fired(const std::string& rule, const std::string& job, uint32_t pid) {
    return {.rule = rule,
            .cause = "core 0 of pid " + std::to_string(pid) + " is slow",
            .job = job,
            .worker = {.instance_id = "i-1", .pid = pid}};
  }

  std::vector<CaptureSpec> started;
  std::vector<std::pair<CaptureId, std::vector<WorkerIdentity>>> stacks;
  std::set<CaptureId> running;
  absl::Status refusal;
  absl::Status snapshot_refusal;
  CaptureId flight_recorder;
  std::string flight_recorder_job;
  CaptureId recorder;
  Continuous continuous;
};

}  // namespace neurontrace
