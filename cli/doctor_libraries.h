// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/doctor_finding.h"
#include "cli/host_view.h"

// Checks of the tap, the Neuron Runtime and the C library by `doctor`. They read the files from the
// disk and load nothing, so that a broken library does no harm. Called on the main thread.
namespace neurontrace::cli {

// Checks the tap. `path`: where it was found; empty: nowhere. `version`: the version that it must
// have.
std::vector<Finding> CheckTap(HostView& host, const std::string& path, const std::string& version);

// Returns the usual places of libnrt.so.1, after those of `library_path` (in the form of
// LD_LIBRARY_PATH).
std::vector<std::string> RuntimePlaces(const std::string& library_path);

// Checks the first existing one, and which of the runtime's functions it has. `is_expected`: this
// machine has Neuron devices.
Finding CheckRuntime(HostView& host, const std::vector<std::string>& places, bool is_expected);

}  // namespace neurontrace::cli
