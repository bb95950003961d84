// SPDX-License-Identifier: Apache-2.0
// Runs seeds of the fleet simulation; docs/developer/simulation.md says what it is.
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/sim_fleet.h"

namespace neurontrace {
namespace {

constexpr size_t kViolationsShown = 8;

struct Totals {
  uint64_t seeds = 0;
  uint64_t failed = 0;
  uint64_t rows = 0;
  uint64_t captures = 0;
  uint64_t complete = 0;
  uint64_t crashes = 0;
  double simulated_seconds = 0;
};

void Report(const std::string& program, uint64_t seed, const SimResult& result, bool verbose) {
  if (verbose || !result.violations.empty()) {
    fmt::print(
        "seed {}: hash {:016x}, {:.1f} s simulated, {} rows, {} stored, {} of {} captures "
        "complete\n",
        seed, result.trace_hash, result.simulated_seconds, result.rows, result.rows_stored,
        result.captures_complete, result.captures);
  }
  for (size_t i = 0; i < std::min(result.violations.size(), kViolationsShown); ++i) {
    fmt::print("  {}\n", result.violations[i]);
  }
  if (!result.violations.empty()) {
    fmt::print("seed {} FAILED; replay: {} --seed {} --verbose\n", seed, program, seed);
  }
}

// One number a line; what follows a '#' is for people.
std::vector<uint64_t> ReadSeeds(const std::string& path) {
  std::vector<uint64_t> seeds;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    line = line.substr(0, line.find('#'));
    if (line.find_first_of("0123456789") != std::string::npos) seeds.push_back(std::stoull(line));
  }
  return seeds;
}

class Seeds {
 public:
  Seeds(std::string program, bool verbose, bool twice)
      : program_(std::move(program)), verbose_(verbose), twice_(twice) {}

  void Take(uint64_t seed);
  const Totals& totals() const { return totals_; }

 private:
  SimResult Run(uint64_t seed, bool verbose) {
    return SimFleet(MakeProfile(seed), store_, verbose).Run();
  }

  const std::string program_;
  const bool verbose_;
  const bool twice_;
  const CrashDisk::Contents store_ = SimAggregator::NewStore();
  Totals totals_;
};

void Seeds::Take(uint64_t seed) {
  SimResult result = Run(seed, verbose_);
  if (twice_ && Run(seed, false).trace_hash != result.trace_hash) {
    result.violations.push_back("two runs of this seed differ");
  }
  Report(program_, seed, result, verbose_);
  ++totals_.seeds;
  if (!result.violations.empty()) ++totals_.failed;
  totals_.rows += result.rows;
  totals_.captures += result.captures;
  totals_.complete += result.captures_complete;
  totals_.crashes += result.crashes;
  totals_.simulated_seconds += result.simulated_seconds;
}

}  // namespace
}  // namespace neurontrace

int main(int argc, char** argv) {
  using namespace neurontrace;
  CLI::App app(
      "Simulates a fleet from a seed and checks that nothing acknowledged is lost and nothing lost "
      "goes unsaid.");
  uint64_t seed = 0;
  std::string range;
  std::string kept;
  std::string shard = "0/1";
  double seconds_max = 0;
  bool verbose = false;
  bool twice = false;
  app.add_option("--seed", seed, "one seed");
  app.add_option("--seeds", range, "A..B: all from A to B");
  app.add_option("--kept", kept, "a file with seeds to run first");
  app.add_option("--shard", shard, "I/N: every Nth seed of the range, from the Ith on");
  app.add_option("--seconds-max", seconds_max, "begin no further seed after so long; 0: no limit");
  app.add_flag("--verbose", verbose, "print all that happens");
  app.add_flag("--twice", twice, "run each seed twice and compare");
  CLI11_PARSE(app, argc, argv);
  spdlog::set_level(verbose ? spdlog::level::info : spdlog::level::off);
  spdlog::set_pattern("             %v");

  const auto begin = std::chrono::steady_clock::now();
  const auto passed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  Seeds seeds(argv[0], verbose, twice);
  if (!kept.empty()) {
    for (const uint64_t each : ReadSeeds(kept)) seeds.Take(each);
  }
  if (app.count("--seed") > 0) seeds.Take(seed);
  unsigned long long first = 1;
  unsigned long long last = 0;
  unsigned long long index = 0;
  unsigned long long shards = 1;
  if (!range.empty() && std::sscanf(range.c_str(), "%llu..%llu", &first, &last) != 2) {
    std::fputs("--seeds wants A..B\n", stderr);
    return 2;
  }
  if (std::sscanf(shard.c_str(), "%llu/%llu", &index, &shards) != 2 || shards == 0) {
    std::fputs("--shard wants I/N\n", stderr);
    return 2;
  }
  for (uint64_t each = first; each <= last; ++each) {
    if (each % shards != index) continue;
    if (seconds_max > 0 && passed() > seconds_max) break;
    seeds.Take(each);
    std::fflush(stdout);
  }
  const Totals& totals = seeds.totals();
  fmt::print(
      "sim_fleet: {} seeds, {} failed, {:.1f} seeds/s; {:.0f} simulated seconds, {} crashes, {} "
      "rows, "
      "{} of {} captures complete\n",
      totals.seeds, totals.failed, static_cast<double>(totals.seeds) / passed(),
      totals.simulated_seconds, totals.crashes, totals.rows, totals.complete, totals.captures);
  return totals.failed == 0 ? 0 : 1;
}
