// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/certificate/certificate.h"
#include "aggregator/store/store.h"
#include "aggregator/store/stream_record.h"
#include "lib/trace/artifact.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// Everything that a certificate is derived from. Borrows; all of it must outlive the call.
struct CertificateEvidence {
  const CaptureRecord& record;
  std::span<const StreamRecord> streams;
  // The inventory's view of the workers that `record` names, for the ranks of those without a
  // stream. May lack some, which the inventory has forgotten.
  std::span<const WorkerInfo> workers;
  // Files of the vendor's profiler that the capture should have and does not.
  std::span<const ArtifactForgone> artifacts_forgone = {};
};

// Judges a capture by its accounts. A capture that continues gets a provisional certificate of what
// is stored so far. A pure function.
Certificate MakeCertificate(const CertificateEvidence& evidence);

// Compares the ranks that the framework files of a capture claim. Adds a remark to the first worker
// concerned if two files whose events overlap in time claim one rank or different world sizes.
// (Files of one rank that follow each other are the profiles of several steps.) Such files are
// shown separately, by their names. A pure function.
void CompareFileRanks(std::span<const StreamRecord> streams,
                      std::vector<WorkerCertificate>& workers);

// Returns the certificate of a capture as it is stored now. Fails with errors of the store. May be
// called on any thread, and blocks on disk.
absl::StatusOr<Certificate> ReadCertificate(const Store& store, const CaptureRecord& record);
// The same for streams that were read already, so that an export and its certificate describe the
// same moment.
absl::StatusOr<Certificate> ReadCertificate(const Store& store, const CaptureRecord& record,
                                            std::span<const StreamRecord> streams);

}  // namespace neurontrace
