// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "aggregator/certificate/certificate.h"
#include "lib/trace/capture_record.h"

namespace neurontrace {

// Fills in what follows from the rest of a certificate: findings, notes, `provisional`, `complete`
// and the text of the verdict. A pure function, called once when everything else is filled in.
void FinalizeCertificate(const CaptureRecord& record, Certificate& certificate);

// Returns "i-0a pid 42 (ranks 0-3)", "framework files of i-0a" or "i-0a". Names a worker for
// findings and notes; ranks are those that its evidence names.
std::string NameOf(const WorkerCertificate& worker);

// Adds something that was found after FinalizeCertificate. A complete capture becomes incomplete,
// and the finding becomes its verdict.
void AddFinding(Certificate& certificate, std::string finding);

// Returns whether agents may still deliver data of the capture.
bool IsAwaitingData(const CaptureRecord& record);
// Adds why the store takes no data at present, if data of the capture may be awaited.
void AddStoreFinding(const CaptureRecord& record, std::string_view problem,
                     Certificate& certificate);

}  // namespace neurontrace
