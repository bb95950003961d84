// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "agent/source/framework/trace_event_parser.h"
#include "agent/source/framework/xspace_scan.h"
#include "agent/source/framework/xspace_threads.h"
#include "agent/source/framework/xspace_wire.h"
#include "lib/trace/loss.h"

namespace neurontrace {

// The events of an XSpace in the file's order, each plane behind an event process_name and each
// line behind an event thread_name, as JAX's JSON has them:
//
//   event name       -> "name": the metadata's display name, else its name ("long_name" beside one)
//   /host: planes    -> event type xla_host, "pid" the process id; other planes xla_device
//                       and "pid" the plane's name
//   line id          -> thread_id: the kernel's where XSpaceThreads finds it, else the id itself,
//   or
//                       the attribute "tid" where it is negative
//   time, duration   -> timestamp_ns and "dur_ns"; digits below 1 ns are in "offset_ps" and
//                       "duration_ps"
//   stats            -> attributes in data scope, the event's before those of its metadata
//
// What cannot be read is a counted loss with its place: an event, the rest of a line, a plane whose
// names are damaged, the rest of the file. Memory is the names of one plane, at most
// limits::kXSpaceNameBytesMax; events whose names are beyond are losses. One thread at a time.
class XSpaceReader {
 public:
  // Elements before `first_element` are passed over: an earlier agent has stored them. `threads`
  // are those of the process that wrote the host planes.
  XSpaceReader(XSpaceInput input, const XSpaceFacts& facts, uint64_t first_element,
               XSpaceThreads threads = XSpaceThreads());
  ~XSpaceReader();
  XSpaceReader(XSpaceReader&&) noexcept;
  XSpaceReader& operator=(XSpaceReader&&) noexcept;

  enum class Kind : uint8_t {
    kEvent,
    kLoss,
    kNotYet,
    kChanged,  // the input failed with ABORTED: nothing was read, and the next call tries again
    kEnd,
  };

  // What comes next, after a bounded piece of work; event() and loss() hold until the next call.
  Kind Next();
  const FrameworkEvent& event() const;
  const Loss& loss() const;
  // Returns the index of the first element that was not given out yet: every event and every loss
  // is one.
  uint64_t position() const;
  uint64_t bytes_read() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace neurontrace
