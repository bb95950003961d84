// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lib/trace/capture_begin.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// Judge whether all cores of a worker recorded the executions of a capture, not only the first or
// the fastest core. Both return an empty text for a worker that recorded no execution at all, for
// framework files, and for a capture without a first or last execution. Pure.

// Returns how the cores missed the capture's first execution, as a clause with its subject; empty
// if each recorded it. A worker that joined late is not expected to have it on any core.
std::string DescribeLateCores(const CaptureBegin& begin, const CaptureWorkerStatus& status);
// Returns how the cores fell short of the capture's last execution, as a clause with its subject;
// empty if each reached it.
std::string DescribeEarlyEnd(const CaptureBegin& begin, const CaptureWorkerStatus& status);

}  // namespace neurontrace
