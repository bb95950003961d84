// SPDX-License-Identifier: Apache-2.0
// What is typed becomes a spec, and what contradicts itself is refused with the way out.
#include "cli/capture_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "cli/quantity.h"

namespace neurontrace::cli {
namespace {

using ::testing::HasSubstr;
using Set = std::function<void(CaptureOptions&)>;

v1::CaptureSpec SpecAfter(const Set& set) {
  CaptureOptions options;
  set(options);
  const auto spec = SpecOf(options);
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *spec : v1::CaptureSpec();
}

std::string RefusalAfter(const Set& set) {
  CaptureOptions options;
  set(options);
  const auto spec = SpecOf(options);
  EXPECT_FALSE(spec.ok());
  return std::string(spec.status().message());
}

TEST(SpecOf, SelectsAJobByAnyOfItsNamesAndByFacts) {
  const v1::CaptureSpec spec = SpecAfter([](CaptureOptions& o) {
    o.jobs = {"llama", "slurm=4711", "comm=10.0.0.1:63423", "label:tier=gold"};
    o.namespaces = {"train"};
    o.pods = {"llama-0"};
    o.pod_labels = {"app=llama=70b"};
    o.worker_gids = {"0-7,64"};
    o.instances = {"i-a,i-b"};
  });
  EXPECT_EQ(spec.job(), "llama");
  std::string facts;
  for (const v1::KeyValue& fact : spec.job_facts()) facts += fact.key() + "=" + fact.value() + ";";
  EXPECT_EQ(facts,
            "slurm=4711;comm=10.0.0.1:63423;label:tier=gold;namespace=train;pod=llama-0;"
            "label:app=llama=70b;");
  ASSERT_EQ(spec.worker_gids_size(), 2);
  EXPECT_EQ(spec.worker_gids(0).last(), 7);
  EXPECT_EQ(spec.worker_gids(1).first(), 64);
  EXPECT_EQ(spec.worker_gids(1).last(), 64);
  EXPECT_EQ(spec.instance_ids_size(), 2);
}

TEST(SpecOf, TakesTimeExecutionsSizeAndConditions) {
  const v1::CaptureSpec spec = SpecAfter([](CaptureOptions& o) {
    o.duration = "30s";
    o.executions = "12";
    o.at_execution = "next";
    o.bytes_max = "2GB";
    o.keep_for = "7d";
    o.require = "90%";
    o.budget_core = "2%";
    o.budget_rate = "10MB/s";
    o.tags = {"ticket=4711", "why="};
  });
  EXPECT_EQ(spec.duration_ns(), 30'000'000'000u);
  EXPECT_EQ(spec.executions(), 12u);
  EXPECT_TRUE(spec.at_next_execution());
  EXPECT_EQ(spec.bytes_max(), 2'000'000'000u);
  EXPECT_EQ(spec.retention_ns(), 7 * 86'400'000'000'000u);
  EXPECT_EQ(spec.require_percent(), 90u);
  EXPECT_EQ(spec.budget_core_ppm(), 20'000u);
  EXPECT_EQ(spec.budget_bytes_per_second(), 10'000'000u);
  ASSERT_EQ(spec.labels_size(), 2);
  EXPECT_EQ(spec.labels(0).value(), "4711");
  EXPECT_EQ(SpecAfter([](CaptureOptions& o) { o.at_execution = "4711"; }).at_execution(), 4711u);
}

TEST(SpecOf, KnowsTheModes) {
  const v1::CaptureSpec snapshot = SpecAfter([](CaptureOptions& o) { o.last = "20s"; });
  EXPECT_EQ(snapshot.mode(), v1::CAPTURE_MODE_SNAPSHOT);
  EXPECT_EQ(snapshot.last_ns(), 20'000'000'000u);
  EXPECT_EQ(SpecAfter([](CaptureOptions& o) { o.last = "all"; }).last_ns(), 0u);
  const v1::CaptureSpec continuous = SpecAfter([](CaptureOptions& o) {
    o.continuous = true;
    o.keep = "10m";
    o.keep_bytes = "5GiB";
  });
  EXPECT_EQ(continuous.mode(), v1::CAPTURE_MODE_CONTINUOUS);
  EXPECT_EQ(continuous.retention_ns(), 600'000'000'000u);
  EXPECT_EQ(continuous.retention_bytes(), uint64_t{5} << 30);
  const v1::CaptureSpec preview = SpecAfter([](CaptureOptions& o) {
    o.dry_run = true;
    o.duration = "30s";
  });
  EXPECT_EQ(preview.mode(), v1::CAPTURE_MODE_PREVIEW);
  EXPECT_EQ(preview.duration_ns(), 30'000'000'000u);
}

TEST(SpecOf, RejectsContradictionsWithRemedy) {
  struct Case {
    Set set;
    const char* message;
  };
  const Case cases[] = {
      {[](CaptureOptions& o) {
         o.jobs = {"a", "b"};
       },
       "start one capture per job"},
      {[](CaptureOptions& o) { o.jobs = {"tier=gold"}; }, "--label tier=gold"},
      {[](CaptureOptions& o) { o.pod_labels = {"gold"}; }, "KEY=VALUE"},
      {[](CaptureOptions& o) { o.all_events = true, o.event_types = {"hardware"}; },
       "--all-events and --event-type exclude each other"},
      {[](CaptureOptions& o) { o.no_neuron = o.no_framework = true; }, "nothing to record"},
      {[](CaptureOptions& o) { o.duration = "0s"; }, "omit it to record until Ctrl-C"},
      {[](CaptureOptions& o) { o.executions = "0"; }, "at least 1"},
      {[](CaptureOptions& o) { o.at_execution = "soon"; }, "or next"},
      {[](CaptureOptions& o) { o.last = "20s", o.duration = "5s"; }, "use two captures"},
      {[](CaptureOptions& o) { o.last = "20s", o.ring_events = 4096; },
       "neurontrace flight-recorder on"},
      {[](CaptureOptions& o) { o.last = "20s", o.dry_run = true; },
       "neurontrace flight-recorder status"},
      {[](CaptureOptions& o) { o.last = "0s"; }, "greater than 0"},
      {[](CaptureOptions& o) { o.continuous = true; }, "needs --keep 10m or --keep-bytes 5GB"},
      {[](CaptureOptions& o) { o.continuous = true, o.keep = "10m", o.duration = "5s"; },
       "runs until it is stopped"},
      {[](CaptureOptions& o) { o.keep = "10m"; }, "--keep requires --continuous; use --keep-for"},
      {[](CaptureOptions& o) { o.dry_run = true, o.executions = "3"; }, "with --duration"},
      {[](CaptureOptions& o) { o.require = "most"; }, "all, any"},
  };
  for (const Case& c : cases) EXPECT_THAT(RefusalAfter(c.set), HasSubstr(c.message));
}

TEST(DescribeDefaultFilter, DescribesOnlyOmissions) {
  EXPECT_THAT(DescribeDefaultFilter(SpecAfter([](CaptureOptions&) {})), HasSubstr("--all-events"));
  EXPECT_EQ(DescribeDefaultFilter(SpecAfter([](CaptureOptions& o) { o.all_events = true; })), "");
  EXPECT_EQ(DescribeDefaultFilter(SpecAfter([](CaptureOptions& o) { o.last = "20s"; })), "");
  EXPECT_EQ(
      DescribeDefaultFilter(SpecAfter([](CaptureOptions& o) { o.event_types = {"hardware"}; })),
      "");
}

TEST(CaptureOptions, TagsOfTheAggregatorAreItsOwn) {
  for (const char* const tag : {"trigger=slow", " trigger=slow", "cause=fire"}) {
    CaptureOptions options;
    options.tags = {tag};
    EXPECT_FALSE(SpecOf(options).ok()) << tag;
  }
  CaptureOptions options;
  options.tags = {"triggered=by me"};
  EXPECT_TRUE(SpecOf(options).ok());
}

TEST(Quantities, AreReadAsPeopleWriteThem) {
  EXPECT_EQ(*ParseBytes("4096B"), 4096u);
  EXPECT_EQ(*ParseBytes("1.5GB"), 1'500'000'000u);
  EXPECT_EQ(*ParseBytes("64MiB"), uint64_t{64} << 20);
  EXPECT_EQ(*ParseByteRate("10MB"), 10'000'000u);
  EXPECT_EQ(*ParseProcessorShare("0.5%"), 5'000u);
  EXPECT_EQ(*ParseRequirement("all"), 100u);
  EXPECT_EQ(*ParseRequirement("any"), 0u);
  EXPECT_EQ(*ParseRequirement("75%"), 75u);
}

TEST(Quantities, RefuseTheRest) {
  for (const char* text :
       {"", "GB", "-1GB", "0", "4096", "1e30GB", "0x10", "1XB", "nan", "inf", "2xb/s"}) {
    EXPECT_FALSE(ParseBytes(text).ok()) << text;
    EXPECT_FALSE(ParseByteRate(text).ok()) << text;
  }
  for (const char* text : {"", "2", "0%", "101%", "-2%"}) {
    EXPECT_FALSE(ParseProcessorShare(text).ok()) << text;
  }
  for (const char* text : {"a", "7-3", "-1", "1-", "1-2-3", "1x"}) {
    EXPECT_FALSE(ParseGidRanges(text).ok()) << text;
  }
  for (const char* text : {"0", "1", "75", "101%", "50.5%", "half"}) {
    EXPECT_FALSE(ParseRequirement(text).ok()) << text;
  }
  EXPECT_FALSE(ParseKeyValue("=x").ok());
}

TEST(SpecOf, AsksFrameworksByTimeOrBySteps) {
  const v1::CaptureSpec by_time = SpecAfter([](CaptureOptions& options) {
    options.framework = "pytorch";
    options.duration = "20s";
  });
  ASSERT_EQ(by_time.frameworks_size(), 1);
  EXPECT_EQ(by_time.frameworks(0), "pytorch");
  EXPECT_EQ(by_time.framework_steps(), 0u);
  const v1::CaptureSpec by_step = SpecAfter([](CaptureOptions& options) {
    options.framework = "pytorch";
    options.steps = "5";
    options.at_step = "4711";
    options.framework_stacks = true;
  });
  EXPECT_EQ(by_step.framework_steps(), 5u);
  EXPECT_EQ(by_step.framework_first_step(), 4711u);
  EXPECT_TRUE(by_step.framework_stacks());
}

TEST(SpecOf, AsksSeveralFrameworks) {
  const v1::CaptureSpec spec = SpecAfter([](CaptureOptions& options) {
    options.framework = "pytorch,xla";
    options.duration = "20s";
  });
  ASSERT_EQ(spec.frameworks_size(), 2);
  EXPECT_EQ(spec.frameworks(1), "xla");
}

TEST(SpecOf, RejectsFrameworkOptionsThatAskForNothing) {
  const auto with = [](const Set& set) {
    return RefusalAfter([&](CaptureOptions& options) {
      options.framework = "pytorch";
      set(options);
    });
  };
  EXPECT_THAT(with([](CaptureOptions&) {}), HasSubstr("--duration"));
  EXPECT_THAT(with([](CaptureOptions& options) { options.at_step = "next"; }),
              HasSubstr("needs --steps"));
  EXPECT_THAT(with([](CaptureOptions& options) { options.steps = "10001"; }),
              HasSubstr("at most 10000"));
  EXPECT_THAT(with([](CaptureOptions& options) { options.no_framework = true; }),
              HasSubstr("--no-framework excludes"));
  EXPECT_THAT(with([](CaptureOptions& options) { options.last = "20s"; }), HasSubstr("--last"));
  EXPECT_THAT(RefusalAfter([](CaptureOptions& options) { options.steps = "5"; }),
              HasSubstr("add --framework"));
}

}  // namespace
}  // namespace neurontrace::cli
