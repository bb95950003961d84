// SPDX-License-Identifier: Apache-2.0
#include "aggregator/operator/operator_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "aggregator/access/visibility.h"
#include "aggregator/certificate/job_ranks.h"
#include "aggregator/operator/capture_message.h"
#include "aggregator/operator/certificate_message.h"
#include "aggregator/operator/clock_message.h"
#include "aggregator/operator/reading_reporter.h"
#include "lib/base/status.h"
#include "lib/trace/capture_selection.h"
#include "lib/trace/limits.h"
#include "lib/trace/view_limits.h"
#include "lib/wire/agent_hello.h"
#include "lib/wire/conversions.h"
#include "lib/wire/field_checks.h"
#include "lib/wire/grpc_status.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace {
namespace {

// The shortest time between two messages about a capture that changes constantly, and the longest
// for one that does not change, as its counters may.
constexpr std::chrono::milliseconds kWatchIntervalMin{100};
constexpr std::chrono::milliseconds kWatchIntervalMax{500};

// Accepts what --job of a capture accepts: any name of the job, or KEY=VALUE.
bool IsOfNamedJob(const std::string& name, const WorkerInfo& worker) {
  if (IsOfJob(name, worker)) return true;
  const size_t equals = name.find('=');
  if (equals == std::string::npos) return false;
  const KeyValue named{name.substr(0, equals), name.substr(equals + 1)};
  return std::find(worker.job_facts.begin(), worker.job_facts.end(), named) !=
         worker.job_facts.end();
}

// Returns the instances that a request names; empty: all.
template <typename Request>
absl::StatusOr<std::set<std::string_view>> InstancesOf(const Request& request) {
  const auto& ids = request.instance_ids();
  RETURN_IF_ERROR(CheckCount("instance_ids", ids.size(), limits::kSelectionItemsMax));
  return std::set<std::string_view>(ids.begin(), ids.end());
}

// Counts the agent's workers that the caller may see.
uint32_t VisibleWorkers(const Caller& caller, const KnownAgent& agent) {
  if (!caller.is_limited()) return static_cast<uint32_t>(agent.workers.size());
  return static_cast<uint32_t>(
      std::count_if(agent.workers.begin(), agent.workers.end(),
                    [&caller](const auto& entry) { return CanSee(caller, entry.second); }));
}

// Describes an agent with its visible workers only.
void ToMessage(const Caller& caller, const KnownAgent& agent, v1::Agent& message) {
  ToProto(agent.info, message.mutable_hello());
  message.set_connected(agent.connection.has_value());
  message.set_last_seen_realtime_ns(agent.last_seen_realtime_ns);
  message.set_workers(VisibleWorkers(caller, agent));
}

}  // namespace

OperatorService::OperatorService(const OperatorDeps& deps)
    : deps_(deps),
      sessions_(deps_.sequence, deps_.coordinator),
      directory_(sessions_, deps_.store),
      describer_({.sessions = sessions_,
                  .directory = directory_,
                  .store = deps_.store,
                  .storage = deps_.storage,
                  .clock = deps_.clock,
                  .clocks = deps_.clocks,
                  .quota = deps_.quota}),
      updater_({.sessions = sessions_,
                .store = deps_.store,
                .leases = deps_.leases,
                .changed_retentions = deps_.changed_retentions,
                .clock = deps_.clock}),
      artifacts_(deps_.store.artifacts()),
      calls_({.directory = directory_,
              .store = deps_.store,
              .access = deps_.access,
              .metrics = deps_.metrics}) {}

