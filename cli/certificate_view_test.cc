// SPDX-License-Identifier: Apache-2.0
// A certificate as people see it, letter by letter.
#include "cli/certificate_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace neurontrace::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::WorkerCertificate& AddWorker(v1::Certificate& certificate, uint32_t pid, v1::WorkerPart part) {
  v1::WorkerCertificate& worker = *certificate.add_workers();
  worker.mutable_worker()->set_instance_id("i-0a");
  worker.mutable_worker()->set_pid(pid);
  worker.set_part(part);
  worker.mutable_clock()->set_words("not aligned");
  worker.mutable_account()->set_conserved(v1::CONSERVATION_YES);
  return worker;
}

void SetAccount(v1::EventAccount& account, uint64_t captured, uint64_t stored, uint64_t lost) {
  account.set_expected(stored + lost);
  account.set_captured(captured);
  account.set_stored(stored);
  account.set_lost(lost);
}

void AddLoss(v1::EventAccount& account, v1::LossPlace place, v1::LossReason reason,
             uint64_t events) {
  v1::Loss& loss = *account.add_losses();
  loss.set_place(place);
  loss.set_reason(reason);
  loss.set_events(events);
  if (events == 0) {
    loss.set_events_unknown(true);
    account.set_lost_unknown(true);
    account.set_conserved(v1::CONSERVATION_CANNOT_SAY);
  }
}

