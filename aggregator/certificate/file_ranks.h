// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "aggregator/certificate/certificate.h"
#include "aggregator/store/stream_record.h"

namespace neurontrace {

// Compares what the framework files of a capture say about their ranks, and adds a remark to the
// first worker concerned where two files whose events overlap in time claim one rank, or name
// different world sizes. (Files of one rank one after the other are the profiles of several steps.)
// Such files are shown apart, by their names. Pure.
void CompareFileRanks(std::span<const StreamRecord> streams,
                      std::vector<WorkerCertificate>& workers);

}  // namespace neurontrace