// Counts only what the caller may see. Agents and clocks are shown to every caller.
grpc::Status OperatorService::GetStatus(grpc::ServerContext* context, const v1::GetStatusRequest*,
                                        v1::GetStatusReply* reply) {
  const auto caller = deps_.access.CallerOf(*context);
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  reply->set_aggregator_id(deps_.store.aggregator_id());
  reply->set_version(NEURONTRACE_VERSION);
  reply->set_started_realtime_ns(deps_.started_realtime_ns);
  reply->set_store_bytes(deps_.store.bytes());
  if (const auto free_bytes = deps_.store.free_bytes(); free_bytes.ok()) {
    reply->set_store_free_bytes(*free_bytes);
  }
  if (const auto problem = deps_.storage.write_problem()) {
    *reply->mutable_store_problem() = neurontrace::ToMessage(*problem);
  }
  reply->set_view_url(deps_.page.PageUrl());
  if (caller->is_limited()) {
    const std::vector<CaptureId> ids = deps_.store.captures().Ids();
    reply->set_captures_stored(
        static_cast<uint32_t>(std::count_if(ids.begin(), ids.end(), directory_.SeenBy(*caller))));
  } else {
    reply->set_captures_stored(static_cast<uint32_t>(deps_.store.captures().size()));
  }
  // One visit of the sequence collects everything, so the numbers belong to one moment.
  const absl::Status asked = sessions_.Run([&](Coordinator& coordinator) {
    const AgentRegistry& registry = coordinator.registry();
    reply->set_agents_connected(static_cast<uint32_t>(registry.connected()));
    reply->set_agents_known(static_cast<uint32_t>(registry.agents().size()));
    uint32_t workers = 0;
    for (const auto& [id, agent] : registry.agents()) {
      ToMessage(*caller, agent, *reply->add_agents());
      workers += VisibleWorkers(*caller, agent);
    }
    reply->set_workers(workers);
    uint32_t running = 0;
    coordinator.ForEachRunning([&](const CaptureRecord& record) {
      running += CheckOwner(*caller, record.spec).ok() ? 1 : 0;
    });
    reply->set_captures_running(running);
  });
  if (!asked.ok()) return ToGrpcStatus(asked);
  const auto clocks = deps_.clocks.book().Now(deps_.clock.RealtimeNs());
  if (!clocks.ok()) return ToGrpcStatus(clocks.status());
  for (const InstanceClock& clock : clocks->instances) *reply->add_clocks() = ToBriefMessage(clock);
  return grpc::Status::OK;
}

// Agents are shown to every caller; only their workers are counted by what the caller may see.
grpc::Status OperatorService::ListAgents(grpc::ServerContext* context, const v1::ListAgentsRequest*,
                                         v1::ListAgentsReply* reply) {
  const auto caller = deps_.access.CallerOf(*context);
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  const absl::Status asked = sessions_.Run([&](Coordinator& coordinator) {
    for (const auto& [id, agent] : coordinator.registry().agents()) {
      ToMessage(*caller, agent, *reply->add_agents());
    }
  });
  if (!asked.ok()) return ToGrpcStatus(asked);
  return grpc::Status::OK;
}

// Workers are copied on the sequence and converted on this thread.
grpc::Status OperatorService::ListWorkers(grpc::ServerContext* context,
                                          const v1::ListWorkersRequest* request,
                                          v1::ListWorkersReply* reply) {
  const auto caller = deps_.access.CallerOf(*context);
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  const auto instances = InstancesOf(*request);
  if (!instances.ok()) return ToGrpcStatus(instances.status());
  std::vector<WorkerInfo> listed;
  const absl::Status asked = sessions_.Run([&](Coordinator& coordinator) {
    for (const auto& [id, agent] : coordinator.registry().agents()) {
      if (!instances->empty() && !instances->contains(agent.info.instance_id)) continue;
      for (const auto& [identity, worker] : agent.workers) {
        if (!request->job().empty() && !IsOfNamedJob(request->job(), worker)) continue;
        if (!CanSee(*caller, worker)) continue;
        listed.push_back(worker);
      }
    }
  });
  if (!asked.ok()) return ToGrpcStatus(asked);
  // Conversion and comparison of ranks take time, and the sequence is not kept waiting for them.
  for (const WorkerInfo& worker : listed) ToProto(worker, reply->add_workers());
  for (const JobRanks& job : CompareRanks(listed)) {
    neurontrace::ToMessage(job, *reply->add_jobs());
  }
  directory_.HideFrom(*caller, *reply);
  return grpc::Status::OK;
}