TEST(FormatCertificate, FormatsExample) {
  v1::Certificate certificate;
  auto& vanished = AddWorker(certificate, 4711, v1::WORKER_PART_VANISHED);
  SetAccount(*vanished.mutable_account(), 500, 500, 0);
  AddLoss(*vanished.mutable_account(), v1::LOSS_PLACE_UNSPECIFIED, v1::LOSS_REASON_UNKNOWN, 0);
  auto& never = AddWorker(certificate, 4712, v1::WORKER_PART_NEVER);
  never.set_absence(v1::WORKER_ABSENCE_BUSY_OTHER_PROFILER);
  auto& lossy = AddWorker(certificate, 4713, v1::WORKER_PART_RECORDED);
  for (const int64_t gid : {0, 1, 2, 5}) lossy.add_worker_gids(gid);
  SetAccount(*lossy.mutable_account(), 12'345, 12'340, 17);
  AddLoss(*lossy.mutable_account(), v1::LOSS_PLACE_RUNTIME_RING, v1::LOSS_REASON_OVERWRITTEN, 12);
  AddLoss(*lossy.mutable_account(), v1::LOSS_PLACE_SPOOL, v1::LOSS_REASON_FULL, 5);
  lossy.set_gaps(3);
  lossy.set_gaps_sum_ns(2'500'000);
  v1::Gap& gap = *lossy.add_longest_gaps();
  *gap.mutable_stream()->mutable_worker() = lossy.worker();
  gap.mutable_stream()->set_nc_idx(2);
  gap.mutable_loss()->set_place(v1::LOSS_PLACE_RUNTIME_RING);
  gap.mutable_loss()->set_events(12);
  gap.mutable_loss()->set_first_timestamp_ns(1'000'000'000);
  gap.mutable_loss()->set_last_timestamp_ns(1'002'000'000);
  AddWorker(certificate, 4714, v1::WORKER_PART_IDLE);
  SetAccount(*certificate.mutable_account(), 12'845, 12'840, 17);
  certificate.mutable_account()->set_lost_unknown(true);
  certificate.mutable_account()->set_conserved(v1::CONSERVATION_CANNOT_SAY);
  certificate.add_findings("waiting for i-0a (agent a), away since 2026-11-21 13:00:00Z");
  certificate.add_notes("i-0a pid 4714 took part and had nothing to record");
  certificate.set_verdict("incomplete: 17 of 12857 events lost and an unknown number more");

  EXPECT_EQ(
      FormatCertificate(certificate),
      R"(INSTANCE  PID   RANKS  PART                   EXPECTED  CAPTURED  STORED  LOST        ADDS UP     CLOCK        GAPS     WHERE LOST
i-0a      4713  0-2,5  recorded                 12,357    12,345  12,340  17          yes         not aligned  3, 2 ms  runtime ring: overwritten 12, spool: full 5
i-0a      4711  -      vanished                    500       500     500  unknown     cannot say  not aligned  -        somewhere ?
i-0a      4712  -      never: other profiler         -         -       -  -           -           -            -        -
i-0a      4714  -      idle                          0         0       0  0           yes         not aligned  -        -
all                    4 workers                12,857    12,845  12,840  17 or more  cannot say
gap         i-0a pid 4713 nc 2: 2 ms from 1000000000, 12 events in the runtime ring
missing     waiting for i-0a (agent a), away since 2026-11-21 13:00:00Z
note        i-0a pid 4714 took part and had nothing to record
incomplete: 17 of 12857 events lost and an unknown number more
)");
}

// The worst come first in a certificate, and are shown in the order of ranks.
v1::Certificate ThousandWorkers() {
  v1::Certificate certificate;
  for (uint32_t i = 0; i < 1'024; ++i) {
    const uint32_t pid = 1'024 - i;
    v1::WorkerCertificate& worker =
        AddWorker(certificate, pid, i == 0 ? v1::WORKER_PART_VANISHED : v1::WORKER_PART_RECORDED);
    worker.add_worker_gids(pid - 1);
    worker.set_job(pid % 2 == 0 ? "llama" : "whisper");
    certificate.add_notes("i-0a pid " + std::to_string(pid) +
                          " took part and had nothing to record");
  }
  certificate.set_verdict("the verdict");
  return certificate;
}

size_t CountLines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(FormatCertificate, ShowsTheWorstOfManyAndFoldsWhatIsEqual) {
  const std::string text = FormatCertificate(ThousandWorkers());
  EXPECT_THAT(text, HasSubstr("(960 further workers are not worse than these; --wide shows all)"));
  EXPECT_THAT(text, HasSubstr("1,024 workers"));
  EXPECT_THAT(text, HasSubstr("had nothing to record (and 1023 more like this)\nthe verdict\n"));
  EXPECT_EQ(CountLines(text), 1u + 64 + 1 + 1 + 1 + 1);
  EXPECT_LT(text.find("whisper  960 "), text.find("whisper  1022 ")) << "by job and rank";
  EXPECT_EQ(CountLines(FormatCertificate(ThousandWorkers(), {.wide = true})),
            1u + 1'024 + 1 + 1'025);
  EXPECT_EQ(
      FormatCertificate(ThousandWorkers(), {.brief = true}),
      "note        i-0a pid 1024 took part and had nothing to record (and 1023 more like this)\n"
      "the verdict\n");
}

TEST(FormatCertificate, ShowsTheWorkersThatAreAskedFor) {
  const std::string vanished = FormatCertificate(ThousandWorkers(), {.state = "vanished"});
  EXPECT_EQ(CountLines(vanished), 1u + 1 + 1 + 1 + 1);
  EXPECT_THAT(vanished, HasSubstr("i-0a      1024"));
}

TEST(FormatCertificate, OneJobOmitsOthers) {
  v1::Certificate all = ThousandWorkers();
  v1::JobRanks& quiet_worker = *all.add_jobs();
  quiet_worker.set_job("whisper");
  quiet_worker.mutable_account()->set_stored(77);
  all.add_jobs()->set_job("llama");
  all.add_findings("i-0a pid 1024 (ranks 1023) vanished before all of its data arrived");
  all.add_findings("job llama: 3 of 8 ranks never seen");
  all.add_findings("worker_gid 1 of job whisper is claimed by 2 cores at once: i-0a pid 1024 nc 0");
  all.add_findings("no longer waiting for i-0b");
  const v1::Certificate part = ForJob(all, "whisper");
  EXPECT_EQ(part.workers_size(), 512);
  EXPECT_EQ(part.notes_size(), 512);
  EXPECT_EQ(part.findings_size(), 2) << part.findings(0);
  const std::string text = FormatCertificate(part);
  EXPECT_THAT(text, HasSubstr("all                    512 workers"));
  EXPECT_THAT(text, HasSubstr("77"));
  EXPECT_THAT(text, HasSubstr("\nall jobs: the verdict\n"));
  EXPECT_THAT(text, Not(HasSubstr("JOB")));
}

TEST(FormatCertificate, ReportsNoMatchingWorker) {
  EXPECT_EQ(CheckPart("never"), "");
  EXPECT_THAT(CheckPart("bogus"), HasSubstr("no state starts with 'bogus'; the states are "));
  const v1::Certificate all = ThousandWorkers();
  EXPECT_EQ(ExplainNoneShown(all, {.job = "llama", .state = "van"}), "");
  EXPECT_EQ(ExplainNoneShown(all, {.job = "xx"}),
            "No worker of job xx is in this capture; its jobs are llama, whisper.\n");
  EXPECT_EQ(ExplainNoneShown(all, {.state = "never"}),
            "No worker of this capture is 'never'; there are 1023 recorded, 1 vanished.\n");
}

TEST(FormatCertificate, WorkersThatWereNotToBeRecordedShareALine) {
  v1::Certificate certificate;
  AddWorker(certificate, 7, v1::WORKER_PART_RECORDED);
  for (const uint32_t pid : {8, 9, 10}) {
    v1::WorkerCertificate& worker = AddWorker(certificate, pid, v1::WORKER_PART_NEVER);
    worker.set_absence(v1::WORKER_ABSENCE_NOT_SELECTED);
    worker.add_worker_gids(pid);
  }
  EXPECT_THAT(FormatCertificate(certificate), HasSubstr("\n3 workers  -    8-10   left out "));
  EXPECT_EQ(CountLines(FormatCertificate(certificate)), 1u + 1 + 1 + 1 + 1);
  EXPECT_EQ(CountLines(FormatCertificate(certificate, {.wide = true})), 1u + 4 + 1 + 1);
}

}  // namespace
}  // namespace neurontrace::cli
