// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

namespace neurontrace {

// Makes callbacks that do nothing once their owner is gone. It is a member of the owner, and its
// callbacks run on the sequence on which the owner is destroyed; they may be copied and destroyed
// on any thread. Wrap is called on that sequence alone.
class WeakTasks {
 public:
  WeakTasks() = default;
  WeakTasks(const WeakTasks&) = delete;
  WeakTasks& operator=(const WeakTasks&) = delete;

  // Returns a callable that passes its arguments to `function` while the owner exists.
  template <typename Function>
  auto Wrap(Function function) const {
    return [owner = std::weak_ptr<const bool>(owner_),
            function = std::move(function)](auto&&... arguments) mutable {
      if (!owner.expired()) function(std::forward<decltype(arguments)>(arguments)...);
    };
  }

 private:
  const std::shared_ptr<const bool> owner_ = std::make_shared<const bool>(true);
};

}  // namespace neurontrace
