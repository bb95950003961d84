// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aggregator/align/core/clock_model.h"
#include "aggregator/align/core/pair_fit.h"
#include "aggregator/align/host/probe_route.h"
#include "aggregator/align/host/step_search.h"
#include "aggregator/align/utc/reference_utc.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// Raised with every change after which the same evidence gives another model, even if only one bit
// differs. Stored models of another version are fitted again.
inline constexpr uint32_t kHostAlgorithmVersion = 3;

// Parameters of FitHostClock; the defaults are those of production.
struct HostFitParameters {
  PairFitParameters pair;  // its limits of x are replaced by those of each segment
  ProbeRouteParameters route;
  StepSearchParameters step;
};

// Fits the model of a host's raw clock (x, ns) by the reference (y, ns) from all evidence of one
// boot.
//
// An exchange is two inequalities, each true at its own instant whatever the delays of its packets
// were; the possible strip consists of nothing else. The likely strip assumes in addition that the
// least delay was the same in both directions when a path was first seen. Later routes are measured
// by the clock itself, which continues while the route changes.
//
// If the host and the reference's keeper both have UTC, from whatever source, it narrows what is
// likely and shows by how much the directions differ, if they differ by more than the sources'
// promises leave open (host_utc.h). What is possible remains what probes prove.
//
// A segment ends where the host reports something that its raw clock may have felt, where the
// reference restarts, and where the probes themselves show a step. The same evidence gives the same
// model, bit for bit. Evidence that cannot be used is counted and reported in the findings. Without
// exchanges the model has no segment. Pure.
ClockModel FitHostClock(const ClockEvidence& evidence, const HostFitParameters& parameters,
                        const ReferenceUtc& reference_utc = {});

}  // namespace neurontrace
