// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/access/role.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/ids.h"
#include "lib/trace/worker_info.h"

// What a caller whose rule has jobs, job-namespaces or job-uids gets to see. Pure functions; for a
// caller without such limits each of them changes nothing.
namespace neurontrace {

// Returns whether the worker belongs to a job, a namespace and a user of the caller. A limit of the
// caller that the worker has no fact for excludes the worker.
bool CanSee(const Caller& caller, const WorkerInfo& worker);

// Returns whether the caller may learn about a capture. Asked for each id that appears in a text.
using CanSeeCapture = std::function<bool(const CaptureId&)>;

// Replaces the ids of captures that `can_see` denies by "another capture". Only words of the length
// of an id are examined.
std::string HideCaptures(std::string_view text, const CanSeeCapture& can_see);

// Removes what the record contains about other callers: workers without a part, except those that
// `is_visible` admits; the inventory after "no worker matched"; and ids of captures in its texts,
// except those that `can_see` admits. Changes `record` in place.
void HideInvisible(const std::function<bool(const WorkerIdentity&)>& is_visible,
                   const CanSeeCapture& can_see, CaptureRecord& record);

// HiddenError returns `reason`, for the audit log, with `told` hidden inside. StatusForCaller
// extracts it, an answer that there is no such capture, so that guessing ids reveals nothing.
// `reason` must not be OK. StatusForCaller returns any other status unchanged.
absl::Status HiddenError(const absl::Status& reason, const absl::Status& told);
absl::Status StatusForCaller(const absl::Status& status);

// Removes the list of jobs and workers that follows "no worker matched" or "no worker matches yet".
// Returns any other warning unchanged.
std::string WithoutInventory(std::string_view warning);

// Returns the caller that presents both a certificate and a token: it may do what both may, and has
// the token's name. Fails with PERMISSION_DENIED if they have nothing in common. An agent and
// another role have nothing in common.
absl::StatusOr<Caller> Intersect(const Caller& certificate, const Caller& token);

}  // namespace neurontrace
