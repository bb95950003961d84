// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/on_demand/on_demand_capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include "lib/trace/framework_limits.h"

namespace neurontrace {

OnDemandCapture::OnDemandCapture(const CaptureId& capture_id, const CaptureSpec& spec,
                                 std::vector<FrameworkRecorder*> recorders,
                                 const CaptureParticipants& participants, ProcFiles proc)
    : capture_id_(capture_id), spec_(spec), participants_(participants), proc_(std::move(proc)) {
  for (const std::string& name : spec.filter.frameworks) {
    const auto it = std::find_if(recorders.begin(), recorders.end(),
                                 [&](const auto* one) { return one->framework() == name; });
    if (it == recorders.end()) {
      without_recorder_.push_back(name);
    } else {
      recorders_.push_back(*it);
    }
  }
}

OnDemandCapture::~OnDemandCapture() {
  for (FrameworkRecorder* const recorder : recorders_) recorder->Forget(capture_id_);
}

void OnDemandCapture::Begin(const PlannedMoment& moment) {
  if (std::exchange(begun_, true)) return;
  known_ = Workers();
  std::map<std::string, std::vector<WorkerIdentity>, std::less<>> asked;  // by framework
  for (const WorkerIdentity& worker : known_) {
    for (const std::string& name : FrameworksOf(worker)) asked[name].push_back(worker);
  }
  FrameworkOrder order{.capture_id = capture_id_,
                       .workers = {},
                       .begin_realtime_ns = moment.realtime_ns,
                       .is_planned = moment.named,
                       .duration_ns = spec_.timing.duration_ns,
                       .first_step = spec_.filter.framework_first_step,
                       .steps = spec_.filter.framework_steps,
                       .with_stacks = spec_.filter.framework_stacks};
  for (FrameworkRecorder* const recorder : recorders_) {
    order.workers = asked[std::string(recorder->framework())];
    recorder->Begin(order);
  }
  for (const std::string& name : without_recorder_) {
    for (const WorkerIdentity& worker : asked[name]) {
      absent_.push_back(
          {worker, name, FrameworkTraceState::kFailed,
           name == kXlaFramework
               ? "this agent has no --framework-dir with an absolute path, where traces are kept"
               : "this agent has no --kineto-dir, so that no worker can ask it for orders"});
    }
  }
}

void OnDemandCapture::OnFile(std::string_view name) {
  for (FrameworkRecorder* const recorder : recorders_) recorder->OnFile(capture_id_, name);
}

void OnDemandCapture::Stop() {
  if (std::exchange(stopped_, true)) return;
  for (FrameworkRecorder* const recorder : recorders_) recorder->Stop(capture_id_);
}

void OnDemandCapture::Poll() {
  if (!begun_) return;
  for (FrameworkRecorder* const recorder : recorders_) recorder->Poll();
  if (stopped_) return;
  for (const WorkerIdentity& worker : Workers()) {
    const auto at = std::lower_bound(known_.begin(), known_.end(), worker);
    if (at != known_.end() && *at == worker) continue;
    known_.insert(at, worker);
    for (const std::string& name : FrameworksOf(worker)) {
      absent_.push_back({worker, name, FrameworkTraceState::kTooLate,
                         "the worker joined after the capture had begun"});
    }
  }
}

bool OnDemandCapture::IsAwaited() const {
  return std::any_of(recorders_.begin(), recorders_.end(), [this](const auto* recorder) {
    const std::vector<FrameworkTrace> traces = recorder->Traces(capture_id_);
    return std::any_of(traces.begin(), traces.end(),
                       [](const FrameworkTrace& trace) { return !IsFinal(trace.state); });
  });
}

bool OnDemandCapture::IsFileOf(std::string_view name) const {
  return std::any_of(recorders_.begin(), recorders_.end(),
                     [&](const auto* recorder) { return recorder->IsFileOf(capture_id_, name); });
}

std::vector<FrameworkTrace> OnDemandCapture::Traces() const {
  std::vector<FrameworkTrace> traces = AllTraces();
  if (traces.size() > limits::kFrameworkTracesMax) traces.resize(limits::kFrameworkTracesMax);
  return traces;
}

std::vector<FrameworkTrace> OnDemandCapture::AllTraces() const {
  std::vector<FrameworkTrace> traces = absent_;
  for (const FrameworkRecorder* const recorder : recorders_) {
    std::vector<FrameworkTrace> more = recorder->Traces(capture_id_);
    traces.insert(traces.end(), more.begin(), more.end());
  }
  std::stable_sort(traces.begin(), traces.end(),
                   [](const auto& a, const auto& b) { return a.worker < b.worker; });
  return traces;
}

void OnDemandCapture::AddRemarks(std::vector<Remark>& remarks) const {
  for (const FrameworkTrace& trace : AllTraces()) {
    if (!IsFinal(trace.state) || trace.state == FrameworkTraceState::kFileSeen) continue;
    AddRemark(RemarkKind::kNoFrameworkTrace, 1,
              fmt::format("pid {} {}: {}{}{}", trace.worker.pid, trace.framework,
                          ToString(trace.state), trace.detail.empty() ? "" : ": ", trace.detail),
              remarks);
  }
}

std::vector<std::string> OnDemandCapture::FrameworksOf(const WorkerIdentity& worker) const {
  const std::vector<std::string>& all = spec_.filter.frameworks;
  // With one framework its recorder explains what the worker lacks.
  if (all.size() < 2) return all;
  const auto mappings = proc_.Mappings(worker.pid);
  // Afterwards: until then another process may have taken the place of one that ended.
  if (!mappings.ok() || proc_.StartTimeTicks(worker.pid) != worker.start_time_ticks) return all;
  std::vector<std::string> loaded;
  std::copy_if(all.begin(), all.end(), std::back_inserter(loaded),
               [&](const std::string& name) { return HasFramework(name, *mappings); });
  return loaded.empty() ? all : loaded;
}

std::vector<WorkerIdentity> OnDemandCapture::Workers() const {
  std::vector<WorkerIdentity> workers = participants_.WorkersOf(capture_id_);
  std::erase_if(workers, [](const WorkerIdentity& worker) { return worker.pid == 0; });
  std::sort(workers.begin(), workers.end());
  workers.erase(std::unique(workers.begin(), workers.end()), workers.end());
  return workers;
}

}  // namespace neurontrace
