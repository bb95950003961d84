// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace neurontrace {

// Writes what the runtime's profiler leaves for one process, in its layout:
//
//   OUTPUT/<instance>_pid_<pid>/<timestamp>/{neff_<hash>_vnc_0.neff, profile_nc_0_session_1.ntff,
//                                            ntrace.pb, trace_info.pb[, cpu_util.pb][,
//                                            host_mem.pb]}
//
// The instance is FAKE_NRT_INSTANCE_ID. The .pb files' real schema is private: here their text says
// what they are. The NEFF is the same for all processes, as that of ranks with one model is; NEFF
// and NTFF have FAKE_NRT_NEFF_BYTES and FAKE_NRT_NTFF_BYTES. Without FAKE_NRT_INSTANCE_ID nothing
// is written. False where a file cannot be.
bool WriteInspectFiles(const std::string& output_dir);

}  // namespace neurontrace
