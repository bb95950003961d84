// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_nrt/ground_truth.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>

namespace neurontrace {
namespace {

constexpr std::string_view kHeader =
    "capture\trank\tnc_idx\tnc_local_id\tevent_type\tphase\ttrue_ns\ttimestamp_ns\ttracking_id\t"
    "exec_id\n";
constexpr size_t kBufferBytes = 64 << 10;

template <typename Integer>
void AppendNumber(std::string& out, Integer value) {
  char text[24];
  char* end = std::to_chars(text, text + sizeof(text), value).ptr;
  out.append(text, static_cast<size_t>(end - text));
}

}  // namespace

GroundTruth::GroundTruth(const std::string& path) {
  if (path.empty()) return;
  fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  if (fd_ < 0) {
    ok_.store(false);
    return;
  }
  Append(kHeader);
}

GroundTruth::~GroundTruth() {
  if (fd_ >= 0) close(fd_);
}

void GroundTruth::Append(std::string_view lines) {
  if (fd_ < 0 || lines.empty()) return;
  // O_APPEND: one write is one piece, whichever threads write beside.
  if (write(fd_, lines.data(), lines.size()) != static_cast<ssize_t>(lines.size())) {
    ok_.store(false);
  }
}

void TruthWriter::Accepted(const PlannedEvent& event, const fake_nrt_receipt& receipt,
                           uint64_t exec_id) {
  if (!truth_.wanted()) return;
  AppendNumber(lines_, receipt.capture);
  lines_ += '\t';
  AppendNumber(lines_, rank_);
  lines_ += '\t';
  AppendNumber(lines_, nc_idx_);
  lines_ += '\t';
  AppendNumber(lines_, receipt.nc_local_id);
  lines_ += '\t';
  lines_ += event.form.event_type;
  lines_ += '\t';
  lines_ += event.form.phase;
  lines_ += '\t';
  AppendNumber(lines_, event.true_ns);
  lines_ += '\t';
  AppendNumber(lines_, event.timestamp_ns);
  lines_ += '\t';
  AppendNumber(lines_, event.tracking_id);
  lines_ += '\t';
  AppendNumber(lines_, exec_id);
  lines_ += '\n';
  if (lines_.size() >= kBufferBytes) Flush();
}

void TruthWriter::Flush() {
  truth_.Append(lines_);
  lines_.clear();
}

}  // namespace neurontrace
