// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/doctor_finding.h"
#include "cli/host_view.h"

// The machine itself, as `doctor` looks at it.
namespace neurontrace::cli {

// Who steers the clock, what it is read from, and what else tells the time here.
std::vector<Finding> CheckClocks(HostView& host);

// What a process may have of locked memory and open files.
std::vector<Finding> CheckLimits(HostView& host);

// True where the kernel shows Neuron devices.
bool HasNeuronDevices(HostView& host);

}  // namespace neurontrace::cli