// With a capture: its clocks and checks. Without one: the present clocks.
grpc::Status OperatorService::ListClocks(grpc::ServerContext* context,
                                         const v1::ListClocksRequest* request,
                                         v1::ListClocksReply* reply) {
  const auto instances = InstancesOf(*request);
  if (!instances.ok()) return ToGrpcStatus(instances.status());
  std::optional<CaptureRecord> capture;
  if (!request->capture_id().empty()) {
    auto record = calls_.RecordFor(*context, request->capture_id());
    if (!record.ok()) return ToGrpcStatus(record.status());
    capture = *std::move(record);
  }
  const auto clocks = capture ? deps_.clocks.ForCapture(*capture)
                              : deps_.clocks.book().Now(deps_.clock.RealtimeNs());
  if (!clocks.ok()) return ToGrpcStatus(clocks.status());
  reply->set_version(clocks->version);
  reply->set_final(clocks->is_final);
  for (const InstanceClock& clock : clocks->instances) {
    if (!instances->empty() && !instances->contains(clock.instance_id)) continue;
    *reply->add_clocks() = ToMessage(clock);
  }
  if (!capture) return grpc::Status::OK;
  for (const OrderCheck& check : clocks->order) {
    *reply->add_order() = ToMessage(check);
  }
  *reply->mutable_devices() = ToMessage(SummaryOf(clocks->devices));
  return grpc::Status::OK;
}

// The client has the result, and nothing else needs the preview.
void OperatorService::ForgetPreview(const CaptureId& id) {
  // If this fails, retention deletes the preview later.
  if (!sessions_.Run([&](Coordinator& coordinator) { coordinator.Forget(id); }).ok()) return;
  // Another call that watches it may have been quicker.
  deps_.store.DeleteCapture(id).status().IgnoreError();
}

grpc::Status OperatorService::WatchCapture(grpc::ServerContext* context,
                                           const v1::CaptureReference* request,
                                           grpc::ServerWriter<v1::Capture>* writer) {
  const auto record = calls_.RecordFor(*context, request->capture_id());
  if (!record.ok()) return ToGrpcStatus(record.status());
  return ToGrpcStatus(Watch(*context, record->id, *writer));
}

