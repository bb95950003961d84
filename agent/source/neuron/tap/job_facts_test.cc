// SPDX-License-Identifier: Apache-2.0
// Goal: a worker is found by whatever name its job has, and a hostile environment names nothing
// that does not fit a message.
#include "agent/source/neuron/tap/job_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

using Facts = std::vector<KeyValue>;

TEST(JobFacts, ComeFromSchedulerAndUserVariables) {
  const Environment environment = {{"NEURONTRACE_JOB", "llama"},
                                   {"NEURONTRACE_LABELS", "team=search, run = 7,=x,odd,empty="},
                                   {"SLURM_JOB_ID", "4711"},
                                   {"SLURM_ARRAY_JOB_ID", "4700"},
                                   {"SLURM_ARRAY_TASK_ID", "11"},
                                   {"TORCHELASTIC_RUN_ID", "a1"},
                                   {"NEURON_RT_ROOT_COMM_ID", "10.0.0.1:46820"},
                                   {"MASTER_ADDR", "10.0.0.2"},
                                   {"MASTER_PORT", "29500"},
                                   {"POD_NAMESPACE", "training"},
                                   {"POD_NAME", "llama-0"},
                                   {"PATH", "/bin"}};
  EXPECT_EQ(FindJobFacts(environment), (Facts{{"comm", "10.0.0.1:46820"},
                                              {"job", "llama"},
                                              {"label:empty", ""},
                                              {"label:run", "7"},
                                              {"label:team", "search"},
                                              {"master", "10.0.0.2:29500"},
                                              {"namespace", "training"},
                                              {"pod", "llama-0"},
                                              {"slurm", "4700_11"},
                                              {"slurm", "4711"},
                                              {"torchelastic", "a1"}}));
  EXPECT_EQ(FindJob(environment), "llama");
  for (const auto& [name, value] : environment) EXPECT_EQ(IsJobVariable(name), name != "PATH");
}

TEST(JobFacts, ARunWithoutANameIsNoFact) {
  EXPECT_EQ(FindJobFacts({{"TORCHELASTIC_RUN_ID", "none"}, {"PET_RDZV_ID", "run7"}}),
            (Facts{{"torchelastic", "run7"}}));
  EXPECT_EQ(FindJobFacts({{"TORCHELASTIC_RUN_ID", "run7"}, {"PET_RDZV_ID", "run7"}}),
            (Facts{{"torchelastic", "run7"}}));
  EXPECT_EQ(FindJobFacts({{"SLURM_JOB_ID", ""}, {"SLURM_ARRAY_TASK_ID", "3"}}), Facts());
  EXPECT_EQ(FindJob({{"TORCHELASTIC_RUN_ID", "none"}}), "");
  // A pod's name says nothing of what else belongs to its job.
  EXPECT_EQ(FindJob({{"POD_NAME", "llama-0"}}), "");
}

