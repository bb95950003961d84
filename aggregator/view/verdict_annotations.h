// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "aggregator/operator/capture_explainer.h"
#include "aggregator/operator/insight_message.h"
#include "aggregator/timeline/chunk_source.h"
#include "aggregator/view/capture_layout.h"

namespace neurontrace {

// Verdicts that are described at most, those with the highest cost.
inline constexpr size_t kAnnotatedVerdictsMax = 4;
// Workers whose annotations are read for one verdict.
inline constexpr size_t kAnnotatedSuspectsMax = 16;
inline constexpr size_t kAnnotatedPeersMax = 16;
// With fewer peers that annotate nothing is compared.
inline constexpr size_t kAnnotatedPeersMin = 3;

// Sets `annotation` of verdicts about code of the host: the annotated range of the program
// (docs/user/annotations.md) in which the suspects spend more of the verdict's time than the
// median of other workers of the job. Own time is compared, without the ranges inside, summed by
// name. A range is named if it has at least half of the verdict's cost; otherwise the sentence
// reports that none has. Verdicts without annotations of the suspects, or with too few peers,
// remain without. What the rule names does not depend on it.
//
// Reads only streams of annotations, on the calling thread and two more. Adds a warning for what a
// limit left out. The observer may end it, and may be
// null. Fails with CANCELLED and with errors of the source. Any thread.
absl::Status DescribeAnnotations(ChunkSource& source, const CaptureLayout& layout,
                                 ExplainObserver* observer, v1::InsightReport& report);

}  // namespace neurontrace
