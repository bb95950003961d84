// SPDX-License-Identifier: Apache-2.0
// Which evidence leads to which ranks. Most cases are rows of a table: environment and facts in,
// ranks of the first and last core, the winning source and words of the warnings out.
#include "agent/ranks/rank_resolver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kNone = -1;

struct Case {
  std::string name;
  RankFacts facts;
  RankSource source;  // of the best evidence of core 0
  int64_t first;      // rank of core 0 by the best evidence, or kNone
  int64_t last;       // of the last core
  int64_t world;
  std::vector<std::string> warnings = {};  // words of each, in order
};

using Env = std::map<std::string, std::string, std::less<>>;

RankFacts Facts(uint32_t cores, Env environment) {
  RankFacts facts;
  facts.visible_cores = cores;
  facts.environment = std::move(environment);
  return facts;
}

RankFacts Node(uint32_t workers, uint32_t ordinal, RankFacts facts) {
  facts.workers_on_node = workers;
  facts.local_ordinal = ordinal;
  return facts;
}

RankFacts Configured(std::optional<int64_t> start, std::optional<int64_t> per_node,
                     std::optional<int64_t> count, RankFacts facts) {
  facts.configured = {start, per_node, count};
  return facts;
}

std::vector<Case> PjrtCases() {
  const auto k = RankSource::kPjrt;
  return {
      {"pjrt: the offset is the sum of the devices before",
       Facts(4, {{"NEURON_PJRT_PROCESSES_NUM_DEVICES", "2,4,4,8"},
                 {"NEURON_PJRT_PROCESS_INDEX", "2"}}),
       k, 6, 9, 18},
      {"pjrt: one process a node, blanks in the list",
       Facts(64,
             {{"NEURON_PJRT_PROCESSES_NUM_DEVICES", "64, 64"}, {"NEURON_PJRT_PROCESS_INDEX", "1"}}),
       k, 64, 127, 128},
      {"pjrt: LNC2 with physical cores in the list is halved",
       Facts(64, {{"NEURON_PJRT_PROCESSES_NUM_DEVICES", "128,128,128"},
                  {"NEURON_PJRT_PROCESS_INDEX", "2"},
                  {"NEURON_RT_VIRTUAL_CORE_SIZE", "2"}}),
       k,
       128,
       191,
       192,
       {"physical cores"}},
      {"pjrt: twice the cores without LNC2 is a mismatch, not halved",
       Facts(4, {{"NEURON_PJRT_PROCESSES_NUM_DEVICES", "8,8"},
                 {"NEURON_PJRT_PROCESS_INDEX", "1"},
                 {"NEURON_LOGICAL_NC_CONFIG", "1"}}),
       k,
       8,
       11,
       16,
       {"8 devices but it sees 4 cores"}},
      {"pjrt: cores beyond the process's share get nothing from it",
       Facts(4, {{"NEURON_PJRT_PROCESSES_NUM_DEVICES", "1,1"}, {"NEURON_PJRT_PROCESS_INDEX", "1"}}),
       k,
       1,
       kNone,
       2,
       {"1 devices but it sees 4 cores"}},
      {"pjrt: an index beyond the list is no evidence",
       Facts(1, {{"NEURON_PJRT_PROCESSES_NUM_DEVICES", "1,1"}, {"NEURON_PJRT_PROCESS_INDEX", "2"}}),
       k,
       kNone,
       kNone,
       0,
       {"lists 2 processes"}},
      {"pjrt: a malformed list is no evidence",
       Facts(1,
             {{"NEURON_PJRT_PROCESSES_NUM_DEVICES", "4,,4"}, {"NEURON_PJRT_PROCESS_INDEX", "0"}}),
       k,
       kNone,
       kNone,
       0,
       {"NEURON_PJRT_PROCESSES_NUM_DEVICES=4,,4 is ignored"}},
      {"pjrt: a malformed index is no evidence",
       Facts(1, {{"NEURON_PJRT_PROCESSES_NUM_DEVICES", "4"}, {"NEURON_PJRT_PROCESS_INDEX", "-1"}}),
       k,
       kNone,
       kNone,
       0,
       {"NEURON_PJRT_PROCESS_INDEX=-1 is ignored"}},
      {"pjrt: the list alone says nothing", Facts(1, {{"NEURON_PJRT_PROCESSES_NUM_DEVICES", "4"}}),
       k, kNone, kNone, 0},
  };
}

