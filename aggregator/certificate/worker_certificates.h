// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "aggregator/certificate/make_certificate.h"

namespace neurontrace {

// Returns the outcome of every worker that took part or could have, with its streams; worst first.
// A pure function.
std::vector<WorkerCertificate> MakeWorkerCertificates(const CertificateEvidence& evidence);

// Returns whether this worker keeps a capture from being complete. Workers that the capture was not
// meant to record do not. Losses, totals that disagree, and absences do, unless the worker was not
// selected or its agent was away.
bool IsUnderfilled(const WorkerCertificate& worker);

}  // namespace neurontrace
