// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aggregator/align/core/clock_model.h"
#include "aggregator/align/core/pair_fit.h"
#include "aggregator/align/host/probe_route.h"
#include "aggregator/align/host/step_search.h"
#include "aggregator/align/utc/reference_utc.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// Raised with every change after which the same evidence gives another model, if only in a bit:
// stored models of another version are fitted again.
inline constexpr uint32_t kHostAlgorithmVersion = 3;

struct HostFitParameters {
  PairFitParameters pair;  // the sides' own limits of x are not used
  ProbeRouteParameters route;
  StepSearchParameters step;
};

// The model of a host's raw clock (x) by the reference (y), from all that is known of it.
//
// An exchange is two inequalities, each true at its own instant however long the packets were under
// way; the possible strip is made of nothing else. The likely strip supposes besides that the least
// delay was the same in both directions when a path was first seen; routes that follow on it are
// measured by the clock, which runs on.
//
// Where the host and the reference's keeper both have UTC, from whatever source, it narrows what is
// likely, and shows by how much ways differ if they do by more than promises leave open (host_utc.h
// says how); what is possible stays what probes prove.
//
// A segment ends where the host reports something that its raw clock may have felt, where the
// reference restarts, and where the probes themselves show a step. The same evidence gives the
// same model, bit for bit. What cannot be used is counted and told in the findings.
ClockModel FitHostClock(const ClockEvidence& evidence, const HostFitParameters& parameters,
                        const ReferenceUtc& reference_utc = {});

}  // namespace neurontrace
