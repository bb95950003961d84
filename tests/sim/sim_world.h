// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/fake_task_runner.h"
#include "lib/base/random.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"

namespace neurontrace {

// The sequence of one simulated process, on the world's: what it has posted is forgotten when it
// ends, as by kill -9.
class ProcessRunner final : public TaskRunner {
 public:
  explicit ProcessRunner(TaskRunner& world) : world_(world) {}

  void PostTask(Task task) override { world_.PostTask(Guard(std::move(task))); }
  void PostDelayedTask(Task task, uint64_t delay_ns) override {
    world_.PostDelayedTask(Guard(std::move(task)), delay_ns);
  }
  void AddReadableWatch(int, Task) override {}
  void RemoveReadableWatch(int) override {}
  bool RunsTasksOnCurrentThread() const override { return true; }

  // Nothing posted so far or from now on runs.
  void Kill() { weak_tasks_.reset(); }

 private:
  Task Guard(Task task) const {
    return weak_tasks_ ? Task(weak_tasks_->Wrap(std::move(task))) : Task([] {});
  }

  TaskRunner& world_;
  std::optional<WeakTasks> weak_tasks_{std::in_place};
};

// What happened in a run, as lines: hashed always, printed on request. Two runs of one seed have
// the same hash, or the simulation is not repeatable. Also where a broken invariant is said. One
// thread.
class SimTrace {
 public:
  SimTrace(const FakeClock& clock, bool verbose)
      : clock_(clock), start_ns_(clock.MonotonicNs()), verbose_(verbose) {}

  template <typename... Args>
  void Log(fmt::format_string<Args...> format, Args&&... args) {
    Add(fmt::format(format, std::forward<Args>(args)...));
  }
  // An invariant does not hold.
  template <typename... Args>
  void Violate(fmt::format_string<Args...> format, Args&&... args) {
    violations_.push_back(fmt::format("at {:.3f} s: {}", Seconds(),
                                      fmt::format(format, std::forward<Args>(args)...)));
    Add("VIOLATION " + violations_.back());
  }

  double Seconds() const { return static_cast<double>(clock_.MonotonicNs() - start_ns_) * 1e-9; }
  uint64_t hash() const { return hash_; }
  uint64_t lines() const { return lines_; }
  bool verbose() const { return verbose_; }
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  void Add(const std::string& line) {
    const std::string timed = fmt::format("{:12.6f} {}", Seconds(), line);
    for (const char c : timed) {
      hash_ = (hash_ ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
    }
    ++lines_;
    if (verbose_) std::puts(timed.c_str());
  }

  const FakeClock& clock_;
  const uint64_t start_ns_;
  const bool verbose_;
  uint64_t hash_ = 0xcbf29ce484222325u;
  uint64_t lines_ = 0;
  std::vector<std::string> violations_;
};

// The dice of a simulation: everything that happens by chance comes from the seed. One thread.
class SimRandom final : public Random {
 public:
  explicit SimRandom(uint64_t seed) : random_(seed * 0x9e3779b97f4a7c15u + 1) {}

  uint64_t Next64() override { return random_.Next64(); }
  // From `low` to `high`, both included.
  uint64_t Between(uint64_t low, uint64_t high) { return low + Next64() % (high - low + 1); }
  // True `per_mille` times of a thousand.
  bool Chance(uint32_t per_mille) { return Next64() % 1000 < per_mille; }

 private:
  SeededRandom random_;
};

inline constexpr uint64_t kSimMs = 1'000'000;
inline constexpr uint64_t kSimSecond = 1'000 * kSimMs;

// Time, chance and memory of one run; outlives all that is simulated.
struct SimWorld {
  SimWorld(uint64_t seed, bool verbose) : random(seed), trace(clock, verbose) {}

  FakeClock clock;
  FakeTaskRunner runner{clock};
  SimRandom random;
  SimTrace trace;
};

}  // namespace neurontrace
