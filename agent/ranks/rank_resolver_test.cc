// SPDX-License-Identifier: Apache-2.0
// Which evidence leads to which ranks. Most cases are rows of a table: one worker's environment and
// facts in, ranks of the first and last core, the winning source and parts of the warnings out.
// Claims about other workers of the node follow behind the table.
#include "agent/ranks/rank_resolver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/ranks/rank_test_support.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Case {
  std::string name;
  RankFacts facts;
  RankSource source;  // of the best evidence of core 0
  int64_t first;      // rank of core 0 by the best evidence, or kNone
  int64_t last;       // of the last core
  int64_t world;
  std::vector<std::string> warnings = {};  // part of each, in order
  bool guessed = false;
  ConfiguredRanks configured = {};
};

// A rank that is no guess, and what is reported of the rest.
Case Warned(std::string name, RankFacts facts, RankSource source, int64_t first, int64_t last,
            int64_t world, std::vector<std::string> warnings) {
  return {std::move(name), std::move(facts), source, first, last, world, std::move(warnings)};
}
// No rank, and a warning that says why.
Case Refused(std::string name, RankFacts facts, RankSource source, std::string warning,
             ConfiguredRanks configured = {}) {
  return {std::move(name), std::move(facts), source, kNone, kNone, 0, {std::move(warning)},
          false,           configured};
}
Case Guess(std::string name, RankFacts facts, RankSource source, int64_t first, int64_t last,
           int64_t world, std::vector<std::string> warnings = {}) {
  return {std::move(name), std::move(facts), source, first, last, world, std::move(warnings), true};
}
Case Configured(std::string name, RankFacts facts, ConfiguredRanks configured, int64_t first,
                int64_t last, int64_t world, std::vector<std::string> warnings = {}) {
  return {std::move(name),
          std::move(facts),
          RankSource::kConfigured,
          first,
          last,
          world,
          std::move(warnings),
          false,
          configured};
}
Case ConfiguredGuess(std::string name, RankFacts facts, ConfiguredRanks configured, int64_t first,
                     int64_t last, int64_t world, std::vector<std::string> warnings = {}) {
  Case guess = Configured(std::move(name), std::move(facts), configured, first, last, world,
                          std::move(warnings));
  guess.guessed = true;
  return guess;
}

std::vector<Case> PjrtCases() {
  const auto k = RankSource::kPjrt;
  const auto pjrt = [](uint32_t cores, std::string devices, std::string index, Env more = {}) {
    more["NEURON_PJRT_PROCESSES_NUM_DEVICES"] = std::move(devices);
    more["NEURON_PJRT_PROCESS_INDEX"] = std::move(index);
    return Facts(cores, std::move(more));
  };
  return {
      {"pjrt: the offset is the sum of the devices before", pjrt(4, "2,4,4,8", "2"), k, 6, 9, 18},
      {"pjrt: one process a node, blanks in the list", pjrt(64, "64, 64", "1"), k, 64, 127, 128},
      Guess("pjrt: LNC2 with physical cores in the list is halved",
            pjrt(64, "128,128,128", "2", {{"NEURON_RT_VIRTUAL_CORE_SIZE", "2"}}), k, 128, 191, 192,
            {"physical cores"}),
      Refused("pjrt: twice the cores without LNC2 is a contradiction",
              pjrt(4, "8,8", "1", {{"NEURON_LOGICAL_NC_CONFIG", "1"}}), k,
              "8 devices, but the process sees 4 cores"),
      Refused("pjrt: fewer devices than cores is a contradiction", pjrt(4, "1,1", "1"), k,
              "1 devices, but the process sees 4 cores"),
      Refused("pjrt: an index beyond the list is no evidence", pjrt(1, "1,1", "2"), k,
              "lists 2 processes"),
      Refused("pjrt: a malformed list is no evidence", pjrt(1, "4,,4", "0"), k,
              "NEURON_PJRT_PROCESSES_NUM_DEVICES=4,,4 is ignored"),
      Refused("pjrt: a malformed index is no evidence", pjrt(1, "4", "-1"), k,
              "NEURON_PJRT_PROCESS_INDEX=-1 is ignored"),
      {"pjrt: the list alone says nothing", Facts(1, {{"NEURON_PJRT_PROCESSES_NUM_DEVICES", "4"}}),
       k, kNone, kNone, 0},
  };
}

