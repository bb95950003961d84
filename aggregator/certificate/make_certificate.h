// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "aggregator/certificate/certificate.h"
#include "aggregator/store/stream_record.h"
#include "trace/artifact.h"
#include "trace/capture_record.h"
#include "trace/worker_info.h"

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

// Judges a capture from its accounts. A capture that goes on gets a provisional certificate of what
// there is so far. Pure.
Certificate MakeCertificate(const CertificateEvidence& evidence);

}  // namespace neurontrace
