// SPDX-License-Identifier: Apache-2.0
#include "aggregator/operator/operator_service.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "aggregator/certificate/clock_judgement.h"
#include "aggregator/certificate/job_ranks.h"
#include "aggregator/certificate/read_certificate.h"
#include "aggregator/operator/capture_message.h"
#include "aggregator/operator/certificate_message.h"
#include "aggregator/operator/clock_message.h"
#include "aggregator/operator/hidden_captures.h"
#include "aggregator/session/inventory_words.h"
#include "base/status.h"
#include "trace/capture_selection.h"
#include "trace/limits.h"
#include "wire/agent_hello.h"
#include "wire/conversions.h"
#include "wire/field_checks.h"
#include "wire/grpc_status.h"

namespace neurontrace {
namespace {

// How often somebody who watches is told of a capture that changes all the time, and of one that
// does not, for what is counted meanwhile.
constexpr std::chrono::milliseconds kWatchIntervalMin{100};
constexpr std::chrono::milliseconds kWatchIntervalMax{500};

// As --job of a capture takes it: by any name of the job, or by KEY=VALUE.
bool IsOfNamedJob(const std::string& name, const WorkerInfo& worker) {
  if (IsOfJob(name, worker)) return true;
  const size_t equals = name.find('=');
  if (equals == std::string::npos) return false;
  const KeyValue named{name.substr(0, equals), name.substr(equals + 1)};
  return std::find(worker.job_facts.begin(), worker.job_facts.end(), named) !=
         worker.job_facts.end();
}

// Which ones a request asks for; none: all.
template <typename Request>
absl::StatusOr<std::set<std::string_view>> InstancesOf(const Request& request) {
  const auto& ids = request.instance_ids();
  RETURN_IF_ERROR(CheckCount("instance_ids", ids.size(), limits::kSelectionItemsMax));
  return std::set<std::string_view>(ids.begin(), ids.end());
}

// The number of the agent's workers that the caller may see.
uint32_t VisibleWorkers(const Caller& caller, const KnownAgent& agent) {
  if (!caller.is_limited()) return static_cast<uint32_t>(agent.workers.size());
  return static_cast<uint32_t>(
      std::count_if(agent.workers.begin(), agent.workers.end(),
                    [&caller](const auto& entry) { return MaySee(caller, entry.second); }));
}

void ToMessage(const Caller& caller, const KnownAgent& agent, v1::Agent& message) {
  ToProto(agent.info, message.mutable_hello());
  message.set_connected(agent.connection.has_value());
  message.set_last_seen_realtime_ns(agent.last_seen_realtime_ns);
  message.set_workers(VisibleWorkers(caller, agent));
}

}  // namespace

grpc::Status OperatorService::GetStatus(grpc::ServerContext* context, const v1::GetStatusRequest*,
                                        v1::GetStatusReply* reply) {
  const auto caller = deps_.caller(*context);
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  reply->set_aggregator_id(deps_.store.aggregator_id());
  reply->set_version(NEURONTRACE_VERSION);
  reply->set_started_realtime_ns(deps_.started_realtime_ns);
  reply->set_store_bytes(deps_.store.bytes());
  if (caller->is_limited()) {
    const std::vector<CaptureId> ids = deps_.store.captures().Ids();
    reply->set_captures_stored(
        static_cast<uint32_t>(std::count_if(ids.begin(), ids.end(), CapturesSeenBy(*caller))));
  } else {
    reply->set_captures_stored(static_cast<uint32_t>(deps_.store.captures().size()));
  }
  const absl::Status asked = OnSequence([&] {
    const AgentRegistry& registry = deps_.coordinator.registry();
    reply->set_agents_connected(static_cast<uint32_t>(registry.connected()));
    reply->set_agents_known(static_cast<uint32_t>(registry.agents().size()));
    uint32_t workers = 0;
    for (const auto& [id, agent] : registry.agents()) {
      ToMessage(*caller, agent, *reply->add_agents());
      workers += VisibleWorkers(*caller, agent);
    }
    reply->set_workers(workers);
    uint32_t running = 0;
    deps_.coordinator.ForEachRunning([&](const CaptureRecord& record) {
      running += CheckOwner(*caller, record.spec).ok() ? 1 : 0;
    });
    reply->set_captures_running(running);
  });
  if (!asked.ok()) return ToGrpcStatus(asked);
  const auto clocks = deps_.clocks(nullptr);
  if (!clocks.ok()) return ToGrpcStatus(clocks.status());
  for (const InstanceClock& clock : clocks->instances) *reply->add_clocks() = ToBriefMessage(clock);
  return grpc::Status::OK;
}

grpc::Status OperatorService::ListAgents(grpc::ServerContext* context, const v1::ListAgentsRequest*,
                                         v1::ListAgentsReply* reply) {
  const auto caller = deps_.caller(*context);
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  const absl::Status asked = OnSequence([&] {
    for (const auto& [id, agent] : deps_.coordinator.registry().agents()) {
      ToMessage(*caller, agent, *reply->add_agents());
    }
  });
  if (!asked.ok()) return ToGrpcStatus(asked);
  return grpc::Status::OK;
}

grpc::Status OperatorService::ListWorkers(grpc::ServerContext* context,
                                          const v1::ListWorkersRequest* request,
                                          v1::ListWorkersReply* reply) {
  const auto caller = deps_.caller(*context);
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  const auto instances = InstancesOf(*request);
  if (!instances.ok()) return ToGrpcStatus(instances.status());
  std::vector<WorkerInfo> listed;
  const absl::Status asked = OnSequence([&] {
    for (const auto& [id, agent] : deps_.coordinator.registry().agents()) {
      if (!instances->empty() && !instances->contains(agent.info.instance_id)) continue;
      for (const auto& [identity, worker] : agent.workers) {
        if (!request->job().empty() && !IsOfNamedJob(request->job(), worker)) continue;
        if (!MaySee(*caller, worker)) continue;
        listed.push_back(worker);
      }
    }
  });
  if (!asked.ok()) return ToGrpcStatus(asked);
  for (const WorkerInfo& worker : listed) ToProto(worker, reply->add_workers());
  for (const JobRanks& job : CompareRanks(listed)) {
    neurontrace::ToMessage(job, *reply->add_jobs());
  }
  if (caller->is_limited()) HideCapturesIn(CapturesSeenBy(*caller), *reply);
  return grpc::Status::OK;
}

grpc::Status OperatorService::ListClocks(grpc::ServerContext* context,
                                         const v1::ListClocksRequest* request,
                                         v1::ListClocksReply* reply) {
  const auto instances = InstancesOf(*request);
  if (!instances.ok()) return ToGrpcStatus(instances.status());
  std::optional<CaptureRecord> capture;
  if (!request->capture_id().empty()) {
    auto record = RecordFor(*context, request->capture_id());
    if (!record.ok()) return ToGrpcStatus(record.status());
    capture = *std::move(record);
  }
  const auto clocks = deps_.clocks(capture ? &*capture : nullptr);
  if (!clocks.ok()) return ToGrpcStatus(clocks.status());
  reply->set_version(clocks->version);
  reply->set_final(clocks->is_final);
  for (const InstanceClock& clock : clocks->instances) {
    if (!instances->empty() && !instances->contains(clock.instance_id)) continue;
    *reply->add_clocks() = neurontrace::ToMessage(clock);
  }
  if (!capture) return grpc::Status::OK;
  for (const OrderCheck& check : clocks->order) {
    *reply->add_order() = neurontrace::ToMessage(check);
  }
  *reply->mutable_devices() = neurontrace::ToMessage(SummaryOf(clocks->devices));
  return grpc::Status::OK;
}

MaySeeCapture OperatorService::CapturesSeenBy(const Caller& caller) {
  return [this, &caller](const CaptureId& id) {
    if (!caller.is_limited()) return true;
    const auto record = Record(id);
    return record.ok() && CheckOwner(caller, record->spec).ok();
  };
}

absl::StatusOr<CaptureId> OperatorService::Find(const Caller& caller, const std::string& text) {
  if (!caller.is_limited()) return deps_.store.captures().Find(text);
  return deps_.store.captures().Find(text, CapturesSeenBy(caller));
}

CaptureRecord OperatorService::AsSeenBy(const Caller& caller, CaptureRecord record) {
  if (!caller.is_limited()) return record;
  HideOthers(
      [&](const WorkerIdentity& identity) {
        const auto worker = deps_.store.inventory().Worker(identity);
        return worker.ok() && MaySee(caller, worker->info);
      },
      CapturesSeenBy(caller), record);
  return record;
}

absl::StatusOr<v1::Capture> OperatorService::DescribeTo(const Caller& caller, CaptureRecord record,
                                                        Extent extent) {
  record = AsSeenBy(caller, std::move(record));
  ASSIGN_OR_RETURN(v1::Capture message,
                   extent == Extent::kFull ? DescribeFully(record) : Describe(record));
  if (!caller.is_limited()) return message;
  for (std::string& warning : *message.mutable_warnings()) warning = WithoutInventory(warning);
  HideCapturesIn(CapturesSeenBy(caller), message);
  return message;
}

absl::StatusOr<CaptureRecord> OperatorService::Record(const CaptureId& id) {
  ASSIGN_OR_RETURN(const std::optional<CaptureRecord> running,
                   OnSequence([&]() -> std::optional<CaptureRecord> {
                     const CaptureRecord* const record = deps_.coordinator.Find(id);
                     return record == nullptr ? std::nullopt : std::optional(*record);
                   }));
  if (running) return *running;
  return deps_.store.captures().Get(id);
}

absl::StatusOr<v1::Capture> OperatorService::DescribePreview(const CaptureRecord& record) const {
  v1::Capture message = neurontrace::ToMessage(record, {}, deps_.clock.RealtimeNs());
  if (!HasEnded(record.state)) return message;
  ASSIGN_OR_RETURN(const PreviewRoom room, OnSequence([&] { return deps_.room_for(record); }));
  *message.mutable_preview() = ToPreview(record, room);
  return message;
}

void OperatorService::ForgetPreview(const CaptureId& id) {
  // One that is not forgotten is the reaper's.
  if (!OnSequence([&] { deps_.coordinator.Forget(id); }).ok()) return;
  // Whoever watches it besides may have been quicker; the reaper comes after those who fail.
  deps_.store.DeleteCapture(id).status().IgnoreError();
}

absl::Status OperatorService::WarnOfNobody(const CaptureRecord& record,
                                           v1::Capture& message) const {
  const bool is_awaiting = IsStanding(record.spec.mode) && record.spec.include_neuron &&
                           record.state == CaptureState::kRecording && record.workers.empty();
  if (!is_awaiting) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string inventory, OnSequence([&] {
                     return DescribeInventory(deps_.coordinator.registry(), record.spec);
                   }));
  message.add_warnings("no worker matches yet; " + inventory);
  return absl::OkStatus();
}

