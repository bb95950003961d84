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

// What a capture was recorded by and what of it is stored.
struct CertificateEvidence {
  const CaptureRecord& record;
  std::span<const StreamRecord> streams;
  // Of the workers that `record` names, what their agents say: for the ranks of those without a
  // stream. May lack some.
  std::span<const WorkerInfo> workers;
  // What it should have of the vendor's profiler and does not.
  std::span<const ArtifactForgone> artifacts_forgone = {};
};

// Judges a capture from its accounts. A capture that continues gets a provisional certificate of
// what there is so far. Pure.
Certificate MakeCertificate(const CertificateEvidence& evidence);

// Compares what the framework files of a capture say about their ranks, and adds a remark to the
// first worker concerned where two files whose events overlap in time claim one rank, or name
// different world sizes. (Files of one rank one after the other are the profiles of several steps.)
// Such files are shown apart, by their names. Pure.
void CompareFileRanks(std::span<const StreamRecord> streams,
                      std::vector<WorkerCertificate>& workers);

// The certificate of a capture as it is stored now. Errors of the store. Any thread.
absl::StatusOr<Certificate> ReadCertificate(const Store& store, const CaptureRecord& record);
// The same where the streams have been read already.
absl::StatusOr<Certificate> ReadCertificate(const Store& store, const CaptureRecord& record,
                                            std::span<const StreamRecord> streams);

}  // namespace neurontrace
