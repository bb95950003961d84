// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "aggregator/certificate/make_certificate.h"

namespace neurontrace {

// What became of every worker that was there, with its streams; worst first. Pure.
std::vector<WorkerCertificate> MakeWorkerCertificates(const CertificateEvidence& evidence);

// Whether this worker stands in the way of a complete capture.
bool IsWanting(const WorkerCertificate& worker);

}  // namespace neurontrace
