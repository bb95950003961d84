// SPDX-License-Identifier: Apache-2.0
#include "aggregator/certificate/read_certificate.h"

#include <set>
#include <vector>

#include "aggregator/certificate/make_certificate.h"
#include "base/status.h"

namespace neurontrace {

absl::StatusOr<Certificate> ReadCertificate(const Store& store, const CaptureRecord& record) {
  ASSIGN_OR_RETURN(const std::vector<StreamRecord> streams, store.OpenCapture(record.id).Streams());
  return ReadCertificate(store, record, streams);
}

absl::StatusOr<Certificate> ReadCertificate(const Store& store, const CaptureRecord& record,
                                            std::span<const StreamRecord> streams) {
  std::set<WorkerIdentity> named;
  for (const CaptureWorkerStatus& status : record.workers) {
    if (!status.framework) named.insert(status.worker);
  }
  for (const CaptureBystander& bystander : record.bystanders) named.insert(bystander.worker);
  std::vector<WorkerInfo> infos;
  for (const WorkerIdentity& identity : named) {
    auto worker = store.inventory().Worker(identity);
    if (absl::IsNotFound(worker.status())) continue;
    RETURN_IF_ERROR(worker.status());
    infos.push_back(std::move(worker->info));
  }
  ASSIGN_OR_RETURN(const std::vector<ArtifactForgone> forgone,
                   store.artifacts().Forgone(record.id));
  return MakeCertificate(
      {.record = record, .streams = streams, .workers = infos, .artifacts_forgone = forgone});
}

}  // namespace neurontrace
