// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "neurontrace/v1/certificate.pb.h"

// How a certificate reads on a terminal. Pure functions.
namespace neurontrace::cli {

// Where events come from: "nc 3", "worker" for what concerns no core or all of them, or a file's
// name.
std::string CoreName(const v1::StreamIdentity& stream);

// One line a worker, worst first, a line of sums, the gaps, what is missing, and the verdict at
// the end.
std::string FormatCertificate(const v1::Certificate& certificate);
// What is missing, what is worth knowing, and the verdict.
std::string FormatVerdict(const v1::Certificate& certificate);

}  // namespace neurontrace::cli
