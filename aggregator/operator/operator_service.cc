// SPDX-License-Identifier: Apache-2.0
#include "aggregator/operator/operator_service.h"

#include <fmt/format.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "aggregator/certificate/clock_judgement.h"
#include "aggregator/certificate/job_ranks.h"
#include "aggregator/certificate/make_certificate.h"
#include "aggregator/operator/capture_message.h"
#include "aggregator/operator/certificate_message.h"
#include "aggregator/operator/clock_message.h"
#include "aggregator/operator/preview_message.h"
#include "aggregator/session/inventory_words.h"
#include "lib/base/status.h"
#include "lib/trace/capture_selection.h"
#include "lib/trace/limits.h"
#include "lib/trace/reserved_tags.h"
#include "lib/wire/agent_hello.h"
#include "lib/wire/conversions.h"
#include "lib/wire/field_checks.h"
#include "lib/wire/grpc_status.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

std::string Hide(const MaySeeCapture& may_see, const FieldDescriptor& field,
                 const std::string& text) {
  if (field.type() == FieldDescriptor::TYPE_STRING) return HideCaptures(text, may_see);
  const auto id = CaptureId::FromBytes(text);
  return id.ok() && !id->empty() && !may_see(*id) ? "" : text;
}

void HideIn(const MaySeeCapture& may_see, Message& message);

void HideInField(const MaySeeCapture& may_see, const FieldDescriptor& field, Message& message) {
  const Reflection& reflection = *message.GetReflection();
  const bool is_message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  if (!field.is_repeated()) {
    if (is_message) return HideIn(may_see, *reflection.MutableMessage(&message, &field));
    return reflection.SetString(&message, &field,
                                Hide(may_see, field, reflection.GetString(message, &field)));
  }
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    if (is_message) {
      HideIn(may_see, *reflection.MutableRepeatedMessage(&message, &field, i));
    } else {
      reflection.SetRepeatedString(
          &message, &field, i,
          Hide(may_see, field, reflection.GetRepeatedString(message, &field, i)));
    }
  }
}

void HideIn(const MaySeeCapture& may_see, Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    const auto type = field->cpp_type();
    if (type == FieldDescriptor::CPPTYPE_MESSAGE || type == FieldDescriptor::CPPTYPE_STRING) {
      HideInField(may_see, *field, message);
    }
  }
}

// Removes the ids of captures that `may_see` denies from every text of `message` and of the
// messages inside it, and clears fields of bytes that hold such an id. Asks once about each id.
void HideCapturesIn(const MaySeeCapture& may_see, Message& message) {
  std::map<CaptureId, bool> known;
  HideIn(
      [&](const CaptureId& id) {
        const auto [entry, is_new] = known.try_emplace(id, false);
        if (is_new) entry->second = may_see(id);
        return entry->second;
      },
      message);
}

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

// What tells people who or what began a capture has to be the aggregator's own word.
absl::Status CheckNothingForged(const v1::CaptureSpec& spec) {
  if (!spec.cause().empty()) {
    return InvalidArgument("spec.cause is set by the aggregator alone: leave it out");
  }
  for (const v1::KeyValue& label : spec.labels()) {
    if (!IsReservedTag(label.key())) continue;
    return InvalidArgument("the tag '{}' is set by the aggregator alone: choose another key",
                           label.key());
  }
  return absl::OkStatus();
}

}  // namespace

grpc::Status OperatorService::GetStatus(grpc::ServerContext* context, const v1::GetStatusRequest*,
                                        v1::GetStatusReply* reply) {
  const auto caller = deps_.access.CallerOf(*context);
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
  const auto clocks = deps_.clocks.book().Now(deps_.clock.RealtimeNs());
  if (!clocks.ok()) return ToGrpcStatus(clocks.status());
  for (const InstanceClock& clock : clocks->instances) *reply->add_clocks() = ToBriefMessage(clock);
  return grpc::Status::OK;
}