// Ends when the capture has ended, when the client is gone, or when it has stopped reading.
absl::Status OperatorService::Watch(grpc::ServerContext& context, const CaptureId& id,
                                    grpc::ServerWriter<v1::Capture>& writer) {
  ASSIGN_OR_RETURN(const Caller caller, deps_.access.CallerOf(context));
  ASSIGN_OR_RETURN(const auto call,
                   // Gives up the place when this function returns, however it does.
                   deps_.watches.Take(caller.name, [&context] { context.TryCancel(); }));
  while (!context.IsCancelled()) {
    // Before the record is read: a change in between then ends the wait below at once.
    const uint64_t version = deps_.watch.version();
    ASSIGN_OR_RETURN(const CaptureRecord record, directory_.Get(id));
    ASSIGN_OR_RETURN(v1::Capture message,
                     describer_.Describe(caller, record, CaptureDescriber::Extent::kBrief));
    if (record.state == CaptureState::kRecording) {
      for (const ClockService::HostBound& bound : deps_.clocks.BoundsOf(record)) {
        v1::WorkerClockBound& told = *message.add_clock_bounds();
        told.set_instance_id(bound.instance_id);
        told.set_bound_ns(bound.bound_ns);
      }
    }
    const bool is_reported = call->Write([&] { return writer.Write(message); });
    if (is_reported && HasEnded(record.state) && record.spec.mode == CaptureMode::kPreview) {
      ForgetPreview(id);
    }
    if (!is_reported || HasEnded(record.state)) return call->Judge(absl::OkStatus());
    // A change is sent at once, but not each of a thousand in a row.
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

// Stored records give the list; running captures are replaced by their present state.
grpc::Status OperatorService::ListCaptures(grpc::ServerContext* context,
                                           const v1::ListCapturesRequest*,
                                           v1::ListCapturesReply* reply) {
  const auto caller = deps_.access.CallerOf(*context);
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  auto records = deps_.store.captures().List();
  if (!records.ok()) return ToGrpcStatus(records.status());
  std::map<CaptureId, CaptureRecord> running;
  const absl::Status asked = sessions_.Run([&](Coordinator& coordinator) {
    coordinator.ForEachRunning(
        [&](const CaptureRecord& record) { running.emplace(record.id, record); });
  });
  if (!asked.ok()) return ToGrpcStatus(asked);
  for (CaptureRecord& record : *records) {
    if (!CheckOwner(*caller, record.spec).ok()) continue;
    const auto newer = running.find(record.id);
    auto message = describer_.Describe(*caller, newer == running.end() ? record : newer->second,
                                       CaptureDescriber::Extent::kBrief);
    if (!message.ok()) return ToGrpcStatus(message.status());
    *reply->add_captures() = *std::move(message);
  }
  return grpc::Status::OK;
}

// Both checks of the caller are needed: RecordFor hides other captures, and Describe hides other
// workers.
grpc::Status OperatorService::GetCapture(grpc::ServerContext* context,
                                         const v1::CaptureReference* request, v1::Capture* reply) {
  const auto caller = deps_.access.CallerOf(*context);
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  const auto record = calls_.RecordFor(*context, request->capture_id());
  if (!record.ok()) return ToGrpcStatus(record.status());
  auto message = describer_.Describe(*caller, *record, CaptureDescriber::Extent::kFull);
  if (!message.ok()) return ToGrpcStatus(message.status());
  *reply = *std::move(message);
  return grpc::Status::OK;
}

// A rule is shown to the callers who may see its job.
grpc::Status OperatorService::ListTriggers(grpc::ServerContext* context,
                                           const v1::ListTriggersRequest*,
                                           v1::ListTriggersReply* reply) {
  const auto caller = deps_.access.CallerOf(*context);
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  auto all = sessions_.Run([&](Coordinator&) { return deps_.triggers.List(); });
  if (!all.ok()) return ToGrpcStatus(all.status());
  if (!caller->is_limited()) {
    *reply = *std::move(all);
    return grpc::Status::OK;
  }
  // The path of the file and its errors can name other people's rules, so only rules are copied.
  for (const v1::Trigger& trigger : all->triggers()) {
    if (CheckOwner(*caller, {.selection = {.job = trigger.rule().job()}}).ok())
      *reply->add_triggers() = trigger;
  }
  directory_.HideFrom(*caller, *reply);
  return grpc::Status::OK;
}

// The order matters: the request is checked before the quota is read, and the quota before the
// sequence is asked.
grpc::Status OperatorService::StartCapture(grpc::ServerContext* context,
                                           const v1::StartCaptureRequest* request,
                                           v1::Capture* reply) {
  const auto start = [&](const Caller& caller, AuditEntry& entry) -> absl::Status {
    RETURN_IF_ERROR(CheckNoReservedFields(request->spec()));
    ASSIGN_OR_RETURN(CaptureSpec asked, FromProto(request->spec()));
    const CaptureSpec spec = WithOwner(caller, std::move(asked));
    entry.job = spec.selection.job;
    entry.detail = spec.name;
    RETURN_IF_ERROR(CheckOwner(caller, spec));
    deps_.quota.RefreshForCommand();
    ASSIGN_OR_RETURN(const CaptureRecord record, sessions_.Run([&](Coordinator& coordinator) {
      return coordinator.StartCapture(
          spec, [&caller](const CaptureSpec& other) { return CheckOwner(caller, other).ok(); });
    }));
    entry.capture = record.id.ToString();
    *reply =
        neurontrace::ToMessage(directory_.AsSeenBy(caller, record), {}, deps_.clock.RealtimeNs());
    directory_.HideFrom(caller, *reply);
    return absl::OkStatus();
  };
  return calls_.Run(*context, {"capture.start", "StartCapture", ""}, start);
}

// Returns as soon as the stop is decided. The capture ends later, and clients watch it.
grpc::Status OperatorService::StopCapture(grpc::ServerContext* context,
                                          const v1::CaptureReference* request, v1::Capture* reply) {
  const auto stop = [&](const Caller& caller, AuditEntry& entry) -> absl::Status {
    ASSIGN_OR_RETURN(const CaptureRecord known,
                     calls_.RecordFor(caller, request->capture_id(), entry));
    auto record =
        sessions_.Run([&](Coordinator& coordinator) { return coordinator.StopCapture(known.id); });
    // Stopping a capture that has ended already succeeds and changes nothing.
    if (absl::IsNotFound(record.status())) record = deps_.store.captures().Get(known.id);
    RETURN_IF_ERROR(record.status());
    ASSIGN_OR_RETURN(*reply,
                     describer_.Describe(caller, *record, CaptureDescriber::Extent::kBrief));
    return absl::OkStatus();
  };
  return calls_.Run(*context, {"capture.stop", "StopCapture", request->capture_id()}, stop);
}

// Does not use RecordFor, which fails if the record cannot be read.
grpc::Status OperatorService::DeleteCapture(grpc::ServerContext* context,
                                            const v1::CaptureReference* request,
                                            v1::DeleteCaptureReply* reply) {
  const auto remove = [&](const Caller& caller, AuditEntry& entry) -> absl::Status {
    entry.capture = request->capture_id();
    ASSIGN_OR_RETURN(const CaptureId id, directory_.Find(caller, request->capture_id()));
    entry.capture = id.ToString();
    // A capture whose record cannot be read can still be deleted, by callers who may delete any: an
    // empty spec belongs to nobody.
    const auto record = directory_.Get(id);
    if (record.ok()) entry.job = record->spec.selection.job;
    RETURN_IF_ERROR(CheckOwner(caller, record.ok() ? record->spec : CaptureSpec()));
    return Delete(id, *reply);
  };
  return calls_.Run(*context, {"capture.delete", "DeleteCapture", request->capture_id()}, remove);
}

// Three steps: no export may begin, the coordinator must not use the capture, and then it is
// deleted.
absl::Status OperatorService::Delete(const CaptureId& id, v1::DeleteCaptureReply& reply) {
  // Held to the end, so that no export begins meanwhile.
  const auto claim = deps_.leases.ClaimForDeletion(id);
  if (claim == nullptr) {
    return FailedPrecondition("capture {} is being exported, changed or deleted; try again later",
                              id.ToString());
  }
  ASSIGN_OR_RETURN(const bool is_running, sessions_.Run([&](Coordinator& coordinator) {
    coordinator.Forget(id);
    return coordinator.FindRunning(id) != nullptr;
  }));
  if (is_running) {
    return FailedPrecondition("capture {} is running; stop it and wait for its end first",
                              id.ToString());
  }
  ASSIGN_OR_RETURN(const auto deleted, deps_.store.DeleteCapture(id));
  reply.set_chunks(deleted.chunks);
  reply.set_bytes(deleted.bytes);
  return absl::OkStatus();
}

// The name, the star, the tags and the retention are all that people may change of a capture that
// exists.
grpc::Status OperatorService::UpdateCapture(grpc::ServerContext* context,
                                            const v1::UpdateCaptureRequest* request,
                                            v1::Capture* reply) {
  const auto change = [&](const Caller& caller, AuditEntry& entry) -> absl::Status {
    const CaptureUpdate update = UpdateOf(*request);
    RETURN_IF_ERROR(update.Check());
    entry.detail = update.ToString();
    ASSIGN_OR_RETURN(const CaptureRecord known,
                     calls_.RecordFor(caller, request->capture_id(), entry));
    ASSIGN_OR_RETURN(CaptureRecord record, updater_.Update(known.id, update, caller));
    ASSIGN_OR_RETURN(
        *reply, describer_.Describe(caller, std::move(record), CaptureDescriber::Extent::kBrief));
    return absl::OkStatus();
  };
  return calls_.Run(*context, {"capture.update", "UpdateCapture", request->capture_id()}, change);
}

// Waits for the engine's answer, which is immediate.
grpc::Status OperatorService::FireTrigger(grpc::ServerContext* context,
                                          const v1::FireTriggerRequest* request,
                                          v1::FireTriggerReply* reply) {
  const auto fire = [&](const Caller& caller, AuditEntry& entry) -> absl::Status {
    entry.detail = request->name();
    RETURN_IF_ERROR(CheckText("cause", request->cause(), limits::kDetailBytesMax));
    // A rule is not limited to one job, so neither may the caller be.
    RETURN_IF_ERROR(CheckOwner(caller, {}));
    ASSIGN_OR_RETURN(*reply,
                     sessions_.Run([&](Coordinator&) { return deps_.triggers.Fire(*request); }));
    return absl::OkStatus();
  };
  return calls_.Run(*context, {"trigger.fire", "FireTrigger", ""}, fire);
}

// The call keeps its thread until the export is done or the client stops reading.
grpc::Status OperatorService::Export(grpc::ServerContext* context, const v1::ExportRequest* request,
                                     grpc::ServerWriter<v1::ExportReply>* writer) {
  const auto send = [&](const Caller& caller, AuditEntry& entry) -> absl::Status {
    entry.detail = request->destination();
    if (!request->destination().empty() && caller.role < Role::kOperator) {
      return absl::PermissionDeniedError(
          fmt::format("'{}' has the role viewer; exports that the aggregator writes (--to) need "
                      "operator or higher",
                      caller.name));
    }
    ASSIGN_OR_RETURN(const CaptureRecord record,
                     calls_.RecordFor(caller, request->capture_id(), entry));
    ASSIGN_OR_RETURN(const auto call,
                     deps_.exports.Take(caller.name, [context] { context->TryCancel(); }));
    // An export that a crash interrupts must be in the log, too.
    AuditEntry begun = entry;
    begun.action = "export.begin";
    deps_.access.RecordCall(begun);
    absl::Status status =
        deps_.exporter.ExportCapture(record, *request, [&](const v1::ExportReply& reply) {
          return call->Write([&] { return !context->IsCancelled() && writer->Write(reply); });
        });
    // To callers UNAVAILABLE means that the aggregator is not reachable, and they would retry.
    if (absl::IsUnavailable(status)) status = absl::AbortedError(status.message());
    return call->Judge(std::move(status));
  };
  return calls_.Run(*context, {"export", "Export", request->capture_id()}, send);
}

// A rule is shown to the callers who may see its job.
grpc::Status OperatorService::ListStandingExports(grpc::ServerContext* context,
                                                  const v1::ListStandingExportsRequest*,
                                                  v1::ListStandingExportsReply* reply) {
  const auto caller = deps_.access.CallerOf(*context);
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  const v1::ListStandingExportsReply all = deps_.standing_exports.List();
  for (const v1::StandingExport& rule : all.exports()) {
    if (CheckOwner(*caller, {.selection = {.job = rule.job()}}).ok()) *reply->add_exports() = rule;
  }
  directory_.HideFrom(*caller, *reply);
  return grpc::Status::OK;
}

grpc::Status OperatorService::ListArtifacts(grpc::ServerContext* context,
                                            const v1::CaptureReference* request,
                                            v1::ListArtifactsReply* reply) {
  const auto caller = deps_.access.CallerOf(*context);
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  const auto record = calls_.RecordFor(*context, request->capture_id());
  if (!record.ok()) return ToGrpcStatus(record.status());
  auto list = artifacts_.List(*caller, *record);
  if (!list.ok()) return ToGrpcStatus(list.status());
  *reply = *std::move(list);
  return grpc::Status::OK;
}

// Compiled models leave the aggregator here, so this is logged as exports are.
grpc::Status OperatorService::GetArtifact(grpc::ServerContext* context,
                                          const v1::GetArtifactRequest* request,
                                          grpc::ServerWriter<v1::GetArtifactReply>* writer) {
  const auto send = [&](const Caller& caller, AuditEntry& entry) -> absl::Status {
    ASSIGN_OR_RETURN(const CaptureRecord record,
                     calls_.RecordFor(caller, request->capture_id(), entry));
    ASSIGN_OR_RETURN(const ArtifactReference artifact,
                     artifacts_.Find(caller, record, request->sha256()));
    entry.detail = artifact.place.path();
    ASSIGN_OR_RETURN(const auto call,
                     deps_.exports.Take(caller.name, [context] { context->TryCancel(); }));
    // Held to the end, so that the capture is not deleted meanwhile.
    const ExportLeases::Lease lease = deps_.leases.Take(record.id);
    if (lease == nullptr) return NotFound("capture {} is being deleted", record.id.ToString());
    return call->Judge(artifacts_.Read(artifact, [&](const v1::GetArtifactReply& reply) {
      return call->Write([&] { return !context->IsCancelled() && writer->Write(reply); });
    }));
  };
  return calls_.Run(*context, {"artifact.read", "GetArtifact", request->capture_id()}, send);
}

// Reading a capture is what every viewer may do all the time, so it is not in the audit log.
grpc::Status OperatorService::GetView(grpc::ServerContext* context, const v1::ViewRequest* request,
                                      grpc::ServerWriter<v1::ViewReply>* writer) {
  const auto caller = deps_.access.CallerOf(*context);
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  const auto record = calls_.RecordFor(*context, request->capture_id());
  if (!record.ok()) return ToGrpcStatus(record.status());
  const auto call = deps_.views.Take(caller->name, [context] { context->TryCancel(); });
  if (!call.ok()) return ToGrpcStatus(call.status());
  const auto answer = deps_.viewer.View(*record, request->what(), request->query(),
                                        [context] { return context->IsCancelled(); });
  if (!answer.ok()) return ToGrpcStatus(answer.status());
  v1::ViewReply part;
  for (size_t at = 0; at < answer->size(); at += limits::kViewPartBytes) {
    part.set_data(answer->substr(at, limits::kViewPartBytes));
    if (!(*call)->Write([&] { return writer->Write(part); })) break;
  }
  return ToGrpcStatus((*call)->Judge(absl::OkStatus()));
}

// Reading a capture is not in the audit log, as with GetView.
grpc::Status OperatorService::Explain(grpc::ServerContext* context,
                                      const v1::ExplainRequest* request, v1::InsightReport* reply) {
  const auto caller = deps_.access.CallerOf(*context);
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  const absl::Status status = request->capture_id().empty()
                                  ? ExplainWatch(*caller, *request, *reply)
                                  : ExplainStored(*context, *request, nullptr, *reply);
  if (status.ok()) directory_.HideFrom(*caller, *reply);
  return ToGrpcStatus(status);
}

grpc::Status OperatorService::ExplainCapture(grpc::ServerContext* context,
                                             const v1::ExplainRequest* request,
                                             grpc::ServerWriter<v1::ExplainReply>* writer) {
  const auto caller = deps_.access.CallerOf(*context);
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  if (request->capture_id().empty()) {
    return ToGrpcStatus(InvalidArgument("capture_id: empty; Explain answers for the watch"));
  }
  v1::InsightReport report;
  return ToGrpcStatus(ExplainStored(*context, *request, writer, report));
}

absl::Status OperatorService::ExplainStored(grpc::ServerContext& context,
                                            const v1::ExplainRequest& request,
                                            grpc::ServerWriter<v1::ExplainReply>* writer,
                                            v1::InsightReport& report) {
  RETURN_IF_ERROR(CheckText("job", request.job(), limits::kDetailBytesMax));
  ASSIGN_OR_RETURN(const Caller caller, deps_.access.CallerOf(context));
  ASSIGN_OR_RETURN(const CaptureRecord record, calls_.RecordFor(context, request.capture_id()));
  // As long as an export, which reads the same chunks.
  ASSIGN_OR_RETURN(const auto call,
                   deps_.exports.Take(caller.name, [&context] { context.TryCancel(); }));
  ReadingReporter reporter(context, *call, writer);
  auto explained = deps_.explainer.Explain(record, request, &reporter);
  RETURN_IF_ERROR(call->Judge(explained.status()));
  report = *std::move(explained);
  RETURN_IF_ERROR(AddStacks(caller, record.id, request.job(), *report.mutable_stacks()));
  if (writer == nullptr) return absl::OkStatus();
  directory_.HideFrom(caller, report);
  v1::ExplainReply reply;
  *reply.mutable_report() = report;
  call->Write([&] { return writer->Write(reply); });
  return call->Judge(absl::OkStatus());
}

// The watch records every job, so a caller with limits has to name one of its own.
absl::Status OperatorService::ExplainWatch(const Caller& caller, const v1::ExplainRequest& request,
                                           v1::InsightReport& reply) {
  RETURN_IF_ERROR(CheckText("job", request.job(), limits::kDetailBytesMax));
  if (request.begin_ns() != 0 || request.end_ns() != 0) {
    return InvalidArgument(
        "begin_ns, end_ns: the watch answers for now; name a capture to choose a window");
  }
  RETURN_IF_ERROR(CheckOwner(caller, {.selection = {.job = request.job()}}));
  if (deps_.live_insight == nullptr) {
    return FailedPrecondition("no watch is on; start it with `neurontrace watch on`");
  }
  ASSIGN_OR_RETURN(reply, deps_.live_insight->Now(request.job()));
  // The watch may end at this moment.
  const auto watch = RunningWatch(request.job());
  if (!watch.ok()) return absl::OkStatus();
  return AddStacks(caller, watch->id, request.job(), *reply.mutable_stacks());
}

absl::Status OperatorService::AddStacks(
    const Caller& caller, const CaptureId& capture, const std::string& job,
    google::protobuf::RepeatedPtrField<v1::StacksReport>& stacks) {
  ASSIGN_OR_RETURN(const std::vector<v1::StacksReport> reports, deps_.stacks.Reports(capture));
  for (const v1::StacksReport& report : reports) {
    if (!job.empty() && report.job() != job) continue;
    // Workers of several jobs have stacks of several owners.
    if (CheckOwner(caller, {.selection = {.job = report.job()}}).ok()) *stacks.Add() = report;
  }
  return absl::OkStatus();
}

absl::StatusOr<CaptureRecord> OperatorService::RunningWatch(const std::string& job) const {
  return sessions_.Run([&](Coordinator& coordinator) -> absl::StatusOr<CaptureRecord> {
    std::optional<CaptureRecord> newest;
    coordinator.ForEachRunning([&](const CaptureRecord& record) {
      const std::string& of = record.spec.selection.job;
      if (!record.spec.watch || (!job.empty() && !of.empty() && of != job)) return;
      if (!newest || record.started_realtime_ns > newest->started_realtime_ns) newest = record;
    });
    if (newest) return *std::move(newest);
    return FailedPrecondition(
        "no watch is on; start it with `neurontrace watch on`, or name a "
        "capture");
  });
}

grpc::Status OperatorService::CollectStacks(grpc::ServerContext* context,
                                            const v1::CollectStacksRequest* request,
                                            v1::GetStacksReply* reply) {
  const auto collect = [&](const Caller& caller, AuditEntry& entry) -> absl::Status {
    entry.job = request->job();
    RETURN_IF_ERROR(CheckText("job", request->job(), limits::kDetailBytesMax));
    RETURN_IF_ERROR(
        CheckCount("worker_gids", request->worker_gids_size(), limits::kSelectionItemsMax));
    CaptureSpec chosen;
    chosen.selection.job = request->job();
    for (const v1::GidRange& range : request->worker_gids()) {
      chosen.selection.worker_gids.push_back({range.first(), range.last()});
    }
    absl::StatusOr<CaptureRecord> record =
        request->capture_id().empty() ? RunningWatch(request->job())
                                      : calls_.RecordFor(caller, request->capture_id(), entry);
    RETURN_IF_ERROR(record.status());
    entry.capture = record->id.ToString();
    ASSIGN_OR_RETURN(const v1::StacksReport report, sessions_.Run([&](Coordinator& coordinator) {
      std::vector<WorkerIdentity> workers;
      std::set<WorkerIdentity> recorded;
      for (const CaptureWorkerStatus& status : record->workers) {
        if (!status.framework) recorded.insert(status.worker);
      }
      for (const auto& [agent_id, agent] : coordinator.registry().agents()) {
        for (const auto& [identity, worker] :
             agent.connection ? agent.workers : agent.last_workers) {
          if (recorded.contains(identity) && CanSee(caller, worker) && Selects(chosen, worker)) {
            workers.push_back(identity);
          }
        }
      }
      return deps_.stacks.Collect(record->id, "asked for by " + caller.name, std::move(workers));
    }));
    entry.detail = fmt::format("{} workers", report.members_size());
    *reply->add_stacks() = report;
    return absl::OkStatus();
  };
  return calls_.Run(*context, {"stacks.collect", "CollectStacks", request->capture_id()}, collect);
}

grpc::Status OperatorService::GetStacks(grpc::ServerContext* context,
                                        const v1::CaptureReference* request,
                                        v1::GetStacksReply* reply) {
  const auto caller = deps_.access.CallerOf(*context);
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  const auto record = calls_.RecordFor(*context, request->capture_id());
  if (!record.ok()) return ToGrpcStatus(record.status());
  return ToGrpcStatus(AddStacks(*caller, record->id, "", *reply->mutable_stacks()));
}

}  // namespace neurontrace