TEST(JobFacts, AreBoundedAndClean) {
  std::string labels;
  for (int i = 0; i < 1'000; ++i) labels += "k" + std::to_string(i) + "=v,";
  Facts facts = FindJobFacts({{"NEURONTRACE_LABELS", labels},
                              {"POD_NAME",
                               "a\x01\xff"
                               "b"}});
  EXPECT_EQ(facts.size(), limits::kWorkerJobFactsMax);
  EXPECT_EQ(facts.back(), (KeyValue{"pod", "a??b"}));
  facts = FindJobFacts(
      {{"NEURONTRACE_LABELS", std::string(9'000, 'k') + "=" + std::string(9'000, 'v')}});
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_LE(facts[0].key.size(), limits::kIdentityStringBytesMax);
  EXPECT_LE(facts[0].value.size(), limits::kIdentityStringBytesMax);
}

TEST(JobFactsTest, UserComesFromKernel) {
  const Environment environment = {
      {"NEURONTRACE_JOB", "a"}, {"uid", "0"}, {"NEURONTRACE_LABELS", "uid=0,zone=b"}};
  EXPECT_EQ(WithUser(FindJobFacts(environment), 1000),
            (Facts{{"job", "a"}, {"label:uid", "0"}, {"label:zone", "b"}, {"uid", "1000"}}));
  EXPECT_EQ(WithUser({}, std::nullopt), Facts());
}

TEST(JobFactsTest, TheUserIsThereHoweverManyLabelsThereAre) {
  std::string labels;
  for (int i = 0; i < 100; ++i) labels += "label" + std::to_string(i) + "=x,";
  const auto facts = WithUser(FindJobFacts({{"NEURONTRACE_LABELS", labels}}), 1000);
  EXPECT_EQ(facts.size(), limits::kWorkerJobFactsMax);
  EXPECT_EQ(facts.back(), (KeyValue{"uid", "1000"}));
}

TEST(JobFacts, KubeletOverridesEnvironment) {
  std::vector<KeyValue> facts = FindJobFacts({{"POD_NAMESPACE", "lies"}, {"SLURM_JOB_ID", "7"}});
  std::vector<std::string> warnings;
  SetPodFacts({"training", "llama-0", "worker"}, facts, warnings);
  EXPECT_EQ(
      facts,
      (Facts{
          {"container", "worker"}, {"namespace", "training"}, {"pod", "llama-0"}, {"slurm", "7"}}));
  EXPECT_EQ(warnings, (std::vector<std::string>{"its environment has namespace \"lies\", but the "
                                                "kubelet reports \"training\", which is used"}));

  facts = FindJobFacts({{"POD_NAMESPACE", "training"}, {"POD_NAME", "llama-0"}});
  warnings.clear();
  SetPodFacts({"training", "llama-0"}, facts, warnings);
  EXPECT_EQ(facts, (Facts{{"namespace", "training"}, {"pod", "llama-0"}}));
  EXPECT_TRUE(warnings.empty());
}

TEST(JobFacts, ReportsTruncatedAndOmittedFacts) {
  std::vector<std::string> warnings;
  WarnOfCutNames({{"NEURONTRACE_JOB", "llama"}, {"NEURONTRACE_LABELS", "team=search,run=7,"}}, 0,
                 warnings);
  EXPECT_TRUE(warnings.empty());
  std::string labels = "nothing," + std::string(600, 'v') + "=1,";
  for (int i = 0; i < 100; ++i) labels += "k" + std::to_string(i) + "=v,";
  WarnOfCutNames({{"NEURONTRACE_JOB", std::string(600, 'j')}, {"NEURONTRACE_LABELS", labels}}, 2,
                 warnings);
  ASSERT_EQ(warnings.size(), 5u);
  EXPECT_THAT(warnings[0], HasSubstr("NEURONTRACE_JOB has 600 bytes and is truncated to 512"));
  EXPECT_THAT(warnings[1], HasSubstr("NEURONTRACE_LABELS: 1 ignored"));
  EXPECT_THAT(warnings[2], HasSubstr("NEURONTRACE_LABELS: 1 truncated"));
  EXPECT_THAT(warnings[3], HasSubstr("NEURONTRACE_LABELS has 101 labels"));
  EXPECT_THAT(warnings[4], HasSubstr("2 variables"));
}

TEST(JobFacts, PodOverridesLabels) {
  std::string labels;
  for (int i = 0; i < 100; ++i) labels += "k" + std::to_string(i) + "=v,";
  std::vector<KeyValue> facts =
      FindJobFacts({{"NEURONTRACE_LABELS", labels}, {"TORCHELASTIC_RUN_ID", "run"}});
  ASSERT_EQ(facts.size(), limits::kWorkerJobFactsMax);
  std::vector<std::string> warnings(limits::kWorkerWarningsMax);
  facts[0] = {"namespace", "lies"};
  SetPodFacts({"training", "llama-0", "worker"}, facts, warnings);
  EXPECT_EQ(facts.size(), limits::kWorkerJobFactsMax);
  EXPECT_EQ(warnings.size(), limits::kWorkerWarningsMax);
  for (const KeyValue& fact : {KeyValue{"namespace", "training"}, KeyValue{"pod", "llama-0"},
                               KeyValue{"container", "worker"}, KeyValue{"torchelastic", "run"}}) {
    EXPECT_NE(std::find(facts.begin(), facts.end(), fact), facts.end()) << fact.key;
  }
}

}  // namespace
}  // namespace neurontrace
