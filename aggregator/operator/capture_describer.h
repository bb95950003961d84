// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/access/role.h"
#include "aggregator/certificate/certificate.h"
#include "aggregator/clocks/clock_service.h"
#include "aggregator/operator/capture_directory.h"
#include "aggregator/operator/session_sequence.h"
#include "aggregator/storage/storage.h"
#include "aggregator/storage/store_quota.h"
#include "aggregator/store/store.h"
#include "lib/base/clock.h"
#include "lib/trace/capture_record.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace {

// Describes captures to callers: the record with its totals and certificate or, for a preview, what
// a capture like it would need. Any thread; waits for the disk and the coordinator's sequence.
class CaptureDescriber {
 public:
  // How much of a capture to describe.
  enum class Extent {
    kBrief,  // as in a list; quick, and used many times a second while it runs
    kFull,   // with streams, artifacts and the whole certificate
  };
  // All of them must outlive this.
  struct Deps {
    const SessionSequence& sessions;
    const CaptureDirectory& directory;
    Store& store;
    const Storage& storage;  // of that store
    const Clock& clock;
    const ClockService& clocks;
    StoreQuota& quota;
  };
  explicit CaptureDescriber(const Deps& deps) : deps_(deps) {}

  // Describes a capture without what the caller may not see. Fails with the error of the store, or
  // if the coordinator's sequence does not answer.
  absl::StatusOr<v1::Capture> Describe(const Caller& caller, CaptureRecord record,
                                       Extent extent) const;

 private:
  // Describe a capture; the brief form of a running one has no certificate. Both fail with the
  // error of the store.
  absl::StatusOr<v1::Capture> DescribeBriefly(const CaptureRecord& record) const;
  absl::StatusOr<v1::Capture> DescribeFully(const CaptureRecord& record) const;
  // A preview has neither streams nor a certificate.
  absl::StatusOr<v1::Capture> DescribePreview(const CaptureRecord& record) const;
  // Adds why the store takes no data at present, also to the certificate if there is one (else
  // nullptr), if agents may still deliver data of the capture.
  void AddStoreProblem(const CaptureRecord& record, Certificate* certificate,
                       v1::Capture& message) const;
  // Adds which workers exist to a standing capture that still has none.
  absl::Status AddNoWorkerWarning(const CaptureRecord& record, v1::Capture& message) const;

  // Constant, so calls on several threads need no lock.
  const Deps deps_;
};

}  // namespace neurontrace
