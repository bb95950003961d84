// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/doctor_finding.h"
#include "cli/host_view.h"

// The tap, the Neuron Runtime and the C library, as `doctor` reads them from the disk: nothing is
// loaded.
namespace neurontrace::cli {

// `path`: where the tap was found; empty: nowhere. `version`: what it has to be.
std::vector<Finding> CheckTap(HostView& host, const std::string& path, const std::string& version);

// Where libnrt.so.1 usually is, after those of `library_path` (as LD_LIBRARY_PATH has them).
std::vector<std::string> RuntimePlaces(const std::string& library_path);

// The first that is there, and which of the runtime's functions it has. `is_expected`: this
// machine has Neuron devices.
Finding CheckRuntime(HostView& host, const std::vector<std::string>& places, bool is_expected);

}  // namespace neurontrace::cli
