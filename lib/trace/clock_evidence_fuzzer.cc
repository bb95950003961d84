// SPDX-License-Identifier: Apache-2.0
// Anything at all as a batch of clock evidence: refused, or its result makes sense and comes
// back from its own bytes.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "lib/trace/clock_evidence_codec.h"

namespace {

void Check(bool good, const char* what) {
  if (good) return;
  fprintf(stderr, "violated requirement: %s\n", what);
  abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace neurontrace;
  const auto evidence =
      DecodeClockEvidence(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!evidence.ok()) return 0;
  Check(CheckClockEvidence(*evidence).ok(), "what is decoded makes sense");
  const auto again = DecodeClockEvidence(EncodeClockEvidence(*evidence));
  Check(again.ok() && again->snapshots == evidence->snapshots &&
            again->exchanges == evidence->exchanges && again->events == evidence->events &&
            again->utc == evidence->utc,
        "evidence makes the same evidence again");
  return 0;
}