std::vector<Case> LauncherCases() {
  const auto torchrun = RankSource::kTorchrun;
  return {
      {"global device id of the old torch runtime",
       Facts(1, {{"NEURON_GLOBAL_DEVICE_ID", "35"}, {"NEURON_GLOBAL_DEVICE_COUNT", "64"}}),
       RankSource::kGlobalDeviceId, 35, 35, 64},
      {"global device id beyond its count is no evidence",
       Facts(1, {{"NEURON_GLOBAL_DEVICE_ID", "64"}, {"NEURON_GLOBAL_DEVICE_COUNT", "64"}}),
       RankSource::kGlobalDeviceId,
       kNone,
       kNone,
       0,
       {"not below the job's 64"}},
      {"torchrun: a core a process", Facts(1, {{"RANK", "35"}, {"WORLD_SIZE", "64"}}), torchrun, 35,
       35, 64},
      {"torchrun: several cores a process multiply",
       Facts(4, {{"RANK", "3"},
                 {"WORLD_SIZE", "8"},
                 {"LOCAL_WORLD_SIZE", "2"},
                 {"TORCHELASTIC_RUN_ID", "x"}}),
       torchrun, 12, 15, 32},
      {"torchrun: the first of its processes to arrive is not taken for one that counts cores",
       Facts(4, {{"RANK", "4"},
                 {"WORLD_SIZE", "8"},
                 {"LOCAL_WORLD_SIZE", "4"},
                 {"TORCHELASTIC_RUN_ID", "x"}}),
       torchrun, 16, 19, 32},
      {"another launcher with the same variables that counts cores",
       Node(2, 1, Facts(4, {{"RANK", "12"}, {"WORLD_SIZE", "16"}, {"LOCAL_WORLD_SIZE", "8"}})),
       torchrun, 12, 15, 16},
      {"torchrun: a rank beyond the world is no evidence",
       Facts(2, {{"RANK", "4"}, {"WORLD_SIZE", "4"}}),
       torchrun,
       kNone,
       kNone,
       0,
       {"rank is not below the size"}},
      {"torchrun: text is no evidence",
       Facts(1, {{"RANK", "three"}}),
       torchrun,
       kNone,
       kNone,
       0,
       {"RANK=three is ignored"}},
      {"torchrun: an empty variable is none", Facts(1, {{"RANK", ""}}), torchrun, kNone, kNone, 0},
      {"torchrun: a number beyond 2^31 is no evidence",
       Facts(1, {{"RANK", "4294967296"}}),
       torchrun,
       kNone,
       kNone,
       0,
       {"RANK=4294967296 is ignored"}},
      {"mpi: rank times cores",
       Facts(8, {{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}}), RankSource::kMpi,
       24, 31, 32},
      {"mpi: PMI", Facts(1, {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}}), RankSource::kMpi, 3, 3, 4},
      {"mpi: one process a node with several workers counts nodes",
       Node(2, 0,
            Facts(1, {{"OMPI_COMM_WORLD_RANK", "3"},
                      {"OMPI_COMM_WORLD_SIZE", "4"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}})),
       RankSource::kMpi,
       kNone,
       kNone,
       0,
       {"counts nodes"}},
  };
}

std::vector<Case> SlurmCases() {
  const auto k = RankSource::kSlurm;
  const Env one_a_node = {{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "8"}, {"SLURM_NNODES", "8"}};
  Env under_torchrun = one_a_node;
  under_torchrun["LOCAL_WORLD_SIZE"] = "32";
  return {
      {"slurm: a task a core",
       Node(2, 1, Facts(1, {{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "8"}, {"SLURM_NNODES", "4"}})),
       k, 3, 3, 8},
      {"slurm: one process a node that owns all cores", Facts(32, one_a_node), k, 96, 127, 256},
      {"slurm: one task a node and several workers: a node index",
       Node(2, 1, Facts(1, one_a_node)),
       k,
       kNone,
       kNone,
       0,
       {"one task per node"}},
      {"slurm: the trap shows by torchrun before the other workers are there",
       Facts(1, under_torchrun),
       k,
       kNone,
       kNone,
       0,
       {"one task per node"}},
      {"slurm: several workers and nothing that tells",
       Node(2, 1, Facts(1, {{"SLURM_PROCID", "3"}})),
       k,
       kNone,
       kNone,
       0,
       {"SLURM_NTASKS or SLURM_NNODES is not set"}},
  };
}