absl::StatusOr<v1::Capture> OperatorService::Describe(const CaptureRecord& record) const {
  if (record.spec.mode == CaptureMode::kPreview) return DescribePreview(record);
  ASSIGN_OR_RETURN(const CaptureReader::Totals totals, deps_.store.OpenCapture(record.id).Sum());
  v1::Capture message = neurontrace::ToMessage(record, totals, deps_.clock.RealtimeNs());
  // While it goes on, what is asked many times a second is only how far it is.
  if (!HasEnded(record.state)) {
    RETURN_IF_ERROR(WarnOfNobody(record, message));
    return message;
  }
  ASSIGN_OR_RETURN(const Certificate certificate, ReadCertificate(deps_.store, record));
  SetStateBy(certificate, message);
  *message.mutable_certificate() = ToBriefMessage(certificate);
  return message;
}

absl::StatusOr<v1::Capture> OperatorService::DescribeFully(const CaptureRecord& record) const {
  if (record.spec.mode == CaptureMode::kPreview) return DescribePreview(record);
  const CaptureReader reader = deps_.store.OpenCapture(record.id);
  ASSIGN_OR_RETURN(const CaptureReader::Totals totals, reader.Sum());
  ASSIGN_OR_RETURN(const std::vector<StreamRecord> streams, reader.Streams());
  ASSIGN_OR_RETURN(Certificate certificate, ReadCertificate(deps_.store, record, streams));
  ASSIGN_OR_RETURN(const CaptureClocks clocks, deps_.host_clocks(record));
  JudgeClocks(clocks, certificate);
  v1::Capture message = neurontrace::ToMessage(record, totals, deps_.clock.RealtimeNs());
  AddStreams(streams, message);
  ASSIGN_OR_RETURN(const ArtifactStore::Totals artifacts, deps_.store.artifacts().Sum(record.id));
  message.set_artifacts(artifacts.references);
  message.set_artifact_bytes(artifacts.bytes);
  message.set_artifacts_forgone(artifacts.forgone);
  RETURN_IF_ERROR(WarnOfNobody(record, message));
  SetStateBy(certificate, message);
  *message.mutable_certificate() = neurontrace::ToMessage(certificate);
  return message;
}

