// SPDX-License-Identifier: Apache-2.0
// Facts that the runtime and /proc know about this worker. On the tap's thread.
#pragma once

#include "tap/facts_writer.h"
#include "tap/nrt_library.h"

namespace neurontrace::tap {

// What the runtime says about itself, asked once after nrt_init and kept past nrt_close.
struct RuntimeFacts {
  bool complete = false;
  bool has_version = false;
  bool has_instance = false;
  bool has_visible_cores = false;
  bool has_total_cores = false;
  uint32_t visible_cores = 0;
  uint32_t total_cores = 0;
  NrtVersion version = {};
  NrtInstanceInfo instance = {};
  uint32_t event_types_bytes = 0;
  char event_types[8192];  // event_types_bytes of it, separated by commas

  // The runtime may be called.
  void Gather(const NrtLibrary& library);
  void AddTo(FactsWriter* writer) const;
};

void AddProcessFacts(FactsWriter* writer);

}  // namespace neurontrace::tap
