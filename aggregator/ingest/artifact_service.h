// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/registry.h>

#include "absl/status/statusor.h"
#include "aggregator/store/artifact_store.h"
#include "lib/base/task_runner.h"
#include "lib/trace/artifact.h"
#include "lib/wire/call_admission.h"
#include "neurontrace/v1/artifact_gateway.grpc.pb.h"

namespace neurontrace {

// Counts offers and uploads of artifacts (docs/operator/metrics.md). The registry owns the metrics.
struct ArtifactMetrics {
  // Creates all counters except those of refusals, which appear with the first refusal of a kind.
  explicit ArtifactMetrics(prometheus::Registry& registry);
  // Counts a refusal by its reason; other outcomes are not counted. Any thread.
  void CountRefused(v1::ArtifactOutcome outcome);

  // Artifacts added to captures, counted once per capture and place.
  prometheus::Counter& references;
  // Complete contents, and all bytes of contents, including those of aborted uploads.
  prometheus::Counter& received;
  prometheus::Counter& bytes_received;
  prometheus::Counter& known;  // contents that were stored already
  // Uploads that were cancelled because they were too slow.
  prometheus::Counter& stalled;
  // Artifacts that agents declined to send.
  prometheus::Counter& forgone;
  // By reason; see CountRefused.
  prometheus::Family<prometheus::Counter>& refused;
};

// Checks every field of an offer: sizes, hash and place. Fails with INVALID_ARGUMENT, and names the
// field.
absl::StatusOr<ArtifactReference> FromProto(const v1::ArtifactOffer& offer);
// Converts a note in the same way; its reason becomes clean text.
absl::StatusOr<ArtifactForgone> FromProto(const v1::ArtifactForgone& forgone);

// The gRPC service for artifacts. Each call has one of gRPC's threads, as many at once as agents
// send. Only limits::kArtifactUploadsMax of them receive content, and one that stalls is cancelled.
// Store and runner, on which stalls are noticed, must outlive the service.
//
// Refusals are outcomes of the answer, so that agents can tell them apart; gRPC errors mean that
// the call itself was wrong or the store failed.
class ArtifactService final : public v1::ArtifactGateway::Service {
 public:
  // `admission` may be null: every call is served. The registry owns the metrics and must outlive
  // the service.
  ArtifactService(ArtifactStore& store, TaskRunner& runner, prometheus::Registry& registry,
                  CallAdmission* admission)
      : store_(store), runner_(runner), metrics_(registry), admission_(admission) {}

  // Stores a reference to a content that is stored already, or asks for it with SEND and the offset
  // at which an interrupted upload continues. Fails with INVALID_ARGUMENT for an invalid offer.
  grpc::Status Offer(grpc::ServerContext* context, const v1::ArtifactOffer* request,
                     v1::ArtifactAnswer* reply) override;
  // Receives one content in parts. The first part carries the offer again. Parts must be at most
  // limits::kArtifactPartBytesMax long and continue without a gap, otherwise the call fails with
  // INVALID_ARGUMENT. What has arrived before a failure is kept for a later call.
  grpc::Status Put(grpc::ServerContext* context, grpc::ServerReader<v1::ArtifactPart>* reader,
                   v1::ArtifactAnswer* reply) override;
  // Stores that an agent will not send an artifact, and why, so that exports can report it as
  // missing.
  grpc::Status Forgo(grpc::ServerContext* context, const v1::ArtifactForgone* request,
                     v1::ArtifactAnswer* reply) override;

 private:
  // Refer stores a reference, or asks for the content; Receive takes a Put call; ReceiveParts its
  // parts.
  absl::StatusOr<v1::ArtifactAnswer> Refer(const ArtifactReference& reference);
  absl::StatusOr<v1::ArtifactAnswer> Receive(grpc::ServerContext& context,
                                             grpc::ServerReader<v1::ArtifactPart>& reader);
  absl::Status ReceiveParts(grpc::ServerContext& context,
                            grpc::ServerReader<v1::ArtifactPart>& reader, v1::ArtifactPart& part,
                            ArtifactFiles::Upload& upload);
  // Counts a refusal and converts the answer to gRPC's form. Errors are passed on without a reply.
  grpc::Status Answer(absl::StatusOr<v1::ArtifactAnswer> answer, v1::ArtifactAnswer& reply);

  ArtifactStore& store_;
  // Only cancels stalled uploads; never waits for the disk.
  TaskRunner& runner_;
  ArtifactMetrics metrics_;
  CallAdmission* const admission_;
};

}  // namespace neurontrace
