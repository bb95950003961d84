// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

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
  std::string job;     // only what is of this job; empty: all
  std::string state;   // only workers whose part begins so: "vanished", "never"; empty: all
  size_t columns = 0;  // as in FormatTable
};

// "12", "12 or more", "unknown".
std::string FormatLost(const v1::EventAccount& account);

// Says what is wrong with a state that no worker's part begins with; empty: nothing.
std::string CheckPart(const std::string& state);
// Which lines about a capture are not of one job. A plain value.
class OtherJobs {
 public:
  OtherJobs(const v1::Certificate& certificate, const std::string& job);
  // Whether the line names other jobs or their workers, and not the job nor one of its workers.
  bool Own(const std::string& line) const;

 private:
  struct Name {
    std::string words;  // "i-0a pid 7", "job llama"
    bool is_other = false;
  };
  std::vector<Name> names_;
};

// What a certificate has of one job, by any of its names: its workers, its sums, and the findings
// and notes that are not of other jobs. The verdict stays that of all.
v1::Certificate OfJob(const v1::Certificate& certificate, const std::string& job);
// Says that no worker is what `view` asks for, and what there is; empty where one is.
std::string ExplainNoneShown(const v1::Certificate& certificate, const CertificateView& view);

// One line a worker in the order of jobs and ranks, a line of sums, the gaps, what is missing, and
// the verdict at the end. Of many workers those that are not worse than the others are left out;
// workers that were not to be recorded share a line.
std::string FormatCertificate(const v1::Certificate& certificate, const CertificateView& view = {});
// What is missing, what is worth knowing, and the verdict. Lines that differ only in numbers and
// instances are folded.
std::string FormatVerdict(const v1::Certificate& certificate, bool wide = false);
// The instances and jobs that texts about the capture name.
std::set<std::string> NamesIn(const v1::Certificate& certificate);

}  // namespace neurontrace::cli