std::vector<Case> GlobalDeviceCases() {
  const auto device = RankSource::kGlobalDeviceId;
  return {
      {"global device id",
       Facts(1, {{"NEURON_GLOBAL_DEVICE_ID", "35"}, {"NEURON_GLOBAL_DEVICE_COUNT", "64"}}), device,
       35, 35, 64},
      Refused("global device id beyond its count is no evidence",
              Facts(1, {{"NEURON_GLOBAL_DEVICE_ID", "64"}, {"NEURON_GLOBAL_DEVICE_COUNT", "64"}}),
              device, "not below the size"),
      Refused("global device id whose cores go beyond its count is no evidence",
              Facts(4, {{"NEURON_GLOBAL_DEVICE_ID", "1"}, {"NEURON_GLOBAL_DEVICE_COUNT", "2"}}),
              device, "not below the job's 2"),
  };
}

std::vector<Case> TorchrunCases() {
  const auto torchrun = RankSource::kTorchrun;
  return {
      {"torchrun: a core a process", Facts(1, {{"RANK", "35"}, {"WORLD_SIZE", "64"}}), torchrun, 35,
       35, 64},
      Guess("torchrun: several cores a process multiply, which is a guess",
            Facts(4, {{"RANK", "3"},
                      {"WORLD_SIZE", "8"},
                      {"LOCAL_WORLD_SIZE", "2"},
                      {"TORCHELASTIC_RUN_ID", "x"}}),
            torchrun, 12, 15, 32),
      Guess("torchrun: the first of its processes to arrive is not taken for one that counts cores",
            Facts(4, {{"RANK", "4"},
                      {"WORLD_SIZE", "8"},
                      {"LOCAL_WORLD_SIZE", "4"},
                      {"TORCHELASTIC_RUN_ID", "x"}}),
            torchrun, 16, 19, 32),
      {"torchrun: one process that is the whole job needs no guess",
       Facts(4, {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"TORCHELASTIC_RUN_ID", "x"}}), torchrun, 0, 3,
       4},
      Guess("nothing tells whether WORLD_SIZE counts processes or their cores",
            Facts(8, {{"RANK", "1"}, {"WORLD_SIZE", "16"}}), torchrun, 8, 15, 0),
      Refused("torchrun: a rank beyond the world is no evidence",
              Facts(2, {{"RANK", "4"}, {"WORLD_SIZE", "4"}}), torchrun,
              "rank is not below the size"),
      Refused("torchrun: text is no evidence", Facts(1, {{"RANK", "three"}}), torchrun,
              "RANK=three is ignored"),
      {"torchrun: an empty variable is none", Facts(1, {{"RANK", ""}}), torchrun, kNone, kNone, 0},
      Refused("torchrun: a number beyond 2^31 is no evidence", Facts(1, {{"RANK", "4294967296"}}),
              torchrun, "RANK=4294967296 is ignored"),
  };
}

std::vector<Case> MpiCases() {
  const auto mpi = RankSource::kMpi;
  return {
      Guess("mpi: rank times cores is a guess",
            Facts(8, {{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}}), mpi, 24, 31,
            32),
      {"mpi: PMI", Facts(1, {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}}), mpi, 3, 3, 4},
  };
}

