// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "aggregator/access/audit_log.h"
#include "aggregator/session/capture_observer.h"
#include "lib/trace/capture_record.h"

namespace neurontrace {

// Writes the ends of captures to the audit log and to the program's log. Called on the
// coordinator's sequence.
class CaptureAudit : public CaptureObserver {
 public:
  // `audit` must outlive this.
  explicit CaptureAudit(AuditLog& audit) : audit_(audit) {}

  // Writes the end of a capture, for CaptureObserver. A capture that a late agent completes is
  // written again, with its new state.
  void OnCaptureEnded(const CaptureRecord& record) override;
  void OnCaptureStoppedByQuota(const CaptureRecord& record, const std::string& why) override;

 private:
  AuditLog& audit_;
};

}  // namespace neurontrace
