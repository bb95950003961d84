// SPDX-License-Identifier: Apache-2.0
// The ranks that the workers of one node claim for each other, and their places.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "agent/ranks/rank_resolver.h"
#include "agent/ranks/rank_test_support.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(RankNode, ChildrenOfOneTaskHaveNoRankFromIt) {
  const auto child = [](const char* local_rank) {
    return Facts(1, {{"SLURM_PROCID", "0"},
                     {"SLURM_NTASKS", "8"},
                     {"SLURM_NNODES", "2"},
                     {"SLURM_LOCALID", "0"},
                     {"LOCAL_RANK", local_rank}});
  };
  const auto node = ResolveNode(Node({child("0"), child("1"), child("2"), child("3")}), {});
  EXPECT_EQ(Gids(node), GidLists({{kNone}, {kNone}, {kNone}, {kNone}}));
  for (const auto& worker : node) {
    EXPECT_EQ(worker.warnings, node.front().warnings) << "equal texts fold";
    EXPECT_THAT(worker.warnings, ElementsAre(HasSubstr("several workers of this node have it")));
  }
}

TEST(RankNode, IgnoresTaskRankUnderTorchrun) {
  std::vector<RankFacts> workers;
  for (int i = 0; i < 4; ++i) {
    workers.push_back(Facts(1, {{"SLURM_PROCID", "0"},
                                {"SLURM_NTASKS", "2"},
                                {"SLURM_NNODES", "2"},
                                {"RANK", std::to_string(4 + i)},
                                {"WORLD_SIZE", "8"},
                                {"LOCAL_RANK", std::to_string(i)}}));
  }
  const auto node = ResolveNode(Node(workers), {});
  EXPECT_EQ(Gids(node), GidLists({{4}, {5}, {6}, {7}}));
  for (const auto& worker : node) {
    EXPECT_THAT(worker.warnings, IsEmpty());
    EXPECT_THAT(worker.guesses, IsEmpty());
  }
}

TEST(RankNode, TasksOfAStepThatDifferAreTasks) {
  const auto task = [](const char* id) { return Facts(1, {{"SLURM_PROCID", id}}); };
  EXPECT_EQ(Gids(ResolveNode(Node({task("2"), task("3")}), {})), GidLists({{2}, {3}}));
  EXPECT_EQ(Gids(ResolveNode(Node({task("2"), task("2")}), {})), GidLists({{kNone}, {kNone}}));
}

TEST(RankNode, DuplicateIndexIsNoEvidence) {
  const auto twice = [](uint32_t cores, Env environment) {
    return Gids(ResolveNode(Node({Facts(cores, environment), Facts(cores, environment)}), {}));
  };
  EXPECT_EQ(twice(1, {{"RANK", "3"}, {"WORLD_SIZE", "8"}}), GidLists({{kNone}, {kNone}}));
  EXPECT_EQ(twice(1, {{"OMPI_COMM_WORLD_RANK", "3"}}), GidLists({{kNone}, {kNone}}));
  EXPECT_EQ(
      twice(2, {{"NEURON_PJRT_PROCESSES_NUM_DEVICES", "2,2"}, {"NEURON_PJRT_PROCESS_INDEX", "1"}}),
      GidLists({{kNone, kNone}, {kNone, kNone}}));
  EXPECT_EQ(twice(1, {{"NEURON_GLOBAL_DEVICE_ID", "3"}}), GidLists({{kNone}, {kNone}}));
}

