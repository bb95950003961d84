// SPDX-License-Identifier: Apache-2.0
#include "aggregator/operator/capture_describer.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "aggregator/access/visibility.h"
#include "aggregator/certificate/clock_findings.h"
#include "aggregator/certificate/make_certificate.h"
#include "aggregator/certificate/verdict.h"
#include "aggregator/operator/capture_message.h"
#include "aggregator/operator/certificate_message.h"
#include "aggregator/operator/preview_message.h"
#include "aggregator/session/inventory_description.h"
#include "lib/base/status.h"

namespace neurontrace {

absl::StatusOr<v1::Capture> CaptureDescriber::Describe(const Caller& caller, CaptureRecord record,
                                                       Extent extent) const {
  // Twice: fields of the record are removed here, ids of captures in texts once the message is
  // complete.
  record = deps_.directory.AsSeenBy(caller, std::move(record));
  ASSIGN_OR_RETURN(v1::Capture message,
                   extent == Extent::kFull ? DescribeFully(record) : DescribeBriefly(record));
  if (!caller.is_limited()) return message;
  // The inventory in a warning names workers and jobs of other users.
  for (std::string& warning : *message.mutable_warnings()) warning = WithoutInventory(warning);
  deps_.directory.HideFrom(caller, message);
  return message;
}

// While it runs, there is nothing to predict from.
absl::StatusOr<v1::Capture> CaptureDescriber::DescribePreview(const CaptureRecord& record) const {
  v1::Capture message = neurontrace::ToMessage(record, {}, deps_.clock.RealtimeNs());
  if (!HasEnded(record.state)) return message;
  ASSIGN_OR_RETURN(const PreviewRoom room, deps_.sessions.Run([&](const Coordinator& coordinator) {
    return FindPreviewRoom(deps_.quota, coordinator.registry(), record);
  }));
  *message.mutable_preview() = ToPreview(record, room);
  return message;
}

// A standing capture without workers looks like one that works, so its description says what
// exists.
absl::Status CaptureDescriber::AddNoWorkerWarning(const CaptureRecord& record,
                                                  v1::Capture& message) const {
  const bool is_awaiting = IsStanding(record.spec.mode) && record.spec.filter.include_neuron &&
                           record.state == CaptureState::kRecording && record.workers.empty();
  if (!is_awaiting) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string inventory,
                   deps_.sessions.Run([&](const Coordinator& coordinator) {
                     return DescribeInventory(coordinator.registry(), record.spec);
                   }));
  message.add_warnings("no worker matches yet; " + inventory);
  return absl::OkStatus();
}

void CaptureDescriber::AddStoreProblem(const CaptureRecord& record, Certificate* certificate,
                                       v1::Capture& message) const {
  if (!IsAwaitingData(record)) return;
  const auto problem = deps_.storage.write_problem();
  if (!problem) return;
  *message.mutable_store_problem() = neurontrace::ToMessage(*problem);
  if (certificate != nullptr) AddStoreFinding(record, problem->text, *certificate);
}

// Cheap enough to be called for every change of a running capture.
absl::StatusOr<v1::Capture> CaptureDescriber::DescribeBriefly(const CaptureRecord& record) const {
  if (record.spec.mode == CaptureMode::kPreview) return DescribePreview(record);
  ASSIGN_OR_RETURN(const CaptureReader::Totals totals, deps_.store.OpenCapture(record.id).Sum());
  v1::Capture message = neurontrace::ToMessage(record, totals, deps_.clock.RealtimeNs());
  // A running capture is described many times a second, and only its progress matters.
  if (!HasEnded(record.state)) {
    RETURN_IF_ERROR(AddNoWorkerWarning(record, message));
    AddStoreProblem(record, nullptr, message);
    return message;
  }
  ASSIGN_OR_RETURN(Certificate certificate, ReadCertificate(deps_.store, record));
  AddStoreProblem(record, &certificate, message);
  SetStateBy(certificate, message);
  *message.mutable_certificate() = ToBriefMessage(certificate);
  return message;
}

// Reads everything that is stored of the capture except its chunks.
absl::StatusOr<v1::Capture> CaptureDescriber::DescribeFully(const CaptureRecord& record) const {
  if (record.spec.mode == CaptureMode::kPreview) return DescribePreview(record);
  const CaptureReader reader = deps_.store.OpenCapture(record.id);
  ASSIGN_OR_RETURN(const CaptureReader::Totals totals, reader.Sum());
  ASSIGN_OR_RETURN(const std::vector<StreamRecord> streams, reader.Streams());
  ASSIGN_OR_RETURN(Certificate certificate, ReadCertificate(deps_.store, record, streams));
  // The certificate is judged with the clocks of the moment, as an export would use them.
  ASSIGN_OR_RETURN(const CaptureClocks clocks, deps_.clocks.HostsOfCapture(record));
  AddClockFindings(clocks, certificate);
  v1::Capture message = neurontrace::ToMessage(record, totals, deps_.clock.RealtimeNs());
  AddStreams(streams, message);
  ASSIGN_OR_RETURN(const ArtifactStore::Totals artifacts, deps_.store.artifacts().Sum(record.id));
  message.set_artifacts(artifacts.references);
  message.set_artifact_bytes(artifacts.bytes);
  message.set_artifacts_forgone(artifacts.forgone);
  RETURN_IF_ERROR(AddNoWorkerWarning(record, message));
  AddStoreProblem(record, &certificate, message);
  SetStateBy(certificate, message);
  *message.mutable_certificate() = neurontrace::ToMessage(certificate);
  return message;
}

}  // namespace neurontrace