// Of Kubeflow's PyTorchJob, which sets RANK to the pod's index.
std::vector<Case> PodCases() {
  const auto k = RankSource::kTorchrun;
  const auto pod = [](uint32_t cores, std::string rank, std::string world, std::string per_pod,
                      Env more = {}) {
    more["RANK"] = rank;
    more["WORLD_SIZE"] = std::move(world);
    more["PET_NNODES"] = "2";
    more["PET_NPROC_PER_NODE"] = std::move(per_pod);
    more.emplace("PET_NODE_RANK", rank);
    return Facts(cores, std::move(more));
  };
  return {
      {"pod: one process with all cores of its pod", pod(8, "1", "16", "8"), k, 8, 15, 16},
      {"pod: WORLD_SIZE may count pods", pod(8, "1", "2", "8"), k, 8, 15, 16},
      Refused("pod: a process of several in the pod has no rank of its own", pod(1, "1", "16", "8"),
              k, "is the index of a pod"),
      Guess("pod: one process a pod", pod(4, "1", "2", "1"), k, 4, 7, 8),
      Refused("pod: sizes that contradict each other", pod(8, "1", "12", "8"), k,
              "give a different size"),
      Refused("pod: indexes that contradict each other",
              pod(8, "1", "16", "8", {{"PET_NODE_RANK", "0"}}), k,
              "it contradicts PET_NODE_RANK=0"),
      {"pod: RANK was set again for each process of the pod",
       pod(1, "11", "16", "8", {{"PET_NODE_RANK", "1"}, {"LOCAL_RANK", "3"}}), k, 11, 11, 16},
      {"pod: torchrun in it sets RANK again", pod(1, "11", "16", "8", {{"GROUP_RANK", "1"}}), k, 11,
       11, 16},
      {"pod: numbers that are words are passed over",
       Facts(1, {{"RANK", "1"},
                 {"WORLD_SIZE", "2"},
                 {"PET_NNODES", "1:2"},
                 {"PET_NPROC_PER_NODE", "auto"}}),
       k, 1, 1, 2},
  };
}