grpc::Status OperatorService::WatchCapture(grpc::ServerContext* context,
                                           const v1::CaptureReference* request,
                                           grpc::ServerWriter<v1::Capture>* writer) {
  const auto record = RecordFor(*context, request->capture_id());
  if (!record.ok()) return ToGrpcStatus(record.status());
  return ToGrpcStatus(Watch(*context, record->id, *writer));
}

absl::Status OperatorService::Watch(grpc::ServerContext& context, const CaptureId& id,
                                    grpc::ServerWriter<v1::Capture>& writer) {
  ASSIGN_OR_RETURN(const Caller caller, deps_.caller(context));
  ASSIGN_OR_RETURN(const auto call,
                   deps_.watches.Take(caller.name, [&context] { context.TryCancel(); }));
  while (!context.IsCancelled()) {
    const uint64_t version = deps_.watch.version();
    ASSIGN_OR_RETURN(const CaptureRecord record, Record(id));
    ASSIGN_OR_RETURN(v1::Capture message, DescribeTo(caller, record, Extent::kBrief));
    if (record.state == CaptureState::kRecording) {
      for (const OperatorClockBound& bound : deps_.clock_bounds(record)) {
        v1::WorkerClockBound& told = *message.add_clock_bounds();
        told.set_instance_id(bound.instance_id);
        told.set_bound_ns(bound.bound_ns);
      }
    }
    const bool was_told = call->Write([&] { return writer.Write(message); });
    if (was_told && HasEnded(record.state) && record.spec.mode == CaptureMode::kPreview) {
      ForgetPreview(id);
    }
    if (!was_told || HasEnded(record.state)) return call->Judge(absl::OkStatus());
    // A change is told at once, but not every one of a thousand in a row.
    const uint64_t begin_ns = deps_.clock.MonotonicNs();
    deps_.watch.WaitBeyond(version, kWatchIntervalMax);
    const std::chrono::nanoseconds waited(deps_.clock.MonotonicNs() - begin_ns);
    if (waited < kWatchIntervalMin) {
      deps_.watch.WaitBeyond(UINT64_MAX, std::chrono::duration_cast<std::chrono::milliseconds>(
                                             kWatchIntervalMin - waited));
    }
  }
  return absl::OkStatus();
}

