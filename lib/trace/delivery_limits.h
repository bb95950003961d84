// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "lib/trace/artifact_limits.h"
#include "lib/trace/limits.h"

// Limits of the manifest that a delivery reads back from its destination, where others may have
// changed it.
namespace neurontrace::limits {

// A manifest's steps, its unfinished files and its directories, each. A manifest with more is not
// read, and a delivery that would need more fails with RESOURCE_EXHAUSTED.
inline constexpr size_t kManifestEntriesMax = kDeliveredFilesMax;
// The objects and commas of such a manifest outside of strings. One with more is not parsed, since
// parsing takes fifty times as much memory as the text. Fields of a step: 6, of a file: 3, of an
// unfinished file: 2, of the manifest: 7.
inline constexpr size_t kManifestObjectsMax = 1 + 2 * kManifestEntriesMax + kDeliveredFilesMax;
inline constexpr size_t kManifestCommasMax =
    7 + (6 + 2 + 1) * kManifestEntriesMax + 3 * kDeliveredFilesMax;

static_assert(kManifestEntriesMax > kArtifactsPerCaptureMax, "each artifact is a step");

}  // namespace neurontrace::limits