// One of eight tasks, each on a node of its own.
Env OneANode(Env more = {}) {
  more.merge(Env{
      {"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "8"}, {"SLURM_NNODES", "8"}, {"SLURM_STEP_ID", "0"}});
  return more;
}

std::vector<Case> SlurmCases() {
  const auto k = RankSource::kSlurm;
  return {
      Guess("slurm: one process a node that owns all cores", Facts(32, OneANode()), k, 96, 127,
            256),
      {"slurm: a task a core", Facts(1, OneANode()), k, 3, 3, 8},
      Guess("slurm: outside a step it may be the batch script's own number",
            Facts(1, {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}), k, 0, 0, 8),
      {"slurm: the step's tasks count, not the job's",
       Facts(1, OneANode({{"SLURM_STEP_NUM_TASKS", "4"}})), k, 3, 3, 4},
      Refused("slurm: the trap shows by torchrun before the other workers are there",
              Facts(1, OneANode({{"LOCAL_WORLD_SIZE", "32"}})), k, "one task per node"),
      Refused("slurm: more workers than tasks of the node",
              Facts(1, {{"SLURM_PROCID", "3"},
                        {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
                        {"LOCAL_WORLD_SIZE", "4"}}),
              k, "2 tasks per node"),
      Refused("slurm: a heterogeneous job", Facts(1, OneANode({{"SLURM_HET_SIZE", "2"}})), k,
              "heterogeneous"),
      Refused("slurm: an id beyond the tasks",
              Facts(1, {{"SLURM_PROCID", "4"}, {"SLURM_NTASKS", "4"}}), k, "not below the size"),
      Guess("slurm: a world of one process does not outweigh four tasks",
            Facts(4, {{"SLURM_PROCID", "1"},
                      {"SLURM_NTASKS", "4"},
                      {"SLURM_NNODES", "4"},
                      {"SLURM_STEP_NUM_TASKS", "4"},
                      {"PMI_RANK", "0"},
                      {"PMI_SIZE", "1"}}),
            k, 4, 7, 16),
      Warned("slurm: nor does a world of unknown size", Facts(1, OneANode({{"PMI_RANK", "0"}})), k,
             3, 3, 8, {"PMI_RANK=0 is ignored"}),
      Warned("slurm: torchrun's world of one is contradicted",
             Facts(1, OneANode({{"RANK", "0"}, {"WORLD_SIZE", "1"}})), k, 3, 3, 8,
             {"RANK=0 of 1 is ignored: it describes a world of one process"}),
  };
}

RankFacts VisibleCores(uint32_t count, std::string list, Env more = {}) {
  more["NEURON_RT_VISIBLE_CORES"] = std::move(list);
  return Facts(count, std::move(more));
}

std::vector<Case> ConfiguredCases() {
  const auto k = RankSource::kConfigured;
  return {
      ConfiguredGuess("configured: the place in the order of start is a guess", Facts(2, {}),
                      {32, 8, 64}, 32, 33, 64),
      Configured("configured: visible cores say which cores of the node these are",
                 VisibleCores(4, "8-11"), {32, 32, 64}, 40, 43, 64),
      Configured("configured: visible cores with holes and ranges", VisibleCores(4, "0,2,4-5"),
                 {0, 8, 8}, 0, 5, 8),
      Configured("configured: visible cores that are not as many as the process has",
                 VisibleCores(4, "0-7", {{"LOCAL_RANK", "0"}}), {0, 8, 8}, 0, 3, 8,
                 {"lists 8 cores, but the process has 4"}),
      ConfiguredGuess("configured: visible cores that repeat", VisibleCores(2, "1,1"), {0, 8, 8}, 0,
                      1, 8, {"NEURON_RT_VISIBLE_CORES=1,1 is ignored"}),
      Configured("configured: the local rank says it too", Facts(1, {{"LOCAL_RANK", "2"}}),
                 {32, 32, 64}, 34, 34, 64),
      ConfiguredGuess("configured: several cores a local rank multiply, which is a guess",
                      Facts(4, {{"LOCAL_RANK", "2"}}), {32, 32, 64}, 40, 43, 64),
      ConfiguredGuess("configured: the start alone", Facts(1, {}), {7, {}, {}}, 7, 7, 0),
      ConfiguredGuess("configured: the count alone turns it on, the start is 0", Facts(4, {}),
                      {{}, {}, 4}, 0, 3, 4),
      ConfiguredGuess("configured: cores beyond the node's share get nothing", Facts(4, {}),
                      {0, 2, 4}, 0, kNone, 4),
      Refused("configured: a worker beyond the node's share gets nothing", VisibleCores(1, "2"), k,
              "--workers-per-node is 2", {0, 2, 4}),
      Refused("configured: ranks beyond the count are refused", Facts(4, {}), k,
              "not below the job's 64", {62, {}, 64}),
      ConfiguredGuess("configured: malformed visible cores are told and passed over",
                      VisibleCores(1, "a"), {8, {}, {}}, 8, 8, 0,
                      {"NEURON_RT_VISIBLE_CORES=a is ignored"}),
      Configured(
          "configured: the job's own variables replace the agent's options",
          VisibleCores(1, "3",
                       {{"NEURONTRACE_WORKER_START_ID", "16"}, {"NEURONTRACE_WORKER_COUNT", "32"}}),
          {0, 8, 8}, 19, 19, 32),
      {"configured: a guess yields to a launcher",
       Facts(1, {{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_ID", "0"}}),
       RankSource::kSlurm,
       5,
       5,
       8,
       {"it is a guess"},
       false,
       {0, 8, 8}},
  };
}

class RankResolverTable : public ::testing::TestWithParam<Case> {};

TEST_P(RankResolverTable, GivesRanksAndWarnings) {
  const Case& c = GetParam();
  SCOPED_TRACE(c.name);
  const RankResolution got = ResolveAlone(c.facts, c.configured);
  ASSERT_EQ(got.cores.size(), c.facts.visible_cores);

  const RankEvidence* first = BestEvidence(got.cores.front().rank_evidence);
  EXPECT_EQ(first == nullptr ? kNone : first->worker_gid, c.first);
  if (first != nullptr) {
    EXPECT_EQ(first->source, c.source);
    EXPECT_EQ(first->world_size, c.world);
    EXPECT_FALSE(first->detail.empty());
    EXPECT_EQ(first->guessed, c.guessed) << first->detail;
    EXPECT_EQ(got.guesses.empty(), !c.guessed);
  }
  const RankEvidence* last = BestEvidence(got.cores.back().rank_evidence);
  EXPECT_EQ(last == nullptr ? kNone : last->worker_gid, c.last);

  ASSERT_EQ(got.warnings.size(), c.warnings.size()) << ::testing::PrintToString(got.warnings);
  for (size_t i = 0; i < c.warnings.size(); ++i) {
    EXPECT_THAT(got.warnings[i], HasSubstr(c.warnings[i]));
  }
}

INSTANTIATE_TEST_SUITE_P(Pjrt, RankResolverTable, ::testing::ValuesIn(PjrtCases()));
INSTANTIATE_TEST_SUITE_P(GlobalDevice, RankResolverTable, ::testing::ValuesIn(GlobalDeviceCases()));
INSTANTIATE_TEST_SUITE_P(Torchrun, RankResolverTable, ::testing::ValuesIn(TorchrunCases()));
INSTANTIATE_TEST_SUITE_P(Mpi, RankResolverTable, ::testing::ValuesIn(MpiCases()));
INSTANTIATE_TEST_SUITE_P(Pods, RankResolverTable, ::testing::ValuesIn(PodCases()));
INSTANTIATE_TEST_SUITE_P(Slurm, RankResolverTable, ::testing::ValuesIn(SlurmCases()));
INSTANTIATE_TEST_SUITE_P(Configured, RankResolverTable, ::testing::ValuesIn(ConfiguredCases()));

std::vector<RankSource> Sources(const CoreInfo& core) {
  std::vector<RankSource> sources;
  for (const RankEvidence& evidence : core.rank_evidence) sources.push_back(evidence.source);
  return sources;
}

TEST(RankResolver, ListsEvidenceBestFirst) {
  RankFacts facts = Facts(1, {{"NEURON_PJRT_PROCESSES_NUM_DEVICES", "1,1,1,1"},
                              {"NEURON_PJRT_PROCESS_INDEX", "3"},
                              {"NEURON_GLOBAL_DEVICE_ID", "3"},
                              {"RANK", "3"},
                              {"LOCAL_RANK", "0"},
                              {"OMPI_COMM_WORLD_RANK", "3"},
                              {"SLURM_PROCID", "3"}});
  facts.communicators[0] = {3, 4};
  facts.event_gids[0] = 3;
  const RankResolution got = ResolveAlone(facts, {.worker_start_id = 3});
  EXPECT_THAT(Sources(got.cores.at(0)),
              ElementsAre(RankSource::kCommunicator, RankSource::kEvent, RankSource::kPjrt,
                          RankSource::kGlobalDeviceId, RankSource::kTorchrun,
                          RankSource::kConfigured, RankSource::kMpi, RankSource::kSlurm));
  EXPECT_THAT(got.warnings, IsEmpty());
}

TEST(RankResolver, WarnsOncePerContradictingSource) {
  RankFacts facts = Facts(4, {{"RANK", "1"}, {"SLURM_PROCID", "2"}});
  for (uint32_t core = 0; core < 4; ++core) facts.communicators[core] = {core + 4, 16};
  facts.event_gids[2] = 9;
  const RankResolution got = ResolveAlone(facts);
  const auto& evidence = got.cores.at(2).rank_evidence;
  EXPECT_EQ(BestEvidence(evidence)->worker_gid, 6);
  EXPECT_FALSE(BestEvidence(evidence)->contradicted) << "what was observed needs no consent";
  EXPECT_TRUE(evidence.back().contradicted);
  EXPECT_THAT(got.warnings, ElementsAre(HasSubstr("SLURM_PROCID=2"), HasSubstr("worker_gid 9")));
  EXPECT_THAT(got.contradictions, IsEmpty());
}

TEST(RankResolver, VariablesThatContradictEachOtherMarkTheRank) {
  const RankResolution got = ResolveAlone(Facts(1, {{"RANK", "1"},
                                                    {"WORLD_SIZE", "8"},
                                                    {"OMPI_COMM_WORLD_RANK", "2"},
                                                    {"OMPI_COMM_WORLD_SIZE", "8"}}));
  EXPECT_EQ(got.cores.at(0).rank_evidence.at(0).worker_gid, 1);
  EXPECT_TRUE(got.cores.at(0).rank_evidence.at(0).contradicted);
  EXPECT_THAT(got.contradictions, ElementsAre(HasSubstr("gives rank 2, but")));
  EXPECT_EQ(got.contradictions, got.warnings);
}

TEST(RankResolver, SizesThatContradictEachOtherMarkTheRank) {
  const RankResolution got = ResolveAlone(
      Facts(1, {{"RANK", "1"}, {"WORLD_SIZE", "8"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "16"}}));
  EXPECT_TRUE(got.cores.at(0).rank_evidence.at(0).contradicted);
  EXPECT_THAT(got.contradictions, ElementsAre(HasSubstr("a job of 16 cores")));
}

TEST(RankResolver, LateCommunicatorReplacesTheEnvironment) {
  RankFacts facts = Facts(2, {{"RANK", "0"}});
  EXPECT_EQ(Gids({ResolveAlone(facts)}), GidLists({{0, 1}}));
  facts.communicators[1] = {17, 32};
  const RankResolution late = ResolveAlone(facts);
  EXPECT_EQ(BestEvidence(late.cores.at(1).rank_evidence)->source, RankSource::kCommunicator);
  EXPECT_EQ(Gids({late}), GidLists({{0, 17}}));
}

TEST(RankResolver, UsesCommunicatorCoresUntilRuntimeReportsCount) {
  RankFacts facts = Facts(0, {{"RANK", "1"}});
  facts.communicators[3] = {35, 64};
  facts.event_gids[5] = 37;
  const RankResolution got = ResolveAlone(facts);
  ASSERT_EQ(got.cores.size(), 2u);
  EXPECT_EQ(got.cores[0].nc_idx, 3u);
  EXPECT_EQ(got.cores[0].rank_evidence.at(0).worker_gid, 35);
  EXPECT_EQ(got.cores[0].rank_evidence.at(0).world_size, 64);
  EXPECT_EQ(got.cores[1].rank_evidence.at(0).source, RankSource::kEvent);
  EXPECT_EQ(got.cores[1].rank_evidence.size(), 1u) << "no variable counts without the core count";
}

TEST(RankResolver, UnknownRanksAndCoresBeyondTheLimitAreLeftOut) {
  RankFacts facts = Facts(0xffffffffu, {});
  facts.communicators[limits::kCoresPerWorkerMax] = {1, 2};
  facts.communicators[0] = {-1, 2};
  facts.communicators[1] = {2, 2};
  facts.event_gids[0] = -1;
  const RankResolution got = ResolveAlone(facts);
  EXPECT_EQ(got.cores.size(), limits::kCoresPerWorkerMax);
  EXPECT_THAT(got.cores.at(0).rank_evidence, IsEmpty());
  EXPECT_THAT(got.cores.at(1).rank_evidence, IsEmpty()) << "there is no device 2 of 2";
}

TEST(RankResolver, OneRankOfTwoCoresOfAProcess) {
  RankFacts facts = Facts(2, {});
  facts.event_gids = {{0, 0}, {1, 0}};
  EXPECT_EQ(Gids({ResolveAlone(facts)}), GidLists({{kNone, kNone}}));
  EXPECT_THAT(ResolveAlone(facts).warnings, ElementsAre(HasSubstr("several cores have it")));
  facts.communicators = {{0, {5, 8}}, {1, {5, 8}}};
  EXPECT_THAT(ResolveAlone(facts).contradictions, Contains(HasSubstr("the same rank, 5")));
}

TEST(RankResolver, NoEvidenceGivesNoRank) {
  const RankResolution got = ResolveAlone(RankFacts{});
  EXPECT_THAT(got.cores, IsEmpty());
  EXPECT_THAT(got.warnings, IsEmpty());
  EXPECT_THAT(ResolveNode({}, {}), IsEmpty());
}

TEST(RankResolver, LongMalformedValuesAreCutInWarnings) {
  const RankResolution got = ResolveAlone(Facts(1, {{"RANK", std::string(100'000, 'x')}}));
  ASSERT_EQ(got.warnings.size(), 1u);
  EXPECT_LT(got.warnings[0].size(), 200u);
}

}  // namespace
}  // namespace neurontrace