std::vector<Case> ConfiguredCases() {
  const auto k = RankSource::kConfigured;
  return {
      {"configured: the order of arrival numbers the workers",
       Node(4, 2, Configured(32, 8, 64, Facts(2, {}))), k, 36, 37, 64},
      {"configured: visible cores say which cores of the node these are",
       Node(4, 0, Configured(32, 32, 64, Facts(4, {{"NEURON_RT_VISIBLE_CORES", "8-11"}}))), k, 40,
       43, 64},
      {"configured: the local rank says it too",
       Node(4, 0, Configured(32, 32, 64, Facts(4, {{"LOCAL_RANK", "2"}}))), k, 40, 43, 64},
      {"configured: the start alone", Configured(7, std::nullopt, std::nullopt, Facts(1, {})), k, 7,
       7, 0},
      {"configured: the count alone turns it on, the start is 0",
       Configured(std::nullopt, std::nullopt, 4, Facts(4, {})), k, 0, 3, 4},
      {"configured: cores beyond the node's share get nothing", Configured(0, 2, 4, Facts(4, {})),
       k, 0, kNone, 4},
      {"configured: a worker beyond the node's share gets nothing",
       Node(3, 2, Configured(0, 2, 4, Facts(1, {}))),
       k,
       kNone,
       kNone,
       0,
       {"--workers-per-node is 2"}},
      {"configured: ranks beyond the count are refused",
       Configured(62, std::nullopt, 64, Facts(4, {})),
       k,
       62,
       kNone,
       64,
       {"not below the job's 64"}},
      {"configured: malformed visible cores are told and passed over",
       Configured(8, std::nullopt, std::nullopt, Facts(1, {{"NEURON_RT_VISIBLE_CORES", "a"}})),
       k,
       8,
       8,
       0,
       {"NEURON_RT_VISIBLE_CORES=a is ignored"}},
  };
}

class RankResolverTable : public ::testing::TestWithParam<Case> {};

TEST_P(RankResolverTable, GivesRanksAndWarnings) {
  const Case& c = GetParam();
  SCOPED_TRACE(c.name);
  const RankResolution got = ResolveRanks(c.facts);
  ASSERT_EQ(got.cores.size(), c.facts.visible_cores);

  const RankEvidence* first = BestEvidence(got.cores.front().rank_evidence);
  EXPECT_EQ(first == nullptr ? kNone : first->worker_gid, c.first);
  if (first != nullptr) {
    EXPECT_EQ(first->source, c.source);
    EXPECT_EQ(first->world_size, c.world);
    EXPECT_FALSE(first->detail.empty());
  }
  const RankEvidence* last = BestEvidence(got.cores.back().rank_evidence);
  EXPECT_EQ(last == nullptr ? kNone : last->worker_gid, c.last);

  ASSERT_EQ(got.warnings.size(), c.warnings.size()) << ::testing::PrintToString(got.warnings);
  for (size_t i = 0; i < c.warnings.size(); ++i) {
    EXPECT_THAT(got.warnings[i], HasSubstr(c.warnings[i]));
  }
}

INSTANTIATE_TEST_SUITE_P(Pjrt, RankResolverTable, ::testing::ValuesIn(PjrtCases()));
INSTANTIATE_TEST_SUITE_P(Launchers, RankResolverTable, ::testing::ValuesIn(LauncherCases()));
INSTANTIATE_TEST_SUITE_P(Slurm, RankResolverTable, ::testing::ValuesIn(SlurmCases()));
INSTANTIATE_TEST_SUITE_P(Configured, RankResolverTable, ::testing::ValuesIn(ConfiguredCases()));

std::vector<RankSource> Sources(const CoreInfo& core) {
  std::vector<RankSource> sources;
  for (const RankEvidence& evidence : core.rank_evidence) sources.push_back(evidence.source);
  return sources;
}

