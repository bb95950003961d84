// SPDX-License-Identifier: Apache-2.0
// Any text as a manifest and as a claim: no crash, and a manifest that is accepted names files that
// stay below their volume, has no more entries than were counted before it was parsed, and is the
// same when it is written and read again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "aggregator/deliver/manifest.h"
#include "aggregator/deliver/volume.h"

namespace {

void Check(bool good) {
  if (!good) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto claim = neurontrace::ParseClaim(text); claim.ok()) {
    Check(neurontrace::ParseClaim(neurontrace::FormatClaim(*claim)).ok());
  }
  const auto manifest = neurontrace::ParseManifest(text);
  if (!manifest.ok()) return 0;
  // What bounds the memory that parsing takes counts all of it.
  const neurontrace::ManifestCounts counts = neurontrace::CountManifest(text);
  size_t objects = 1 + static_cast<size_t>(manifest->steps_size() + manifest->unfinished_size());
  for (const auto& step : manifest->steps()) objects += static_cast<size_t>(step.files_size());
  Check(objects <= counts.objects);
  Check(static_cast<size_t>(manifest->directories_size()) <= counts.commas + 1);
  Check(neurontrace::OverfullList(*manifest) == nullptr);
  for (const auto& step : manifest->steps()) {
    for (const auto& file : step.files()) Check(neurontrace::IsVolumeName(file.name()));
  }
  const auto again = neurontrace::ParseManifest(neurontrace::FormatManifest(*manifest));
  Check(again.ok() && again->SerializeAsString() == manifest->SerializeAsString());
  return 0;
}
