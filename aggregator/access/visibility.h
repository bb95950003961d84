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

// Whether the worker is of a job, of a namespace and of a user of the caller's.
bool MaySee(const Caller& caller, const WorkerInfo& worker);

// Tells whether the caller may know of a capture.
using MaySeeCapture = std::function<bool(const CaptureId&)>;

// Replaces the ids of captures that `may_see` denies by "another capture".
std::string HideCaptures(std::string_view text, const MaySeeCapture& may_see);

// Removes what the record has about other callers: the workers it passed over, except those that
// `is_visible` admits, the list of jobs behind "no worker matched", and the ids of captures in its
// texts, except those that `may_see` admits.
void HideOthers(const std::function<bool(const WorkerIdentity&)>& is_visible,
                const MaySeeCapture& may_see, CaptureRecord& record);

// Returns `reason`, for the audit log, with `told` inside, which ToldTo takes out: what the caller
// gets, as if nobody had such a capture, so that guessing tells nothing.
absl::Status HiddenError(const absl::Status& reason, const absl::Status& told);
absl::Status ToldTo(const absl::Status& status);

// Cuts off the list of jobs and workers that follows "no worker matched" or "no worker matches
// yet".
std::string WithoutInventory(std::string_view warning);

// The caller that shows both a certificate and a token: may do what both may do, and carries the
// token's name. PERMISSION_DENIED where they have nothing in common.
absl::StatusOr<Caller> Intersect(const Caller& certificate, const Caller& token);

}  // namespace neurontrace
