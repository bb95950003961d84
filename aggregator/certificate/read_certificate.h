// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "absl/status/statusor.h"
#include "aggregator/certificate/certificate.h"
#include "aggregator/store/store.h"
#include "trace/capture_record.h"

namespace neurontrace {

// The certificate of a capture as it is stored now. Errors of the store. Any thread.
absl::StatusOr<Certificate> ReadCertificate(const Store& store, const CaptureRecord& record);
// The same where the streams have been read already.
absl::StatusOr<Certificate> ReadCertificate(const Store& store, const CaptureRecord& record,
                                            std::span<const StreamRecord> streams);

}  // namespace neurontrace