grpc::Status OperatorService::ListAgents(grpc::ServerContext* context, const v1::ListAgentsRequest*,
                                         v1::ListAgentsReply* reply) {
  const auto caller = deps_.access.CallerOf(*context);
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
  const auto caller = deps_.access.CallerOf(*context);
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
  const auto clocks = capture ? deps_.clocks.OfCapture(*capture)
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
  ASSIGN_OR_RETURN(const PreviewRoom room, OnSequence([&] {
                     return FindPreviewRoom(deps_.quota, deps_.coordinator.registry(), record);
                   }));
  *message.mutable_preview() = ToPreview(record, room);
  return message;
}

void OperatorService::ForgetPreview(const CaptureId& id) {
  // One that is not forgotten is the reaper's.
  if (!OnSequence([&] { deps_.coordinator.Forget(id); }).ok()) return;
  // Whoever watches it besides may have been quicker; the reaper comes after those who fail.
  deps_.store.DeleteCapture(id).status().IgnoreError();
}

absl::Status OperatorService::AddNoWorkerWarning(const CaptureRecord& record,
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
    RETURN_IF_ERROR(AddNoWorkerWarning(record, message));
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
  ASSIGN_OR_RETURN(const CaptureClocks clocks, deps_.clocks.HostsOfCapture(record));
  JudgeClocks(clocks, certificate);
  v1::Capture message = neurontrace::ToMessage(record, totals, deps_.clock.RealtimeNs());
  AddStreams(streams, message);
  ASSIGN_OR_RETURN(const ArtifactStore::Totals artifacts, deps_.store.artifacts().Sum(record.id));
  message.set_artifacts(artifacts.references);
  message.set_artifact_bytes(artifacts.bytes);
  message.set_artifacts_forgone(artifacts.forgone);
  RETURN_IF_ERROR(AddNoWorkerWarning(record, message));
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
  ASSIGN_OR_RETURN(const Caller caller, deps_.access.CallerOf(context));
  ASSIGN_OR_RETURN(const auto call,
                   deps_.watches.Take(caller.name, [&context] { context.TryCancel(); }));
  while (!context.IsCancelled()) {
    const uint64_t version = deps_.watch.version();
    ASSIGN_OR_RETURN(const CaptureRecord record, Record(id));
    ASSIGN_OR_RETURN(v1::Capture message, DescribeTo(caller, record, Extent::kBrief));
    if (record.state == CaptureState::kRecording) {
      for (const ClockService::HostBound& bound : deps_.clocks.BoundsOf(record)) {
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
  const auto caller = deps_.access.CallerOf(*context);
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
  const auto caller = deps_.access.CallerOf(*context);
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
  const auto caller = deps_.access.CallerOf(*context);
  if (!caller.ok()) return ToGrpcStatus(caller.status());
  auto all = OnSequence([&] { return deps_.triggers.List(); });
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

// The calls of OperatorService that change or take something: who may make them, and that they are
// written down.

absl::StatusOr<CaptureRecord> OperatorService::RecordFor(const Caller& caller,
                                                         const std::string& text,
                                                         AuditEntry& entry) {
  entry.capture = text;
  const auto found = Find(caller, text);
  // The audit log has which capture it was, and the caller not even that there is one.
  const auto id = found.ok() || !caller.is_limited() ? found : deps_.store.captures().Find(text);
  RETURN_IF_ERROR(id.ok() ? id.status() : found.status());
  entry.capture = id->ToString();
  ASSIGN_OR_RETURN(CaptureRecord record, Record(*id));
  entry.job = record.spec.job;
  const absl::Status is_owner = CheckOwner(caller, record.spec);
  if (!is_owner.ok()) return HiddenError(is_owner, found.status());
  return AsSeenBy(caller, std::move(record));
}

absl::StatusOr<CaptureRecord> OperatorService::RecordFor(const grpc::ServerContext& context,
                                                         const std::string& text) {
  ASSIGN_OR_RETURN(const Caller caller, deps_.access.CallerOf(context));
  // A look is written down only if it is refused.
  AuditEntry entry{.action = "capture.show"};
  auto record = RecordFor(caller, text, entry);
  if (absl::IsPermissionDenied(record.status())) {
    entry.caller = caller.name;
    entry.role = WordOf(caller.role);
    entry.from = context.peer();
    entry.outcome = record.status();
    deps_.access.RecordCall(entry);
  }
  if (!record.ok()) return ToldTo(record.status());
  return record;
}

grpc::Status OperatorService::Audited(
    const grpc::ServerContext& context, const AuditedCall& call,
    const std::function<absl::Status(const Caller&, AuditEntry&)>& act) {
  AuditEntry entry{.action = call.action};
  entry.from = context.peer();
  entry.capture = call.capture;
  const auto caller = deps_.access.CallerOf(context);
  if (caller.ok()) {
    entry.caller = caller->name;
    entry.role = WordOf(caller->role);
    entry.outcome =
        CheckCall(*caller, fmt::format("/neurontrace.v1.OperatorService/{}", call.method));
    if (entry.outcome.ok()) entry.outcome = act(*caller, entry);
  } else {
    entry.outcome = caller.status();
  }
  if (entry.action == "capture.start") deps_.metrics.CountAnswer(entry.outcome);
  deps_.access.RecordCall(entry);
  const absl::Status told = ToldTo(entry.outcome);
  if (told.ok() || !caller.ok() || !caller->is_limited()) return ToGrpcStatus(told);
  // The id that the caller named stays: replacing it would tell it from one that nobody has.
  const auto named = CaptureId::Parse(call.capture);
  const MaySeeCapture seen = CapturesSeenBy(*caller);
  const auto may_read = [&](const CaptureId& id) {
    return (named.ok() && *named == id) || seen(id);
  };
  const std::string words = HideCaptures(std::string(told.message()), may_read);
  return ToGrpcStatus(absl::Status(told.code(), words));
}

grpc::Status OperatorService::StartCapture(grpc::ServerContext* context,
                                           const v1::StartCaptureRequest* request,
                                           v1::Capture* reply) {
  const auto start = [&](const Caller& caller, AuditEntry& entry) -> absl::Status {
    RETURN_IF_ERROR(CheckNothingForged(request->spec()));
    ASSIGN_OR_RETURN(CaptureSpec asked, FromProto(request->spec()));
    const CaptureSpec spec = WithOwner(caller, std::move(asked));
    entry.job = spec.job;
    entry.detail = spec.name;
    RETURN_IF_ERROR(CheckOwner(caller, spec));
    deps_.quota.RefreshForCommand();
    ASSIGN_OR_RETURN(
        const CaptureRecord record, OnSequence([&] {
          return deps_.coordinator.StartCapture(
              spec, [&caller](const CaptureSpec& other) { return CheckOwner(caller, other).ok(); });
        }));
    entry.capture = record.id.ToString();
    *reply = neurontrace::ToMessage(AsSeenBy(caller, record), {}, deps_.clock.RealtimeNs());
    if (caller.is_limited()) HideCapturesIn(CapturesSeenBy(caller), *reply);
    return absl::OkStatus();
  };
  return Audited(*context, {"capture.start", "StartCapture", ""}, start);
}

grpc::Status OperatorService::StopCapture(grpc::ServerContext* context,
                                          const v1::CaptureReference* request, v1::Capture* reply) {
  const auto stop = [&](const Caller& caller, AuditEntry& entry) -> absl::Status {
    ASSIGN_OR_RETURN(const CaptureRecord known, RecordFor(caller, request->capture_id(), entry));
    auto record = OnSequence([&] { return deps_.coordinator.StopCapture(known.id); });
    // One that has ended already is answered as it is.
    if (absl::IsNotFound(record.status())) record = deps_.store.captures().Get(known.id);
    RETURN_IF_ERROR(record.status());
    ASSIGN_OR_RETURN(*reply, DescribeTo(caller, *record, Extent::kBrief));
    return absl::OkStatus();
  };
  return Audited(*context, {"capture.stop", "StopCapture", request->capture_id()}, stop);
}

grpc::Status OperatorService::DeleteCapture(grpc::ServerContext* context,
                                            const v1::CaptureReference* request,
                                            v1::DeleteCaptureReply* reply) {
  const auto remove = [&](const Caller& caller, AuditEntry& entry) -> absl::Status {
    entry.capture = request->capture_id();
    ASSIGN_OR_RETURN(const CaptureId id, Find(caller, request->capture_id()));
    entry.capture = id.ToString();
    // One whose record cannot be read can be deleted all the same, by who may delete all.
    const auto record = Record(id);
    if (record.ok()) entry.job = record->spec.job;
    RETURN_IF_ERROR(CheckOwner(caller, record.ok() ? record->spec : CaptureSpec()));
    return Delete(id, *reply);
  };
  return Audited(*context, {"capture.delete", "DeleteCapture", request->capture_id()}, remove);
}

absl::Status OperatorService::Delete(const CaptureId& id, v1::DeleteCaptureReply& reply) {
  const auto claim = deps_.leases.ClaimForDeletion(id);
  if (claim == nullptr) {
    return FailedPrecondition(
        "capture {} is being exported, or deleted already: try again when that is over",
        id.ToString());
  }
  ASSIGN_OR_RETURN(const bool is_running, OnSequence([&] {
                     deps_.coordinator.Forget(id);
                     return deps_.coordinator.FindRunning(id) != nullptr;
                   }));
  if (is_running) {
    return FailedPrecondition("capture {} is running: stop it and wait for its end first",
                              id.ToString());
  }
  ASSIGN_OR_RETURN(const auto deleted, deps_.store.DeleteCapture(id));
  reply.set_chunks(deleted.chunks);
  reply.set_bytes(deleted.bytes);
  return absl::OkStatus();
}

grpc::Status OperatorService::FireTrigger(grpc::ServerContext* context,
                                          const v1::FireTriggerRequest* request,
                                          v1::FireTriggerReply* reply) {
  const auto fire = [&](const Caller& caller, AuditEntry& entry) -> absl::Status {
    entry.detail = request->name();
    RETURN_IF_ERROR(CheckText("cause", request->cause(), limits::kDetailBytesMax));
    // What a rule captures is not of one job.
    RETURN_IF_ERROR(CheckOwner(caller, {}));
    ASSIGN_OR_RETURN(*reply, OnSequence([&] { return deps_.triggers.Fire(*request); }));
    return absl::OkStatus();
  };
  return Audited(*context, {"trigger.fire", "FireTrigger", ""}, fire);
}

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
    ASSIGN_OR_RETURN(const CaptureRecord record, RecordFor(caller, request->capture_id(), entry));
    ASSIGN_OR_RETURN(const auto call,
                     deps_.exports.Take(caller.name, [context] { context->TryCancel(); }));
    // One that a crash cuts off has been, too.
    AuditEntry begun = entry;
    begun.action = "export.begin";
    deps_.access.RecordCall(begun);
    absl::Status status =
        deps_.exporter.ExportCapture(record, *request, [&](const v1::ExportReply& reply) {
          return call->Write([&] { return !context->IsCancelled() && writer->Write(reply); });
        });
    // UNAVAILABLE means to callers that the aggregator is not there, and not a volume.
    if (absl::IsUnavailable(status)) status = absl::AbortedError(status.message());
    return call->Judge(std::move(status));
  };
  return Audited(*context, {"export", "Export", request->capture_id()}, send);
}

}  // namespace neurontrace