TEST(RankNode, ReplicasWithSeparateWorldsKeepRanksAndWarn) {
  const auto engine = [](const char* port) {
    return Facts(
        1,
        {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", port}});
  };
  const auto node = ResolveNode(Node({engine("1"), engine("2")}), {});
  EXPECT_EQ(Gids(node), GidLists({{0}, {0}}));
  for (const auto& worker : node) {
    EXPECT_TRUE(worker.cores[0].rank_evidence[0].contradicted);
    EXPECT_THAT(worker.contradictions, ElementsAre(HasSubstr("several workers")));
  }
}

TEST(RankNode, UnnamedJobsOfTwoContainersAreNotCompared) {
  auto workers = Node({Facts(1, {{"RANK", "0"}, {"WORLD_SIZE", "1"}}),
                       Facts(1, {{"RANK", "0"}, {"WORLD_SIZE", "1"}})},
                      "");
  workers[0].container_id = "a";
  workers[1].container_id = "b";
  const auto node = ResolveNode(workers, {});
  EXPECT_EQ(Gids(node), GidLists({{0}, {0}}));
  EXPECT_THAT(node[0].warnings, IsEmpty());
}

// Two jobs that nobody named, as on a laptop.
TEST(RankNode, UnnamedJobsOfOneContainerAreNotCompared) {
  RankFacts whole = Facts(2, {});
  whole.communicators = {{0, {0, 2}}, {1, {1, 2}}};
  const Env alone = {{"RANK", "0"}, {"WORLD_SIZE", "1"}};
  const auto torchrun = [](const char* rank, const char* port) {
    return Facts(
        1,
        {{"RANK", rank}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", port}});
  };
  const auto two_torchruns =
      Node({torchrun("0", "1"), torchrun("1", "1"), torchrun("0", "2"), torchrun("1", "2")}, "");
  for (const auto& [workers, gids, guessed] :
       {std::tuple(Node({whole, whole}, ""), GidLists({{0, 1}, {0, 1}}), false),
        std::tuple(Node({Facts(1, alone), Facts(1, alone)}, ""), GidLists({{0}, {0}}), true),
        std::tuple(two_torchruns, GidLists({{0}, {1}, {0}, {1}}), false)}) {
    const auto node = ResolveNode(workers, {});
    EXPECT_EQ(Gids(node), gids);
    for (const RankResolution& worker : node) {
      EXPECT_THAT(worker.warnings, IsEmpty());
      for (const CoreInfo& core : worker.cores) {
        EXPECT_FALSE(core.rank_evidence[0].contradicted);
        EXPECT_EQ(core.rank_evidence[0].guessed, guessed);
      }
    }
  }
  // Those that are parts of worlds are compared, and so are all that name one job.
  RankFacts part = Facts(1, {});
  part.communicators = {{0, {0, 2}}};
  for (const auto& workers : {Node({part, part}, ""), Node({whole, whole})}) {
    EXPECT_TRUE(ResolveNode(workers, {})[0].cores[0].rank_evidence[0].contradicted);
  }
}

TEST(RankNode, DifferentSizesOfOneWorldAreContradictions) {
  const auto worker = [](const char* rank, const char* size) {
    return Facts(1, {{"RANK", rank}, {"WORLD_SIZE", size}});
  };
  const auto node = ResolveNode(Node({worker("0", "2"), worker("1", "4")}), {});
  EXPECT_EQ(Gids(node), GidLists({{0}, {1}}));
  for (const RankResolution& each : node) {
    EXPECT_TRUE(each.cores[0].rank_evidence[0].contradicted);
    EXPECT_EQ(each.contradictions, node[0].contradictions) << "equal texts fold";
    EXPECT_THAT(each.contradictions, ElementsAre(HasSubstr("different sizes of the job")));
  }
}

TEST(RankNode, AnotherUserCannotContradict) {
  auto workers = Node({Facts(1, {{"RANK", "0"}}), Facts(1, {{"RANK", "0"}})});
  workers[0].user = 1000;
  workers[1].user = 1001;
  EXPECT_EQ(Gids(ResolveNode(workers, {})), GidLists({{0}, {0}}));
}

TEST(RankNode, ProcessesOfDifferentSizesAreSummedWhereAllBeforeAreKnown) {
  const auto process = [](uint32_t cores, const char* rank) {
    return Facts(cores, {{"RANK", rank}, {"WORLD_SIZE", "3"}, {"GROUP_RANK", "0"}});
  };
  const auto all = ResolveNode(Node({process(2, "0"), process(4, "1"), process(1, "2")}), {});
  EXPECT_EQ(Gids(all), GidLists({{0, 1}, {2, 3, 4, 5}, {6}}));
  for (const auto& worker : all) {
    EXPECT_EQ(worker.cores[0].rank_evidence[0].world_size, 7);
    EXPECT_FALSE(worker.cores[0].rank_evidence[0].guessed);
  }
  const auto some = ResolveNode(Node({process(2, "0"), process(1, "2")}), {});
  EXPECT_EQ(Gids(some), GidLists({{0, 1}, {kNone}}));
  EXPECT_EQ(some[0].cores[0].rank_evidence[0].world_size, 0);
  EXPECT_THAT(some[1].warnings, ElementsAre(HasSubstr("different core counts")));
}

TEST(RankNode, AListThatDoesNotFitAnotherWorkerIsNoEvidence) {
  const auto process = [](uint32_t cores, const char* index) {
    return Facts(cores, {{"NEURON_PJRT_PROCESSES_NUM_DEVICES", "4,4"},
                         {"NEURON_PJRT_PROCESS_INDEX", index}});
  };
  const auto node = ResolveNode(Node({process(8, "0"), process(4, "1")}), {});
  EXPECT_EQ(Gids(node), GidLists({std::vector<int64_t>(8, kNone), std::vector<int64_t>(4, kNone)}));
  EXPECT_THAT(node[1].warnings, ElementsAre(HasSubstr("another worker of this node")));
}

TEST(RankNode, StaleRankContradictingLocalRankIsNoEvidence) {
  const auto process = [](const char* rank, const char* local) {
    return Facts(1, {{"RANK", rank}, {"LOCAL_RANK", local}, {"GROUP_RANK", "1"}});
  };
  EXPECT_EQ(Gids(ResolveNode(Node({process("4", "0"), process("5", "1")}), {})),
            GidLists({{4}, {5}}));
  EXPECT_EQ(Gids(ResolveNode(Node({process("4", "0"), process("3", "1")}), {})),
            GidLists({{kNone}, {kNone}}));
}

TEST(RankNode, HelpersDoNotInvalidateRanks) {
  auto workers = Node({Facts(1, {{"RANK", "0"}, {"WORLD_SIZE", "2"}}),
                       Facts(1, {{"RANK", "1"}, {"WORLD_SIZE", "2"}}),
                       Facts(1, {{"RANK", "1"}, {"WORLD_SIZE", "2"}}),
                       Facts(0, {{"RANK", "0"}, {"WORLD_SIZE", "2"}})});
  workers[2].ancestors = {7, workers[1].pid};
  const auto child = ResolveNode(workers, {});
  EXPECT_EQ(Gids(child), GidLists({{0}, {1}, {kNone}, {}}));
  EXPECT_FALSE(child[0].cores[0].rank_evidence[0].guessed) << "its helper has no cores";
  EXPECT_TRUE(child[1].cores[0].rank_evidence[0].guessed);
  EXPECT_THAT(child[2].warnings, ElementsAre(HasSubstr("older worker")));

  workers[2].ancestors.clear();
  EXPECT_EQ(Gids(ResolveNode(workers, {})), GidLists({{0}, {kNone}, {kNone}, {}}));
  workers[2].start_time_ticks = workers[1].start_time_ticks + 6'000;
  EXPECT_EQ(Gids(ResolveNode(workers, {})), GidLists({{0}, {1}, {kNone}, {}}));
}

TEST(RankNode, AHelperDoesNotMakeATaskANodesIndex) {
  const Env task = {{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "8"}, {"SLURM_NNODES", "8"}};
  auto workers = Node({Facts(4, task), Facts(1, task)});
  workers[1].ancestors = {workers[0].pid};
  EXPECT_EQ(Gids(ResolveNode(workers, {})), GidLists({{12, 13, 14, 15}, {kNone}}));
}

TEST(RankNode, ContradictionOutlivesItsProcess) {
  const Env task = {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_NNODES", "2"}};
  auto workers = Node({Facts(1, task), Facts(1, task)});
  workers[1].arrived_ns = 5'000'000'000;
  workers[0].ended_ns = 9'000'000'000;
  EXPECT_EQ(Gids(ResolveNode(workers, {}))[1], std::vector<int64_t>{kNone});
  workers[0].ended_ns = 5'100'000'000;  // it was replaced by the other
  EXPECT_EQ(Gids(ResolveNode(workers, {}))[1], std::vector<int64_t>{0});
}

TEST(RankNode, VisibleCoresOfWorkersMayBeInterleaved) {
  const auto worker = [](const char* list) {
    return Facts(4, {{"NEURON_RT_VISIBLE_CORES", list}});
  };
  const ConfiguredRanks configured{0, 8, 8};
  const auto node = ResolveNode(Node({worker("0,2,4-5"), worker("1,3,6-7")}), configured);
  EXPECT_EQ(Gids(node), GidLists({{0, 2, 4, 5}, {1, 3, 6, 7}}));
  EXPECT_THAT(node[0].warnings, IsEmpty());
  EXPECT_FALSE(node[0].cores[0].rank_evidence[0].guessed);

  const auto shared = ResolveNode(Node({worker("0-3"), worker("3-6")}), configured);
  EXPECT_EQ(Gids(shared), GidLists({{0, 1, 2, 3}, {4, 5, 6, 7}})) << "by the order of start";
  for (const auto& each : shared) {
    EXPECT_THAT(each.warnings, ElementsAre(HasSubstr("several workers of this node list core 3")));
    EXPECT_TRUE(each.cores[0].rank_evidence[0].guessed);
  }
}

TEST(RankNode, StartIdsThatContradictEachOtherAreNoEvidence) {
  const auto worker = [](const char* start) {
    return Facts(1, {{"NEURONTRACE_WORKER_START_ID", start}});
  };
  const auto node = ResolveNode(Node({worker("0"), worker("8")}), {});
  EXPECT_EQ(Gids(node), GidLists({{kNone}, {kNone}}));
  EXPECT_THAT(node[0].warnings,
              ElementsAre(HasSubstr("another worker of this node has a different value")));
}

TEST(RankNode, ObservedRanksOverrideEnvironmentOfOtherWorkers) {
  auto workers = Node({Facts(1, {{"RANK", "1"}}), Facts(1, {{"RANK", "0"}})});
  workers[0].communicators[0] = {0, 2};
  const auto node = ResolveNode(workers, {});
  EXPECT_EQ(Gids(node), GidLists({{0}, {kNone}}));
  EXPECT_THAT(node[1].warnings, ElementsAre(HasSubstr("has rank 0 with better evidence")));
  workers[1].communicators[0] = {0, 2};
  for (const auto& worker : ResolveNode(workers, {})) {
    EXPECT_THAT(worker.contradictions, ElementsAre(HasSubstr("several workers")));
  }
}

// Places.

std::vector<std::optional<uint32_t>> Places(const std::vector<RankResolution>& node) {
  std::vector<std::optional<uint32_t>> places;
  for (const RankResolution& worker : node) places.push_back(worker.first_node_core);
  return places;
}

TEST(RankPlaces, AreGivenInTheOrderOfStartAndKept) {
  auto workers = Node({Facts(2, {}), Facts(4, {}), Facts(2, {})});
  std::swap(workers[0].start_time_ticks, workers[2].start_time_ticks);
  auto node = ResolveNode(workers, {0, {}, {}});
  EXPECT_THAT(Places(node), ElementsAre(6u, 2u, 0u));
  for (size_t i = 0; i < workers.size(); ++i) workers[i].first_node_core = node[i].first_node_core;
  std::reverse(workers.begin(), workers.end());
  EXPECT_THAT(Places(ResolveNode(workers, {0, {}, {}})), ElementsAre(0u, 2u, 6u));

  workers.erase(workers.begin() + 1);  // the one in the middle died
  EXPECT_THAT(Places(ResolveNode(workers, {0, {}, {}})), ElementsAre(0u, 6u));
  workers.push_back(Facts(4, {}));  // and is replaced
  workers.back().job = "job";
  workers.back().start_time_ticks = 9'000;
  EXPECT_THAT(Places(ResolveNode(workers, {0, {}, {}})), ElementsAre(0u, 6u, 2u));
}

TEST(RankPlaces, WaitUntilAssignable) {
  auto workers = Node({Facts(1, {})});
  workers[0].may_be_placed = false;
  const auto node = ResolveNode(workers, {0, {}, {}});
  EXPECT_THAT(Places(node), ElementsAre(std::nullopt));
  EXPECT_EQ(Gids(node), GidLists({{kNone}}));
  EXPECT_THAT(node[0].warnings, ElementsAre(HasSubstr("not known yet")));
}

TEST(RankPlaces, OlderClaimantKeepsPlace) {
  auto workers = Node({Facts(2, {}), Facts(2, {}), Facts(2, {})});
  workers[1].first_node_core = 2;
  workers[2].first_node_core = 3;
  workers[0].first_node_core = 0xffffffff;
  EXPECT_THAT(Places(ResolveNode(workers, {0, {}, {}})), ElementsAre(0u, 2u, 4u));
}

// An agent that is restarted knows nothing of the worker that died, whose cores came first.
TEST(RankNode, ALocalRankKeepsItsCoresWhereALowerOneHasDiedAndTheAgentWasRestarted) {
  const auto local = [](uint32_t cores, const char* rank) {
    return Facts(cores, {{"LOCAL_RANK", rank}});
  };
  const ConfiguredRanks configured{.worker_start_id = 10};
  for (const uint32_t others : {2u, 4u}) {  // as many cores as the one that dies, and more
    std::vector<RankFacts> workers = Node({local(2, "0"), local(others, "1"), local(4, "2")});
    std::vector<RankResolution> node = ResolveNode(workers, configured);
    const GidLists before = Gids(node);
    EXPECT_EQ(before[2].front(), 12 + others);
    for (size_t i = 0; i < workers.size(); ++i)
      workers[i].first_node_core = node[i].first_node_core;
    workers.erase(workers.begin());
    node = ResolveNode(workers, configured);
    EXPECT_EQ(Gids(node), GidLists({before[1], before[2]}));
    EXPECT_THAT(node[1].guesses, Not(IsEmpty()));
  }
}

}  // namespace
}  // namespace neurontrace
