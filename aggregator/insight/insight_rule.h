// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace neurontrace::insight_rule {

// The constants of the rule, from docs/decisions/0044-a-rule-names-ranks-or-refuses.md. They are
// frozen: a change needs an entry in that decision, and a new kInsightRuleVersion.

// Cost first: a wait, an excess or an increase below either is never named.
inline constexpr double kCostShareMin = 0.05;  // of a step
inline constexpr double kCostMinNs = 1e6;      // per step

// Windows in executions, the largest first.
inline constexpr std::array<uint32_t, 4> kWindows = {32, 16, 8, 4};
inline constexpr uint32_t kExecutionsMin = 4;

// Own work against the median of the peers.
inline constexpr double kRatioMin = 1.10;
inline constexpr double kRatioMinShortest = 1.30;  // in the window of 4
inline constexpr double kZMin = 6;
// More where so many values are compared that noise alone would exceed 6: by chance, so many cores
// are above z in one judgement.
inline constexpr double kChanceCoresMax = 1e-6;
inline constexpr double kMedianInefficiency = 1.253;  // sqrt(pi / 2): error of a median to a mean's
inline constexpr double kDeviationMin = 0.002;        // of the logarithm of a ratio
inline constexpr double kMadToDeviation = 1.4826;     // of a normal distribution
inline constexpr double kSegmentFloorNs = 1000;       // shorter work counts as this in ratios

inline constexpr uint32_t kPeersMin = 3;
inline constexpr uint32_t kPeersMinWithoutModel = 8;

// Two excesses as close as this are not told apart.
inline constexpr double kTwoCandidatesShare = 0.20;
// Of the exposed wait that the named cores must explain.
inline constexpr double kExplainedShareMin = 0.80;
// Of a gap's excess that calls of one kind must fill.
inline constexpr double kFillShareMin = 0.5;

inline constexpr double kUnevenRoleRatioMin = 1.10;
inline constexpr double kUnevenRoleWaitShareMin = 0.5;  // of the difference
inline constexpr double kUnevenDataSpreadMin = 0.05;
// Of a normal distribution: the median of the squares, as a share of the variance.
inline constexpr double kSquareMedianToVariance = 0.4549;

// 1.5 less the error of 3 % that two least times have with a noise of 1 %.
inline constexpr double kSlowTransferRatioMin = 1.45;
inline constexpr uint32_t kTransferBlock = 16;       // executions of one least time
inline constexpr uint32_t kTransferBlockMin = 4;     // of the block that fills
inline constexpr double kTransferForgetting = 1.02;  // of the earlier least time, per block

inline constexpr uint64_t kHangMinNs = 2'000'000'000;
inline constexpr uint64_t kHangFactor = 8;  // of the 99th percentile
inline constexpr double kHangQuantile = 0.99;

inline constexpr double kCoverageMin = 0.90;  // of a job's world

// Ids contradict time if this share of a core's executions does not fit.
inline constexpr double kContradictionShareMin = 0.5;
inline constexpr double kContradictionMinNs = 1e6;
inline constexpr double kContradictionStepShare = 0.5;

// Periods of sequences.
inline constexpr uint32_t kPeriodMax = 64;
inline constexpr double kPeriodAgreementMin = 0.90;

// Kept for each core.
inline constexpr size_t kExecutionsKept = 96;
inline constexpr size_t kOperationsKept = 38;
inline constexpr size_t kGroupsKept = 8;
inline constexpr size_t kOpenKept = 4;
inline constexpr size_t kModelNamesMax = 4096;
inline constexpr size_t kModelNameBytesMax = 256;

}  // namespace neurontrace::insight_rule
