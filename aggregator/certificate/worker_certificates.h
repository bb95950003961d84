// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "aggregator/certificate/make_certificate.h"

namespace neurontrace {

// The outcome of every worker that was there, with its streams; worst first. Pure.
std::vector<WorkerCertificate> MakeWorkerCertificates(const CertificateEvidence& evidence);

// Whether this worker is in the way of a complete capture.
bool IsWanting(const WorkerCertificate& worker);

}  // namespace neurontrace