RankFacts EverythingAtOnce() {
  RankFacts facts = Facts(1, {{"NEURON_PJRT_PROCESSES_NUM_DEVICES", "1,1,1,1"},
                              {"NEURON_PJRT_PROCESS_INDEX", "3"},
                              {"NEURON_GLOBAL_DEVICE_ID", "3"},
                              {"RANK", "3"},
                              {"OMPI_COMM_WORLD_RANK", "3"},
                              {"SLURM_PROCID", "3"}});
  facts.configured.worker_start_id = 3;
  facts.communicators[0] = {3, 4};
  facts.event_gids[0] = 3;
  return facts;
}

TEST(RankResolver, ListsEvidenceBestFirst) {
  const RankResolution got = ResolveRanks(EverythingAtOnce());
  EXPECT_THAT(Sources(got.cores.at(0)),
              ElementsAre(RankSource::kCommunicator, RankSource::kEvent, RankSource::kPjrt,
                          RankSource::kGlobalDeviceId, RankSource::kTorchrun,
                          RankSource::kConfigured, RankSource::kMpi, RankSource::kSlurm));
  EXPECT_THAT(got.warnings, IsEmpty());
}

TEST(RankResolver, WarnsOnceOfEachSourceThatContradictsTheBest) {
  RankFacts facts = Facts(4, {{"RANK", "1"}, {"SLURM_PROCID", "2"}});
  for (uint32_t core = 0; core < 4; ++core) facts.communicators[core] = {core + 4, 16};
  facts.event_gids[2] = 9;
  const RankResolution got = ResolveRanks(facts);
  EXPECT_EQ(BestEvidence(got.cores.at(2).rank_evidence)->worker_gid, 6);
  EXPECT_THAT(got.warnings, ElementsAre(HasSubstr("SLURM_PROCID=2"), HasSubstr("worker_gid 9")));
}

TEST(RankResolver, LateCommunicatorReplacesTheEnvironment) {
  RankFacts facts = Facts(2, {{"RANK", "0"}});
  EXPECT_EQ(BestEvidence(ResolveRanks(facts).cores.at(1).rank_evidence)->worker_gid, 1);
  facts.communicators[1] = {17, 32};
  const RankResolution late = ResolveRanks(facts);
  EXPECT_EQ(BestEvidence(late.cores.at(1).rank_evidence)->source, RankSource::kCommunicator);
  EXPECT_EQ(BestEvidence(late.cores.at(1).rank_evidence)->worker_gid, 17);
  EXPECT_EQ(BestEvidence(late.cores.at(0).rank_evidence)->worker_gid, 0);
}

TEST(RankResolver, CoresSeenInCommunicatorsCountBeforeTheRuntimeSaysHowMany) {
  RankFacts facts = Facts(0, {});
  facts.communicators[3] = {35, 64};
  facts.event_gids[5] = 37;
  const RankResolution got = ResolveRanks(facts);
  ASSERT_EQ(got.cores.size(), 2u);
  EXPECT_EQ(got.cores[0].nc_idx, 3u);
  EXPECT_EQ(got.cores[0].rank_evidence.at(0).worker_gid, 35);
  EXPECT_EQ(got.cores[0].rank_evidence.at(0).world_size, 64);
  EXPECT_EQ(got.cores[1].rank_evidence.at(0).source, RankSource::kEvent);
}

TEST(RankResolver, UnknownRanksAndCoresBeyondTheLimitAreLeftOut) {
  RankFacts facts = Facts(0xffffffffu, {});
  facts.communicators[limits::kCoresPerWorkerMax] = {1, 2};
  facts.communicators[0] = {-1, 2};
  facts.event_gids[0] = -1;
  const RankResolution got = ResolveRanks(facts);
  EXPECT_EQ(got.cores.size(), limits::kCoresPerWorkerMax);
  EXPECT_THAT(got.cores.at(0).rank_evidence, IsEmpty());
}

TEST(RankResolver, NothingKnownGivesNothing) {
  const RankResolution got = ResolveRanks(RankFacts{});
  EXPECT_THAT(got.cores, IsEmpty());
  EXPECT_THAT(got.warnings, IsEmpty());
}

TEST(RankResolver, LongMalformedValuesAreCutInWarnings) {
  const RankResolution got = ResolveRanks(Facts(1, {{"RANK", std::string(100'000, 'x')}}));
  ASSERT_EQ(got.warnings.size(), 1u);
  EXPECT_LT(got.warnings[0].size(), 200u);
}

}  // namespace
}  // namespace neurontrace
