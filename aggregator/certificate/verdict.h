// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "aggregator/certificate/certificate.h"
#include "lib/trace/capture_record.h"

namespace neurontrace {

// Fills in what follows from the rest of a certificate: findings, notes, whether it is complete,
// and the verdict in words. Pure.
void FinalizeCertificate(const CaptureRecord& record, Certificate& certificate);

// "i-0a pid 42 (ranks 0-3)", "framework files of i-0a", "i-0a".
std::string NameOf(const WorkerCertificate& worker);

// Adds something that was found after the verdict: a complete capture is then incomplete.
void AddFinding(Certificate& certificate, std::string finding);

}  // namespace neurontrace
