// SPDX-License-Identifier: Apache-2.0
#include "cli/certificate_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "cli/folded_lines.h"
#include "cli/outcome_view.h"
#include "cli/text.h"
#include "cli/worker_ranks.h"
#include "trace/limits.h"
#include "trace/loss.h"

namespace neurontrace::cli {
namespace {

// Of many workers the table has the worst.
constexpr size_t kWorkersShown = 64;
constexpr int kGapsShown = 8;

std::string PartName(const v1::WorkerCertificate& worker) {
  switch (worker.part()) {
    case v1::WORKER_PART_RECORDED:
      return "recorded";
    case v1::WORKER_PART_IDLE:
      return "idle";
    case v1::WORKER_PART_DATA_LOST:
      return "data lost";
    case v1::WORKER_PART_VANISHED:
      return "vanished";
    case v1::WORKER_PART_NEVER:
      break;
    default:
      return "unknown";
  }
  switch (worker.absence()) {
    case v1::WORKER_ABSENCE_BUSY_OTHER_PROFILER:
      return "never: other profiler";
    case v1::WORKER_ABSENCE_NO_RUNTIME:
      return "never: no runtime";
    case v1::WORKER_ABSENCE_NOT_SELECTED:
      return "left out";
    case v1::WORKER_ABSENCE_AGENT_AWAY:
      return "never: agent away";
    case v1::WORKER_ABSENCE_NOT_REPORTED:
      return "never: not reported";
    default:
      return "never: refused";
  }
}

// "runtime ring: overwritten 12, tap buffer: full 3"
std::string FormatPlaces(const v1::EventAccount& account) {
  std::string text;
  for (const v1::Loss& loss : account.losses()) {
    if (!text.empty()) text += ", ";
    text += loss.place() == v1::LOSS_PLACE_UNSPECIFIED
                ? "somewhere"
                : fmt::format("{}: {}", ToString(static_cast<LossPlace>(loss.place())),
                              ToString(static_cast<LossReason>(loss.reason())));
    text += loss.events_unknown() && loss.events() == 0 ? " ?" : " " + FormatCount(loss.events());
    if (loss.events_unknown() && loss.events() > 0) text += "+";
  }
  return text.empty() ? "-" : text;
}

std::string FormatConserved(v1::Conservation conserved) {
  switch (conserved) {
    case v1::CONSERVATION_YES:
      return "yes";
    case v1::CONSERVATION_NO:
      return "NO";
    default:
      return "cannot say";
  }
}

bool IsShown(const v1::WorkerCertificate& worker, const CertificateView& view) {
  return (view.job.empty() || worker.job() == view.job) && PartName(worker).starts_with(view.state);
}

// Those that the view selects, of many the worst, in the order of ranks.
std::vector<const v1::WorkerCertificate*> ShownWorkers(const v1::Certificate& certificate,
                                                       const CertificateView& view,
                                                       size_t& left_out) {
  std::vector<const v1::WorkerCertificate*> workers;
  left_out = 0;
  for (const v1::WorkerCertificate& worker : certificate.workers()) {
    if (!IsShown(worker, view)) continue;
    if (!view.wide && workers.size() == kWorkersShown) {
      ++left_out;
    } else {
      workers.push_back(&worker);
    }
  }
  const auto key = [](const v1::WorkerCertificate* worker) {
    return std::tuple(worker->worker_gids().empty() ? INT64_MAX : worker->worker_gids(0),
                      worker->worker().instance_id(), worker->worker().pid());
  };
  std::stable_sort(workers.begin(), workers.end(),
                   [&key](const auto* a, const auto* b) { return key(a) < key(b); });
  return workers;
}

std::string FormatWorkers(const v1::Certificate& certificate, const CertificateView& view) {
  std::vector<std::vector<std::string>> rows;
  size_t left_out = 0;
  for (const v1::WorkerCertificate* const shown : ShownWorkers(certificate, view, left_out)) {
    const v1::WorkerCertificate& worker = *shown;
    const v1::EventAccount& account = worker.account();
    const bool has_account = worker.part() != v1::WORKER_PART_NEVER;
    const auto count = [&](uint64_t events) { return has_account ? FormatCount(events) : "-"; };
    rows.push_back(
        {worker.worker().instance_id(),
         worker.framework()           ? "framework"
         : worker.worker().pid() == 0 ? "-"
                                      : std::to_string(worker.worker().pid()),
         FormatRanks({worker.worker_gids().begin(), worker.worker_gids().end()}), PartName(worker),
         count(account.expected()), count(account.captured()), count(account.stored()),
         has_account ? FormatLost(account.lost(), account.lost_unknown()) : "-",
         has_account ? FormatConserved(account.conserved()) : "-",
         has_account ? worker.clock().words() : "-",
         worker.gaps() == 0
             ? "-"
             : fmt::format("{}, {}", worker.gaps(), FormatDuration(worker.gaps_sum_ns())),
         FormatPlaces(account)});
  }
  const v1::EventAccount& total = certificate.account();
  rows.push_back({"all", "", "", FormatParticipants(certificate.workers()),
                  FormatCount(total.expected()), FormatCount(total.captured()),
                  FormatCount(total.stored()), FormatLost(total.lost(), total.lost_unknown()),
                  FormatConserved(total.conserved()), "", "", ""});
  std::string out = FormatTable({"INSTANCE", "PID", "RANKS", "PART", "EXPECTED", "CAPTURED",
                                 "STORED", "LOST", "ADDS UP", "CLOCK", "GAPS", "WHERE LOST"},
                                rows);
  if (left_out > 0) {
    out +=
        fmt::format("({} further workers are not worse than these; --wide shows all)\n", left_out);
  }
  return out;
}

std::string FormatGaps(const v1::Certificate& certificate) {
  std::vector<const v1::Gap*> gaps;
  for (const v1::WorkerCertificate& worker : certificate.workers()) {
    for (const v1::Gap& gap : worker.longest_gaps()) gaps.push_back(&gap);
  }
  const auto length = [](const v1::Gap* gap) {
    return gap->loss().last_timestamp_ns() - gap->loss().first_timestamp_ns();
  };
  std::stable_sort(gaps.begin(), gaps.end(),
                   [&](const v1::Gap* a, const v1::Gap* b) { return length(a) > length(b); });
  if (gaps.size() > kGapsShown) gaps.resize(kGapsShown);
  std::string out;
  for (const v1::Gap* gap : gaps) {
    const v1::StreamIdentity& stream = gap->stream();
    out += fmt::format(
        "gap         {} pid {} {}: {} from {}, {} events in the {}\n",
        stream.worker().instance_id(), stream.worker().pid(), CoreName(stream),
        FormatDuration(length(gap)), gap->loss().first_timestamp_ns(),
        gap->loss().events_unknown() ? "an unknown number of" : FormatCount(gap->loss().events()),
        ToString(static_cast<LossPlace>(gap->loss().place())));
  }
  return out;
}

// One line for all hosts: what is amiss with one of them is among the findings.
std::string FormatHosts(const v1::Certificate& certificate) {
  if (certificate.hosts().empty()) return "";
  uint64_t stored = 0;
  for (const v1::HostCertificate& host : certificate.hosts()) stored += host.account().stored();
  return fmt::format("hosts       {} sampled (processors and memory), {} events\n",
                     certificate.hosts_size(), FormatCount(stored));
}

}  // namespace

std::string FormatLost(const v1::EventAccount& account) {
  if (!account.lost_unknown()) return FormatCount(account.lost());
  return account.lost() == 0 ? "unknown" : FormatCount(account.lost()) + " or more";
}

std::string CoreName(const v1::StreamIdentity& stream) {
  if (!stream.name().empty()) return stream.name();
  if (stream.kind() == v1::STREAM_KIND_HOST) return "host";
  return stream.nc_idx() < 0 ? "worker" : fmt::format("nc {}", stream.nc_idx());
}

std::string FormatCertificate(const v1::Certificate& certificate, const CertificateView& view) {
  const std::string table = view.brief ? "" : FormatWorkers(certificate, view);
  return table + FormatHosts(certificate) + (view.brief ? "" : FormatGaps(certificate)) +
         FormatVerdict(certificate, view.wide);
}

std::set<std::string> NamesIn(const v1::Certificate& certificate) {
  std::set<std::string> names;
  for (const v1::WorkerCertificate& worker : certificate.workers()) {
    names.insert(worker.worker().instance_id());
    names.insert(worker.agent_id());
    names.insert(worker.job());
  }
  return names;
}

std::string FormatVerdict(const v1::Certificate& certificate, bool wide) {
  FoldedLines lines(NamesIn(certificate), !wide);
  for (const std::string& finding : certificate.findings()) lines.Add("missing     " + finding);
  for (const std::string& note : certificate.notes()) lines.Add("note        " + note);
  return lines.Format() + certificate.verdict() + "\n";
}

}  // namespace neurontrace::cli
