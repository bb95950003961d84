// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include "neurontrace/v1/certificate.pb.h"

// How a certificate reads on a terminal. Pure functions.
namespace neurontrace::cli {

// Where events come from: "nc 3", "worker" for what concerns no core or all of them, or a file's
// name.
std::string CoreName(const v1::StreamIdentity& stream);

// What of a capture is shown.
struct CertificateView {
  bool brief = false;  // no line for each worker
  bool wide = false;   // nothing folded or left out
  std::string job;     // only workers of this job; empty: all
  std::string state;   // only workers whose part begins so: "vanished", "never"; empty: all
};

// "12", "12 or more", "unknown".
std::string FormatLost(const v1::EventAccount& account);

// One line a worker in the order of ranks, a line of sums, the gaps, what is missing, and the
// verdict at the end. Of many workers those that are not worse than the others are left out.
std::string FormatCertificate(const v1::Certificate& certificate, const CertificateView& view = {});
// What is missing, what is worth knowing, and the verdict. Lines that differ only in numbers and
// instances are folded.
std::string FormatVerdict(const v1::Certificate& certificate, bool wide = false);
// The instances and jobs that texts about the capture name.
std::set<std::string> NamesIn(const v1::Certificate& certificate);

}  // namespace neurontrace::cli