grpc::Status OperatorService::ListCaptures(grpc::ServerContext* context,
                                           const v1::ListCapturesRequest*,
                                           v1::ListCapturesReply* reply) {
  const auto caller = deps_.caller(*context);
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  auto records = deps_.store.captures().List();
  if (!records.ok()) return ToGrpcStatus(records.status());
  std::map<CaptureId, CaptureRecord> running;
  const absl::Status asked = OnSequence([&] {
    deps_.coordinator.ForEachRunning(
        [&](const CaptureRecord& record) { running.emplace(record.id, record); });
  });
  if (!asked.ok()) return ToGrpcStatus(asked);
  for (CaptureRecord& record : *records) {
    if (!CheckOwner(*caller, record.spec).ok()) continue;
    const auto newer = running.find(record.id);
    auto message =
        DescribeTo(*caller, newer == running.end() ? record : newer->second, Extent::kBrief);
    if (!message.ok()) return ToGrpcStatus(message.status());
    *reply->add_captures() = *std::move(message);
  }
  return grpc::Status::OK;
}

grpc::Status OperatorService::GetCapture(grpc::ServerContext* context,
                                         const v1::CaptureReference* request, v1::Capture* reply) {
  const auto caller = deps_.caller(*context);
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  const auto record = RecordFor(*context, request->capture_id());
  if (!record.ok()) return ToGrpcStatus(record.status());
  auto message = DescribeTo(*caller, *record, Extent::kFull);
  if (!message.ok()) return ToGrpcStatus(message.status());
  *reply = *std::move(message);
  return grpc::Status::OK;
}

grpc::Status OperatorService::ListTriggers(grpc::ServerContext* context,
                                           const v1::ListTriggersRequest*,
                                           v1::ListTriggersReply* reply) {
  const auto caller = deps_.caller(*context);
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  auto all = OnSequence(deps_.list_triggers);
  if (!all.ok()) return ToGrpcStatus(all.status());
  if (!caller->is_limited()) {
    *reply = *std::move(all);
    return grpc::Status::OK;
  }
  // Where the file is and what is wrong with it can name other people's rules.
  for (const v1::Trigger& trigger : all->triggers()) {
    if (CheckOwner(*caller, {.job = trigger.rule().job()}).ok()) *reply->add_triggers() = trigger;
  }
  HideCapturesIn(CapturesSeenBy(*caller), *reply);
  return grpc::Status::OK;
}

}  // namespace neurontrace
