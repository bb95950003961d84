// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/registry.h>

#include <utility>

#include "absl/status/statusor.h"
#include "aggregator/ingest/refused_call.h"
#include "aggregator/store/artifact_store.h"
#include "lib/base/task_runner.h"
#include "lib/trace/artifact.h"
#include "neurontrace/v1/artifact_gateway.grpc.pb.h"

namespace neurontrace {

// What the artifact service counts; docs/operator/metrics.md describes them. The registry owns
// them.
struct ArtifactMetrics {
  explicit ArtifactMetrics(prometheus::Registry& registry);
  void CountRefused(v1::ArtifactOutcome outcome);

  prometheus::Counter& references;
  prometheus::Counter& received;
  prometheus::Counter& bytes_received;
  prometheus::Counter& known;  // content that was here already
  prometheus::Counter& stalled;
  prometheus::Counter& forgone;
  prometheus::Family<prometheus::Counter>& refused;
};

// Everything that an offer says, checked: sizes, hash and place. INVALID_ARGUMENT with the place.
absl::StatusOr<ArtifactReference> FromProto(const v1::ArtifactOffer& offer);
// The same; its reason as clean text.
absl::StatusOr<ArtifactForgone> FromProto(const v1::ArtifactForgone& forgone);

// The door for artifacts. Calls come on gRPC's threads, as many at once as there are agents that
// send; only limits::kArtifactUploadsMax of them receive content, and one that stalls loses its
// place. The store and the runner, on which stalled calls are ended, outlive the service.
class ArtifactService final : public v1::ArtifactGateway::Service {
 public:
  ArtifactService(ArtifactStore& store, TaskRunner& runner, prometheus::Registry& registry,
                  AdmitCall admit)
      : store_(store), runner_(runner), metrics_(registry), admit_(std::move(admit)) {}

  grpc::Status Offer(grpc::ServerContext* context, const v1::ArtifactOffer* request,
                     v1::ArtifactAnswer* reply) override;
  grpc::Status Put(grpc::ServerContext* context, grpc::ServerReader<v1::ArtifactPart>* reader,
                   v1::ArtifactAnswer* reply) override;
  grpc::Status Forgo(grpc::ServerContext* context, const v1::ArtifactForgone* request,
                     v1::ArtifactAnswer* reply) override;

 private:
  absl::StatusOr<v1::ArtifactAnswer> Refer(const ArtifactReference& reference);
  absl::StatusOr<v1::ArtifactAnswer> Receive(grpc::ServerContext& context,
                                             grpc::ServerReader<v1::ArtifactPart>& reader);
  absl::Status TakeParts(grpc::ServerContext& context, grpc::ServerReader<v1::ArtifactPart>& reader,
                         v1::ArtifactPart& part, ArtifactFiles::Upload& upload);
  grpc::Status Answer(absl::StatusOr<v1::ArtifactAnswer> answer, v1::ArtifactAnswer& reply);

  ArtifactStore& store_;
  TaskRunner& runner_;
  ArtifactMetrics metrics_;
  const AdmitCall admit_;
};

}  // namespace neurontrace
