// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "neurontrace/v1/certificate.pb.h"

// Certificates as text for a terminal, for `captures show` and the summary of `capture`. Pure
// functions; nothing here fails.
namespace neurontrace::cli {

// Returns the origin of events: "nc 3", "worker" for those of no core or of all, or a file's name.
std::string CoreName(const v1::StreamIdentity& stream);

// Which parts of a capture are shown.
struct CertificateView {
  bool brief = false;  // no line for each worker
  bool wide = false;   // nothing folded or left out
  std::string job;     // only lines of this job; empty: all
  std::string state;   // only workers whose part starts with this: "vanished"; empty: all
  size_t columns = 0;  // as in FormatTable
};

// Returns the lost events of an account: "12", "12 or more" or "unknown".
std::string FormatLost(const v1::EventAccount& account);

// Returns an error message for a state that no worker's part starts with, or "". A validator of the
// parser.
std::string CheckPart(const std::string& state);
// Recognises the lines about a capture that concern other jobs only. A plain value.
class SelectOtherJobs {
 public:
  SelectOtherJobs(const v1::Certificate& certificate, const std::string& job);
  // Returns whether the line names other jobs or their workers, and neither the job nor one of its
  // workers.
  bool Own(const std::string& line) const;

 private:
  // A text by which a line refers to a worker or job, and whether it belongs to another job.
  struct Name {
    std::string words;  // "i-0a pid 7", "job llama"
    bool is_other = false;
  };
  std::vector<Name> names_;
};

// Returns the part of a certificate about one job, by any of its names: its workers, its sums, and
// the findings and notes that do not concern other jobs only. The verdict remains that of the whole
// capture.
v1::Certificate ForJob(const v1::Certificate& certificate, const std::string& job);
// Returns a message that no worker matches `view`, and which exist; "" if one matches.
std::string ExplainNoneShown(const v1::Certificate& certificate, const CertificateView& view);

// Returns one line for each worker in the order of jobs and ranks, a line of sums, the gaps, the
// findings, and the verdict at the end. Of many workers those that are no worse than the others are
// omitted; workers that were not selected share a line.
std::string FormatCertificate(const v1::Certificate& certificate, const CertificateView& view = {});
// Returns the findings, the notes and the verdict. Lines that differ only in numbers and instances
// are folded.
std::string FormatVerdict(const v1::Certificate& certificate, bool wide = false);
// Returns the instances and jobs that texts about the capture may contain.
std::set<std::string> NamesIn(const v1::Certificate& certificate);

}  // namespace neurontrace::cli
