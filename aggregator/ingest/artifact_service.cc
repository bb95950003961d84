// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/artifact_service.h"

#include <prometheus/counter.h>

#include <memory>
#include <string>
#include <utility>

#include "aggregator/ingest/refused_call.h"
#include "lib/base/clean_text.h"
#include "lib/base/stall_watch.h"
#include "lib/base/status.h"
#include "lib/health/metric_builders.h"
#include "lib/trace/artifact_limits.h"
#include "lib/trace/limits.h"
#include "lib/wire/field_checks.h"
#include "lib/wire/grpc_status.h"

namespace neurontrace {
namespace {

// Returns the label of a refusal in metrics, or null for outcomes that refuse nothing.
const char* ReasonOf(v1::ArtifactOutcome outcome) {
  switch (outcome) {
    case v1::ARTIFACT_OUTCOME_UNKNOWN_CAPTURE:
      return "unknown capture";
    case v1::ARTIFACT_OUTCOME_TOO_LARGE:
      return "too large";
    case v1::ARTIFACT_OUTCOME_TOO_MANY:
      return "too many";
    case v1::ARTIFACT_OUTCOME_FULL:
      return "full";
    case v1::ARTIFACT_OUTCOME_DIFFERENT:
      return "different";
    default:
      return nullptr;
  }
}

// Makes an answer without an offset. `detail` is for the agent's log.
v1::ArtifactAnswer AnswerWith(v1::ArtifactOutcome outcome, std::string detail = "") {
  v1::ArtifactAnswer answer;
  answer.set_outcome(outcome);
  answer.set_detail(std::move(detail));
  return answer;
}

// Checks the fields that offers and notes have in common. Fails with INVALID_ARGUMENT and names the
// field. An empty root is valid, because it means that the artifact belongs to no inspect
// directory.
template <typename Message>
absl::Status CheckSender(const Message& message) {
  if (message.agent_id().empty()) return InvalidArgument("artifact.agent_id is empty");
  RETURN_IF_ERROR(CheckIdentityText("artifact.agent_id", message.agent_id()));
  if (!message.root().empty() && !IsArtifactRoot(message.root())) {
    return InvalidArgument("artifact: invalid hash of an inspect directory, with {} bytes",
                           message.root().size());
  }
  return absl::OkStatus();
}

}  // namespace

ArtifactMetrics::ArtifactMetrics(prometheus::Registry& registry)
    : references(MakeCounter(registry, "neurontrace_aggregator_artifacts_kept_total",
                             "Artifacts added to captures, counted per capture and place")),
      received(MakeCounter(registry, "neurontrace_aggregator_artifacts_received_total",
                           "Artifact contents received completely")),
      bytes_received(MakeCounter(registry, "neurontrace_aggregator_artifact_bytes_total",
                                 "Bytes of artifacts received, including aborted calls")),
      known(MakeCounter(registry, "neurontrace_aggregator_artifacts_known_total",
                        "Artifacts not sent because their content was already stored")),
      stalled(MakeCounter(registry, "neurontrace_aggregator_artifact_uploads_stalled_total",
                          "Artifact uploads ended because they were too slow")),
      forgone(MakeCounter(registry, "neurontrace_aggregator_artifacts_abandoned_total",
                          "Artifacts that agents declined to send")),
      refused(MakeCounterFamily(registry, "neurontrace_aggregator_artifacts_refused_total",
                                "Refused offers of artifacts")) {}

void ArtifactMetrics::CountRefused(v1::ArtifactOutcome outcome) {
  if (const char* const reason = ReasonOf(outcome)) refused.Add({{"reason", reason}}).Increment();
}

absl::StatusOr<ArtifactReference> FromProto(const v1::ArtifactOffer& offer) {
  RETURN_IF_ERROR(CheckSender(offer));
  ArtifactReference reference;
  ASSIGN_OR_RETURN(reference.capture_id, CaptureId::FromBytes(offer.capture_id()));
  reference.agent_id = offer.agent_id();
  reference.root = offer.root();
  ASSIGN_OR_RETURN(reference.place,
                   MakeArtifactPlace(offer.directory(), offer.session(), offer.name()));
  if (reference.place.kind == ArtifactKind::kMergedStacks) {
    return InvalidArgument("artifact: merged stacks are made by the aggregator alone");
  }
  if (offer.sha256().size() != kSha256Bytes) {
    return InvalidArgument("artifact: invalid hash of {} bytes", offer.sha256().size());
  }
  reference.sha256 = offer.sha256();
  reference.bytes = offer.bytes();
  reference.modified_realtime_ns = offer.modified_realtime_ns();
  return reference;
}

// The size is not limited here: an artifact may have been forgone because it is too large.
absl::StatusOr<ArtifactForgone> FromProto(const v1::ArtifactForgone& message) {
  RETURN_IF_ERROR(CheckSender(message));
  ArtifactForgone forgone;
  ASSIGN_OR_RETURN(forgone.capture_id, CaptureId::FromBytes(message.capture_id()));
  forgone.agent_id = message.agent_id();
  forgone.root = message.root();
  ASSIGN_OR_RETURN(forgone.place,
                   MakeArtifactPlace(message.directory(), message.session(), message.name()));
  forgone.bytes = message.bytes();
  forgone.reason = CleanText(message.reason(), limits::kArtifactReasonBytesMax);
  return forgone;
}

grpc::Status ArtifactService::Answer(absl::StatusOr<v1::ArtifactAnswer> answer,
                                     v1::ArtifactAnswer& reply) {
  if (!answer.ok()) return ToGrpcStatus(answer.status());
  metrics_.CountRefused(answer->outcome());
  reply = *std::move(answer);
  return grpc::Status::OK;
}

// Safe to repeat: an offer that was answered before the connection broke is stored once.
absl::StatusOr<v1::ArtifactAnswer> ArtifactService::Refer(const ArtifactReference& reference) {
  if (reference.bytes > limits::kArtifactBytesMax) {
    return AnswerWith(v1::ARTIFACT_OUTCOME_TOO_LARGE,
                      fmt::format("at most {} bytes", limits::kArtifactBytesMax));
  }
  ASSIGN_OR_RETURN(const ArtifactStore::Outcome outcome, store_.Refer(reference));
  switch (outcome) {
    case ArtifactStore::Outcome::kKept:
      metrics_.references.Increment();
      return AnswerWith(v1::ARTIFACT_OUTCOME_KEPT);
    case ArtifactStore::Outcome::kUnknownCapture:
      return AnswerWith(v1::ARTIFACT_OUTCOME_UNKNOWN_CAPTURE);
    case ArtifactStore::Outcome::kTooMany:
      return AnswerWith(v1::ARTIFACT_OUTCOME_TOO_MANY,
                        fmt::format("at most {}", limits::kArtifactsPerCaptureMax));
    case ArtifactStore::Outcome::kMissing:
      break;
  }
  v1::ArtifactAnswer answer = AnswerWith(v1::ARTIFACT_OUTCOME_SEND);
  // An interrupted upload continues where it ended.
  answer.set_offset(store_.files().Received(reference.sha256));
  return answer;
}

grpc::Status ArtifactService::Offer(grpc::ServerContext* context, const v1::ArtifactOffer* request,
                                    v1::ArtifactAnswer* reply) {
  // Admission comes first, so that a peer that calls too often causes no work in the store.
  const absl::Status admitted = Admitted(admission_, *context);
  if (!admitted.ok()) return ToGrpcStatus(admitted);
  const auto reference = FromProto(*request);
  if (!reference.ok()) return ToGrpcStatus(reference.status());
  auto answer = Refer(*reference);
  if (answer.ok() && answer->outcome() == v1::ARTIFACT_OUTCOME_KEPT) metrics_.known.Increment();
  return Answer(std::move(answer), *reply);
}

absl::Status ArtifactService::ReceiveParts(grpc::ServerContext& context,
                                           grpc::ServerReader<v1::ArtifactPart>& reader,
                                           v1::ArtifactPart& part, ArtifactFiles::Upload& upload) {
  // A call that sends nothing, or a byte at a time, would keep one of few places.
  StallWatch watch(runner_,
                   {.period_ns = limits::kArtifactStallNs, .least = limits::kArtifactStallBytes},
                   [&context] { context.TryCancel(); });
  // The offset must continue what was received, because a content is written from its start to its
  // end.
  do {
    // gRPC's own message limit is larger, and a part is held in memory as a whole.
    if (part.content().size() > limits::kArtifactPartBytesMax || part.offset() != upload.offset()) {
      return InvalidArgument("artifact: {} bytes at offset {}, but {} bytes were received",
                             part.content().size(), part.offset(), upload.offset());
    }
    RETURN_IF_ERROR(upload.Append(part.content()));
    watch.Progress(part.content().size());
    metrics_.bytes_received.Increment(static_cast<double>(part.content().size()));
  } while (reader.Read(&part));
  // Read also returns false when the watch has cancelled the call, so the two ends are told apart
  // here. A content that is merely incomplete fails in Finish.
  if (!watch.stalled()) return absl::OkStatus();
  metrics_.stalled.Increment();
  return absl::CancelledError("artifact: the upload is slower than the minimum rate");
}

absl::StatusOr<v1::ArtifactAnswer> ArtifactService::Receive(
    grpc::ServerContext& context, grpc::ServerReader<v1::ArtifactPart>& reader) {
  // The whole exchange reuses one part, so a call holds one part in memory at a time.
  v1::ArtifactPart part;
  if (!reader.Read(&part)) return InvalidArgument("artifact: the call contains no message");
  ASSIGN_OR_RETURN(const ArtifactReference reference, FromProto(part.offer()));
  // The content may have arrived since the offer, and everything that applies to an offer applies
  // here.
  ASSIGN_OR_RETURN(v1::ArtifactAnswer before, Refer(reference));
  if (before.outcome() != v1::ARTIFACT_OUTCOME_SEND) return before;
  auto upload = store_.files().Receive(reference.sha256, reference.bytes);
  // All places are taken, or another call receives the same content: the agent tries again later.
  if (absl::IsUnavailable(upload.status())) {
    return AnswerWith(v1::ARTIFACT_OUTCOME_BUSY, std::string(upload.status().message()));
  }
  // The limit of all artifacts, or the disk, has no room for a content of this size.
  if (absl::IsResourceExhausted(upload.status())) {
    return AnswerWith(v1::ARTIFACT_OUTCOME_FULL, std::string(upload.status().message()));
  }
  RETURN_IF_ERROR(upload.status());
  RETURN_IF_ERROR(ReceiveParts(context, reader, part, **upload));
  const absl::Status finished = (*upload)->Finish();
  // The bytes do not have the promised hash: the file changed while the agent read it.
  if (absl::IsDataLoss(finished)) {
    return AnswerWith(v1::ARTIFACT_OUTCOME_DIFFERENT, std::string(finished.message()));
  }
  RETURN_IF_ERROR(finished);
  metrics_.received.Increment();
  // The content is stored now, so this stores the reference, unless the capture is gone.
  return Refer(reference);
}

grpc::Status ArtifactService::Put(grpc::ServerContext* context,
                                  grpc::ServerReader<v1::ArtifactPart>* reader,
                                  v1::ArtifactAnswer* reply) {
  const absl::Status admitted = Admitted(admission_, *context);
  if (!admitted.ok()) return ToGrpcStatus(admitted);
  return Answer(Receive(*context, *reader), *reply);
}

grpc::Status ArtifactService::Forgo(grpc::ServerContext* context,
                                    const v1::ArtifactForgone* request, v1::ArtifactAnswer* reply) {
  const absl::Status admitted = Admitted(admission_, *context);
  if (!admitted.ok()) return ToGrpcStatus(admitted);
  const auto forgone = FromProto(*request);
  if (!forgone.ok()) return ToGrpcStatus(forgone.status());
  const auto outcome = store_.Forgo(*forgone);
  if (!outcome.ok()) return ToGrpcStatus(outcome.status());
  switch (*outcome) {
    case ArtifactStore::Outcome::kUnknownCapture:
      *reply = AnswerWith(v1::ARTIFACT_OUTCOME_UNKNOWN_CAPTURE);
      break;
    case ArtifactStore::Outcome::kTooMany:
      *reply = AnswerWith(v1::ARTIFACT_OUTCOME_TOO_MANY);
      break;
    default:
      metrics_.forgone.Increment();
      *reply = AnswerWith(v1::ARTIFACT_OUTCOME_KEPT);
  }
  return grpc::Status::OK;
}

}  // namespace neurontrace
