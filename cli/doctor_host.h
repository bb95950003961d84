// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/doctor_finding.h"
#include "cli/host_view.h"

// Checks of the machine itself by `doctor`. Problems are findings; nothing is changed. Called on
// the main thread.
namespace neurontrace::cli {

// Checks what steers the clock, which counter it uses, and which other sources of time exist.
std::vector<Finding> CheckClocks(HostView& host);

// Checks the limits of locked memory and open files.
std::vector<Finding> CheckLimits(HostView& host);

// Returns whether the kernel shows Neuron devices.
bool HasNeuronDevices(HostView& host);

}  // namespace neurontrace::cli
